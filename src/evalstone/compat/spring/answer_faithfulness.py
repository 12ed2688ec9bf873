"""Answer faithfulness: a grade for how far the response stays with the documents.

    score = the judge's grade in [0, 1]          passed = score >= threshold (0.75); higher is better

0.75 is the grade of a response in which only details without weight go beyond the documents. Undecided when the judge
declines, and without documents (nothing is asked then). A grade that is no number in [0, 1] is asked for again, then a
JudgeError. One judge call. The user's text is not looked at. Source: AnswerFaithfulnessEvaluator of Spring AI Alibaba,
which passes any grade above 0. The scorer `faithfulness` counts claims instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from evalstone.compat.spring.base import Finding, JudgeEvaluator
from evalstone.compat.spring.request import EvaluationRequest
from evalstone.compat.spring.scorer import ContextEvaluatorScorer
from evalstone.questions.base import Ask
from evalstone.questions.grade import GRADE_FORM, Grade, GradeGrounding
from evalstone.types import Score, Skipped


def grade_finding(grade: Grade) -> Finding:
    """A grade as a finding. Its reason is never empty."""
    return Finding(grade.score, grade.reason or f"the judge graded {grade.score:g} and gave no reason", grade)


@dataclass(frozen=True)
class AnswerFaithfulnessEvaluator(JudgeEvaluator):
    """Passes a response that stays with the documents."""

    name = "answer_faithfulness"
    questions = (GradeGrounding,)
    form = GRADE_FORM

    threshold: float = field(default=0.75, kw_only=True)

    def needs(self, request: EvaluationRequest) -> tuple[str, ...]:
        return ("data_list",)

    async def judged(self, ask: Ask, request: EvaluationRequest) -> Finding:
        question = GradeGrounding(
            answer=request.response_content, context=request.documents, prompt=self.prompt_for(GradeGrounding)
        )
        return grade_finding(await ask(question))

    def as_scorer(self, *, scale: float = 1.0, explain: bool = False) -> AnswerFaithfulness:
        return AnswerFaithfulness(evaluator=replace(self, judge=None), scale=scale, explain=explain)


@dataclass(frozen=True, kw_only=True)
class AnswerFaithfulness(ContextEvaluatorScorer):
    """A judge's grade for how far the answer stays with the passages."""

    name = "answer_faithfulness"
    asks = (GradeGrounding,)
    bands = (
        (0.75, "at most details without weight go beyond the passages"),
        (0.5, "something of weight is in no passage"),
        (0.0, "most of the answer is not backed by the passages"),
    )
    advice = "For which claims fell, use faithfulness: it names them, with the passages that decide each."

    evaluator: AnswerFaithfulnessEvaluator = AnswerFaithfulnessEvaluator()

    async def score(self, ask: Ask, *, output: str, context: Sequence[str]) -> Score | Skipped:
        return await self.found(ask, EvaluationRequest(data_list=context, response_content=output))
