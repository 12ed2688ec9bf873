"""What an agent did: were its tool calls called for, were its steps needed and in order, and what did it leave out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from evalstone._core.prompts import Prompt
from evalstone.questions.base import Question
from evalstone.questions.reply import MayOmit, NumberedBy, Subject, WorstFirst


@dataclass(frozen=True)
class ToolCallVerdict:
    """Whether one tool call was called for."""

    call: Annotated[str, Subject()]
    appropriate: Annotated[bool, WorstFirst()]
    reason: str = ""


@dataclass(frozen=True)
class ToolCallVerdicts:
    """A verdict for each tool call in order, and the tools that should have been called and were not."""

    calls: Annotated[tuple[ToolCallVerdict, ...], NumberedBy("calls", "call")]
    missing: Annotated[tuple[str, ...], MayOmit(())] = ()


JUDGE_TOOL_CALLS = Prompt(
    instructions="""\
You decide whether an assistant called the right tools for a user's request. You see the request, the tools that were
available, the calls that were made in their order, and the assistant's answer.

For each call give, in this order:
- reason: in one short sentence, what the call contributes to the request, or why it contributes nothing.
- appropriate: true when the request, as it stands, calls for it: without the call a part of what was asked could not be
  done, or not reliably. A call that might be useful, that prepares for something nobody asked for, or that repeats an
  earlier one without need, is not appropriate. To "what is the weather in Bern?" a call of the weather tool is
  appropriate, and one that e-mails the forecast is not. Whether the call succeeded does not matter.

Then list under "missing" the available tools that the request calls for and that were not called, by their names. None
is missing where the request can be answered without a tool, or where the assistant rightly asked back for something
that it needs first. With no tools listed, name none but those that the request itself names.

Where no call was made, give an empty object for the calls and decide on "missing" only.

Reply with a JSON object that has one member for each call, under its number:
{"calls": {"1": {"reason": "…", "appropriate": true}, "2": …}, "missing": []}""",
    template="{{request}}\n\n{{tools}}\n\n{{calls}}\n\n{{answer}}\n\nDecide for each call whether it was appropriate.",
)


@dataclass(frozen=True)
class JudgeToolCalls(Question[ToolCallVerdicts]):
    """For each tool call, in order: did the request call for it? And which tools should have been called as well?"""

    kind = "judge_tool_calls"
    request: str
    answer: str
    calls: tuple[str, ...]
    tools: tuple[str, ...]
    prompt: Prompt = JUDGE_TOOL_CALLS


@dataclass(frozen=True)
class StepVerdict:
    """Whether one step was needed, and taken at the right time."""

    step: Annotated[str, Subject()]
    necessary: Annotated[bool, WorstFirst()]
    in_order: Annotated[bool, WorstFirst()]
    reason: str = ""


@dataclass(frozen=True)
class StepVerdicts:
    """A verdict for each step in order, the steps that were left out, and those that should not have been taken."""

    steps: Annotated[tuple[StepVerdict, ...], NumberedBy("steps", "step")]
    missing: Annotated[tuple[str, ...], MayOmit(())] = ()
    extra: Annotated[tuple[str, ...], MayOmit(())] = ()


JUDGE_STEPS = Prompt(
    instructions="""\
You review the steps that an agent or a workflow took for a task: tool calls, model calls, runs of other agents, steps
of a workflow. You see the task, the steps in their order with those taken inside them in brackets, and the steps that
were expected, if someone said so. Without expected steps, go by what the task sensibly needs.

For each step give, in this order:
- reason: in one short sentence, what the step contributes to the task, and to which other steps it belongs.
- necessary: true when the task needs it, or another needed step does. A step that is expected is necessary. A repeated
  step is necessary only where the first one failed or the input changed: of two equal searches, the second is not.
- in_order: true when everything that it builds on was done before it, and nothing that should follow it was. Steps that
  do not depend on each other are in order either way. A step can be unnecessary and in order.

Then list under "missing" the steps that were needed, or expected, and that nobody took, and under "extra" the steps
that should not have been taken at all; each as a short phrase, empty lists when there are none. A step that was taken
is not missing, even where it failed.

Where no step was taken, give an empty object for the steps and decide on "missing" and "extra" only.

Reply with a JSON object that has one member for each step, under its number:
{"steps": {"1": {"reason": "…", "necessary": true, "in_order": true}, "2": …}, "missing": [], "extra": []}""",
    template="{{task}}\n\n{{expected}}\n\n{{steps}}\n\nReview each step.",
)


@dataclass(frozen=True)
class JudgeSteps(Question[StepVerdicts]):
    """For each step, in order: was it needed, and at the right time? And which steps are missing or too many?"""

    kind = "judge_steps"
    task: str
    steps: tuple[str, ...]
    expected: tuple[str, ...]
    prompt: Prompt = JUDGE_STEPS
