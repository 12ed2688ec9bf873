from __future__ import annotations

import asyncio
from dataclasses import dataclass

from evalstone.questions.base import Ask
from evalstone.questions.claims import ListClaims, verified
from evalstone.scorers.base import Scorer, reason_with, require_number
from evalstone.types import Score, Skipped


def f_measure(precision: float, recall: float, beta: float) -> float:
    """The weighted harmonic mean of precision and recall; 0 when both are 0."""
    weight = beta * beta
    total = weight * precision + recall
    return (1 + weight) * precision * recall / total if total else 0.0


@dataclass(frozen=True, kw_only=True)
class FactualCorrectness(Scorer):
    """How far the answer claims what the reference claims, no more and no less.

        precision = answer claims that the reference supports / answer claims
        recall    = reference claims that the answer supports / reference claims
        factual correctness = (1 + b²) · precision · recall / (b² · precision + recall)          range [0, scale]

    Higher is better; b = 1 weighs both alike, a larger b weighs recall more. 0 when nothing agrees. Undefined when the
    answer or the reference makes no claim. Four judge calls; the answer's claims are shared with faithfulness,
    hallucination and summarization, the reference's with context recall. Source: Ru et al. 2024 (RAGChecker: claim
    precision, recall, F1); ragas' FactualCorrectness counts the same way, its AnswerCorrectness adds an embedding's
    cosine.

    Attributes:
        beta: The weight b of recall against precision.
    """

    name = "factual_correctness"
    interpretation = (
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
        require_number(self, "beta", exclude_low=True)

    async def score(self, ask: Ask, *, output: str, reference: str) -> Score | Skipped:
        answer, expected = await asyncio.gather(ask(ListClaims(text=output)), ask(ListClaims(text=reference)))
        if not answer or not expected:
            return Skipped(f"the {'reference' if answer else 'answer'} makes no claim")
        right, covered = await asyncio.gather(verified(ask, answer, (reference,)), verified(ask, expected, (output,)))
        extra = [v.claim for v in right if v.verdict != "supported"]
        missing = [v.claim for v in covered if v.verdict != "supported"]
        precision, recall = 1 - len(extra) / len(right), 1 - len(missing) / len(covered)
        reason = f"precision {precision:.2f}, recall {recall:.2f}"
        reason = reason_with(reason, ("not in the reference", extra), ("left out", missing))
        evidence = {"answer": right, "reference": covered}
        return Score(f_measure(precision, recall, self.beta) * self.scale, self.scale, reason, evidence)
