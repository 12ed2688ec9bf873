"""Passages indexed for lookups: their sentences or fields, and which words occur where."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalstone.judges.lexical.normalization import (
    BooleanField,
    boolean_field,
    comparable_low,
    is_structured,
    parts,
    pieces,
)
from evalstone.judges.lexical.numbers import figures
from evalstone.judges.lexical.tokens import Lexicon, content, denied, is_negated, quantified, stems_of

GRAM = 4
CANDIDATES = 6
MOST_LOOKUPS = 1000
MOST_PLACES = 50
MOST_FIELDS = 400
_ARTICLES = frozenset({"a", "an"})


@dataclass(frozen=True, slots=True)
class Piece:
    """One sentence of a passage, one field of a structured passage, or a part of an extremely long sentence."""

    passage: int
    """The number of the passage, from 1."""
    section: int
    """The number of the block between blank lines. Only pieces in the same section are neighbors."""
    text: str
    plain: str
    """Its words in one line, in lower case."""
    stems: tuple[str, ...]
    content: frozenset[str]
    """The stems that carry content."""
    numbers: frozenset[str]
    negated: bool
    """Whether it contains any negation."""
    denied: frozenset[str]
    """The stems that it negates."""
    quantities: frozenset[str]
    """Quantities such as "all", "some" and "none"."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field that is a yes or a no, such as `outdoor_seating: no`."""

    line: str
    stems: frozenset[str]
    """The stems of its key that occur in no other line, except that false fields may share them."""
    value: bool


@dataclass(frozen=True)
class Passages:
    """Passages prepared for lookups."""

    lexicon: Lexicon
    pieces: tuple[Piece, ...]
    postings: Mapping[str, Sequence[int]]
    """For each content stem, the pieces that contain it, in order."""
    quads: frozenset[tuple[str, str, str, str]]
    """Every four adjacent stems of a piece."""
    prefixes: frozenset[str]
    """The first five letters of the content stems."""
    grams: frozenset[int]
    """The sequences of four bytes, see `grams_of`."""
    words: frozenset[str]
    """Every word, in lower case."""
    numbers: frozenset[str]
    fields: tuple[Field, ...]
    """The fields that are a yes or a no."""
    structured: bool
    """Whether most passages start with fields and values."""

    def weight(self, stems: Iterable[str]) -> float:
        """The total weight of some stems."""
        return self.lexicon.weight(stems)

    def has_number(self, figure: str) -> bool:
        """Whether a passage contains a number. "a" and "an" count as 1."""
        return figure in self.numbers or (figure == "1" and not _ARTICLES.isdisjoint(self.words))


def prepared(context: Sequence[str], lexicon: Lexicon) -> Passages:
    """Split passages into pieces and index them."""
    found: list[Piece] = []
    booleans: dict[int, BooleanField] = {}
    tables = section = 0
    for number, passage in enumerate(context, start=1):
        for first, part in enumerate(parts(passage)):
            structured = is_structured(part)
            tables += structured and not first
            for text in pieces(part, structured=structured):
                if field := boolean_field(text, structured=structured):
                    booleans[len(found)] = field
                found.append(_piece(number, section, text))
            section += 1
    # One text for all pieces: a claim hardly ever contains a sequence that spans two of them.
    plain = "\n".join([piece.plain for piece in found])
    postings: dict[str, list[int]] = {}
    for place, piece in enumerate(found):
        for item in piece.content:
            postings.setdefault(item, []).append(place)
    sequences = [piece.stems for piece in found]
    return Passages(
        lexicon,
        tuple(found),
        postings,
        frozenset(itertools.chain.from_iterable(zip(s, s[1:], s[2:], s[3:], strict=False) for s in sequences)),
        frozenset(item[:5] for item in postings),
        grams_of(plain),
        frozenset(plain.split()),
        frozenset(itertools.chain.from_iterable(piece.numbers for piece in found)),
        _fields(found, booleans),
        2 * tables > len(context),
    )


