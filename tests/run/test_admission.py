"""A budget pays for whole results, whatever the concurrency: what has begun is finished before more is begun."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from evalstone import Run, Score, Scorer, StopSignal, evaluate
from evalstone.judges import Judge
from evalstone.questions.base import Ask, JudgeAnswer, Question
from evalstone.questions.claims import ListClaims
from evalstone.results.endings import BUDGET, COMPLETE
from evalstone.targets import Answer, FunctionTarget

PRICE = 0.01
SAMPLES = [{"id": f"q{n}", "input": f"question {n}", "output": f"answer {n}"} for n in range(60)]


@dataclass(frozen=True, eq=False)
class Slow(Judge):
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


@dataclass(frozen=True, kw_only=True)
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
