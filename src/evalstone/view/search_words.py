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


def terms_of(text: str) -> list[tuple[str, bool]]:
    """What a person types as terms of a search, each with whether it is a text in double quotes, which is meant as it
    is; any other is the beginning of a word. None without a word in it."""
    terms: list[tuple[str, bool]] = []
    for quoted, word in _TERM.findall(text.replace("\x00", " ")):
        term = spaced(quoted or word).replace('"', " ")
        if any(character.isalnum() for character in term):
            terms.append((term, bool(quoted)))
    return terms


def search_of(text: str) -> str:
    """The query of SQLite's FTS5 for what a person types: all of its terms. "" if there is no word in it."""
    return " AND ".join(f'"{term}"' if is_whole else f'"{term}" *' for term, is_whole in terms_of(text))
