"""Faithfulness: the share of the answer's claims that the passages support.

    faithfulness = supported claims / claims          range [0, scale], higher is better

A contradicted claim and one that no passage mentions count alike: neither is supported. `definition` applies
another system's formula to the same answers. Undefined when the answer makes no claim. Two judge calls; the first is
shared with every scorer that needs the answer's claims, the second with hallucination. Source: Es et al. 2023 (RAGAS);
@mastra/evals counts the same way.
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


def supported_share(verdicts: Sequence[ClaimVerdict]) -> float:
    """supported / all, for at least one verdict."""
    return sum(v.verdict == "supported" for v in verdicts) / len(verdicts)


def uncontradicted_share(verdicts: Sequence[ClaimVerdict]) -> float:
    """(supported + not mentioned) / all, for at least one verdict."""
    return sum(v.verdict != "contradicted" for v in verdicts) / len(verdicts)


@dataclass(frozen=True, kw_only=True)
class Faithfulness(Defined, ContextScorer):
    """How much of the answer the passages support."""

    name = "faithfulness"
    interpretation = (
        (0.9, "nearly everything is backed by the passages"),
        (0.7, "some claims go beyond the passages: read them"),
        (0.4, "much of the answer is not in the passages"),
        (0.0, "the answer was mostly not written from the passages"),
    )
    advice = (
        "Read the unsupported claims. If they are true but in no passage, retrieve more or instruct the model to stay "
        "with the passages; if they are wrong, lower the temperature, ask for citations, or try a stronger model."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("supported / claims", supported_share),
        "ragas": Definition("supported / claims", supported_share, "NaN"),
        "deepeval": Definition("(supported + not mentioned) / claims", uncontradicted_share, "1"),
        "deepeval_strict": Definition("supported / claims, as with penalize_ambiguous_claims", supported_share, "1"),
        "mastra": Definition("supported / claims", supported_share, "0"),
        "ragchecker": Definition("supported / claims", supported_share, "0"),
    }

    async def score(self, ask: Ask, *, output: str, context: Sequence[str]) -> Score | Skipped:
        claims = await ask(ListClaims(text=output))
        if not claims:
            return Skipped(self.undefined("the answer makes no claim"))
        verdicts = await verified(ask, claims, context)
        supported = sum(v.verdict == "supported" for v in verdicts)
        reason = f"{supported} of {len(verdicts)} claims are supported{unsupported_claims(verdicts)}."
        return Score(self.compute(verdicts) * self.scale, self.scale, reason, verdicts)
