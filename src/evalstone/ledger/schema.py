# ruff: noqa: S608 - statements are put together from our own names
"""The ledger's tables and statements, and the differences between SQLite and PostgreSQL.

The tables have one version until the first release. A later version adds the folder `migrations`: Alembic revisions
that lead from revision "1", the tables below, to `SCHEMA_VERSION`. A new database is created directly and stamped with
`SCHEMA_VERSION`, so Alembic is imported for older ledgers only (`version_table="ledger_version"`).
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import sqlalchemy.exc

from evalstone._core.files import cannot_write, make_folder
from evalstone._core.redaction import register_environment, register_url
from evalstone.errors import (
    ConfigError,
    LedgerBusyError,
    LedgerConnectionError,
    LedgerError,
    LedgerValueError,
    MissingDependency,
)
from evalstone.ledger import base
from evalstone.ledger.base import EXPECTED, USAGE_COLUMNS, shown

SCHEMA_VERSION = "1"
CHECK_INTERVAL = 0.02
"""The minimum number of seconds between checks that the files are still in place."""

metadata = sa.MetaData()


def _columns(kind: Any, *names: str, **options: Any) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, **options) for name in names]


def _position() -> sa.Column[int]:
    """The order of writing. SQLite assigns row numbers only to a column whose type is INTEGER."""
    return sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), primary_key=True)


def _answer_key() -> list[sa.Column[Any]]:
    texts = _columns(sa.Text, "question", "judge", primary_key=True)
    return [*texts, sa.Column("repeat_index", sa.Integer, primary_key=True, autoincrement=False)]


ledger_version = sa.Table("ledger_version", metadata, sa.Column("version_num", sa.String(32), primary_key=True))
datasets = sa.Table(
    "datasets",
    metadata,
    sa.Column("version", sa.Text, primary_key=True),
    *_columns(sa.Text, "name", "first_seen", nullable=False),
    sa.Column("samples", sa.Integer, nullable=False),
)
samples = sa.Table(
    "samples",
    metadata,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
)
items = sa.Table(
    "items",
    metadata,
    sa.Column("dataset", sa.Text, primary_key=True),
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
    *_columns(sa.Text, "id", "sample", nullable=False),
)
runs = sa.Table(
    "runs",
    metadata,
    _position(),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("plan", sa.Text, nullable=False, index=True),
    *_columns(sa.Text, "started", "metadata", nullable=False),
    *_columns(sa.Text, "finished", "dataset"),
    *_columns(sa.Float, "cost", "reserved", nullable=False),
    sa.Column("unpriced", sa.Integer, nullable=False),
    # The last payment added to the cost, so that repeating its transaction adds nothing.
    sa.Column("payment", sa.Text),
)
answers = sa.Table(
    "answers",
    metadata,
    *_answer_key(),
    *_columns(sa.Text, "kind", "reply", "refused_settings", "run", nullable=False),
    *_columns(sa.Integer, *USAGE_COLUMNS, nullable=False),
    *_columns(sa.Float, "seconds", "written", nullable=False),
    *_columns(sa.Float, "cost", "confidence"),
    sa.Column("alternatives", sa.Text),
)
records = sa.Table(
    "records",
    metadata,
    _position(),
    # `cell` is a hash of sample, scorer and trial: ids may be longer than an entry of a PostgreSQL index.
    *_columns(sa.Text, "run", "cell", "sample", "scorer", "body", nullable=False),
    sa.UniqueConstraint("run", "cell"),
    sa.Index("records_scorer", "run", "scorer", "position"),
)
leases = sa.Table(
    "leases",
    metadata,
    *_answer_key(),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("expires", sa.Float, nullable=False),
    sqlite_with_rowid=False,  # each question inserts and deletes a row; a second tree for the key doubles that
)
batches = sa.Table(
    "batches",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("judge", sa.Text, nullable=False, index=True),
    *_columns(sa.Text, "run", "metadata", "created", nullable=False),
    sa.Column("questions", sa.Integer, nullable=False),
    sa.Column("cost", sa.Float),
    *_columns(sa.Text, "remote", "collected", "ended"),
)
batch_questions = sa.Table(
    "batch_questions",
    metadata,
    *_columns(sa.Text, "question", "judge", primary_key=True),
    sa.Column("batch", sa.Text, nullable=False, index=True),
    sa.Column("waiting", sa.Boolean, nullable=False),
    *_columns(sa.Integer, "attempts", *USAGE_COLUMNS, nullable=False),
    sa.Column("cost", sa.Float),
    *_columns(sa.Text, "reply", "error", "body"),
)

live_scores = sa.Table(
    "live_scores",
    metadata,
    _position(),
    *_columns(sa.Text, "id", nullable=False, unique=True),
    *_columns(sa.Text, "stream", "source", "scorer", "owner", "worker", "state", nullable=False),
    *_columns(sa.Text, "entity", "trace", "span", "response", "sample"),
    sa.Column("submitted", sa.Float, nullable=False),
    *_columns(sa.Integer, "hour", "takeovers", nullable=False),
    *_columns(sa.Float, "value", "scale", "finished", "cost"),
    sa.Column("kept_reasoning", sa.Boolean),
    sa.Column("body", sa.Text),
)
live_counts = sa.Table(
    "live_counts",
    metadata,
    *_columns(sa.Text, "stream", "scorer", "owner", primary_key=True),
    sa.Column("hour", sa.Integer, primary_key=True, autoincrement=False),
    *_columns(sa.BigInteger, "seen", "filtered", "eligible", "declined", "dropped", "accepted", nullable=False),
)
for _first in ("stream", "scorer", "entity"):
    sa.Index(f"live_scores_{_first}", live_scores.c[_first], live_scores.c.submitted)
sa.Index("live_scores_submitted", live_scores.c.submitted)
sa.Index("live_scores_trace", live_scores.c.trace)
PARTIAL = {
    sa.Index(f"live_scores_{_name}", live_scores.c.stream, _second, sqlite_where=_some): _some
    for _name, _second, _some in (
        ("pending", live_scores.c.submitted, live_scores.c.state == "pending"),
        ("paid", live_scores.c.finished, live_scores.c.cost > 0),
    )
}
"""Partial indexes and their conditions. SQLAlchemy's argument would import the PostgreSQL dialect for SQLite too."""

