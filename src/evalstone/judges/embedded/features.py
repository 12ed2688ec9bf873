"""What can be counted about one claim and some passages. How the counts become a verdict is in `verdict.py`."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalstone.judges.embedded.index import Index, Piece, all_stems, content, denied, is_negated
from evalstone.text import STOPWORDS, numbers, stem, tokens

CANDIDATES = 6
MOST_LOOKUPS = 1000
NEAR_BEST = 0.95
# Small numbers in words ("two of them", "one reason") are seldom a statement of number.
_SMALL = frozenset(map(str, range(13)))
_REFERENCE = re.compile(
    r"\b(?:passage|document|source|step|figure|table)s? \d{1,3}(?:(?:,|,? and|,? or) \d{1,3}){0,20}(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Evidence:
    """What the passages have of one claim. Shares are in [0, 1], those of words by weight.

    sentence: the share of the claim's content words in the best sentence. aside: the same, its figures left out.
    cover: the share of that sentence's content words that the claim has. window: the share of the claim's content words
    in the best one to three adjacent sentences of one passage. anywhere: the same in all passages together. pairs: the
    share of the claim's neighbouring words that are neighbours in a passage. run: the longest stretch of such
    neighbours, as a share of the claim. figures: the numbers of the claim. lost_words, lost_figures, lost_names: what
    no passage has. denial: stems that the claim denies and its best sentence states, or the other way round. best: the
    sentence with most of the claim among those whose window is nearly as good as the best. passages: their numbers.
    """

    sentence: float
    aside: float
    cover: float
    window: float
    anywhere: float
    pairs: float
    run: float
    figures: tuple[str, ...]
    lost_words: tuple[str, ...]
    lost_figures: tuple[str, ...]
    lost_names: tuple[str, ...]
    denial: tuple[str, ...]
    best: Piece | None
    passages: tuple[int, ...]


def evidence(claim: str, index: Index) -> Evidence:
    """Count what the passages have of a claim."""
    claim = _REFERENCE.sub(" ", claim)
    written = tokens(claim)
    low = tuple(token.lower() for token in written)
    stems = all_stems(low)
    wanted = content(stems)
    whole = index.weight(wanted) or 1.0
    lost = {item for item in wanted if item not in index.weights}
    figures = tuple(figure for figure in dict.fromkeys(numbers(claim)) if figure not in _SMALL or figure in low)
    windows = [(_window(place, wanted, index) / whole, place) for place in _candidates(wanted, index)]
    window = max((share for share, _ in windows), default=0.0)
    near = [index.pieces[place] for share, place in windows if share >= NEAR_BEST * window]
    best = max(near, key=lambda piece: index.weight(piece.stems & wanted), default=None)
    known = [pair in index.pairs for pair in itertools.pairwise(stems)] if best else []
    plain = frozenset(item for item in wanted if not item[0].isdigit())
    return Evidence(
        sentence=index.weight(best.stems & wanted) / whole if best else 0.0,
        aside=index.weight(best.stems & plain) / (index.weight(plain) or 1.0) if best else 0.0,
        cover=index.weight(best.stems & wanted) / (index.weight(best.stems) or 1.0) if best else 0.0,
        window=window,
        anywhere=1 - len(lost) * index.unseen / whole if wanted else 0.0,
        pairs=sum(known) / len(known) if known else float(best is not None),
        run=_longest(known) / len(known) if known else 0.0,
        figures=figures,
        lost_words=tuple(dict.fromkeys(word for word, item in zip(low, stems, strict=True) if item in lost)),
        lost_figures=tuple(figure for figure in figures if figure not in index.numbers),
        lost_names=tuple(_lost_names(written, lost)),
        denial=tuple(sorted(_denial(low, stems, best))) if best else (),
        best=best,
        passages=tuple(sorted({piece.passage for piece in near})),
    )


def _candidates(wanted: frozenset[str], index: Index) -> list[int]:
    """The pieces that share most with the claim, rare words looked up first; the number of look-ups is bounded."""
    shares: defaultdict[int, float] = defaultdict(float)
    left = MOST_LOOKUPS
    for item in sorted(wanted & index.weights.keys(), key=lambda item: (-index.weights[item], item)):
        weight = index.weights[item]
        places = index.postings[item]
        for place in itertools.islice(places, left):
            shares[place] += weight
        left -= len(places)
        if left <= 0:
            break
    return sorted(shares, key=lambda place: (-shares[place], place))[:CANDIDATES]


def _window(place: int, wanted: frozenset[str], index: Index) -> float:
    """What the best window around a piece has of the wanted stems: it and its neighbours on either side."""
    pieces = index.pieces
    here = pieces[place]
    near = [
        pieces[other].stems & wanted
        for other in (place - 1, place + 1)
        if 0 <= other < len(pieces) and pieces[other].passage == here.passage
    ]
    return index.weight((here.stems & wanted).union(*near))


def _longest(known: Sequence[bool]) -> int:
    return max((len(list(run)) for is_known, run in itertools.groupby(known) if is_known), default=0)


def _lost_names(written: Sequence[str], lost: set[str]) -> Iterator[str]:
    """The capitalised words after the first that no passage has."""
    for token in dict.fromkeys(written[1:]):
        low = token.lower()
        if token[0].isupper() and low not in STOPWORDS and stem(low) in lost:
            yield token


def _denial(low: Sequence[str], stems: Sequence[str], best: Piece) -> frozenset[str]:
    said = denied(low)
    if is_negated(low) == best.negated:
        return frozenset()
    return ((said - best.denied) & best.stems) | ((best.denied - said) & frozenset(stems))
