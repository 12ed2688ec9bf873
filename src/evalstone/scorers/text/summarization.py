from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from evalstone._core.declarations import TEXT, Range
from evalstone.questions.base import Ask
from evalstone.questions.claims import ClaimVerdict, ListClaims, VerifyClaims
from evalstone.questions.coverage import FindAnswers, ListQuestions, QuestionVerdict
from evalstone.scorers.definitions import OURS, REQUEST, DefinedText, Definition
from evalstone.scorers.rag import supported_share
from evalstone.scorers.reasons import reason_with
from evalstone.scorers.sources import FUNCTION_OF_SAMPLE
from evalstone.types import Sample, Score, Skipped


@dataclass(frozen=True)
class SummaryFindings:
    """The verdict on each claim of a summary, and on each question about its source."""

    claims: tuple[ClaimVerdict, ...]
    questions: tuple[QuestionVerdict, ...]


def coverage(questions: Sequence[QuestionVerdict], limit: float) -> float:
    """Answered questions among the first `limit` / min(questions, limit), for at least one question.

    A fractional limit is rounded down only for counting: with 2.5, two questions count, divided by up to 2.5.
    """
    return sum(question.answered for question in questions[: int(limit)]) / min(len(questions), limit)


class Summarization(DefinedText):
    """How accurate and complete a summary is.

        alignment = claims of the summary that the source supports / claims of the summary
        coverage  = questions about the source that the summary answers / questions; only the first 10 count
        summarization = min(alignment, coverage)          range [0, scale], higher is better

    The source is the sample's input, unless the scorer has its own. Undefined when the summary makes no claim or the
    judge finds no question about the source. Four judge calls; the claims of the summary are shared with faithfulness,
    and their verification too if the source is the only passage. Source: @mastra/evals, after deepeval; there the judge
    lists and verifies the claims in one call.

    Attributes:
        source: The text that was summarized; by default the sample's input.
        source_from: A function of the sample, `def` or `async def`, that returns the source. It overrides `source`.
        max_questions: The most questions that count.
    """

    name = "summarization"
    version = 2
    questions = (ListQuestions, FindAnswers, ListClaims, VerifyClaims)
    interpretation = (
        (0.8, "accurate, and it covers what matters"),
        (0.5, "something is wrong, or something important is left out"),
        (0.2, "much is wrong or left out"),
        (0.0, "useless as a summary"),
    )
    advice = (
        "The reason shows which of the two shares is lower. Alignment: ask for a summary in the source's own words. "
        "Coverage: allow more length, or list what the summary must include."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("min(alignment, coverage)"),
        "mastra": Definition(
            "the same; blank texts are judged", undefined="0", blank=("input", "output"), sides=REQUEST
        ),
    }
    definition: Literal["evalstone", "mastra"] = OURS

    source: Annotated[str | None, TEXT] = None
    extractors: ClassVar[Mapping[str, str]] = {"input": "source_from"}
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {"input": ("source", "source_from")}
    source_from: Annotated[Callable[[Sample], str | Awaitable[str]] | None, FUNCTION_OF_SAMPLE] = None
    max_questions: Annotated[float, Range(1)] = 10

    def __post_init__(self) -> None:
        super().__post_init__()

    def values(self, sample: Sample) -> dict[str, Any]:
        values = super().values(sample)
        return values if self.source is None or self.extracts else {**values, "input": self.source}

    async def score(self, ask: Ask, *, input: str, output: str) -> Score | Skipped:
        # Both shares are computed even if one is undefined, so that Skipped doesn't hide a malformed reply.
        source_questions = await ask(ListQuestions(text=input, limit=f"{self.max_questions:g}"))
        questions = await ask(FindAnswers(text=output, questions=source_questions)) if source_questions else ()
        summary_claims = await ask(ListClaims(text=output))
        claims = await ask(VerifyClaims(claims=summary_claims, context=(input,))) if summary_claims else ()
        if not claims:
            return self.undefined("the summary makes no claim")
        if not questions:
            return self.undefined("the judge found no question about the source")
        shares = supported_share(claims), coverage(questions, self.max_questions)
        findings = SummaryFindings(claims, questions)
        reason = _reason(*shares, findings, int(self.max_questions))
        return Score(min(shares) * self.scale, reason, evidence=findings)


def _reason(aligned: float, covered: float, findings: SummaryFindings, limit: int) -> str:
    return reason_with(
        f"alignment {aligned:.2g}, coverage {covered:.2g}",
        ("not in the source", [claim.claim for claim in findings.claims if claim.verdict != "supported"]),
        ("not answered", [question.question for question in findings.questions[:limit] if not question.answered]),
    )
