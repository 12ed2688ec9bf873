# ruff: noqa: S608 - statements are put together from our own names
"""How an index is made from a run."""

from __future__ import annotations

import json
import math
import sqlite3
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from evalstone._core.front_ends import COMMAND_LINE
from evalstone._core.json import storable, to_jsonable
from evalstone.datasets.stored import record_line, sample_line
from evalstone.results.losses import LossRule
from evalstone.results.run import Run
from evalstone.results.stored_records import StoredRecords
from evalstone.results.views.run import run_view
from evalstone.results.views.sample_rows import cases_of
from evalstone.results.views.samples import scored_answer
from evalstone.types import Failed, Outcome, Record, Sample, Score, case_key, metadata_at
from evalstone.view.indexing.files import written
from evalstone.view.indexing.groups import Groups
from evalstone.view.indexing.index import question_of
from evalstone.view.indexing.tables import FAILED, FORMAT, SCORED, SKIPPED, TABLES, choice
from evalstone.view.search_words import spaced

EXCERPT = 600
"""The most characters of a text in a list."""
PACK_BYTES = 1 << 16
"""The bytes of samples and records that are compressed together. A larger case is alone."""
MOST_VALUES = 200
"""The most values of an entry of the metadata by which samples can be filtered."""
LONGEST_VALUE = 100
DEEPEST = 3
"""How many objects an entry of the metadata may be in to filter by it."""
COLUMNS = ("place", "key", "sample", "trial", "goodness", "cost", "tokens", "seconds", "latency")
"""The first columns of the table of cases."""
SPREADS = ("cost", "tokens", "seconds", "latency")
"""The columns whose distribution is shown."""
SPREAD_BINS = 24
"""The number of bars that show how the numbers of a column are distributed."""
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
    with written(file, "the index") as connection:
        keeps, records = bool(run.keeps_reasoning), run.records
        writer, total = Writer(connection, run, run.columns.size, keeps_reasoning=keeps), 0
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
        keeps_reasoning: Whether the reasoning in front of outputs was scored.
    """

    def __init__(self, connection: sqlite3.Connection, run: Run, cases: int, *, keeps_reasoning: bool) -> None:
        self.connection, self.keeps_reasoning = connection, keeps_reasoning
        self.scorers, self.titles, self.asking = run.scorers, run.titles, run.asking
        for statement in TABLES.format(
            columns="".join(f", v{n} REAL, o{n} INTEGER" for n in range(len(run.scorers)))
        ).split(";"):
            connection.execute(statement)
        self.numbers = {info.signature: number for number, info in enumerate(run.scorers)}
        self.groups = Groups(connection)
        self.loss_rule = LossRule.of(run.scorers)
        self.field_numbers: dict[str, int] = {}
        self.field_values: dict[str, Counter[str]] = {}
        self.totals = Counter[str](
            all=0, imperfect=0, score=0, skipped=0, failed=0, retrieval=0, generation=0, unknown=0
        )
        self.spreads = {name: array("d", [math.nan]) * cases for name in SPREADS}
        """The numbers of each case in the columns whose distribution is shown, NaN without one."""
        self.cases: list[tuple[Any, ...]] = []
        self.excerpts: list[tuple[Any, ...]] = []
        self.texts: list[tuple[Any, ...]] = []
        self.fields: list[tuple[int, str, int]] = []
        self.pack: list[str] = []
        self.pack_bytes, self.pack_number = 0, 1

    def add(self, place: int, sample: Sample | None, records: Sequence[Record], lines: Sequence[str]) -> None:
        """Add a case. lines: the `record_line` of each of its records."""
        self._add(place, sample, records, lines)
        for record in records:
            self._group(place, record)
        for name, value in () if sample is None else _fields(sample):
            self._add_field(place, name, value)

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
        marks = ", ".join("?" * len(texts))
        # Without its texts, the index of words takes a row out only if it is told what is in it.
        self.connection.execute(
            f"INSERT INTO texts (texts, rowid, id, input, answer, other, reason) VALUES ('delete', {marks})", texts
        )
        self.connection.execute("DELETE FROM cases WHERE place = ?", row[:1])
        self.connection.execute("DELETE FROM excerpts WHERE place = ?", row[:1])
        self._add(place, sample, records, lines)
        for record in records:
            if record not in before:
                self._group(place, record)

    def describe(self, stamp: str, head: Mapping[str, Any]) -> None:
        """Write what is said of all cases so far."""
        self.groups.write()
        facets = {
            name: values.most_common() for name, values in self.field_values.items() if len(values) <= MOST_VALUES
        }
        for name, number in self.field_numbers.items():
            if name not in facets:
                self.connection.execute("DELETE FROM fields WHERE name = ?", (number,))
        about = {
            "totals": self.totals,
            "facets": [[self.field_numbers[name], name, values] for name, values in facets.items()],
            "scorers": [info.to_stored() for info in self.scorers],
            "titles": dict(self.titles),
            "keeps_reasoning": self.keeps_reasoning,
            "asking": to_jsonable(self.asking),
            "spreads": {name: spread for name, values in self.spreads.items() if (spread := _spread(values))},
            "head": head,
        }
        rows = {"format": FORMAT, "stamp": stamp, **{name: json.dumps(value) for name, value in about.items()}}
        self.connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows.items())

    def _add(self, place: int, sample: Sample | None, records: Sequence[Record], lines: Sequence[str]) -> None:
        row, counts, texts = self._facts(place, sample, records)
        self.cases.append(row)
        self.texts.append(texts)
        self.totals.update(counts)
        for name, values in self.spreads.items():
            value = row[COLUMNS.index(name)]
            values[place - 1] = math.nan if value is None else value
        shown: Sequence[str | None] = (None, None, None)
        if sample is not None:
            answer = scored_answer(sample, keeps_reasoning=self.keeps_reasoning).answer
            shown = [*map(_excerpt, (question_of(sample), answer, sample.reference or ""))]
        self.excerpts.append((place, self.pack_number, len(self.pack), *shown))
        line = "null" if sample is None else sample_line(sample)
        self.pack.append(f'{{"sample":{line},"records":[{",".join(lines)}]}}')
        self.pack_bytes += len(self.pack[-1])
        if self.pack_bytes >= PACK_BYTES:
            self._flush_pack()

    def _facts(
        self, place: int, sample: Sample | None, records: Sequence[Record]
    ) -> tuple[tuple[Any, ...], dict[str, int], tuple[Any, ...]]:
        """The row of a case, what it counts as, and its texts."""
        first = records[0]
        cells: list[Any] = [None] * (2 * len(self.numbers))
        goodness: list[float] = []
        counts, cost, seconds, tokens = [0, 0, 0], 0.0, 0.0, 0
        for record in records:
            number, outcome = self.numbers[record.signature], record.outcome
            kind = _kind_of(outcome)
            counts[kind] += 1
            cells[2 * number : 2 * number + 2] = record.value, kind
            if isinstance(outcome, Score):
                goodness.append(self.scorers[number].goodness(outcome.value))
            seconds += record.seconds
            if record.calls:
                paid = record.cost
                cost = None if paid is None or cost is None else cost + paid
                tokens += sum(call.usage.input + call.usage.output for call in record.calls)
        mean = sum(goodness) / len(goodness) if goodness else None
        loss = self.loss_rule.loss_in(records) if self.loss_rule is not None else None
        of_all = {
            "all": 1,
            "imperfect": int(mean is None or mean < 1),
            "score": int(counts[SCORED] > 0),
            "skipped": int(counts[SKIPPED] > 0),
            "failed": int(counts[FAILED] > 0),
            **({} if loss is None else {loss: 1}),
        }
        key = case_key(first.sample_id, first.trial)
        about = (mean, cost, tokens, seconds, _latency(sample), loss)
        row = (place, storable(key), storable(first.sample_id), first.trial, *about, *counts, *cells)
        other: list[str] = []
        for record in records:
            other += [
                record.outcome.reason,
                *_strings(record.outcome.evidence if isinstance(record.outcome, Score) else ()),
            ]
        texts = (key, "", "", "", "\n".join(other))
        if sample is not None:
            rest = [sample.reference or "", sample.instructions or "", *(sample.context or ())]
            rest += [*_strings(dict(sample.metadata)), *_strings(to_jsonable(sample.messages))]
            texts = (key, question_of(sample), sample.output or "", "\n".join(rest), "\n".join(other))
        return row, of_all, (place, *map(spaced, texts))

    def _group(self, place: int, record: Record) -> None:
        number = self.numbers[record.signature]
        self.groups.add(place, number, self.scorers[number], record.outcome)

    def _add_field(self, place: int, name: str, value: Any) -> None:
        if not isinstance(value, bool | int | float | str):
            return
        name, text = choice(name), choice(value if isinstance(value, str) else json.dumps(value))
        if text and len(name) <= LONGEST_VALUE and len(text) <= LONGEST_VALUE:
            values = self.field_values.setdefault(name, Counter())
            if len(values) <= MOST_VALUES:
                values[text] += 1
                self.fields.append((self.field_numbers.setdefault(name, len(self.field_numbers)), text, place))

    def flush(self) -> None:
        """Write what was added since the last time."""
        self._flush_pack()
        self.groups.flush()
        many = self.connection.executemany
        if self.cases:
            many(f"INSERT INTO cases VALUES ({', '.join('?' * len(self.cases[0]))})", self.cases)
        many("INSERT INTO excerpts VALUES (?, ?, ?, ?, ?, ?)", self.excerpts)
        many("INSERT INTO texts (rowid, id, input, answer, other, reason) VALUES (?, ?, ?, ?, ?, ?)", self.texts)
        many("INSERT OR IGNORE INTO fields VALUES (?, ?, ?)", self.fields)
        for rows in (self.cases, self.excerpts, self.texts, self.fields):
            rows.clear()

    def _flush_pack(self) -> None:
        if self.pack:
            body = zlib.compress("\n".join(self.pack).encode("utf-8", "surrogatepass"), 1)
            self.connection.execute("INSERT INTO packs VALUES (?, ?)", (self.pack_number, body))
            self.pack, self.pack_bytes, self.pack_number = [], 0, self.pack_number + 1


def indexes_of(scorers: int) -> Iterator[str]:
    """The statements that make the indexes of the table of cases."""
    yield "CREATE UNIQUE INDEX cases_key ON cases (key)"
    yield "CREATE INDEX cases_sample ON cases (sample) WHERE trial IS NOT NULL"
    yield "CREATE INDEX cases_goodness ON cases (goodness, place)"
    yield from (f"CREATE INDEX cases_v{number} ON cases (v{number}, place)" for number in range(scorers))


def _kind_of(outcome: Outcome) -> int:
    return SCORED if isinstance(outcome, Score) else FAILED if isinstance(outcome, Failed) else SKIPPED


def _spread(column: Sequence[float]) -> dict[str, Any] | None:
    """How numbers are distributed; None if there are fewer than two different ones. The bins are equal parts from 0 to
    the 99th percentile, and the last one has what is beyond."""
    import numpy as np  # noqa: PLC0415 - only an index needs it

    numbers = np.asarray(column, dtype=np.float64)
    numbers = numbers[~np.isnan(numbers)]
    if not numbers.size or numbers.min() == numbers.max():
        return None
    at = [min(numbers.size - 1, int(share * numbers.size)) for share in (0.5, 0.95, 0.99)]
    median, p95, p99 = np.partition(numbers, at)[at].tolist()
    highest = float(numbers.max())
    width = (p99 or highest) / SPREAD_BINS
    bins = np.bincount(np.minimum(numbers / width, SPREAD_BINS - 1).astype(np.intp), minlength=SPREAD_BINS)
    return {
        "n": numbers.size, "median": median, "p95": p95, "highest": highest, "bins": bins.tolist(), "width": width,
    }  # fmt: skip


def _latency(sample: Sample | None) -> float | None:
    """How long the target took to answer, in seconds; None if no target did."""
    seconds = None if sample is None else metadata_at(sample.metadata, "target.seconds")
    return float(seconds) if isinstance(seconds, int | float) else None


def _fields(sample: Sample) -> Iterator[tuple[str, Any]]:
    """The entries of the metadata to filter by, as slices name them: `a.b` is the entry b of the object a. What targets
    and traces write there differs from sample to sample."""
    yield from _entries("", {name: value for name, value in sample.metadata.items() if name not in ("target", "trace")})
    if sample.group is not None and "group" not in sample.metadata:
        yield "group", sample.group


def _entries(prefix: str, entries: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in entries.items():
        if isinstance(value, Mapping) and prefix.count(".") < DEEPEST:
            yield from _entries(f"{prefix}{name}.", cast("Mapping[str, Any]", value))
        else:
            yield f"{prefix}{name}", value


def _excerpt(text: str) -> str:
    return storable(text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…")


def _strings(value: Any) -> Iterator[str]:
    """The texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, Any]", value).values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            yield from _strings(item)
    elif hasattr(value, "__dict__"):
        yield from _strings(vars(value))


def head_of(run: Run) -> dict[str, Any]:
    """What the page of a run shows above its samples: the report without the samples, as JSON data."""
    return {"view": to_jsonable(run_view(run, COMMAND_LINE, brief=True, reasons=False)), "run": run.to_dict()}
