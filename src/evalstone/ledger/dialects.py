"""What SQLite and PostgreSQL do differently, all of it. Everything else in the ledger is the same for both."""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy as sa
import sqlalchemy.exc
from sqlalchemy import event

from evalstone.errors import ConfigError, LedgerError, MissingDependency
from evalstone.ledger.location import EXPECTED, file_of, scheme_of, shown

WAIT = 30
"""Seconds that a process waits for another to end a transaction."""


class Dialect(ABC):
    """One kind of database. single_writer: whether a transaction that writes keeps every other one from writing."""

    single_writer: ClassVar[bool]
    now: ClassVar[str]

    def __init__(self, url: str | Path) -> None:
        self._url = url
        self.place = shown(url)

    @abstractmethod
    def engine(self) -> sa.Engine:
        """How to connect. Raises LedgerError or ConfigError when that cannot be."""

    @abstractmethod
    def insert(self, table: sa.Table) -> Any:
        """An INSERT that knows `on_conflict_do_update` and `on_conflict_do_nothing`."""

    @abstractmethod
    def settle(self, connection: sa.Connection) -> None:
        """Settings that a ledger keeps, once it is known to be one."""

    @abstractmethod
    def wait_for_others(self, connection: sa.Connection, seconds: float) -> None:
        """How long a transaction that writes waits for another process's to end, from now on, where that can be set."""

    @abstractmethod
    def is_busy(self, error: sqlalchemy.exc.DBAPIError) -> bool:
        """Whether an error says that another process writes."""

    @abstractmethod
    def lock_layout(self, connection: sa.Connection) -> None:
        """Within a transaction that writes: keep other processes from changing the layout until it ends."""

    @abstractmethod
    def size(self, connection: sa.Connection) -> int:
        """The bytes that the ledger takes."""

    @abstractmethod
    def check(self, connection: sa.Connection) -> list[str]:
        """What the database itself finds wrong with its files; empty when nothing is."""

    @abstractmethod
    def compact(self, connection: sa.Connection) -> None:
        """Give back the room of deleted rows."""

    @abstractmethod
    def explained(self, error: sqlalchemy.exc.DBAPIError) -> str:
        """What an error means, and what to do about it."""


