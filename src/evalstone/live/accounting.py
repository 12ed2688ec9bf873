"""Coverage of live scoring: the number of submissions of a stream, by what happened to them. The sums are checked.

    seen = filtered + eligible
    eligible = declined + sampled
    sampled = dropped (queue) + accepted
    accepted = n_score + n_skipped + n_failed + dropped (budget) + pending
    coverage = n_score / eligible                           range [0, 1]; undefined if nothing was eligible

The sums hold for each scorer, process and hour at any time, because counts and pending rows are written in one
transaction before anything is scored. What was in the memory of a killed process is in no number.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalstone._core.display import shortlist
from evalstone._core.file_format import LIVE_COVERAGE_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.validation import check_time
from evalstone.errors import ConfigError
from evalstone.ledger.base import HOUR, existing, hour_start, shown
from evalstone.ledger.live import LiveCounts, Tally, counts, only_stream, streams
from evalstone.ledger.store import Ledger
from evalstone.report.shown import Shown
from evalstone.types import scorer_name
from evalstone.types.scorer_names import titles

if TYPE_CHECKING:
    from evalstone.report.view import View


@dataclass(frozen=True, kw_only=True)
class ScorerCoverage:
    """The coverage of one scorer. In a total over scorers, a submission counts once per scorer."""

    scorer: str
    """The scorer's title: its name, with parameters if other scorers of the stream have the same name; "" in a
    total."""
    signature: str
    """The scorer's signature; "" in a total."""
    seen: int = 0
    """Submissions."""
    filtered: int = 0
    """Not eligible: the filter returned false or raised."""
    eligible: int = 0
    declined: int = 0
    """Not sampled, by the sampling rate or by the tracer."""
    dropped_queue: int = 0
    """Sampled, but the queue was full."""
    dropped_budget: int = 0
    """Accepted, but the day's budget was spent."""
    n_score: int = 0
    n_skipped: int = 0
    n_failed: int = 0
    pending: int = 0
    """Accepted, but not scored yet."""
    unaccounted: int = 0
    """The difference between the sums, over all processes and hours: 0 unless rows were deleted or the ledger is
    damaged."""

    @property
    def sampled(self) -> int:
        """Selected for scoring: eligible - declined."""
        return self.eligible - self.declined

    @property
    def coverage(self) -> float | None:
        """n_score / eligible; None if nothing was eligible."""
        return self.n_score / self.eligible if self.eligible else None

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        data = dataclasses.asdict(self)
        dropped = {"queue": data.pop("dropped_queue"), "budget": data.pop("dropped_budget")}
        return {**data, "dropped": dropped, "sampled": self.sampled, "coverage": self.coverage}


