"""Parts of error messages: excerpts that are safe to print, short lists, similar names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MAX_EXCERPT = 60


def excerpt(value: object) -> str:
    """A value that is safe to print: on one line, control characters escaped, cut to 60 characters."""
    text = repr(value[: _MAX_EXCERPT + 1] if isinstance(value, str) else value)
    return text if len(text) <= _MAX_EXCERPT else text[: _MAX_EXCERPT - 3] + "..."


def named(name: str) -> str:
    """A file or column name that is safe to print: as is if every character is printable, else quoted and escaped."""
    return name if name.isprintable() else repr(name)


def escaped(text: object) -> str:
    """The text of another library's error, on one line, control characters escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(text))


def listed(names: Iterable[str], *, most: int = 12) -> str:
    """The first twelve names, comma-separated: `a, b, c and 3 more`."""
    every = [named(name) for name in names]
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown} and {len(every) - most} more"


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """At most three of the known names that are similar to this one, the nearest first."""
    by_case = {other.lower(): other for other in known}
    return [by_case[found] for found in difflib.get_close_matches(name.lower(), by_case, n=3, cutoff=0.5)]
