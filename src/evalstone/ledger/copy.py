"""A ledger's rows as lines of JSON, and back: to keep them elsewhere, or to bring them into another ledger.

A line is an object: `format`, `is` (answer, run, record or dataset) and the row's columns; `body` and `about` are
objects. A line of `records.jsonl` is understood too: the answers behind its score are taken from it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar, cast

import sqlalchemy as sa

from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.ledger import tables
from evalstone.ledger.row_codec import answer_row, cell, run_row, storable
from evalstone.ledger.rows import RunRow, StoredAnswer
from evalstone.ledger.store import Ledger
from evalstone.types import Record

FORMAT = 1
KINDS: Mapping[str, sa.Table] = {
    "dataset": tables.datasets,
    "run": tables.runs,
    "answer": tables.answers,
    "record": tables.records,
}
BROKEN = (ValueError, KeyError, TypeError, AttributeError, RecursionError, EvalstoneError)
"""What `checked` raises for a row that does not hold what it should."""

_OBJECTS = ("about", "body")
_CHUNK = 500

T = TypeVar("T")


def lines(ledger: Ledger, *kinds: str) -> Iterator[dict[str, Any]]:
    """The rows of some kinds, or of all, as they were at one moment."""
    with ledger.transaction() as connection:
        for kind in kinds or KINDS:
            for row in stream(connection, sa.select(*_columns(KINDS[kind])), KINDS[kind]):
                told = {name: json.loads(v) if name in _OBJECTS else v for name, v in row.items()}
                yield {"format": FORMAT, "is": kind, **told}


def record_lines(ledger: Ledger, run: str) -> Iterator[dict[str, Any]]:
    """The records of a run as lines of `records.jsonl`. Raises ConfigError for a run that is not there."""
    row = ledger.run(run)
    if row is None:
        raise ConfigError(f"there is no run {run} in the ledger {ledger.place}")
    table = tables.records
    with ledger.transaction() as connection:
        for found in stream(connection, sa.select(table.c.body).where(table.c.run == row.id), table):
            yield json.loads(found["body"])


def stream(connection: sa.Connection, query: Any, table: sa.Table) -> Iterator[dict[str, Any]]:
    """Rows in the order of writing (of the key, where there is none), a few at a time."""
    names = ["position"] if "position" in table.c else tables.KEYS[table]
    rows = connection.execute(
        query.order_by(*(table.c[name] for name in names)), execution_options={"yield_per": _CHUNK}
    )
    for row in rows.mappings():
        yield dict(cast("Mapping[str, Any]", row))


def _columns(table: sa.Table) -> list[sa.Column[Any]]:
    return [table.c[name] for name in tables.columns(table)]


def bring_in(ledger: Ledger, found: Iterable[tuple[str, Any]]) -> dict[str, int]:
    """Write lines into a ledger where they are not there yet; how many rows of each kind were new.

    found: the place of each line, for messages, and what it holds. Raises DataError naming the place of a line that is
    none of ours; what came before it stays.
    """
    added = dict.fromkeys(KINDS, 0)
    for chunk in chunks(found, _CHUNK):
        rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
        for place, line in chunk:
            try:
                for kind, row in _rows(line):
                    rows[kind].append(checked(KINDS[kind], row))
            except BROKEN as error:
                raise DataError(f"{place}: no line of an exported ledger or of a records.jsonl ({error})") from None
        for kind, count in put(ledger, rows).items():
            added[kind] += count
    return added


def put(ledger: Ledger, rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, int]:
    """Insert rows, by kind, in one transaction, where they are not there yet; how many of each kind were new."""
    with ledger.transaction(writing=True) as connection:
        return {kind: ledger.add(connection, KINDS[kind], some) for kind, some in rows.items() if some}


def chunks(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """The values in lists of so many."""
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _rows(line: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if "is" not in line:
        yield from (("answer", row) for row in _answers_of(Record.from_dict(line)))
        return
    if line["format"] != FORMAT or line["is"] not in KINDS:
        raise ValueError(f"format {line['format']!r}, kind {line['is']!r}")
    yield line["is"], {name: value for name, value in line.items() if name not in ("format", "is")}


def _answers_of(record: Record) -> Iterator[dict[str, Any]]:
    for step in record.steps:
        if step.reply is not None and step.answer is not None:
            yield answer_row(
                StoredAnswer(
                    question=step.fingerprint,
                    judge=step.judge,
                    kind=step.question,
                    reply=step.reply,
                    usage=step.usage,
                    cost=step.cost,
                    seconds=step.seconds,
                    confidence=step.confidence,
                    alternatives=step.alternatives,
                )
            )


def checked(table: sa.Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row that the table takes, made of one from outside; what an older layout did not have is filled in.

    Raises one of BROKEN for a value that is missing, of the wrong type, or not what such a row holds.
    """
    made = dict(row)
    for name in _OBJECTS:
        if name in made:
            made[name] = json.dumps(json.loads(made[name]) if isinstance(made[name], str) else made[name])
    if table is tables.answers:
        made = {"number": 0, "alternatives": None, "written": time.time(), **made}
    elif table is tables.records:
        Record.from_dict(json.loads(made["body"]))
        made["cell"] = cell(made["sample"], made["scorer"])
    elif table is tables.runs:
        made = {"dataset": run_row(RunRow("", "", "", None, json.loads(made["about"])))["dataset"], **made}
    return {name: _value(table.c[name], made[name]) for name in tables.columns(table)}


def _value(column: sa.Column[Any], value: Any) -> Any:
    wanted = column.type.python_type
    if value is None and column.nullable:
        return None
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not wanted:
        raise TypeError(f"{column.name} must be {wanted.__name__}, not {type(value).__name__}")
    return storable(value) if isinstance(value, str) else value
