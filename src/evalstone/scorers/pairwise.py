from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from evalstone._core.declarations import TEXT
from evalstone._core.reasoning import begins_with_reasoning, split_reasoning
from evalstone._core.text import is_blank
from evalstone.errors import OutcomeError, invalid
from evalstone.questions.base import Ask
from evalstone.questions.preference import ComparePair, Position, Preference
from evalstone.scorers.needs import METADATA
from evalstone.scorers.sources import TextSource
from evalstone.types import Score, Skipped, metadata_at

Preferred: TypeAlias = Literal["output", "other", "tie"]

VALUES: Mapping[Preferred, float] = {"output": 1.0, "tie": 0.5, "other": 0.0}
SHOWN_FIRST: Mapping[Position, Preferred] = {"first": "output", "second": "other", "tie": "tie"}
SHOWN_SECOND: Mapping[Position, Preferred] = {"first": "other", "second": "output", "tie": "tie"}


@dataclass(frozen=True)
class PairVerdict:
    """The preferred answer, and the judge's answers in both orders.

    consistent: both orders gave the same preference. position: the position that the judge chose both times, whichever
    answer was shown there; its share over all samples is the judge's position bias. output_first, output_second: the
    judge's answers with the output shown first, and second.
    """

    preferred: Preferred
    consistent: bool
    position: Position | None
    output_first: Preference
    output_second: Preference


def verdict_of(output_first: Preference, output_second: Preference) -> PairVerdict:
    """The preference that both orders share; a tie when they differ."""
    first, second = SHOWN_FIRST[output_first.better], SHOWN_SECOND[output_second.better]
    biased = output_first.better == output_second.better != "tie"
    position = output_first.better if biased else None
    return PairVerdict(first if first == second else "tie", first == second, position, output_first, output_second)


class Pairwise(TextSource):
    """Whether a judge prefers the answer to another answer to the same question, in both orders.

        pairwise = 1 if the answer is preferred in both orders, 0 if the other one is, else 0.5
        range [0, scale], higher is better: the mean is the win rate, with ties counting half

    The judge is asked in both orders. If the answers disagree, it is a tie, and the evidence says which position the
    judge preferred twice. Equal texts are a tie without a judge call. Undefined when the question or either answer is
    blank. Two judge calls. Source: Zheng et al. 2023 (MT-bench) for the swapped order.

    Attributes:
        compare_to: Where the other answer is: "reference", or the name of an entry in the sample's metadata.
        criterion: What makes an answer better; by default, being right, complete and clear.
    """

    name = "pairwise"
    version = 2
    questions = (ComparePair, ComparePair)
    required_fields = ("input", "output", "reference")
    interpretation = (
        (0.75, "the answer is better"),
        (0.25, "no preference that holds in both orders"),
        (0.0, "the other answer is better"),
    )
    advice = (
        "Read the reasons for both orders. Many ties in which the judge preferred a position mean that it can't tell "
        "the answers apart."
    )

    compare_to: Annotated[str, TEXT] = "reference"
    criterion: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        in_metadata = self.compare_to != "reference"
        other = METADATA + self.compare_to if in_metadata else "reference"
        object.__setattr__(self, "required_fields", ("input", "output", other))
        object.__setattr__(self, "case_metadata", (self.compare_to,) if in_metadata else ())

    async def score(
        self,
        ask: Ask,
        *,
        input: str,
        output: str,
        reference: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Score | Skipped:
        other: object = reference if self.compare_to == "reference" else metadata_at(metadata or {}, self.compare_to)
        if not isinstance(other, str):
            raise OutcomeError(
                f"{self.name}: ", invalid(f"{self.compare_to} in metadata", "text", other, type(other).__name__)
            )
        if not begins_with_reasoning(output):  # neither answer has it, or both may
            other = split_reasoning(other).answer
        if is_blank(other):
            return Skipped(f"the {self.compare_to} is blank")
        if output == other:
            return Score(VALUES["tie"] * self.scale, "Both answers are the same text.")
        output_first, output_second = await asyncio.gather(
            ask(ComparePair(question=input, first_answer=output, second_answer=other, criterion=self.criterion)),
            ask(ComparePair(question=input, first_answer=other, second_answer=output, criterion=self.criterion)),
        )
        verdict = verdict_of(output_first, output_second)
        if verdict.consistent:
            shown = {"output": "The answer", "other": "The other answer", "tie": "Neither answer"}[verdict.preferred]
            reason = f"{shown} is better: {output_first.reason or 'no reason was given'}"
        else:
            choices = f"with the answer first: {output_first.better}; with it second: {output_second.better}"
            reason = f"A tie: the two orders disagree ({choices})."
        return Score(VALUES[verdict.preferred] * self.scale, reason, evidence=verdict)
