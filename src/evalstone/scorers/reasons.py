"""The text of a reason: a summary, and the first few of the texts behind it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def listed(texts: Sequence[str], limit: int = 3, *, notes: Sequence[str] = ()) -> str:
    """Texts for a reason: the first few in quotes, each with its note, and the number of others."""
    first = itertools.zip_longest(texts[:limit], notes[:limit], fillvalue="")
    shown = "; ".join(f"“{shortened(text)}”{note}" for text, note in first)
    return f"{shown}; and {len(texts) - limit} more" if len(texts) > limit else shown


def reason_with(summary: str, *lists: tuple[str, Sequence[str]]) -> str:
    """A reason: a summary, then each list that is not empty under its label."""
    return "; ".join([summary, *(f"{label}: {listed(texts)}" for label, texts in lists if texts)]) + "."


def shortened(text: str, width: int = 120) -> str:
    """Text on one line, at most `width` characters."""
    line = " ".join(text[: width * 4].split())
    return line if len(line) <= width else line[: width - 1] + "…"
