"""What may end a run before its end: a request to stop, a budget that is spent."""

from __future__ import annotations

import json
import math
import threading
from typing import Any

from evalstone.errors import ConfigError
from evalstone.judges.base import Judge, leaves
from evalstone.ledger.rows import StoredAnswer
from evalstone.questions.base import BYTES_A_TOKEN, Question
from evalstone.types import Record, Usage

LONGER_OUTPUT = 3


class Stop:
    """A request, from any thread, that a run start nothing more and end when what is under way is done.

    shuffled: samples are to be taken in a random order, so that those that were judged by then are a fair part.
    """

    def __init__(self, *, shuffled: bool = False) -> None:
        self.shuffled = shuffled
        self._event = threading.Event()
        self.reason = ""

    def request(self, reason: str) -> None:
        """Ask for the end; the first reason counts."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    @property
    def requested(self) -> bool:
        """Whether the end was asked for."""
        return self._event.is_set()


class Budget:
    """A ceiling in US dollars on what a run pays.

    Before a question is asked its cost is reserved, estimated from its length and from an answer three times as long as
    usual; when it is answered the reservation gives way to the cost. A judge of judges needs the price of each of its
    members. Raises ConfigError for a limit below 0, and for a judge whose price is unknown.
    """

    def __init__(self, limit: float, judge: Judge) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"the budget must be 0 or more US dollars, not {limit!r}")
        self.limit = limit
        self.spent = 0.0
        self.reserved = 0.0
        self._judge = judge
        self._since = math.inf
        self._counted: set[tuple[str, str]] = set()
        _check_prices(judge)

    def reserve(self, question: Question[Any], judge: Judge | None = None) -> float | None:
        """Reserve the cost of a question to the run's judge or to one of its members; None when it does not fit."""
        asked = self._judge if judge is None else judge
        amount = 0.0
        if asked.costly:
            size = size_of(question)
            amount = asked.price_of(Usage(size.input, size.output * LONGER_OUTPUT)) or 0.0
        if self.spent + self.reserved + amount > self.limit:
            return None
        self.reserved += amount
        return amount

    def goes_on(self, since: float) -> None:
        """The run began earlier, at this time in seconds since 1970; what it paid by then is told by the next two."""
        self._since = since

    def recorded(self, record: Record) -> None:
        """Count what an outcome took that the run had before it was stopped."""
        self.settle(0.0, record.cost)
        steps = (leaf for step in record.steps for leaf in step.leaves())
        self._counted.update((step.fingerprint, step.judge) for step in steps if not step.cached)

    def cached(self, answer: StoredAnswer) -> None:
        """Count what a stored answer took, if it came since the run began and is behind none of its outcomes: the run
        was stopped after it was paid for. So is, at worst, one that another run paid for in the meantime."""
        name = (answer.question, answer.judge)
        if answer.written >= self._since and name not in self._counted:
            self._counted.add(name)
            self.settle(0.0, answer.cost)

    def settle(self, reserved: float, paid: float | None) -> None:
        """Put what was paid in the place of a reservation; the reservation stands where the price is not known."""
        self.reserved -= reserved
        self.spent += reserved if paid is None else paid


def _check_prices(judge: Judge) -> None:
    for leaf in leaves(judge):
        if leaf.price_of(Usage(1, 1)) is None:
            told = f"a budget needs a price, and that of {leaf.identity} is unknown"
            raise ConfigError(f"{told}; give it to the judge as price = [input, output]")


def size_of(question: Question[Any]) -> Usage:
    """About how many tokens a question takes, and an answer of usual length to it: four bytes to a token."""
    system, user = question.render()
    schema = json.dumps(question.json_schema or {})
    asked = len(system.encode()) + len(user.encode()) + len(schema)
    return Usage(asked // BYTES_A_TOKEN, len(json.dumps(question.example())) // BYTES_A_TOKEN, 0, 1)
