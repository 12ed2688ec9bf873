"""Whether an answer, or a whole conversation, meets criteria that the caller wrote: yes or no for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from evalstone._core.parsing import TEXT, choice_schema, member, numbered, numbered_schema, object_schema, validated
from evalstone._core.prompts import Prompt
from evalstone.questions.base import Question


@dataclass(frozen=True)
class CriterionVerdict:
    """Whether one criterion is met."""

    criterion: str
    met: bool
    reason: str = ""


@dataclass(frozen=True)
class _MetReply:
    reason: str
    verdict: Literal["yes", "no"]


CHECK_CRITERIA = Prompt(
    instructions="""\
You check an answer against numbered criteria, each by itself. The task that the answer was written for may be given; it
helps to understand the criteria and adds none.

For each criterion give, in this order:
- reason: in one or two sentences, what in the answer meets it or is wanting, naming the decisive words.
- verdict:
  - "yes": the answer itself shows that the criterion is met in full.
  - "no": it is not met, met in part only, or the answer does not let you tell. An answer that says that it meets a
    criterion ("this summary is complete") does not thereby meet it.

Reply with a JSON object that has one member for each criterion, under its number:
{"verdicts": {"1": {"reason": "…", "verdict": "yes"}, "2": …}}""",
    template="{{criteria}}\n\n{{task}}\n\n{{answer}}\n\nDecide for each criterion whether the answer meets it.",
)


@dataclass(frozen=True)
class CheckCriteria(Question[tuple[CriterionVerdict, ...]]):
    """For each criterion, in order: does the answer meet it? The task may be empty."""

    kind: ClassVar[str] = "check_criteria"

    criteria: tuple[str, ...]
    task: str
    answer: str
    prompt: Prompt = CHECK_CRITERIA

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        item = object_schema({"reason": TEXT, "verdict": choice_schema(["yes", "no"])})
        return object_schema({"verdicts": numbered_schema(item, len(self.criteria))})

    def interpret(self, data: Any) -> tuple[CriterionVerdict, ...]:
        replies = numbered(_MetReply, member(data, "verdicts"), len(self.criteria), of="checklist item")
        return tuple(
            CriterionVerdict(criterion, reply.verdict == "yes", reply.reason)
            for criterion, reply in zip(self.criteria, replies, strict=True)
        )

    def example(self) -> Any:
        item = {"reason": "The answer names the date and the place, as demanded.", "verdict": "yes"}
        return {"verdicts": {str(number): item for number in range(1, len(self.criteria) + 1)}}


CHECK_CONVERSATION = Prompt(
    instructions="""\
You decide whether an assistant meets a criterion over a whole conversation. You see all that the assistant said, one
numbered passage for each of its turns, in order; what others said in between is left out.

- "yes": the turns taken together show that the criterion is met.
- "no": they show that it is not met, or leave it in doubt. A single turn that breaks a criterion of the kind "never" or
  "always" decides it, and a claim of the assistant's to have met it proves nothing.

Reply with a JSON object, the reason first: {"reason": "…", "verdict": "yes"}
- reason: what decided, in one to three sentences, naming the turns that did.""",
    template="{{criterion}}\n\n{{turns}}\n\nIs the criterion met over the whole conversation?",
    passages=("turns",),
)


@dataclass(frozen=True)
class CheckConversation(Question[CriterionVerdict]):
    """Does an assistant meet a criterion over all its turns?"""

    kind: ClassVar[str] = "check_conversation"

    criterion: str
    turns: tuple[str, ...]
    prompt: Prompt = CHECK_CONVERSATION

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        return object_schema({"reason": TEXT, "verdict": choice_schema(["yes", "no"])})

    def interpret(self, data: Any) -> CriterionVerdict:
        reply = validated(_MetReply, data)
        return CriterionVerdict(self.criterion, reply.verdict == "yes", reply.reason)

    def example(self) -> Any:
        return {"reason": "Turn 2 names the price, and no later turn takes it back.", "verdict": "yes"}
