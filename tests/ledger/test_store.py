"""The ledger: what is written is there, and what is no ledger is said to be none."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from evalstone.errors import LedgerError, UsageError
from evalstone.ledger import RunRow, StoredAnswer
from evalstone.ledger.store import Ledger
from evalstone.types import Failed, Record, Score, Skipped, Step, Usage

ANSWER = StoredAnswer("f" * 32, "openai/x", "list_claims", '{"claims": []}', Usage(1, 2, 3, 4), None, 0.5, 0.9)
RUN = RunRow("r1", "p" * 32, "2026-01-01T00:00:00", None, {"judge": "x"})


def record(sample: str, value: float = 0.5) -> Record:
    step = Step(question="q", fingerprint="f", judge="j", answer={"a": [1]}, usage=Usage(1, 2), cost=None)
    return Record(sample=sample, scorer="s@1", outcome=Score(value, 1.0, "why", {"x": 1}), steps=(step,))


def test_answers_and_records_come_back_as_they_were(tmp_path: Path) -> None:
    with Ledger(tmp_path / "deep" / "l.db") as ledger:
        ledger.start_run(RUN)
        ledger.write([ANSWER], [("r1", record("a")), ("r1", record("b"))])
    with Ledger(f"sqlite:///{tmp_path}/deep/l.db") as ledger:
        assert ledger.answers("openai/x", ["f" * 32, "e" * 32]) == {"f" * 32: ANSWER}
        assert ledger.answers("another", ["f" * 32]) == {}
        assert ledger.records("r1") == [record("a"), record("b")]
        assert ledger.run("last") == ledger.run("r1") == RUN
        assert ledger.run("r2") is None


def test_all_three_outcomes_come_back(tmp_path: Path) -> None:
    records = [
        Record(sample="a", scorer="s@1", outcome=Skipped("no claim")),
        Record(sample="b", scorer="s@1", outcome=Failed("broke", "raw reply")),
        record("c"),
    ]
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.write(records=[("r1", r) for r in records])
        assert ledger.records("r1") == records


def test_a_record_written_again_replaces_the_first(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.write(records=[("r1", record("a", 0.1))])
        ledger.write(records=[("r1", record("a", 0.9))])
        assert [r.value for r in ledger.records("r1")] == [0.9]


def test_only_an_unfinished_run_of_the_same_plan_is_taken_up(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.start_run(RUN)
        assert ledger.unfinished("p" * 32) == RUN
        assert ledger.unfinished("other") is None
        ledger.finish_run("r1", "2026-01-01T00:01:00", {"judge": "x"})
        assert ledger.unfinished("p" * 32) is None


def test_many_answers_are_found_in_one_call(tmp_path: Path) -> None:
    many = [StoredAnswer(f"{n:032d}", "j", "k", "{}", Usage(), 0.0, 0.0, None) for n in range(1500)]
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.write(many)
        assert len(ledger.answers("j", [a.question for a in many])) == 1500


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "l.db").write_text("this is text, and long enough to be looked at as a database header" * 20)
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger(tmp_path / "l.db")


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "l.db") as connection:
        connection.execute("create table users (id integer)")
    connection.close()
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger(tmp_path / "l.db")


def test_a_ledger_of_another_version_is_refused(tmp_path: Path) -> None:
    Ledger(tmp_path / "l.db").close()
    with sqlite3.connect(tmp_path / "l.db") as connection:
        connection.execute("update ledger set version = 99")
    connection.close()
    with pytest.raises(LedgerError, match="version 99"):
        Ledger(tmp_path / "l.db")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be made"):
        Ledger(tmp_path / "file" / "l.db")


@pytest.mark.parametrize("url", ["mysql://user:secret@host/db", "sqlite://", "nonsense://"])
def test_another_kind_of_url_is_refused_without_showing_a_password(url: str) -> None:
    with pytest.raises(UsageError, match="sqlite:///") as raised:
        Ledger(url)
    assert "secret" not in str(raised.value)
