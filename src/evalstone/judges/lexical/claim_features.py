"""One claim, read: its words, their stems, its numbers and names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evalstone._core.text import STOPWORDS, tokens
from evalstone.judges.lexical.normalization import evened
from evalstone.judges.lexical.tokens import content, figures, stems_of

_REFERENCE = re.compile(
    r"\b(?:passage|document|source|step|figure|table)s? \d{1,3}(?:(?:,|,? and|,? or) \d{1,3}){0,20}(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """low: its words in lower case. content: the stems that carry content. figures: its numbers. names: the capitalised
    words after the first, each with its stem. plain: its words in one line."""

    low: tuple[str, ...]
    stems: tuple[str, ...]
    content: frozenset[str]
    figures: tuple[str, ...]
    names: tuple[tuple[str, str], ...]
    plain: str


def read(text: str) -> Claim:
    """Read a claim; the numbers of passages in it ("passage 2") are left out."""
    even = evened(_REFERENCE.sub(" ", text))
    written = tokens(even)
    low = tuple(token.lower() for token in written)
    stems = stems_of(low)
    carrying = content(stems)
    names = tuple(
        (token, item)
        for token, word, item in zip(written[1:], low[1:], stems[1:], strict=True)
        if token[0].isupper() and word not in STOPWORDS and item in carrying
    )
    return Claim(low, stems, carrying, figures(even, low), names, " ".join(low))
