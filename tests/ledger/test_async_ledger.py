"""The ledger on an event loop: many reads and writes share a transaction, and a question is one caller's to ask."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
import time
import weakref
from collections.abc import Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from evalstone.errors import LedgerBusyError, LedgerError
from evalstone.ledger import AsyncLedger, Claim, StoredAnswer
from evalstone.ledger.base import Applied, Operations
from evalstone.ledger.store import Ledger
from tests.ledger.rows import JUDGE, answer, record, run

pytestmark = pytest.mark.slow

T = TypeVar("T")

ONE = answer(1)


def done_within(work: Coroutine[Any, Any, T], seconds: float = 20) -> T:
    return asyncio.run(asyncio.wait_for(work, seconds))


def test_what_is_kept_is_durable_when_the_await_ends(url: str) -> None:
    async def work() -> None:
        async with AsyncLedger(url) as ledger:
            await ledger.work(ledger.store.start_run, run())
            await asyncio.gather(
                *(ledger.keep_answer(answer(n)) for n in range(50)),
                *(ledger.keep_records("r1", [(n, record(str(n)), None)]) for n in range(50)),
            )
            with Ledger(url) as second:
                assert len(second.answers(JUDGE, [answer(n).question for n in range(50)])) == 50
                assert len(second.records("r1")) == 50
            found = await asyncio.gather(*(ledger.answer(answer(n).question, JUDGE) for n in range(51)))
            assert found == [*(answer(n) for n in range(50)), None]
            assert await ledger.work(ledger.store.resume, run().plan) is None  # it is under way, here
        async with AsyncLedger(url) as ledger:
            assert await ledger.work(ledger.store.resume, run().plan) == run()

    done_within(work())


def test_records_are_read_a_part_at_a_time_and_all_of_them(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.ledger.async_ledger.RECORDS_PER_READ", 3)

    async def work() -> None:
        async with AsyncLedger(url) as ledger:
            await ledger.work(ledger.store.start_run, run())
            for n in range(7):
                await ledger.keep_records("r1", [(n, record(str(n)), None)])
            assert [found async for found in ledger.records("r1")] == [(n, record(str(n))) for n in range(7)]
            assert [found async for found in ledger.records("another")] == []

    done_within(work())


def test_of_many_who_want_to_ask_one_may_and_the_others_get_the_answer(url: str) -> None:
    async def want(ledger: AsyncLedger, log: list[str]) -> StoredAnswer:
        found = await ledger.answer_or_claim(ONE.question, JUDGE)
        if isinstance(found, StoredAnswer):
            return found
        log.append("asked")
        await asyncio.sleep(0.2)
        await ledger.keep_answer(ONE)
        return ONE

    async def work() -> None:
        log: list[str] = []
        async with AsyncLedger(url) as first, AsyncLedger(url) as second:
            got = await asyncio.gather(*(want(ledger, log) for ledger in (first, second) for _ in range(5)))
        assert got == [ONE] * 10
        assert log == ["asked"]

    done_within(work())


def test_who_gives_up_a_claim_leaves_it_to_the_next(url: str) -> None:
    async def work() -> None:
        async with AsyncLedger(url) as first, AsyncLedger(url) as second:
            assert isinstance(await first.answer_or_claim(ONE.question, JUDGE), Claim)
            waiting = asyncio.ensure_future(second.answer_or_claim(ONE.question, JUDGE))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            first.release(ONE.question, JUDGE)
            assert isinstance(await waiting, Claim)
            assert isinstance(await first.answer_or_claim(ONE.question, JUDGE, 1), Claim)

    done_within(work())


def test_a_caller_who_is_stopped_keeps_no_claim(url: str) -> None:
    async def work() -> None:
        async with AsyncLedger(url) as first, AsyncLedger(url) as second:
            for pause in (0.0, 0.001, 0.003, 0.01):
                wanted = [asyncio.ensure_future(first.answer_or_claim(answer(n).question, JUDGE)) for n in range(20)]
                await asyncio.sleep(pause)
                for task in wanted:
                    task.cancel()
                results = await asyncio.gather(*wanted, return_exceptions=True)
                for n, result in enumerate(results):
                    if isinstance(result, Claim):
                        first.release(answer(n).question, JUDGE)
                for n in range(20):
                    assert isinstance(await second.answer_or_claim(answer(n).question, JUDGE), Claim)
                    second.release(answer(n).question, JUDGE)
                await second.answer("x", JUDGE)

    done_within(work())


def test_a_ledger_that_is_closed_holds_nothing_back(url: str) -> None:
    async def work() -> None:
        async with AsyncLedger(url) as first:
            await first.work(first.store.start_run, run())
            assert isinstance(await first.answer_or_claim(ONE.question, JUDGE), Claim)
        async with AsyncLedger(url) as second:
            assert isinstance(await second.answer_or_claim(ONE.question, JUDGE), Claim)
            assert await second.work(second.store.resume, run().plan) is not None

    done_within(work())


def test_a_lease_is_renewed_as_long_as_its_holder_works(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.ledger.leases.LEASE_SECONDS", 1.5)

    async def work() -> None:
        async with AsyncLedger(url) as first, AsyncLedger(url) as second:
            assert isinstance(await first.answer_or_claim(ONE.question, JUDGE), Claim)
            waiting = asyncio.ensure_future(second.answer_or_claim(ONE.question, JUDGE))
            await asyncio.sleep(3.5)
            assert not waiting.done()
            await first.keep_answer(ONE)
            assert await waiting == ONE

    done_within(work())


def test_an_error_of_the_ledger_reaches_everyone_who_waits(tmp_path: Path) -> None:
    async def work() -> tuple[Any, ...]:
        async with AsyncLedger(tmp_path / "l.db") as ledger:
            with Ledger(tmp_path / "l.db") as other, other.transaction(writing=True) as connection:
                connection.execute("DROP TABLE answers")
            ledger.check()
            told = await asyncio.gather(
                ledger.keep_answer(ONE),
                ledger.answer(ONE.question, JUDGE),
                ledger.answer_or_claim(ONE.question, JUDGE),
                return_exceptions=True,
            )
            with pytest.raises(LedgerError):
                ledger.check()
            return told

    assert [type(error) for error in done_within(work())] == [LedgerError] * 3


def test_while_another_process_writes_the_loop_goes_on_and_the_answer_is_kept_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "l.db"
    monkeypatch.setattr("evalstone.ledger.base.WAIT", 10.0)

    async def work() -> None:
        longest = 0.0

        async def tick() -> None:
            nonlocal longest
            while True:
                began = time.perf_counter()
                await asyncio.sleep(0.01)
                longest = max(longest, time.perf_counter() - began)

        async with AsyncLedger(path) as ledger:
            await ledger.keep_answer(answer(1))
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            ticking = asyncio.ensure_future(tick())
            keeping = asyncio.ensure_future(ledger.keep_answer(answer(2)))
            await asyncio.sleep(0.6)
            assert not keeping.done()
            assert longest < 5  # a loop that waits for the other process itself stands still for all of WAIT
            other.execute("COMMIT")
            other.close()
            await keeping
            await ledger.keep_answer(answer(3))
            ticking.cancel()
            found = [await ledger.answer(answer(n).question, JUDGE) for n in (1, 2, 3)]
            assert found == [answer(n) for n in (1, 2, 3)]

    done_within(work())


def test_a_locked_ledger_is_waited_for_as_long_as_is_said_and_not_again_when_it_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "l.db"
    wait = 2.0
    monkeypatch.setattr("evalstone.ledger.base.WAIT", wait)
    monkeypatch.setattr("evalstone.ledger.leases.LEASE_SECONDS", 1.2)  # renewals wait too
    taken: list[float] = []

    async def keep(ledger: AsyncLedger, number: int) -> None:
        await asyncio.sleep(0.2 * number)
        began = time.monotonic()
        with pytest.raises(LedgerBusyError, match="for 2 seconds"):
            await ledger.keep_answer(answer(number))
        taken.append(time.monotonic() - began)

    async def work(other: sqlite3.Connection) -> None:
        async with AsyncLedger(path) as ledger:
            assert isinstance(await ledger.answer_or_claim(ONE.question, JUDGE), Claim)
            other.execute("BEGIN IMMEDIATE")
            await asyncio.sleep(0.5)
            await asyncio.gather(*(keep(ledger, n) for n in range(4)))
            with pytest.raises(LedgerBusyError):
                ledger.check()

    async def resumed() -> None:
        async with AsyncLedger(path) as ledger:
            await ledger.work(ledger.store.resume, run().plan)

    Ledger(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        began = time.monotonic()
        done_within(work(other))
        # Who waits from its turn on, behind the renewal, takes 1.9 · wait; who closes and waits again, twice as long.
        assert time.monotonic() - began < 0.5 + 1.9 * wait
        assert 0.9 * wait < max(taken) < 1.9 * wait
        began = time.monotonic()
        with pytest.raises(LedgerBusyError):
            done_within(resumed())
        assert 0.9 * wait < time.monotonic() - began < 1.9 * wait


def test_what_waited_for_the_thread_is_no_garbage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.ledger.async_ledger.SLOW", -1.0)

    async def work() -> None:
        async with AsyncLedger(tmp_path / "l.db") as ledger:
            gc.disable()
            try:
                waiting = ledger._scheduled()  # pyright: ignore[reportPrivateUsage]
                first = weakref.ref(waiting)
                await waiting
                del waiting
                await ledger.keep_answer(answer(0))  # until then, the thread has the last transaction
                assert first() is None
            finally:
                gc.enable()

    done_within(work())


@pytest.mark.parametrize("slow", [-1.0, 1e9])
def test_a_slow_ledger_is_the_threads_to_wait_for_and_gives_the_same(
    url: str, slow: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstone.ledger.async_ledger.SLOW", slow)

    async def work() -> None:
        async with AsyncLedger(url) as ledger:
            await asyncio.gather(*(ledger.keep_answer(answer(n)) for n in range(20)))
            found = await asyncio.gather(*(ledger.answer(answer(n).question, JUDGE) for n in range(21)))
            assert found == [*(answer(n) for n in range(20)), None]

    done_within(work())


def test_a_ledger_that_was_slow_for_a_moment_is_written_on_the_loop_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []
    apply = Ledger.apply

    def slow_at_first(ledger: Ledger, operations: Operations) -> Applied:
        threads.append(threading.current_thread() is threading.main_thread())
        if len(threads) <= 8:
            time.sleep(0.1)
        return apply(ledger, operations)

    monkeypatch.setattr(Ledger, "apply", slow_at_first)

    async def work() -> None:
        async with AsyncLedger(tmp_path / "l.db") as ledger:
            for number in range(100):
                await ledger.keep_answer(answer(number))

    done_within(work())
    assert not all(threads)
    assert threads[-1]


def test_an_error_on_the_spot_reaches_all_who_wait(tmp_path: Path) -> None:
    path = tmp_path / "l.db"

    async def work() -> None:
        async with AsyncLedger(path) as ledger:
            await ledger.keep_answer(answer(1))
            with closing(sqlite3.connect(path)) as other:
                other.execute("DROP TABLE answers")
            kept = await asyncio.gather(*(ledger.keep_answer(answer(n)) for n in (2, 3)), return_exceptions=True)
            assert all(isinstance(error, LedgerError) for error in kept)
            with pytest.raises(LedgerError, match="no such table"):
                ledger.check()

    done_within(work())
