"""What a run has paid counts against its budget, however often it is interrupted and whatever failed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import pytest

import evalstone
from evalstone.errors import BudgetExceeded, ConfigError, ReplyError
from evalstone.judges import Judge, SelfConsistency
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.questions.claims import ListClaims
from evalstone.run.budget import Budget, Reservation, call_price
from evalstone.scorers import FactCheck
from evalstone.types import Usage

PRICE = 0.02


class Paid(Judge, eq=False):
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


class ByTheToken(Paid, eq=False):
    """A dollar for each token."""

    cacheable = True

    def price(self, usage: Usage) -> float | None:
        return float(usage.input + usage.output)


class Free(ByTheToken, eq=False):
    cacheable = False


class Unpriced(Paid, eq=False):
    def price(self, usage: Usage) -> float | None:
        return None


QUESTION = ListClaims(text="The sky is blue.")


@pytest.mark.parametrize("limit", [-0.01, float("nan"), True, "5"])
def test_a_budget_is_an_amount_of_dollars(limit: Any) -> None:
    with pytest.raises(ConfigError, match="US dollars, not"):
        Budget(limit)
    assert Budget(0).limit == 0


def test_a_judge_without_a_known_price_has_no_budget_new_or_shared() -> None:
    judges = Paid(), SelfConsistency(Unpriced(), 3)
    unknown = "a budget needs a price, and the price of paid#.* is unknown"
    with pytest.raises(ConfigError, match=unknown):
        Budget(1, *judges)
    shared = Budget(1, judges[0])
    assert Budget.of(shared, judges[0]) is shared
    for budget in (shared, 1):
        with pytest.raises(ConfigError, match=unknown):
            Budget.of(budget, *judges)
    with pytest.raises(ConfigError, match=unknown):
        shared.estimate(QUESTION, Unpriced())
    assert Budget.of(None, *judges) is None


def reserved(budget: Budget, pay: Callable[[float | None, float], None]) -> Reservation:
    """What a call to `ByTheToken` reserves."""
    judge = ByTheToken()
    return Reservation(
        budget, pay, (judge.identity, QUESTION.kind), lambda of, size: of.estimate(QUESTION, judge, size)
    )


def test_a_reservation_is_replaced_by_what_each_attempt_cost() -> None:
    budget, judge, paid = Budget(100_000), ByTheToken(), list[tuple[float | None, float]]()
    reservation = reserved(budget, lambda cost, reserved: paid.append((cost, reserved)))
    assert budget.reserved == call_price(QUESTION, judge)
    asyncio.run(reservation.next_attempt(2.0, 40_000))
    assert budget.reserved == call_price(QUESTION, judge, 40_000) != call_price(QUESTION, judge)
    assert (budget.spent, paid[-1][0]) == (2.0, 2.0)
    asyncio.run(reservation.next_attempt(3.0, 44_000))
    assert (budget.spent, paid[-1][0]) == (5.0, 3.0)
    reservation.settle(9.0)
    assert (budget.spent, budget.reserved, [cost for cost, _ in paid]) == (9.0, 0.0, [2.0, 3.0, 4.0])


def _appended(paid: list[tuple[float | None, float]]) -> Callable[[float | None, float], None]:
    return lambda cost, reserved: paid.append((cost, reserved))


def test_an_unknown_cost_is_as_much_as_was_reserved() -> None:
    first, second = (call_price(QUESTION, ByTheToken(), size) or 0.0 for size in (None, 40_000))
    for costs in ((None, 9.0), (None, None)):
        budget, paid = Budget(100_000), list[tuple[float | None, float]]()
        reservation = reserved(budget, _appended(paid))
        asyncio.run(reservation.next_attempt(costs[0], 40_000))
        assert (budget.spent, paid) == (first, [(None, first)])
        reservation.settle(costs[1])
        assert (budget.spent, budget.reserved, paid[1]) == (first + second, 0.0, (None, second))


def test_a_correction_that_does_not_fit_leaves_nothing_reserved() -> None:
    budget, paid = Budget(1_000), list[float | None]()
    reservation = reserved(budget, lambda cost, _: paid.append(cost))
    with pytest.raises(BudgetExceeded, match=r"about \$1\d{4}\.0000\) .* \(\$2.0000 spent\)"):
        asyncio.run(reservation.next_attempt(2.0, 40_000))
    reservation.give_up()
    assert (budget.spent, budget.reserved, paid) == (2.0, 0.0, [2.0])


def test_what_is_reserved_counts_and_the_whole_budget_can_be_spent() -> None:
    budget = Budget(2)
    assert (budget.spent, budget.reserved) == (0.0, 0.0)
    budget.settle(budget.reserve(0.5), 0.5)
    budget.reserve(1.0)
    with pytest.raises(BudgetExceeded):
        budget.reserve(0.75)
    budget.reserve(0.5)


@pytest.mark.parametrize(
    ("reserved", "parts"), [(0, "$0.5000 spent"), (1, "$0.5000 spent, $1.0000 reserved for calls in flight")]
)
def test_what_does_not_fit_says_what_is_left(reserved: float, parts: str) -> None:
    budget = Budget(2)
    budget.settle(budget.reserve(0.5), 0.5)
    budget.reserve(reserved)
    with pytest.raises(BudgetExceeded) as caught:
        budget.reserve(1.75)
    sentence = f"the next call (about $1.7500) does not fit into what is left of the budget of $2 ({parts})"
    assert str(caught.value) == sentence


def test_a_call_is_priced_by_its_messages_its_schema_and_three_usual_replies() -> None:
    assert call_price(QUESTION, Free()) == 0.0
    schema, reply = (len(json.dumps(part)) // 4 for part in (QUESTION.json_schema, QUESTION.example()))
    assert Free().estimated_usage(QUESTION, 0) == Usage(schema, reply, 0, 1)
    assert call_price(QUESTION, ByTheToken(), 400) == 100 + schema + 3 * reply


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
    assert runs[1]["fact_check"].n_failed >= runs[0]["fact_check"].n_failed
    stored = evalstone.read_run(runs[1].id, ledger=tmp_path / "l.db")
    assert (len(stored), stored["fact_check"].n_failed) == (len(runs[1]), runs[1]["fact_check"].n_failed)
    assert round(stored.cost or 0, 6) == round(runs[1].cost or 0, 6) == round(sum(judge.paid), 6)


def test_repeated_answers_of_a_killed_run_all_count(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    def kill(question: Question[Any], repeat: int) -> None:
        if repeat == 4:
            raise Killed

    samples = rows(bad=0, good=20)
    first = Paid(before=kill)
    for _ in range(3):
        with contextlib.suppress(Killed):
            evalstone.evaluate(
                samples,
                FactCheck(by_sentence=False),
                judge=SelfConsistency(first, repeats=5),
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
        judge=SelfConsistency(second, repeats=5),
        ledger=tmp_path / "l.db",
        concurrency=1,
        budget=paid + 3 * PRICE,
    )
    assert not run.complete
    assert sum(second.paid) <= 3 * PRICE + 1e-9


class WithoutUsage(Paid, eq=False):
    """Charges two cents for every question, and never says so."""

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        return replace(await super().answer(question, repeat), cost=None)


def test_what_was_reserved_for_calls_of_unknown_cost_counts_when_a_run_is_resumed(tmp_path: Path) -> None:
    samples = [{"id": f"q{n}", "output": f"answer {n}", "context": ["An answer."]} for n in range(9)]
    judge = WithoutUsage()
    for _ in range(3):
        run = evalstone.evaluate(samples, FactCheck(), judge=judge, budget=0.07, ledger=tmp_path / "l.db")
        assert (run.complete, run.cost) == (False, None)
    assert sum(judge.paid) <= 0.07
