"""Context position: how much of the attention that early ranks get falls on useful passages.

    context position = Σ over useful passages of w(i)  /  Σ over all passages of w(i),   w(i) = 1 / (i + 1), i from 0

Range [0, scale], higher is better; 0 when no passage is useful. Undefined without passages. One judge call, shared with
context_precision. Source: @mastra/evals 0.13 (ContextPosition).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalstone.questions.base import Ask
from evalstone.questions.relevance import FindUsefulPassages
from evalstone.scorers.base import ContextScorer
from evalstone.scorers.rag import useful_passages
from evalstone.types import Score, Skipped


def position_weighted_share(useful: Sequence[bool]) -> float:
    """Σ of 1/rank over useful ranks / Σ of 1/rank over all ranks, for at least one passage."""
    weights = [1 / rank for rank in range(1, len(useful) + 1)]
    return sum(w for w, is_useful in zip(weights, useful, strict=True) if is_useful) / sum(weights)


@dataclass(frozen=True, kw_only=True)
class ContextPosition(ContextScorer):
    """How much of the weight of early ranks the useful passages hold."""

    name = "context_position"
    interpretation = (
        (0.8, "the useful passages stand at the front"),
        (0.5, "useful and useless passages are mixed"),
        (0.0, "the front ranks are wasted"),
    )
    advice = "Re-rank so that useful passages come first; models read the front of a long context best."

    async def score(self, ask: Ask, *, input: str, output: str, context: Sequence[str]) -> Score | Skipped:
        if not context:
            return Skipped("there are no passages")
        verdicts = await ask(FindUsefulPassages(question=input, answer=output, context=tuple(context)))
        value = position_weighted_share([v.useful for v in verdicts]) * self.scale
        return Score(value, self.scale, useful_passages(verdicts), verdicts)
