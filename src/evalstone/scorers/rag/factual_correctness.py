"""Factual correctness: how far the claims of the answer and those of the reference are the same.

    precision = answer claims that the reference supports / answer claims
    recall    = reference claims that the answer supports / reference claims
    factual correctness = (1 + b²) · precision · recall / (b² · precision + recall)          range [0, scale]

Higher is better; b = 1 weighs both alike, a larger b weighs recall more. 0 when nothing agrees. Undefined when the
answer or the reference makes no claim. Four judge calls; the answer's claims are shared with faithfulness,
hallucination and summarization, the reference's with context recall. Source: Ru et al. 2024 (RAGChecker: claim
precision, recall, F1); ragas' FactualCorrectness counts the same way, its AnswerCorrectness adds an embedding's cosine.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass

from evalstone.errors import ConfigError
from evalstone.questions.base import Ask
from evalstone.questions.claims import ListClaims, VerifyClaims, verified
from evalstone.scorers.base import Scorer, listed
from evalstone.types import Score, Skipped


def f_measure(precision: float, recall: float, beta: float) -> float:
    """The weighted harmonic mean of precision and recall; 0 when both are 0."""
    weight = beta * beta
    below = weight * precision + recall
    return (1 + weight) * precision * recall / below if below else 0.0


@dataclass(frozen=True, kw_only=True)
class FactualCorrectness(Scorer):
    """How far the answer claims what the reference claims, no more and no less."""

    name = "factual_correctness"
    asks = (ListClaims, ListClaims, VerifyClaims, VerifyClaims)
    bands = (
        (0.8, "the answer says what the reference says"),
        (0.5, "it says a part of it, or more than that"),
        (0.0, "it says other things"),
    )
    advice = (
        "Low precision: the answer says things that the reference does not; are they wrong, or is the reference short? "
        "Low recall: the answer leaves things out; check context recall first, for they may not have been retrieved."
    )

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.beta, bool) or not (math.isfinite(self.beta) and self.beta > 0):
            raise ConfigError(f"{self.name}: beta must be a positive number, not {self.beta}")

    async def score(self, ask: Ask, *, output: str, reference: str) -> Score | Skipped:
        said, wanted = await asyncio.gather(ask(ListClaims(text=output)), ask(ListClaims(text=reference)))
        if not said or not wanted:
            return Skipped(f"the {'reference' if said else 'answer'} makes no claim")
        right, covered = await asyncio.gather(verified(ask, said, (reference,)), verified(ask, wanted, (output,)))
        extra = [v.claim for v in right if v.verdict != "supported"]
        missing = [v.claim for v in covered if v.verdict != "supported"]
        precision, recall = 1 - len(extra) / len(right), 1 - len(missing) / len(covered)
        told = f"precision {precision:.2f}, recall {recall:.2f}"
        told += f"; not in the reference: {listed(extra)}" if extra else ""
        told += f"; left out: {listed(missing)}" if missing else ""
        evidence = {"answer": right, "reference": covered}
        return Score(f_measure(precision, recall, self.beta) * self.scale, self.scale, told + ".", evidence)
