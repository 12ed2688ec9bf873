"""Which live scores of a stream a page shows: filters, order and place, as they are in its address."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from evalstone._core.times import duration, moment
from evalstone.errors import ConfigError, invalid, unknown
from evalstone.view.query import Query

Show: TypeAlias = Literal["worst", "latest", "failed", "skipped", "dropped", "pending"]
SOURCES = ("live", "trace")


@dataclass(frozen=True, kw_only=True)
class LiveQuery(Query):
    """Filters, order and place of live scores, and what they are compared with.

    Raises:
        ConfigError: A value makes no sense.
    """

    scorer: str = ""
    """The title of a scorer."""
    source: str = ""
    entity: str = ""
    since: str = ""
    """A time or an age, as commands take it."""
    until: str = ""
    show: Show = "worst"
    """Which scores are listed: those of a state, or all; the worst are scores, lowest first."""
    after: str = ""
    """The place of the score before the first one that is listed."""
    baseline: str = ""
    """The run that the scores are watched against."""
    watch: str = ""
    """The start of the watch, a time or an age."""

    def __post_init__(self) -> None:
        if self.show not in get_args(Show):
            raise ConfigError(unknown("value of show", self.show, get_args(Show)))
        if self.source and self.source not in SOURCES:
            raise ConfigError(unknown("source", self.source, SOURCES))
        first, end = self.start, self.end
        if first is not None and end is not None and first >= end:
            raise ConfigError(invalid("until", f"after since ({first:%Y-%m-%d %H:%M} UTC)", self.until))
        self.watched_since  # noqa: B018 - it is checked

    @cached_property
    def start(self) -> datetime | None:
        """The start of the period; None for all."""
        return _time(self.since, "since")

    @cached_property
    def end(self) -> datetime | None:
        """The end of the period; None for all."""
        return _time(self.until, "until")

    @cached_property
    def watched_since(self) -> datetime | None:
        """The start of the watch; None for the first score."""
        return _time(self.watch, "watch")

    @property
    def is_moving(self) -> bool:
        """Whether the watch starts at an age, which is another time whenever the page is loaded."""
        return duration(self.watch.strip()) is not None

    @property
    def is_filtered(self) -> bool:
        """Whether any score may be left out."""
        return any((self.scorer, self.source, self.entity, self.since, self.until))


def _time(text: str, name: str) -> datetime | None:
    return moment(text, name) if text else None
