"""Features of a claim and some passages: 25 numbers, each higher the better the passages support the claim.

Shares are in [0, 1], and counts of missing things are in [-1, 0]. The model's weights rely on the order of `NAMES`.
Words are compared by stem, and weighted by rarity unless a name ends in `plain` or `count`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from evalstone._core.text import STOPWORDS
from evalstone.judges.lexical.near_copies import (
    NEGATING_STEMS,
    Name,
    Swap,
    differ_in_negation,
    swapped_names,
    swapped_opposites,
    swapped_units,
)
from evalstone.judges.lexical.normalization import comparable
from evalstone.judges.lexical.numbers import centuries, figures
from evalstone.judges.lexical.passages import Field, Passages, Piece, Window, grams_of, meet, met_pairs, windows
from evalstone.judges.lexical.tokens import content, denied, is_negated, quantified, stems_of, unavailable
from evalstone.judges.lexical.units import CURRENCIES

LONGEST_COMPARED = 1000
# The share of a sentence that a claim must have, or the other way around, to be about the same.
SAME_SENTENCE = 0.8
# A claim with fewer content words has less weight: "That is cool" says little.
WHOLE_CLAIM = 5

NAMES = (
    # shares of the claim's content words: in any passage, in the best one to three adjacent sentences; and the share of
    # the best sentence that the claim has
    "anywhere", "anywhere_plain", "one", "two", "three", "covered",
    # sequences: four words, neighboring content words that share a sentence, token set ratio to the best window,
    # four characters, words whose first five letters occur
    "quads", "neighbours", "set_ratio", "grams", "prefixes",
    # figures and capitalized words that no passage has, and figures that the best window lacks
    "figures_lost", "figures_near", "names_lost", "names_share",
    # content words that no passage has: their weight, their count, the three rarest, the longest run of them
    "lost_weight", "lost_count", "lost_rarest", "lost_row",
    # a negated word that the best sentence states, quantities ("all", "up") that the window lacks, fields that are a no
    # but stated by the claim, or a yes but denied by it
    "denial", "quantities", "contradicted_fields",
    # pairs of the claim's rarest words that share a sentence: of ten and of five; the best sentence, or 0 if a figure
    # is missing
    "together", "together_rare", "best_match",
)  # fmt: skip

# The features of a text without claims: nothing is missing.
IDEAL = tuple(
    0.0 if name.startswith(("lost", "denial", "quant", "contradicted")) or name.endswith(("_lost", "_near")) else 1.0
    for name in NAMES
)

# Compared apart: "never allowed" and "allowed" are about the same, and so are "$5" and "6".
_UNCOMPARED = NEGATING_STEMS | CURRENCIES
_REFERENCE = re.compile(
    r"\b(?:passage|document|source|step|figure|table)s? \d{1,3}(?:(?:(?:,|,? and|,? or) |[-–])\d{1,3}){0,20}(?!\w)",
    re.IGNORECASE,
)
# "Lyon is" and "Lyon won", but not "Running is", "Everybody has", "Scientists found" or "Recently retired". Other nouns
# need an article before a singular verb.
_AFTER_SUBJECT = frozenset({"is", "was", "has", "does"})
_NO_NAMES_BEFORE_PAST = ("s", "ly")
_PAST = frozenset(
    {"won", "wrote", "became", "made", "said", "did", "had", "went", "came", "took", "gave", "led", "built", "bought"}
    | {"sold", "left", "met", "held", "ran", "saw", "began"}
)
_NO_NAMES = ("ing", "one", "body", "thing")


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim, tokenized."""

    low: tuple[str, ...]
    """Its words in lower case."""
    stems: tuple[str, ...]
    content: frozenset[str]
    """The stems that carry content."""
    figures: tuple[str, ...]
    """Its numbers."""
    names: tuple[Name, ...]
    """The capitalized words after the first, each with its stem."""
    subject: tuple[Name, ...]
    """The same for the first word if it is perhaps a name."""
    plain: str
    """Its words in one line."""


