"""Whether an answer does what was asked: in four parts, per instruction, or by the caller's criteria."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from evalstone._core.prompts import Prompt
from evalstone._core.truth import NoTruthValue
from evalstone.questions.base import Question
from evalstone.questions.items import VerdictPerItem
from evalstone.questions.markers import QUARTERS, Between, Explains, Key, Subject, WorstFirst, YesNo


@dataclass(frozen=True)
class AlignmentPart(NoTruthValue):
    """One part of the alignment: the judge's score, the reason, and what is missing."""

    score: Annotated[float, Between(0, 1, QUARTERS), WorstFirst()]
    reason: str = ""
    lacking: Annotated[tuple[str, ...], Explains()] = ()


@dataclass(frozen=True)
class AlignmentParts(NoTruthValue):
    """How well an answer does what was asked, in four parts."""

    intent: AlignmentPart
    requirements: AlignmentPart
    completeness: AlignmentPart
    appropriateness: AlignmentPart


PARTS = ("intent", "requirements", "completeness", "appropriateness")

JUDGE_ALIGNMENT = Prompt(
    instructions="""\
You judge how well an assistant's answer does what it was asked to do: by the user's request, and by the system prompt,
which holds for the whole conversation. Sometimes only one of the two is given. Earlier turns of the
conversation help to understand the request and are not judged. It does not matter whether the facts in the answer are
right.

Judge four parts:
- "intent": does the answer respond to what was mainly wanted? Lacking: wishes that it passes over.
- "requirements": does it keep to everything that was demanded or forbidden, such as a length, a format, a language, a
  number of items, or a subject to avoid? Lacking: each that it does not keep to. If nothing was demanded, the score is
  1.
- "completeness": does it cover everything that was asked for? Lacking: each thing that is not covered.
- "appropriateness": do form and tone fit the request and the reader? Lacking: what does not fit.

For each part give, in this order:
- reason: why, in one or two sentences, with the words of the answer that decide.
- lacking: a list, each item in a few words; empty if nothing is lacking.
- score: 1 fully, 0.75 with a small gap, 0.5 half, 0.25 barely, 0 not at all.
If the request and the system prompt conflict, the system prompt decides: declining what it forbids is right.""",
    template=(
        "{{system_prompt}}\n\n{{earlier_turns}}\n\n{{request}}\n\n{{answer}}\n\n"
        "Judge how well the answer does what it was asked to do."
    ),
)


class JudgeAlignment(Question[AlignmentParts]):
    """How well does an answer do what the system prompt and the user's request ask for? Either may be empty.

    bounded: whether scores outside 0 to 1 are refused.
    """

    kind = "judge_alignment"
    settings = ("bounded",)
    optional = ("system_prompt", "request", "earlier_turns")
    system_prompt: str
    request: str
    answer: str
    earlier_turns: str
    bounded: bool = True
    prompt: Prompt = JUDGE_ALIGNMENT


Followed: TypeAlias = Literal["yes", "no", "not_applicable"]


@dataclass(frozen=True)
class InstructionVerdict(NoTruthValue):
    """Whether an answer follows one instruction."""

    instruction: Annotated[str, Subject()]
    followed: Annotated[Followed, Key("verdict"), WorstFirst("no", "not_applicable", "yes")]
    reason: str = ""


JUDGE_INSTRUCTIONS = Prompt(
    instructions="""\
You decide for each of some numbered instructions whether an assistant's answer to a user's request follows it.

For each instruction give, in this order:
- reason: in one short sentence, what in the answer follows or breaks it, or why it does not apply.
- verdict:
  - "yes": the answer follows it fully.
  - "no": it applies, and the answer does not follow it, or only in part. For "answer in two sentences", three are no.
  - "not_applicable": its condition is not met, so that the answer could neither follow nor break it, such as "greet new
    customers by name" in a conversation without customers. An instruction without a condition always applies.""",
    template=(
        "{{instructions}}\n\n{{request}}\n\n{{answer}}\n\nDecide for each instruction whether the answer follows it."
    ),
)


class JudgeInstructions(VerdictPerItem[InstructionVerdict]):
    """For each instruction, in order: does the answer follow it, break it, or does it not apply?"""

    kind = "judge_instructions"
    items = "instructions"
    instructions: tuple[str, ...]
    request: str
    answer: str
    prompt: Prompt = JUDGE_INSTRUCTIONS


@dataclass(frozen=True)
class CriterionVerdict(NoTruthValue):
    """Whether one criterion is met."""

    criterion: Annotated[str, Subject()]
    met: Annotated[bool, YesNo(), WorstFirst()]
    reason: str = ""


CHECK_CRITERIA = Prompt(
    instructions="""\
You check an answer against numbered criteria, each on its own. The task that the answer was written for, if given,
helps to understand the criteria and adds none.

For each criterion give, in this order:
- reason: what in the answer meets it or is missing, in one or two sentences, with the words that decide.
- verdict:
  - "yes": the answer itself shows that the criterion is fully met.
  - "no": it is not met, is met only in part, or the answer does not let you tell. An answer that only says that it
    meets a criterion ("this summary is complete") does not meet it by that.""",
    template="{{criteria}}\n\n{{task}}\n\n{{answer}}\n\nDecide for each criterion whether the answer meets it.",
)


class CheckCriteria(VerdictPerItem[CriterionVerdict]):
    """For each criterion, in order: does the answer meet it? The task may be empty."""

    kind = "check_criteria"
    items = "criteria"
    noun = "checklist item"
    optional = ("task",)
    criteria: tuple[str, ...]
    task: str
    answer: str
    prompt: Prompt = CHECK_CRITERIA


CHECK_CONVERSATION = Prompt(
    instructions="""\
You decide whether an assistant meets a criterion over a whole conversation. You see everything that the assistant said,
one numbered passage per turn, in order; what others said is left out.

- "yes": the turns taken together show that the criterion is met.
- "no": they show that it is not met, or leave it in doubt. A single turn that breaks a "never" or an "always" decides,
  and an assistant's claim to have met the criterion proves nothing.""",
    template="{{criterion}}\n\n{{turns}}\n\nIs the criterion met over the whole conversation?",
    passages=("turns",),
)


class CheckConversation(Question[CriterionVerdict]):
    """Does an assistant meet a criterion over all its turns?"""

    kind = "check_conversation"
    notes = """\
- reason: why, in one to three sentences, with the turns that decide.
- verdict: "yes" or "no"."""
    criterion: str
    turns: tuple[str, ...]
    prompt: Prompt = CHECK_CONVERSATION
