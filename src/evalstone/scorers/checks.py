"""Checks: small scorers in code that pass or fail. `from evalstone import checks; checks.contains("Paris")`.

Text checks compare the answer with `expected`, or without it with each sample's own reference. Tool checks look at the
calls in the assistant's messages, whatever became of each. A call in state "partial" was not made and does not count.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, cast

from evalstone._core.display import count, money
from evalstone._core.matching import matches
from evalstone.errors import ConfigError, OutcomeError
from evalstone.scorers.base import listed, require_number, require_text, require_texts, require_whole, shortened
from evalstone.scorers.text import CodeScorer, dice
from evalstone.types import Message, Score, Skipped, ToolCall


@dataclass(frozen=True, kw_only=True)
class Check(CodeScorer, ABC):
    """A scorer in code that gives the full scale when a condition holds and 0 when it does not."""

    interpretation = ((1.0, "it holds"), (0.0, "it does not hold"))
    advice = "Read the answers, or the calls, of the samples that fail."

    def passed(self, holds: bool, reason: str) -> Score:
        """Return the score of a condition, with the reason."""
        return Score(self.scale if holds else 0.0, self.scale, reason)


@dataclass(frozen=True, kw_only=True)
class TextCheck(Check, ABC):
    """A check of the answer against one text: the one given for all samples, or each sample's reference.

    A blank answer is checked like any other: it contains nothing, and matches what it matches.

    Attributes:
        expected: The text for all samples; by default each sample's reference.
        ignore_case: Ignore case.
    """

    constant: ClassVar[str] = "expected"
    """The field with the text for all samples; None in it stands for the sample's reference."""

    required_fields = ("output", "reference")
    reads_blank = ("output",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if getattr(self, self.constant) is not None:
            require_text(self, self.constant)
            object.__setattr__(self, "required_fields", ("output",))

    @abstractmethod
    def check(self, output: str, expected: str) -> Score:
        """Return the score of an answer against the text that is expected."""

    def score(self, *, output: str, reference: str | None = None) -> Score | Skipped:
        present = self.present({"output": output, "reference": reference})
        if not isinstance(present, dict):
            return present
        expected = cast("str | None", getattr(self, self.constant))
        return self.check(output, present["reference"] if expected is None else expected)


@dataclass(frozen=True)
class Contains(TextCheck):
    """Whether the answer contains a text.

    1 if `expected`, or without it the sample's reference, occurs anywhere in the answer, else 0. Every answer contains
    the empty text.
    """

    name = "contains"

    expected: str | None = None
    _: KW_ONLY
    ignore_case: bool = True

    def check(self, output: str, expected: str) -> Score:
        contained = _folded(expected, self.ignore_case) in _folded(output, self.ignore_case)
        return self.passed(contained, _containment(contained, expected))


@dataclass(frozen=True)
class NotContains(TextCheck):
    """Whether the answer does not contain a text.

    0 if `expected` occurs anywhere in the answer, else 1. Every answer contains the empty text.

    Attributes:
        expected: The text that must not occur.
    """

    name = "not_contains"
    required_fields = ("output",)

    expected: str
    _: KW_ONLY
    ignore_case: bool = True

    def check(self, output: str, expected: str) -> Score:
        contained = _folded(expected, self.ignore_case) in _folded(output, self.ignore_case)
        return self.passed(not contained, _containment(contained, expected))


@dataclass(frozen=True)
class ExactMatch(TextCheck):
    """Whether the answer is exactly a text.

    1 if the answer equals `expected`, or without it the sample's reference, white space included, else 0.
    """

    name = "exact_match"

    expected: str | None = None
    _: KW_ONLY
    ignore_case: bool = True

    def check(self, output: str, expected: str) -> Score:
        equal = _folded(expected, self.ignore_case) == _folded(output, self.ignore_case)
        return self.passed(equal, f"The answer {'equals' if equal else 'differs from'} {listed([expected])}.")


@dataclass(frozen=True)
class Similarity(TextCheck):
    """How much of its wording the answer shares with a text, or whether that reaches a threshold.

    2 · common bigrams / bigrams of both texts, as in `content_similarity`; with `threshold`, 1 if it is at least that,
    else 0. The text is `expected`, or without it the sample's reference.

    Attributes:
        threshold: The similarity from which the check passes, in [0, 1]; None scores the similarity itself.
    """

    name = "similarity"
    interpretation = ((0.9, "nearly the same wording"), (0.5, "some wording in common"), (0.0, "different wording"))

    expected: str | None = None
    _: KW_ONLY
    threshold: float | None = None
    ignore_case: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is not None:
            require_number(self, "threshold", high=1)

    def check(self, output: str, expected: str) -> Score:
        value = dice(_folded(expected, self.ignore_case), _folded(output, self.ignore_case))
        if self.threshold is None:
            return Score(value * self.scale, self.scale, f"Bigrams in common with {listed([expected])}.")
        return self.passed(
            value >= self.threshold, f"The similarity is {value:.3g}; the threshold is {self.threshold:g}."
        )


@dataclass(frozen=True)
class Regex(TextCheck):
    """Whether the answer matches a regular expression.

    1 if `pattern`, or without it the sample's reference, matches somewhere in the answer, or with `exact` all of it,
    else 0. The syntax is that of Python's `re`, with inline flags such as `(?s)`. Failed if a match takes more than 10
    seconds.

    Attributes:
        pattern: The expression for all samples; by default each sample's reference.
        exact: Match the whole answer.
    """

    name = "regex"
    constant = "pattern"

    pattern: str | None = None
    _: KW_ONLY
    exact: bool = False
    ignore_case: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pattern is not None and (error := self._compile(self.pattern)[1]):
            raise ConfigError(f"{self.name}: {error}")

    def _compile(self, pattern: str) -> tuple[re.Pattern[str] | None, str]:
        """The pattern, compiled (`re` caches it), and what is wrong with it."""
        try:
            return re.compile(pattern, re.IGNORECASE if self.ignore_case else 0), ""
        except (re.error, RecursionError, OverflowError) as error:
            return None, f"{shortened(pattern)!r} is not a regular expression: {error}"

    def check(self, output: str, expected: str) -> Score:
        pattern, error = self._compile(expected)
        if pattern is None:
            raise OutcomeError(f"{self.name}: the reference {error}")
        try:
            match = matches(pattern, output, whole=self.exact)
        except OutcomeError as problem:
            raise OutcomeError(f"{self.name}: {problem}") from None
        if match:
            found = "The whole answer matches" if self.exact else "Part of the answer matches"
        else:
            found = "The answer as a whole does not match" if self.exact else "No part of the answer matches"
        return self.passed(match, f"{found} {shortened(expected)}.")


@dataclass(frozen=True, kw_only=True)
class ToolCheck(Check, ABC):
    """A check of the tool calls in a sample's messages. Without messages it is Skipped: the calls are unknown."""

    include_partial: ClassVar[bool] = False
    """Whether calls whose arguments were still being written are looked at too."""

    @abstractmethod
    def check(self, calls: Sequence[ToolCall]) -> Score:
        """Return the score of an agent's tool calls."""

    def score(self, *, messages: Sequence[Message]) -> Score | Skipped:
        if not messages:
            return Skipped(f"{self.name} needs messages")
        calls = [call for message in messages if message.role == "assistant" for call in message.tool_calls]
        return self.check([call for call in calls if self.include_partial or call.state != "partial"])


@dataclass(frozen=True)
class ToolCalled(ToolCheck):
    """Whether the agent called a tool, at least a number of times.

    1 if the messages contain at least `times` calls of `tool`, else 0.

    Attributes:
        tool: The name of the tool.
        times: The lowest number of calls that passes.
    """

    name = "tool_called"

    tool: str
    _: KW_ONLY
    times: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_text(self, "tool", blank=False)
        require_whole(self, "times")

    def check(self, calls: Sequence[ToolCall]) -> Score:
        number = sum(call.name == self.tool for call in calls)
        reason = f"{self.tool!r} was called {count(number, 'time')}; expected at least {self.times}."
        return self.passed(number >= self.times, reason)


@dataclass(frozen=True)
class ToolNotCalled(ToolCheck):
    """Whether the agent did not call a tool.

    1 if the messages contain no call of `tool`, else 0.

    Attributes:
        tool: The name of the tool.
    """

    name = "tool_not_called"

    tool: str

    def __post_init__(self) -> None:
        super().__post_init__()
        require_text(self, "tool", blank=False)

    def check(self, calls: Sequence[ToolCall]) -> Score:
        number = sum(call.name == self.tool for call in calls)
        return self.passed(number == 0, f"{self.tool!r} was called {count(number, 'time')}.")


@dataclass(frozen=True)
class ToolOrder(ToolCheck):
    """Whether the agent called tools in a certain order.

    1 if `tools` were called in this order, else 0. Other calls may come before, between and after; a tool
    named twice must be called twice. An empty order always scores 1.

    Attributes:
        tools: The names of the tools, in order.
    """

    name = "tool_order"

    tools: Sequence[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        require_texts(self, "tools")

    def check(self, calls: Sequence[ToolCall]) -> Score:
        called = [call.name for call in calls]
        reason = f"Called: {_names(called)}. Expected: {_names(self.tools)}."
        return self.passed(is_subsequence(self.tools, called), reason)


@dataclass(frozen=True)
class MaxToolCalls(ToolCheck):
    """Whether the agent made at most a number of tool calls.

    1 if the messages contain at most `limit` calls, else 0.

    Attributes:
        limit: The highest number of calls that passes.
    """

    name = "max_tool_calls"

    limit: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole(self, "limit")

    def check(self, calls: Sequence[ToolCall]) -> Score:
        reason = f"{count(len(calls), 'tool call')}; expected at most {self.limit}."
        return self.passed(len(calls) <= self.limit, reason)


@dataclass(frozen=True)
class NoToolCalls(ToolCheck):
    """Whether the agent called no tool at all.

    1 if the messages contain no tool call, else 0.
    """

    name = "no_tool_calls"

    def check(self, calls: Sequence[ToolCall]) -> Score:
        return self.passed(not calls, f"Called: {_names([call.name for call in calls])}.")


@dataclass(frozen=True)
class NoToolErrors(ToolCheck):
    """Whether every tool call returned, and none with an error.

    0 if a call failed, never returned, or returned an object whose `error` is not empty, else 1. A partial call fails
    only by such a result. 1 when nothing was called.
    """

    name = "no_tool_errors"
    include_partial = True

    def check(self, calls: Sequence[ToolCall]) -> Score:
        failed = [call.name for call in calls if has_failed(call)]
        return self.passed(not failed, f"{count(len(calls), 'tool call')}; failed: {_names(failed)}.")


@dataclass(frozen=True, kw_only=True)
class CallCheck(Check, ABC):
    """A check of the target's call, which `metadata["target"]` describes. Skipped where it does not."""

    reported: ClassVar[str]
    """What must be told of the call."""
    limit: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number(self, "limit")

    @abstractmethod
    def measured(self, call: Mapping[str, Any]) -> object:
        """Return what the call took; None if that is unknown."""

    @abstractmethod
    def shown(self, amount: float) -> str:
        """Return an amount with its unit."""

    def score(self, *, metadata: Mapping[str, Any]) -> Score | Skipped:
        call = metadata.get("target")
        amount = self.measured(cast("Mapping[str, Any]", call)) if isinstance(call, Mapping) else None
        if isinstance(amount, bool) or not isinstance(amount, int | float):
            return Skipped(f"{self.name} needs {self.reported} of a target's call")
        reason = f"The answer took {self.shown(amount)}; the limit is {self.shown(self.limit)}."
        return replace(self.passed(amount <= self.limit, reason), evidence={self.reported: amount})


@dataclass(frozen=True)
class Latency(CallCheck):
    """Whether the target answered within a number of seconds.

    1 if the call took at most `limit` seconds, else 0; the mean is the share of answers in time. Skipped where no
    target answered.

    Attributes:
        limit: The longest time that passes, in seconds.
    """

    name = "latency"
    reported = "seconds"

    limit: float

    def measured(self, call: Mapping[str, Any]) -> object:
        return call.get("seconds")

    def shown(self, amount: float) -> str:
        return f"{amount:.3g} s"


@dataclass(frozen=True)
class Cost(CallCheck):
    """Whether the target's answer cost at most an amount.

    1 if the call cost at most `limit` US dollars, else 0; the mean is the share of answers within the amount. Skipped
    where no target answered, and where it reports no cost. The cost of judge calls is not in it.

    Attributes:
        limit: The highest cost that passes, in US dollars.
    """

    name = "cost"
    reported = "cost"

    limit: float

    def measured(self, call: Mapping[str, Any]) -> object:
        return call.get("cost")

    def shown(self, amount: float) -> str:
        return money(amount)


@dataclass(frozen=True)
class Tokens(CallCheck):
    """Whether the target's answer took at most a number of tokens.

    1 if the call took at most `limit` tokens, input and output together, else 0; the mean is the share of answers
    within the limit. Skipped where no target answered, and where it reports no tokens.

    Attributes:
        limit: The highest number of tokens that passes.
    """

    name = "tokens"
    reported = "tokens"

    limit: float

    def measured(self, call: Mapping[str, Any]) -> object:
        match call.get("usage"):
            case {"input": int(read), "output": int(written)}:
                return read + written
            case _:
                return None

    def shown(self, amount: float) -> str:
        return f"{amount:,.0f} tokens"


contains, not_contains, exact_match, similarity, regex = Contains, NotContains, ExactMatch, Similarity, Regex
tool_called, tool_not_called, tool_order = ToolCalled, ToolNotCalled, ToolOrder
max_tool_calls, no_tool_calls, no_tool_errors = MaxToolCalls, NoToolCalls, NoToolErrors
latency, cost, tokens = Latency, Cost, Tokens


def is_subsequence(order: Sequence[str], called: Sequence[str]) -> bool:
    """Whether the names occur in this order; others may stand between them."""
    rest = iter(called)
    return all(name in rest for name in order)


def has_failed(call: ToolCall) -> bool:
    """Whether a call failed, never returned (unless it is partial), or returned an object with an `error` in it."""
    if call.state not in ("result", "partial"):
        return True
    result = cast(object, call.result)
    return isinstance(result, Mapping) and bool(cast("Mapping[str, Any]", result).get("error"))


def _folded(text: str, ignore_case: bool) -> str:
    return text.lower() if ignore_case else text


def _containment(contained: bool, text: str) -> str:
    return f"The answer {'contains' if contained else 'does not contain'} {listed([text])}."


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8]) or "none"
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown
