"""The core of every call: shared while in flight, looked up, held back, counted, and stored before it counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from evalstone.errors import BudgetExceeded, ProviderError, RunStopped
from evalstone.ledger import AsyncLedger, Key, StoredAnswer
from evalstone.ledger.store import Ledger
from evalstone.run.budget import Budget, Reservation, StopSignal
from evalstone.run.calls import ROOM_INTERVAL, Call, Calls, Inflight, Shared
from evalstone.run.circuit_breaker import FAILURE_LIMIT, CircuitBreaker
from evalstone.types import Usage
from tests.ledger.rows import run

PRICE = 0.25


class FakeCall(Call[str]):
    """A call that costs a quarter of a dollar, and notes what happens to it."""

    ending_the_run = (RunStopped,)

    def __init__(self, calls: Calls, events: list[str], name: str = "a", *, error: BaseException | None = None) -> None:
        self.key, self.ledger, self.price_key = Key(name, "fake"), calls.ledger, ("fake", "q")
        self.breaker = CircuitBreaker("fake", ())
        self.signal: StopSignal | None = None
        self.expected: float | None = None
        """What it is expected to cost."""
        self.answered: asyncio.Event | None = None
        """Set once it is answered."""
        self._calls, self._events, self._error = calls, events, error

    @property
    def stop(self) -> StopSignal | None:
        return self.signal

    def estimate(self, budget: Budget, size: int | None = None) -> float:
        return self.expected or budget.highest(self.price_key) or PRICE

    def is_priced(self, budget: Budget) -> bool:
        return budget.highest(self.price_key) is not None

    @asynccontextmanager
    async def admitted(self) -> AsyncGenerator[None]:
        self._events.append("slot")
        yield
        self._events.append("slot ends")

    async def send(self, reservation: Reservation) -> str:
        self._events.append(f"sent {self.key.question}")
        await (asyncio.sleep(0) if self.answered is None else self.answered.wait())
        if self._error is None or isinstance(self._error, ProviderError):
            reservation.settle(PRICE)
        if self._error is not None:
            raise self._error
        return f"answer to {self.key.question}"

    def failed(self, error: Exception | asyncio.CancelledError) -> str:
        return f"failed: {error}"

    def row(self, outcome: str) -> StoredAnswer | None:
        self._events.append("stored")
        return row(self.key, outcome)

    async def read(self, stored: StoredAnswer) -> str | None:
        return stored.reply if stored.reply else None


def row(key: Key, reply: str) -> StoredAnswer:
    return StoredAnswer(*key[:2], "q", reply, Usage(), PRICE, 0.0, None, run="r1")


def with_calls(
    work: Callable[[Calls], Awaitable[Any]],
    ledger: Path | None = None,
    budget: float | None = None,
    *,
    priced: bool = False,
    cache: bool = True,
) -> tuple[Any, Calls]:
    """What some work with the calls of run `r1` returns. priced: whether it is known what they cost."""

    async def working() -> tuple[Any, Calls]:
        limit = Budget.of(budget)
        if limit is not None and priced:
            limit.learn(("fake", "q"), PRICE)
        options: dict[str, Any] = {"cache": cache, "budget": limit}
        if ledger is None:
            calls = Calls(ledger=None, **options)
            return await work(calls), calls
        async with AsyncLedger(ledger) as opened:
            calls = Calls(ledger=opened, **options)
            calls.spending.run = "r1"
            return await work(calls), calls

    return asyncio.run(working())


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "l.db"
    with closing(Ledger(path)) as opened:
        opened.start_run(run("r1"))
    return path


def paid(ledger: Path) -> float:
    with closing(Ledger(ledger)) as opened:
        found = opened.run("r1")
        assert found is not None
        return found.cost


async def obtained(calls: Calls, call: FakeCall) -> str:
    return await calls.obtain(call.key, call.read, lambda: calls.make(call))


def test_an_answer_is_made_once_and_then_read(ledger: Path) -> None:
    events = list[str]()

    async def work(calls: Calls) -> list[str]:
        return [await obtained(calls, FakeCall(calls, events)) for _ in range(2)]

    assert with_calls(work, ledger)[0] == ["answer to a"] * 2
    assert events == ["slot", "sent a", "stored", "slot ends"]
    assert paid(ledger) == PRICE


def test_a_row_that_cannot_be_read_is_made_again(ledger: Path) -> None:
    events = list[str]()

    async def work(calls: Calls) -> str:
        assert calls.ledger is not None
        await calls.ledger.keep_answer(row(Key("a", "fake"), ""))
        return await obtained(calls, FakeCall(calls, events))

    assert with_calls(work, ledger)[0] == "answer to a"
    assert events.count("sent a") == 1


def test_without_the_cache_an_answer_is_made_again_and_stored(ledger: Path) -> None:
    events = list[str]()

    async def work(calls: Calls) -> list[str]:
        return [await obtained(calls, FakeCall(calls, events)) for _ in range(2)]

    assert with_calls(work, ledger, cache=False)[0] == ["answer to a"] * 2
    assert (events.count("sent a"), events.count("stored")) == (2, 2)
    assert paid(ledger) == 2 * PRICE


def test_what_a_failed_call_cost_is_durable_when_its_outcome_is_known(ledger: Path) -> None:
    events = list[str]()

    async def work(calls: Calls) -> tuple[str, float]:
        call = FakeCall(calls, events, error=ProviderError("no"))
        return await obtained(calls, call), paid(ledger)

    assert with_calls(work, ledger)[0] == ("failed: no", PRICE)
    assert "stored" not in events


@pytest.mark.parametrize("why", ["ended", "stop", "breaker"])
def test_a_call_that_may_not_be_made_is_not_sent_and_pays_nothing(why: str) -> None:
    events = list[str]()

    async def work(calls: Calls) -> None:
        call = FakeCall(calls, events)
        if why == "ended":
            calls.ended = "over"
        elif why == "stop":
            call.signal = StopSignal()
            call.signal.request("over")
        else:
            for _ in range(FAILURE_LIMIT):
                call.breaker.failed(ProviderError("over"))
        with pytest.raises(Exception, match="over") as caught:
            await calls.make(call)
        assert isinstance(caught.value, call.breaker._error if why == "breaker" else RunStopped)  # pyright: ignore[reportPrivateUsage]

    _, calls = with_calls(work, budget=1.0)
    assert events == ["slot"]
    assert calls.budget is not None
    assert (calls.budget.spent, calls.budget.reserved, calls.spending.this_call) == (0.0, 0.0, 0.0)


def test_the_first_call_of_a_price_runs_alone_under_a_budget_and_the_others_together() -> None:
    events = list[str]()

    async def work(calls: Calls) -> None:
        await asyncio.gather(*(calls.make(FakeCall(calls, events, name)) for name in "abc"))

    with_calls(work, budget=10.0)
    assert events == ["slot", "sent a", "slot ends", "slot", "sent b", "slot", "sent c", "slot ends", "slot ends"]
    events.clear()
    with_calls(work)
    assert events[:6] == ["slot", "sent a", "slot", "sent b", "slot", "sent c"]


def test_a_call_that_ends_without_settling_counts_as_what_was_reserved() -> None:
    async def work(calls: Calls) -> None:
        assert await calls.make(FakeCall(calls, [], error=ValueError("broken"))) == "failed: broken"
        with pytest.raises(RunStopped):
            await calls.make(FakeCall(calls, [], error=RunStopped("now")))
        with pytest.raises(BudgetExceeded):
            await calls.make(FakeCall(calls, []))

    _, calls = with_calls(work, budget=2.5 * PRICE)
    assert calls.budget is not None
    assert (calls.budget.spent, calls.budget.reserved) == (2 * PRICE, 0.0)
    assert calls.spending.this_call == 0.0


@pytest.mark.parametrize("ends", ["", "stop", "ended"])
def test_a_call_waits_for_room_in_the_budget_until_it_is_there_or_the_run_ends(ends: str) -> None:
    """The budget of two calls has room for a second one once the first has cost less than was reserved for it."""
    events = list[str]()

    async def work(calls: Calls) -> None:
        first, second = FakeCall(calls, events, "a"), FakeCall(calls, events, "b")
        second.signal = StopSignal()
        first.expected = second.expected = 2 * PRICE
        answered = first.answered = asyncio.Event()
        made = asyncio.ensure_future(calls.make(first))
        await asyncio.sleep(0)
        waiting = asyncio.ensure_future(calls.make(second))
        await asyncio.sleep(3 * ROOM_INTERVAL)
        assert not waiting.done()
        if ends == "stop":
            second.signal.request("over")
        elif ends:
            calls.ended = "over"
        if ends:
            with pytest.raises(RunStopped, match="over"):
                await asyncio.wait_for(waiting, 1)
        answered.set()
        await made
        await waiting if not ends else None

    assert with_calls(work, budget=3 * PRICE, priced=True)[1].spending.this_call == (1 if ends else 2) * PRICE
    assert events.count("sent b") == (not ends)


def test_no_call_waits_for_what_other_runs_have_reserved() -> None:
    async def work(calls: Calls) -> None:
        assert calls.budget is not None
        for _ in range(2):
            await calls.make(FakeCall(calls, []))
        calls.budget.reserve(PRICE)
        with pytest.raises(BudgetExceeded):
            await asyncio.wait_for(calls.make(FakeCall(calls, [])), 1)

    with_calls(work, budget=3 * PRICE)


def test_a_cancellation_by_what_a_call_awaits_is_its_failure_and_one_of_the_call_is_not() -> None:
    async def work(calls: Calls) -> tuple[str, bool]:
        failed = await calls.make(FakeCall(calls, [], error=asyncio.CancelledError("by code")))
        call = FakeCall(calls, [])
        call.answered = asyncio.Event()
        task = asyncio.ensure_future(calls.make(call))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return failed, task.cancelled()

    assert with_calls(work)[0] == ("failed: by code", True)


def test_a_released_reservation_says_nothing_about_the_price() -> None:
    budget = Budget(1.0)
    paid = list[float | None]()
    reservation = Reservation(budget, lambda cost, _: paid.append(cost), ("fake", "q"), lambda of, size: PRICE)
    assert budget.reserved == PRICE
    reservation.release()
    reservation.give_up()
    assert (budget.spent, budget.reserved, budget.highest(("fake", "q")), paid) == (0.0, 0.0, None, [])


@pytest.mark.parametrize("eager", [False, True])
def test_work_in_flight_is_known_until_it_is_forgotten(eager: bool) -> None:
    factory: Any = getattr(asyncio, "eager_task_factory", None)
    if eager and factory is None:
        pytest.skip("tasks start eagerly from Python 3.12 on")

    async def work() -> None:
        if eager:
            asyncio.get_running_loop().set_task_factory(factory)
        inflight, shared = Inflight[str, Shared[int]](), Shared[int]()

        async def one() -> int:
            return 1

        async def no() -> int:
            inflight.forget("b", other)
            raise ProviderError("no")

        assert inflight.get("a") is None
        assert inflight.start("a", shared, one()) is inflight.get("a") is shared
        assert await shared.task == 1
        inflight.forget("a", Shared[int]())
        assert inflight.get("a") is shared  # another one's work is not forgotten
        inflight.forget("a", shared)
        assert inflight.get("a") is None
        other = Shared[int]()
        inflight.start("b", other, no())
        for _ in range(2):
            with pytest.raises(ProviderError):
                await asyncio.shield(other.task)
        assert inflight.get("b") is None

    asyncio.run(work())


def test_closing_cancels_what_is_in_flight() -> None:
    async def work() -> bool:
        inflight, shared = Inflight[str, Shared[None]](), Shared[None]()
        inflight.start("a", shared, asyncio.sleep(60))
        await inflight.close()
        return shared.task.cancelled()

    assert asyncio.run(work())
