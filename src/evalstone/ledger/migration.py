"""Bringing a ledger of an older layout to the present one, step by step, with Alembic and no settings file."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from evalstone.ledger.tables import LAYOUT, layout

STEPS = Path(__file__).parent / "migrations"

# Alembic's steps speak to "the" connection of the process: of two threads, one would change the other's ledger.
_alone = threading.Lock()


def upgrade(connection: sa.Connection, to: str = LAYOUT) -> None:
    """Migrate, within the transaction that the connection is in: all of it or nothing.

    A ledger of the first layout, which was made before there were migrations, is told by its table `ledger`.
    """
    steps = ScriptDirectory(str(STEPS))
    if sa.inspect(connection).has_table("ledger") and not sa.inspect(connection).has_table(layout.name):
        MigrationContext.configure(connection, opts={"version_table": layout.name}).stamp(steps, "1")

    def plan(revision: Any, _: MigrationContext) -> Any:
        return steps._upgrade_revs(to, revision)  # pyright: ignore[reportPrivateUsage] # as `alembic upgrade` does

    with _alone, EnvironmentContext(Config(), steps, fn=plan, destination_rev=to) as environment:
        environment.configure(connection=connection, version_table=layout.name, transactional_ddl=True)
        environment.run_migrations()
