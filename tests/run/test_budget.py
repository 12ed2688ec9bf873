"""What a run has paid counts against its budget, however often it is interrupted and whatever failed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import evalstone
from evalstone.errors import ReplyError
from evalstone.judges import Judge, SelfConsistency
from evalstone.questions.base import JudgeAnswer, Question
from evalstone.scorers import FactCheck
from evalstone.types import Usage

PRICE = 0.02


@dataclass(frozen=True, eq=False)
class Paid(Judge):
    """Every question costs two cents; those about a bad text cost eight and bring nothing."""

    before: Callable[[Question[Any], int], None] = lambda question, repeat: None
    paid: list[float] = field(default_factory=list[float])

    @property
    def identity(self) -> str:
        return "paid"

    def price(self, usage: Usage) -> float | None:
        return PRICE

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        self.before(question, repeat)
        bad = "bad" in str(question.inputs())
        self.paid.append(4 * PRICE if bad else PRICE)
        if bad:
            raise ReplyError("no verdict", reply="{", cost=4 * PRICE)
        reply = '{"reason": "it stands there", "verdict": "yes"}'
        return JudgeAnswer(value=question.parse(reply), judge="paid", reply=reply, cost=PRICE)


def rows(bad: int, good: int) -> list[dict[str, Any]]:
    texts = [f"bad {n}" for n in range(bad)] + [f"good {n}" for n in range(good)]
    return [{"id": text, "output": f"{text}.", "context": ["c"]} for text in texts]


def test_failures_that_are_tried_again_do_not_take_a_run_over_its_budget(tmp_path: Path) -> None:
    judge = Paid()
    samples = rows(bad=3, good=60)
    costs: list[float | None] = []
    for _ in range(6):
        run = evalstone.evaluate(
            samples, FactCheck(by_sentence=False), judge=judge, ledger=tmp_path / "l.db", budget=1.0, concurrency=1
        )
        assert not run.complete
        costs.append(run.cost)
    # One call was in flight when the budget ended, and a failure costs more than was set aside for it.
    assert sum(judge.paid) <= 1.0 + 4 * PRICE
    assert [round(cost or 0, 6) for cost in costs] == sorted(round(cost or 0, 6) for cost in costs)
    assert abs((costs[-1] or 0) - sum(judge.paid)) < 1e-9


def test_failures_that_a_rerun_does_not_reach_stay_in_its_result(tmp_path: Path) -> None:
    judge = Paid()
    samples = rows(bad=2, good=60)
    runs = [
        evalstone.evaluate(
            samples, FactCheck(by_sentence=False), judge=judge, ledger=tmp_path / "l.db", budget=budget, concurrency=1
        )
        for budget in (1.0, 1.0)
    ]
    assert len(runs[1]) >= len(runs[0])
    assert runs[1]["fact_check"].failed >= runs[0]["fact_check"].failed
    stored = evalstone.read_run(runs[1].id, ledger=tmp_path / "l.db")
    assert (len(stored), stored["fact_check"].failed) == (len(runs[1]), runs[1]["fact_check"].failed)
    assert round(stored.cost or 0, 6) == round(runs[1].cost or 0, 6) == round(sum(judge.paid), 6)


def test_repeated_answers_of_a_killed_run_all_count(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    def kill(question: Question[Any], repeat: int) -> None:
        if repeat == 4:
            raise Killed

    samples = rows(bad=0, good=20)
    first = Paid(kill)
    for _ in range(3):
        with contextlib.suppress(Killed):
            evalstone.evaluate(
                samples,
                FactCheck(by_sentence=False),
                judge=SelfConsistency(first, n=5),
                ledger=tmp_path / "l.db",
                concurrency=1,
                budget=100.0,
            )
    paid = sum(first.paid)
    assert paid >= 4 * PRICE
    second = Paid()
    run = evalstone.evaluate(
        samples,
        FactCheck(by_sentence=False),
        judge=SelfConsistency(second, n=5),
        ledger=tmp_path / "l.db",
        concurrency=1,
        budget=paid + 3 * PRICE,
    )
    assert not run.complete
    assert sum(second.paid) <= 3 * PRICE + 1e-9
