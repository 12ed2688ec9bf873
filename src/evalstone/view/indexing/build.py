# ruff: noqa: S608 - statements are put together from our own names
"""How an index is made from a run."""

from __future__ import annotations

import math
import sqlite3
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalstone._core.front_ends import COMMAND_LINE
from evalstone._core.json import storable, to_jsonable
from evalstone.datasets.stored import record_line, sample_line
from evalstone.results.losses import LossRule
from evalstone.results.record_blocks import RecordBlocks
from evalstone.results.run import Run
from evalstone.results.stored_records import StoredRecords
from evalstone.results.views.run import run_view
from evalstone.results.views.sample_rows import cases_of
from evalstone.types import Failed, Outcome, Record, Sample, Score, case_key
from evalstone.types.records import total_cost
from evalstone.view.indexing import column_build
from evalstone.view.indexing.files import written
from evalstone.view.indexing.spreads import SPREADS, latency_of, spread_of
from evalstone.view.indexing.tables import CASES, FAILED, SCORED, SKIPPED
from evalstone.view.indexing.text_writer import TextWriter, texts_of

COLUMNS = ("place", "key", "sample", "trial", "goodness", "cost", "tokens", "seconds", "latency")
"""The first columns of the table of cases."""
Progress = Callable[[int, int], None]


def build(run: Run, file: Path, stamp: str, head: Mapping[str, Any], progress: Progress) -> None:
    """Make the index of a run. It is written under another name first, so that it is there as a whole or not at all.

    Args:
        run: The run, with its samples if they are available.
        file: Where the index goes.
        stamp: What identifies the state of the run.
        head: What the page shows above the samples, as JSON data.
        progress: Called now and then with the number of cases so far, and of all.

    Raises:
        StorageError: The disk is full.
    """
    if isinstance(run.records, RecordBlocks) and column_build.build(run, run.records, file, stamp, head, progress):
        return
    with written(file, "the index") as connection:
        records = run.records
        writer, total = Writer(connection, run, run.columns.size), 0
        for total, (at, sample) in enumerate(cases_of(run), start=1):
            found = [records[each] for each in at]
            lines = [*map(records.text_at, at)] if isinstance(records, StoredRecords) else [*map(record_line, found)]
            writer.add(total, sample, found, lines)
            if total % 500 == 0:
                writer.flush()
                progress(total, run.columns.size)
        writer.flush()
        progress(total, run.columns.size)
        for statement in (*indexes_of(len(run.scorers)), "INSERT INTO texts (texts) VALUES ('optimize')"):
            connection.execute(statement)
        writer.describe(stamp, head)
        connection.execute("ANALYZE")