@dataclass(frozen=True, kw_only=True)
class Coverage(Shown):
    """The coverage of a stream."""

    stream: str
    since: datetime | None
    """The start of the first hour that is included; None for all."""
    until: datetime | None
    """The end of the last hour that is included; None for all."""
    scorers: tuple[ScorerCoverage, ...]
    """In the order of their signatures."""

    @property
    def total(self) -> ScorerCoverage:
        """The sum over the scorers."""
        return _sum("", "", self.scorers)

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The table that `evalstone live coverage` shows."""
        from evalstone.live.views import coverage_view  # noqa: PLC0415 - only showing it needs it

        return coverage_view(self, front_end)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        scorers = [each.to_dict() for each in self.scorers]
        total = {name: value for name, value in self.total.to_dict().items() if name not in _NAMES}
        return {
            "format": LIVE_COVERAGE_FORMAT,
            "stream": self.stream,
            "since": self.since and self.since.isoformat(),
            "until": self.until and self.until.isoformat(),
            "scorers": scorers,
            "total": total,
        }


def coverage(
    stream: str | None = None,
    *,
    ledger: str | Path | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Coverage:
    """The coverage of a stream in a ledger.

    Args:
        stream: The name of the `Live`; optional if the ledger has only one stream.
        ledger: Where its scores are stored; by default the ledger in the current folder.
        since: Include the whole hour of this time, and all later ones.
        until: Include only hours that begin before this time.

    Raises:
        ConfigError: If there is no such stream or ledger, or a time has no time zone.
        LedgerError: If the ledger can't be read.
    """
    check_time("since", since)
    check_time("until", until)
    ledger = existing(ledger)
    with Ledger(ledger, read_only=True) as opened:
        stream = only_stream(opened) if stream is None else stream
        times = (None if time is None else time.timestamp() for time in (since, until))
        counted, tallies = counts(opened, stream, *times)
        if not counted and not tallies and stream not in (known := streams(opened)):
            there = f"it has {shortlist(known)}" if known else "nothing was scored live yet"
            raise ConfigError(f"there is no stream {stream!r} in the ledger {shown(ledger)}: {there}")
    return covered(stream, counted, Rows().with_more(tallies), since=since, until=until)


class Rows:
    """The rows of a stream, counted: of each scorer by state, and by scorer, process and hour."""

    def __init__(self) -> None:
        self.states: dict[str, Counter[str]] = {}
        self.parts = Counter[tuple[str, str, int]]()

    def with_more(self, tallies: Iterable[Tally]) -> Rows:
        """These, and the rows of tallies."""
        rows = Rows()
        rows.states = {signature: Counter(states) for signature, states in self.states.items()}
        rows.parts = self.parts.copy()
        states, parts = rows.states, rows.parts
        for signature, hour, state, _, _, owner, _, number, _ in tallies:
            if signature not in states:
                states[signature] = Counter()
            states[signature][state] += number
            parts[signature, owner, hour] += number
        return rows


def covered(
    stream: str,
    counted: Iterable[LiveCounts],
    rows: Rows,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Coverage:
    """The coverage of a stream from its counts and its rows of a period."""
    sums = {signature: Counter[str]() for signature in rows.states}
    left = rows.parts.copy()
    """The rows of processes and hours that have no counts."""
    for each in counted:
        sum_of = sums.get(each.signature)
        if sum_of is None:
            sum_of = sums[each.signature] = Counter()
        sum_of["seen"] += each.seen
        sum_of["filtered"] += each.filtered
        sum_of["eligible"] += each.eligible
        sum_of["declined"] += each.declined
        sum_of["dropped_queue"] += each.dropped
        sum_of["unaccounted"] += (
            abs(each.seen - each.filtered - each.eligible)
            + abs(each.eligible - each.declined - each.dropped - each.accepted)
            + abs(each.accepted - left.pop((each.signature, each.owner, each.hour), 0))
        )
    for (signature, _, _), number in left.items():
        sums[signature]["unaccounted"] += number
    for signature, states in rows.states.items():
        sums[signature].update({name: states[state] for name, state in _OF_STATES.items()})
    titled = titles({signature: scorer_name(signature) for signature in sorted(sums)})
    scorers = tuple(
        ScorerCoverage(scorer=title, signature=signature, **sums[signature]) for signature, title in titled.items()
    )
    return Coverage(stream=stream, since=_hour(since, math.floor), until=_hour(until, math.ceil), scorers=scorers)


def _hour(time: datetime | None, rounded: Callable[[float], int]) -> datetime | None:
    """The beginning of an hour near a time."""
    return None if time is None else hour_start(rounded(time.timestamp() / HOUR))


_OF_STATES = {
    "dropped_budget": "dropped",
    "n_score": "score",
    "n_skipped": "skipped",
    "n_failed": "failed",
    "pending": "pending",
}
"""The states of rows by the fields that count them."""
_NAMES = ("scorer", "signature")
_NUMBERS = [field.name for field in dataclasses.fields(ScorerCoverage) if field.name not in _NAMES]


def _sum(scorer: str, signature: str, parts: Iterable[ScorerCoverage]) -> ScorerCoverage:
    parts = list(parts)
    numbers = {name: sum(getattr(part, name) for part in parts) for name in _NUMBERS}
    return ScorerCoverage(scorer=scorer, signature=signature, **numbers)
