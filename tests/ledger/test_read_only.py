"""A ledger that is only read: nothing is created or changed."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from pathlib import Path

import pytest

from evalstone import ConfigError, evaluate, read_run
from evalstone.errors import LedgerError
from evalstone.ledger.store import Ledger
from tests.runs import Given, samples_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    evaluate(samples_of(["0.5", "skip"]), [Given()], ledger=tmp_path / "ledger.db", name="main")
    return tmp_path / "ledger.db"


def state(path: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path.parent.iterdir()}


def test_reading_a_run_changes_nothing_in_the_folder(path: Path) -> None:
    before = state(path)
    run = read_run("main", ledger=path)
    assert [sample.id for sample in run.samples or ()] == ["s1", "s2"]
    assert run["given"].n_skipped == 1
    assert state(path) == before


def test_writing_is_refused(path: Path) -> None:
    with Ledger(path, read_only=True) as ledger, pytest.raises((LedgerError, ConfigError)):
        ledger.finish_run("x", None, {})


def test_a_file_that_is_missing_or_empty_is_refused_and_not_created(tmp_path: Path) -> None:
    with pytest.raises((LedgerError, ConfigError)):
        Ledger(tmp_path / "none.db", read_only=True)
    sqlite3.connect(tmp_path / "empty.db").close()
    (tmp_path / "empty.db").touch()
    with pytest.raises(ConfigError):
        Ledger(tmp_path / "empty.db", read_only=True)
    assert not (tmp_path / "none.db").exists()
    assert (tmp_path / "empty.db").stat().st_size == 0


def test_what_another_process_writes_is_seen(path: Path) -> None:
    with Ledger(path) as writing, Ledger(path, read_only=True) as reading:
        assert len(reading.runs()) == 1
        (row,) = writing.runs()
        writing.finish_run(row.id, "2026-01-01T00:00:00+00:00", row.metadata)
        assert reading.runs()[0].finished == "2026-01-01T00:00:00+00:00"


def test_a_file_that_sqlite_cant_open_for_writing_is_read_as_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evalstone.ledger import sqlite  # noqa: PLC0415 - to refuse as a folder that can't be written does

    connect = sqlite.sqlite3.connect

    class Refusing(sqlite3.Connection):
        def execute(self, *_: object) -> sqlite3.Cursor:  # type: ignore[override]
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error

    def refusing(name: str, **settings: object) -> sqlite3.Connection:
        return Refusing(":memory:") if "mode=rw" in name else connect(name, **settings)  # type: ignore[call-overload]

    monkeypatch.setattr(sqlite.sqlite3, "connect", refusing)
    with Ledger(path, read_only=True) as ledger:
        assert [row.metadata["name"] for row in ledger.runs()] == ["main"]


def test_a_file_that_cant_be_written_gets_no_files_beside_it(path: Path) -> None:
    path.chmod(0o444)
    if os.access(path, os.W_OK):
        pytest.skip("this user may write every file")
    with Ledger(path, read_only=True) as ledger:
        assert [row.id for row in ledger.runs()] != []
    assert [file.name for file in path.parent.iterdir()] == [path.name]