def read(text: str) -> Claim:
    """Tokenize a claim. References such as "passage 2" are dropped."""
    written = comparable(_REFERENCE.sub(" ", text))
    low = tuple(token.lower() for token in written)
    stems = stems_of(low)
    carrying = content(stems)
    names = tuple(
        (token, item)
        for token, word, item in zip(written[1:], low[1:], stems[1:], strict=True)
        if token[0].isupper() and word not in STOPWORDS and item in carrying
    )
    return Claim(low, stems, carrying, figures(low), names, _subject(written, carrying), " ".join(low))


def _subject(written: Sequence[str], carrying: frozenset[str]) -> tuple[Name, ...]:
    """The first word, if it is a subject without an article, and so perhaps a name."""
    if len(written) < 2 or not written[0][0].isupper():
        return ()
    first, second = written[:2]
    is_past = (second.endswith("ed") or second in _PAST) and not first.endswith(_NO_NAMES_BEFORE_PAST)
    if second not in _AFTER_SUBJECT and not is_past:
        return ()
    (item,) = stems_of([written[0].lower()])
    return ((written[0], item),) if item in carrying and not written[0].endswith(_NO_NAMES) else ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for one claim in the passages."""

    values: tuple[float, ...]
    """The features, in the order of `NAMES`."""
    figures: tuple[str, ...]
    """The claim's numbers."""
    lost_words: tuple[str, ...]
    """The claim's content words that no passage has."""
    lost_figures: tuple[str, ...]
    lost_names: tuple[str, ...]
    contradicting: tuple[str, ...]
    """The lines of fields that are a no but stated by the claim, or a yes but denied by it."""
    denial: bool
    """Whether the claim or its best sentence has a negation more, if that sentence has about all of the claim."""
    swap: Swap | None
    """The words in its best sentence in place of its names, unit or word, if that sentence is otherwise equal."""
    best: Piece | None
    """The sentence with the largest share of the claim."""
    aside: float
    """The share of the claim's content words in that sentence, figures excluded."""
    cover: float
    """The share of that sentence's content words in the claim."""
    passages: tuple[int, ...]
    """The numbers of the passages with about as large a share as the best one."""
    size: int
    """The weight of the claim in a response: its number of content words, from 1 to WHOLE_CLAIM."""


def evidence(text: str, passages: Passages) -> Evidence:
    """Compute the evidence for a claim."""
    claim = _without_known_centuries(read(text), passages)
    lost, lost_figures, contradicting = _lacking(claim, passages)
    candidates = windows(claim.content - lost, passages)
    best = _best(claim, candidates) if candidates else None
    lost_names = [item for _, item in claim.names if item in lost]
    denies = best is not None and _denies(claim, best.piece)
    aside, cover = _overlap(claim, best, passages)
    return Evidence(
        values=(
            *_shares(claim, lost, candidates, passages),
            *_sequences(claim, lost, best, passages),
            -min(len(lost_figures), 3) / 3,
            -min(_absent(claim.figures, best), 3) / 3,
            -min(len(lost_names), 4) / 4,
            1 - len(lost_names) / len(claim.names) if claim.names else 1.0,
            *_lacks(claim, lost, passages),
            -float(denies),
            -min(len(quantified(claim.low) - (best.quantities if best else frozenset())), 3) / 3,
            -min(len(contradicting), 3) / 3,
            *_cooccurrence(claim, candidates, passages, whole=not lost_figures),
        ),
        figures=claim.figures,
        lost_words=tuple(dict.fromkeys(w for w, item in zip(claim.low, claim.stems, strict=True) if item in lost)),
        lost_figures=lost_figures,
        lost_names=tuple(dict.fromkeys(name for name, item in claim.names if item in lost)),
        contradicting=contradicting,
        denial=(
            best is not None and aside >= SAME_SENTENCE and differ_in_negation(claim.low, best.piece.plain.split())
        ),
        swap=_swap(claim, best.piece, passages) if best else None,
        best=best.piece if best else None,
        aside=aside,
        cover=cover,
        passages=tuple(
            sorted({window.piece.passage for window in candidates if window.one >= 0.95 * candidates[0].one})
        ),
        size=max(1, min(len(claim.content), WHOLE_CLAIM)),
    )


