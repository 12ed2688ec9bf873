"""Checks of the tool calls in the assistant's messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Annotated, ClassVar

from evalstone._core.declarations import TEXT, TEXTS, Range
from evalstone._core.display import count
from evalstone.scorers.agents import CallSource
from evalstone.scorers.checks.base import Check
from evalstone.types import Message, Score, Skipped, ToolCall
from evalstone.types.tool_results import returned_error


class ToolCheck(CallSource, Check, ABC):
    """A check of the tool calls in a sample's messages, else in its trajectory. Skipped without either, since the calls
    are unknown."""

    version = 2
    include_partial: ClassVar[bool] = False
    """Whether calls whose arguments were still being written are checked too."""

    @abstractmethod
    def check(self, calls: Sequence[ToolCall]) -> Score:
        """Return the score of an agent's tool calls."""

    def score(self, *, messages: Sequence[Message]) -> Score | Skipped:
        if not messages:
            return Skipped(self.needs_text(["messages"]))
        calls = [call for message in messages if message.role == "assistant" for call in message.tool_calls]
        return self.check([call for call in calls if self.include_partial or call.state != "partial"])


class ToolCalled(ToolCheck, kw_only=False):
    """Whether the agent called a tool, at least a given number of times.

    1 if the messages contain at least `at_least` calls of `tool`, else 0.

    Attributes:
        tool: The name of the tool.
        at_least: The fewest calls that pass.
    """

    name = "tool_called"

    tool: Annotated[str, TEXT]
    _: KW_ONLY
    at_least: Annotated[int, Range(0)] = 1

    def check(self, calls: Sequence[ToolCall]) -> Score:
        number = sum(call.name == self.tool for call in calls)
        reason = f"{self.tool!r} was called {count(number, 'time')}; expected at least {self.at_least}."
        return self.passed(number >= self.at_least, reason)


class ToolNotCalled(ToolCheck, kw_only=False):
    """Whether the agent did not call a tool.

    1 if the messages contain no call of `tool`, else 0.

    Attributes:
        tool: The name of the tool.
    """

    name = "tool_not_called"

    tool: Annotated[str, TEXT]

    def check(self, calls: Sequence[ToolCall]) -> Score:
        number = sum(call.name == self.tool for call in calls)
        return self.passed(number == 0, f"{self.tool!r} was called {count(number, 'time')}.")


class ToolOrder(ToolCheck, kw_only=False):
    """Whether the agent called tools in a given order.

    1 if `tools` were called in this order, else 0. Other calls may come before, between and after. A tool named twice
    must be called twice. An empty order always scores 1.

    Attributes:
        tools: The names of the tools, in order.
    """

    name = "tool_order"

    tools: Annotated[Sequence[str], TEXTS]

    def check(self, calls: Sequence[ToolCall]) -> Score:
        called = [call.name for call in calls]
        reason = f"Called: {_names(called)}. Expected: {_names(self.tools)}."
        return self.passed(is_subsequence(self.tools, called), reason)


class MaxToolCalls(ToolCheck, kw_only=False):
    """Whether the agent made at most a given number of tool calls.

    1 if the messages contain at most `limit` calls, else 0.

    Attributes:
        limit: The most calls that pass.
    """

    name = "max_tool_calls"

    limit: Annotated[int, Range(0)]

    def check(self, calls: Sequence[ToolCall]) -> Score:
        reason = f"{count(len(calls), 'tool call')}; expected at most {self.limit}."
        return self.passed(len(calls) <= self.limit, reason)


class NoToolCalls(ToolCheck):
    """Whether the agent called no tool at all.

    1 if the messages contain no tool call, else 0.
    """

    name = "no_tool_calls"

    def check(self, calls: Sequence[ToolCall]) -> Score:
        return self.passed(not calls, f"Called: {_names([call.name for call in calls])}.")


class NoToolErrors(ToolCheck):
    """Whether every tool call returned a result without an error.

    0 if a call failed, never returned, or returned an object with a non-empty `error`, also as JSON text, else 1. A
    partial call fails only if it has such a result. 1 if nothing was called.
    """

    name = "no_tool_errors"
    version = 2
    include_partial = True

    def check(self, calls: Sequence[ToolCall]) -> Score:
        failed = [call.name for call in calls if has_failed(call)]
        return self.passed(not failed, f"{count(len(calls), 'tool call')}; failed: {_names(failed)}.")


tool_called, tool_not_called, tool_order = ToolCalled, ToolNotCalled, ToolOrder
max_tool_calls, no_tool_calls, no_tool_errors = MaxToolCalls, NoToolCalls, NoToolErrors


def is_subsequence(order: Sequence[str], called: Sequence[str]) -> bool:
    """Whether the names occur in this order, possibly with others between them."""
    rest = iter(called)
    return all(name in rest for name in order)


def has_failed(call: ToolCall) -> bool:
    """Whether a call failed, never returned (unless it is partial), or returned an object with a non-empty `error`."""
    if call.state not in ("result", "partial"):
        return True
    return returned_error(call.result) is not None


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8]) or "none"
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown
