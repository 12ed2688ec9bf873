"""Records as lines of `records.jsonl`, which are made of texts and only read when a record is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from evalstone._core.json import value_of
from evalstone._core.redaction import redacted
from evalstone._core.spilled_texts import SpilledTexts, SpillFile
from evalstone.datasets.writing import plain_line
from evalstone.results.columns import Columns
from evalstone.results.stored_records import StoredRecords
from evalstone.types import Record

_HOLE = "\0"
_IN_A_LINE = '"\\u0000"'
"""A hole as a line has it. No other text of a record is one NUL."""
_HOLES = ("sample_id", "value", "reason", "evidence", "seconds", "cost", "error")
_HOLES_OF_CALLS = ("fingerprint", "judge", "answer", "usage", "cost", "seconds")


def line_form(record: Record) -> str:
    """What lines of records have in common: scorer, kind of outcome, scale, and the question, if one was asked. Filling
    it, `form % texts`, takes a tenth of the time of `record_line`, and leaves secrets to `redacted_lines`.

    The texts are the values of a record as JSON, in the order of the line: sample, value, reason, evidence;
    fingerprint, judge, answer, usage, cost and seconds of the call, if there is one; seconds, cost and error; and
    `line_end`.

    record: Any such record, without group, trial and weight, and with one call at most.
    """
    data = record.to_dict()
    for name in _HOLES:
        data[name] = _HOLE
    for call in data["calls"]:
        for name in _HOLES_OF_CALLS:
            call[name] = _HOLE
    return plain_line(data).replace("%", "%%").replace(_IN_A_LINE, "%s").removesuffix("}") + "%s}"


def redacted_lines(lines: Sequence[str]) -> Sequence[str]:
    """Lines of records with secrets replaced by `***`. Nearly always, there are none, which one search shows."""
    together = "\n".join(lines)
    return lines if redacted(together) == together else [*map(redacted, lines)]


def line_end(trial: int | None, group: str | None, weight: float | None) -> str:
    """What the lines of a sample and trial end with."""
    values = {"group": group, "trial": trial, "weight": weight}
    present = {name: value for name, value in values.items() if value is not None}
    return f", {plain_line(present)[1:-1]}" if present else ""


class RecordLines(StoredRecords):
    """The records of a run as lines: those of the scorers for the first sample and trial, then for the second, and so
    on. Each is read when it is needed.

    columns: Their scores.
    """

    def __init__(self, columns: Columns, file: SpillFile | None = None) -> None:
        self._columns = columns
        self._lines = SpilledTexts("results", file)

    def extend(self, lines: Sequence[str]) -> None:
        """Add the lines of records (`record_line`). Raises WriteError if the disk is full."""
        self._lines.extend(lines)

    @property
    def columns(self) -> Columns:
        """The scores of the records."""
        return self._columns

    def texts(self) -> Iterator[str]:
        """The records as lines of `records.jsonl`, without line breaks."""
        return iter(self._lines)

    def text_at(self, cell: int, /) -> str:
        """The line of one record, by its place among them."""
        return self._lines.at(cell)

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Record, ...]: ...
    def __getitem__(self, index: int | slice) -> Record | tuple[Record, ...]:
        if isinstance(index, slice):
            return tuple(map(_record_of, self._lines[index]))
        return _record_of(self._lines[index])

    def __iter__(self) -> Iterator[Record]:
        return map(_record_of, self._lines)


def _record_of(line: str) -> Record:
    data = value_of(line)
    if data["evidence"] == []:
        data["evidence"] = ()  # as a score without evidence has it before it is written
    return Record.from_dict(data)