class SQLite(Dialect):
    """One file, in WAL mode."""

    single_writer = True
    now = "(julianday('now') - 2440587.5) * 86400.0"

    def engine(self) -> sa.Engine:
        path = file_of(self._url) or Path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LedgerError(f"the ledger's folder {path.parent} cannot be made: {error.strerror}") from None
        url = sa.URL.create("sqlite", database=str(path))
        # Parameters by name, as psycopg has them: statements that go to the driver as text take the same rows for both.
        settings: Any = {"paramstyle": "named", "poolclass": sa.pool.NullPool}
        # One thread at a time uses a connection, but not always the same one (async_ledger.py).
        settings["connect_args"] = {"timeout": WAIT, "check_same_thread": False}
        engine = sa.create_engine(url, **settings)
        event.listen(engine, "connect", _explicit)
        event.listen(engine, "begin", _begin)
        return engine

    def insert(self, table: sa.Table) -> Any:
        from sqlalchemy.dialects.sqlite import insert  # noqa: PLC0415 - only the dialect that is used is loaded

        return insert(table)

    def settle(self, connection: sa.Connection) -> None:
        deadline = time.monotonic() + WAIT
        while True:
            try:
                with outside(connection):
                    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                    connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
                return
            except sqlalchemy.exc.OperationalError as error:
                # SQLite does not wait for its turn to change to WAL mode, as two processes on a new file both do.
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def wait_for_others(self, connection: sa.Connection, seconds: float) -> None:
        driver: Any = connection.connection.driver_connection
        driver.execute(f"PRAGMA busy_timeout={int(1000 * seconds)}")

    def is_busy(self, error: sqlalchemy.exc.DBAPIError) -> bool:
        return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

    def lock_layout(self, connection: sa.Connection) -> None:
        """Nothing to do: whoever writes, writes alone."""

    def size(self, connection: sa.Connection) -> int:
        path = file_of(self._url) or Path()
        files = (path, path.with_name(path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def check(self, connection: sa.Connection) -> list[str]:
        found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA quick_check(20)")]
        return [] if found == ["ok"] else found

    def compact(self, connection: sa.Connection) -> None:
        with outside(connection):
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def explained(self, error: sqlalchemy.exc.DBAPIError) -> str:
        match _code(error):
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return (
                    f"the ledger {self.place} cannot be used: {error.orig}. If it was a ledger it is damaged: "
                    f"`evalstone ledger verify --ledger {self.place}` says how far, and "
                    f"`evalstone ledger salvage {self.place} --into NEW.db` copies what can be read"
                )
            case sqlite3.SQLITE_FULL:
                return (
                    f"the disk is full: nothing more can be written to the ledger {self.place}. "
                    "What was written before stands; make room, and the same command goes on from there"
                )
            case _ if self.is_busy(error):
                return f"another process has kept the ledger {self.place} locked for {WAIT} seconds"
            case _:
                return f"the ledger {self.place} cannot be used: {error.orig}"


def _explicit(driver: Any, _: object) -> None:
    # The driver would begin transactions by itself, but only at the first row written: too late to wait one's turn.
    driver.isolation_level = None


def _begin(connection: sa.Connection) -> None:
    if begin := connection.info.get("begin", "BEGIN"):
        connection.exec_driver_sql(begin)


def _code(error: sqlalchemy.exc.DBAPIError) -> int:
    return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF


class PostgreSQL(Dialect):
    """A database, or a schema of one, on a PostgreSQL server."""

    single_writer = False
    now = "extract(epoch from clock_timestamp())"

    def engine(self) -> sa.Engine:
        _, _, rest = str(self._url).partition("://")
        try:
            url = sa.make_url(f"postgresql+psycopg://{rest}")
            settings = {"connect_timeout": 10, "application_name": "evalstone"}
            return sa.create_engine(url, connect_args=settings, poolclass=sa.pool.NullPool)
        except (sqlalchemy.exc.ArgumentError, ValueError):
            raise ConfigError(f"the ledger's URL {self.place} cannot be read; {EXPECTED}") from None
        except ImportError:
            raise MissingDependency("psycopg", "postgres") from None

    def insert(self, table: sa.Table) -> Any:
        from sqlalchemy.dialects.postgresql import insert  # noqa: PLC0415 - only the dialect that is used is loaded

        return insert(table)

    def settle(self, connection: sa.Connection) -> None:
        """Nothing to set: PostgreSQL is durable by itself."""

    def wait_for_others(self, connection: sa.Connection, seconds: float) -> None:
        """Nothing to do: rows are locked, not the database."""

    def is_busy(self, error: sqlalchemy.exc.DBAPIError) -> bool:
        return False

    def lock_layout(self, connection: sa.Connection) -> None:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext("evalstone ledger layout"))))

    def size(self, connection: sa.Connection) -> int:
        query = sa.text(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'"
        )
        return int(connection.scalar(query) or 0)

    def check(self, connection: sa.Connection) -> list[str]:
        return []

    def compact(self, connection: sa.Connection) -> None:
        """Nothing to do: the server's autovacuum does it."""

    def explained(self, error: sqlalchemy.exc.DBAPIError) -> str:
        text = " ".join(str(error.orig).split())
        code = str(getattr(error.orig, "sqlstate", None) or "")
        if code.startswith("53"):
            return f"the server of the ledger {self.place} is out of room: {text}. What was written before stands"
        if error.connection_invalidated:
            return f"the connection to the ledger {self.place} was lost: {text}. The same command goes on from there"
        return f"the ledger {self.place} cannot be used: {text}"


def dialect_of(url: str | Path) -> Dialect:
    """The dialect of a ledger's URL. Raises ConfigError for a URL of another kind."""
    return SQLite(url) if scheme_of(url) == "sqlite" else PostgreSQL(url)


@contextmanager
def transaction(connection: sa.Connection, *, writing: bool) -> Generator[sa.Connection]:
    """A transaction. One that writes waits for its turn before it reads, so that what it read stays true."""
    connection.info["begin"] = "BEGIN IMMEDIATE" if writing else "BEGIN"
    with connection.begin():
        yield connection


@contextmanager
def outside(connection: sa.Connection) -> Generator[None]:
    """Statements of SQLite that no transaction may hold."""
    connection.info["begin"] = ""
    with connection.begin():
        yield
