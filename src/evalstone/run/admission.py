"""Which results a run with a budget begins: those that it can also finish."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from evalstone.run.budget import Budget
from evalstone.types import Record

WATCH = 0.1
"""Seconds between checks for a stop request."""


class Admission:
    """Admits results, of a sample and a scorer, as long as the budget covers all that have begun.

    A result may begin if what is spent, plus the highest cost of a result so far for it and for each that has begun, is
    within the budget. So if no result costs more than one before it, each that has begun can be finished. The first one
    of a scorer begins alone, because its cost isn't known. If none has begun, the next one may begin in any case: it
    may cost less, and the budget is checked at each call.

    Args:
        budget: The budget of the run.
        stopped: Whether the run ends, so that nothing waits any more.
        answer_cost: The highest cost of a target's answer so far.
    """

    def __init__(self, budget: Budget, stopped: Callable[[], bool], answer_cost: Callable[[], float]) -> None:
        self._budget, self._stopped, self._answer_cost = budget, stopped, answer_cost
        self._highest: dict[str, float] = {}
        self._begun = Counter[str]()
        self._ended = asyncio.Event()
        self._turn = asyncio.Lock()

    def learn(self, record: Record) -> None:
        """Note the cost of a result."""
        self._highest[record.signature] = max(self._highest.get(record.signature, 0.0), record.cost or 0.0)

    @asynccontextmanager
    async def begun(self, scorer: str) -> AsyncGenerator[None]:
        """Wait until the next result of a scorer may begin, or the run ends; those that came first begin first."""
        async with self._turn:
            while not self._fits(scorer) and not self._stopped():
                self._ended.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), WATCH)
            self._begun[scorer] += 1
        try:
            yield
        finally:
            self._begun[scorer] -= 1
            self._ended.set()

    def _fits(self, scorer: str) -> bool:
        begun = +self._begun
        if not begun:
            return True
        if scorer not in self._highest:
            return not begun[scorer]
        begun[scorer] += 1
        needed = begun.total() * self._answer_cost()
        needed += sum(number * self._highest.get(name, 0.0) for name, number in begun.items())
        return not needed or self._budget.spent + needed <= self._budget.limit
