"""The limiter: free until refused too often, then careful, and never above what was set."""

from __future__ import annotations

import asyncio
import math
import time

import pytest

from evalstone.errors import ConfigError, ProviderTimeout
from evalstone.judges import ModelJudge
from evalstone.models.limits import Backoff, Limiter, Limits, TokenBucket, TransientError


async def work(limiter: Limiter, *, seconds: float = 0.01, refused: bool = False) -> None:
    sent_at = await limiter.admit(10)
    await asyncio.sleep(seconds)
    if refused:
        limiter.refused(sent_at, None)
    else:
        limiter.answered()
    limiter.release()


def test_nothing_is_held_back_before_a_refusal() -> None:
    async def many() -> tuple[float, Limiter]:
        limiter = Limiter()
        began = time.monotonic()
        await asyncio.gather(*(work(limiter) for _ in range(200)))
        return time.monotonic() - began, limiter

    seconds, limiter = asyncio.run(many())
    assert seconds < 0.5
    assert limiter.concurrency == math.inf


def test_many_refusals_cut_what_goes_out_at_once_and_answers_raise_it_again() -> None:
    async def trouble() -> list[float]:
        limiter = Limiter()
        await asyncio.gather(*(work(limiter, refused=True) for _ in range(40)))
        after_cut = limiter.concurrency
        for _ in range(10):
            await work(limiter)
        return [after_cut, limiter.concurrency]

    cut, later = asyncio.run(trouble())
    assert cut <= 40 * 0.7
    assert later > cut


def test_refusals_of_one_moment_cut_only_once() -> None:
    async def trouble() -> float:
        limiter = Limiter()
        times = [await limiter.admit(1) for _ in range(100)]
        for sent_at in times:
            limiter.refused(sent_at, None)
        for _ in times:
            limiter.release()
        return limiter.concurrency

    assert asyncio.run(trouble()) == pytest.approx(70)


def test_a_refusal_now_and_then_is_no_reason_to_go_slow() -> None:
    async def mostly_fine() -> float:
        limiter = Limiter()
        for number in range(100):
            await work(limiter, seconds=0, refused=number % 10 == 0)
        return limiter.concurrency

    assert asyncio.run(mostly_fine()) == math.inf


def test_a_wait_that_was_asked_for_holds_everyone_back() -> None:
    async def told() -> float:
        limiter = Limiter()
        limiter.refused(await limiter.admit(1), 0.2)
        limiter.release()
        began = time.monotonic()
        await work(limiter, seconds=0)
        return time.monotonic() - began

    assert asyncio.run(told()) >= 0.19


def test_one_who_gives_up_waiting_leaves_the_place_to_the_next() -> None:
    async def impatient() -> int:
        limiter = Limiter()
        limiter.concurrency = 1
        await limiter.admit(1)
        second = asyncio.create_task(limiter.admit(1))
        third = asyncio.create_task(work(limiter, seconds=0))
        await asyncio.sleep(0.01)
        second.cancel()
        limiter.release()
        await asyncio.wait_for(third, 1)
        return limiter.inflight

    assert asyncio.run(impatient()) == 0


def test_requests_a_minute_are_kept_to() -> None:
    async def hurry() -> float:
        limiter = Limiter(Limits(requests_per_minute=600))
        began = time.monotonic()
        await asyncio.gather(*(work(limiter, seconds=0) for _ in range(14)))
        return time.monotonic() - began

    assert asyncio.run(hurry()) >= 0.35


def test_an_amount_above_the_minutes_share_waits_for_a_full_bucket_and_leaves_a_debt() -> None:
    bucket = TokenBucket(600)
    assert bucket.wait(1000) == 0
    bucket.take(20)
    assert 0.9 < bucket.wait(0) < 1.1


def test_limits_below_one_are_refused() -> None:
    with pytest.raises(ConfigError, match="requests_per_minute"):
        ModelJudge("openai/x", limits=Limits(requests_per_minute=0))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the waits between attempts would have taken, in seconds; none is waited."""
    taken: list[float] = []

    async def sleep(seconds: float) -> None:
        taken.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return taken


def test_waits_between_attempts_double_up_to_20_seconds_with_jitter(pauses: list[float]) -> None:
    async def fail(times: int) -> None:
        backoff = Backoff()
        for _ in range(times):
            await backoff.wait(TransientError("busy"))

    asyncio.run(fail(40))
    for attempt, pause in enumerate(pauses):
        longest = min(0.25 * 2**attempt, 20)
        assert longest / 2 <= pause <= longest
    assert len({pause for pause in pauses if pause > 10}) > 10  # callers that failed together don't return together


def test_a_wait_is_at_least_what_the_provider_asks_for(pauses: list[float]) -> None:
    asyncio.run(Backoff().wait(TransientError("busy", retry_after=30.0)))
    assert 30 <= pauses[0] <= 33


def test_no_wait_begins_that_would_end_after_the_time_for_all_attempts(pauses: list[float]) -> None:
    told = "h gave no answer in 1 attempt; the last: busy; total_timeout=10 s leaves no time for another"
    with pytest.raises(ProviderTimeout, match=f"^{told}$"):
        asyncio.run(Backoff(10.0).wait(TransientError("busy", host="h", retry_after=30.0)))
    assert pauses == []
    asyncio.run(Backoff(0.0).wait(TransientError("adapted", adapted=True)))
    assert pauses == []
