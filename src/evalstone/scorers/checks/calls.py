"""Checks of a target's call: latency, cost and tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from evalstone._core.declarations import Range
from evalstone._core.display import money
from evalstone._core.guards import is_mapping
from evalstone.scorers.checks.base import Check
from evalstone.types import Score, Skipped


class CallCheck(Check, ABC):
    """A check of the target's call, as described by `metadata["target"]`. Skipped without that description."""

    reported: ClassVar[str]
    """The value that the description of the call must have."""
    limit: Annotated[float, Range(0)]

    @abstractmethod
    def measured(self, call: Mapping[str, Any]) -> object:
        """Return the measured amount; None if it is unknown."""

    @abstractmethod
    def shown(self, amount: float) -> str:
        """Return an amount with its unit."""

    def score(self, *, metadata: Mapping[str, Any]) -> Score | Skipped:
        call = metadata.get("target")
        amount = self.measured(call) if is_mapping(call) else None
        if isinstance(amount, bool) or not isinstance(amount, int | float):
            return Skipped(self.needs_text(self.required_fields))
        reason = f"The answer took {self.shown(amount)}; the limit is {self.shown(self.limit)}."
        return replace(self.passed(amount <= self.limit, reason), evidence={self.reported: amount})


class Latency(CallCheck, kw_only=False):
    """Whether the target answered within a given number of seconds.

    1 if the call took at most `limit` seconds, else 0; the mean is the share of answers in time. Skipped if no target
    answered.

    Attributes:
        limit: The longest time that passes, in seconds.
    """

    name = "latency"
    reported = "seconds"
    required_fields = ("metadata.target.seconds",)

    limit: Annotated[float, Range(0)]

    def measured(self, call: Mapping[str, Any]) -> object:
        return call.get("seconds")

    def shown(self, amount: float) -> str:
        return f"{amount:.3g} s"


class Cost(CallCheck, kw_only=False):
    """Whether the target's answer cost at most a given amount.

    1 if the call cost at most `limit` US dollars, else 0; the mean is the share of answers within the limit. Skipped if
    no target answered, or it reports no cost. The cost of judge calls is not included.

    Attributes:
        limit: The highest cost that passes, in US dollars.
    """

    name = "cost"
    reported = "cost"
    required_fields = ("metadata.target.cost",)

    limit: Annotated[float, Range(0)]

    def measured(self, call: Mapping[str, Any]) -> object:
        return call.get("cost")

    def shown(self, amount: float) -> str:
        return money(amount)


class Tokens(CallCheck, kw_only=False):
    """Whether the target's answer used at most a given number of tokens.

    1 if the call used at most `limit` tokens, input and output together, else 0; the mean is the share of answers
    within the limit. Skipped if no target answered, or it reports no tokens.

    Attributes:
        limit: The highest number of tokens that passes.
    """

    name = "tokens"
    version = 2
    reported = "tokens"
    required_fields = ("metadata.target.usage",)

    limit: Annotated[float, Range(0)]

    def measured(self, call: Mapping[str, Any]) -> object:
        match call.get("usage"):
            case {"input": int(read), "output": int(written)}:
                return read + written
            case _:
                return None

    def shown(self, amount: float) -> str:
        return f"{amount:,.0f} tokens"


latency, cost, tokens = Latency, Cost, Tokens
