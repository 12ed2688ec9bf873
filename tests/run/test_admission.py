"""A budget pays for whole results, whatever the concurrency: what has begun is finished before more is begun."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import field
from typing import Any

import pytest

from evalstone import Run, Score, Scorer, StopSignal, evaluate
from evalstone.judges import Judge
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Ask, Question
from evalstone.questions.claims import ListClaims
from evalstone.results.endings import BUDGET, COMPLETE
from evalstone.run.admission import WATCH, Admission
from evalstone.run.budget import Budget
from evalstone.targets import Answer, FunctionTarget
from evalstone.types import JudgeCall, Record, scorer_name

PRICE = 0.01
SAMPLES = [{"id": f"q{n}", "input": f"question {n}", "output": f"answer {n}"} for n in range(60)]


class Slow(Judge, eq=False):
    """Answers after a moment, for a cent; the estimate is `margin` cents."""

    margin: int = 1
    stop: StopSignal | None = None
    calls: list[str] = field(default_factory=list[str])

    @property
    def identity(self) -> str:
        return "slow"

    def price(self, usage: object) -> float | None:
        return self.margin * PRICE

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        self.calls.append(question.fingerprint)
        if self.stop is not None and len(self.calls) == 20:
            self.stop.request("Ctrl-C")
        await asyncio.sleep(0.001 * (1 + len(self.calls) % 5))
        reply = json.dumps({"claims": []})
        return JudgeAnswer(value=question.parse(reply), judge="slow", reply=reply, cost=PRICE)


class Stages(Scorer):
    """Asks three questions, one after the other."""

    name = "stages"
    questions = (ListClaims,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        for number in range(3):
            await ask(ListClaims(text=f"{output} {number}"))
        return Score(1.0)


def scored(judge: Slow, concurrency: int, budget: float, **options: Any) -> Run:
    return evaluate(SAMPLES, Stages(), judge=judge, ledger=None, concurrency=concurrency, budget=budget, **options)


def cost(scorer: str, dollars: float | None) -> Record:
    call = JudgeCall(question="kind", fingerprint="f", judge="judge", answer=None, cost=dollars)
    return Record(sample_id="s", scorer=scorer_name(scorer), signature=scorer, outcome=Score(1.0), calls=(call,))


async def begun_at_once(admission: Admission, *scorers: str) -> list[str]:
    """Which of these results, in turn, may begin before any of them ends."""
    begun, end = list[str](), asyncio.Event()

    async def result(scorer: str) -> None:
        async with admission.begun(scorer):
            begun.append(scorer)
            await end.wait()

    tasks = [asyncio.create_task(result(scorer)) for scorer in scorers]
    for _ in range(20):
        await asyncio.sleep(0)
    now = list(begun)
    end.set()
    await asyncio.gather(*tasks)
    assert len(begun) == len(scorers)  # those that waited begin once the others have ended
    return now


@pytest.mark.parametrize(
    ("spent", "costs", "answer", "scorers", "begun"),
    [
        (0.0, {"a": 2.0}, 0.0, "aaaaaaa", "aaaaa"),  # five of 2 fit into 10
        (4.0, {"a": 2.0}, 0.0, "aaaaaaa", "aaa"),
        (0.0, {"a": 2.0}, 0.5, "aaaaaaa", "aaaa"),  # with an answer each
        (0.0, {"a": 2.0, "b": 3.0}, 0.0, "abababab", "abab"),
        (0.0, {"a": 0.0}, 0.0, "aaaaaaa", "aaaaaaa"),  # free
        (0.0, {"a": None}, 0.0, "aaaaaaa", "aaaaaaa"),
        (11.0, {"a": 0.0}, 0.0, "aaa", "aaa"),
        (11.0, {"a": 2.0}, 0.0, "aaa", "a"),  # the first one in any case
        (0.0, {}, 0.0, "aaa", "a"),  # what it costs is unknown
        (0.0, {}, 0.0, "aba", "ab"),
        (0.0, {"a": 20.0}, 0.0, "aa", "a"),
    ],
)
def test_as_many_results_begin_as_the_budget_can_finish(
    spent: float, costs: dict[str, float | None], answer: float, scorers: str, begun: str
) -> None:
    async def work() -> list[str]:
        budget = Budget(10.0)
        budget.spent = spent
        admission = Admission(budget, lambda: False, lambda: answer)
        for scorer, dollars in costs.items():
            admission.learn(cost(scorer, dollars))
            admission.learn(cost(scorer, dollars and dollars / 2))  # the highest counts
        return await begun_at_once(admission, *scorers)

    assert asyncio.run(work()) == list(begun)


def test_nothing_waits_once_the_run_ends() -> None:
    async def work() -> list[str]:
        admission = Admission(Budget(10.0), lambda: True, lambda: 0.0)
        admission.learn(cost("a", 20.0))
        return await begun_at_once(admission, "a", "a", "a")

    assert asyncio.run(work()) == ["a"] * 3


def test_the_next_result_begins_as_soon_as_one_ends() -> None:
    async def work() -> float:
        admission = Admission(Budget(10.0), lambda: False, lambda: 0.0)
        admission.learn(cost("a", 20.0))
        started = time.monotonic()
        for _ in range(5):
            await begun_at_once(admission, "a", "a")
        return time.monotonic() - started

    assert asyncio.run(work()) < 5 * WATCH


@pytest.mark.parametrize("concurrency", [1, 8, 64])
@pytest.mark.parametrize("results", [1, 6, 18, 30])
def test_a_budget_for_some_results_brings_as_many_at_each_concurrency(concurrency: int, results: int) -> None:
    judge = Slow()
    run = scored(judge, concurrency, (3 * results + 0.5) * PRICE)
    assert (len(run), len(judge.calls), run.ending) == (results, 3 * results, BUDGET)


@pytest.mark.parametrize("concurrency", [1, 8, 64])
def test_a_call_waits_for_what_is_reserved_and_not_spent(concurrency: int) -> None:
    run = scored(Slow(margin=3), concurrency, 62.5 * PRICE)
    assert (len(run), run.ending) == (20, BUDGET)


@pytest.mark.parametrize("concurrency", [1, 8, 64])
def test_answers_of_a_target_are_paid_for_with_their_scores(concurrency: int) -> None:
    def agent(*, input: str) -> Answer:
        return Answer(output=f"answer to {input}", cost=7 * PRICE)

    cases = [{"id": sample["id"], "input": sample["input"]} for sample in SAMPLES]
    target = FunctionTarget(function=agent, label="agent")
    options: dict[str, Any] = {"target": target, "ledger": None, "concurrency": concurrency}
    run = evaluate(cases, Stages(), judge=Slow(), budget=100.5 * PRICE, **options)
    assert (len(run), run.ending) == (10, BUDGET)
    assert run.cost == pytest.approx(100 * PRICE)


def test_a_run_whose_budget_is_ample_is_complete_and_as_concurrent_as_without_one() -> None:
    run = scored(Slow(margin=3), 64, 10.0)
    assert (len(run), run.ending) == (60, COMPLETE)


@pytest.mark.parametrize("budget", [30.5 * PRICE, 10.0])
def test_a_stop_ends_a_run_in_which_samples_and_calls_wait(budget: float, tmp_path: Any) -> None:
    stop = StopSignal()
    judge = Slow(margin=3, stop=stop)
    options: dict[str, Any] = {"judge": judge, "ledger": tmp_path / "l.db", "concurrency": 64, "stop": stop}
    run = evaluate(SAMPLES, Stages(), budget=budget, **options)
    assert run.stop_reason == "Ctrl-C"
    assert run.cost == pytest.approx(len(judge.calls) * PRICE)
