"""The schema version, and what opening a ledger imports and accepts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from evalstone.errors import ConfigError
from evalstone.ledger.base import USAGE_COLUMNS
from evalstone.ledger.maintenance import verify
from evalstone.ledger.schema import ALL_COLUMNS, SCHEMA_VERSION, TABLES
from evalstone.ledger.store import Ledger


def set_version(url: str | Path, version: str) -> None:
    with Ledger(url) as ledger, ledger.transaction(writing=True) as connection:
        connection.execute("UPDATE ledger_version SET version_num = :version", {"version": version})


def test_a_new_ledger_has_the_declared_tables_and_their_version(url: str) -> None:
    with Ledger(url) as ledger, ledger.transaction() as connection:
        assert ledger.version() == SCHEMA_VERSION
        assert connection.columns() == ALL_COLUMNS


def test_an_empty_database_has_no_version_and_stays_empty_when_asked_for_it(url: str) -> None:
    for _ in range(2):
        with Ledger(url, prepare=False) as ledger, ledger.transaction():
            assert ledger.version() == ""


@pytest.mark.parametrize(("version", "advice"), [("99", "Update evalstone, or name"), ("0", "Name"), ("v2", "Name")])
def test_another_schema_version_is_refused_and_left_unchanged(url: str, version: str, advice: str) -> None:
    set_version(url, version)
    for _ in range(2):
        message = (
            rf"another version of evalstone \(schema {version}\); this version reads schema {SCHEMA_VERSION}\. {advice}"
        )
        with pytest.raises(ConfigError, match=message):
            Ledger(url)


@pytest.mark.parametrize(
    ("statement", "differs"),
    [
        ("ALTER TABLE answers DROP COLUMN probability", "answers.probability"),
        ("ALTER TABLE answers ADD COLUMN label text", "answers.label"),
        ("ALTER TABLE records RENAME COLUMN body TO record", "records.body, records.record"),
        (
            "DROP TABLE batches",
            "batches.api, batches.collected, batches.cost, batches.created, batches.ended and 6 more",
        ),
    ],
)
def test_other_columns_under_the_same_version_are_refused_and_named(url: str, statement: str, differs: str) -> None:
    with Ledger(url) as ledger, ledger.transaction(writing=True) as connection:
        connection.execute(statement)
    with pytest.raises(ConfigError, match=rf"\(schema {SCHEMA_VERSION}, .* in {differs}\);"):
        Ledger(url)
    with pytest.raises(ConfigError, match="another version"):
        verify(url)


def test_a_ledger_without_a_version_number_is_refused(url: str) -> None:
    with Ledger(url) as ledger, ledger.transaction(writing=True) as connection:
        connection.execute("DELETE FROM ledger_version")
    with pytest.raises(ConfigError, match=r"\(schema unknown\)"):
        Ledger(url)


def test_tables_that_somebody_added_to_a_ledger_are_no_reason_to_refuse_it(url: str) -> None:
    with Ledger(url) as ledger, ledger.transaction(writing=True) as connection:
        connection.execute("CREATE TABLE notes (id integer)")
    Ledger(url).close()
    assert verify(url).sound


def test_a_database_of_something_else_is_named_by_its_tables(url: str) -> None:
    with Ledger(url, prepare=False) as other, other.transaction(writing=True) as connection:
        for number in range(7):
            connection.execute(f"CREATE TABLE t{number} (id integer)")
    tables = "tables t0, t1, t2, t3, t4 and 2 more"
    for opening in (Ledger, verify):
        with pytest.raises(ConfigError, match=f"not an evalstone .* {tables}"):
            opening(url)


def test_another_version_is_checked_for_damage_and_its_rows_are_not_read(url: str) -> None:
    set_version(url, "99")
    found = verify(url)
    assert (found.schema_version, found.sound, found.rows) == ("99", True, 0)


def test_importing_the_ledger_imports_no_driver_and_opening_a_file_none_of_a_server(tmp_path: Path) -> None:
    code = f"""
import asyncio, sys
import evalstone.ledger, evalstone.ledger.base
assert "sqlite3" not in sys.modules

async def opened():
    async with evalstone.ledger.AsyncLedger({str(tmp_path / "l.db")!r}):
        assert "sqlite3" in sys.modules

asyncio.run(opened())
asyncio.run(opened())
assert "psycopg" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_the_documentation_lists_all_tables_with_their_columns() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text()
    assert f"The schema version is {SCHEMA_VERSION}." in page
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", page.partition("## Tables")[2], re.MULTILINE)
    listed = {name: set(re.findall(r"`(\w+)`", row)) for name, row in rows}
    assert listed.keys() == {table.name for table in TABLES}
    for table in TABLES:
        columns = {*table.columns, *(("position",) if table.positioned else ())} - set(USAGE_COLUMNS)
        assert columns <= listed[table.name]
        assert listed[table.name] <= {*columns, *listed, *USAGE_COLUMNS}
