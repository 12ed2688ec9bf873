"""What runs and datasets are called on pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from evalstone._core.display import count
from evalstone._core.times import iso_time, local_time, utc_time
from evalstone.view.shelf import Card, dataset_of


def when(started: str) -> str:
    """A time as people read it, where this runs."""
    if not started:
        return ""
    return f"{local_time(iso_time(started)):%Y-%m-%d %H:%M}"


def age(created: str) -> str:
    """How long ago a time is, in its largest unit; "" for one that can't be read."""
    try:
        then = iso_time(created)
    except ValueError:
        return ""
    seconds = (datetime.now(UTC) - then).total_seconds()
    for unit, size in (("year", 31_557_600), ("month", 2_629_800), ("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            return f"{count(int(seconds // size), unit)} ago"
    return "just now"


def utc(seconds: float, *, exact: bool = True) -> str:
    """A time in seconds since 1970, in UTC, as commands for live scores show it. exact: with the seconds."""
    return f"{utc_time(seconds):{'%Y-%m-%d %H:%M:%S' if exact else '%Y-%m-%d %H:%M'}}"


def name_of(card: Card) -> str:
    """The name of a run: its own, or else when it was started."""
    return (card.metadata.name.strip() if card.metadata else "") or when(card.started) or card.id


def target_of(card: Card) -> str:
    """What answered; "" if the answers are the dataset's."""
    return card.metadata.target.identity if card.metadata is not None and card.metadata.target is not None else ""


_TELLS_APART: Sequence[Callable[[Card], str]] = (
    dataset_of,
    target_of,
    lambda card: card.metadata.judge.identity if card.metadata else "",
    lambda card: Path(card.folder).name,
    lambda card: card.id,
)


def names_of(cards: Sequence[Card]) -> list[str]:
    """The names of runs that are shown together: those that are the same are followed by what tells the runs apart."""
    names = [*map(name_of, cards)]
    for tell in _TELLS_APART:
        told = [*zip(names, map(tell, cards), strict=True)]
        kinds = Counter(name for name, _ in dict.fromkeys(told))
        names = [f"{name} · {each}" if kinds[name] > 1 and each else name for name, each in told]
    return names
