"""What several pages show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evalstone.report.view import Tone

STATES: Mapping[str, tuple[str, Tone]] = {
    "complete": ("", ""),
    "running": ("running", "unsure"),
    "ended": ("ended early", "bad"),
    "unfinished": ("interrupted", "bad"),
    "unreadable": ("can't be read", "bad"),
}


@dataclass(frozen=True)
class Link:
    """A word that leads somewhere. href: "" if it leads nowhere now."""

    text: str
    href: str
    current: bool = False
    number: str = ""


def directed(title: str, *, lower_is_better: bool) -> str:
    """A scorer's title with the better direction, on one line."""
    return f"{title}\u00a0{'↓' if lower_is_better else '↑'}"


def duration(seconds: float) -> str:
    """A duration in its two largest units."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 1 else "< 1 s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
