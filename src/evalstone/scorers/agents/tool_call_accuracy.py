"""Tool call accuracy: whether the agent called the tools that it should have called.

    tool call accuracy = 1 if the calls are those expected, else 0          range [0, scale], higher is better

What is expected is `order` (the names of tools), else `tool` (one name), else the tools named in the sample's expected
trajectory. Calls are taken from all messages; one whose arguments were still being written is none. Expected in order:
every tool was called, and their first calls are in that order, possibly with others between them; so a name that is
expected twice is never met. `strict`: the calls are exactly those expected, in that order. One tool: it was called;
`strict`: it was called once and nothing else was. An agent that called nothing gets 0. An empty `order` counts as none
given, and where `tool` is not given either nothing is right.

Undefined when nothing is expected: neither `order` nor `tool` is given and the sample expects no tools. A conversation
without a user's or an assistant's message is an error. No judge call. Source: @mastra/evals, which knows `order` and
`tool` only.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from evalstone.agents.messages import called_tools
from evalstone.errors import ConfigError
from evalstone.scorers.agents import require_both_sides
from evalstone.scorers.base import Scorer
from evalstone.types import TOOL_STEPS, Message, Score, Skipped, TrajectoryExpectation


def in_order(called: Sequence[str], order: Sequence[str], *, strict: bool) -> bool:
    """Whether the calls are those expected (strict), or their first calls come in the expected order."""
    if strict:
        return list(called) == list(order)
    if any(name not in called for name in order):
        return False
    firsts = [called.index(name) for name in order]
    return all(one < next_one for one, next_one in itertools.pairwise(firsts))


def one_called(called: Sequence[str], tool: str | None, *, strict: bool) -> bool:
    """Whether the tool was called (strict: once, and nothing else)."""
    return list(called) == [tool] if strict else tool in called


@dataclass(frozen=True, kw_only=True)
class ToolCallAccuracy(Scorer):
    """Whether the agent called the tools that it should have called."""

    name = "tool_call_accuracy"
    interpretation = (
        (1.0, "the expected tools were called"),
        (0.0, "the expected tools were not called, or not in their order"),
    )
    advice = (
        "Read which tool is missing. Say in the tool's description when it is to be used, remove tools that overlap, "
        "or name the order in the agent's instructions."
    )

    tool: str | None = None
    order: Sequence[str] | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tool is not None and (not isinstance(self.tool, str) or not self.tool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{self.name}: tool must be the name of a tool, not {self.tool!r}")
        if isinstance(self.order, str):
            raise ConfigError(f"{self.name}: order must be a list of tool names, not {self.order!r}")
        if self.order is not None:
            object.__setattr__(self, "order", tuple(self.order))

    def score(
        self,
        *,
        messages: Sequence[Message],
        input: str | None = None,
        expected_trajectory: TrajectoryExpectation | None = None,
    ) -> Score | Skipped:
        order = self.order
        if order is None and self.tool is None:
            order = _tools_in(expected_trajectory)
            if not order:
                return Skipped("no tool is expected: give tool, order, or an expected trajectory that names tools")
        require_both_sides(self, messages, input)
        called = called_tools(messages)
        if order:
            expected = " → ".join(order)
            right = bool(called) and in_order(called, order, strict=self.strict)
        else:
            expected = self.tool or "no tool"
            right = bool(called) and one_called(called, self.tool, strict=self.strict)
        exactly = "exactly " if self.strict else ""
        reason = f"Expected {exactly}{expected}; called: {' → '.join(called) or 'nothing'}."
        return Score(self.scale if right else 0.0, self.scale, reason, called)


def _tools_in(expected: TrajectoryExpectation | None) -> tuple[str, ...]:
    steps = (expected.steps if expected is not None else None) or ()
    return tuple(step.name for step in steps if step.step_type in (None, *TOOL_STEPS))
