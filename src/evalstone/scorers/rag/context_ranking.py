"""Context precision and context position: do the useful passages come first?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from evalstone.errors import OutcomeError
from evalstone.questions.base import Ask
from evalstone.questions.relevance import FindUsefulPassages
from evalstone.scorers.base import share
from evalstone.scorers.definitions import OURS, REQUEST, DefinedText, Definition
from evalstone.scorers.rag import passage_numbers, require_passages
from evalstone.scorers.sources import ContextScorer
from evalstone.types import Sample, Score, Skipped


def average_precision(useful: Sequence[bool]) -> float:
    """The mean, over the ranks of useful passages, of the share of useful passages up to that rank; 0 if none is."""
    count, total = 0, 0.0
    for rank, is_useful in enumerate(useful, start=1):
        if is_useful:
            count += 1
            total += count / rank
    return total / count if count else 0.0


def padded_average_precision(useful: Sequence[bool]) -> float:
    """Average precision with 1e-10 added to the denominator, which avoids a division by zero."""
    count = sum(useful)
    return average_precision(useful) * count / (count + 1e-10)


def position_weighted_share(useful: Sequence[bool]) -> float:
    """Σ of 1/rank over useful ranks / Σ of 1/rank over all ranks, for at least one passage."""
    weights = [1 / rank for rank in range(1, len(useful) + 1)]
    return sum(w for w, is_useful in zip(weights, useful, strict=True) if is_useful) / sum(weights)


class ContextPrecision(DefinedText, ContextScorer):
    """How well useful passages are ranked above useless ones.

        context precision = Σ over useful ranks k of (useful among the first k / k)  /  useful passages

    Average precision over the passages in retrieval order; range [0, scale], higher is better; 0 when no passage is
    useful. The denominator counts the useful passages that were retrieved, so the score doesn't show what was missed
    (see context_recall). `definition` applies another system's formula to the same answers. Undefined without passages.
    One judge call, shared with context_position. Source: Es et al. 2023 (RAGAS); deepeval and @mastra/evals count the
    same way.
    """

    name = "context_precision"
    version = 2
    questions = (FindUsefulPassages,)
    interpretation = (
        (0.9, "the useful passages come first"),
        (0.6, "some of the top passages are useless"),
        (0.3, "the useful passages come late"),
        (0.0, "hardly any passage is useful"),
    )
    advice = (
        "Rerank the passages, filter by metadata, or retrieve fewer. Check that the embedding model suits your domain."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("average precision", average_precision),
        "ragas": Definition("average precision, with 1e-10 added to the divisor", padded_average_precision, "0"),
        "deepeval": Definition("average precision", average_precision, "0"),
        "mastra": Definition(
            "average precision", average_precision, "an error", blank=("input", "output"), sides=REQUEST
        ),
        "ragchecker": Definition("useful / passages, whatever their ranks", share),
    }
    definition: Literal["evalstone", "ragas", "deepeval", "mastra", "ragchecker"] = OURS

    def __post_init__(self) -> None:
        super().__post_init__()
        require_passages(self)

    async def _extracted(self, sample: Sample) -> Sample:
        extracted = await super()._extracted(sample)
        if not extracted.context:
            raise OutcomeError(f"{self.name}: context_from returned no passages for sample {sample.id!r}")
        return extracted

    async def score(self, ask: Ask, *, input: str, output: str, context: Sequence[str]) -> Score | Skipped:
        if not context:
            return self.undefined("there are no passages")
        verdicts = await ask(FindUsefulPassages(question=input, answer=output, context=tuple(context)))
        value = self.compute([v.useful for v in verdicts]) * self.scale
        reason = passage_numbers("useful", [(v.passage, v.useful) for v in verdicts])
        return Score(value, reason, evidence=verdicts)


class ContextPosition(DefinedText, ContextScorer):
    """How early the useful passages are ranked, as their share of the rank weights.

        context position = Σ over useful passages of 1 / rank  /  Σ over all passages of 1 / rank

    Range [0, scale], higher is better; 0 when no passage is useful. Undefined without passages. One judge call, shared
    with context_precision. Source: @mastra/evals 0.13 (ContextPosition).
    """

    name = "context_position"
    questions = (FindUsefulPassages,)
    interpretation = (
        (0.8, "the useful passages come first"),
        (0.5, "useful and useless passages are mixed"),
        (0.0, "the top ranks are wasted on useless passages"),
    )
    advice = "Rerank so that useful passages come first: models use the beginning of a long context best."
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("Σ 1 / rank of useful passages / Σ 1 / rank of all"),
        "mastra": Definition("the same; blank texts are judged", undefined="0", blank=("input", "output")),
    }
    definition: Literal["evalstone", "mastra"] = OURS

    async def score(self, ask: Ask, *, input: str, output: str, context: Sequence[str]) -> Score | Skipped:
        if not context:
            return self.undefined("there are no passages")
        verdicts = await ask(FindUsefulPassages(question=input, answer=output, context=tuple(context)))
        value = position_weighted_share([v.useful for v in verdicts]) * self.scale
        reason = passage_numbers("useful", [(v.passage, v.useful) for v in verdicts])
        return Score(value, reason, evidence=verdicts)
