"""Files of traces as samples: OTLP's export requests, or spans and log records, one per line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from evalstone._core.display import shortlist
from evalstone.agents.formats.records import Record, is_telemetry, records_in
from evalstone.agents.formats.values import PlacedError
from evalstone.agents.traces import Notes, samples_of
from evalstone.errors import DataError
from evalstone.types import Sample

Rows = Iterable[tuple[str, Any]]


@dataclass
class TraceReader:
    """The samples of traces whose records come in any order, trace after trace.

    rows: gives the rows anew for each call. They are read twice: first to count the records of each trace, so that then
    no more of them are in memory than are needed until a trace is whole.
    """

    rows: Callable[[], Rows]
    notes: Notes = field(default_factory=Notes)
    """What became no sample, once all have been read."""

    def __iter__(self) -> Iterator[Sample]:
        left = Counter(record.trace for record in self._records())
        waiting: dict[str, list[Record]] = {}
        for record in self._records():
            waiting.setdefault(record.trace, []).append(record)
            left[record.trace] -= 1
            if not left[record.trace]:
                yield from samples_of(waiting.pop(record.trace), self.notes)

    def _records(self) -> Iterator[Record]:
        for place, row in self.rows():
            yield from records_of(row, place)


def records_of(row: object, place: str) -> list[Record]:
    """The records in one row. Raises DataError with its place for a row that is none, or is broken."""
    if not is_telemetry(row):
        has = shortlist(cast("dict[str, Any]", row)) if isinstance(row, dict) else type(row).__name__
        raise DataError(
            f"{place}: neither an export request of OTLP (resourceSpans, resourceLogs) nor a span with its ids; "
            f"it has {has or 'nothing'}"
        )
    try:
        return list(records_in(row))
    except PlacedError as error:
        raise DataError(f"{place}: {error.place.removeprefix('.')}: {error}") from None
    except RecursionError:
        raise DataError(f"{place}: nested too deeply") from None
