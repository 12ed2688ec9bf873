"""The differences between SQLite and PostgreSQL, and transactions. The rest of the ledger is the same for both."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import sqlalchemy as sa
import sqlalchemy.exc
from sqlalchemy import event

from evalstone.errors import ConfigError, LedgerError, MissingDependency
from evalstone.ledger.location import EXPECTED, file_of, scheme_of, shown

WAIT = 30
"""Seconds to wait for another process to end a transaction."""


_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"


class SQLite:
    """One file, in WAL mode."""

    single_writer = True
    """Whether a writing transaction keeps all others from writing."""
    now = "(julianday('now') - 2440587.5) * 86400.0"
    """SQL for the seconds since 1970."""
    lookup = (
        "SELECT answers.* FROM json_each(:keys) AS keys CROSS JOIN answers "
        "ON answers.question = json_extract(keys.value, '$[0]') AND answers.judge = json_extract(keys.value, '$[1]') "
        "AND answers.repeat_index = json_extract(keys.value, '$[2]')"
    )
    """SQL for the answers with these keys, which are given as JSON: [[question, judge, repeat index], ...]."""

    def __init__(self, url: str | Path) -> None:
        self._url = url
        self.location = shown(url)

    def engine(self) -> sa.Engine:
        """An engine for the ledger's URL. Creates the folder of the file."""
        path = file_of(self._url) or Path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LedgerError(f"the ledger's folder {path.parent} can't be created: {error.strerror}") from None
        url = sa.URL.create("sqlite", database=str(path))
        # Named parameters, as psycopg has them: statements sent to the driver as text take the same rows for both.
        settings: Any = {"paramstyle": "named", "poolclass": sa.pool.NullPool}
        # One thread at a time uses the connection, but not always the same one (async_ledger.py).
        settings["connect_args"] = {"timeout": WAIT, "check_same_thread": False}
        # The driver would begin a transaction at the first write, too late to wait for other writers.
        settings["connect_args"]["isolation_level"] = None
        engine = sa.create_engine(url, **settings)
        event.listen(engine, "begin", _begin)
        return engine

    def insert(self, table: sa.Table) -> Any:
        """An INSERT with `on_conflict_do_update` and `on_conflict_do_nothing`."""
        from sqlalchemy.dialects.sqlite import insert  # noqa: PLC0415 - only the dialect that is used is loaded

        return insert(table)

    def text(self, statement: str) -> str:
        """A statement with parameters like `:name` as the driver takes it."""
        return statement

    def configure(self, connection: sa.Connection) -> None:
        """Apply the settings of a ledger to a database that is known to be one."""
        deadline = time.monotonic() + WAIT
        while True:
            try:
                with autocommit(connection):
                    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                    connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
                return
            except sqlalchemy.exc.OperationalError as error:
                # SQLite doesn't wait to change to WAL mode, which two processes on a new file both do.
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def table_names(self, connection: sa.Connection) -> set[str]:
        """The tables in the database, or in the first schema of the search path."""
        return set(connection.exec_driver_sql(_TABLES).scalars())

    def set_busy_timeout(self, connection: sa.Connection, seconds: float = WAIT) -> None:
        """How long a writing transaction waits for another process."""
        driver: Any = connection.connection.driver_connection
        driver.execute(f"PRAGMA busy_timeout={int(1000 * seconds)}")

    def is_busy(self, error: sqlalchemy.exc.DBAPIError) -> bool:
        """Whether an error means that another process is writing."""
        return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

    def lock_schema(self, connection: sa.Connection) -> None:
        """Keep other processes from creating the tables; a writing transaction of SQLite does that already."""

    def size(self, connection: sa.Connection) -> int:
        """Size of the ledger in bytes."""
        path = file_of(self._url) or Path()
        files = (path, path.with_name(path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def check(self, connection: sa.Connection) -> list[str]:
        """Damage that the database reports for its file; empty if there is none."""
        found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA quick_check(20)")]
        return [] if found == ["ok"] else found

    def compact(self, connection: sa.Connection) -> None:
        """Return the space of deleted rows."""
        with autocommit(connection):
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def explain(self, error: sqlalchemy.exc.DBAPIError) -> str:
        """A message for people: what an error means, and what to do about it."""
        match _code(error):
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return (
                    f"the ledger {self.location} can't be used: {error.orig}. The file is damaged, or is not a ledger. "
                    f"Check it with `evalstone ledger verify --ledger {self.location}`; copy the readable rows with "
                    f"`evalstone ledger recover {self.location} --into NEW.db`"
                )
            case sqlite3.SQLITE_FULL:
                return (
                    f"the disk is full: the ledger {self.location} can't be written. "
                    "Earlier results are saved; free some space and rerun the same command to resume"
                )
            case _ if self.is_busy(error):
                return f"another process has locked the ledger {self.location} for {WAIT} seconds"
            case _:
                return f"the ledger {self.location} can't be used: {error.orig}"


def _begin(connection: sa.Connection) -> None:
    if begin := connection.info.get("begin", "BEGIN"):
        connection.exec_driver_sql(begin)


def _code(error: sqlalchemy.exc.DBAPIError) -> int:
    return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF


class PostgreSQL:
    """A database, or a schema of one, on a PostgreSQL server."""

    single_writer = False
    now = "extract(epoch from clock_timestamp())"
    lookup = (
        "SELECT answers.* FROM json_array_elements(CAST(:keys AS json)) AS key JOIN answers "
        "ON answers.question = key ->> 0 AND answers.judge = key ->> 1 "
        "AND answers.repeat_index = CAST(key ->> 2 AS integer)"
    )

    def __init__(self, url: str | Path) -> None:
        self._url = url
        self.location = shown(url)

    def engine(self) -> sa.Engine:
        _, _, rest = str(self._url).partition("://")
        try:
            url = sa.make_url(f"postgresql+psycopg://{rest}")
            settings = {"connect_timeout": 10, "application_name": "evalstone"}
            return sa.create_engine(url, connect_args=settings, poolclass=sa.pool.NullPool)
        except (sqlalchemy.exc.ArgumentError, ValueError):
            raise ConfigError(f"the ledger's URL {self.location} can't be parsed; {EXPECTED}") from None
        except ImportError:
            raise MissingDependency("psycopg", "postgres") from None

    def insert(self, table: sa.Table) -> Any:
        from sqlalchemy.dialects.postgresql import insert  # noqa: PLC0415 - only the dialect that is used is loaded

        return insert(table)

    def table_names(self, connection: sa.Connection) -> set[str]:
        return set(sa.inspect(connection).get_table_names())

    def configure(self, connection: sa.Connection) -> None:
        """Nothing to set: the server is durable by default."""

    def set_busy_timeout(self, connection: sa.Connection, seconds: float = WAIT) -> None:
        """Nothing to set: rows are locked, not the database."""

    def is_busy(self, error: sqlalchemy.exc.DBAPIError) -> bool:
        return False

    def check(self, connection: sa.Connection) -> list[str]:
        return []

    def compact(self, connection: sa.Connection) -> None:
        """Nothing to do: the server's autovacuum returns the space."""

    def text(self, statement: str) -> str:
        return re.sub(r":(\w+)", r"%(\1)s", statement)

    def lock_schema(self, connection: sa.Connection) -> None:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext("evalstone ledger schema"))))

    def size(self, connection: sa.Connection) -> int:
        query = sa.text(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'"
        )
        return int(connection.scalar(query) or 0)

    def explain(self, error: sqlalchemy.exc.DBAPIError) -> str:
        text = " ".join(str(error.orig).split())
        code = str(getattr(error.orig, "sqlstate", None) or "")
        if code.startswith("53"):
            return f"the server of the ledger {self.location} is out of space: {text}. Earlier results are saved"
        if error.connection_invalidated:
            return f"the connection to the ledger {self.location} was lost: {text}. Rerun the same command to resume"
        return f"the ledger {self.location} can't be used: {text}"


