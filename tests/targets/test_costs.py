"""What a target costs: one budget with the judges, paid once however often the run is interrupted, and told apart."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from evalstone import Limits, Run, evaluate, read_run, write_run
from evalstone.agents.transcripts import read_transcript
from evalstone.scorers import FactCheck
from evalstone.targets import Answer, FunctionTarget
from evalstone.types import Usage
from tests.run.test_budget import PRICE, Paid

COST = 0.25
CASES = [{"id": f"q{n}", "input": f"question {n}", "context": ["c"]} for n in range(40)]


class Agent:
    """Answers, and counts its calls. costs: what each answer in turn is said to cost."""

    def __init__(self, *costs: float | None) -> None:
        self.costs, self.calls, self.now, self.most = costs or (COST,), 0, 0, 0

    async def __call__(self, *, input: str) -> Answer:
        cost = self.costs[self.calls % len(self.costs)]
        self.calls += 1
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.005)
        self.now -= 1
        return Answer(output=f"good {input}", cost=cost)


def run_it(agent: Agent, number: int = 40, ledger: Path | None = None, **options: Any) -> Run:
    target = FunctionTarget(function=agent, label="agent", **options.pop("settings", {}))
    return evaluate(CASES[:number], FactCheck(by_sentence=False), judge=Paid(), target=target, ledger=ledger, **options)


def test_the_costs_of_target_and_judge_are_one_sum_and_told_apart(tmp_path: Path) -> None:
    run = run_it(Agent(), 4, tmp_path / "l.db")
    for one in (run, read_run("last", ledger=tmp_path / "l.db"), read_run(write_run(run, tmp_path / "out"))):
        assert one.cost == pytest.approx(4 * (COST + PRICE))
        assert one.judge_cost == pytest.approx(4 * PRICE)
        assert "cost $1.08 (target $1.00, judge $0.0800)" in str(one)


@pytest.mark.parametrize("concurrency", [1, 32])
def test_one_budget_covers_target_and_judge(concurrency: int) -> None:
    agent = Agent()
    run = run_it(agent, budget=3.0, concurrency=concurrency)
    assert "budget of $3" in run.stop_reason
    assert run.cost is not None
    assert 2.2 < agent.calls * COST + (run.judge_cost or 0) <= 3.0


def test_under_a_budget_the_first_call_goes_alone_so_that_the_others_know_what_to_reserve() -> None:
    agent = Agent()
    run_it(agent, budget=COST + 2 * PRICE)
    assert agent.calls == 1


def test_a_call_that_failed_for_nothing_says_nothing_of_what_the_others_cost() -> None:
    class FailsFirst(Agent):
        begun = 0

        async def __call__(self, *, input: str) -> Answer:
            self.begun += 1
            if self.begun == 1:
                raise ValueError("not this one")
            return await super().__call__(input=input)

    agent = FailsFirst()
    run_it(agent, budget=COST + 2 * PRICE)
    assert agent.calls == 1


def test_no_answer_that_is_paid_for_says_what_the_others_cost() -> None:
    class Silent(Agent):
        async def __call__(self, *, input: str) -> Answer:
            return Answer(cost=(await super().__call__(input=input)).cost)

    agent = Silent()
    run = run_it(agent, budget=1.5 * COST)
    assert agent.calls == 1
    assert not run.complete


def test_an_interrupted_run_goes_on_with_the_rest_of_its_budget(tmp_path: Path) -> None:
    seen = list[Any]()

    def stop(record: Any) -> None:
        seen.append(record)
        if len(seen) == 5:
            raise RuntimeError("enough")

    agent = Agent()
    with pytest.raises(RuntimeError, match="enough"):
        run_it(agent, ledger=tmp_path / "l.db", budget=3.0, on_record=stop)
    run = run_it(agent, ledger=tmp_path / "l.db", budget=3.0)
    assert run.resumed >= 5
    assert "budget of $3" in run.stop_reason
    assert agent.calls * COST <= 3.0
    more = run_it(agent, ledger=tmp_path / "l.db", budget=30.0)
    assert more.complete
    assert agent.calls <= 40 + 8
    assert more.target is not None
    assert more.target.cost == pytest.approx(40 * COST)


def test_a_target_without_costs_says_that_the_budget_covers_the_judge_alone() -> None:
    run = run_it(Agent(None), 4, budget=1.0)
    assert run.target is not None
    assert "judge calls alone" in run.target.note
    assert f"T{run.target.note[1:]}." in str(run)
    assert "judge cost $0.0800" in str(run)
    assert run.cost == pytest.approx(4 * PRICE)
    without = run_it(Agent(None), 4)
    assert without.target is not None
    assert without.target.note == ""


def test_answers_without_a_cost_among_others_are_counted() -> None:
    run = run_it(Agent(COST, None), 4)
    assert run.target is not None
    assert run.target.cost == 2 * COST
    assert "cost of 2 answers" in run.target.note


@pytest.mark.parametrize("concurrency", [1, 32])
def test_a_run_makes_no_more_calls_than_max_requests(concurrency: int) -> None:
    agent = Agent()
    run = run_it(agent, concurrency=concurrency, settings={"limits": Limits(max_requests=5)})
    assert run.stop_reason.startswith("max_requests=5 of ")
    assert agent.calls == 5
    assert len(run) == 5


@pytest.mark.parametrize("command", [False, True])
def test_no_answer_is_paid_for(tmp_path: Path, command: bool) -> None:
    def agent(*, input: str) -> Answer:
        return Answer(cost=0.5) if input == "1" else Answer(output="1815", cost=0.25)

    code = "import json, sys; silent = json.load(sys.stdin)['input'] == '1'"
    code += "; print(json.dumps({'cost': 0.5} if silent else {'output': '1815', 'cost': 0.25}))"
    target = f"cmd:{sys.executable} -c {shlex.quote(code)}" if command else FunctionTarget(function=agent, version="1")
    cases = [{"id": str(n), "input": str(n)} for n in range(3)]
    run = evaluate(cases, "contains(expected='1815')", target=target, ledger=tmp_path / "l.db", budget=9.0)
    assert run.target is not None
    assert (run.target.failed, run.target.cost, run.cost) == (1, 1.0, 1.0)
    dear = evaluate(cases, "contains(expected='1815')", target=agent, ledger=None, budget=0.6)  # in any order
    assert not dear.complete


def test_the_tokens_of_an_answer_are_those_after_the_users_last_message_in_any_form() -> None:
    def reply(text: str, tokens: int) -> dict[str, object]:
        counts = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}
        return {"type": "ai", "data": {"content": text, "type": "ai", "usage_metadata": counts}}

    def asked(text: str) -> dict[str, object]:
        return {"type": "human", "data": {"content": text, "type": "human"}}

    messages = [asked("Bern?"), reply("Rain.", 100), asked("Thun?"), reply("Let me look.", 5), reply("Sun.", 7)]
    state = {"messages": messages, "documents": []}
    spent = Usage(12, 2, requests=2)
    for value in (messages, {"messages": messages}, state, Answer(messages=messages)):
        assert Answer.of(value).usage == spent
    assert Answer(messages=messages, usage=Usage(1)).usage == Usage(1)
    assert read_transcript(messages).usage == Usage(112, 3, requests=3)
