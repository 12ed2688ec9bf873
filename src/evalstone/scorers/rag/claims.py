"""Faithfulness, hallucination, context recall and factual correctness: shares of claims that another text supports."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from evalstone._core.declarations import Range
from evalstone._core.display import count, part_of
from evalstone.questions.base import Ask
from evalstone.questions.claims import ClaimVerdict, ListClaims, VerifyClaims
from evalstone.scorers.base import share
from evalstone.scorers.definitions import OURS, REQUEST, DefinedText, Definition
from evalstone.scorers.rag import require_passages, supported_share, unsupported_claims
from evalstone.scorers.reasons import reason_with
from evalstone.scorers.sources import ContextScorer, TextSource
from evalstone.types import Score, Skipped


def uncontradicted_share(verdicts: Sequence[ClaimVerdict]) -> float:
    """(supported + not mentioned) / all, for at least one verdict."""
    return share([v.verdict != "contradicted" for v in verdicts])


def unsupported_share(verdicts: Sequence[ClaimVerdict], passages: int = 0) -> float:
    """(contradicted + not mentioned) / all, for at least one verdict."""
    return share([v.verdict != "supported" for v in verdicts])


def contradicting_share(verdicts: Sequence[ClaimVerdict], passages: int) -> float:
    """Passages that contradict a claim / passages, for at least one passage."""
    contradicting = {number for v in verdicts if v.verdict == "contradicted" for number in v.passages}
    return len(contradicting) / passages


class Faithfulness(DefinedText, ContextScorer):
    """How much of the answer is supported by the passages.

        faithfulness = supported claims / claims          range [0, scale], higher is better

    A contradicted claim and a claim that no passage mentions both count as unsupported. `definition` applies another
    system's formula to the same answers. Undefined when the answer makes no claim, as when it only declines: a system
    that always declines has no score (1 by the definition of deepeval), and one that often does scores high on the
    rest. Read the number of skipped samples, and a score of whether questions are answered, such as answer_relevancy.
    Two judge calls; the first is shared with every scorer that uses the answer's claims, the second with hallucination.
    Source: Es et al. 2023 (RAGAS); @mastra/evals counts the same way.
    """

    name = "faithfulness"
    version = 2
    questions = (ListClaims, VerifyClaims)
    interpretation = (
        (0.9, "nearly everything is supported by the passages"),
        (0.7, "some claims go beyond the passages: read them"),
        (0.4, "much of the answer is not in the passages"),
        (0.0, "most of the answer does not come from the passages"),
    )
    advice = (
        "Read the unsupported claims. If they are true but in no passage, retrieve more, or tell the model to stick to "
        "the passages. If they are wrong, lower the temperature, ask for citations, or try a stronger model."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("supported / claims", supported_share),
        "ragas": Definition("supported / claims", supported_share, "NaN"),
        "deepeval": Definition("(supported + not mentioned) / claims", uncontradicted_share, "1"),
        "deepeval_strict": Definition("supported / claims, as with penalize_ambiguous_claims", supported_share, "1"),
        "mastra": Definition("supported / claims", supported_share, "0", blank=("output",), sides=REQUEST),
        "ragchecker": Definition("supported / claims", supported_share, "0"),
    }
    definition: Literal["evalstone", "ragas", "deepeval", "deepeval_strict", "mastra", "ragchecker"] = OURS

    async def score(
        self, ask: Ask, *, output: str, context: Sequence[str], input: str | None = None
    ) -> Score | Skipped:
        claims = await ask(ListClaims.of(output, input))
        if not claims:
            return self.undefined("the answer makes no claim")
        verdicts = await ask(VerifyClaims(claims=claims, context=tuple(context)))
        supported = [v for v in verdicts if v.verdict == "supported"]
        reason = f"{part_of(len(supported), len(verdicts), 'claim')} supported{unsupported_claims(verdicts)}."
        return Score(self.compute(verdicts) * self.scale, reason, evidence=verdicts)


class Hallucination(DefinedText, ContextScorer):
    """How much of the answer is not supported by the passages.

        hallucination = (contradicted + not mentioned) / claims          range [0, scale], lower is better

    Without passages, no claim is supported. `definition` applies another system's formula to the same answers; deepeval
    counts passages, not claims. Undefined when the answer makes no claim, as when it only declines: see faithfulness on
    systems that often do. Two judge calls, both shared with faithfulness. Source: @mastra/evals.
    """

    name = "hallucination"
    version = 2
    questions = (ListClaims, VerifyClaims)
    lower_is_better = True
    interpretation = (
        (0.6, "most of the answer is not supported by the passages"),
        (0.3, "much of the answer is not in the passages"),
        (0.1, "some claims go beyond the passages: read them"),
        (0.0, "almost everything is supported"),
    )
    advice = (
        "Contradicted claims are the worse kind: read them first, next to the passage that contradicts them. Claims in "
        "no passage call for better retrieval, or for an instruction to say what is unknown."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("(contradicted + not mentioned) / claims", unsupported_share),
        "ragas": Definition("1 - faithfulness = (contradicted + not mentioned) / claims", unsupported_share, "NaN"),
        "mastra": Definition(
            "(contradicted + not mentioned) / claims", unsupported_share, "0", blank=("output",), sides=REQUEST
        ),
        "deepeval": Definition(
            "passages that contradict a claim / passages; 1 minus it since 4.0", contradicting_share
        ),
    }
    definition: Literal["evalstone", "ragas", "mastra", "deepeval"] = OURS

    async def score(
        self, ask: Ask, *, output: str, context: Sequence[str], input: str | None = None
    ) -> Score | Skipped:
        claims = await ask(ListClaims.of(output, input))
        if not claims:
            return self.undefined("the answer makes no claim")
        verdicts = await ask(VerifyClaims(claims=claims, context=tuple(context)))
        if self.definition == "deepeval":
            if not context:
                return Skipped("there are no passages")
            if any(v.verdict == "contradicted" and not v.passages for v in verdicts):
                return Skipped("the judge does not say which passage contradicts a claim")
        unsupported = [v for v in verdicts if v.verdict != "supported"]
        reason = f"{part_of(len(unsupported), len(verdicts), 'claim')} not supported{unsupported_claims(verdicts)}."
        return Score(self.compute(verdicts, len(context)) * self.scale, reason, evidence=verdicts)


class ContextRecall(DefinedText, ContextScorer):
    """How much of the reference answer is supported by the passages.

        context recall = supported reference claims / reference claims          range [0, scale], higher is better

    It measures the retriever: could the right answer have been written from the retrieved passages? `definition`
    selects another system's formula, which gives the same number here. The systems differ in what they count (sentences
    or claims) and in when the score is undefined. Undefined when the reference makes no claim. Two judge calls. Source:
    Es et al. 2023 (RAGAS), over sentences; @mastra/evals counts claims, as here.
    """

    name = "context_recall"
    version = 2
    questions = (ListClaims, VerifyClaims)
    interpretation = (
        (0.9, "the passages contain what the right answer needs"),
        (0.6, "part of the right answer was not retrieved"),
        (0.0, "most of the right answer was not retrieved"),
    )
    advice = (
        "Look at the claims that no passage supports: is the document in the index at all? If it is, retrieve more "
        "passages, rewrite the query, or split documents into larger chunks."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("supported / reference claims", supported_share),
        "ragas": Definition("supported / reference claims; ragas takes sentences", supported_share, "NaN"),
        "deepeval": Definition("supported / reference claims; deepeval takes sentences", supported_share, "0"),
        "mastra": Definition("min(1, supported / reference claims)", supported_share, "0", sides=REQUEST),
        "ragchecker": Definition("supported / reference claims (claim recall)", supported_share),
    }
    definition: Literal["evalstone", "ragas", "deepeval", "mastra", "ragchecker"] = OURS

    def __post_init__(self) -> None:
        super().__post_init__()
        require_passages(self)

    async def score(
        self, ask: Ask, *, reference: str, context: Sequence[str], input: str | None = None
    ) -> Score | Skipped:
        claims = await ask(ListClaims.of(reference, input))
        if not claims:
            return self.undefined("the reference makes no claim")
        verdicts = await ask(VerifyClaims(claims=claims, context=tuple(context)))
        absent = [v.claim for v in verdicts if v.verdict != "supported"]
        reason = (
            f"the passages support {len(verdicts) - len(absent)} of {count(len(verdicts), 'claim')} of the reference"
        )
        reason = reason_with(reason, ("not retrieved", absent))
        return Score(self.compute(verdicts) * self.scale, reason, evidence=verdicts)


def f_measure(precision: float, recall: float, beta: float) -> float:
    """The weighted harmonic mean of precision and recall; 0 when both are 0."""
    weight = beta * beta
    total = weight * precision + recall
    return (1 + weight) * precision * recall / total if total else 0.0


class FactualCorrectness(TextSource):
    """How well the claims of the answer match those of the reference, no more and no less.

        precision = answer claims that the reference supports / answer claims
        recall    = reference claims that the answer supports / reference claims
        factual correctness = (1 + b²) · precision · recall / (b² · precision + recall)          range [0, scale]

    Higher is better. b = 1 weights both equally, and a larger b gives recall more weight. 0 when no claim matches.
    Undefined when the answer or the reference makes no claim. Four judge calls; the answer's claims are shared with
    faithfulness, hallucination and summarization, the reference's with context recall. Source: Ru et al. 2024
    (RAGChecker: claim precision, recall, F1). ragas' FactualCorrectness counts the same way, and its AnswerCorrectness
    adds the cosine of an embedding.

    Attributes:
        beta: The weight b of recall against precision, above 0.
    """

    name = "factual_correctness"
    questions = (ListClaims, ListClaims, VerifyClaims, VerifyClaims)
    interpretation = (
        (0.8, "the answer says what the reference says"),
        (0.5, "it says part of it, or more than that"),
        (0.0, "it says something else"),
    )
    advice = (
        "Low precision: the answer says things that the reference does not. Are they wrong, or is the reference too "
        "short? Low recall: the answer leaves things out. Check context_recall first: they may not have been retrieved."
    )

    beta: Annotated[float, Range(0, exclusive=True)] = 1.0

    async def score(self, ask: Ask, *, output: str, reference: str, input: str | None = None) -> Score | Skipped:
        answer, expected = await asyncio.gather(ask(ListClaims.of(output, input)), ask(ListClaims.of(reference, input)))
        if not answer or not expected:
            return Skipped(f"the {'reference' if answer else 'answer'} makes no claim")
        by_reference = VerifyClaims(claims=answer, context=(reference,))
        by_answer = VerifyClaims(claims=expected, context=(output,))
        right, covered = await asyncio.gather(ask(by_reference), ask(by_answer))
        extra = [v.claim for v in right if v.verdict != "supported"]
        missing = [v.claim for v in covered if v.verdict != "supported"]
        precision, recall = 1 - len(extra) / len(right), 1 - len(missing) / len(covered)
        reason = f"precision {precision:.2f}, recall {recall:.2f}"
        reason = reason_with(reason, ("not in the reference", extra), ("left out", missing))
        evidence = {"answer": right, "reference": covered}
        return Score(f_measure(precision, recall, self.beta) * self.scale, reason, evidence=evidence)