KEYS: dict[sa.Table, tuple[str, ...]] = {
    datasets: ("version",),
    samples: ("hash",),
    items: ("dataset", "place"),
    runs: ("id",),
    answers: ("question", "judge", "repeat_index"),
    records: ("run", "cell"),
    batches: ("id",),
    batch_questions: ("question", "judge"),
    live_scores: ("id",),
    live_counts: ("stream", "scorer", "owner", "hour"),
}
"""The columns that identify a row. `position` is the order of writing only."""
COLUMNS = {table: [column.name for column in table.columns if column.name != "position"] for table in KEYS}
"""A table's columns in order, without `position`."""
ALL_COLUMNS = {(table.name, column.name) for table in metadata.tables.values() for column in table.columns}


def _insert(table: sa.Table, conflict: str = "DO NOTHING") -> str:
    names = COLUMNS[table]
    values = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values}) ON CONFLICT {conflict}"


def _upsert(table: sa.Table) -> str:
    changed = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[table] if name not in KEYS[table])
    return _insert(table, f"({', '.join(KEYS[table])}) DO UPDATE SET {changed}")


class _Statements:
    """Frequent statements in the driver's syntax, because SQLAlchemy would take longer than SQLite itself.

    Args:
        parameter: The parameter syntax; `\\1` is the name.
        now: An expression for the seconds since 1970.
        keys: A query for the keys in a JSON parameter: `[[question, judge, repeat index], ...]`.
    """

    def __init__(self, parameter: str, now: str, keys: str) -> None:
        def text(statement: str) -> str:
            return re.sub(r":(\w+)", parameter, statement)

        self.insert = {table: text(_insert(table)) for table in KEYS}
        # Counts only grow, even if an earlier process's counts arrive late.
        growing = f"{_upsert(live_counts)} WHERE excluded.seen > live_counts.seen"
        self.insert[live_counts] = text(growing)
        self.finish_score = text(
            "UPDATE live_scores SET state = :state, value = :value, scale = :scale, finished = :finished, "
            "cost = :cost, kept_reasoning = :kept_reasoning, body = :body "
            "WHERE id = :id AND worker = :worker AND state = 'pending'"
        )
        self.upsert_answer, self.upsert_record = text(_upsert(answers)), text(_upsert(records))
        self.pay = text(
            "UPDATE runs SET cost = cost + :cost, unpriced = unpriced + :unpriced, "
            "reserved = reserved + :reserved, payment = :id "
            "WHERE id = :run AND (payment IS NULL OR payment <> :id)"
        )
        key = ", ".join(KEYS[answers])
        self.look_up = text(f"SELECT answers.* FROM ({keys}) AS wanted JOIN answers USING ({key})")
        self.acquire = text(
            f"INSERT INTO leases ({key}, owner, expires) SELECT {key}, :owner, {now} + :seconds "
            f"FROM ({keys}) AS wanted WHERE true ON CONFLICT DO NOTHING"
        )
        self.release = text(f"DELETE FROM leases WHERE owner = :owner AND ({key}) IN ({keys})")
        self.renew = text(f"UPDATE leases SET expires = {now} + :seconds WHERE owner = :owner")
        changed = ", ".join(
            f"{name} = :{name}" for name in COLUMNS[batch_questions] if name not in ("question", "judge")
        )
        self.retry_question = text(
            f"UPDATE batch_questions SET {changed} "
            "WHERE question = :question AND judge = :judge AND batch = :seen AND NOT waiting"
        )
        self.answer_question = text(
            "UPDATE batch_questions SET waiting = false, body = :body WHERE question = :question AND batch = :batch"
        )
        self.delete_answer = text(
            f"DELETE FROM answers WHERE {' AND '.join(f'{name} = :{name}' for name in KEYS[answers])}"
        )
        self.drop_expired = f"DELETE FROM leases WHERE expires < {now}"


