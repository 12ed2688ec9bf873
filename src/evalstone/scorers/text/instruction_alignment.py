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
from evalstone.scorers.base import Scorer, lines_of, listed, require_number
from evalstone.types import Score, Skipped


def followed_share(verdicts: Sequence[InstructionVerdict]) -> float | None:
    """followed / (followed + not followed); None when no instruction applies."""
    applicable = [v.followed == "yes" for v in verdicts if v.followed != "not_applicable"]
    return sum(applicable) / len(applicable) if applicable else None


@dataclass(frozen=True, kw_only=True)
class InstructionAlignment(Scorer):
    """How many of the instructions that apply the answer follows.

    Attributes:
        instructions: A list of texts, or a text with one on each line; by default the sample's instructions.
        none_applicable: The share of the scale where no instruction applies; None skips such a sample.
    """

    name = "instruction_alignment"
    interpretation = (
        (0.9, "the instructions are followed"),
        (0.6, "some instructions are not followed"),
        (0.0, "most instructions are not followed"),
    )
    advice = "Put the instructions that are not followed last in the prompt, one a line, and see whether two conflict."

    instructions: Sequence[str] | str = ()
    none_applicable: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        texts = lines_of(self.instructions) if isinstance(self.instructions, str) else tuple(self.instructions)
        for text in cast("tuple[object, ...]", texts):
            if not isinstance(text, str) or not text.strip():
                raise ConfigError(f"{self.name}: an instruction must be text that is not blank, not {text!r}")
        object.__setattr__(self, "instructions", texts)
        if self.none_applicable is not None:
            require_number(self, "none_applicable", high=1)

    async def score(
        self, ask: Ask, *, output: str, input: str | None = None, instructions: str | None = None
    ) -> Score | Skipped:
        expected = tuple(self.instructions) or lines_of(instructions or "")
        if not expected:
            return Skipped(f"{self.name} needs instructions")
        verdicts = await ask(JudgeInstructions(instructions=expected, request=input or "", answer=output))
        share = followed_share(verdicts)
        if share is None and self.none_applicable is None:
            return Skipped("no instruction applies")
        value = self.none_applicable if share is None else share
        return Score((value or 0.0) * self.scale, self.scale, _reason(verdicts), verdicts)


def _reason(verdicts: Sequence[InstructionVerdict]) -> str:
    counts = {word: [v.instruction for v in verdicts if v.followed == word] for word in ("yes", "no", "not_applicable")}
    reason = f"{len(counts['yes'])} of {len(counts['yes']) + len(counts['no'])} applicable instructions are followed"
    if counts["not_applicable"]:
        reason += f", {len(counts['not_applicable'])} do not apply"
    return reason + (f"; not followed: {listed(counts['no'])}." if counts["no"] else ".")
