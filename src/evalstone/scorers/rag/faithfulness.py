"""Faithfulness and hallucination: how many of the answer's claims the passages support, and how many they do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from evalstone.questions.base import Ask
from evalstone.questions.claims import ClaimVerdict, ListClaims, verified
from evalstone.scorers.base import ContextScorer, Definition, share
from evalstone.scorers.rag import Defined, supported_share, unsupported_claims
from evalstone.types import Score, Skipped


def uncontradicted_share(verdicts: Sequence[ClaimVerdict]) -> float:
    """(supported + not mentioned) / all, for at least one verdict."""
    return share([v.verdict != "contradicted" for v in verdicts])


def unsupported_share(verdicts: Sequence[ClaimVerdict], passages: int = 0) -> float:
    """(contradicted + not mentioned) / all, for at least one verdict."""
    return share([v.verdict != "supported" for v in verdicts])


def contradicting_share(verdicts: Sequence[ClaimVerdict], passages: int) -> float:
    """Passages cited against a claim / passages, for at least one passage."""
    against = {number for v in verdicts if v.verdict == "contradicted" for number in v.passages}
    return len(against) / passages


@dataclass(frozen=True, kw_only=True)
class Faithfulness(Defined, ContextScorer):
    """How much of the answer the passages support.

        faithfulness = supported claims / claims          range [0, scale], higher is better

    A contradicted claim and one that no passage mentions count alike: neither is supported. `definition` applies
    another system's formula to the same answers. Undefined when the answer makes no claim. Two judge calls; the first
    is shared with every scorer that needs the answer's claims, the second with hallucination.
    Source: Es et al. 2023 (RAGAS); @mastra/evals counts the same way.
    """

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
        supported = [v for v in verdicts if v.verdict == "supported"]
        reason = f"{len(supported)} of {len(verdicts)} claims are supported{unsupported_claims(verdicts)}."
        return Score(self.compute(verdicts) * self.scale, self.scale, reason, verdicts)


@dataclass(frozen=True, kw_only=True)
class Hallucination(Defined, ContextScorer):
    """How much of the answer the passages do not support.

        hallucination = (contradicted + not mentioned) / claims          range [0, scale], lower is better

    With no passages nothing can support a claim. `definition` applies another system's formula to the same answers;
    deepeval counts passages, not claims. Undefined when the answer makes no claim. Two judge calls, both shared with
    faithfulness. Source: @mastra/evals.
    """

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
        if self.definition == "deepeval":
            if not context:
                return Skipped("there are no passages")
            if any(v.verdict == "contradicted" and not v.passages for v in verdicts):
                return Skipped("the judge does not say which passage contradicts a claim")
        unsupported = [v for v in verdicts if v.verdict != "supported"]
        reason = f"{len(unsupported)} of {len(verdicts)} claims are not supported{unsupported_claims(verdicts)}."
        return Score(self.compute(verdicts, len(context)) * self.scale, self.scale, reason, verdicts)