def word_overlap(low: Sequence[str], passages: Passages) -> float:
    """The share of a text's distinct words that occur in the passages, in [0, 1]; 1 for a text without words."""
    own = frozenset(low)
    return len(own & passages.words) / len(own) if own else 1.0


def _lacking(claim: Claim, passages: Passages) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
    """The content stems and figures of a claim that no passage has, and the lines of the fields that it contradicts."""
    lost = frozenset(item for item in claim.content if item not in passages.postings)
    contradicted = [field for field in passages.fields if field.stems <= claim.content and _contradicts(claim, field)]
    lost = lost.union(*(field.stems for field in contradicted))
    absent = tuple(figure for figure in claim.figures if not passages.has_number(figure))
    return lost, absent, tuple(field.line for field in contradicted)


def _contradicts(claim: Claim, field: Field) -> bool:
    """Whether a claim with all words of a field's key says the opposite of its value."""
    gone = unavailable(claim.low, claim.stems)
    if field.value:
        return not field.stems.isdisjoint(gone | denied(claim.low, claim.stems))
    # A claim with a negation is skipped: word comparison can't tell which words it negates.
    return not gone and not is_negated(claim.low)


def _without_known_centuries(claim: Claim, passages: Passages) -> Claim:
    """A claim without the centuries that no passage names but a year in some passage belongs to."""
    if not any(figure.endswith("cy") for figure in claim.figures):
        return claim
    known = centuries(passages.numbers) - passages.numbers
    return replace(
        claim,
        content=claim.content - known,
        figures=tuple(figure for figure in claim.figures if figure not in known),
    )


def _best(claim: Claim, candidates: Sequence[Window]) -> Window:
    """The sentence with the largest share of a claim; of several with all of it, one that doesn't exclude it if any."""
    first = candidates[0]
    whole = [window for window in candidates if window.one == first.one and claim.content <= window.piece.content]
    for window in whole if len(whole) > 1 else ():
        others = window.piece.plain.split()
        if not differ_in_negation(claim.low, others) and not swapped_opposites(
            claim.low, claim.stems, others, window.piece.stems
        ):
            return window
    return first


def _swap(claim: Claim, best: Piece, passages: Passages) -> Swap | None:
    """What a claim's best sentence has in place of a claim's names, unit or word, if the two are otherwise equal."""
    common = claim.content & best.content
    lost = claim.content - common
    swap = _replaced(claim, best, lost, common, passages)
    if swap is None or not lost <= swap.own_stems:
        return None
    same, weight = common - swap.own_stems, passages.weight
    cover = _part(weight(same), weight(best.content - swap.other_stems - swap.own_stems))
    return swap if same and cover >= SAME_SENTENCE else None


def _replaced(
    claim: Claim, best: Piece, lost: frozenset[str], common: frozenset[str], passages: Passages
) -> Swap | None:
    """A unit, an opposite or names that only a claim has, and what its best sentence has in their place."""
    if len(lost) <= 1 and not differ_in_negation(claim.low, others := best.plain.split()):
        swap = swapped_units(claim.low, others) if claim.figures else None
        if swap := swap or swapped_opposites(claim.low, claim.stems, others, best.stems):
            return swap
    # "Not in Berlin" agrees with "in Paris".
    if not lost or best.negated or is_negated(claim.low) or not lost.isdisjoint(passages.postings):
        return None
    names = (*claim.subject, *claim.names)
    if not lost <= {item for _, item in names}:
        return None
    other = read(best.text)
    return swapped_names(claim.stems, names, (*other.subject, *other.names), common)