def _fields(found: Sequence[Piece], booleans: Mapping[int, BooleanField]) -> tuple[Field, ...]:
    """The fields among some pieces. Stems that occur in other pieces too are ignored: they are ambiguous."""
    stated = Counter[str]()
    every: dict[str, tuple[frozenset[str], bool]] = {}
    for place, piece in enumerate(found):
        field = booleans.get(place)
        if (field is None or field.value) and piece.text not in every:
            stated.update(piece.content)
        if field is not None and len(every) < MOST_FIELDS:
            every.setdefault(piece.text, (content(stems_of(comparable_low(field.key))), field.value))
    false = frozenset[str]().union(*(stems for stems, value in every.values() if not value))
    fields = [
        Field(line, frozenset(item for item in stems if stated[item] <= value and not (value and item in false)), value)
        for line, (stems, value) in every.items()
    ]
    return tuple(field for field in fields if field.stems)


def _piece(number: int, section: int, text: str) -> Piece:
    low = comparable_low(text)
    stems = stems_of(low)
    return Piece(
        number,
        section,
        text,
        " ".join(low),
        stems,
        content(stems),
        frozenset(figures(low)),
        is_negated(low),
        denied(low, stems),
        quantified(low),
    )


def grams_of(text: str) -> frozenset[int]:
    """All sequences of four bytes in the UTF-8 text, as integers. In English, they are four characters."""
    data = text.encode("utf-8", "surrogatepass")
    starts = range(GRAM)
    return frozenset(
        itertools.chain.from_iterable(
            memoryview(data[start : len(data) - (len(data) - start) % GRAM]).cast("I") for start in starts
        )
    )


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
        """The words of all sentences in one line."""
        return " ".join(piece.plain for piece in self.near)

    @property
    def numbers(self) -> frozenset[str]:
        """The figures of all sentences."""
        return frozenset[str]().union(*(piece.numbers for piece in self.near))

    @property
    def quantities(self) -> frozenset[str]:
        """The quantities of all sentences."""
        return frozenset[str]().union(*(piece.quantities for piece in self.near))


def windows(terms: frozenset[str], passages: Passages) -> list[Window]:
    """The sentences that share most terms, best first, each with its neighbors in the same section."""
    found: list[Window] = []
    every, weight = passages.pieces, passages.weight
    for place in _candidates(terms, passages):
        here = every[place]
        own = here.content & terms
        before = every[place - 1] if place and every[place - 1].section == here.section else None
        after = every[place + 1] if place + 1 < len(every) and every[place + 1].section == here.section else None
        left = own | (before.content & terms) if before else own
        right = own | (after.content & terms) if after else own
        near = tuple(piece for piece in (before, here, after) if piece is not None)
        found.append(Window(weight(own), max(weight(left), weight(right)), weight(left | right), here, near))
    found.sort(key=lambda window: (-window.one, -window.three))
    return found


def _candidates(terms: frozenset[str], passages: Passages) -> list[int]:
    """The pieces that share most terms. Rare terms are looked up first, and the number of lookups is limited."""
    shares: defaultdict[int, float] = defaultdict(float)
    get, unseen = passages.lexicon.weights.get, passages.lexicon.unseen
    left = MOST_LOOKUPS
    for weight, item in sorted((-get(item, unseen), item) for item in terms if item in passages.postings):
        places = passages.postings[item]
        for place in itertools.islice(places, left):
            shares[place] -= weight
        left -= len(places)
        if left <= 0:
            break
    return sorted(shares, key=lambda place: (-shares[place], place))[:CANDIDATES]


def meet(one: str, other: str, passages: Passages) -> bool:
    """Whether a sentence contains both stems."""
    first, second = passages.postings.get(one), passages.postings.get(other)
    if not first or not second:
        return False
    fewer, term = (first, other) if len(first) <= len(second) else (second, one)
    pieces = passages.pieces
    return any(term in pieces[place].content for place in fewer[:MOST_PLACES])


def met_pairs(terms: frozenset[str], passages: Passages) -> tuple[float, float]:
    """The share of pairs of stems that share a sentence, among the ten rarest stems and among the five rarest."""
    get, unseen = passages.lexicon.weights.get, passages.lexicon.unseen
    ranked = [item for _, item in sorted((-get(item, unseen), item) for item in terms)[:10]]
    if len(ranked) < 2:
        one = float(all(item in passages.postings for item in ranked))
        return one, one
    met = [(late < 5, meet(ranked[a], ranked[late], passages)) for a, late in _pairs(len(ranked))]
    rare = [is_met for is_rare, is_met in met if is_rare]
    return sum(is_met for _, is_met in met) / len(met), sum(rare) / len(rare)


def _pairs(count: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(count), 2))
