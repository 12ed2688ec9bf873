"""Whether a text is in the language that the judge was trained on, told by its script and its commonest words."""

from __future__ import annotations

from collections.abc import Sequence

from evalstone._core.text import STOPWORDS, tokens

FEWEST_WORDS = 8
FEWEST_COMMON = 0.08
MOST_FOREIGN = 0.3
LONGEST_READ = 4000


def outside_training(text: str) -> str:
    """What sets a text apart from the English that the judge was trained on; empty when nothing does."""
    words = tokens(text[:LONGEST_READ])
    if not words:
        return ""
    if _foreign_script(words) > MOST_FOREIGN:
        return "it was trained on English, and this is in another script"
    common = sum(word.lower() in STOPWORDS for word in words)
    if len(words) >= FEWEST_WORDS and common < FEWEST_COMMON * len(words) and not _is_list(text):
        return "it was trained on English sentences, and this does not look like one"
    return ""


def _foreign_script(words: Sequence[str]) -> float:
    return sum(not word.isascii() and not _is_latin(word) for word in words) / len(words)


def _is_latin(word: str) -> bool:
    return all(char < "ɐ" or "Ḁ" <= char <= "ỿ" for char in word)


def _is_list(text: str) -> bool:
    return text.count(",") * 4 >= len(text.split())
