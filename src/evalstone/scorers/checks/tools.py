"""Quick checks of an agent's tool calls: called_tool, did_not_call, tool_order, max_tool_calls, used_no_tools,
no_tool_errors. They look at the calls in the assistant's messages, whatever became of each. A call in state "partial"
was not made and does not count; no_tool_errors alone reads what such a call has in its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from evalstone.errors import ConfigError
from evalstone.scorers.checks.base import ToolCheck, count_field, text_fields
from evalstone.types import Score, ToolCall


def follows(order: Sequence[str], called: Sequence[str]) -> bool:
    """Whether the names stand in the calls in this order; others may stand between them."""
    rest = iter(called)
    return all(name in rest for name in order)


def has_failed(call: ToolCall) -> bool:
    """Whether a call failed, never returned, or returned an object with an `error` in it; half-made calls have not."""
    result = cast("Mapping[str, Any] | object", call.result)
    return call.state not in ("result", "partial") or (
        isinstance(result, Mapping) and bool(cast("Any", result).get("error"))
    )


@dataclass(frozen=True, kw_only=True)
class CalledTool(ToolCheck):
    """Whether the agent called a tool, at least so many times.

    1 if the messages hold `times` or more calls of `tool`, else 0.
    """

    name = "called_tool"

    tool: str
    times: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        text_fields(self, "tool")
        count_field(self, "times")

    def judge(self, calls: Sequence[ToolCall]) -> Score:
        count = sum(call.name == self.tool for call in calls)
        return self.told(count >= self.times, f"{_times(self.tool, count)}; at least {self.times} was asked for.")


@dataclass(frozen=True, kw_only=True)
class DidNotCall(ToolCheck):
    """Whether the agent left a tool alone.

    1 if the messages hold no call of `tool`, else 0.
    """

    name = "did_not_call"

    tool: str

    def __post_init__(self) -> None:
        super().__post_init__()
        text_fields(self, "tool")

    def judge(self, calls: Sequence[ToolCall]) -> Score:
        count = sum(call.name == self.tool for call in calls)
        return self.told(count == 0, f"{_times(self.tool, count)}.")


@dataclass(frozen=True, kw_only=True)
class ToolOrder(ToolCheck):
    """Whether the agent called tools in an order.

    1 if `tools` stand among the calls in this order, else 0. Other calls may come before, between and after; a tool
    named twice must be called twice. An empty order always holds.
    """

    name = "tool_order"

    tools: Sequence[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        given = cast(object, self.tools)
        names = tuple(cast("Sequence[object]", given)) if isinstance(given, Sequence) else (None,)
        if isinstance(given, str) or not all(isinstance(name, str) for name in names):
            raise ConfigError(f"{self.name}: tools must be a list of names, not {given!r}")
        object.__setattr__(self, "tools", names)

    def judge(self, calls: Sequence[ToolCall]) -> Score:
        called = [call.name for call in calls]
        reason = f"Called: {_listed(called)}. Asked for: {_listed(self.tools)}."
        return self.told(follows(self.tools, called), reason)


@dataclass(frozen=True, kw_only=True)
class MaxToolCalls(ToolCheck):
    """Whether the agent made no more than so many tool calls.

    1 if the messages hold `limit` calls or fewer, else 0.
    """

    name = "max_tool_calls"

    limit: int

    def __post_init__(self) -> None:
        super().__post_init__()
        count_field(self, "limit")

    def judge(self, calls: Sequence[ToolCall]) -> Score:
        return self.told(len(calls) <= self.limit, f"{len(calls)} tool calls; at most {self.limit} were asked for.")


@dataclass(frozen=True, kw_only=True)
class UsedNoTools(ToolCheck):
    """Whether the agent called no tool at all.

    1 if the messages hold no tool call, else 0.
    """

    name = "used_no_tools"

    def judge(self, calls: Sequence[ToolCall]) -> Score:
        return self.told(not calls, f"Called: {_listed([call.name for call in calls])}.")


@dataclass(frozen=True, kw_only=True)
class NoToolErrors(ToolCheck):
    """Whether every tool call returned, and none with an error.

    0 if a call failed, never returned, or returned an object whose `error` is not empty, else 1. A half-made call has
    not failed by never returning. Holds where nothing was called.
    """

    name = "no_tool_errors"
    half_made = True

    def judge(self, calls: Sequence[ToolCall]) -> Score:
        failed = [call.name for call in calls if has_failed(call)]
        return self.told(not failed, f"{len(calls)} tool calls; failed: {_listed(failed)}.")


def _times(tool: str, count: int) -> str:
    return f"{tool!r} was called {count} times"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8]) or "none"
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


def called_tool(tool: str, *, times: int = 1) -> CalledTool:
    """The agent called this tool, at least so many times."""
    return CalledTool(tool=tool, times=times)


def did_not_call(tool: str) -> DidNotCall:
    """The agent left this tool alone."""
    return DidNotCall(tool=tool)


def tool_order(tools: Sequence[str]) -> ToolOrder:
    """The agent called these tools in this order, others between them or not."""
    return ToolOrder(tools=tools)


def max_tool_calls(limit: int) -> MaxToolCalls:
    """The agent made no more than so many tool calls."""
    return MaxToolCalls(limit=limit)


def used_no_tools() -> UsedNoTools:
    """The agent called no tool."""
    return UsedNoTools()


def no_tool_errors() -> NoToolErrors:
    """Every tool call returned, and none with an error."""
    return NoToolErrors()
