# ruff: noqa: S608 - statements are put together from our own names
"""How an index is made from a run."""

from __future__ import annotations

import json
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
from evalstone.types import Failed, Record, Sample, Score, case_key, metadata_at
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
        columns = "".join(f", v{n} REAL, o{n} INTEGER" for n in range(len(run.scorers)))
        for statement in TABLES.format(columns=columns).split(";"):
            connection.execute(statement)
        _Writer(connection, run).write(progress)
        about = {"format": FORMAT, "stamp": stamp, "head": json.dumps(head)}
        connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about.items())


class _Writer:
    """Writes the cases of a run into the tables of an index."""

    def __init__(self, connection: sqlite3.Connection, run: Run) -> None:
        self.connection, self.run = connection, run
        self.numbers = {info.signature: number for number, info in enumerate(run.scorers)}
        self.groups = Groups(connection)
        self.loss_rule = LossRule.of(run.scorers)
        self.field_numbers: dict[str, int] = {}
        self.field_values: dict[str, Counter[str]] = {}
        self.totals = Counter[str](imperfect=0, score=0, skipped=0, failed=0, retrieval=0, generation=0, unknown=0)
        self.cases: list[tuple[Any, ...]] = []
        self.excerpts: list[tuple[Any, ...]] = []
        self.texts: list[tuple[Any, ...]] = []
        self.fields: list[tuple[int, str, int]] = []
        self.pack: list[str] = []
        self.pack_bytes = self.pack_first = 0

    def write(self, progress: Progress) -> None:
        """Write all cases, and what is said of all of them."""
        total, keeps, records = self.run.columns.size, bool(self.run.keeps_reasoning), self.run.records
        place = 0
        for place, (at, sample) in enumerate(cases_of(self.run), start=1):
            found = [records[each] for each in at]
            lines = [*map(records.text_at, at)] if isinstance(records, StoredRecords) else [*map(record_line, found)]
            self._add(place, sample, found, lines, keeps_reasoning=keeps)
            if place % 500 == 0:
                self._flush()
                progress(place, total)
        self._flush()
        self._flush_pack()
        progress(place, total)
        execute = self.connection.execute
        execute("CREATE UNIQUE INDEX cases_key ON cases (key)")
        execute("CREATE INDEX cases_sample ON cases (sample) WHERE trial IS NOT NULL")
        execute("CREATE INDEX cases_goodness ON cases (goodness, place)")
        for number in self.numbers.values():
            execute(f"CREATE INDEX cases_v{number} ON cases (v{number}, place)")
        self.groups.finish()
        facets = {
            name: values.most_common() for name, values in self.field_values.items() if len(values) <= MOST_VALUES
        }
        for name, number in self.field_numbers.items():
            if name not in facets:
                execute("DELETE FROM fields WHERE name = ?", (number,))
        about = {
            "totals": {"all": place, **self.totals},
            "facets": [[self.field_numbers[name], name, values] for name, values in facets.items()],
            "scorers": [info.to_stored() for info in self.run.scorers],
            "titles": dict(self.run.titles),
            "keeps_reasoning": keeps,
            "spreads": {
                name: spread for name in ("cost", "tokens", "seconds", "latency") if (spread := self._spread(name))
            },
        }
        rows = [(name, json.dumps(value)) for name, value in about.items()]
        self.connection.executemany("INSERT INTO about VALUES (?, ?)", rows)
        execute("INSERT INTO texts (texts) VALUES ('optimize')")
        execute("ANALYZE")

    def _add(
        self, place: int, sample: Sample | None, records: Sequence[Record], lines: list[str], *, keeps_reasoning: bool
    ) -> None:
        first = records[0]
        cells: list[Any] = [None] * (2 * len(self.numbers))
        goodness: list[float] = []
        counts, cost, seconds, tokens = [0, 0, 0], 0.0, 0.0, 0
        for record in records:
            number, outcome = self.numbers[record.signature], record.outcome
            kind = SCORED if isinstance(outcome, Score) else FAILED if isinstance(outcome, Failed) else SKIPPED
            counts[kind] += 1
            cells[2 * number : 2 * number + 2] = record.value, kind
            self.groups.add(place, number, self.run.scorers[number], outcome)
            if isinstance(outcome, Score):
                goodness.append(self.run.scorers[number].goodness(outcome.value))
            seconds += record.seconds
            if record.calls:
                paid = record.cost
                cost = None if paid is None or cost is None else cost + paid
                tokens += sum(call.usage.input + call.usage.output for call in record.calls)
        mean = sum(goodness) / len(goodness) if goodness else None
        self.totals.update(
            {
                "imperfect": mean is None or mean < 1,
                "score": counts[SCORED] > 0,
                "skipped": counts[SKIPPED] > 0,
                "failed": counts[FAILED] > 0,
            }
        )
        loss = self.loss_rule.loss_in(records) if self.loss_rule is not None else None
        if loss is not None:
            self.totals[loss] += 1
        key = case_key(first.sample_id, first.trial)
        name = storable(first.sample_id)
        about = (mean, cost, tokens, seconds, _latency(sample), loss)
        self.cases.append((place, storable(key), name, first.trial, *about, *counts, *cells))
        other: list[str] = []
        for record in records:
            other += [
                record.outcome.reason,
                *_strings(record.outcome.evidence if isinstance(record.outcome, Score) else ()),
            ]
        if sample is None:
            self.texts.append((place, spaced(key), "", "", "", spaced("\n".join(other))))
        else:
            answer = scored_answer(sample, keeps_reasoning=keeps_reasoning).answer
            asked = question_of(sample)
            shown = (asked, answer, sample.reference or "")
            self.excerpts.append((place, *map(_excerpt, shown)))
            rest = [sample.reference or "", sample.instructions or "", *(sample.context or ())]
            rest += [*_strings(dict(sample.metadata)), *_strings(to_jsonable(sample.messages))]
            texts = (key, asked, sample.output or "", "\n".join(rest), "\n".join(other))
            self.texts.append((place, *map(spaced, texts)))
            for name, value in _fields(sample):
                self._add_field(place, name, value)
        line = "null" if sample is None else sample_line(sample)
        self.pack.append(f'{{"sample":{line},"records":[{",".join(lines)}]}}')
        self.pack_first = self.pack_first or place
        self.pack_bytes += len(self.pack[-1])
        if self.pack_bytes >= PACK_BYTES:
            self._flush_pack()

    def _add_field(self, place: int, name: str, value: Any) -> None:
        if not isinstance(value, bool | int | float | str):
            return
        name, text = choice(name), choice(value if isinstance(value, str) else json.dumps(value))
        if text and len(name) <= LONGEST_VALUE and len(text) <= LONGEST_VALUE:
            values = self.field_values.setdefault(name, Counter())
            if len(values) <= MOST_VALUES:
                values[text] += 1
                self.fields.append((self.field_numbers.setdefault(name, len(self.field_numbers)), text, place))

    def _spread(self, column: str) -> dict[str, Any] | None:
        """How the numbers of a column are distributed; None if there are fewer than two different ones. The bins are
        equal parts from 0 to the 99th percentile, and the last one has what is beyond."""
        query = f"SELECT {column} FROM cases WHERE {column} IS NOT NULL ORDER BY {column}"
        values = array("d", (value for (value,) in self.connection.execute(query)))
        if not values or values[0] == values[-1]:
            return None
        at = [values[min(len(values) - 1, int(share * len(values)))] for share in (0.5, 0.95, 0.99)]
        width = (at[2] or values[-1]) / SPREAD_BINS
        counts = Counter(min(SPREAD_BINS - 1, int(value / width)) for value in values)
        bins = [counts[bin] for bin in range(SPREAD_BINS)]
        return {"n": len(values), "median": at[0], "p95": at[1], "highest": values[-1], "bins": bins, "width": width}

    def _flush(self) -> None:
        self.groups.flush()
        many = self.connection.executemany
        if self.cases:
            many(f"INSERT INTO cases VALUES ({', '.join('?' * len(self.cases[0]))})", self.cases)
        many("INSERT INTO excerpts VALUES (?, ?, ?, ?)", self.excerpts)
        many("INSERT INTO texts (rowid, id, input, answer, other, reason) VALUES (?, ?, ?, ?, ?, ?)", self.texts)
        many("INSERT OR IGNORE INTO fields VALUES (?, ?, ?)", self.fields)
        for rows in (self.cases, self.excerpts, self.texts, self.fields):
            rows.clear()

    def _flush_pack(self) -> None:
        if self.pack:
            body = zlib.compress("\n".join(self.pack).encode("utf-8", "surrogatepass"), 1)
            self.connection.execute("INSERT INTO packs VALUES (?, ?)", (self.pack_first, body))
        self.pack, self.pack_bytes, self.pack_first = [], 0, 0


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
