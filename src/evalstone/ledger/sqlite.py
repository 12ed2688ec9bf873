"""A ledger in a SQLite file, in WAL mode."""

from __future__ import annotations

import functools
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from evalstone._core.files import cannot_write, make_folder, resolved
from evalstone._core.front_ends import Setting
from evalstone.errors import ConfigError, LedgerBusyError, LedgerError, LedgerValueError
from evalstone.ledger import base
from evalstone.ledger.database import Cursor, Database, Values

DRIVER_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What `sqlite3` raises: the second in place of an error whose message quotes a damaged name."""
CHECK_INTERVAL = 0.02
"""The minimum number of seconds between checks that the files are still in place."""
_TERMS = (
    (r"\bepoch\(\)", "((julianday('now') - 2440587.5) * 86400.0)"),
    (r"\btexts\((:\w+)\)", r"(SELECT value FROM json_each(\1))"),
    (
        r"\bkeys\((:\w+)\)",
        r"(SELECT json_extract(value, '$[0]') AS question, json_extract(value, '$[1]') AS judge, "
        r"json_extract(value, '$[2]') AS repeat_index FROM json_each(\1))",
    ),
    (r" FOR UPDATE SKIP LOCKED\b", ""),
)


class SQLite(Database):
    """One file, in WAL mode."""

    single_writer = True
    creating = {"serial": "INTEGER PRIMARY KEY", "bytes": "BLOB", "changing": " WITHOUT ROWID"}  # noqa: RUF012
    _columns = (
        "SELECT found.name, columns.name FROM sqlite_master AS found, pragma_table_info(found.name) AS columns "
        "WHERE found.type = 'table' AND found.name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    )
    error = DRIVER_ERRORS

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Create the file and its folder, accessible to their owner only, unless it is only read. SQLite's other files
        get the file's mode."""
        super().__init__(read_only=read_only)
        self.location, self._path = str(path), path.absolute()
        self._files: list[tuple[Path, tuple[int, int]]] = []
        self._next_check = 0.0
        if read_only:
            return
        try:
            make_folder(path.parent)
            # Closing a file releases all locks that the process has on it, so no thread may use it before that.
            with _creating, suppress(FileExistsError):
                os.close(os.open(resolved(path), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            raise cannot_write(f"the ledger {path} can't be created", error, LedgerError) from None

    def connect(self) -> None:
        self.connection = self._reading() if self.read_only else self._connected(self.location)

    def _connected(self, name: str, *, uri: bool = False) -> sqlite3.Connection:
        # One thread at a time uses the connection, but not always the same one (async_ledger.py). The driver would
        # begin a transaction at the first write, too late to wait for other writers.
        return sqlite3.connect(name, timeout=base.WAIT, check_same_thread=False, isolation_level=None, uri=uri)

    def _reading(self) -> sqlite3.Connection:
        """A connection that writes nothing to the file. SQLite's other files are gone when the last one is closed; with
        its own mode for reading, they would stay."""
        target = resolved(self._path)
        file = target.as_uri()
        if target.exists() and not os.access(target, os.W_OK) and not self._log.exists():
            # Here, the other files would stay, and who may write the ledger may not write those.
            return self._connected(f"{file}?mode=ro&immutable=1", uri=True)
        connection = self._connected(f"{file}?mode=rw", uri=True)
        try:
            connection.execute("PRAGMA query_only=ON")
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        except sqlite3.OperationalError as error:
            connection.close()
            if _code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or self._has_writer():
                raise
            # Nobody who has the rights of this process can write it, so it is read as it is.
            return self._connected(f"{file}?mode=ro&immutable=1", uri=True)
        except BaseException:
            connection.close()
            raise
        return connection

    def _has_writer(self) -> bool:
        """Whether there are writes that aren't in the file itself yet."""
        return not resolved(self._path).exists() or (self._log.exists() and self._log.stat().st_size > 0)

    @property
    def _log(self) -> Path:
        target = resolved(self._path)
        return target.with_name(f"{target.name}-wal")

    def execute(self, statement: str, values: Values | None = None) -> Cursor:
        return self.connection.execute(_translated(statement), values or {})

    def execute_many(self, statement: str, rows: Sequence[Values]) -> int:
        return self.connection.executemany(_translated(statement), rows).rowcount

    def stream(self, statement: str, values: Values | None = None) -> Iterable[Any]:
        return self.execute(statement, values)

    def _begin(self, *, writing: bool, snapshot: bool) -> None:
        if writing or snapshot:
            self.connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")

    def configure(self, deadline: float) -> None:
        while True:
            try:
                self.wait_for(deadline - time.monotonic())
                self.connection.execute("PRAGMA journal_mode=WAL")
                self.connection.execute("PRAGMA synchronous=NORMAL")
                return
            except sqlite3.OperationalError as error:
                # SQLite doesn't wait to change to WAL mode, which two processes on a new file both do.
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def read_back(self, run: str) -> None:
        # A new connection has none of the records cached.
        with closing(self._connected(self.location)) as connection:
            connection.execute("SELECT sum(length(body)) FROM records WHERE run = ?", (run,)).fetchall()

    def remember_files(self) -> None:
        target = resolved(self._path)
        # Processes that have different -shm files don't notice each other's writes, and destroy the file.
        for file in (self._path, *(target.with_name(f"{target.name}-{part}") for part in ("wal", "shm"))):
            if file.exists():
                self._files.append((file, _identity(file.stat())))

    def check_files(self, *, last: bool = False) -> None:
        """Raise LedgerError if the ledger's files were moved or deleted. It checks at most every `CHECK_INTERVAL`
        seconds, and always if this is the last check."""
        now = time.monotonic()
        if now < self._next_check and not last:
            return
        self._next_check = now + CHECK_INTERVAL
        for file, identity in self._files:
            try:
                status = file.stat()
            except (FileNotFoundError, NotADirectoryError):
                what = "deleted or moved"
            except OSError as error:
                raise LedgerError(f"the ledger {self.location} can't be reached any more: {error.strerror}") from None
            else:
                if _identity(status) != identity:
                    what = "replaced by another file"
                elif status.st_size == 0 and file is self._path:
                    what = "emptied"
                else:
                    continue
            which = f"the ledger {self.location}" if file is self._path else f"{file}, a part of the ledger,"
            raise LedgerError(
                f"{which} was {what} while it was in use. What was stored in it since may be lost; unless it is put "
                "back in its place with its -wal file, lost judge calls are made and paid for again"
            )

    def wait_for(self, seconds: float) -> None:
        self.connection.execute(f"PRAGMA busy_timeout={max(int(1000 * seconds), 0)}")

    def size(self) -> int:
        files = (self._path, self._path.with_name(self._path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def check(self) -> list[str]:
        problems = [str(row[0]) for row in self.connection.execute("PRAGMA quick_check(20)")]
        return [] if problems == ["ok"] else problems

    def is_damage(self, error: Exception) -> bool:
        # The driver's error for invalid text has no code.
        return _code(error) in (0, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR)

    def compact(self) -> None:
        self.connection.execute("VACUUM")
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def may_write(self) -> bool:
        target = resolved(self._path)
        return os.access(target, os.W_OK) and os.access(target.parent, os.W_OK)

    def may_pass(self, error: Exception) -> bool:
        return False

    def explain(self, error: Exception, *, written: bool) -> LedgerError | ConfigError:
        where = f"the ledger {self.location}"
        match _code(error):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return LedgerBusyError(f"another process has locked {where} for {base.WAIT:g} seconds")
            case sqlite3.SQLITE_READONLY if not written:
                text = f"{where} can't be written: {error}. Make the file and its folder writable "
                text += "(SQLite writes files next to it), or name another ledger with "
                return ConfigError(text, Setting("ledger", ...))
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM if not written:
                return ConfigError(f"{where} can't be used: {error}; name another one with ", Setting("ledger", ...))
            case sqlite3.SQLITE_TOOBIG | sqlite3.SQLITE_CONSTRAINT:
                return LedgerValueError(f"{where} refuses a value: {error}")
            case sqlite3.SQLITE_NOTADB if written:
                text = f"{where} was overwritten while it was in use: {error}. Restore a backup"
            case sqlite3.SQLITE_NOTADB:
                text = (
                    f"{self.location} is not an evalstone ledger: it is not a SQLite database. Name another one with "
                )
                backup = ". If it was a ledger, its first page is destroyed: restore a backup"
                return ConfigError(text, Setting("ledger", ...), backup)
            case sqlite3.SQLITE_CORRUPT:
                text = f"{where} is damaged: {error}. "
                text += f"Check it with `evalstone ledger verify --ledger {self.location}`; "
                text += f"copy the readable rows with `evalstone ledger recover {self.location} --into NEW.db`"
            case sqlite3.SQLITE_FULL:
                text = f"the disk is full: {where} can't be written. "
                text += "Free some space. What was written before is kept: the same call goes on from there"
            case _:
                text = f"{where} can't be used: {error}"
        return LedgerError(text)


_creating = threading.Lock()


@functools.lru_cache(maxsize=256)
def _translated(statement: str) -> str:
    for term, text in _TERMS:
        statement = re.sub(term, text, statement)
    return statement


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _code(error: Exception) -> int:
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    code: int = getattr(error, "sqlite_errorcode", 0)
    # The file that is mapped into memory can't grow, which even reading needs.
    return sqlite3.SQLITE_FULL if code == sqlite3.SQLITE_IOERR_SHMSIZE else code & 0xFF
