"""Samples that outlive their worker: which are scored again, and which are given up."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from evalstone.errors import LedgerError
from evalstone.judges.parse import parse_judge
from evalstone.ledger import live as rows
from evalstone.ledger.store import Ledger
from evalstone.live import frames, scoring, sender
from evalstone.live.frames import Content, Frame, Settings, Submitted
from evalstone.scorers import parse_scorers
from tests.live import scoring as own
from tests.live.conftest import Start
from tests.live.test_live import answered, found
from tests.live.test_worker import until

pytestmark = pytest.mark.slow

FAILURES = 8
"""More than the workers that may leave a sample behind."""


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(sender, "MAX_PAUSE", 0.05)


@pytest.fixture
def asyncio_is_quiet(caplog: pytest.LogCaptureFixture) -> Generator[None]:
    """No future has an error that nobody has looked at."""
    yield
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.usefixtures("asyncio_is_quiet")
@pytest.mark.parametrize("operation", ["finish", "begin", "write_frame", "claim_pending"])
def test_a_ledger_that_fails_often_is_no_reason_to_give_a_sample_up(
    start: Start, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    def fail(name: str, times: int) -> None:
        work = getattr(rows, name)

        def broken(*arguments: Any) -> Any:
            nonlocal times
            times -= 1
            if times >= 0:
                raise LedgerError("the disk is full")
            return work(*arguments)

        monkeypatch.setattr(rows, name, broken)

    fail(operation, FAILURES)
    if operation != "finish":
        fail("finish", 1)  # so that something is taken over
    live = start(["contains", own.slow], concurrency=2)
    for number in range(6):
        live.submit(**answered(number))
    assert live.flush(30)
    one = live.coverage().total
    assert (one.n_score, one.n_failed, one.unaccounted) == (12, 0, 0)
    assert {row.takeovers for row in found(live)} <= {0, 1}


@pytest.mark.skipif(sys.platform == "win32", reason="its output is that of a process group")
def test_a_worker_that_ends_with_its_ledger_leaves_no_complaint_and_its_rows_to_the_next(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BROKEN", str(tmp_path / "broken"))
    live = start([own.slow, own.breaking], process=True)
    for number in range(6):
        live.submit(**answered(number))
        time.sleep(0.06)  # in several frames
    assert live.flush(30)
    assert live.coverage().total.n_score == 12
    assert capfd.readouterr().err == ""


def test_a_sample_that_ends_its_worker_is_given_up_after_five_and_its_neighbors_are_not(
    start: Start, tmp_path: Path
) -> None:
    live = start(own.deadly, process=True)
    for number in range(20):
        live.submit(**answered(number))
        if number == 3:
            live.submit(output="deadly")
    assert live.flush(40)
    one = live.coverage().total
    assert (one.n_score, one.n_failed, one.unaccounted) == (20, 1, 0)
    (failed,) = [row for row in found(live) if row.state == "failed"]
    assert "5 workers ended" in str(failed.body)


def test_a_sample_that_was_only_slow_when_its_workers_ended_is_not_given_up(start: Start) -> None:
    live = start(own.endless)
    live.submit(**answered(0))
    for _ in range(FAILURES):
        live.start()
        assert not live.close(0.05)
    with Ledger(live.ledger) as ledger:
        (row,) = rows.scores(ledger)
    assert (row.state, row.takeovers) == ("pending", 0)


@pytest.mark.anyio
async def test_a_takeover_that_is_counted_while_the_worker_ends_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(
        stream="s",
        owner="1-a",
        scorers=parse_scorers([own.endless]),
        judge=parse_judge("lexical"),
        ledger=str(tmp_path / "l.db"),
    )
    content, size = frames.snapshot(Content(answered(0)))
    async with scoring.Scoring(settings) as first:
        await first.accept(Frame(1, (), [Submitted(1, time.time(), 1, "live", None, None, None, content, size)]))
    begin, counted = rows.begin, threading.Event()

    def slow(*arguments: Any) -> Any:
        counted.set()
        time.sleep(0.1)
        return begin(*arguments)

    monkeypatch.setattr(rows, "begin", slow)
    async with scoring.Scoring(settings):
        await asyncio.to_thread(counted.wait)
    with Ledger(settings.ledger) as ledger:
        (row,) = rows.scores(ledger)
    assert (row.state, row.takeovers) == ("pending", 0)


def test_what_was_begun_when_its_worker_ended_is_scored_one_at_a_time(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "CLAIM_EVERY", 0.05)
    live = start(own.endless)
    for number in range(6):
        live.submit(**answered(number))
    assert not live.close(0.2)
    with Ledger(live.ledger) as ledger, ledger.transaction(writing=True) as connection:
        connection.execute("UPDATE live_scores SET takeovers = 1 WHERE id NOT LIKE '%/6/0'")
    live.start()
    deadline = time.monotonic() + 10
    with Ledger(live.ledger) as ledger:
        while sum(row.takeovers for row in rows.scores(ledger)) < 7 and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.1)
        assert sorted(row.takeovers for row in rows.scores(ledger)) == [1, 1, 1, 1, 1, 2]


def test_a_worker_that_ends_while_nothing_is_submitted_is_replaced(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "LOOK_EVERY", 0.1)
    monkeypatch.setenv("BROKEN", str(tmp_path / "broken"))
    live = start(own.deadly_once, process=True)
    live.submit(**answered(0))
    with Ledger(live.ledger) as ledger:  # and not by a flush, which would ask the worker
        until(lambda: [row.state for row in rows.scores(ledger)] == ["score"])


def test_more_than_a_worker_holds_is_taken_over_without_delay(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "MAX_UNFINISHED", 5)
    monkeypatch.setattr(scoring, "MISSING_EVERY", 0.01)
    before = start(own.slow, concurrency=1)
    for number in range(20):
        before.submit(**answered(number))
    assert not before.close(0.1)
    after = start(own.slow, stream=before.stream, ledger=before.ledger)
    after.start()
    deadline = time.monotonic() + scoring.CLAIM_EVERY / 2
    while after.coverage().total.n_score < 20 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert after.coverage().total.n_score == 20
