"""Opening hours: fields that give times for days of the week, and the claims that give these days other times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from evalstone.judges.lexical.normalization import evened

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY = r"(mon|tue|wed|thu|fri|sat|sun)(?:day|sday|nesday|rsday|urday|s|r|rs)?s?"
_GROUP = re.compile(
    rf"\b(?:{_DAY}(?: ?(?:to|through|thru|until|till|-|–) ?{_DAY})?\b|(weekdays?)|(weekends?)"
    r"|(every ?day|daily|(?:seven|7) days a week|all week))",
    re.IGNORECASE,
)
_TIME = re.compile(r"\b(\d{1,2})h(\d{2})\b")
_FIELD = re.compile(rf"(?:.*\W)?{_DAY} ?[:=]", re.IGNORECASE)
_SHORT = tuple(day[:3] for day in DAYS)


@dataclass(frozen=True, slots=True)
class Day:
    """The times of one day, and the line that has them."""

    times: frozenset[int]
    line: str


Hours: TypeAlias = Mapping[int, Day]


def hours_of(lines: Iterable[str]) -> Hours:
    """The times of each day of the week (0 is Monday) in the fields that have any, in minutes of half a day."""
    found: dict[int, Day] = {}
    for line in lines:
        if len(line) < 80 and (field := _FIELD.match(line)):
            times = _times(evened(line))
            if times:
                found[_SHORT.index(field[1].lower())] = Day(frozenset(times), line)
    return found


def told_other_times(text: str, hours: Hours) -> tuple[str, ...]:
    """For each group of days that a claim gives two times for, the line of the first day that has other times.

    A claim in which days and times do not pair up in order is not read.
    """
    if not hours or len(text) > 600:
        return ()
    even = evened(text)
    times = _times(even)
    groups = [days for days in map(_days, _GROUP.finditer(even)) if days]
    if not times or len(times) != 2 * len(groups):
        return ()
    found: list[str] = []
    for place, days in enumerate(groups):
        pair = frozenset(times[2 * place : 2 * place + 2])
        found.extend([hours[day].line for day in sorted(days) if day in hours and not pair <= hours[day].times][:1])
    return tuple(found)


def _times(even: str) -> list[int]:
    return [int(hour) % 12 * 60 + int(minute) for hour, minute in _TIME.findall(even)]


def _days(found: re.Match[str]) -> frozenset[int]:
    first, last, week, end, every = found.groups()
    if first is None:
        return frozenset(range(5) if week else (5, 6) if end else range(7) if every else ())
    start = _SHORT.index(first.lower())
    stop = start if last is None else _SHORT.index(last.lower())
    return frozenset((start + step) % 7 for step in range((stop - start) % 7 + 1))