class Writer:
    """Writes the cases of a run into the tables of an index.

    Args:
        connection: A new file.
        run: The run, whose records aren't read.
        cases: The highest place of a case.
    """

    def __init__(self, connection: sqlite3.Connection, run: Run, cases: int) -> None:
        self.connection, self.scorers = connection, run.scorers
        connection.execute(CASES.format(columns="".join(f", v{n} REAL, o{n} INTEGER" for n in range(len(run.scorers)))))
        self.texts = TextWriter(connection, run)
        self.numbers = {info.signature: number for number, info in enumerate(run.scorers)}
        self.loss_rule = LossRule.of(run.scorers)
        self.totals = Counter[str](
            all=0, imperfect=0, score=0, skipped=0, failed=0, retrieval=0, generation=0, unknown=0
        )
        self.spreads = {name: array("d", [math.nan]) * cases for name in SPREADS}
        """The numbers of each case in the columns whose distribution is shown, NaN without one."""
        self.cases: list[tuple[Any, ...]] = []

    def add(self, place: int, sample: Sample | None, records: Sequence[Record], lines: Sequence[str]) -> None:
        """Add a case. lines: the `record_line` of each of its records."""
        self._add(place, sample, records, lines)
        for record in records:
            self._group(place, record)
        if sample is not None:
            self.texts.add_fields(place, sample)

    def extend(
        self,
        place: int,
        sample: Sample | None,
        before: Sequence[Record],
        records: Sequence[Record],
        lines: Sequence[str],
    ) -> None:
        """Add records to a case that was flushed. before: its records so far; records, lines: as for `add`, of all."""
        row, counts, texts = self._facts(place, sample, before)
        self.totals.subtract(counts)
        self.texts.forget(texts)
        self.connection.execute("DELETE FROM cases WHERE place = ?", row[:1])
        self._add(place, sample, records, lines)
        for record in records:
            if record not in before:
                self._group(place, record)

    def describe(self, stamp: str, head: Mapping[str, Any]) -> None:
        """Write what is said of all cases so far."""
        spreads = {name: spread for name, values in self.spreads.items() if (spread := spread_of(values))}
        self.texts.describe(stamp, head, totals=self.totals, spreads=spreads)

    def _add(self, place: int, sample: Sample | None, records: Sequence[Record], lines: Sequence[str]) -> None:
        row, counts, texts = self._facts(place, sample, records)
        self.cases.append(row)
        self.texts.search(texts)
        self.totals.update(counts)
        for name, values in self.spreads.items():
            value = row[COLUMNS.index(name)]
            values[place - 1] = math.nan if value is None else value
        line = "null" if sample is None else sample_line(sample)
        self.texts.keep(place, sample, f'{{"sample":{line},"records":[{",".join(lines)}]}}')

    def _facts(
        self, place: int, sample: Sample | None, records: Sequence[Record]
    ) -> tuple[tuple[Any, ...], dict[str, int], tuple[Any, ...]]:
        """The row of a case, what it counts as, and its texts."""
        first = records[0]
        cells: list[Any] = [None] * (2 * len(self.numbers))
        goodness: list[float] = []
        counts, seconds, tokens = [0, 0, 0], 0.0, 0
        for record in records:
            number, outcome = self.numbers[record.signature], record.outcome
            kind = _kind_of(outcome)
            counts[kind] += 1
            cells[2 * number : 2 * number + 2] = record.value, kind
            if isinstance(outcome, Score):
                goodness.append(self.scorers[number].goodness(outcome.value))
            seconds += record.seconds
            tokens += sum(call.usage.input + call.usage.output for call in record.calls)
        mean, cost = _mean(goodness), total_cost(record.cost for record in records)
        loss = self.loss_rule.loss_in(records) if self.loss_rule is not None else None
        of_all = {
            "all": 1,
            "imperfect": int(mean is None or mean < 1),
            "score": int(counts[SCORED] > 0),
            "skipped": int(counts[SKIPPED] > 0),
            "failed": int(counts[FAILED] > 0),
            **({} if loss is None else {loss: 1}),
        }
        key = storable(case_key(first.sample_id, first.trial))
        about = (mean, cost, tokens, seconds, latency_of(sample), loss)
        row = (place, key, storable(first.sample_id), first.trial, *about, *counts, *cells)
        return row, of_all, texts_of(place, key, sample, [record.outcome for record in records])

    def _group(self, place: int, record: Record) -> None:
        number = self.numbers[record.signature]
        self.texts.groups.add(place, number, self.scorers[number], record.outcome)

    def flush(self) -> None:
        """Write what was added since the last time."""
        self.texts.flush()
        if self.cases:
            marks = ", ".join("?" * len(self.cases[0]))
            self.connection.executemany(f"INSERT INTO cases VALUES ({marks})", self.cases)
        self.cases.clear()


def indexes_of(scorers: int) -> Iterator[str]:
    """The statements that make the indexes of the table of cases."""
    yield "CREATE UNIQUE INDEX cases_key ON cases (key)"
    yield "CREATE INDEX cases_sample ON cases (sample) WHERE trial IS NOT NULL"
    yield "CREATE INDEX cases_goodness ON cases (goodness, place)"
    yield from (f"CREATE INDEX cases_v{number} ON cases (v{number}, place)" for number in range(scorers))


def _kind_of(outcome: Outcome) -> int:
    return SCORED if isinstance(outcome, Score) else FAILED if isinstance(outcome, Failed) else SKIPPED


def _mean(values: Sequence[float]) -> float | None:
    """The mean, added up one by one as columns are: `sum` of newer versions of Python rounds less."""
    total = 0.0
    for value in values:
        total += value
    return total / len(values) if values else None


def head_of(run: Run) -> dict[str, Any]:
    """What the page of a run shows above its samples: the report without the samples, as JSON data."""
    return {"view": to_jsonable(run_view(run, COMMAND_LINE, brief=True, reasons=False)), "run": run.to_dict()}
