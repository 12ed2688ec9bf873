"""Context precision: are the useful passages ranked before the useless ones?

    context precision = Σ over useful ranks k of (useful among the first k / k)  /  useful passages

Average precision over the passages in retrieval order; range [0, scale], higher is better; 0 when no passage is useful.
The divisor is the useful passages retrieved, not those that exist: it says nothing on what was missed (see
context_recall). Undefined without passages. One judge call, shared with context_position.
Source: Es et al. 2023 (RAGAS); deepeval and @mastra/evals count the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalstone.errors import OutcomeError
from evalstone.question import Ask
from evalstone.questions.relevance import FindUsefulPassages
from evalstone.scorers.base import ContextScorer, require_passages, useful_passages
from evalstone.types import Sample, Score, Skipped


def average_precision(useful: Sequence[bool]) -> float:
    """The mean, over the ranks of useful passages, of the share of useful passages up to that rank; 0 if none is."""
    found, total = 0, 0.0
    for rank, is_useful in enumerate(useful, start=1):
        if is_useful:
            found += 1
            total += found / rank
    return total / found if found else 0.0


@dataclass(frozen=True, kw_only=True)
class ContextPrecision(ContextScorer):
    """How well the useful passages are ranked before the useless ones."""

    name = "context_precision"
    asks = (FindUsefulPassages,)
    bands = (
        (0.9, "the useful passages come first"),
        (0.6, "useless passages stand among the first"),
        (0.3, "the useful passages come late"),
        (0.0, "hardly any passage is useful"),
    )
    advice = "Re-rank the passages, filter by metadata, or retrieve fewer; check the embedding model on your subject."

    def __post_init__(self) -> None:
        super().__post_init__()
        require_passages(self)

    def passages_for(self, sample: Sample) -> tuple[str, ...] | None:
        found = super().passages_for(sample)
        if self.context_from is not None and not found:
            raise OutcomeError(f"{self.name}: context_from gave no passages for sample {sample.id!r}")
        return found

    async def score(self, ask: Ask, *, input: str, output: str, context: Sequence[str]) -> Score | Skipped:
        if not context:
            return Skipped("there are no passages")
        verdicts = await ask(FindUsefulPassages(question=input, answer=output, context=tuple(context)))
        value = average_precision([v.useful for v in verdicts]) * self.scale
        return Score(value, self.scale, useful_passages(verdicts), verdicts)
