"""Relevancy check: does the response answer the user's text in agreement with the documents?

    score = 1 for a yes, 0 for a no          passed = score >= threshold (0.5); higher is better

Undecided when the judge's reply is neither yes nor no, and without a user text or documents (nothing is asked then).
One judge call. Source: RelevancyEvaluator of Spring AI, the same question in our words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evalstone.compat.spring.base import Finding, JudgeEvaluator
from evalstone.compat.spring.request import EvaluationRequest
from evalstone.compat.spring.scorer import ContextEvaluatorScorer
from evalstone.questions.base import Ask
from evalstone.questions.verdict import VERDICT_FORM, AgreesWithContext, Choice
from evalstone.types import Score, Skipped


def verdict_score(choice: Choice) -> float | None:
    """1 for yes, 0 for no, None for undecided."""
    return {"yes": 1.0, "no": 0.0, "undecided": None}[choice.verdict]


def verdict_finding(choice: Choice) -> Finding:
    """A verdict as a finding. Its reason is never empty."""
    said = f"the judge answered {choice.verdict} and gave no reason"
    return Finding(verdict_score(choice), choice.reason or said, choice)


@dataclass(frozen=True)
class RelevancyEvaluator(JudgeEvaluator):
    """Passes a response that answers the user's text in agreement with the documents."""

    name = "relevancy_check"
    questions = (AgreesWithContext,)
    form = VERDICT_FORM

    def needs(self, request: EvaluationRequest) -> tuple[str, ...]:
        return ("user_text", "data_list")

    async def judged(self, ask: Ask, request: EvaluationRequest) -> Finding:
        question = AgreesWithContext(
            question=request.user_text,
            answer=request.response_content,
            context=request.documents,
            prompt=self.prompt_for(AgreesWithContext),
        )
        return verdict_finding(await ask(question))

    def as_scorer(self, *, scale: float = 1.0, explain: bool = False) -> RelevancyCheck:
        return RelevancyCheck(evaluator=replace(self, judge=None), scale=scale, explain=explain)


@dataclass(frozen=True, kw_only=True)
class RelevancyCheck(ContextEvaluatorScorer):
    """Whether the answer takes up the question in agreement with the passages."""

    name = "relevancy_check"
    asks = (AgreesWithContext,)
    bands = ((1.0, "the answer agrees with the passages"), (0.0, "the answer does not agree with the passages"))
    advice = (
        "Read the judge's reason: a passage that is missing is the retriever's fault, a sentence too many the model's."
    )

    evaluator: RelevancyEvaluator = RelevancyEvaluator()

    async def score(self, ask: Ask, *, input: str, output: str, context: Sequence[str]) -> Score | Skipped:
        return await self.found(ask, EvaluationRequest(input, context, output))
