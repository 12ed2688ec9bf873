"""What may end a run early: a stop signal, and a budget in US dollars."""

from __future__ import annotations

import json
import threading
from typing import Any

from evalstone.errors import BudgetExceeded, ConfigError
from evalstone.judges.base import Judge, leaves
from evalstone.questions.base import BYTES_PER_TOKEN, Question
from evalstone.types import Usage

DECIDED = "the gate is decided"
"""The reason of a run that its gate stopped."""
TINY = 1e-9
OUTPUT_MARGIN = 3
"""A reservation assumes a reply so many times as long as the example."""


class StopSignal:
    """Asks a run, from any thread, to start no new calls and to end after the calls in flight.

    Args:
        shuffled: Process the samples in random order, so that the scored subset is representative.
    """

    def __init__(self, *, shuffled: bool = False) -> None:
        self.shuffled = shuffled
        self._event = threading.Event()
        self.reason = ""

    def request(self, reason: str) -> None:
        """Ask the run to stop. The first reason is kept."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    @property
    def requested(self) -> bool:
        """Whether the run was asked to stop."""
        return self._event.is_set()


class Budget:
    """A ceiling in US dollars on what a run pays.

    Before a call its cost is reserved, estimated from the length of the prompt and from a reply three times as long as
    usual. When the answer arrives, the reservation is replaced by the real cost.

    Args:
        limit: US dollars, 0 or more.
        judges: The judges of the run; the price of every model in them must be known.
        name: What the budget is called where it is spent.

    Raises:
        ConfigError: For a limit below 0, and for a judge without a known price.
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
        """A limit as a budget; or a budget that several runs share, as it is. Raises ConfigError as the class does."""
        if isinstance(budget, Budget):
            budget.check(*judges)
            return budget
        return None if budget is None else cls(budget, *judges)

    def check(self, *judges: Judge) -> None:
        """Raise ConfigError for a judge without a known price."""
        for leaf in leaves(*judges):
            if leaf.price(Usage(1, 1)) is None:
                raise ConfigError(
                    f"a budget needs a price, and the price of {leaf.identity} is unknown; "
                    "set it on the judge as prices = [input, output]"
                )

    def reserve(self, question: Question[Any], judge: Judge) -> float:
        """Reserve the cost of a call. Raises BudgetExceeded when it does not fit into what is left."""
        return self.reserve_amount(call_price(question, judge) or 0.0)

    def reserve_amount(self, amount: float) -> float:
        """Reserve so many US dollars for a call. Raises BudgetExceeded when they do not fit into what is left."""
        if self.spent + self.reserved + amount > self.limit:
            reserved = f", ${self.reserved:.4f} reserved for calls in flight" if self.reserved > TINY else ""
            raise BudgetExceeded(
                f"the next call (about ${amount:.4f}) does not fit into what is left of {self._name} of "
                f"${self.limit:g} (${self.spent:.4f} spent{reserved})"
            )
        self.reserved += amount
        return amount

    def settle(self, reserved: float, paid: float | None) -> None:
        """Replace a reservation by what was paid; the reservation stands where the price is unknown."""
        self.reserved -= reserved
        self.spent += reserved if paid is None else paid


def call_price(question: Question[Any], judge: Judge) -> float | None:
    """The most that a call is expected to cost, in US dollars; None when the price is unknown."""
    if not judge.cacheable:
        return 0.0
    usage = estimated_usage(question)
    return judge.price(Usage(usage.input, usage.output * OUTPUT_MARGIN))


def estimated_usage(question: Question[Any]) -> Usage:
    """The tokens of a question and of a reply of usual length, estimated at four bytes a token."""
    system, user = question.render()
    schema = json.dumps(question.json_schema or {})
    prompt = len(system.encode()) + len(user.encode()) + len(schema)
    return Usage(prompt // BYTES_PER_TOKEN, len(json.dumps(question.example())) // BYTES_PER_TOKEN, 0, 1)
