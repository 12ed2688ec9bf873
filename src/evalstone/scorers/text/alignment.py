"""Prompt alignment and instruction alignment: how well the answer follows its prompt."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, TypeAlias

from evalstone._core.declarations import TEXTS, Range
from evalstone._core.display import part_of
from evalstone._core.text import lines_of
from evalstone.agents.messages import conversation_history
from evalstone.errors import OutcomeError
from evalstone.questions.alignment import PARTS, AlignmentParts, InstructionVerdict, JudgeAlignment, JudgeInstructions
from evalstone.questions.base import Ask
from evalstone.scorers.definitions import OURS, REQUEST, DefinedText, Definition
from evalstone.scorers.reasons import listed, reason_with
from evalstone.types import Message, Score, Skipped

AlignmentMode: TypeAlias = Literal["both", "user", "system"]

USER: Mapping[str, float] = {"intent": 0.4, "requirements": 0.3, "completeness": 0.2, "appropriateness": 0.1}
SYSTEM: Mapping[str, float] = {"intent": 0.35, "requirements": 0.35, "completeness": 0.15, "appropriateness": 0.15}


def weighted_sum(judged: AlignmentParts, weights: Mapping[str, float]) -> float:
    """Σ of weight · score over the four parts, added in that order."""
    total = 0.0
    for part in PARTS:
        total += getattr(judged, part).score * weights[part]
    return total


def alignment(judged: AlignmentParts, mode: AlignmentMode, both: Mapping[str, float] = SYSTEM) -> float:
    """PromptAlignment's formula. both: the weights of the second term in mode "both".

    In floating point, the weights add up to slightly less than 1, so perfect scores return 1 directly.
    """
    if all(getattr(judged, part).score == 1 for part in PARTS):
        return 1.0
    if mode == "system":
        return weighted_sum(judged, SYSTEM)
    user = weighted_sum(judged, USER)
    return user if mode == "user" else user * 0.7 + weighted_sum(judged, both) * 0.3


class PromptAlignment(DefinedText):
    """How well the answer follows its prompt.

        user      = 0.4 intent + 0.3 requirements + 0.2 completeness + 0.1 appropriateness
        system    = 0.35 intent + 0.35 requirements + 0.15 completeness + 0.15 appropriateness
        both      = 0.7 user + 0.3 system
        prompt alignment = user, system or both, by the mode          range [0, scale], higher is better

    The judge is asked for 1, 0.75, 0.5, 0.25 or 0 for each part. Mode "both" uses both prompts, or only the one that
    exists.
    Undefined for a sample without the prompt that the mode requires. One judge call. Source: @mastra/evals, as
    documented. Its code computes 0.7 user + 0.3 user and accepts numbers outside 0 to 1, so that only a score outside
    [0, scale] is an error. definition="mastra" follows its code.

    Attributes:
        mode: Judge by the user's request ("user"), the sample's instructions ("system"), or "both".
        history: How many earlier turns of the sample's messages the judge sees.
    """

    name = "prompt_alignment"
    version = 2
    questions = (JudgeAlignment,)
    required_fields = ("output", "input")
    alternatives: ClassVar[Mapping[str, tuple[str, ...]]] = {"input": ("instructions",)}
    interpretation = (
        (0.9, "the answer does what was asked"),
        (0.7, "the answer has small gaps"),
        (0.5, "something that was asked for is missing"),
        (0.0, "the answer does something else"),
    )
    advice = (
        "See which part is low. Intent: the request was misread. Requirements: number them in the prompt. "
        "Completeness: ask for less at a time. Appropriateness: show an example of the form and tone."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("0.7 user + 0.3 system in the mode both", alignment),
        "documented": Definition("the same, which is what the documentation of @mastra/evals says", alignment),
        "mastra": Definition(
            "0.7 user + 0.3 user in the mode both; an empty prompt or answer is an error; any numbers, in its own call",
            functools.partial(alignment, both=USER),
            blank=("input", "output", "instructions"),
            sides=REQUEST,
        ),
    }
    definition: Literal["evalstone", "documented", "mastra"] = OURS

    mode: AlignmentMode = "both"
    history: Annotated[int, Range(0)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode != "both":
            object.__setattr__(self, "required_fields", ("output", "input" if self.mode == "user" else "instructions"))
            texts = self.alternatives.items()
            alone = {name: tuple(other for other in others if other != "instructions") for name, others in texts}
            object.__setattr__(self, "alternatives", alone)

    async def score(
        self,
        ask: Ask,
        *,
        output: str,
        input: str | None = None,
        instructions: str | None = None,
        messages: Sequence[Message] = (),
    ) -> Score | Skipped:
        request = input if self.mode != "system" else None
        system = instructions if self.mode != "user" else None
        if request is None and system is None:
            return Skipped(self.needs_text(self.required_fields[1:]))
        if not request and not system:
            raise OutcomeError(f"{self.name}: the prompt to judge by is empty")
        if not output:
            raise OutcomeError(f"{self.name}: the answer is empty")
        question = JudgeAlignment(
            system_prompt=system or "",
            request=request or "",
            answer=output,
            earlier_turns=conversation_history(messages, limit=self.history) or "",
            bounded=self.definition != "mastra",
        )
        judged = await ask(question)
        mode = self.mode
        if self.definition != "mastra" and not (system and request):
            mode = "user" if request else "system"
        return Score(self.compute(judged, mode) * self.scale, _parts_reason(judged), evidence=judged)


def _parts_reason(judged: AlignmentParts) -> str:
    parts = [(name, getattr(judged, name)) for name in PARTS]
    texts = [f"{name} {p.score:g}" + (f" (missing: {listed(p.lacking)})" if p.lacking else "") for name, p in parts]
    return "; ".join(texts) + "."


def followed_share(verdicts: Sequence[InstructionVerdict]) -> float | None:
    """followed / (followed + not followed); None when no instruction applies."""
    applicable = [v.followed == "yes" for v in verdicts if v.followed != "not_applicable"]
    return sum(applicable) / len(applicable) if applicable else None


class InstructionAlignment(DefinedText):
    """How many of the applicable instructions the answer follows.

        instruction alignment = followed / (followed + not followed)          range [0, scale], higher is better

    Instructions that do not apply to the case are left out. They are the scorer's, or else the lines of the sample's
    instructions. Undefined without instructions, and when none of them applies, except with definition="mastra".
    One judge call. Source: @mastra/evals 0.13 (PromptAlignment).

    Attributes:
        instructions: A list of texts, or a text with one instruction per line; by default the sample's instructions.
    """

    name = "instruction_alignment"
    questions = (JudgeInstructions,)
    required_fields = ("output", "instructions")
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {"instructions": ("instructions",)}
    interpretation = (
        (0.9, "the instructions are followed"),
        (0.6, "some instructions are not followed"),
        (0.0, "most instructions are not followed"),
    )
    advice = (
        "Move the instructions that are not followed to the end of the prompt, one per line, and check whether any of "
        "them conflict."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("followed / (followed + not followed)"),
        "mastra": Definition(
            "the same; 0 where none applies, and a blank answer is judged", otherwise=0.0, blank=("output",)
        ),
    }
    definition: Literal["evalstone", "mastra"] = OURS

    instructions: Annotated[Sequence[str] | str, TEXTS] = ()

    def __post_init__(self) -> None:
        if isinstance(self.instructions, str):
            object.__setattr__(self, "instructions", lines_of(self.instructions))
        super().__post_init__()

    async def score(
        self, ask: Ask, *, output: str, input: str | None = None, instructions: str | None = None
    ) -> Score | Skipped:
        expected = tuple(self.instructions) or lines_of(instructions or "")
        verdicts = await ask(JudgeInstructions(instructions=expected, request=input or "", answer=output))
        share = followed_share(verdicts)
        if share is None:
            return self.undefined("no instruction applies")
        return Score(share * self.scale, _instructions_reason(verdicts), evidence=verdicts)


def _instructions_reason(verdicts: Sequence[InstructionVerdict]) -> str:
    counts = Counter(v.followed for v in verdicts)
    reason = f"{part_of(counts['yes'], counts['yes'] + counts['no'], 'applicable instruction')} followed"
    if unfit := counts["not_applicable"]:
        reason += f", {unfit} {'does' if unfit == 1 else 'do'} not apply"
    return reason_with(reason, ("not followed", [v.instruction for v in verdicts if v.followed == "no"]))
