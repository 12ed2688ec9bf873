"""How often an endpoint that refuses or fails is asked again, whatever it sends, and when a run is stopped."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from evalstone import Cascade, LexicalJudge, ModelJudge, Run, StopSignal, evaluate
from evalstone.errors import JudgeUnavailable, ProviderTimeout
from evalstone.judges.model import converse
from evalstone.models import limits
from evalstone.models.limits import Backoff, Limiter, TransientError
from evalstone.models.replies import LONGEST_RETRY_AFTER, retry_after
from evalstone.questions import ListClaims
from tests.hostile_serving import http, serving_hostile
from tests.serving import Response, completion, obliging, serving

ROWS = [{"id": str(n), "output": f"Ada was born in {n}.", "context": ["Ada lived."]} for n in range(100)]
ODD_WAITS = [
    "0", "-5", "nan", "-nan", "inf", "-inf", "1e400", "9" * 400, "", "soon", "0x10",
    "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 99999 23:59:59 GMT", "Mon, 99 Foo 2026 99:99:99 GMT",
    "Thu, 01 Jan 0001 00:00:00 +2359", "\udcff\udcfe",
]  # fmt: skip


@pytest.mark.parametrize("name", ["Retry-After", "retry-after-ms"])
@pytest.mark.parametrize("value", ODD_WAITS, ids=range(len(ODD_WAITS)))
def test_a_wait_that_makes_no_sense_is_none_or_no_time(name: str, value: str) -> None:
    assert retry_after({name: value}) in (None, 0.0)


def test_a_wait_that_is_asked_for_is_an_hour_at_most() -> None:
    assert retry_after({"Retry-After": "7"}) == 7.0
    assert retry_after({"retry-after-ms": "1500"}) == 1.5
    for value in ("1e9", "Fri, 31 Dec 9998 23:59:59 GMT", "9" * 300):
        assert retry_after({"Retry-After": value}) == LONGEST_RETRY_AFTER


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("wait", ["nan", "0", "-5", "Fri, 31 Dec 99999 23:59:59 GMT"])
def test_an_endpoint_that_always_refuses_gets_few_requests(status: int, wait: str) -> None:
    with serving_hostile(lambda _: http(b"{}", f"Retry-After: {wait}", status=status)) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, total_timeout=1.2)
        began = time.monotonic()
        with pytest.raises(JudgeUnavailable, match=r"answer in \d+ attempts?"):
            evaluate(ROWS, "faithfulness", judge=judge, concurrency=32, ledger=None)
        seconds = time.monotonic() - began
    most = 32 + 32 + limits.RETRIES_SAVED + limits.RETRIES_PER_SECOND * seconds
    assert 32 <= len(server.requests) <= most


def test_retries_are_ten_a_second_and_one_for_two_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    async def work() -> tuple[list[float], float, float]:
        limiter = Limiter()
        failing = [limiter.retry_wait() for _ in range(150)]
        clock[0] += 1000.0
        saved = [limiter.retry_wait() for _ in range(limits.RETRIES_SAVED)]
        before = limiter.retry_wait()
        for _ in range(400):
            limiter.answered()
        return failing, max(saved), limiter.retry_wait() - before

    failing, saved, after_answers = asyncio.run(work())
    assert failing[: limits.RETRIES_SAVED] == [0.0] * limits.RETRIES_SAVED
    assert failing[-1] == pytest.approx(10.0)
    assert saved == 0.0
    assert after_answers == pytest.approx(-0.1)


def test_a_part_of_requests_that_fail_is_sent_again_at_once() -> None:
    async def work() -> float:
        limiter = Limiter()
        waits = [0.0]
        for number in range(5000):
            if number % 20 < 3:
                waits.append(limiter.retry_wait())
            else:
                limiter.answered()
        return max(waits)

    assert asyncio.run(work()) == 0.0


@pytest.mark.parametrize("adapted", [False, True])
def test_a_question_is_asked_a_hundred_times_at_most(adapted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    async def refuse(*_: Any) -> Any:
        asked.append(1)
        raise TransientError("again", host="h", adapted=adapted)

    monkeypatch.setattr(limits, "FIRST_WAIT", 0.0)
    with pytest.raises(ProviderTimeout, match=r"h gave .* 100 attempts; .*: again"):
        asyncio.run(converse(ListClaims(text="a"), refuse, judge="m"))
    assert len(asked) == 100


def test_an_endpoint_that_refuses_another_setting_every_time_is_given_up() -> None:
    words = ("temperature", "seed", "max_tokens", "reasoning_effort", "logprobs", "response_format", "schema")

    def refuse(_: Any, number: int) -> Response:
        return Response(400, {"error": {"message": f"can't take {words[number % len(words)]}"}})

    with serving(refuse) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, seed=1, max_tokens=9, reasoning_effort="low", logprobs=True)
        with pytest.raises(JudgeUnavailable):
            evaluate(ROWS[:20], "faithfulness", judge=judge, concurrency=1, ledger=None)
    assert len(server.requests) < 40


def stopped_run(server: Any, *, after: int, **more: Any) -> tuple[Run, float]:
    """A run that is stopped when the server has had so many requests, and the seconds from then to its end."""
    stop, at = StopSignal(), [0.0]

    def watch() -> None:
        deadline = time.monotonic() + 20
        while len(server.requests) < after and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(0.05)
        at[0] = time.monotonic()
        stop.request("enough")

    watcher = threading.Thread(target=watch)
    watcher.start()
    more = {"ledger": None, "judge": ModelJudge("vllm/m", base_url=server.url), "concurrency": 4, **more}
    run = evaluate(ROWS[:8], "faithfulness", stop=stop, **more)
    ended = time.monotonic()
    watcher.join()
    return run, ended - at[0]


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "300"}])
@pytest.mark.parametrize("status", [429, 503])
def test_a_stopped_run_waits_for_no_next_attempt(status: int, headers: dict[str, str]) -> None:
    with serving(lambda _, __: Response(status, {"error": {"message": "busy"}}, headers)) as server:
        run, seconds = stopped_run(server, after=4)
        asked = len(server.requests)
        time.sleep(0.3)
        assert len(server.requests) == asked
    assert seconds < 2.0
    assert run.stop_reason == "enough"
    assert not run.complete


def test_a_call_in_flight_is_awaited_when_a_run_is_stopped_and_its_answer_is_kept(tmp_path: Path) -> None:
    def behaviour(request: dict[str, Any], number: int) -> Response:
        if "born in 0" in json.dumps(request):
            return Response(body=obliging(request, number), delay=0.5)
        return Response(503, {"error": {"message": "busy"}})

    with serving(behaviour) as server:
        run, _ = stopped_run(server, after=4, ledger=tmp_path / "l.db")
        assert len(run) == 0  # its next question was not asked
        server.behaviour = obliging
        before = len(server.requests)
        judge = ModelJudge("vllm/m", base_url=server.url)
        again = evaluate(ROWS[:8], "faithfulness", judge=judge, ledger=tmp_path / "l.db")
        assert again.complete
        assert len(again) == 8
        assert (
            len(server.requests) == before + 7 + 8
        )  # seven answers are taken apart, the eighth was kept; all are verified


def test_a_cascade_does_not_ask_its_fallback_because_the_run_was_stopped() -> None:
    with serving(lambda _, __: Response(503, {"error": {"message": "busy"}})) as server:
        judge = Cascade(ModelJudge("vllm/m", base_url=server.url), LexicalJudge())
        run, _ = stopped_run(server, after=4, judge=judge)
    assert len(run) == 0


def test_a_wait_without_a_run_to_stop_is_waited_to_its_end() -> None:
    began = time.monotonic()
    asyncio.run(Backoff().wait(TransientError("busy", retry_after=0.3)))
    assert time.monotonic() - began >= 0.3


def test_a_correction_that_is_refused_counts_among_all_attempts() -> None:
    def behaviour(_: Any, number: int) -> Any:
        return completion("no json") if number == 1 else Response(503, {"error": {"message": "busy"}})

    with serving(behaviour) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, total_timeout=0.5, prices=(1.0, 1.0))
        with pytest.raises(ProviderTimeout) as failure:
            asyncio.run(judge.answer(ListClaims(text="a")))
    assert failure.value.cost == pytest.approx(120 / 1e6)
