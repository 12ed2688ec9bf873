"""Recovery: copy the readable rows of a damaged SQLite ledger into another ledger."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalstone.errors import ConfigError, LedgerError
from evalstone.ledger.copy import INVALID_ROW, KINDS, chunks, insert, validated
from evalstone.ledger.location import file_of, shown
from evalstone.ledger.store import Ledger

ROWS_PER_READ = 256
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


def recover(damaged: str | Path, into: str | Path) -> dict[str, Recovered]:
    """Copy readable rows into another ledger. The damaged file is not changed, nor are rows that the other one has.

    Returns:
        The counts by kind of row.

    Raises:
        ConfigError: The damaged ledger is not a file, does not exist, or is the target as well.
        LedgerError: Nothing can be read.
    """
    source = file_of(damaged)
    if source is None:
        raise ConfigError(f"{shown(damaged)} is not a file; recover a PostgreSQL server with its own tools")
    if not source.is_file():
        raise ConfigError(f"there is no file {source}")
    target = file_of(into)
    if target is not None and target.resolve() == source.resolve():
        raise ConfigError("rows are recovered into another file: name a new one with --into")
    with tempfile.TemporaryDirectory(prefix="evalstone-recover-") as folder:
        copy = Path(folder) / "copy.db"  # SQLite may write to a file that it reads
        for suffix in ("", "-wal"):
            if (part := source.with_name(source.name + suffix)).exists():
                shutil.copyfile(part, copy.with_name(copy.name + suffix))
        with closing(sqlite3.connect(copy)) as connection:
            connection.text_factory = _text
            names = _table_names(connection, source)
            with Ledger(into) as ledger:
                return {kind: _copy(connection, ledger, kind) for kind in KINDS if KINDS[kind].name in names}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _table_names(connection: sqlite3.Connection, source: Path) -> set[str]:
    try:
        names = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as error:
        raise LedgerError(f"nothing in {source} can be read: {error}") from None
    if "answers" not in names:
        raise LedgerError(f"nothing in {source} can be read as a ledger: it has no table of answers")
    return names


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
    query = f"SELECT rowid, * FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT ?"  # noqa: S608 - our own table names
    last, step, failures = 0, ROWS_PER_READ, 0
    while True:
        try:
            cursor = connection.execute(query, (last, step))
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        except sqlite3.DatabaseError:
            if step > 1:
                step = max(step // 4, 1)
                continue
            last, failures = last + 1, failures + 1
            if failures > MAX_FAILURES:
                return
            continue
        if not rows:
            return
        count.unreadable += failures
        failures = 0
        last, step = int(rows[-1][0]), min(2 * step, ROWS_PER_READ)
        for row in rows:
            yield dict(zip(names[1:], row[1:], strict=True))
