"""Opening a ledger: made when it is new, migrated when it is older, refused when it is newer or none at all."""

from __future__ import annotations

import sqlalchemy as sa

from evalstone.errors import LedgerError
from evalstone.ledger.dialects import Dialect, transaction
from evalstone.ledger.tables import LAYOUT, layout, metadata

SMALL = 20_000
"""Rows that are migrated in passing, within a second or two; a larger ledger is migrated by command."""

MOVING = frozenset({"1"})
"""The layouts whose rows a migration has to move; from the others on, it only makes new tables."""


def prepare(connection: sa.Connection, dialect: Dialect, *, migrate: bool = False) -> None:
    """Bring the database to the present layout, or raise LedgerError. migrate: however large it is."""
    found = version_of(connection, dialect)
    if found != "":
        _check(connection, dialect, found, migrate=migrate)
    dialect.settle(connection)
    if found == LAYOUT:
        return
    with transaction(connection, writing=True):
        dialect.lock_layout(connection)
        found = _version(connection, dialect)  # another process may have been faster
        if found == "":
            metadata.create_all(connection)
            connection.execute(sa.insert(layout).values(version_num=LAYOUT))
        elif found != LAYOUT:
            from evalstone.ledger.migration import upgrade  # noqa: PLC0415 - Alembic, which only an old ledger needs

            upgrade(connection)


def version_of(connection: sa.Connection, dialect: Dialect) -> str:
    """The layout that a database has; "" for an empty one. Raises LedgerError for a database that is no ledger."""
    with transaction(connection, writing=False):
        return _version(connection, dialect)


def _version(connection: sa.Connection, dialect: Dialect) -> str:
    tables = set(sa.inspect(connection).get_table_names())
    if not tables:
        return ""
    if layout.name in tables:
        return str(connection.scalar(sa.select(layout.c.version_num)))
    if "ledger" in tables:  # the first layout had a table of this name for its version
        return str(connection.scalar(sa.text("SELECT version FROM ledger")))
    raise LedgerError(f"{dialect.place} is a database but no ledger; name another with --ledger")


def _check(connection: sa.Connection, dialect: Dialect, found: str, *, migrate: bool) -> None:
    """Raise LedgerError for a layout that this evalstone does not know, or that is not to be migrated in passing."""
    if found == LAYOUT:
        return
    if not found.isdecimal() or not 1 <= int(found) < int(LAYOUT):
        raise LedgerError(
            f"{dialect.place} is a ledger of version {found}; this evalstone reads up to version {LAYOUT}. "
            "A newer evalstone wrote it: update evalstone, or name another ledger with --ledger"
        )
    if not migrate and found in MOVING and _rows(connection) > SMALL:
        raise LedgerError(
            f"{dialect.place} is a large ledger of version {found}; bring it to version {LAYOUT} with: "
            f"evalstone ledger migrate --ledger {dialect.place}"
        )


def _rows(connection: sa.Connection) -> int:
    """How many rows a migration would move, counted no further than needed."""
    with transaction(connection, writing=False):
        some = [sa.select(sa.text("1 AS one")).select_from(sa.table(name)).limit(SMALL + 1) for name in _LARGE]
        counts = [connection.scalar(sa.select(sa.func.count()).select_from(query.subquery())) for query in some]
    return sum(count or 0 for count in counts)


_LARGE = ("answers", "records")
