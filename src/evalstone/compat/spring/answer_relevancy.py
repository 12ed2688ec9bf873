"""Answer relevance grade: how well the response addresses the user's text, or meets the reference answer.

    score = the judge's grade in [0, 1]          passed = score >= threshold (0.75); higher is better

With a reference in the request it is graded against that, as AnswerRelevancyEvaluator of Spring AI Alibaba does (there
the reference is handed over as context, and any grade above 0 passes); without one, for addressing the question only:
a wrong answer still addresses it. The two are different measures: do not mix them in one mean. Undecided when the judge
declines, and without a user text (nothing is asked then). A grade that is no number in [0, 1] is asked for again, then
a JudgeError. One judge call. The scorer `answer_relevancy` counts statements instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

from evalstone._core.prompts import Prompt
from evalstone.compat.spring.answer_faithfulness import grade_finding
from evalstone.compat.spring.base import Finding, JudgeEvaluator
from evalstone.compat.spring.request import EvaluationRequest
from evalstone.compat.spring.scorer import EvaluatorScorer
from evalstone.questions.base import Ask
from evalstone.questions.grade import GRADE_FORM, GradeAgainstReference, GradeRelevance
from evalstone.types import Score, Skipped


@dataclass(frozen=True)
class AnswerRelevancyEvaluator(JudgeEvaluator):
    """Passes a response that addresses the user's text, or, given a reference answer, meets it.

    Your own template decides by its placeholders: one with a reference needs a reference in every request, one without
    never looks at it.
    """

    name = "answer_relevance_grade"
    questions = (GradeRelevance, GradeAgainstReference)
    form = GRADE_FORM

    threshold: float = field(default=0.75, kw_only=True)

    def needs(self, request: EvaluationRequest) -> tuple[str, ...]:
        return ("user_text", "reference") if self.prompt is not None and self._by(request) else ("user_text",)

    def _by(self, request: EvaluationRequest) -> bool:
        """Whether this request is graded against its reference."""
        if self.prompt is not None:
            return "reference" in cast(Prompt, self.prompt).placeholders
        return request.reference is not None and bool(request.reference.strip())

    async def judged(self, ask: Ask, request: EvaluationRequest) -> Finding:
        question, answer = request.user_text, request.response_content
        if not self._by(request):
            prompt = self.prompt_for(GradeRelevance)
            return grade_finding(await ask(GradeRelevance(question, answer, prompt)))
        prompt = self.prompt_for(GradeAgainstReference)
        return grade_finding(await ask(GradeAgainstReference(question, answer, request.reference or "", prompt)))

    def as_scorer(self, *, scale: float = 1.0, explain: bool = False) -> AnswerRelevanceGrade:
        return AnswerRelevanceGrade(evaluator=replace(self, judge=None), scale=scale, explain=explain)


@dataclass(frozen=True, kw_only=True)
class AnswerRelevanceGrade(EvaluatorScorer):
    """A judge's grade for how well the answer addresses the question, or meets the reference."""

    name = "answer_relevance_grade"
    asks = (GradeRelevance, GradeAgainstReference)
    bands = (
        (0.75, "the answer gives the main thing"),
        (0.5, "the answer gives a part"),
        (0.0, "the main thing is missing"),
    )
    advice = "For which statements are beside the question, use answer_relevancy: it names them."

    evaluator: AnswerRelevancyEvaluator = AnswerRelevancyEvaluator()

    async def score(self, ask: Ask, *, input: str, output: str, reference: str = "") -> Score | Skipped:
        return await self.found(ask, EvaluationRequest(user_text=input, response_content=output, reference=reference))
