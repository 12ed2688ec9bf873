"""Trace files as samples: OTLP export requests, or spans and log records, one per line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from evalstone._core.display import shortlist
from evalstone._core.guards import is_object
from evalstone.agents.formats.records import TelemetryRecord, is_telemetry, records_in
from evalstone.agents.formats.values import PlacedError
from evalstone.agents.notes import Notes
from evalstone.datasets.tables import Rows
from evalstone.errors import DataError
from evalstone.types import Sample


@dataclass
class TraceReader:
    """The samples of traces whose records are in any order, trace by trace.

    rows: Returns the rows, anew on each call. They are read twice: the first pass counts the records of each trace, so
    that the second pass can release a trace from memory as soon as it is complete.
    """

    rows: Callable[[], Rows]
    notes: Notes = field(default_factory=Notes)
    """The records that didn't become samples, available after all rows were read."""

    def __iter__(self) -> Iterator[Sample]:
        from evalstone.agents.traces import samples_of  # noqa: PLC0415 - most commands read no trace

        left = Counter(record.trace for record in self._records())
        waiting: dict[str, list[TelemetryRecord]] = {}
        for record in self._records():
            waiting.setdefault(record.trace, []).append(record)
            left[record.trace] -= 1
            if not left[record.trace]:
                yield from samples_of(waiting.pop(record.trace), self.notes)

    def _records(self) -> Iterator[TelemetryRecord]:
        for place, row in self.rows():
            yield from records_of(row, place)


def records_of(row: object, place: str) -> list[TelemetryRecord]:
    """The records in a row. Raises DataError, with the position, for an invalid row."""
    if not is_telemetry(row):
        has = shortlist(row) if is_object(row) else type(row).__name__
        raise DataError(
            f"{place}: neither an export request of OTLP (resourceSpans, resourceLogs) nor a span with its ids; "
            f"it has {has or 'nothing'}"
        )
    try:
        return list(records_in(row))
    except PlacedError as error:
        raise DataError(f"{place}: {error.place.removeprefix('.')}: ", error) from None
    except RecursionError:
        raise DataError(f"{place}: nested too deeply") from None
