"""Hallucination: the share of the answer's claims that the passages do not support.

    hallucination = (contradicted + not mentioned) / claims          range [0, scale], lower is better

Undefined when the answer makes no claim. With no passages nothing can support a claim. `definition` applies
another system's formula to the same answers; deepeval counts passages, not claims. Two judge calls, both shared with
faithfulness. Source: @mastra/evals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from evalstone.questions.base import Ask
from evalstone.questions.claims import ClaimVerdict, ListClaims, verified
from evalstone.scorers.base import ContextScorer, Definition
from evalstone.scorers.rag import Defined, unsupported_claims
from evalstone.types import Score, Skipped


def unsupported_share(verdicts: Sequence[ClaimVerdict], passages: int = 0) -> float:
    """(contradicted + not mentioned) / all, for at least one verdict."""
    return sum(v.verdict != "supported" for v in verdicts) / len(verdicts)


def contradicting_share(verdicts: Sequence[ClaimVerdict], passages: int) -> float:
    """Passages cited against a claim / passages, for at least one passage."""
    against = {number for v in verdicts if v.verdict == "contradicted" for number in v.passages}
    return len(against) / passages


@dataclass(frozen=True, kw_only=True)
class Hallucination(Defined, ContextScorer):
    """How much of the answer the passages do not support."""

    name = "hallucination"
    lower_is_better = True
    interpretation = (
        (0.6, "the passages do not support most of the answer"),
        (0.3, "a good part of the answer is in no passage"),
        (0.1, "some claims go beyond the passages: read them"),
        (0.0, "almost everything is supported"),
    )
    advice = (
        "Contradicted claims are the worse kind: read them first, with the passage that contradicts them. Claims in no "
        "passage call for better retrieval, or for an instruction to say what is unknown."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("(contradicted + not mentioned) / claims", unsupported_share),
        "ragas": Definition("1 - faithfulness = (contradicted + not mentioned) / claims", unsupported_share, "NaN"),
        "mastra": Definition("(contradicted + not mentioned) / claims", unsupported_share, "0"),
        "deepeval": Definition(
            "passages that contradict a claim / passages; 1 minus it since 4.0", contradicting_share
        ),
    }

    async def score(self, ask: Ask, *, output: str, context: Sequence[str]) -> Score | Skipped:
        claims = await ask(ListClaims(text=output))
        if not claims:
            return Skipped(self.undefined("the answer makes no claim"))
        verdicts = await verified(ask, claims, context)
        if self.definition == "deepeval" and (why := _uncounted(verdicts, context)):
            return Skipped(why)
        unsupported = sum(v.verdict != "supported" for v in verdicts)
        reason = f"{unsupported} of {len(verdicts)} claims are not supported{unsupported_claims(verdicts)}."
        return Score(self.compute(verdicts, len(context)) * self.scale, self.scale, reason, verdicts)


def _uncounted(verdicts: Sequence[ClaimVerdict], context: Sequence[str]) -> str:
    """Why passages that contradict a claim cannot be counted; empty when they can."""
    if not context:
        return "there are no passages"
    loose = any(v.verdict == "contradicted" and not v.passages for v in verdicts)
    return "the judge does not say which passage contradicts a claim" if loose else ""
