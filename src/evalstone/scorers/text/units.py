"""Texts as JavaScript counts them, for scorers whose numbers must be those of packages written in it.

There a text is a row of UTF-16 code units, so that an emoji counts two, and white space is another set of characters
than Python's. rapidfuzz is reached from here alone, and not before it is needed: it takes a while to load.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Hashable, Sequence

WHITE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_SPACE = re.compile(f"[{WHITE}]+")
_OTHER_SPACE = re.compile(f"[{WHITE.replace(' ', '')}]+")
_PIECE = re.compile(f"[^{WHITE}]+")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


def units(text: str) -> str:
    """The text with every code unit as a character of its own: one beyond U+FFFF becomes its two surrogates."""
    return text if text.isascii() else _ASTRAL.sub(_surrogates, text)


def _surrogates(found: re.Match[str]) -> str:
    offset = ord(found.group()) - 0x10000
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))


def is_blank(text: str) -> bool:
    """Whether a text is empty or white space."""
    return not text.strip(WHITE)


def pieces(text: str) -> list[str]:
    """What stands between white space, in order."""
    return text.split() if _has_spaces_alone(text) else _PIECE.findall(text)


def spaced(text: str) -> str:
    """The text with all its white space as plain spaces, one or several in a row."""
    return text if _has_spaces_alone(text) else _OTHER_SPACE.sub(" ", text)


def unspaced(text: str) -> str:
    """The text without any white space."""
    return text.replace(" ", "") if _has_spaces_alone(text) else _SPACE.sub("", text)


def collapsed(text: str) -> str:
    """The text with one space for each run of white space, and none at its ends."""
    if _has_spaces_alone(text) and "  " not in text:
        return text.strip(" ")
    return " ".join(pieces(text))


def _has_spaces_alone(text: str) -> bool:
    # The usual text, for which the fast ways of Python hold: its own idea of white space differs beyond ASCII.
    return text.isascii() and text.isprintable()


@functools.cache
def common_length() -> Callable[[Sequence[Hashable], Sequence[Hashable]], int]:
    """The function that gives the length of the longest common subsequence of two sequences."""
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 - loaded when first needed

    return LCSseq.similarity


@functools.cache
def edit_distance() -> Callable[[Sequence[Hashable], Sequence[Hashable]], int]:
    """The function that gives the Levenshtein distance of two sequences."""
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - loaded when first needed

    return Levenshtein.distance
