"""Tool call accuracy and appropriateness: whether the agent called the right tools."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, cast

from evalstone._core.declarations import TEXT, TEXTS
from evalstone._core.display import part_of
from evalstone.agents.messages import answer_text, called_tools, last_user_text, tool_calls
from evalstone.questions.base import Ask
from evalstone.questions.tool_use import JudgeToolCalls, ToolCallVerdicts
from evalstone.scorers.agents import TOOLS, CallSource, require_both_sides
from evalstone.scorers.base import as_text, share
from evalstone.scorers.definitions import OURS, Defined, Definition
from evalstone.scorers.reasons import reason_with, shortened
from evalstone.scorers.sources import TextSource
from evalstone.types import TOOL_STEPS, Message, Score, Skipped, ToolCall, TrajectoryExpectation


def call_line(call: ToolCall) -> str:
    """A tool call on one line: `search({"q": "Ada"}) returned {…}`."""
    arguments, result, error = (shortened(as_text(value), 300) for value in (call.arguments, call.result, call.error))
    outcomes = {"result": f"returned {result}", "error": f"failed: {error}"}
    return f"{call.name}({arguments}) {outcomes.get(call.state, 'did not return')}"


def in_order(called: Sequence[str], order: Sequence[str]) -> bool:
    """Whether the first calls of each expected tool, as many as are expected, come in the expected order."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(called):
        places[name].append(place)
    found: list[int] = []
    for number, name in zip(occurrences(order), order, strict=True):
        if number >= len(places[name]):
            return False
        found.append(places[name][number])
    return all(first < second for first, second in itertools.pairwise(found))


def occurrences(names: Sequence[str]) -> Iterator[int]:
    """For each name, how often it came before."""
    counts = Counter[str]()
    for name in names:
        yield counts[name]
        counts[name] += 1


def in_order_by_mastra(called: Sequence[str], order: Sequence[str]) -> bool:
    """The same; an order that names a tool twice is never met."""
    return len(set(order)) == len(order) and in_order(called, order)


class ToolCallAccuracy(CallSource, Defined):
    """Whether the agent called the expected tools.

        tool call accuracy = 1 if the calls are those expected, else 0          range [0, scale], higher is better

    The expected tools are `order`, or else `tool`, or else the tools in the sample's expected trajectory. Calls are
    read from all messages; a call whose arguments were still being written is ignored. An order is met if every tool
    was called and the first calls are in that order, possibly with other calls between them. Of a tool that it names
    twice, the first two calls count. An agent that called nothing gets 0. An empty `order` counts as no order; without
    `tool` as well, the score is always 0.

    Undefined when nothing is expected. A conversation without a user message or an assistant message is an error. No
    judge call. Source: @mastra/evals, which supports only `order` and `tool`. With definition="mastra", an order that
    names a tool twice is never met.

    Attributes:
        tool: The name of the tool that must be called.
        order: The names of the tools that must be called, in order.
        strict: Allow no other calls: exactly those in `order`, or one call of `tool`.
    """

    name = "tool_call_accuracy"
    version = 2
    required_fields = ("input", "messages", "expected_trajectory")
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {"expected_trajectory": ("order", "tool")}
    interpretation = (
        (1.0, "the expected tools were called"),
        (0.0, "the expected tools were not called, or not in order"),
    )
    advice = (
        "Read which tool is missing. Say in the tool's description when to use it, remove overlapping tools, or give "
        "the order in the agent's instructions."
    )

    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("1 if the first calls of the expected tools are in order, else 0", in_order),
        "mastra": Definition("the same; 0 for an order that names a tool twice", in_order_by_mastra),
    }
    definition: Literal["evalstone", "mastra"] = OURS

    tool: Annotated[str | None, TEXT] = None
    order: Annotated[Sequence[str] | None, TEXTS] = None
    strict: bool = False

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
        require_both_sides(self, messages, input, count_blank=True)
        called = called_tools(messages)
        expected = tuple(order or filter(None, [self.tool]))
        met = tuple(called) == expected if self.strict else self.compute(called, expected)
        right = bool(called and expected) and met
        exactly = "exactly " if self.strict else ""
        reason = f"Expected {exactly}{' → '.join(expected) or 'no tool'}; called: {' → '.join(called) or 'nothing'}."
        return Score(self.scale if right else 0.0, reason, evidence=called)


def _tools_in(expected: TrajectoryExpectation | None) -> tuple[str, ...]:
    steps = (expected.steps if expected is not None else None) or ()
    return tuple(step.name for step in steps if step.step_type in (None, *TOOL_STEPS))


def appropriate_share(verdicts: ToolCallVerdicts) -> float:
    """appropriate / all; without calls 1 when no tool is missing, else 0."""
    if not verdicts.calls:
        return 0.0 if verdicts.missing else 1.0
    return share([v.appropriate for v in verdicts.calls])


class ToolCallAppropriateness(CallSource, TextSource):
    """How many of the agent's tool calls were appropriate for the request.

        tool call appropriateness = appropriate calls / calls          range [0, scale], higher is better

    An agent that called nothing gets the full scale if the judge names no missing tool, else 0. If calls were made,
    missing tools don't affect the score, but the reason names them. A call whose arguments were still being written is
    ignored. Undefined when the judge gives no verdict on the calls, or when the conversation ends with a user message
    and there is no output. A conversation without a user message or an assistant message is an error. One judge call.
    Source: @mastra/evals (its tool call accuracy by a judge), which accepts any number of verdicts.

    Attributes:
        tools: The tools that were available: names, `name: description`, or objects with a `name` (or `id`) and a
            `description`.
    """

    name = "tool_call_appropriateness"
    version = 2
    required_fields = ("input", "messages")
    questions = (JudgeToolCalls,)
    interpretation = (
        (0.9, "nearly all calls fit the request"),
        (0.6, "some calls were not needed"),
        (0.3, "most calls were not needed"),
        (0.0, "the calls do not fit the request, or a needed call is missing"),
    )
    advice = (
        "Read the calls that were not needed, and the missing tools. Say in each tool's description when to use it and "
        "when not to, offer fewer tools, and have the agent ask for missing information."
    )

    tools: Annotated[Sequence[str | Mapping[str, Any]], TOOLS] = ()

    async def score(
        self, ask: Ask, *, messages: Sequence[Message], input: str | None = None, output: str | None = None
    ) -> Score | Skipped:
        require_both_sides(self, messages, input, count_blank=True)
        if output is None and messages[-1].role == "user":
            return Skipped("the conversation ends with an unanswered user message")
        question = JudgeToolCalls(
            request=input if input is not None else last_user_text(messages) or "",
            answer=output if output is not None else answer_text(messages) or "",
            calls=tuple(call_line(placed.call) for placed in tool_calls(messages)),
            tools=cast("tuple[str, ...]", self.tools),
        )
        verdicts = await ask(question)
        return Score(appropriate_share(verdicts) * self.scale, _reason(verdicts), evidence=verdicts)


def _reason(verdicts: ToolCallVerdicts) -> str:
    needless = [v.call for v in verdicts.calls if not v.appropriate]
    reason = f"{part_of(len(verdicts.calls) - len(needless), len(verdicts.calls), 'call')} appropriate"
    reason = reason if verdicts.calls else "No tool was called"
    return reason_with(reason, ("not appropriate", needless), ("missing", verdicts.missing))