class SQLite:
    """One file, in WAL mode."""

    single_writer = True
    """Whether a writing transaction blocks all other writers."""
    sql = _Statements(
        parameter=r":\1",
        now="((julianday('now') - 2440587.5) * 86400.0)",
        keys="SELECT json_extract(value, '$[0]') AS question, json_extract(value, '$[1]') AS judge, "
        "json_extract(value, '$[2]') AS repeat_index FROM json_each(:keys)",
    )
    columns = (
        "SELECT found.name, columns.name FROM sqlite_master AS found, pragma_table_info(found.name) AS columns "
        "WHERE found.type = 'table' AND found.name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    )
    """SQL for the tables of the database and their columns."""
    lock_schema = ""
    """SQL that blocks other processes from creating the tables, unless a writing transaction does that anyway."""
    lock_runs = ""
    """SQL that blocks other processes from adding runs and samples, unless a writing transaction does that anyway."""

    def __init__(self, path: Path) -> None:
        """Create the file and its folder, accessible to their owner only. SQLite's other files get the file's mode."""
        self.location, self._path = str(path), path.absolute()
        self._files: list[tuple[Path, tuple[int, int]]] = []
        self._next_check = 0.0
        try:
            make_folder(path.parent)
            # Closing a file releases all locks that the process has on it, so no thread may use it before that.
            with _creating, suppress(FileExistsError):
                os.close(os.open(path.resolve(), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            raise cannot_write(f"the ledger {path} can't be created", error, LedgerError) from None
        # One thread at a time uses the connection, but not always the same one (async_ledger.py). The driver would
        # begin a transaction at the first write, too late to wait for other writers.
        settings = {"timeout": base.WAIT, "check_same_thread": False, "isolation_level": None}
        # Named parameters, as psycopg has them: statements sent to the driver as text take the same rows for both.
        named: Any = {"paramstyle": "named", "poolclass": sa.pool.NullPool, "connect_args": settings}
        self.engine = sa.create_engine(sa.URL.create("sqlite", database=str(path)), **named)

    def configure(self, connection: sa.Connection, deadline: float) -> None:
        """Apply the settings of a ledger to a database that has been verified to be one."""
        while True:
            try:
                with connection.begin():
                    self.set_busy_timeout(connection, deadline - time.monotonic())
                    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                    connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
                return
            except sqlalchemy.exc.OperationalError as error:
                # SQLite doesn't wait to change to WAL mode, which two processes on a new file both do.
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def read_back(self, run: str) -> None:
        """Read the records of a run over a new connection, which has none of them cached.

        Raises:
            sqlalchemy.exc.DBAPIError: The records are damaged.
        """
        query = "SELECT sum(length(body)) FROM records WHERE run = :run"
        with self.engine.connect() as connection:
            connection.exec_driver_sql(query, {"run": run}).all()

    def remember_files(self) -> None:
        """Remember the files at the path as those of this ledger, for `check_files`."""
        wal = self._path.resolve()
        for file in (self._path, wal.with_name(f"{wal.name}-wal")):
            if file.exists():
                self._files.append((file, _identity(file.stat())))

    def check_files(self, *, last: bool = False) -> None:
        """Raise LedgerError if the ledger's files were moved or deleted, so that writes would be lost.

        It checks at most every `CHECK_INTERVAL` seconds, and always if this is the last check (`last`).
        """
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

    def set_busy_timeout(self, connection: sa.Connection, seconds: float) -> None:
        """Set how long a transaction waits for another process."""
        driver: Any = connection.connection.driver_connection
        driver.execute(f"PRAGMA busy_timeout={max(int(1000 * seconds), 0)}")

    def size(self, connection: sa.Connection) -> int:
        """The size of the ledger in bytes."""
        files = (self._path, self._path.with_name(self._path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def check(self, connection: sa.Connection) -> list[str]:
        """The damage that the database reports for its file; empty if there is none."""
        problems = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA quick_check(20)")]
        return [] if problems == ["ok"] else problems

    def is_damage(self, error: sqlalchemy.exc.DBAPIError) -> bool:
        """Whether an error means that stored data can't be read. The driver's error for invalid text has no code."""
        return _code(error) in (0, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR)

    def compact(self, connection: sa.Connection) -> None:
        """Return the space of deleted rows."""
        with connection.begin():
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def may_pass(self, error: sqlalchemy.exc.DBAPIError) -> bool:
        """Whether the ledger could be opened a moment later."""
        return False

    def explain(self, error: sqlalchemy.exc.DBAPIError, *, written: bool) -> LedgerError | ConfigError:
        """The error to raise for a database error, with an explanation and what to do about it.

        written: Whether the ledger was written to before, so that it has become unusable; otherwise, it may be the
            wrong database.
        """
        where = f"the ledger {self.location}"
        match _code(error):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return LedgerBusyError(f"another process has locked {where} for {base.WAIT:g} seconds")
            case sqlite3.SQLITE_READONLY if not written:
                text = f"{where} can't be written: {error.orig}. Make the file and its folder writable "
                text += "(SQLite writes files next to it), or name another ledger with --ledger (Python: ledger=)"
                return ConfigError(text)
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM if not written:
                return ConfigError(f"{where} can't be used: {error.orig}; name another one with --ledger")
            case sqlite3.SQLITE_TOOBIG | sqlite3.SQLITE_CONSTRAINT:
                return LedgerValueError(f"{where} refuses a value: {error.orig}")
            case sqlite3.SQLITE_NOTADB if written:
                text = f"{where} was overwritten while it was in use: {error.orig}. Restore a backup"
            case sqlite3.SQLITE_NOTADB:
                text = f"{self.location} is not an evalstone ledger: it is not a SQLite database. Name another ledger "
                text += "with --ledger. If it was a ledger, its first page is destroyed: restore a backup"
                return ConfigError(text)
            case sqlite3.SQLITE_CORRUPT:
                text = f"{where} is damaged: {error.orig}. "
                text += f"Check it with `evalstone ledger verify --ledger {self.location}`; "
                text += f"copy the readable rows with `evalstone ledger recover {self.location} --into NEW.db`"
            case sqlite3.SQLITE_FULL:
                text = f"the disk is full: {where} can't be written. "
                text += "Free some space. Earlier results are saved, and scoring resumes from them"
            case _:
                text = f"{where} can't be used: {error.orig}"
        return LedgerError(text)


_creating = threading.Lock()


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _code(error: sqlalchemy.exc.DBAPIError) -> int:
    return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF


_NO_OUTPUT = logging.NullHandler()
_OUT_OF_SPACE = ("53100", "53200")
_READ_ONLY = "25006"
_LOST = ("08", "57P0", "53300", "25P03", _READ_ONLY)
"""Codes of errors after which another connection may work. A server that became read-only has handed over."""
_REFUSED = ("22", "23", "54")
"""Codes of errors caused by a value: it is out of range, violates a constraint, or is too long for an index."""
_WRONG = ("28", "3D", "3F", "42501", _READ_ONLY)
"""Codes of errors that another URL, user or password would fix."""
_WRONG_SERVER = re.compile("authentication failed|does not exist|no pg_hba.conf entry|permission denied|no password")
_BUSY_SERVER = re.compile(
    "too many|connection slots|starting up|shutting down|recovery mode|not yet accepting|terminating connection|"
    "closed the connection"
)
"""Messages of servers that have no free connection, or are starting or stopping."""


class PostgreSQL:
    """A database, or a schema of one, on a PostgreSQL server."""

    single_writer = False
    sql = _Statements(
        parameter=r"%(\1)s",
        now="extract(epoch from clock_timestamp())",
        keys="SELECT key ->> 0 AS question, key ->> 1 AS judge, CAST(key ->> 2 AS integer) AS repeat_index "
        "FROM json_array_elements(CAST(:keys AS json)) AS key",
    )
    columns = (
        "SELECT c.relname, a.attname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
        "WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p')"
    )
    lock_schema = "SELECT pg_advisory_xact_lock(hashtext('evalstone ledger schema'))"
    lock_runs = "LOCK TABLE runs, samples IN SHARE ROW EXCLUSIVE MODE"

    def __init__(self, url: str) -> None:
        """Prepare the settings; nothing connects yet."""
        # psycopg logs a warning about a lost connection, to standard error without a handler. Our own error is enough.
        logging.getLogger("psycopg").addHandler(_NO_OUTPUT)
        register_url(url)
        register_environment("PGPASSWORD")
        self.location = shown(url)
        try:
            address = sa.make_url(f"postgresql+psycopg://{url.partition('://')[2]}")
            # Detect a silently lost server within half a minute, long before TCP gives up.
            probes = {
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 4,
                "tcp_user_timeout": 30_000,
            }
            settings = {"connect_timeout": 10, "application_name": "evalstone", **probes}
            settings = {name: value for name, value in settings.items() if name not in address.query}
            self.engine = sa.create_engine(address, connect_args=settings, poolclass=sa.pool.NullPool)
        except (sqlalchemy.exc.ArgumentError, ValueError):
            raise ConfigError(f"the ledger's URL {self.location} can't be parsed; {EXPECTED}") from None
        except ImportError:
            raise MissingDependency("psycopg", "postgres") from None
        for index, some in PARTIAL.items():
            index.dialect_options["postgresql"]["where"] = some

    def configure(self, connection: sa.Connection, deadline: float) -> None:
        """Nothing to set: the server is durable by default."""

    def read_back(self, run: str) -> None:
        """Nothing to read: the files are the server's."""

    def remember_files(self) -> None:
        """Nothing to remember: the files are the server's."""

    def check_files(self, *, last: bool = False) -> None:
        """Nothing to check: the files are the server's."""

    def set_busy_timeout(self, connection: sa.Connection, seconds: float) -> None:
        """Nothing to set: rows are locked, not the database."""

    def size(self, connection: sa.Connection) -> int:
        query = sa.text(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'"
        )
        return int(connection.scalar(query) or 0)

    def check(self, connection: sa.Connection) -> list[str]:
        return []

    def is_damage(self, error: sqlalchemy.exc.DBAPIError) -> bool:
        return _state(error).startswith("XX")

    def compact(self, connection: sa.Connection) -> None:
        """Nothing to do: the server's autovacuum returns the space."""

    def may_pass(self, error: sqlalchemy.exc.DBAPIError) -> bool:
        return _BUSY_SERVER.search(str(error.orig)) is not None

    def explain(self, error: sqlalchemy.exc.DBAPIError, *, written: bool) -> LedgerError | ConfigError:
        where, text = f"the ledger {self.location}", " ".join(str(error.orig).split()).rstrip(".")
        state = _state(error)
        if state in _OUT_OF_SPACE:
            return LedgerError(f"the server of {where} is out of space: {text}. Earlier results are saved")
        if error.connection_invalidated or (state.startswith(_LOST) and (written or state != _READ_ONLY)):
            return LedgerConnectionError(f"the connection to {where} was lost: {text}")
        if state.startswith(_REFUSED) or isinstance(error, sqlalchemy.exc.DataError):
            return LedgerValueError(f"{where} refuses a value: {text}")
        message = f"{where} can't be used: {text}"
        if state:
            return ConfigError(message) if not written and state.startswith(_WRONG) else LedgerError(message)
        # The driver's connection errors have no code.
        return ConfigError(message) if _WRONG_SERVER.search(text) else LedgerConnectionError(message)


def _state(error: sqlalchemy.exc.DBAPIError) -> str:
    return str(getattr(error.orig, "sqlstate", None) or "")
