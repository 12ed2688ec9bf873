# ruff: noqa: S608 - statements are put together from our own names
"""Copying rows: export and import as lines of JSON, export to Parquet, and recovery from a damaged SQLite file.

A line is an object: `format`, `type` (a kind of row, such as answer or record) and the columns of the row; `body` and
`metadata` are objects. A line of `records.jsonl` can be imported too: the answers behind its score are stored.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import reprlib
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from evalstone._core.atomic_files import replacing
from evalstone._core.display import count
from evalstone._core.file_format import LEDGER_ROW_FORMAT
from evalstone._core.files import lock, private, resolved
from evalstone._core.front_ends import Setting
from evalstone._core.guards import is_object
from evalstone._core.json import storable
from evalstone._core.validation import read_data
from evalstone.datasets.blocks import SampleBlock, block_rows
from evalstone.datasets.stored import sample_line, sample_of
from evalstone.datasets.writing import plain_line
from evalstone.errors import ConfigError, DataError, LedgerError, MissingDependency, invalid, unknown
from evalstone.ledger import labels, live, schema
from evalstone.ledger.base import (
    INVALID_ROW,
    Key,
    RunRow,
    StoredAnswer,
    chunks,
    dataset_row,
    file_of,
    sample_hash,
    shown,
    to_row,
)
from evalstone.ledger.database import Database
from evalstone.ledger.schema import Table
from evalstone.ledger.sqlite import DRIVER_ERRORS
from evalstone.ledger.store import Ledger
from evalstone.types import Record, RunMetadata, check_time

KINDS: Mapping[str, Table] = {
    "dataset": schema.datasets,
    "run": schema.runs,
    "block": schema.blocks,
    "item": schema.items,
    "sample": schema.samples,
    "answer": schema.answers,
    "record": schema.records,
    "live_score": schema.live_scores,
    "live_count": schema.live_counts,
    "label": schema.labels,
    "mode": schema.modes,
    "mode_label": schema.mode_labels,
    "pin": schema.pins,
}
_OBJECTS = ("metadata", "body")
_MOST: Mapping[type, float] = {int: 2**31 - 1, float: sys.float_info.max, bool: 1}
_WORDS: Mapping[type, str] = {
    int: "a whole number from 0 to 2147483647",
    float: "a finite number of 0 or more",
    bool: "true or false",
}
_ROWS_PER_WRITE = 500


def export_rows(ledger: Ledger, *kinds: str) -> Iterator[dict[str, Any]]:
    """The rows of some kinds, or of all kinds, from one snapshot."""
    with ledger.transaction(snapshot=True) as database:
        for kind in kinds or KINDS:
            table = KINDS[kind]
            for row in stream(database, table):
                with ledger.reading(f"a row of {table.name}"):
                    columns = {name: _parsed(value) if name in _OBJECTS else value for name, value in row.items()}
                yield {"format": LEDGER_ROW_FORMAT, "type": kind, **columns}


def _parsed(value: str | bytes | None) -> Any:
    if isinstance(value, bytes):
        return block_rows(value)
    return json.loads(value) if value else value


def export_records(ledger: Ledger, run: str) -> Iterator[dict[str, Any]]:
    """The records of a run as lines of `records.jsonl`.

    Raises:
        ConfigError: The ledger has no such run.
    """
    row = ledger.run(run)
    if row is None:
        raise ConfigError(f"there is no run {run} in the ledger {ledger.location}")
    with ledger.transaction() as database:
        for (stored,) in database.stream("SELECT body FROM records WHERE run = :run ORDER BY cell", {"run": row.id}):
            with ledger.reading(f"a record of run {run}"):
                body = json.loads(stored)
            yield body


def import_rows(ledger: Ledger, lines: Iterable[tuple[str, Any]]) -> dict[str, int]:
    """Insert rows whose keys are new.

    Args:
        ledger: The ledger to insert into.
        lines: Each line's location, for messages, and its parsed content.

    Returns:
        How many rows of each kind were inserted.

    Raises:
        DataError: A line is invalid. Lines in earlier groups of 500 stay imported; the message says how many.
    """
    added = dict.fromkeys(KINDS, 0)
    done = 0
    try:
        for chunk in chunks(lines, _ROWS_PER_WRITE):
            for kind, number in insert(ledger, _rows_by_kind(chunk)).items():
                added[kind] += number
            done += len(chunk)
    except DataError as error:
        progress = f"the first {count(done, 'line')} of the file were imported" if done else "nothing was imported"
        raise DataError(f"{error}; {progress}") from None
    return added


def _rows_by_kind(lines: Iterable[tuple[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for location, line in lines:
        try:
            for kind, row in _rows_of(line):
                rows[kind].append(validated(KINDS[kind], row))
        except INVALID_ROW as error:
            problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise DataError(f"{location}: not a line of an exported ledger or a records.jsonl ({problem})") from None
    return rows


def insert(ledger: Ledger, rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, int]:
    """Insert rows whose keys are new, in one transaction, and return how many were inserted by kind."""
    with ledger.transaction(writing=True) as database:
        return {kind: database.insert_missing(KINDS[kind], some) for kind, some in rows.items() if some}


def stream(database: Database, table: Table) -> Iterator[dict[str, Any]]:
    """The rows of a table in the order of writing, or of the key, in constant memory."""
    for values in database.stream(f"SELECT {table.names} FROM {table.name} ORDER BY {table.order}"):
        yield table.row(values)


def _rows_of(line: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if not is_object(line):
        raise TypeError("expected an object")
    if "type" not in line:
        for call in (leaf for asked in Record.from_dict(line).calls for leaf in asked.leaves()):
            if call.reply is not None and call.answer is not None:
                key = Key(call.fingerprint, call.judge, call.repeat_index)
                yield "answer", to_row(StoredAnswer.of(key, call.question, call))
        return
    LEDGER_ROW_FORMAT.check(line)
    if line["type"] not in KINDS:
        raise DataError(unknown("type", f"{line['type']}", KINDS))
    yield line["type"], {name: value for name, value in line.items() if name not in ("format", "type")}


def validated(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row from outside as the table takes it; derived columns are computed.

    Raises:
        One of INVALID_ROW: A value is missing, has the wrong type, or can't be read as what the row should contain.
    """
    values = dict(row)
    for name in _OBJECTS if table not in (schema.blocks, schema.records) else ():
        if (value := values.get(name)) is not None:
            values[name] = json.dumps(json.loads(value) if isinstance(value, str) else value)
    if table is schema.answers:
        json.loads(values.get("alternatives") or "{}")
        defaults = {"repeat_index": 0, "alternatives": None, "refused_settings": "", "written": time.time(), "run": ""}
        values = {**defaults, **values}
    elif table is schema.records:
        body = json.loads(values["body"]) if isinstance(values["body"], str) else values["body"]
        values |= {"signature": storable(Record.from_dict(body).signature), "body": plain_line(body)}
    elif table is schema.live_scores:
        values |= live.derived(values)
    elif table in (schema.labels, schema.mode_labels):
        values |= labels.derived(table, values)
    elif table is schema.blocks:
        rows = block_rows(values["body"]) if isinstance(values["body"], bytes) else values["body"]
        values |= SampleBlock.of(0, [sample_line(sample_of(row)) for row in rows]).row
    elif table is schema.samples:
        values["hash"] = sample_hash(sample_of(json.loads(values["body"])))
    elif table is schema.runs:
        metadata = json.loads(values["metadata"])
        read_data(RunMetadata, metadata)
        for name in ("started", "finished"):
            if name == "started" or values[name] is not None:
                check_time(values[name], name)
        dataset = dataset_row(RunRow("", "", "", None, metadata))
        values = {"dataset": dataset and dataset["version"], **values}
    return {name: _checked(name, *kind, values[name]) for name, kind in table.types.items()}


