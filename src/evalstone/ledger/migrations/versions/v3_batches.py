"""The third layout: what was given to a provider as a batch, and the questions in it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    op.create_table(
        "batches",
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
    op.create_table(
        "batch_questions",
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
