"""Where in the passages a claim's words stand: the best one to three adjacent sentences, and which words meet."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass

from evalstone.judges.lexical.passages import Passages, Piece

CANDIDATES = 6
MOST_LOOKUPS = 1000
MOST_PLACES = 50


@dataclass(frozen=True, slots=True)
class Window:
    """A sentence with its neighbours. one, two, three: what it has of the claim alone, with one neighbour, and both."""

    one: float
    two: float
    three: float
    piece: Piece
    near: tuple[Piece, ...]

    @property
    def plain(self) -> str:
        """The words of all three in one line."""
        return " ".join(piece.plain for piece in self.near)

    @property
    def numbers(self) -> frozenset[str]:
        """The figures of all three."""
        return frozenset[str]().union(*(piece.numbers for piece in self.near))

    @property
    def quantities(self) -> frozenset[str]:
        """The quantities of all three."""
        return frozenset[str]().union(*(piece.quantities for piece in self.near))


def windows(wanted: frozenset[str], passages: Passages) -> list[Window]:
    """The sentences that share most with the wanted stems, best first, each with its neighbours in the same section."""
    found: list[Window] = []
    every, weight = passages.pieces, passages.weight
    for place in _candidates(wanted, passages):
        here = every[place]
        own = here.content & wanted
        before = every[place - 1] if place and every[place - 1].section == here.section else None
        after = every[place + 1] if place + 1 < len(every) and every[place + 1].section == here.section else None
        left = own | (before.content & wanted) if before else own
        right = own | (after.content & wanted) if after else own
        near = tuple(piece for piece in (before, here, after) if piece is not None)
        found.append(Window(weight(own), max(weight(left), weight(right)), weight(left | right), here, near))
    found.sort(key=lambda window: (-window.one, -window.three))
    return found


def _candidates(wanted: frozenset[str], passages: Passages) -> list[int]:
    """The pieces that share most with the wanted stems, rare ones looked up first; the look-ups are bounded."""
    shares: defaultdict[int, float] = defaultdict(float)
    get, unseen = passages.lexicon.weights.get, passages.lexicon.unseen
    left = MOST_LOOKUPS
    for weight, item in sorted((-get(item, unseen), item) for item in wanted if item in passages.postings):
        places = passages.postings[item]
        for place in itertools.islice(places, left):
            shares[place] -= weight
        left -= len(places)
        if left <= 0:
            break
    return sorted(shares, key=lambda place: (-shares[place], place))[:CANDIDATES]


def meet(one: str, other: str, passages: Passages) -> bool:
    """Whether some sentence has both stems."""
    first, second = passages.postings.get(one), passages.postings.get(other)
    if not first or not second:
        return False
    fewer, wanted = (first, other) if len(first) <= len(second) else (second, one)
    pieces = passages.pieces
    return any(wanted in pieces[place].content for place in fewer[:MOST_PLACES])


def met_pairs(wanted: frozenset[str], passages: Passages) -> tuple[float, float]:
    """The share of the pairs of stems that meet in some sentence: among the ten rarest, and among the five rarest."""
    get, unseen = passages.lexicon.weights.get, passages.lexicon.unseen
    ranked = [item for _, item in sorted((-get(item, unseen), item) for item in wanted)[:10]]
    if len(ranked) < 2:
        one = float(all(item in passages.postings for item in ranked))
        return one, one
    met = [(late < 5, meet(ranked[a], ranked[late], passages)) for a, late in _pairs(len(ranked))]
    rare = [is_met for is_rare, is_met in met if is_rare]
    return sum(is_met for _, is_met in met) / len(met), sum(rare) / len(rare)


def _pairs(count: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(count), 2))
