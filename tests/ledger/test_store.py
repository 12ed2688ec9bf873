"""Ledgers as files and URLs: what is no ledger is said to be none, and a full disk loses nothing."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from evalstone._core.front_ends import COMMAND_LINE
from evalstone.errors import ConfigError, LedgerBusyError, LedgerError
from evalstone.ledger.base import is_there, shown
from evalstone.ledger.sqlite import SQLite
from evalstone.ledger.store import Ledger
from tests.ledger.rows import JUDGE, answer, record, records, run


def test_a_path_and_its_url_are_the_same_ledger(tmp_path: Path) -> None:
    with Ledger(tmp_path / "deep" / "l.db") as ledger:
        ledger.start_run(run())
    with Ledger(f"sqlite:///{tmp_path}/deep/l.db") as ledger:
        assert ledger.run("r1") == run()
        assert ledger.location == f"{tmp_path}/deep/l.db"


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "l.db").write_text("this is text, and long enough to be looked at as a database header" * 20)
    with pytest.raises(ConfigError, match=r"not an .* SQLite"):
        Ledger(tmp_path / "l.db")


def test_a_ledger_whose_first_page_is_destroyed_needs_a_backup(tmp_path: Path) -> None:
    Ledger(tmp_path / "l.db").close()
    with (tmp_path / "l.db").open("r+b") as file:
        file.write(b"\xa5" * 100)
    with pytest.raises(ConfigError, match="restore a backup"):
        Ledger(tmp_path / "l.db")


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "l.db")) as connection, connection:
        connection.execute("create table users (id integer)")
    before = (tmp_path / "l.db").read_bytes()
    with pytest.raises(ConfigError, match=r"not an .* users"):
        Ledger(tmp_path / "l.db")
    assert (tmp_path / "l.db").read_bytes() == before


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="can't be created"):
        Ledger(tmp_path / "file" / "l.db")


def test_a_file_that_is_read_only_says_what_must_be_writable(tmp_path: Path) -> None:
    schema = SQLite(tmp_path / "l.db")
    read_only = sqlite3.connect(f"file:{tmp_path}/l.db?mode=ro", uri=True)
    with closing(read_only), pytest.raises(sqlite3.OperationalError) as raised:
        read_only.execute("create table t (id integer)")
    with pytest.raises(ConfigError, match=r"folder writable .* ledger=") as refused:
        raise schema.explain(raised.value, written=False)
    assert refused.value.text(COMMAND_LINE).endswith("--ledger")


@pytest.mark.parametrize("url", ["mysql://user:secret@host/db", "sqlite://", "nonsense://", "sqlite:///"])
def test_another_kind_of_url_is_refused_without_showing_a_password(url: str) -> None:
    with pytest.raises(ConfigError, match="sqlite:///") as raised:
        Ledger(url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://me:secret@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql://me:se/cr@et@host/db", "postgresql://me:***@host/db"),
        (
            "postgresql://me@host/db?password=secret&sslmode=require",
            "postgresql://me@host/db?password=***&sslmode=require",
        ),
        ("postgresql://me@host/db?PASSWORD=secret", "postgresql://me@host/db?PASSWORD=***"),
        ("postgresql://host:5432/db", "postgresql://host:5432/db"),
        ("sqlite:////tmp/l.db", "/tmp/l.db"),
        ("l.db", "l.db"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, told: str) -> None:
    assert shown(url) == told


def test_whether_there_is_a_ledger_is_told_without_making_one(tmp_path: Path) -> None:
    assert not is_there(tmp_path / "l.db")
    assert not is_there(f"sqlite:///{tmp_path}/l.db")
    assert is_there("postgresql://host/db")
    Ledger(tmp_path / "l.db").close()
    assert is_there(tmp_path / "l.db")


def test_a_full_disk_is_said_and_loses_nothing_that_was_written(tmp_path: Path) -> None:
    written = 0

    def fill(ledger: Ledger) -> None:
        nonlocal written
        while True:
            ledger.write([answer(written, reply="x" * 900)], [("r1", written, record(str(written)))])
            written += 1

    with Ledger(tmp_path / "l.db") as ledger:
        ledger.database.execute("PRAGMA max_page_count = 60")
        with pytest.raises(LedgerError, match=r"disk .* full.*is kept"):
            fill(ledger)
        assert written > 10
        assert len(ledger.records("r1")) == written
        ledger.database.execute("PRAGMA max_page_count = 6000")
        ledger.write([answer(written)])
    with Ledger(tmp_path / "l.db") as ledger:
        assert len(ledger.answers(JUDGE, [answer(n).question for n in range(written + 2)])) == written + 1
        assert ledger.database.check() == []


def test_a_disk_that_is_too_full_to_read_is_said_to_be_full(tmp_path: Path) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    assert "the disk is full" in str(SQLite(tmp_path / "l.db").explain(error, written=False))


def test_leases_that_could_not_be_given_back_are_free_for_others_of_the_process(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as first, Ledger(tmp_path / "l.db") as second:
        first.start_run(run())
        first.database.execute("PRAGMA query_only = ON")
        with pytest.raises(LedgerError, match="readonly"):
            first.leases.release_all()
        assert second.resume(run().plan) == run()


def test_a_ledger_that_another_process_keeps_locked_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstone.ledger.base.WAIT", 0.1)
    other = sqlite3.connect(tmp_path / "l.db", isolation_level=None)
    with Ledger(tmp_path / "l.db") as ledger:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="another process"):
            ledger.write([answer(1)])
        other.execute("ROLLBACK")
        ledger.write([answer(1)])
    other.close()


@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_opening_a_new_ledger_waits_for_another_process_as_long_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: str
) -> None:
    monkeypatch.setattr("evalstone.ledger.base.WAIT", 1.0)
    with closing(sqlite3.connect(tmp_path / "l.db", isolation_level=None)) as other:
        other.execute(begin)
        began = time.monotonic()
        with pytest.raises(LedgerBusyError, match="for 1 seconds"):
            Ledger(tmp_path / "l.db")
        assert 0.9 < time.monotonic() - began < 1.7


def test_writing_stays_cheap(tmp_path: Path) -> None:
    answers = [answer(n, reply='{"claims": ["' + "a claim of some words " * 10 + '"]}') for n in range(1000)]
    written = records("r1", *(record(str(n)) for n in range(500)))

    def cost(name: str) -> float:
        with Ledger(tmp_path / name) as ledger:
            began = time.process_time()
            for n in range(150):
                ledger.write(answers[n * 7 : n * 7 + 7], written[n * 3 : n * 3 + 4])
            return time.process_time() - began

    assert min(cost(f"{n}.db") for n in range(3)) < 0.5  # 0.05 s on the machine where this was written
