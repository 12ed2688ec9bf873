"""Tool use: were an agent's tool calls appropriate, were its steps necessary and in order, and what is missing?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from evalstone._core.prompts import Prompt
from evalstone._core.truth import NoTruthValue
from evalstone.questions.base import Question
from evalstone.questions.markers import MayOmit, NumberedBy, Subject, WorstFirst


@dataclass(frozen=True)
class ToolCallVerdict(NoTruthValue):
    """Whether one tool call was appropriate."""

    call: Annotated[str, Subject()]
    appropriate: Annotated[bool, WorstFirst()]
    reason: str = ""


@dataclass(frozen=True)
class ToolCallVerdicts(NoTruthValue):
    """A verdict for each tool call in order, and the tools that should have been called but weren't."""

    calls: Annotated[tuple[ToolCallVerdict, ...], NumberedBy("calls", "call")]
    missing: Annotated[tuple[str, ...], MayOmit(())] = ()


JUDGE_TOOL_CALLS = Prompt(
    instructions="""\
You decide whether an assistant called the right tools for a user's request. You see the request, the tools that were
available if they are known, the calls in their order, and the assistant's answer.

For each call give, in this order:
- reason: in one short sentence, what the call contributes to the request, or why it contributes nothing.
- appropriate: true if the request needs it: without the call, a part of what was asked could not be done, or not
  reliably. A call that may be useful, that prepares something nobody asked for, or that repeats an earlier one without
  need is not appropriate: for "What is the weather in Bern?" a call of the weather tool is appropriate, and one that
  e-mails the forecast is not. It does not matter whether the call succeeded.

Then list under "missing" the available tools, by name, that the request needs and that were not called. None is missing
if the request can be answered without a tool, or if the assistant rightly asked for something that it needs first. If
no tools are listed, name only those that the request itself names.

If there was no call, give an empty object for the calls and decide about "missing" only.""",
    template="{{request}}\n\n{{tools}}\n\n{{calls}}\n\n{{answer}}\n\nDecide for each call whether it was appropriate.",
)


class JudgeToolCalls(Question[ToolCallVerdicts]):
    """For each tool call, in order: did the request need it? And which other tools should have been called?"""

    kind = "judge_tool_calls"
    optional = ("tools", "calls")
    request: str
    answer: str
    calls: tuple[str, ...]
    tools: tuple[str, ...]
    prompt: Prompt = JUDGE_TOOL_CALLS


@dataclass(frozen=True)
class StepVerdict(NoTruthValue):
    """Whether one step was needed, and taken at the right time."""

    step: Annotated[str, Subject()]
    necessary: Annotated[bool, WorstFirst()]
    in_order: Annotated[bool, WorstFirst()]
    reason: str = ""


@dataclass(frozen=True)
class StepVerdicts(NoTruthValue):
    """A verdict for each step in order, missing steps, and steps that should not have been taken."""

    steps: Annotated[tuple[StepVerdict, ...], NumberedBy("steps", "step")]
    missing: Annotated[tuple[str, ...], MayOmit(())] = ()
    extra: Annotated[tuple[str, ...], MayOmit(())] = ()


JUDGE_STEPS = Prompt(
    instructions="""\
You review the steps that an agent or a workflow took for a task: tool calls, model calls, runs of other agents, steps
of a workflow. You see the task, the steps in their order with those inside them in brackets, and the expected steps if
there are any. Without expected steps, go by what the task needs.

For each step give, in this order:
- reason: in one short sentence, what the step contributes to the task, and which other steps it belongs to.
- necessary: true if the task needs it, or another needed step does. An expected step is necessary. A repeated step is
  necessary only if the first one failed or its input changed: of two equal searches, the second is not.
- in_order: true if everything that it builds on was done before it, and nothing that should come after it was. Steps
  that do not depend on each other are in order either way. A step can be unnecessary and in order.

Then list under "missing" the steps that were needed or expected and that nobody took, and under "extra" the steps that
should not have been taken at all; each in a few words, empty lists if there are none. A step that was taken is not
missing, even if it failed.

If no step was taken, give an empty object for the steps and decide about "missing" and "extra" only.""",
    template="{{task}}\n\n{{expected}}\n\n{{steps}}\n\nReview each step.",
)


class JudgeSteps(Question[StepVerdicts]):
    """For each step, in order: was it necessary, and at the right time? And which steps are missing or extra?"""

    kind = "judge_steps"
    optional = ("expected", "steps")
    task: str
    steps: tuple[str, ...]
    expected: tuple[str, ...]
    prompt: Prompt = JUDGE_STEPS
