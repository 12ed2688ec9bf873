"""Whether an answer does what was asked: as a whole in four parts, by each instruction, or by a caller's criteria."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from evalstone._core.prompts import Prompt
from evalstone.questions.base import Question, VerdictPerItem
from evalstone.questions.reply import Between, Key, Subject, WorstFirst, YesNo


@dataclass(frozen=True)
class AlignmentPart:
    """One part of the alignment: the judge's number, the reason for it, and what is lacking."""

    score: Annotated[float, Between(0, 1), WorstFirst()]
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

    kind = "judge_alignment"
    settings = ("bounded",)
    system_prompt: str
    request: str
    answer: str
    earlier_turns: str
    bounded: bool = True
    prompt: Prompt = JUDGE_ALIGNMENT


Followed: TypeAlias = Literal["yes", "no", "not_applicable"]


@dataclass(frozen=True)
class InstructionVerdict:
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
class JudgeInstructions(VerdictPerItem[InstructionVerdict]):
    """For each instruction, in order: does the answer follow it, break it, or does it not apply?"""

    kind = "judge_instructions"
    items = "instructions"
    instructions: tuple[str, ...]
    request: str
    answer: str
    prompt: Prompt = JUDGE_INSTRUCTIONS


@dataclass(frozen=True)
class CriterionVerdict:
    """Whether one criterion is met."""

    criterion: Annotated[str, Subject()]
    met: Annotated[bool, YesNo(), WorstFirst()]
    reason: str = ""


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
class CheckCriteria(VerdictPerItem[CriterionVerdict]):
    """For each criterion, in order: does the answer meet it? The task may be empty."""

    kind = "check_criteria"
    items = "criteria"
    noun = "checklist item"
    criteria: tuple[str, ...]
    task: str
    answer: str
    prompt: Prompt = CHECK_CRITERIA


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

    kind = "check_conversation"
    criterion: str
    turns: tuple[str, ...]
    prompt: Prompt = CHECK_CONVERSATION