Dialect: TypeAlias = SQLite | PostgreSQL


def dialect_of(url: str | Path) -> Dialect:
    """The dialect of a ledger's URL.

    Raises:
        ConfigError: The URL is neither SQLite nor PostgreSQL.
    """
    return SQLite(url) if scheme_of(url) == "sqlite" else PostgreSQL(url)


@contextmanager
def transaction(connection: sa.Connection, *, writing: bool) -> Generator[sa.Connection]:
    """A transaction. A writing one waits for other writers before it reads, so what it reads stays true."""
    connection.info["begin"] = "BEGIN IMMEDIATE" if writing else "BEGIN"
    with connection.begin():
        yield connection


@contextmanager
def autocommit(connection: sa.Connection) -> Generator[None]:
    """For SQLite statements that can't run within a transaction."""
    connection.info["begin"] = ""
    with connection.begin():
        yield


def execute_rows(connection: sa.Connection, statement: str, rows: Sequence[Mapping[str, Any]]) -> int:
    """Execute a statement of text for each row.

    SQLAlchemy looks up a statement, builds its parameters and prepares its result on every call, which takes longer
    than SQLite does for a few rows. Text goes to the driver as it is.

    Returns:
        How many rows of the table changed.
    """
    options = {"preserve_rowcount": True}
    return connection.exec_driver_sql(statement, list(rows), execution_options=options).rowcount
