"""Stop signals and budgets, which may end a run early."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

from evalstone._core.declarations import Rule, check_argument
from evalstone.errors import BudgetExceeded, ConfigError
from evalstone.judges.base import Judge, leaves
from evalstone.models.shared_limits import LimitSharing
from evalstone.questions.base import Question
from evalstone.results.endings import STOPPED, Ending
from evalstone.results.summary import TINY
from evalstone.types import Usage, total_cost

PriceKey: TypeAlias = tuple[str, str]
"""A judge and a kind of question, or a target: what calls have in common that cost about as much."""
OUTPUT_MARGIN = 3
"""A reservation assumes a reply this many times as long as the example."""
_DOLLARS = Rule(
    "0 or more US dollars",
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value >= 0,
)


class StopSignal:
    """Stops a run from any thread: no new calls start, and the run ends after the calls in flight.

    Args:
        shuffled: Process the samples in random order, so that the scored subset is representative.
    """

    def __init__(self, *, shuffled: bool = False) -> None:
        self.shuffled = shuffled
        self._event = threading.Event()
        self.reason = ""
        self.ending = STOPPED
        """The cause that ends the run."""

    def request(self, reason: str, ending: Ending = STOPPED) -> None:
        """Stop the run. Only the first reason is kept."""
        if not self._event.is_set():
            self.reason, self.ending = reason, ending
            self._event.set()

    @property
    def requested(self) -> bool:
        """Whether the run has been asked to stop."""
        return self._event.is_set()


class Budget:
    """A cap on the cost of a run, in US dollars.

    Before a call, and before each correction of a malformed reply, its estimated cost is reserved, assuming a reply
    three times as long as usual. If the same judge has charged more for a question of the same kind, such as for
    reasoning tokens, the highest cost so far is reserved. When the reply arrives, the actual cost replaces the
    reservation.

    Args:
        limit: US dollars, 0 or more.
        judges: The judges of the run. The price of each model must be known.
        name: The budget's name in messages.

    Raises:
        ConfigError: The limit is negative, or the price of a judge is unknown.
    """

    def __init__(self, limit: float, *judges: Judge, name: str = "the budget") -> None:
        check_argument("the budget", limit, Annotated[float, _DOLLARS])
        self.limit = limit
        self._name = name
        self.spent = 0.0
        self.reserved = 0.0
        self._highest: dict[PriceKey, float] = {}
        self.check(*judges)

    @classmethod
    def of(cls, budget: float | Budget | None, *judges: Judge) -> Budget | None:
        """A budget with this limit; a budget is returned unchanged. Raises ConfigError like the class."""
        if isinstance(budget, Budget):
            budget.check(*judges)
            return budget
        return None if budget is None else cls(budget, *judges)

    def check(self, *judges: Judge) -> None:
        """Raise ConfigError for a judge without a known price."""
        for leaf in leaves(*judges):
            if leaf.price(Usage(1, 1)) is None:
                raise unpriced(leaf)

    def highest(self, key: PriceKey) -> float | None:
        """The highest cost of a call so far, in US dollars; None before the first."""
        return self._highest.get(key)

    def learn(self, key: PriceKey, cost: float | None) -> None:
        """Note the actual cost of a call; None if it is unknown."""
        self._highest[key] = max(self._highest.get(key, 0.0), cost or 0.0)

    def estimate(self, question: Question[Any], judge: Judge, size: int | None = None) -> float:
        """What a call may cost, in US dollars. Raises ConfigError if the price of the judge is unknown.

        size: the number of bytes of the messages; None for those of the question.
        """
        if (price := call_price(question, judge, size)) is None:
            raise unpriced(judge)
        return max(price, self._highest.get((judge.identity, question.kind), 0.0))

    def waits(self, amount: float) -> bool:
        """Whether an amount in US dollars fits into the budget only if calls in flight cost less than is reserved for
        them."""
        return self.spent + amount <= self.limit < self.spent + self.reserved + amount

    async def provide(self, amount: float, ended: Callable[[], bool] = lambda: False) -> None:
        """Before an amount in US dollars is reserved: get room for it that other processes have, unless the run has
        ended."""

    def reserve(self, amount: float) -> float:
        """Reserve an amount in US dollars. Raises BudgetExceeded if it exceeds the rest of the budget."""
        if not self._fits(amount):
            raise BudgetExceeded(
                f"the next call (about ${amount:.4f}) does not fit into what is left of {self._name} of "
                f"${self.limit:g} ({self._used()})"
            )
        self.reserved += amount
        return amount

    def _fits(self, amount: float) -> bool:
        return self.spent + self.reserved + amount <= self.limit

    def _used(self) -> str:
        reserved = f", ${self.reserved:.4f} reserved for calls in flight" if self.reserved > TINY else ""
        return f"${self.spent:.4f} spent{reserved}"

    def settle(self, reserved: float, paid: float | None) -> None:
        """Replace a reservation by the actual cost. If that is unknown, the reservation is kept."""
        self.reserved -= reserved
        self.spent += reserved if paid is None else paid


class SharedBudget(Budget):
    """A budget that several processes share. Arguments and errors are those of `Budget`.

    Each process holds a part of it, which grows before a call that doesn't fit, and from which it gives back what it
    doesn't use. What a process holds that is gone counts as spent: nobody knows how much of it was.
    """

    def __init__(self, limit: float, *judges: Judge, limits: LimitSharing) -> None:
        super().__init__(limit, *judges)
        self._part = limits.budget(limit, lambda: self.spent, lambda: self.reserved)

    def waits(self, amount: float) -> bool:
        return False

    async def provide(self, amount: float, ended: Callable[[], bool] = lambda: False) -> None:
        await self._part.provide(amount, ended)

    def _fits(self, amount: float) -> bool:
        return self._part.fits(amount)

    def _used(self) -> str:
        lost = self._part.lost
        gone = (
            f"; of it, ${lost:.4f} was reserved by processes that were killed, whose calls may be paid: to go on, "
            "raise the budget by as much"
        )
        return f"${self._part.total:.4f} spent by all processes, or reserved for their calls{gone * (lost > TINY)}"


def unpriced(judge: Judge) -> ConfigError:
    """The error of a judge without a known price under a budget."""
    return ConfigError(
        f"a budget needs a price, and the price of {judge.identity} is unknown; set it, in US dollars per million "
        "input and output tokens: prices=[1.25, 10] of a ModelJudge, or prices = [1.25, 10] in a file's [judge] table"
    )


class Reservation:
    """What a call may cost, reserved in a budget attempt by attempt, and paid attempt by attempt.

    Args:
        budget: The budget; None reserves nothing.
        pay: Counts the cost of an attempt (None if unknown), and what the budget counts if it is unknown.
        key: What the call has in common with others that cost about as much.
        estimate: Estimates the cost of an attempt, given the budget and the number of bytes of its messages (None for
            the first).

    Raises:
        BudgetExceeded: The first attempt doesn't fit into the budget.
    """

    def __init__(
        self,
        budget: Budget | None,
        pay: Callable[[float | None, float], None],
        key: PriceKey,
        estimate: Callable[[Budget, int | None], float],
    ) -> None:
        self._budget, self._pay, self._key, self._estimate = budget, pay, key, estimate
        self._paid: float | None = 0.0
        self._open = True
        self._amount = 0.0 if budget is None else budget.reserve(estimate(budget, None))

    async def next_attempt(self, cost: float | None, size: int) -> None:
        """Replace the reservation by the cost of the attempt, and reserve a correction with messages of this size, in
        bytes. Raises BudgetExceeded if the correction doesn't fit into the budget."""
        self._pay(cost, self._amount)
        self._paid = total_cost((self._paid, cost))
        if self._budget is not None:
            self._budget.settle(self._amount, cost)
            self._budget.learn(self._key, cost)
            self._amount = 0.0
            amount = self._estimate(self._budget, size)
            await self._budget.provide(amount)
            self._amount = self._budget.reserve(amount)

    def settle(self, cost: float | None) -> None:
        """Replace the reservation by the actual cost. cost: of all attempts; if it is None, the reservation is kept."""
        last = None if cost is None or self._paid is None else cost - self._paid
        self._pay(last, self._amount)
        self._settle(last)

    def release(self) -> None:
        """End the reservation of a call whose failure cost nothing, and says nothing about the price of others."""
        self._open = False
        if self._budget is not None:
            self._budget.settle(self._amount, 0.0)

    def give_up(self) -> None:
        """Keep the reservation if it isn't settled: the call ended without a reply, and may have been charged for."""
        if self._open:
            self._settle(None)

    def _settle(self, last: float | None) -> None:
        self._open = False
        if self._budget is not None:
            self._budget.settle(self._amount, last)
            self._budget.learn(self._key, last)


def call_price(question: Question[Any], judge: Judge, size: int | None = None) -> float | None:
    """The maximum expected cost of a call in US dollars; None if the price is unknown. size: as in `estimate`."""
    if not judge.cacheable:
        return 0.0
    usage = judge.estimated_usage(question, size)
    return judge.price(Usage(usage.input, usage.output * OUTPUT_MARGIN))
