"""The ledger's tables, their version, and opening a database: created when it is empty, refused when it is not ours.

The tables have one version until the first release. A later version adds the folder `migrations`: Alembic revisions
that lead from revision "1", the tables below, to `SCHEMA_VERSION`. A new database is created directly and stamped with
`SCHEMA_VERSION`, so Alembic is imported for older ledgers only (`version_table="ledger_version"`).
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from evalstone.errors import LedgerError
from evalstone.ledger.dialects import Dialect, transaction
from evalstone.ledger.rows import USAGE_COLUMNS

SCHEMA_VERSION = "1"

metadata = sa.MetaData()

# SQLite assigns row numbers only to a column whose type is INTEGER.
_POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _position() -> sa.Column[int]:
    return sa.Column("position", _POSITION, sa.Identity(), primary_key=True)


def _key(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text, primary_key=True) for name in names]


def _repeat_index() -> sa.Column[int]:
    return sa.Column("repeat_index", sa.Integer, primary_key=True, autoincrement=False)


def _required(kind: Any, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name in names]


def _optional(kind: Any, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind) for name in names]


ledger_version = sa.Table("ledger_version", metadata, sa.Column("version_num", sa.String(32), primary_key=True))
datasets = sa.Table(
    "datasets",
    metadata,
    *_key("version"),
    *_required(sa.Text, "name", "first_seen"),
    *_required(sa.Integer, "samples"),
)
runs = sa.Table(
    "runs",
    metadata,
    _position(),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("plan", sa.Text, nullable=False, index=True),
    *_required(sa.Text, "started", "metadata"),
    *_optional(sa.Text, "finished", "dataset"),
)
answers = sa.Table(
    "answers",
    metadata,
    *_key("question", "judge"),
    _repeat_index(),
    *_required(sa.Text, "kind", "reply"),
    *_required(sa.Integer, *USAGE_COLUMNS),
    *_required(sa.Float, "seconds", "written"),
    *_optional(sa.Float, "cost", "confidence"),
    *_optional(sa.Text, "alternatives"),
)
records = sa.Table(
    "records",
    metadata,
    _position(),
    # `cell` is a hash of sample and scorer: ids may be longer than an entry of a PostgreSQL index.
    *_required(sa.Text, "run", "cell", "sample", "scorer", "body"),
    sa.UniqueConstraint("run", "cell"),
)
leases = sa.Table(
    "leases",
    metadata,
    *_key("question", "judge"),
    _repeat_index(),
    *_required(sa.Text, "owner"),
    *_required(sa.Float, "expires"),
    sqlite_with_rowid=False,  # every question inserts and deletes a row: a second tree for the key would double that
)
batches = sa.Table(
    "batches",
    metadata,
    *_key("id"),
    sa.Column("judge", sa.Text, nullable=False, index=True),
    *_required(sa.Text, "run", "metadata", "created"),
    *_required(sa.Integer, "questions"),
    *_optional(sa.Float, "cost"),
    *_optional(sa.Text, "remote", "collected", "ended"),
)
batch_questions = sa.Table(
    "batch_questions",
    metadata,
    *_key("question", "judge"),
    sa.Column("batch", sa.Text, nullable=False, index=True),
    *_required(sa.Boolean, "waiting"),
    *_required(sa.Integer, "attempts", *USAGE_COLUMNS),
    *_optional(sa.Float, "cost"),
    *_optional(sa.Text, "reply", "error", "body"),
)

KEYS: dict[sa.Table, tuple[str, ...]] = {
    datasets: ("version",),
    runs: ("id",),
    answers: ("question", "judge", "repeat_index"),
    records: ("run", "cell"),
    leases: ("question", "judge", "repeat_index"),
    batches: ("id",),
    batch_questions: ("question", "judge"),
}
"""The columns that identify a row. `position` is the order of writing only."""


def columns(table: sa.Table) -> list[str]:
    """A table's columns in order, without `position`."""
    return [column.name for column in table.columns if column.name != "position"]


def _upsert(table: sa.Table) -> str:
    names, keys = columns(table), KEYS[table]
    values = ", ".join(f":{name}" for name in names)
    changed = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    conflict = f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changed}"
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values}) {conflict}"  # noqa: S608 - our own names


UPSERT_ANSWER = _upsert(answers)
UPSERT_RECORD = _upsert(records)


def prepare(connection: sa.Connection, dialect: Dialect) -> None:
    """Create the tables in an empty database and configure it.

    Raises:
        LedgerError: The database is not a ledger, or a ledger of another version.
    """
    if found := read_version(connection, dialect):
        _check(found, dialect)
    dialect.configure(connection)
    if found:
        return
    with transaction(connection, writing=True):
        dialect.lock_schema(connection)
        if found := _read_version(connection, dialect):  # another process created the tables meanwhile
            _check(found, dialect)
            return
        metadata.create_all(connection, checkfirst=False)
        connection.execute(sa.insert(ledger_version).values(version_num=SCHEMA_VERSION))


def read_version(connection: sa.Connection, dialect: Dialect) -> str:
    """The schema version of a database; "" for an empty one.

    Raises:
        LedgerError: The database has tables, but is not a ledger.
    """
    with transaction(connection, writing=False):
        return _read_version(connection, dialect)


def _read_version(connection: sa.Connection, dialect: Dialect) -> str:
    names = dialect.table_names(connection)
    if not names:
        return ""
    if ledger_version.name in names:
        return str(connection.scalar(sa.select(ledger_version.c.version_num)))
    raise LedgerError(f"{dialect.location} is a database, but not a ledger; name another with --ledger")


def _check(version: str, dialect: Dialect) -> None:
    if version == SCHEMA_VERSION:
        return
    advice = "Update evalstone, or name" if version.isdecimal() and int(version) > int(SCHEMA_VERSION) else "Name"
    raise LedgerError(
        f"{dialect.location} is a ledger of schema version {version}; this evalstone reads version {SCHEMA_VERSION}. "
        f"{advice} another ledger with --ledger"
    )
