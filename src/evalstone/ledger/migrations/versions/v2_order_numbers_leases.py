"""The second layout: rows know their order, answers their number, runs their data set; leases; a table of data sets."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
CHUNK = 500
OLD = ("answers", "runs", "records")
ANSWER = (
    *("question", "judge", "kind", "reply", "input_tokens", "output_tokens", "cached_tokens", "requests"),
    *("cost", "seconds", "confidence"),
)


def upgrade() -> None:
    connection = op.get_bind()
    # A few ledgers of the first layout were made with this column already.
    weighed = any(c["name"] == "alternatives" for c in sa.inspect(connection).get_columns("answers"))
    op.drop_index("ix_runs_plan", "runs")
    for table in OLD:
        op.rename_table(table, f"old_{table}")
        if connection.dialect.name == "postgresql":  # where the key's name stays, and would be in the way
            op.drop_constraint(f"{table}_pkey", f"old_{table}")
    _create_tables()
    _move_answers(weighed=weighed)
    _move_runs(connection)
    _move_records(connection)
    for table in (*(f"old_{table}" for table in OLD), "ledger"):
        op.drop_table(table)


def _create_tables() -> None:
    op.create_table(
        "datasets",
        sa.Column("version", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("samples", sa.Integer, nullable=False),
        sa.Column("first_seen", sa.Text, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("position", POSITION, sa.Identity(), primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("plan", sa.Text, nullable=False, index=True),
        sa.Column("dataset", sa.Text),
        sa.Column("started", sa.Text, nullable=False),
        sa.Column("finished", sa.Text),
        sa.Column("about", sa.Text, nullable=False),
    )
    op.create_table("answers", *_key(), *_answer_columns())
    op.create_table(
        "records",
        sa.Column("position", POSITION, sa.Identity(), primary_key=True),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("cell", sa.Text, nullable=False),
        sa.Column("sample", sa.Text, nullable=False),
        sa.Column("scorer", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.UniqueConstraint("run", "cell"),
    )
    op.create_table(
        "leases",
        *_key(),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("until", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )


def _key() -> list[sa.Column[Any]]:
    return [
        sa.Column("question", sa.Text, primary_key=True),
        sa.Column("judge", sa.Text, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    ]


def _answer_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("reply", sa.Text, nullable=False),
        sa.Column("input_tokens", sa.Integer, nullable=False),
        sa.Column("output_tokens", sa.Integer, nullable=False),
        sa.Column("cached_tokens", sa.Integer, nullable=False),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("cost", sa.Float),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("confidence", sa.Float),
        sa.Column("alternatives", sa.Text),
        sa.Column("written", sa.Float, nullable=False),
    ]


def _move_answers(*, weighed: bool) -> None:
    names = [*ANSWER, "alternatives"] if weighed else list(ANSWER)
    columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in names]
    old = sa.select(*columns, sa.literal(0), sa.literal(time.time())).select_from(sa.table("old_answers", *columns))
    new: list[sa.ColumnClause[Any]] = [sa.column(name) for name in (*names, "number", "written")]
    op.execute(sa.insert(sa.table("answers", *new)).from_select([*names, "number", "written"], old))


def _move_runs(connection: sa.Connection) -> None:
    seen: dict[str, dict[str, Any]] = {}
    moved: list[dict[str, Any]] = []
    query = "SELECT id, plan, started, finished, about FROM old_runs ORDER BY started, id"
    for row in connection.execute(sa.text(query)).mappings():
        about: dict[str, Any] = json.loads(row["about"])
        dataset: dict[str, Any] = about.get("dataset") or {}
        moved.append({**row, "dataset": dataset.get("version")})
        if {"version", "name", "samples"} <= dataset.keys():
            known: dict[str, Any] = {name: dataset[name] for name in ("version", "name", "samples")}
            seen.setdefault(dataset["version"], {**known, "first_seen": row["started"]})
    _insert(connection, "runs", moved)
    _insert(connection, "datasets", list(seen.values()))


def _move_records(connection: sa.Connection) -> None:
    # The order of writing was that of SQLite's rowid; the first layout was never kept anywhere else.
    columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in ("run", "sample", "scorer", "body")]
    order: list[sa.ColumnClause[Any]] = [sa.column("rowid")] if connection.dialect.name == "sqlite" else columns[:3]
    rows = connection.execute(sa.select(*columns).select_from(sa.table("old_records", *columns)).order_by(*order))
    for chunk in rows.mappings().partitions(CHUNK):
        _insert(connection, "records", [{**row, "cell": _cell(row["sample"], row["scorer"])} for row in chunk])


def _cell(sample: str, scorer: str) -> str:
    return hashlib.blake2b(f"{sample}\x00{scorer}".encode(), digest_size=16).hexdigest()


def _insert(connection: sa.Connection, table: str, rows: Iterable[dict[str, Any]]) -> None:
    if found := list(rows):
        columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in found[0]]
        connection.execute(sa.insert(sa.table(table, *columns)), found)
