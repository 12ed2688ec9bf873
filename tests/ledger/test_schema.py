"""The schema version, and what opening a ledger imports and accepts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from evalstone.errors import LedgerError
from evalstone.ledger.schema import SCHEMA_VERSION, metadata
from evalstone.ledger.store import Ledger


def set_version(url: str | Path, version: str) -> None:
    with Ledger(url) as ledger, ledger.transaction(writing=True) as connection:
        connection.execute(sa.text("UPDATE ledger_version SET version_num = :version"), {"version": version})


def test_a_new_ledger_has_the_declared_tables_and_their_version(url: str) -> None:
    with Ledger(url) as ledger, ledger.transaction() as connection:
        assert ledger.version(connection) == SCHEMA_VERSION
        context = MigrationContext.configure(connection, opts={"version_table": "ledger_version"})
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == SCHEMA_VERSION


def test_an_empty_database_has_no_version_and_stays_empty_when_asked_for_it(url: str) -> None:
    for _ in range(2):
        with Ledger(url, prepare=False) as ledger, ledger.transaction() as connection:
            assert ledger.version(connection) == ""


@pytest.mark.parametrize(("version", "advice"), [("99", "Update evalstone, or name"), ("0", "Name"), ("v2", "Name")])
def test_another_schema_version_is_refused_and_left_unchanged(url: str, version: str, advice: str) -> None:
    set_version(url, version)
    for _ in range(2):
        message = (
            rf"another version of evalstone \(schema {version}\); this version reads schema {SCHEMA_VERSION}\. {advice}"
        )
        with pytest.raises(LedgerError, match=message):
            Ledger(url)


def test_importing_the_ledger_imports_no_database_library_and_opening_one_no_migrations(tmp_path: Path) -> None:
    code = f"""
import asyncio, sys
import evalstone.ledger, evalstone.ledger.base, evalstone.ledger.base
assert "sqlalchemy" not in sys.modules

async def opened():
    async with evalstone.ledger.AsyncLedger({str(tmp_path / "l.db")!r}):
        assert "sqlalchemy" in sys.modules

asyncio.run(opened())
asyncio.run(opened())
assert "alembic" not in sys.modules
assert "psycopg" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
