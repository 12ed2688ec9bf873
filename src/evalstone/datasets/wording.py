"""The words of error messages: excerpts that are safe to print, short lists, near names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 60


def excerpt(value: object) -> str:
    """A value as it may be printed: on one line, control characters escaped, cut to 60 characters."""
    text = repr(value[: _LONGEST + 1] if isinstance(value, str) else value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def named(name: str) -> str:
    """A file or column name as it may be printed: bare when every character is printable, else quoted and escaped."""
    return name if name.isprintable() else repr(name)


def escaped(text: object) -> str:
    """The text of another library's error, with what cannot be printed on one line escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(text))


def listed(names: Iterable[str], *, most: int = 12) -> str:
    """Names with commas between, the first twelve of them: `a, b, c and 3 more`."""
    every = [named(name) for name in names]
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown} and {len(every) - most} more"


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """At most three of the known names that look like this one, the nearest first."""
    by_case = {other.lower(): other for other in known}
    return [by_case[found] for found in difflib.get_close_matches(name.lower(), by_case, n=3, cutoff=0.5)]
