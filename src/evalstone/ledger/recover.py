"""Copying what can be read of a damaged SQLite ledger into a good one."""

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
from evalstone.ledger.copy import BROKEN, KINDS, checked, chunks, put
from evalstone.ledger.location import file_of, shown
from evalstone.ledger.store import Ledger

STEP = 256
PATIENCE = 20_000
"""Row numbers in a row that cannot be read before the rest of a table is given up."""


@dataclass
class Salvaged:
    """What became of one kind of row: copied (new in the good ledger), there already, unreadable (row numbers that the
    file could not give; some may never have been used), broken (read, but not what such a row holds)."""

    copied: int = 0
    there: int = 0
    unreadable: int = 0
    broken: int = 0


def salvage(bad: str | Path, into: str | Path) -> dict[str, Salvaged]:
    """Copy what can be read, by kind. The damaged file is not touched; rows that the good ledger has stay as they are.

    Raises ConfigError for a ledger that is no file, or is not there, or is the good one; LedgerError when nothing at
    all can be read.
    """
    source = file_of(bad)
    if source is None:
        raise ConfigError(f"{shown(bad)} is no file; a PostgreSQL server's data is mended with its own tools")
    if not source.is_file():
        raise ConfigError(f"there is no file {source}")
    target = file_of(into)
    if target is not None and target.resolve() == source.resolve():
        raise ConfigError("what is salvaged goes into another file: name a new one with --into")
    with tempfile.TemporaryDirectory(prefix="evalstone-salvage-") as folder:
        copy = Path(folder) / "copy.db"  # SQLite may write to a file that it reads
        for ending in ("", "-wal"):
            if (part := source.with_name(source.name + ending)).exists():
                shutil.copyfile(part, copy.with_name(copy.name + ending))
        with closing(sqlite3.connect(copy)) as connection:
            connection.text_factory = _text
            present = _tables(connection, source)
            with Ledger(into) as ledger:
                return {kind: _copy(connection, ledger, kind) for kind in KINDS if KINDS[kind].name in present}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _tables(connection: sqlite3.Connection, source: Path) -> set[str]:
    try:
        found = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as error:
        raise LedgerError(f"nothing of {source} can be read: {error}") from None
    if "answers" not in found:
        raise LedgerError(f"nothing of {source} can be read as a ledger: it has no table of answers")
    return found


def _copy(connection: sqlite3.Connection, ledger: Ledger, kind: str) -> Salvaged:
    count = Salvaged()
    for chunk in chunks(_rows(connection, KINDS[kind].name, count), STEP):
        good: list[dict[str, Any]] = []
        for row in chunk:
            try:
                good.append(checked(KINDS[kind], row))
            except BROKEN:
                count.broken += 1
        added = put(ledger, {kind: good}).get(kind, 0)
        count.copied += added
        count.there += len(good) - added
    return count


def _rows(connection: sqlite3.Connection, table: str, count: Salvaged) -> Iterator[dict[str, Any]]:
    """The rows that can be read, by row number. Around what cannot be read the steps become small."""
    query = f"SELECT rowid, * FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT ?"  # noqa: S608 - a name of ours
    last, step, failures = 0, STEP, 0
    while True:
        try:
            cursor = connection.execute(query, (last, step))
            names = [column[0] for column in cursor.description]
            found = cursor.fetchall()
        except sqlite3.DatabaseError:
            if step > 1:
                step = max(step // 4, 1)
                continue
            last, failures = last + 1, failures + 1
            if failures > PATIENCE:
                return
            continue
        if not found:
            return
        count.unreadable += failures
        failures = 0
        last, step = int(found[-1][0]), min(2 * step, STEP)
        for row in found:
            yield dict(zip(names[1:], row[1:], strict=True))
