"""Ledgers of older layouts become the present one, or are refused with the command that does it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from evalstone.errors import LedgerError
from evalstone.ledger import DatasetRow, schema
from evalstone.ledger.dialects import dialect_of
from evalstone.ledger.migration import STEPS, upgrade
from evalstone.ledger.schema import version_of
from evalstone.ledger.store import Ledger
from evalstone.ledger.tables import LAYOUT, metadata
from evalstone.types import Record
from tests.ledger.rows import JUDGE, answer, record, run

VERSION_1 = """
CREATE TABLE ledger (version INTEGER NOT NULL);
CREATE TABLE answers (
    question VARCHAR(32) NOT NULL, judge TEXT NOT NULL, kind TEXT NOT NULL, reply TEXT NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
    requests INTEGER NOT NULL, cost FLOAT, seconds FLOAT NOT NULL, confidence FLOAT, PRIMARY KEY (question, judge)
);
CREATE TABLE runs (
    id TEXT NOT NULL, "plan" VARCHAR(32) NOT NULL, started TEXT NOT NULL, finished TEXT, about TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX ix_runs_plan ON runs ("plan");
CREATE TABLE records (
    run TEXT NOT NULL, sample TEXT NOT NULL, scorer TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (run, sample, scorer)
);
INSERT INTO ledger VALUES (1);
"""


def version_1(path: Path, *, weighed: bool = False) -> None:
    """A ledger as the first evalstone made it, with an answer, a run, and two records in an order of their own."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_1)
        a = answer(1)
        values = [a.question, a.judge, a.kind, a.reply, 1, 2, 3, 4, a.cost, a.seconds, a.confidence]
        if weighed:
            connection.execute("ALTER TABLE answers ADD COLUMN alternatives TEXT")
            values.append(json.dumps(a.alternatives))
        connection.execute(f"INSERT INTO answers VALUES ({', '.join('?' * len(values))})", values)
        row = run()
        connection.execute(
            "INSERT INTO runs VALUES (?, ?, ?, ?, ?)", (row.id, row.plan, row.started, None, json.dumps(row.about))
        )
        for sample in ("b", "a"):
            body = json.dumps(record(sample).to_dict())
            connection.execute("INSERT INTO records VALUES ('r1', ?, 's@1', ?)", (sample, body))
        connection.commit()


def test_ledgers_that_are_migrated_in_several_threads_at_once_do_not_get_mixed_up(tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.db" for n in range(8)]
    for path in paths:
        version_1(path)

    def opened(path: Path) -> list[Record]:
        with Ledger(path) as ledger:
            return ledger.records("r1")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(opened, paths)) == [[record("b"), record("a")]] * 8


@pytest.mark.parametrize("weighed", [False, True])
def test_a_ledger_of_the_first_layout_is_migrated_when_it_is_opened(tmp_path: Path, weighed: bool) -> None:
    version_1(tmp_path / "l.db", weighed=weighed)
    for _ in range(2):
        with Ledger(tmp_path / "l.db") as ledger:
            (found,) = ledger.answers(JUDGE, [answer(1).question]).values()
            assert (found.reply, found.usage, found.confidence) == (answer(1).reply, answer(1).usage, 0.9)
            assert found.alternatives == (answer(1).alternatives if weighed else None)
            assert ledger.unfinished(run().plan) == ledger.run("last") == run()
            assert ledger.records("r1") == [record("b"), record("a")]
            assert ledger.datasets() == [DatasetRow("d" * 16, "data.jsonl", 3, run().started)]
            ledger.write(records=[("r1", record("b"))])
            assert ledger.records("r1") == [record("b"), record("a")]


def test_a_large_ledger_of_an_older_layout_is_refused_with_the_command_and_migrated_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "SMALL", 2)
    version_1(tmp_path / "l.db")
    before = (tmp_path / "l.db").read_bytes()
    with pytest.raises(LedgerError, match=f"evalstone ledger migrate --ledger {tmp_path}/l.db"):
        Ledger(tmp_path / "l.db")
    assert (tmp_path / "l.db").read_bytes() == before
    Ledger(tmp_path / "l.db", migrate=True).close()
    with Ledger(tmp_path / "l.db") as ledger:
        assert len(ledger.records("r1")) == 2


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    version_1(tmp_path / "l.db")
    with closing(sqlite3.connect(tmp_path / "l.db")) as connection:
        connection.execute("CREATE TABLE leases (something TEXT)")
        connection.commit()
        before = list(connection.iterdump())
        with pytest.raises(LedgerError, match="leases"):
            Ledger(tmp_path / "l.db")
        assert list(connection.iterdump()) == before


def test_a_version_of_the_first_kind_that_is_not_known_is_refused(tmp_path: Path) -> None:
    version_1(tmp_path / "l.db")
    with closing(sqlite3.connect(tmp_path / "l.db")) as connection:
        connection.execute("UPDATE ledger SET version = 99")
        connection.commit()
    with pytest.raises(LedgerError, match="version 99"):
        Ledger(tmp_path / "l.db")


@pytest.fixture
def connected(url: str) -> Callable[[], sa.Connection]:
    engine = dialect_of(url).engine()
    return engine.connect


def test_the_migrations_lead_to_the_layout_that_a_new_ledger_has(connected: Callable[[], sa.Connection]) -> None:
    with connected() as connection, connection.begin():
        upgrade(connection)
        context = MigrationContext.configure(connection, opts={"version_table": "ledger_layout"})
        assert compare_metadata(context, metadata) == []


def test_a_ledger_made_by_the_migrations_is_one_like_any_other(
    url: str, connected: Callable[[], sa.Connection]
) -> None:
    with connected() as connection:
        with connection.begin():
            upgrade(connection)
        assert version_of(connection, dialect_of(url)) == LAYOUT
    with Ledger(url) as ledger:
        ledger.start_run(run())
        ledger.write([answer(1)], [("r1", record("a"))])
        assert ledger.records("r1") == [record("a")]


def test_the_last_migration_is_the_layout_of_new_ledgers() -> None:
    assert ScriptDirectory(str(STEPS)).get_current_head() == LAYOUT
