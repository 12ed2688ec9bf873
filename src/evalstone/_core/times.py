"""Times and ages as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from evalstone.errors import ConfigError

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_AGE = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def moment(text: str, option: str) -> datetime:
    """A time in ISO 8601, in UTC unless it has a time zone, or an age such as 90s, 15m, 24h, 7d or 2w.

    Raises ConfigError, with the option, for anything else.
    """
    try:
        if (age := duration(text.strip())) is not None:
            return datetime.now(UTC) - age
        return iso_time(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ConfigError(
        f"{option} takes a time such as 2026-01-31 or 2026-01-31T12:00, or an age such as 24h, not {text!r:.80}"
    )


def iso_time(text: str) -> datetime:
    """A time in ISO 8601, in UTC unless it has a time zone. Raises ValueError."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def utc_time(seconds: float) -> datetime:
    """The time that is so many seconds after 1970 began; `datetime.fromtimestamp` takes none before that on Windows.

    Raises OverflowError for one that no date has.
    """
    return _BEGINNING + timedelta(seconds=seconds)


def local_time(time: datetime) -> datetime:
    """A time where this runs; as it is if it is too far away for the system."""
    try:
        return time.astimezone()
    except (OSError, OverflowError, ValueError):
        return time


def duration(text: str) -> timedelta | None:
    """The length of an age such as 90s or 15m; None for anything else."""
    age = _AGE.fullmatch(text)
    return None if age is None else int(age[1]) * _UNITS[age[2]]
