"""A ledger's file that goes away, or can't be written any more, during a run."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstone import LedgerError, evaluate
from evalstone.ledger import AsyncLedger, sqlite
from evalstone.ledger.sqlite import CHECK_INTERVAL
from evalstone.ledger.store import Ledger
from tests.ledger.rows import answer, record, run
from tests.serving import Server, obliging, serving

SAMPLES, CONCURRENCY, MOMENT = 20, 2, 14
DELETED = "was deleted or moved"
RESUME = " results are saved in res; rerun the same command to resume.\n"
LIMITED = """
import resource, sys
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (330_000, 330_000))  # the ledger needs more
from evalstone.cli import main
main()
"""


def command(server: Server, ledger: Path, *more: str) -> list[str]:
    options = ["-s", "faithfulness", "-j", "vllm/test", "--base-url", server.url, "--ledger", str(ledger), "-q"]
    start = [sys.executable, "-m", "evalstone", "run", "data.jsonl", "--concurrency", str(CONCURRENCY)]
    return [*start, *options, "--out", "res", *more]


def write_data(folder: Path) -> None:
    rows = [{"id": str(n), "output": f"answer number {n}", "context": [f"passage {n}"]} for n in range(SAMPLES)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def delete(ledger: Path) -> None:
    ledger.unlink()


def delete_all(ledger: Path) -> None:
    for file in ledger.parent.glob("l.db*"):
        file.unlink()


def move(ledger: Path) -> None:
    ledger.rename(ledger.with_name("elsewhere.db"))


def replace(ledger: Path) -> None:
    shutil.copyfile(ledger, ledger.with_name("copy.db"))
    ledger.with_name("copy.db").replace(ledger)


def delete_wal(ledger: Path) -> None:
    ledger.with_name("l.db-wal").unlink()


def delete_shm(ledger: Path) -> None:
    ledger.with_name("l.db-shm").unlink()


def delete_folder(ledger: Path) -> None:
    shutil.rmtree(ledger.parent)


def empty(ledger: Path) -> None:
    os.truncate(ledger, 0)


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (delete, "the ledger {} was deleted or moved while"),
        (delete_all, "the ledger {} was deleted or moved while"),
        (move, "the ledger {} was deleted or moved while"),
        (replace, "the ledger {} was replaced by another file while"),
        (delete_wal, "{}-wal, a part of the ledger, was deleted or moved while"),
        (delete_shm, "{}-shm, a part of the ledger, was deleted or moved while"),
        (delete_folder, "the ledger {} was deleted or moved while"),
        (empty, "the ledger {} was emptied while"),
    ],
)
def test_a_ledger_that_goes_away_ends_the_run_at_once_and_the_results_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None], told: str
) -> None:
    write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    ledger = tmp_path / "ledgers" / "l.db"

    def harming(request: dict[str, Any], number: int) -> Any:
        if number == MOMENT:
            harm(ledger)
            time.sleep(CHECK_INTERVAL)
        return obliging(request, number)

    with serving(harming) as server:
        judge = {"model": "vllm/test", "base_url": server.url}
        with pytest.raises(LedgerError) as raised:
            evaluate(
                tmp_path / "data.jsonl",
                "faithfulness",
                judge=judge,
                ledger=ledger,
                concurrency=CONCURRENCY,
                progress=False,
            )
        assert len(server.requests) <= MOMENT + CONCURRENCY
    assert str(raised.value).startswith(told.format(ledger))
    results = raised.value.run
    assert MOMENT // 2 - 2 * CONCURRENCY <= len(results) < SAMPLES
    assert results.stop_reason == str(raised.value)
    assert sum(line.n_score for line in results.summary) == len(results)


def test_the_command_says_what_became_of_its_ledger_and_keeps_the_results(tmp_path: Path) -> None:
    write_data(tmp_path)

    def harming(request: dict[str, Any], number: int) -> Any:
        if number == 2 * SAMPLES:
            delete_all(tmp_path / "l.db")
        return obliging(request, number)

    with serving(harming) as server:
        done = subprocess.run(
            command(server, tmp_path / "l.db"), cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith(f"evalstone: the ledger {tmp_path}/l.db {DELETED} ")
    assert done.stderr.endswith(RESUME)
    assert len(done.stderr.splitlines()) == 1
    assert len((tmp_path / "res" / "records.jsonl").read_text().splitlines()) >= SAMPLES - 2 * CONCURRENCY


def test_a_run_that_loses_its_ledger_after_the_last_record_is_not_complete(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.start_run(run())
        (tmp_path / "l.db").unlink()
        with pytest.raises(LedgerError, match=DELETED):
            ledger.finish_run("r1", "2026-01-01T00:01:00", {})


def test_a_ledger_that_is_replaced_just_before_the_end_of_a_run_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "CHECK_INTERVAL", 60.0)
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.start_run(run("r"))
        replace(tmp_path / "l.db")
        with pytest.raises(LedgerError, match="by another file"):
            ledger.finish_run("r", "2026-01-01T00:00:00+00:00", {})


def test_the_files_of_a_ledger_that_is_reached_by_a_link_are_those_beside_its_target(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "l.db")
    with Ledger(tmp_path / "link.db") as ledger:
        ledger.start_run(run("r"))
        delete_wal(tmp_path / "l.db")
        time.sleep(CHECK_INTERVAL)
        with pytest.raises(LedgerError, match=r"-wal, .* was deleted"):
            ledger.start_run(run("s"))


def overwrite_wal(ledger: Path) -> None:
    wal = ledger.with_name("l.db-wal")
    wal.write_bytes(b"\xa5" * wal.stat().st_size)


def empty_wal(ledger: Path) -> None:
    os.truncate(ledger.with_name("l.db-wal"), 0)


@pytest.mark.parametrize("harm", [overwrite_wal, empty_wal])
def test_a_run_whose_records_are_damaged_before_its_end_is_not_complete(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.start_run(run())
        ledger.write(records=[("r1", number, record(str(number))) for number in range(100)])
        harm(tmp_path / "l.db")
        with pytest.raises(LedgerError, match=r"ledger recover|overwritten|I/O"):
            ledger.finish_run("r1", "2026-01-01T00:01:00", {})


def test_damage_that_is_met_during_a_run_is_said(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.start_run(run())
        with pytest.raises(LedgerError, match="was overwritten"), ledger.transaction():
            raise _sqlite_error(sqlite3.SQLITE_NOTADB)


def _sqlite_error(code: int) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError("file is not a database")
    error.sqlite_errorcode = code
    return error


def test_a_lost_ledger_is_noticed_while_calls_are_in_flight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.ledger.leases.LEASE_SECONDS", 0.3)

    async def work() -> None:
        async with AsyncLedger(tmp_path / "l.db") as ledger:
            await ledger.answer_or_claim(answer(1).question, "j")
            (tmp_path / "l.db").unlink()
            calling = asyncio.ensure_future(asyncio.sleep(30))
            with pytest.raises(LedgerError, match=DELETED):
                await asyncio.wait_for(ledger.ends_with(calling), 5)
            calling.cancel()
            with pytest.raises(LedgerError, match=DELETED):
                ledger.check()

    asyncio.run(work())


def test_a_disk_that_takes_no_more_ends_the_run_and_the_results_are_kept(tmp_path: Path) -> None:
    write_data(tmp_path)
    with serving() as server:
        start = [sys.executable, "-c", LIMITED, *command(server, tmp_path / "l.db")[3:]]
        done = subprocess.run(start, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert len(server.requests) < 2 * SAMPLES
    assert done.returncode == 3, done.stderr
    assert f"{tmp_path}/l.db can't be" in done.stderr
    assert ": disk I/O error" in done.stderr
    assert done.stderr.endswith(RESUME)
    assert (tmp_path / "res" / "records.jsonl").read_text()
