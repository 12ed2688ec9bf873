"""Words of a text for full-text search, and the query for what a person types."""

from __future__ import annotations

import re

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Characters of languages that are written without spaces: Chinese, Japanese, Thai, Lao, Burmese, Khmer."""
_TERM = re.compile(r'"([^"]*)"?|(\S+)')
_SURROGATE = re.compile("[\ud800-\udfff]")


def spaced(text: str) -> str:
    """A text in which each character of such a language is a word."""
    if text.isascii():
        return text
    return _SURROGATE.sub("\ufffd", _UNSPACED.sub(r" \g<0> ", text))


def search_of(text: str) -> str:
    """The query of SQLite's FTS5 for what a person types: all words, each as the beginning of one, and texts in double
    quotes as they are. "" if there is no word in it."""
    terms: list[str] = []
    for quoted, word in _TERM.findall(text.replace("\x00", " ")):
        term = spaced(quoted or word).replace('"', " ")
        if any(character.isalnum() for character in term):
            terms.append(f'"{term}"' if quoted else f'"{term}" *')
    return " AND ".join(terms)
