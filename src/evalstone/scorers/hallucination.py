"""Hallucination: the share of the answer's claims that the passages do not support.

    hallucination = (contradicted + not mentioned) / claims          range [0, scale], lower is better

Undefined when the answer makes no claim. With no passages nothing can support a claim. Two judge calls, both shared
with faithfulness: beside it, none. Source: @mastra/evals; deepeval's metric of this name counts passages instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalstone.question import Ask
from evalstone.questions.claims import ClaimVerdict, ListClaims, VerifyClaims
from evalstone.scorers.base import ContextScorer, fallen_claims
from evalstone.types import Score, Skipped


def unsupported_share(verdicts: Sequence[ClaimVerdict]) -> float:
    """(contradicted + not mentioned) / all, for at least one verdict."""
    return sum(v.verdict != "supported" for v in verdicts) / len(verdicts)


@dataclass(frozen=True, kw_only=True)
class Hallucination(ContextScorer):
    """How much of the answer the passages do not support."""

    name = "hallucination"
    lower_is_better = True
    asks = (ListClaims, VerifyClaims)
    bands = (
        (0.6, "most of the answer is made up, as far as the passages tell"),
        (0.3, "a good part of the answer is in no passage"),
        (0.1, "some claims go beyond the passages: read them"),
        (0.0, "next to nothing is made up"),
    )
    advice = (
        "Contradicted claims are the worse kind: look at them first, with the passage that contradicts them. Claims in "
        "no passage call for better retrieval, or for an instruction to say what is not known."
    )

    async def score(self, ask: Ask, *, output: str, context: Sequence[str]) -> Score | Skipped:
        claims = await ask(ListClaims(text=output))
        if not claims:
            return Skipped("the answer makes no claim")
        verdicts = await ask(VerifyClaims(claims=claims, context=tuple(context)))
        unsupported = sum(v.verdict != "supported" for v in verdicts)
        reason = f"{unsupported} of {len(verdicts)} claims are not supported{fallen_claims(verdicts)}."
        return Score(unsupported_share(verdicts) * self.scale, self.scale, reason, verdicts)
