"""Whether an answer does what its prompts ask for: as a whole in four parts, or instruction by instruction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from evalstone._core.parsing import (
    TEXT,
    choice_schema,
    list_schema,
    member,
    numbered,
    numbered_schema,
    object_schema,
    texts,
    validated,
)
from evalstone._core.prompts import Prompt
from evalstone.questions.base import Question
from evalstone.questions.number import number_in, number_schema


@dataclass(frozen=True)
class AlignmentPart:
    """One part of the alignment: the judge's number, the reason for it, and what is lacking."""

    score: float
    reason: str = ""
    lacking: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alignment:
    """How well an answer does what was asked, in four parts."""

    intent: AlignmentPart
    requirements: AlignmentPart
    completeness: AlignmentPart
    appropriateness: AlignmentPart


PARTS = ("intent", "requirements", "completeness", "appropriateness")

JUDGE_ALIGNMENT = Prompt(
    instructions="""\
You judge how well an assistant's answer does what it was asked to do. What it was asked comes in up to two parts: the
system prompt, which holds for the whole conversation, and the user's request. Judge by those of the two that are not
empty. Earlier turns of the conversation, where there are any, help to understand the request and are not judged.
Whether the answer's facts are right does not matter here.

Judge four parts:
- "intent": does the answer take up what was mainly wanted? Lacking: the wishes that it passes over.
- "requirements": does it keep to each thing that was demanded or forbidden, such as a length, a format, a language, a
  number of items, a subject to leave out? Lacking: each that it does not keep to. Where nothing was demanded: 1.
- "completeness": does it cover all that was asked for? Lacking: each thing that is not covered.
- "appropriateness": do form and tone fit what was asked and for whom? Lacking: what does not fit.

For each part give, in this order:
- reason: in one or two sentences, what decided, naming the words that did.
- lacking: a list of short phrases; empty when nothing is lacking.
- score: a number from 0 to 1: 1 in full, 0.75 with a gap of little weight, 0.5 by half, 0.25 barely, 0 not at all.
Where the two prompts conflict, the system prompt goes first: declining what it forbids is in line with it.

Reply with a JSON object:
{"intent": {"reason": "…", "lacking": [], "score": 1}, "requirements": {"reason": "…", "lacking": ["…"], "score": 0.5},
"completeness": {"reason": "…", "lacking": [], "score": 1}, "appropriateness": {"reason": "…", "lacking": [],
"score": 1}}""",
    template=(
        "{{system_prompt}}\n\n{{earlier_turns}}\n\n{{request}}\n\n{{answer}}\n\n"
        "Judge how well the answer does what it was asked to do."
    ),
)


@dataclass(frozen=True)
class JudgeAlignment(Question[Alignment]):
    """How well does an answer do what the system prompt and the user's request ask for? Either may be empty.

    bounded: read a part's number only when it is from 0 to 1; otherwise any number.
    """

    kind: ClassVar[str] = "judge_alignment"
    settings: ClassVar[tuple[str, ...]] = ("bounded",)

    system_prompt: str
    request: str
    answer: str
    earlier_turns: str
    bounded: bool = True
    prompt: Prompt = JUDGE_ALIGNMENT

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        part = object_schema({"reason": TEXT, "lacking": list_schema(TEXT), "score": number_schema()})
        return object_schema(dict.fromkeys(PARTS, part))

    def interpret(self, data: Any) -> Alignment:
        return Alignment(*(self._part(member(data, name), name) for name in PARTS))

    def _part(self, given: Any, name: str) -> AlignmentPart:
        return AlignmentPart(
            number_in(member(given, "score"), f"{name}.score", bounded=self.bounded),
            validated(str, member(given, "reason"), f"{name}.reason"),
            texts(member(given, "lacking"), f"{name}.lacking"),
        )

    def example(self) -> Any:
        part: dict[str, Any] = {"reason": "It takes up the request in the first sentence.", "lacking": [], "score": 1}
        return dict.fromkeys(PARTS, part)


Followed: TypeAlias = Literal["yes", "no", "not_applicable"]


@dataclass(frozen=True)
class InstructionVerdict:
    """Whether an answer follows one instruction."""

    instruction: str
    followed: Followed
    reason: str = ""


JUDGE_INSTRUCTIONS = Prompt(
    instructions="""\
You decide for each of some numbered instructions whether an assistant's answer to a user's request follows it.

For each instruction give, in this order:
- reason: in one short sentence, what in the answer follows or breaks it, or why it does not apply.
- verdict:
  - "yes": the answer follows it in full.
  - "no": it applies and the answer does not follow it, or only in part. "Answer in two sentences" is no for three.
  - "not_applicable": its condition is not met here, so that the answer could neither follow nor break it: "greet new
    customers by name" in a conversation with no customer. An instruction without a condition always applies.

Reply with a JSON object that has one member for each instruction, under its number:
{"verdicts": {"1": {"reason": "…", "verdict": "yes"}, "2": …}}""",
    template=(
        "{{instructions}}\n\n{{request}}\n\n{{answer}}\n\nDecide for each instruction whether the answer follows it."
    ),
)


@dataclass(frozen=True)
class _FollowedReply:
    reason: str
    verdict: Followed


@dataclass(frozen=True)
class JudgeInstructions(Question[tuple[InstructionVerdict, ...]]):
    """For each instruction, in order: does the answer follow it, break it, or does it not apply?"""

    kind: ClassVar[str] = "judge_instructions"

    instructions: tuple[str, ...]
    request: str
    answer: str
    prompt: Prompt = JUDGE_INSTRUCTIONS

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        item = object_schema({"reason": TEXT, "verdict": choice_schema(get_args(Followed))})
        return object_schema({"verdicts": numbered_schema(item, len(self.instructions))})

    def interpret(self, data: Any) -> tuple[InstructionVerdict, ...]:
        replies = numbered(_FollowedReply, member(data, "verdicts"), len(self.instructions), of="instruction")
        return tuple(
            InstructionVerdict(instruction, reply.verdict, reply.reason)
            for instruction, reply in zip(self.instructions, replies, strict=True)
        )

    def example(self) -> Any:
        item = {"reason": "The answer has two sentences, as demanded.", "verdict": "yes"}
        return {"verdicts": {str(number): item for number in range(1, len(self.instructions) + 1)}}
