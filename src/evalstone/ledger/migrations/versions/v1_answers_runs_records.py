"""The first layout: answers, runs and records, and a table with its number."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    op.create_table("ledger", sa.Column("version", sa.Integer, nullable=False))
    op.execute("INSERT INTO ledger (version) VALUES (1)")
    op.create_table(
        "answers",
        sa.Column("question", sa.String(32), primary_key=True),
        sa.Column("judge", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("reply", sa.Text, nullable=False),
        sa.Column("input_tokens", sa.Integer, nullable=False),
        sa.Column("output_tokens", sa.Integer, nullable=False),
        sa.Column("cached_tokens", sa.Integer, nullable=False),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("cost", sa.Float),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("confidence", sa.Float),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("plan", sa.String(32), nullable=False, index=True),
        sa.Column("started", sa.Text, nullable=False),
        sa.Column("finished", sa.Text),
        sa.Column("about", sa.Text, nullable=False),
    )
    op.create_table(
        "records",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("sample", sa.Text, primary_key=True),
        sa.Column("scorer", sa.Text, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
