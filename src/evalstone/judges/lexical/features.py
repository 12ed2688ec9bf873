"""What can be counted about one claim and some passages: 26 numbers, each higher the better the passages bear it out.

Shares are in [0, 1]; what counts something lacking is in [-1, 0]. The order is that of `NAMES`, and the weights of the
model are for this order. Words are compared by stem, and count by rarity unless a name ends in `plain` or `count`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evalstone.judges.lexical.boolean_fields import told_otherwise
from evalstone.judges.lexical.claim_features import Claim, read
from evalstone.judges.lexical.opening_hours import told_other_times
from evalstone.judges.lexical.passages import Passages, Piece, grams_of
from evalstone.judges.lexical.tokens import denied, is_negated, numerals, quantified
from evalstone.judges.lexical.windows import Window, meet, met_pairs, windows

LONGEST_COMPARED = 1000

NAMES = (
    # shares of the claim's content words: in any passage, in the best one to three adjacent sentences; and the share of
    # the best sentence that the claim has
    "anywhere", "anywhere_plain", "one", "two", "three", "covered",
    # sequences: four words, neighbouring content words that meet in a sentence, token set ratio to the best window,
    # four characters, words whose first five letters are known
    "quads", "neighbours", "set_ratio", "grams", "prefixes",
    # figures and capitalised words that no passage has, and figures that the best window lacks
    "figures_lost", "figures_near", "names_lost", "names_share",
    # content words that no passage has: their weight, how many, the three rarest, the longest row of them
    "lost_weight", "lost_count", "lost_rarest", "lost_row",
    # a denied word that the best sentence states, quantities ("all", "up") that the window lacks, fields told otherwise
    "denial", "quantities", "otherwise",
    # pairs of the claim's rarest words that stand in one sentence: of ten and of five; the best sentence, 0 where a
    # figure is lost
    "together", "together_rare", "best_match",
)  # fmt: skip

# What a text that claims nothing is given: nothing is lacking.
IDEAL = tuple(
    0.0 if name.startswith(("lost", "denial", "quant", "other")) or name.endswith(("_lost", "_near")) else 1.0
    for name in NAMES
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the passages have of one claim.

    values: as `NAMES`. figures: the claim's numbers. lost_words, lost_figures, lost_names: what no passage has.
    otherwise: the fields of a structured source that the claim tells otherwise. denial: whether the claim and its best
    sentence differ in a negation. best: the sentence with most of the claim. aside: the share of the claim's content
    words in it, figures left out. cover: the share of that sentence that the claim has. passages: the numbers
    of those that have about as much.
    """

    values: tuple[float, ...]
    figures: tuple[str, ...]
    lost_words: tuple[str, ...]
    lost_figures: tuple[str, ...]
    lost_names: tuple[str, ...]
    otherwise: tuple[str, ...]
    denial: bool
    best: Piece | None
    aside: float
    cover: float
    passages: tuple[int, ...]


def evidence(text: str, passages: Passages) -> Evidence:
    """Count what the passages have of a claim."""
    claim = read(text)
    lacking = _lacking(text, claim, passages)
    lost, lost_figures = lacking.words, lacking.figures
    found = windows(claim.content - lost, passages)
    best = found[0] if found else None
    lost_names = [item for _, item in claim.names if item in lost]
    denies = best is not None and _denies(claim, best.piece)
    aside, cover = _overlap(claim, best, passages)
    return Evidence(
        values=(
            *_shares(claim, lost, found, passages),
            *_sequences(claim, lost, best, passages),
            -min(len(lost_figures), 3) / 3,
            -min(_absent(claim.figures, best), 3) / 3,
            -min(len(lost_names), 4) / 4,
            1 - len(lost_names) / len(claim.names) if claim.names else 1.0,
            *_lacks(claim, lost, passages),
            -float(denies),
            -min(len(quantified(claim.low) - (best.quantities if best else frozenset())), 3) / 3,
            -min(len(lacking.otherwise), 3) / 3,
            *_company(claim, found, passages, whole=not lost_figures),
        ),
        figures=claim.figures,
        lost_words=tuple(dict.fromkeys(w for w, item in zip(claim.low, claim.stems, strict=True) if item in lost)),
        lost_figures=lost_figures,
        lost_names=tuple(dict.fromkeys(name for name, item in claim.names if item in lost)),
        otherwise=lacking.otherwise,
        denial=denies,
        best=best.piece if best else None,
        aside=aside,
        cover=cover,
        passages=tuple(sorted({one.piece.passage for one in found if one.one >= 0.95 * found[0].one})),
    )


