"""The ledger's tables in their present layout. docs/ledger.md describes them; migrations/ leads older ones here."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

LAYOUT = "3"
"""The name of this layout: the last revision in migrations/versions."""

metadata = sa.MetaData()

# SQLite numbers the rows of a table by itself only in a column that is called INTEGER.
_POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _position() -> sa.Column[int]:
    return sa.Column("position", _POSITION, sa.Identity(), primary_key=True)


layout = sa.Table("ledger_layout", metadata, sa.Column("version_num", sa.String(32), primary_key=True))
datasets = sa.Table(
    "datasets",
    metadata,
    sa.Column("version", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("samples", sa.Integer, nullable=False),
    sa.Column("first_seen", sa.Text, nullable=False),
)
runs = sa.Table(
    "runs",
    metadata,
    _position(),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("plan", sa.Text, nullable=False, index=True),
    sa.Column("dataset", sa.Text),
    sa.Column("started", sa.Text, nullable=False),
    sa.Column("finished", sa.Text),
    sa.Column("about", sa.Text, nullable=False),
)
answers = sa.Table(
    "answers",
    metadata,
    sa.Column("question", sa.Text, primary_key=True),
    sa.Column("judge", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
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
)
records = sa.Table(
    "records",
    metadata,
    _position(),
    sa.Column("run", sa.Text, nullable=False),
    # A hash stands for sample and scorer in the key: ids may be longer than what PostgreSQL takes into an index.
    sa.Column("cell", sa.Text, nullable=False),
    sa.Column("sample", sa.Text, nullable=False),
    sa.Column("scorer", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.UniqueConstraint("run", "cell"),
)
leases = sa.Table(
    "leases",
    metadata,
    sa.Column("question", sa.Text, primary_key=True),
    sa.Column("judge", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("until", sa.Float, nullable=False),
    sqlite_with_rowid=False,  # rows come and go with every question; a second tree for the key would double that
)
batches = sa.Table(
    "batches",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("judge", sa.Text, nullable=False, index=True),
    sa.Column("run", sa.Text, nullable=False),
    sa.Column("questions", sa.Integer, nullable=False),
    sa.Column("about", sa.Text, nullable=False),
    sa.Column("cost", sa.Float),
    sa.Column("made", sa.Text, nullable=False),
    sa.Column("remote", sa.Text),
    sa.Column("collected", sa.Text),
    sa.Column("ended", sa.Text),
)
batch_questions = sa.Table(
    "batch_questions",
    metadata,
    sa.Column("question", sa.Text, primary_key=True),
    sa.Column("judge", sa.Text, primary_key=True),
    sa.Column("batch", sa.Text, nullable=False, index=True),
    sa.Column("waiting", sa.Integer, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("reply", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("input_tokens", sa.Integer, nullable=False),
    sa.Column("output_tokens", sa.Integer, nullable=False),
    sa.Column("cached_tokens", sa.Integer, nullable=False),
    sa.Column("requests", sa.Integer, nullable=False),
    sa.Column("cost", sa.Float),
    sa.Column("body", sa.Text),
)

KEYS: dict[sa.Table, tuple[str, ...]] = {
    datasets: ("version",),
    runs: ("id",),
    answers: ("question", "judge", "number"),
    records: ("run", "cell"),
    leases: ("question", "judge", "number"),
    batches: ("id",),
    batch_questions: ("question", "judge"),
}
"""What makes two rows of a table the same thing; `position` only says which came first."""


def columns(table: sa.Table) -> list[str]:
    """A table's columns that have a meaning of their own, in order."""
    return [column.name for column in table.columns if column.name != "position"]


def all_of(table: sa.Table, *names: str) -> Any:
    """A condition: columns equal parameters of the same names with `b_` before them."""
    return sa.and_(*(table.c[name] == sa.bindparam(f"b_{name}") for name in names))
