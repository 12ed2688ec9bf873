"""Calling the judge under a budget, and noticing when it is of no use to go on."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from evalstone.errors import BudgetExceeded, JudgeDeclined, JudgeError, JudgeUnavailable, ProviderTimeout
from evalstone.judges.base import Judge
from evalstone.questions.base import Answer, Question
from evalstone.run.budget import Budget

A = TypeVar("A")

HOPELESS = 10


class Caller:
    """Calls one judge of a run.

    A question that does not fit into what is left of the budget raises BudgetExceeded and is not asked. When each of
    the first ten calls has failed and none was answered, JudgeUnavailable ends the run: the eleventh would fail as well,
    and is not made where a panel goes on with its other members. So it does when the endpoint has given no answer to
    the last ten. proved: identities of judges whose earlier answers the run uses. What is left for such a one may be
    just what it fails on, so that only its endpoint's silence counts.
    """

    def __init__(self, judge: Judge, budget: Budget | None = None, proved: Collection[str] = ()) -> None:
        self._judge = judge
        self._budget = budget
        self._proved = proved
        self._answered = 0
        self._failed = 0
        self._silent = 0
        self._down = ""

    async def call(self, question: Question[A], number: int = 0) -> Answer[A]:
        """The judge's answer, the `number`-th to this question. Raises what it raises, and the two errors above."""
        if self._down:
            raise JudgeUnavailable(self._down)  # a new one, for an error that is raised again keeps where it was raised
        reserved = self._reserve(question)
        try:
            answer = await self._judge.answer(question, number)
        except JudgeDeclined as error:
            self._settle(reserved, error.cost)
            raise
        except JudgeError as error:
            self._settle(reserved, error.cost)
            if told := self._given_up(error):
                self._down = told
                raise JudgeUnavailable(told) from error
            raise
        except BaseException:
            self._settle(reserved, None)
            raise
        self._answered += 1
        self._silent = 0
        self._settle(reserved, answer.cost)
        return answer

    def _given_up(self, error: JudgeError) -> str:
        """Why it is of no use to go on after this failure; empty where it may be of use."""
        self._failed += 1
        self._silent = self._silent + 1 if isinstance(error, ProviderTimeout) else 0
        identity = self._judge.identity
        if self._failed >= HOPELESS and not self._answered and identity not in self._proved:
            return f"{identity} failed on each of the first {self._failed} questions; the last: {error}"
        if self._silent >= HOPELESS:
            return f"{identity} gave no answer to the last {self._silent} questions; the last: {error}"
        return ""

    def _reserve(self, question: Question[A]) -> float:
        if self._budget is None:
            return 0.0
        reserved = self._budget.reserve(question, self._judge)
        if reserved is None:
            raise BudgetExceeded(f"the budget of ${self._budget.limit:g} is spent")
        return reserved

    def _settle(self, reserved: float, paid: float | None) -> None:
        if self._budget is not None:
            self._budget.settle(reserved, paid)
