"""Leases in memory: who is alone on a file writes none for its questions, and who comes later knows them all."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from evalstone.ledger import AsyncLedger, Claim
from evalstone.ledger.base import Operations
from evalstone.ledger.store import Ledger
from tests.ledger.rows import JUDGE, answer, run

pytestmark = pytest.mark.slow

T = TypeVar("T")
ONE, TWO = answer(1), answer(2)


def done(work: Coroutine[Any, Any, T], seconds: float = 20) -> T:
    return asyncio.run(asyncio.wait_for(work, seconds))


def leased(path: Path) -> set[str]:
    """The questions that have a row in `leases`."""
    with Ledger(path) as ledger, ledger.transaction() as database:
        return set(database.scalars("SELECT question FROM leases WHERE judge = :judge", {"judge": JUDGE}))


def test_who_is_alone_writes_no_leases_and_who_comes_later_waits_for_the_answers(tmp_path: Path) -> None:
    path = tmp_path / "l.db"

    async def work() -> None:
        async with AsyncLedger(path) as first:
            assert isinstance(await first.answer_or_claim(ONE.question, JUDGE), Claim)
            assert leased(path) == set()
            async with AsyncLedger(path) as second:
                waiting = asyncio.ensure_future(second.answer_or_claim(ONE.question, JUDGE))
                assert isinstance(await second.answer_or_claim(TWO.question, JUDGE), Claim)
                assert leased(path) == {ONE.question, TWO.question}
                too = asyncio.ensure_future(first.answer_or_claim(TWO.question, JUDGE))
                await asyncio.sleep(0.2)
                assert not waiting.done()
                assert not too.done()
                await first.keep_answer(ONE)
                await second.keep_answer(TWO)
                assert (await waiting, await too) == (ONE, TWO)
        assert leased(path) == set()

    done(work())


def test_a_claim_that_was_given_up_is_no_lease(tmp_path: Path) -> None:
    path = tmp_path / "l.db"

    async def work() -> None:
        async with AsyncLedger(path) as first:
            for each in (ONE, TWO):
                assert isinstance(await first.answer_or_claim(each.question, JUDGE), Claim)
            first.release(ONE.question, JUDGE)
            await first.keep_answer(TWO)
            assert isinstance(await first.answer_or_claim(ONE.question, JUDGE, 1), Claim)
            assert isinstance(await first.answer_or_claim(ONE.question, JUDGE), Claim)
            first.release(ONE.question, JUDGE)
            async with AsyncLedger(path) as second:
                assert isinstance(await second.answer_or_claim(ONE.question, JUDGE), Claim)

    done(work())


def test_who_has_a_blocked_loop_keeps_nobody_waiting(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    joined: list[float] = []

    async def join() -> None:
        async with AsyncLedger(path) as second:
            assert isinstance(await second.answer_or_claim(TWO.question, JUDGE), Claim)
            joined.append(time.monotonic())
            assert leased(path) == {ONE.question, TWO.question}

    async def work() -> float:
        async with AsyncLedger(path) as first:
            assert isinstance(await first.answer_or_claim(ONE.question, JUDGE), Claim)
            thread = threading.Thread(target=lambda: done(join()))
            thread.start()
            time.sleep(3)  # noqa: ASYNC251 - the loop is blocked
            blocked = time.monotonic()
            thread.join()
            return blocked

    blocked = done(work())
    assert joined[0] < blocked


def claim_and_wait(path: Path, ready: threading.Event) -> None:
    async def work() -> None:
        async with AsyncLedger(path) as ledger:
            await ledger.work(ledger.store.start_run, run())
            assert isinstance(await ledger.answer_or_claim(ONE.question, JUDGE), Claim)
            ready.set()
            await asyncio.sleep(60)

    asyncio.run(work())


def test_of_a_killed_process_nothing_is_left_and_of_a_living_one_everything_is_known(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=claim_and_wait, args=(path, ready))

    async def asks(seconds: float) -> bool:
        async with AsyncLedger(path) as ledger:
            claiming = asyncio.ensure_future(ledger.answer_or_claim(ONE.question, JUDGE))
            await asyncio.wait([claiming], timeout=seconds)
            claiming.cancel()
            return claiming.done() and not claiming.cancelled()

    process.start()
    try:
        assert ready.wait(60)
        assert not done(asks(0.5))
        process.kill()
        process.join()
        began = time.monotonic()
        assert done(asks(10))
        assert time.monotonic() - began < 5  # sooner than a lease expires
        with Ledger(path) as ledger:
            assert ledger.resume(run().plan) == run()
    finally:
        process.kill()
        process.join()


def test_two_that_took_each_other_for_dead_find_each_other(tmp_path: Path) -> None:
    path = tmp_path / "l.db"

    async def work() -> None:
        async with AsyncLedger(path) as first:
            assert isinstance(await first.answer_or_claim(answer(3).question, JUDGE), Claim)
            with Ledger(path) as other, other.transaction(writing=True) as database:
                database.execute("DELETE FROM leases")  # as those of a process that was suspended for long
            async with AsyncLedger(path) as second:
                assert isinstance(await second.answer_or_claim(answer(4).question, JUDGE), Claim)
                await asyncio.sleep(0.5)
                assert leased(path) == {answer(3).question, answer(4).question}
                assert isinstance(await first.answer_or_claim(ONE.question, JUDGE), Claim)
                waiting = asyncio.ensure_future(second.answer_or_claim(ONE.question, JUDGE))
                assert isinstance(await second.answer_or_claim(TWO.question, JUDGE), Claim)
                await first.keep_answer(ONE)
                assert await waiting == ONE
                assert ONE.question not in leased(path)

    done(work())


def test_of_two_that_share_none_is_forgotten_when_its_leases_have_expired(tmp_path: Path) -> None:
    path = tmp_path / "l.db"

    async def work() -> None:
        async with AsyncLedger(path) as first:
            assert isinstance(await first.answer_or_claim(answer(3).question, JUDGE), Claim)
            async with AsyncLedger(path) as second:
                assert isinstance(await second.answer_or_claim(answer(4).question, JUDGE), Claim)
            with Ledger(path) as other, other.transaction(writing=True) as database:
                database.execute("DELETE FROM leases")
            await first.work(first.store.apply, Operations(renew=True))
            async with AsyncLedger(path) as third:
                assert isinstance(await first.answer_or_claim(ONE.question, JUDGE), Claim)
                waiting = asyncio.ensure_future(third.answer_or_claim(ONE.question, JUDGE))
                assert isinstance(await third.answer_or_claim(TWO.question, JUDGE), Claim)
                await first.keep_answer(ONE)
                assert await waiting == ONE

    done(work())


def test_who_finds_all_answers_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "l.db"

    async def work() -> None:
        async with AsyncLedger(path) as first:
            await first.keep_answer(ONE)
        before = path.stat().st_mtime_ns
        async with AsyncLedger(path) as second:
            assert await second.answer_or_claim(ONE.question, JUDGE) == ONE
        assert path.stat().st_mtime_ns == before

    done(work())


def test_a_process_that_only_reads_leaves_one_that_asks_alone(tmp_path: Path) -> None:
    path = tmp_path / "l.db"

    async def work() -> None:
        async with AsyncLedger(path) as first:
            with Ledger(path) as other:
                other.start_run(run())
                other.leases.release_all()
                await asyncio.sleep(0.3)
                assert isinstance(await first.answer_or_claim(ONE.question, JUDGE), Claim)
            assert leased(path) == set()

    done(work())