def _checked(name: str, expected: Any, nullable: bool, value: Any) -> Any:
    if (value is None and nullable) or expected is bytes:
        return value
    if expected is str:
        if type(value) is not str:
            raise DataError(invalid(name, "text", value, f"{value!r:.60}"))
        return storable(value)
    if type(value) not in (int, expected) or not 0 <= cast("float", value) <= _MOST[expected]:
        raise DataError(invalid(name, f"{_WORDS[expected]}", value, f"{reprlib.repr(value)}"))
    return expected(value)


_NESTED = ("evidence", "calls", "error")
PARQUET_COLUMNS: Mapping[str, Mapping[str, type]] = {
    "answers": {name: kind for name, (kind, _) in schema.answers.types.items()},
    "records": {
        **dict.fromkeys(("sample_id", "scorer", "signature", "outcome"), str),
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
        ConfigError: The path is no file that can be written.
        WriteError: The disk is full.
    """
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingDependency("pyarrow", "parquet") from None
    lines = iter(lines)
    first = list(itertools.islice(lines, 1))
    columns = PARQUET_COLUMNS[kind]
    if kind == "records" and any("trial" in line for line in first):
        columns = {**columns, "trial": int}
    lines = itertools.chain(first, lines)
    types: Mapping[type, Any] = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    arrow_schema = arrow.schema([(name, types[column]) for name, column in columns.items()])
    count = 0
    with replacing(path) as file, parquet.ParquetWriter(file, arrow_schema, compression="zstd") as writer:
        for chunk in chunks(lines, 5000):
            rows = [{name: line[name] for name in columns} for line in chunk]
            for row in rows:
                row.update({name: json.dumps(row[name]) for name in _NESTED if row.get(name) is not None})
                row.update({name: storable(value) for name, value in row.items() if isinstance(value, str)})
            writer.write_table(arrow.Table.from_pylist(rows, schema=arrow_schema))
            count += len(rows)
    return count


ROWS_PER_READ = 256
_FOLDER = "evalstone-recover-"
_COPIES = ("copy.db", "copy.db-wal", "copy.db-shm", "copy.db-journal")
MAX_FAILURES = 20_000
"""Unreadable row numbers in a row after which the rest of a table is given up."""


@dataclass
class Recovered:
    """Rows of one kind, by result."""

    copied: int = 0
    """New in the other ledger."""
    existing: int = 0
    """Already in the other ledger."""
    unreadable: int = 0
    """Row numbers that the file could not return; some may never have been used."""
    invalid: int = 0
    """Readable, but not what such a row should contain."""
    cut_off: bool = False
    """Whether the end of the table is damaged, so that it is unknown how many rows followed the last readable one."""


def recover(damaged: str | Path, into: str | Path) -> dict[str, Recovered]:
    """Copy readable rows into another ledger. The damaged file is not changed, nor are rows that the other one has.

    Returns:
        The counts by kind of row.

    Raises:
        ConfigError: The damaged ledger is not a file, does not exist, is no ledger, or is the target as well.
        LedgerError: Nothing can be read.
    """
    source = file_of(damaged)
    if source is None:
        raise ConfigError(f"{shown(damaged)} is not a file; recover a PostgreSQL server with its own tools")
    if not source.is_file():
        raise ConfigError(f"there is no file {source}")
    target = file_of(into)
    if target is not None and resolved(target) == resolved(source):
        raise ConfigError("rows are recovered into another file: name a new one with ", Setting("into", ...))
    with _temporary_folder() as folder:
        copy = folder / "copy.db"  # SQLite may write to a file that it reads
        for suffix in ("", "-wal"):
            if (part := source.with_name(source.name + suffix)).exists():
                shutil.copyfile(part, copy.with_name(copy.name + suffix))
        _fill_up(copy)
        with closing(sqlite3.connect(copy)) as connection:
            connection.text_factory = partial(str, encoding="utf-8", errors="backslashreplace")
            try:
                connection.execute("PRAGMA writable_schema = ON")  # else, one damaged definition hides all tables
                names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            except DRIVER_ERRORS as error:
                raise LedgerError(f"nothing in {source} can be read: {error}") from None
            if "answers" not in names:
                raise ConfigError(f"nothing in {source} can be read as a ledger: it has no table of answers")
            with Ledger(into) as ledger:
                return {kind: _copy(connection, ledger, kind) for kind in KINDS if KINDS[kind].name in names}


def _fill_up(file: Path) -> None:
    """Fill a file that was cut off with empty pages: SQLite reads nothing of a file that is shorter than it says."""
    with file.open("r+b") as opened, suppress(OSError):
        header = opened.read(32)
        page, pages = int.from_bytes(header[16:18]), int.from_bytes(header[28:32])
        size = pages * (65536 if page == 1 else page)
        if opened.seek(0, os.SEEK_END) < size:
            opened.truncate(size)


@contextmanager
def _temporary_folder() -> Generator[Path]:
    """A temporary folder, with a file in it that is locked while in use. Those of killed processes are deleted, but
    nothing in them that no recovery has written."""
    for left in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*/lock"):
        with suppress(OSError):
            with open(left, "r+b", opener=private) as file:  # Path.open has no opener
                if not lock(file, wait=False) or left.parent.is_symlink():
                    continue
                for name in (*_COPIES, "lock"):
                    (left.parent / name).unlink(missing_ok=True)
            left.parent.rmdir()  # if nothing else is in it
    with (
        tempfile.TemporaryDirectory(prefix=_FOLDER) as folder,
        open(Path(folder) / "unlocked", "xb", opener=private) as file,
    ):
        lock(file)
        Path(folder, "unlocked").rename(Path(folder, "lock"))
        yield Path(folder)


def _copy(connection: sqlite3.Connection, ledger: Ledger, kind: str) -> Recovered:
    count = Recovered()
    for chunk in chunks(_rows(connection, KINDS[kind].name, count), ROWS_PER_READ):
        valid: list[dict[str, Any]] = []
        for row in chunk:
            try:
                valid.append(validated(KINDS[kind], row))
            except INVALID_ROW:
                count.invalid += 1
        added = insert(ledger, {kind: valid}).get(kind, 0)
        count.copied += added
        count.existing += len(valid) - added
    return count


def _rows(connection: sqlite3.Connection, table: str, count: Recovered) -> Iterator[dict[str, Any]]:
    """The readable rows by row number, read in smaller steps around damage."""
    query = f"SELECT rowid AS number, * FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT ?"
    last, step, failures = 0, ROWS_PER_READ, 0
    while True:
        rows, highest = list[dict[str, Any]](), last
        try:
            cursor = connection.execute(query, (last, step))
            names = [column[0] for column in cursor.description]
            rows += (dict(zip(names, row, strict=True)) for row in cursor.fetchall())
            if not rows:
                count.unreadable += failures
                return
            highest = max(row["number"] for row in rows)
        except DRIVER_ERRORS:
            pass
        if highest <= last:  # unreadable, or a damaged page that leads back to rows before it
            if step == 1:
                last, failures = last + 1, failures + 1
            step = max(step // 4, 1)
            if failures > MAX_FAILURES:
                count.cut_off = True
                return
            continue
        count.unreadable += failures
        failures, last, step = 0, highest, min(2 * step, ROWS_PER_READ)
        yield from rows
