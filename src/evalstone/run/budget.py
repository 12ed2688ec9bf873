"""Stop signals and budgets, which may end a run early."""

from __future__ import annotations

import json
import threading
from typing import Any

from evalstone.errors import BudgetExceeded, ConfigError
from evalstone.judges.base import Judge, leaves
from evalstone.questions.base import BYTES_PER_TOKEN, Question
from evalstone.types import Usage

DECIDED = "the gate is decided"
"""The stop reason of a run that was stopped by its gate."""
TINY = 1e-9
OUTPUT_MARGIN = 3
"""A reservation assumes a reply this many times as long as the example."""


class StopSignal:
    """Stops a run from any thread: no new calls start, and the run ends after the calls in flight.

    Args:
        shuffled: Process the samples in random order, so that the scored subset is representative.
    """

    def __init__(self, *, shuffled: bool = False) -> None:
        self.shuffled = shuffled
        self._event = threading.Event()
        self.reason = ""

    def request(self, reason: str) -> None:
        """Stop the run. Only the first reason is kept."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    @property
    def requested(self) -> bool:
        """Whether the run has been asked to stop."""
        return self._event.is_set()


class Budget:
    """A cap on the cost of a run, in US dollars.

    Before a call, its estimated cost is reserved, assuming a reply three times as long as usual. When the answer
    arrives, the actual cost replaces the reservation.

    Args:
        limit: US dollars, 0 or more.
        judges: The judges of the run. The price of each model must be known.
        name: The budget's name in messages.

    Raises:
        ConfigError: The limit is negative, or the price of a judge is unknown.
    """

    def __init__(self, limit: float, *judges: Judge, name: str = "the budget") -> None:
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"the budget must be 0 or more US dollars, not {limit!r}")
        self.limit = limit
        self._name = name
        self.spent = 0.0
        self.reserved = 0.0
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

    def reserve(self, question: Question[Any], judge: Judge) -> float:
        """Reserve the estimated cost of a call.

        Raises:
            BudgetExceeded: It exceeds the rest of the budget.
            ConfigError: The price of the judge is unknown.
        """
        if (price := call_price(question, judge)) is None:
            raise unpriced(judge)
        return self.reserve_amount(price)

    def reserve_amount(self, amount: float) -> float:
        """Reserve an amount in US dollars. Raises BudgetExceeded if it exceeds the rest of the budget."""
        if self.spent + self.reserved + amount > self.limit:
            reserved = f", ${self.reserved:.4f} reserved for calls in flight" if self.reserved > TINY else ""
            raise BudgetExceeded(
                f"the next call (about ${amount:.4f}) does not fit into what is left of {self._name} of "
                f"${self.limit:g} (${self.spent:.4f} spent{reserved})"
            )
        self.reserved += amount
        return amount

    def settle(self, reserved: float, paid: float | None) -> None:
        """Replace a reservation by the actual cost. If that is unknown, the reservation is kept."""
        self.reserved -= reserved
        self.spent += reserved if paid is None else paid


def unpriced(judge: Judge) -> ConfigError:
    """The error of a judge without a known price under a budget."""
    return ConfigError(
        f"a budget needs a price, and the price of {judge.identity} is unknown; "
        "set it on the judge as prices = [input, output]"
    )


def call_price(question: Question[Any], judge: Judge) -> float | None:
    """The maximum expected cost of a call in US dollars; None if the price is unknown."""
    if not judge.cacheable:
        return 0.0
    usage = estimated_usage(question)
    return judge.price(Usage(usage.input, usage.output * OUTPUT_MARGIN))


def estimated_usage(question: Question[Any]) -> Usage:
    """The estimated tokens of a question and of a reply of usual length, at four bytes per token."""
    system, user = question.render()
    schema = json.dumps(question.json_schema or {})
    prompt = len(system.encode()) + len(user.encode()) + len(schema)
    return Usage(prompt // BYTES_PER_TOKEN, len(json.dumps(question.example())) // BYTES_PER_TOKEN, 0, 1)
