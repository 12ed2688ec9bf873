"""Passages made ready for looking claims up in them: their sentences or fields, and what stands where."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalstone._core.text import tokens
from evalstone.judges.lexical.boolean_fields import Flag, flags_of
from evalstone.judges.lexical.normalization import evened, is_structured, parts, pieces
from evalstone.judges.lexical.opening_hours import Hours, hours_of
from evalstone.judges.lexical.tokens import Lexicon, content, denied, figures, is_negated, quantified, stems_of

GRAM = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """One sentence of a passage, one field of a structured one, or a stretch of what never ends.

    passage: its number from 1. stems: all of them in order. content: those that carry content. numbers: its figures.
    negated: whether it says not in any way. denied: the stems that it says are not. quantities: "all", "some", "none"
    and the like.
    """

    passage: int
    section: int
    text: str
    plain: str
    stems: tuple[str, ...]
    content: frozenset[str]
    numbers: frozenset[str]
    negated: bool
    denied: frozenset[str]
    quantities: frozenset[str]


@dataclass(frozen=True)
class Passages:
    """Passages, prepared. Everything that is known of them and asked of a claim is a look-up here.

    postings: the pieces that have a content stem, in order. quads: the stems that stand side by side in a piece, four
    at a time. prefixes: the first five letters of the content stems. grams: the sequences of four characters. flags,
    hours: the fields of structured sources that are true or false, and those that give times for days. structured:
    whether most passages begin with fields and values.
    """

    lexicon: Lexicon
    pieces: tuple[Piece, ...]
    postings: Mapping[str, Sequence[int]]
    quads: frozenset[tuple[str, str, str, str]]
    prefixes: frozenset[str]
    grams: frozenset[str]
    numbers: frozenset[str]
    flags: tuple[Flag, ...]
    hours: Hours
    structured: bool

    def weight(self, found: Iterable[str]) -> float:
        """What some stems count together."""
        return self.lexicon.weight(found)


@functools.lru_cache(maxsize=16)
def kept(context: tuple[str, ...], lexicon: Lexicon) -> Passages:
    """The passages read; the last few contexts are kept, since every question on a sample meets the same one."""
    return prepared(context, lexicon)


def prepared(context: Sequence[str], lexicon: Lexicon) -> Passages:
    """Read passages."""
    found: list[Piece] = []
    lines: list[str] = []
    tables = section = 0
    for number, passage in enumerate(context, start=1):
        for first, part in enumerate(parts(passage)):
            structured = is_structured(part)
            tables += structured and not first
            for text in pieces(part, structured=structured):
                found.append(_piece(number, section, text))
                if structured:
                    lines.append(text)
            section += 1
    # One text for all: a sequence across two pieces is one that a claim can hardly have.
    grams = frozenset(grams_of("\n".join([piece.plain for piece in found])))
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
        grams,
        frozenset(itertools.chain.from_iterable(piece.numbers for piece in found)),
        flags_of(lines),
        hours_of(lines),
        2 * tables > len(context),
    )


def _piece(number: int, section: int, text: str) -> Piece:
    even = evened(text)
    low = [token.lower() for token in tokens(even)]
    stems = stems_of(low)
    return Piece(
        number,
        section,
        text,
        " ".join(low),
        stems,
        content(stems),
        frozenset(figures(even, low)),
        is_negated(low),
        denied(low, stems),
        quantified(low),
    )


def grams_of(text: str) -> list[str]:
    """The sequences of four characters of a text."""
    return [text[at : at + GRAM] for at in range(len(text) - GRAM + 1)]