def _overlap(claim: Claim, best: Window | None, passages: Passages) -> tuple[float, float]:
    """The share of the claim in the best sentence, without figures, and the share of that sentence in the claim."""
    if best is None:
        return 0.0, 0.0
    here, weight = best.piece.content - _UNCOMPARED, passages.weight
    plain = frozenset(item for item in claim.content - _UNCOMPARED if not item[0].isdigit())
    return _part(weight(here & plain), weight(plain)), _part(weight(here & claim.content), weight(here))


def _part(some: float, whole: float) -> float:
    return some / whole if whole else 1.0


def _shares(claim: Claim, lost: frozenset[str], candidates: Sequence[Window], passages: Passages) -> Iterable[float]:
    terms, weight = claim.content, passages.weight
    whole = weight(terms)
    if not whole:
        return (1.0,) * 6
    if not candidates:
        return (0.0,) * 6
    here = candidates[0].piece.content
    return (
        1 - weight(lost) / whole,
        1 - len(lost) / len(terms),
        candidates[0].one / whole,
        max(window.two for window in candidates) / whole,
        max(window.three for window in candidates) / whole,
        _part(weight(here & terms - lost), weight(here)),
    )


def _sequences(claim: Claim, lost: frozenset[str], best: Window | None, passages: Passages) -> Iterable[float]:
    from rapidfuzz.fuzz import token_set_ratio  # noqa: PLC0415 - loaded when first needed

    stems, whole, weights = claim.stems, passages.weight(claim.content), passages.lexicon
    quads = [one in passages.quads for one in zip(stems, stems[1:], stems[2:], stems[3:], strict=False)]
    carried = [item for item in stems if item in claim.content][:60]
    pairs = [meet(one, other, passages) for one, other in itertools.pairwise(carried)]
    plain = claim.plain[:LONGEST_COMPARED]
    grams = grams_of(plain)
    unlike = [item for item in lost if len(item) < 5 or item[:5] not in passages.prefixes]
    return (
        _part(sum(quads), len(quads)),
        _part(sum(pairs), len(pairs)) if pairs else float(not lost),
        token_set_ratio(plain, best.plain) / 100 if best else 0.0,
        _part(len(grams & passages.grams), len(grams)),
        _part(whole - weights.weight(unlike), whole),
    )


def _lacks(claim: Claim, lost: frozenset[str], passages: Passages) -> Iterable[float]:
    unseen = passages.lexicon.unseen
    weights = sorted((passages.lexicon.weights.get(item, unseen) for item in lost), reverse=True)
    run = longest = 0
    for item in claim.stems:
        if item in lost:
            run += 1
            longest = max(longest, run)
        elif item in claim.content:
            run = 0
    return (
        -min(sum(weights), 60.0) / 60,
        -min(len(lost), 8) / 8,
        -sum(weights[:3]) / (3 * unseen),
        -min(longest, 6) / 6,
    )


def _cooccurrence(claim: Claim, candidates: Sequence[Window], passages: Passages, *, whole: bool) -> Iterable[float]:
    pairs, rare_pairs = met_pairs(claim.content, passages)
    best = _part(candidates[0].one, passages.weight(claim.content)) if candidates else float(not claim.content)
    return pairs, rare_pairs, best * whole


def _absent(figures: Sequence[str], best: Window | None) -> int:
    return sum(best is None or figure not in best.numbers for figure in figures)


def _denies(claim: Claim, best: Piece) -> bool:
    """Whether a claim negates what its best sentence states, or the other way around."""
    if is_negated(claim.low) == best.negated:
        return False
    own = denied(claim.low, claim.stems)
    return bool(((own - best.denied) & frozenset(best.stems)) or ((best.denied - own) & frozenset(claim.stems)))
