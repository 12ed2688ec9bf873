"""The spool: the received parts, by trace and by time, in an SQLite file beside the file of traces.

parts     the part of a request that belongs to one trace, as OTLP JSON
traces    for each trace, the time of its last part, and how much of it wasn't processed yet
export    how far the file of traces has the parts
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalstone._core import sync
from evalstone._core.display import quoted, safe
from evalstone._core.files import cannot_write, private
from evalstone._core.front_ends import Setting
from evalstone._core.redaction import masked
from evalstone.collect.export import Export, Position
from evalstone.errors import ConfigError, described
from evalstone.ledger.base import chunks

WAITING_BYTES = 64_000_000
"""The most bytes that wait to be written; further requests are refused."""
KEPT_BYTES = 1_000_000_000
"""The bytes of processed traces that are kept in case late spans arrive."""
MOST_BYTES = 10_000_000_000
"""The maximum size of the spool with unprocessed traces."""
MOST_OF_TRACE = 256_000_000
"""The most bytes of a trace that are read. A longer one isn't waited for, and its later spans aren't read."""
MOST_OF_LOGS = 64_000_000
"""The most bytes of log records without a trace ID that are read together."""
BATCH_SIZE = 500
"""The number of traces that are processed before their progress is stored."""
PATIENCE = 12
"""How many times longer to wait for a trace without a root span, which may have begun in another process."""
PAUSE = 1.0
"""Seconds between two updates of the stored export position."""
_PRUNED = 10_000
"""The most traces that are removed at a time."""
_ROWS = 100
"""The rows per INSERT statement: SQLite limits the number of values."""
_BUSY = 1.0
"""Seconds to wait for another process, such as one that makes a backup."""
_LOGS = "log records "
"""The prefix of the keys of log records without a trace ID."""
_APPLICATION, _VERSION = 0x65766C73, 1
_SCHEMA = f"""
    BEGIN;
    CREATE TABLE parts (
        number INTEGER PRIMARY KEY, trace TEXT NOT NULL, waits INTEGER NOT NULL, body BLOB NOT NULL
    );
    CREATE INDEX parts_of_traces ON parts (trace, number);
    CREATE TABLE traces (
        trace TEXT PRIMARY KEY, last REAL NOT NULL, rooted INTEGER NOT NULL, waiting INTEGER NOT NULL,
        newest INTEGER NOT NULL, size INTEGER NOT NULL, passed INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX waiting_traces ON traces (last, newest) WHERE waiting > 0;
    CREATE INDEX kept_traces ON traces (last) WHERE waiting = 0;
    CREATE TABLE export (number INTEGER NOT NULL, file TEXT NOT NULL, size INTEGER NOT NULL);
    INSERT INTO export VALUES (0, '', 0);
    PRAGMA application_id = {_APPLICATION};
    PRAGMA user_version = {_VERSION};
    COMMIT;
"""  # noqa: S608 - constants
log = logging.getLogger("evalstone.collect")


class SpoolFull(Exception):
    """Writing to disk is behind; the client should retry later."""


@dataclass(frozen=True)
class TracePart:
    """The part of a request that belongs to one trace."""

    trace: str
    """The trace ID; "" for log records without one."""
    body: bytes
    """OTLP JSON."""
    records: int
    """The number of spans and log records to score; those that are scores themselves don't count."""
    rooted: bool
    """Whether the root span is in it."""


@dataclass(frozen=True)
class Complete:
    """A complete trace, or log records without a trace ID that came at about the same time."""

    key: str
    newest: int
    """The number of its newest part."""
    waiting: int
    """The number of its spans and log records that weren't processed yet."""
    again: bool
    """Whether it was processed before and late spans came, or processing was interrupted."""

    @property
    def trace(self) -> str:
        """The trace ID; "" for log records without one."""
        return "" if self.key.startswith(_LOGS) else self.key


class Spool:
    """The received parts, on disk. One process uses it at a time.

    Parts that wait together are written and synced in one transaction, then appended to the file of traces. Its
    synchronous methods may be called from any thread.

    Args:
        out: The file of traces. The spool is beside it, with `.spool` at the end of its name.
        scored: Whether what is stored waits for scoring.

    Raises:
        ConfigError: One of the files can't be written to, is something else, or another process uses the spool.
        StorageError: The disk is full.
    """

    def __init__(self, out: Path, *, scored: bool = False) -> None:
        self.path = out.resolve().with_name(f"{out.resolve().name}.spool")
        self._scored = scored
        self._lock = threading.RLock()
        self._logs = _new_key()
        """The key of log records without a trace ID. They are complete a fixed time after the first one."""
        self._fresh = list[tuple[int, bytes]]()
        """The parts that were just written."""
        self._queue: list[tuple[Sequence[TracePart], asyncio.Future[None]]] = []
        self._size = 0
        self._task: asyncio.Task[None] | None = None
        self.late = 0
        """The number of spans and log records that came after their trace was processed; scores don't count."""
        self.dropped = 0
        """The number of spans and log records that were removed unprocessed, because the spool was full."""
        self.export_error = ""
        """Why the last parts aren't in the file of traces; "" if they are."""
        if out.exists() and not out.is_file():
            raise ConfigError(f"cannot write {quoted(out)}: it is no file; name one with ", Setting("out", ...))
        try:
            # Closing a file releases all locks that the process has on it, so only a new one is opened here.
            with contextlib.suppress(FileExistsError):
                os.close(private(str(self.path), os.O_CREAT | os.O_EXCL | os.O_RDWR))
            self._identity = self.path.stat()
            self._connection = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
            try:
                self._prepare()
                self._resume()
                position = self._connection.execute("SELECT number, file, size FROM export").fetchone()
                self._noted: Position = Position(*position)
                self._noted_at = 0.0
                self._export = Export(out, self._noted, self._after)
            except BaseException:
                self._connection.close()
                raise
        except OSError as error:
            raise cannot_write(f"cannot write {quoted(out)}", error) from None
        except sqlite3.Error as error:
            raise cannot_write(f"cannot write {quoted(out)}", self._explained(error)) from None

    def _prepare(self) -> None:
        connection = self._connection
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a new file, before anything is in it
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            kind, version, tables = (
                connection.execute(query).fetchone()[0]
                for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
            )
            connection.execute("COMMIT")
            if tables and (kind, version) != (_APPLICATION, _VERSION):
                raise ConfigError(f"{quoted(self.path)} exists and is no spool of this version; move it away")
            if not tables:
                connection.executescript(_SCHEMA)
            for setting in (
                "journal_mode = WAL",
                "synchronous = FULL",
                f"journal_size_limit = {WAITING_BYTES}",
                "wal_autocheckpoint = 4000",
            ):
                connection.execute(f"PRAGMA {setting}").fetchone()
        except sqlite3.Error as error:
            if _code(error) == sqlite3.SQLITE_BUSY:
                raise ConfigError(f"{quoted(self.path)} is being written to by another process") from None
            if _code(error) == sqlite3.SQLITE_NOTADB:
                raise ConfigError(f"{quoted(self.path)} exists and is no spool; move it away") from None
            raise

    def _resume(self) -> None:
        """Restart the waiting time of unprocessed traces: clients may have been unable to reach this process."""
        queries = (f"SELECT max(last) FROM traces WHERE waiting {which} 0" for which in (">", "="))  # noqa: S608
        last = max(self._connection.execute(query).fetchone()[0] or 0.0 for query in queries)
        self._clock = last - time.monotonic()
        with self._transaction():
            self._connection.execute("UPDATE traces SET last = ? WHERE waiting > 0", (self._now(),))
            self._count()
        newest = "SELECT max(number, coalesce((SELECT max(number) FROM parts), 0)) FROM export"
        self._newest: int = self._connection.execute(newest).fetchone()[0]

    def _explained(self, error: sqlite3.Error) -> OSError:
        damaged = _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        return OSError(f"the spool {self.path} is damaged: {error}; move it away" if damaged else str(error))

    @contextlib.contextmanager
    def _transaction(self) -> Generator[None]:
        """A transaction, synced to disk at its end. Raises OSError."""
        with self._lock:
            if not self._is_in_place():
                raise OSError(f"the spool {self.path} was moved or removed; start the command again")
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except BaseException as error:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise self._explained(error) from None
                raise

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(self._identity, self.path.stat())
        except FileNotFoundError:
            return False

    async def append(self, parts: Sequence[TracePart]) -> None:
        """Write the parts of a request, and return once they are on disk.

        Raises:
            SpoolFull: Too much waits already.
            OSError: They could not be written.
        """
        size = sum(len(part.body) for part in parts)
        if self._size + size > WAITING_BYTES and self._queue:
            raise SpoolFull
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((parts, written))
        self._size += size
        if self._task is None:
            self._task = asyncio.create_task(self._write_all())
        await asyncio.shield(written)

    async def _write_all(self) -> None:
        while self._queue:
            batch, self._queue = self._queue, []
            try:
                await sync.call(self._write, [part for parts, _ in batch for part in parts])
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for these parts any more
                failure = error if isinstance(error, OSError) else OSError(described(error))
                for _, written in batch:
                    written.set_exception(failure)
                    written.exception()  # its request may be gone
            else:
                for _, written in batch:
                    written.set_result(None)
            self._size = sum(len(part.body) for parts, _ in self._queue for part in parts)
        self._task = None

    def _write(self, parts: Sequence[TracePart]) -> None:
        with self._lock:
            with self._transaction():
                waiting, late = self._store(parts, self._now())
            self.waiting += waiting
            self.late += late
            self._fresh = list(enumerate((part.body for part in parts), self._newest - len(parts) + 1))
            self._follow()
            self._fresh = []

    def _now(self) -> float:
        """Seconds on a clock that continues where it was when the spool was last closed, regardless of the system's
        clock."""
        return time.monotonic() + self._clock

    def _store(self, parts: Sequence[TracePart], now: float) -> tuple[int, int]:
        """Insert parts. Returns how many of their spans and log records wait to be processed, and how many came late.

        One statement per part would wait for the interpreter's lock once per part.
        """
        found = "SELECT * FROM traces WHERE trace IN (SELECT value FROM json_each(?))"
        keys = json.dumps([self._logs, *(part.trace for part in parts)])
        traces = {row[0]: row[1:] for row in self._connection.execute(found, (keys,))}
        rows, waiting, late = list[tuple[Any, ...]](), 0, 0
        for number, part in enumerate(parts, self._newest + 1):
            if not part.trace and (row := traces.get(self._logs)) and (row[5] or row[4] > MOST_OF_LOGS):
                self._logs = _new_key()
            key = part.trace or self._logs
            last, rooted, before, _, size, passed = traces.get(key, (now, not part.trace, 0, 0, 0, False))
            size += len(part.body)
            waits = part.records if self._scored and not (passed and size > MOST_OF_TRACE) else 0
            last = now if waits and part.trace else last
            traces[key] = (last, rooted or part.rooted, before + waits, number, size, passed)
            rows.append((number, key, waits, part.body))
            waiting, late = waiting + waits, late + (part.records if passed else 0)
        changed = [(key, *row) for key, row in traces.items() if row[3] > self._newest]
        for some in chunks(rows, _ROWS):
            self._insert("INSERT INTO parts", some)
        for some in chunks(changed, _ROWS):
            self._insert("REPLACE INTO traces", some)
        self._newest += len(parts)
        return waiting, late

    def _insert(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        places = f"({', '.join('?' * len(rows[0]))})"
        self._connection.execute(
            f"{statement} VALUES {', '.join([places] * len(rows))}", [value for row in rows for value in row]
        )

    def _prune(self) -> None:
        """Remove the oldest traces above the limits, if they are in the file of traces."""
        pages, free, size = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        used = (pages - free) * size
        with self._transaction():
            if used > KEPT_BYTES:
                self._remove("waiting = 0")
            if used > MOST_BYTES:
                self.dropped += self._remove("waiting > 0")
                self._count()
        if free * size > WAITING_BYTES:
            self._connection.executescript("PRAGMA incremental_vacuum(10000)")

    def _remove(self, which: str) -> int:
        oldest = f"SELECT trace, waiting FROM traces WHERE {which} AND newest <= ? ORDER BY last LIMIT ?"  # noqa: S608
        rows = self._connection.execute(oldest, (self._noted.number, _PRUNED)).fetchall()
        traces = json.dumps([trace for trace, _ in rows])
        for table in ("parts", "traces"):
            self._connection.execute(f"DELETE FROM {table} WHERE trace IN (SELECT value FROM json_each(?))", (traces,))  # noqa: S608
        return sum(waiting for _, waiting in rows)

    def _count(self) -> None:
        count = "SELECT coalesce(sum(waiting), 0) FROM traces WHERE waiting > 0"
        self.waiting: int = self._connection.execute(count).fetchone()[0]
        """The number of spans and log records that weren't passed on to scoring yet."""

    def _follow(self, *, at_end: bool = False) -> None:
        """Append new parts to the file of traces; periodically sync it and store the position."""
        try:
            rotated = self._export.write()
            now = time.monotonic()
            if rotated or at_end or now - self._noted_at > PAUSE:
                self._noted_at, position = now, self._export.sync()
                with self._transaction():
                    self._connection.execute("UPDATE export SET number = ?, file = ?, size = ?", position)
                self._noted = position
                self._prune()
            self.export_error = ""
        except (OSError, ConfigError, sqlite3.Error) as error:  # the parts are in the spool, and go to the file later
            problem = str(getattr(error, "strerror", "") or error)
            if not self.export_error:
                log.warning("%s", safe(masked(f"what is received is only in {self.path.name} for now: {problem}"), 500))
            self.export_error = problem

    def _after(self, number: int) -> Iterator[tuple[int, bytes]]:
        """The parts with higher numbers, which the file of traces doesn't have yet."""
        if self._fresh and self._fresh[0][0] == number + 1:
            return iter(self._fresh)
        return self._connection.execute("SELECT number, body FROM parts WHERE number > ? ORDER BY number", (number,))

    def complete(self, quiet: float, *, all: bool = False) -> list[Complete]:
        """The next unprocessed traces without a new part for this many seconds; or all of them. Raises OSError."""
        query = """
            SELECT trace, newest, waiting, passed FROM traces
            WHERE waiting > 0 AND (
                :all OR size > :most OR last <= :now - :quiet * CASE WHEN rooted THEN 1 ELSE :patience END
            )
            ORDER BY last, newest LIMIT :limit
        """
        names = {"all": all, "most": MOST_OF_TRACE, "now": self._now(), "quiet": quiet}
        names |= {"patience": PATIENCE, "limit": BATCH_SIZE}
        with self._transaction():
            rows = self._connection.execute(query, names).fetchall()
            passed = "UPDATE traces SET passed = 1 WHERE trace = ?"
            self._connection.executemany(passed, [row[:1] for row in rows])
        return [Complete(key, newest, waiting, bool(again)) for key, newest, waiting, again in rows]

    def parts(self, complete: Complete) -> list[bytes]:
        """The parts of a trace, up to `MOST_OF_TRACE`. Raises OSError."""
        query = "SELECT body FROM parts WHERE trace = ? AND number <= ? ORDER BY number"
        bodies, left = list[bytes](), MOST_OF_TRACE
        with self._transaction():
            for (body,) in self._connection.execute(query, (complete.key, complete.newest)):
                bodies.append(body)
                left -= len(body)
                if left < 0:
                    break
        return bodies

    def done(self, traces: Sequence[Complete]) -> None:
        """Mark traces as processed. Parts that came in the meantime still wait. Raises OSError."""
        came = "SELECT coalesce(sum(waits), 0) FROM parts WHERE trace = :key AND number > :newest"
        with self._transaction():
            update = f"UPDATE traces SET waiting = ({came}) WHERE trace = :key"  # noqa: S608
            self._connection.executemany(update, [vars(each) for each in traces])
            self._count()

    async def close(self) -> None:
        """Write all waiting parts, and close the files."""
        while self._task is not None:
            await asyncio.shield(self._task)
        with self._lock:
            if self._is_in_place():
                self._follow(at_end=True)
            self._export.close()
            self._connection.close()


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary code; 0 for an error of the driver."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _new_key() -> str:
    return f"{_LOGS}{secrets.token_hex(8)}"
