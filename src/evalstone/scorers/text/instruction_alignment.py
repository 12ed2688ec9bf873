"""Instruction alignment: the share of the applicable instructions that an answer follows.

    instruction alignment = followed / (followed + not followed)          range [0, scale], higher is better

Instructions that do not apply to the case are left out. They are the scorer's, or else the lines of the sample's
instructions. Undefined without instructions, and when none of them applies unless `none_applicable` gives that case a
share. One judge call. Source: @mastra/evals 0.13 (PromptAlignment), which makes 0 of no applicable instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from evalstone.errors import ConfigError
from evalstone.questions.alignment import InstructionVerdict, JudgeInstructions
from evalstone.questions.base import Ask
from evalstone.scorers.base import Scorer, listed
from evalstone.scorers.custom.checklist import lines_of
from evalstone.types import Score, Skipped


def followed_share(verdicts: Sequence[InstructionVerdict]) -> float | None:
    """followed / (followed + not followed); None when no instruction applies."""
    applicable = [v.followed == "yes" for v in verdicts if v.followed != "not_applicable"]
    return sum(applicable) / len(applicable) if applicable else None


@dataclass(frozen=True, kw_only=True)
class InstructionAlignment(Scorer):
    """How many of the instructions that apply the answer follows.

    instructions: a list of texts, or a text with one a line. none_applicable: the share where no instruction applies;
    None leaves such a sample without a score.
    """

    name = "instruction_alignment"
    asks = (JudgeInstructions,)
    bands = (
        (0.9, "the instructions are followed"),
        (0.6, "some instructions are not followed"),
        (0.0, "most instructions are not followed"),
    )
    advice = "Put the instructions that are not followed last in the prompt, one a line, and see whether two conflict."

    instructions: Sequence[str] | str = ()
    none_applicable: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        given = lines_of(self.instructions) if isinstance(self.instructions, str) else tuple(self.instructions)
        for text in cast("tuple[object, ...]", given):
            if not isinstance(text, str) or not text.strip():
                raise ConfigError(f"{self.name}: an instruction must be a text that is not blank, not {text!r}")
        object.__setattr__(self, "instructions", given)
        if self.none_applicable is not None and not 0 <= self.none_applicable <= 1:
            raise ConfigError(f"{self.name}: none_applicable must be in [0, 1] or None, not {self.none_applicable}")

    async def score(
        self, ask: Ask, *, output: str, input: str | None = None, instructions: str | None = None
    ) -> Score | Skipped:
        wanted = tuple(self.instructions) or lines_of(instructions or "")
        if not wanted:
            return Skipped(f"{self.name} needs instructions")
        verdicts = await ask(JudgeInstructions(instructions=wanted, request=input or "", answer=output))
        share = followed_share(verdicts)
        if share is None and self.none_applicable is None:
            return Skipped("no instruction applies")
        value = self.none_applicable if share is None else share
        return Score((value or 0.0) * self.scale, self.scale, _reason(verdicts), verdicts)


def _reason(verdicts: Sequence[InstructionVerdict]) -> str:
    counts = {word: [v.instruction for v in verdicts if v.followed == word] for word in ("yes", "no", "not_applicable")}
    told = f"{len(counts['yes'])} of {len(counts['yes']) + len(counts['no'])} applicable instructions are followed"
    if counts["not_applicable"]:
        told += f", {len(counts['not_applicable'])} do not apply"
    return told + (f"; not followed: {listed(counts['no'])}." if counts["no"] else ".")
