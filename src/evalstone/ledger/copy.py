"""Export and import: a ledger's rows as lines of JSON, or as a Parquet file written with pyarrow.

A line is an object: `format`, `type` (answer, run, record or dataset) and the columns of the row; `body` and `metadata`
are objects. A line of `records.jsonl` can be imported too: the answers behind its score are stored.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

import sqlalchemy as sa

from evalstone.errors import ConfigError, DataError, EvalstoneError, MissingDependency
from evalstone.ledger import schema
from evalstone.ledger.rows import RunRow, StoredAnswer, cell_hash, storable, to_row
from evalstone.ledger.store import Ledger
from evalstone.types import Record

FORMAT = 1
KINDS: Mapping[str, sa.Table] = {
    "dataset": schema.datasets,
    "run": schema.runs,
    "answer": schema.answers,
    "record": schema.records,
}
INVALID_ROW = (ValueError, KeyError, TypeError, AttributeError, RecursionError, EvalstoneError)
"""The errors that `validated` raises."""

_OBJECTS = ("metadata", "body")
_ROWS_PER_WRITE = 500

T = TypeVar("T")


def export_rows(ledger: Ledger, *kinds: str) -> Iterator[dict[str, Any]]:
    """The rows of some kinds, or of all kinds, from one snapshot."""
    with ledger.transaction() as connection:
        for kind in kinds or KINDS:
            table = KINDS[kind]
            for row in stream(connection, sa.select(*(table.c[name] for name in schema.columns(table))), table):
                columns = {name: json.loads(v) if name in _OBJECTS else v for name, v in row.items()}
                yield {"format": FORMAT, "type": kind, **columns}


def export_records(ledger: Ledger, run: str) -> Iterator[dict[str, Any]]:
    """The records of a run as lines of `records.jsonl`.

    Raises:
        ConfigError: The ledger has no such run.
    """
    row = ledger.run(run)
    if row is None:
        raise ConfigError(f"there is no run {run} in the ledger {ledger.location}")
    table = schema.records
    with ledger.transaction() as connection:
        for found in stream(connection, sa.select(table.c.body).where(table.c.run == row.id), table):
            yield json.loads(found["body"])


def import_rows(ledger: Ledger, lines: Iterable[tuple[str, Any]]) -> dict[str, int]:
    """Insert rows whose keys are new.

    Args:
        ledger: The ledger to insert into.
        lines: Each line's location, for messages, and its parsed content.

    Returns:
        How many rows of each kind were inserted.

    Raises:
        DataError: A line is invalid. Lines in earlier groups of 500 stay imported.
    """
    added = dict.fromkeys(KINDS, 0)
    for chunk in chunks(lines, _ROWS_PER_WRITE):
        rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
        for location, line in chunk:
            try:
                for kind, row in _rows_of(line):
                    rows[kind].append(validated(KINDS[kind], row))
            except INVALID_ROW as error:
                raise DataError(f"{location}: not a line of an exported ledger or a records.jsonl ({error})") from None
        for kind, count in insert(ledger, rows).items():
            added[kind] += count
    return added


def insert(ledger: Ledger, rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, int]:
    """Insert rows whose keys are new, in one transaction, and return how many were inserted by kind."""
    with ledger.transaction(writing=True) as connection:
        return {kind: ledger.insert_missing(connection, KINDS[kind], some) for kind, some in rows.items() if some}


def stream(connection: sa.Connection, query: Any, table: sa.Table) -> Iterator[dict[str, Any]]:
    """Rows in the order of writing, or of the key for tables without `position`, in constant memory."""
    names = ["position"] if "position" in table.c else schema.KEYS[table]
    ordered = query.order_by(*(table.c[name] for name in names))
    for row in connection.execute(ordered, execution_options={"yield_per": _ROWS_PER_WRITE}).mappings():
        yield dict(cast("Mapping[str, Any]", row))


def chunks(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of up to `size` values."""
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _rows_of(line: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if "type" not in line:
        yield from (("answer", row) for row in _answers_of(Record.from_dict(line)))
        return
    if line["format"] != FORMAT or line["type"] not in KINDS:
        raise ValueError(f"format {line['format']!r}, type {line['type']!r}")
    yield line["type"], {name: value for name, value in line.items() if name not in ("format", "type")}


def _answers_of(record: Record) -> Iterator[dict[str, Any]]:
    for call in (leaf for step in record.steps for leaf in step.leaves()):
        if call.reply is not None and call.answer is not None:
            answer = StoredAnswer(
                question=call.fingerprint,
                judge=call.judge,
                kind=call.question,
                reply=call.reply,
                usage=call.usage,
                cost=call.cost,
                seconds=call.seconds,
                confidence=call.confidence,
                alternatives=call.alternatives,
                repeat_index=call.repeat_index,
                written=time.time(),
            )
            yield to_row(answer)


def validated(table: sa.Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row from outside as the table takes it; derived columns are computed.

    Raises:
        One of INVALID_ROW: A value is missing, has the wrong type, or can't be read as what the row should contain.
    """
    values = dict(row)
    for name in _OBJECTS:
        if name in values:
            value = values[name]
            values[name] = json.dumps(json.loads(value) if isinstance(value, str) else value)
    if table is schema.answers:
        json.loads(values.get("alternatives") or "{}")
        values = {"repeat_index": 0, "alternatives": None, "written": time.time(), **values}
    elif table is schema.records:
        Record.from_dict(json.loads(values["body"]))
        values["cell"] = cell_hash(values["sample"], values["scorer"])
    elif table is schema.runs:
        run = RunRow("", "", "", None, json.loads(values["metadata"]))
        values = {"dataset": to_row(run)["dataset"], **values}
    return {name: _checked(table.c[name], values[name]) for name in schema.columns(table)}


def _checked(column: sa.Column[Any], value: Any) -> Any:
    expected = column.type.python_type
    if value is None and column.nullable:
        return None
    if expected is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not expected:
        raise TypeError(f"{column.name} must be {expected.__name__}, not {type(value).__name__}")
    return storable(value) if isinstance(value, str) else value


_NESTED = ("evidence", "steps", "error")
PARQUET_COLUMNS: Mapping[str, Mapping[str, type]] = {
    "answers": {name: schema.answers.c[name].type.python_type for name in schema.columns(schema.answers)},
    "records": {
        **dict.fromkeys(("sample", "scorer", "outcome"), str),
        **dict.fromkeys(("value", "scale"), float),
        "reason": str,
        **dict.fromkeys(("seconds", "cost"), float),
        **dict.fromkeys(_NESTED, str),
    },
}


def write_parquet(path: str | Path, kind: str, lines: Iterable[Mapping[str, Any]]) -> int:
    """Write exported answers or records to a Parquet file. Nested values become JSON text.

    The file appears complete or not at all.

    Returns:
        How many rows were written.

    Raises:
        MissingDependency: pyarrow is not installed.
        ConfigError: The file can't be written.
    """
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingDependency("pyarrow", "parquet") from None
    columns = PARQUET_COLUMNS[kind]
    types: Mapping[type, Any] = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    arrow_schema = arrow.schema([(name, types[column]) for name, column in columns.items()])
    target = Path(path)
    temporary = target.with_name(f".{target.name}.tmp")
    count = 0
    try:
        with parquet.ParquetWriter(temporary, arrow_schema, compression="zstd") as writer:
            for chunk in chunks(lines, 5000):
                rows = [{name: _parquet_value(name, line[name]) for name in columns} for line in chunk]
                writer.write_table(arrow.Table.from_pylist(rows, schema=arrow_schema))
                count += len(rows)
        temporary.replace(target)
    except OSError as error:
        raise ConfigError(f"can't write {str(path)!r}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _parquet_value(name: str, value: Any) -> Any:
    return json.dumps(value) if name in _NESTED and value is not None else value