@dataclass(frozen=True, slots=True)
class _Lacking:
    """The content stems and figures of a claim that no passage has, and the fields that it tells otherwise."""

    words: frozenset[str]
    figures: tuple[str, ...]
    otherwise: tuple[str, ...]


def _lacking(text: str, claim: Claim, passages: Passages) -> _Lacking:
    against = told_otherwise(text, frozenset(claim.stems), passages.flags)
    other_times = told_other_times(text, passages.hours)
    lost = frozenset(item for item in claim.content if item not in passages.postings)
    for one in against:
        # What a field says is not so is in no passage, though its name is.
        lost |= claim.content & (one.stems | {one.joined})
    figures = tuple(figure for figure in claim.figures if figure not in passages.numbers)
    if not figures:
        # "Two million" stands where the passage has 2,000,000.
        lost -= numerals(lost, claim.low)
    if other_times:
        lost |= {item for item in claim.content if item[0].isdigit()}
    return _Lacking(lost, figures, (*(one.line for one in against), *other_times))


def _overlap(claim: Claim, best: Window | None, passages: Passages) -> tuple[float, float]:
    """The share of the claim that the best sentence has, figures left out, and the share of it that the claim has."""
    if best is None:
        return 0.0, 0.0
    here, weight = best.piece.content, passages.weight
    plain = frozenset(item for item in claim.content if not item[0].isdigit())
    return _part(weight(here & plain), weight(plain)), _part(weight(here & claim.content), weight(here))


def _part(some: float, whole: float) -> float:
    return some / whole if whole else 1.0


def _shares(claim: Claim, lost: frozenset[str], found: Sequence[Window], passages: Passages) -> Iterable[float]:
    wanted, weight = claim.content, passages.weight
    whole = weight(wanted)
    if not whole:
        return (1.0,) * 6
    if not found:
        return (0.0,) * 6
    here = found[0].piece.content
    return (
        1 - weight(lost) / whole,
        1 - len(lost) / len(wanted),
        found[0].one / whole,
        max(one.two for one in found) / whole,
        max(one.three for one in found) / whole,
        _part(weight(here & wanted - lost), weight(here)),
    )


def _sequences(claim: Claim, lost: frozenset[str], best: Window | None, passages: Passages) -> Iterable[float]:
    from rapidfuzz.fuzz import token_set_ratio  # noqa: PLC0415 - loaded when first needed

    stems, whole, weights = claim.stems, passages.weight(claim.content), passages.lexicon
    quads = [one in passages.quads for one in zip(stems, stems[1:], stems[2:], stems[3:], strict=False)]
    carried = [item for item in stems if item in claim.content][:60]
    pairs = [meet(one, other, passages) for one, other in itertools.pairwise(carried)]
    plain = claim.plain[:LONGEST_COMPARED]
    grams = frozenset(grams_of(plain))
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
    row = longest = 0
    for item in claim.stems:
        if item in lost:
            row += 1
            longest = max(longest, row)
        elif item in claim.content:
            row = 0
    return (
        -min(sum(weights), 60.0) / 60,
        -min(len(lost), 8) / 8,
        -sum(weights[:3]) / (3 * unseen),
        -min(longest, 6) / 6,
    )


def _company(claim: Claim, found: Sequence[Window], passages: Passages, *, whole: bool) -> Iterable[float]:
    every, rare = met_pairs(claim.content, passages)
    one = _part(found[0].one, passages.weight(claim.content)) if found else float(not claim.content)
    return every, rare, one * whole


def _absent(figures: Sequence[str], best: Window | None) -> int:
    return sum(best is None or figure not in best.numbers for figure in figures)


def _denies(claim: Claim, best: Piece) -> bool:
    """Whether a claim denies what its best sentence states, or states what that denies."""
    if is_negated(claim.low) == best.negated:
        return False
    said = denied(claim.low, claim.stems)
    return bool(((said - best.denied) & frozenset(best.stems)) or ((best.denied - said) & frozenset(claim.stems)))
