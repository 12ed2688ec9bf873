"""Tool call appropriateness: the share of the agent's tool calls that the request called for.

    tool call appropriateness = appropriate calls / calls          range [0, scale], higher is better

An agent that called nothing gets the full scale when the judge misses no tool, else 0; beside calls that were made,
tools that are missing do not count, the reason names them. `tools` are those that were available, as names, as
`name: description`, or as objects with a `name` (or `id`) and a `description`. A call whose arguments were still being
written is none.

Undefined when the judge gives no verdict on the calls. A conversation without a user's or an assistant's message is an
error. One judge call. Source: @mastra/evals (its tool call accuracy by a judge), which takes as many verdicts as come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from evalstone.agents.messages import last_assistant_text, last_user_text, tool_calls
from evalstone.errors import ConfigError
from evalstone.questions.base import Ask
from evalstone.questions.tool_use import JudgeToolCalls, ToolCallVerdicts
from evalstone.scorers.agents import call_line, require_both_sides
from evalstone.scorers.base import Scorer, listed
from evalstone.types import Message, Score


def appropriate_share(verdicts: ToolCallVerdicts) -> float:
    """appropriate / all; without calls 1 when no tool is missing, else 0."""
    if not verdicts.calls:
        return 0.0 if verdicts.missing else 1.0
    return sum(v.appropriate for v in verdicts.calls) / len(verdicts.calls)


@dataclass(frozen=True, kw_only=True)
class ToolCallAppropriateness(Scorer):
    """How many of the agent's tool calls the request called for."""

    name = "tool_call_appropriateness"
    interpretation = (
        (0.9, "the calls are those that the request needs"),
        (0.6, "some calls were not needed"),
        (0.3, "most calls were not needed"),
        (0.0, "the calls do not serve the request, or none was made where one was needed"),
    )
    advice = (
        "Read the calls that were not needed, and the missing tools. Say in each tool's description when it is to be "
        "used and when not; offer fewer tools; have the agent ask back when it lacks something."
    )

    tools: Sequence[str | Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.tools, str) or not isinstance(self.tools, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{self.name}: tools must be a list of tools, not {self.tools!r}")
        object.__setattr__(self, "tools", tuple(self._described(tool) for tool in self.tools))

    def _described(self, tool: str | Mapping[str, Any]) -> str:
        if isinstance(tool, str) and tool:
            return tool
        if isinstance(tool, Mapping):
            name = tool.get("name") or tool.get("id")
            if isinstance(name, str):
                return f"{name}: {tool['description']}" if tool.get("description") else name
        raise ConfigError(f"{self.name}: a tool must be a name, or an object with a name, not {tool!r}")

    async def score(
        self, ask: Ask, *, messages: Sequence[Message], input: str | None = None, output: str | None = None
    ) -> Score:
        require_both_sides(self, messages, input)
        question = JudgeToolCalls(
            request=input if input is not None else last_user_text(messages) or "",
            answer=output if output is not None else last_assistant_text(messages) or "",
            calls=tuple(call_line(placed.call) for placed in tool_calls(messages)),
            tools=cast("tuple[str, ...]", self.tools),
        )
        verdicts = await ask(question)
        return Score(appropriate_share(verdicts) * self.scale, self.scale, _reason(verdicts), verdicts)


def _reason(verdicts: ToolCallVerdicts) -> str:
    needless = [v for v in verdicts.calls if not v.appropriate]
    reason = f"{len(verdicts.calls) - len(needless)} of {len(verdicts.calls)} calls are appropriate"
    if not verdicts.calls:
        reason = "No tool was called"
    if needless:
        reason += f"; not: {listed([v.call for v in needless])}"
    if verdicts.missing:
        reason += f"; missing: {listed(verdicts.missing)}"
    return f"{reason}."
