"""What may end a run early: a stop signal, and a budget in US dollars."""

from __future__ import annotations

import json
import math
import threading
from typing import Any

from evalstone.errors import BudgetExceeded, ConfigError
from evalstone.judges.base import Judge, leaves
from evalstone.ledger.base import Key, StoredAnswer
from evalstone.questions.base import BYTES_PER_TOKEN, Question
from evalstone.types import Record, Usage

DECIDED = "the gate is decided"
"""The reason of a run that its gate stopped."""
TINY = 1e-9
OUTPUT_MARGIN = 3
"""A reservation assumes a reply so many times as long as the example."""


class StopSignal:
    """A request, from any thread, that a run start nothing new and end when the calls in flight are done.

    Args:
        shuffled: Process the samples in random order, so that those scored by then are a fair part of the dataset.
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

    Raises:
        ConfigError: For a limit below 0, and for a judge without a known price.
    """

    def __init__(self, limit: float, *judges: Judge) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"the budget must be 0 or more US dollars, not {limit!r}")
        for leaf in leaves(*judges):
            if leaf.price(Usage(1, 1)) is None:
                raise ConfigError(
                    f"a budget needs a price, and the price of {leaf.identity} is unknown; "
                    "set it on the judge as prices = [input, output]"
                )
        self.limit = limit
        self.spent = 0.0
        self.reserved = 0.0
        self._started = math.inf
        self._counted: set[Key] = set()

    def reserve(self, question: Question[Any], judge: Judge) -> float:
        """Reserve the cost of a call. Raises BudgetExceeded when it does not fit into what is left."""
        return self.reserve_amount(call_price(question, judge) or 0.0)

    def reserve_amount(self, amount: float) -> float:
        """Reserve so many US dollars for a call. Raises BudgetExceeded when they do not fit into what is left."""
        if self.spent + self.reserved + amount > self.limit:
            reserved = f", ${self.reserved:.4f} reserved for calls in flight" if self.reserved > TINY else ""
            raise BudgetExceeded(
                f"the next call (about ${amount:.4f}) does not fit into what is left of the budget of ${self.limit:g} "
                f"(${self.spent:.4f} spent{reserved})"
            )
        self.reserved += amount
        return amount

    def settle(self, reserved: float, paid: float | None) -> None:
        """Replace a reservation by what was paid; the reservation stands where the price is unknown."""
        self.reserved -= reserved
        self.spent += reserved if paid is None else paid

    def resume(self, started: float) -> None:
        """Continue the budget of a run that began at this time, in seconds since 1970.

        What it had paid by then is restored from its records and from the answers that belong to none of them.
        """
        self._started = started

    def restore_record(self, record: Record) -> None:
        """Count the cost of a record written before the run was interrupted."""
        self.settle(0.0, record.cost)
        calls = (leaf for call in record.steps for leaf in call.leaves())
        self._counted.update(Key(call.fingerprint, call.judge, call.repeat_index) for call in calls if not call.cached)

    def restore_answer(self, answer: StoredAnswer) -> None:
        """Count the cost of a stored answer that was paid for since the run began and belongs to none of its records.

        At worst this counts an answer that another run paid for in the meantime.
        """
        if answer.written >= self._started and answer.key not in self._counted:
            self._counted.add(answer.key)
            self.settle(0.0, answer.cost)


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
