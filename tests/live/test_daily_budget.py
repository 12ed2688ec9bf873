"""The budget of a day: who may still ask."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from evalstone.ledger.scores import BUDGET_SPENT, list_scores
from evalstone.ledger.store import Ledger
from evalstone.live import scoring
from evalstone.live.scoring import DAY, SPENT_EVERY
from tests.fakes import awaited
from tests.live import scoring as own
from tests.live.conftest import Start
from tests.live.test_live import answered, numbers


class Budget:
    """A budget, and what the ledger says that all processes have spent on a day."""

    def __init__(self, limit: float | None, spent: float = 0.0) -> None:
        self.budget = scoring._DailyBudget(limit)  # pyright: ignore[reportPrivateUsage]
        self.spent, self.asked = spent, list[float]()

    async def ledger(self, since: float) -> float:
        self.asked.append(since)
        return self.spent

    async def reserve(self) -> bool | None:
        """Whether there is room; None while it is waited for."""
        try:
            return await asyncio.wait_for(self.budget.reserve(self.ledger), 0.01)
        except TimeoutError:
            return None

    async def scored(self, cost: float) -> None:
        assert await self.reserve()
        await self.budget.settle(cost)


@awaited
async def test_without_a_limit_there_is_room_for_everything_and_nobody_looks() -> None:
    free = Budget(None, 1e9)
    for _ in range(3):
        assert await free.reserve()
    assert free.asked == []


@awaited
async def test_what_is_in_work_is_expected_to_cost_the_most_that_a_sample_has() -> None:
    three = Budget(3.0)
    for cost in (1.0, 0.25):
        await three.scored(cost)
    assert await three.reserve()
    assert await three.reserve() is None  # 1.25 and two dollars in work are more than three
    await three.budget.settle(0.0)
    assert await three.reserve()  # one has ended and cost nothing


@awaited
async def test_who_waits_for_room_has_it_once_another_sample_has_ended() -> None:
    two = Budget(2.0)
    await two.scored(1.0)
    assert await two.reserve()
    waiting = asyncio.ensure_future(two.budget.reserve(two.ledger))
    await asyncio.sleep(0)
    assert not waiting.done()
    await two.budget.settle(0.0)
    assert await asyncio.wait_for(waiting, 5)


@awaited
async def test_all_that_wait_for_room_are_told_when_the_budget_is_spent() -> None:
    two = Budget(2.0)
    await two.scored(1.0)
    assert await two.reserve()
    waiting = [asyncio.ensure_future(two.budget.reserve(two.ledger)) for _ in range(3)]
    await asyncio.sleep(0)
    await two.budget.settle(1.0)
    assert await asyncio.wait_for(asyncio.gather(*waiting), 30) == [False] * 3


@awaited
async def test_what_is_paid_while_the_ledger_is_read_is_not_forgotten() -> None:
    small = Budget(1.5)
    assert await small.reserve()

    async def reading(since: float) -> float:
        small.budget._paid += 1.0  # pyright: ignore[reportPrivateUsage]
        return 0.5

    small.budget._read_at = -1e9  # pyright: ignore[reportPrivateUsage]
    assert await small.budget.reserve(reading) is False


@awaited
async def test_a_budget_is_spent_up_to_its_limit_and_not_beyond() -> None:
    exact = Budget(2.0)
    await exact.scored(1.0)
    assert await exact.reserve()  # it may come to the limit exactly
    three = Budget(3.0)
    await three.scored(1.0)
    assert [await three.reserve() for _ in range(3)] == [True, True, None]  # likewise with one in work
    assert await Budget(2.0, spent=2.0).reserve() is False
    nearly = Budget(2.0, spent=1.99)
    assert await nearly.reserve()  # one at a time, while anything is left


@awaited
async def test_one_sample_that_costs_more_than_a_day_does_not_end_all_days() -> None:
    small = Budget(1.0)
    await small.scored(5.0)
    assert await small.reserve() is False
    small.budget._day -= 1  # pyright: ignore[reportPrivateUsage]
    assert await small.reserve()


def test_the_ledger_is_asked_again_after_a_second_and_on_a_new_day(monkeypatch: pytest.MonkeyPatch) -> None:
    now, clock = DAY * 20_000.0 + 5, 100.0
    monkeypatch.setattr(time, "time", lambda: now)
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    made = Budget(1.0, spent=0.5)

    def look() -> int:
        asyncio.run(made.scored(0.0))
        return len(made.asked)

    assert (look(), look()) == (1, 1)
    now += DAY - 6
    assert look() == 1
    now += 1
    assert look() == 2
    clock += SPENT_EVERY + 0.1
    assert look() == 3
    assert made.asked == [DAY * 20_000.0, DAY * 20_001.0, DAY * 20_001.0]


def test_what_was_paid_before_midnight_is_not_of_this_day(start: Start, tmp_path: Path) -> None:
    def again() -> tuple[int, int]:
        live = start("factual_correctness", own.PaidJudge(path=tmp_path / "asked"), daily_budget=1.0)
        live.submit(**answered(len(done)))
        one = numbers(live)
        live.close(5)
        done.append(one.dropped_budget)
        return one.dropped_budget, one.n_score + one.n_skipped

    done: list[int] = []
    assert [again(), again()] == [(0, 1), (1, 1)]
    midnight = time.time() // DAY * DAY
    with Ledger(str(tmp_path / "l.db")) as ledger, ledger.transaction(writing=True) as connection:
        connection.execute(f"UPDATE live_scores SET finished = {midnight - 1}")
    assert again() == (1, 2)


def test_a_budget_that_is_spent_is_logged_once_a_day_and_is_the_reason_of_what_was_dropped(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = start("factual_correctness", own.PaidJudge(path=tmp_path / "asked"), daily_budget=1.0, concurrency=1)

    def said() -> list[str]:
        return [record.getMessage() for record in caplog.records if "daily budget" in record.getMessage()]

    for number in range(4):
        live.submit(**answered(number))
    assert numbers(live).dropped_budget > 1
    (warning,) = said()
    assert warning.startswith("live: the daily budget of $1.00 is spent: until midnight (UTC), samples are dropped")
    listed = list_scores(live.ledger)
    assert {one.reason for one in listed if one.state == "dropped"} == {BUDGET_SPENT}
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + DAY)
    for number in range(10, 14):
        live.submit(**answered(number))
    assert live.flush(20)
    assert len(said()) == 2
