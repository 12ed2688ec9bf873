"""Answer correctness: does the response say what the reference answer says?

    score = 1 for a yes, 0 for a no          passed = score >= threshold (0.5); higher is better

The reference is the request's `reference`; without one, the documents take its place, as in Spring AI Alibaba, whose
request has no field for it. Undecided when the judge's reply is neither yes nor no, and without a user text or any
reference (nothing is asked then). One judge call. Source: AnswerCorrectnessEvaluator of Spring AI Alibaba, which asks
for agreement with the context.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from evalstone.compat.spring.base import Finding, JudgeEvaluator
from evalstone.compat.spring.relevancy import verdict_finding
from evalstone.compat.spring.request import EvaluationRequest
from evalstone.compat.spring.scorer import EvaluatorScorer
from evalstone.questions.base import Ask
from evalstone.questions.verdict import VERDICT_FORM, CorrectAgainstReference
from evalstone.types import Score, Skipped


def reference_of(request: EvaluationRequest) -> str:
    """The known good answer: the request's reference, else its documents; empty when it has neither."""
    if request.reference is not None and request.reference.strip():
        return request.reference
    return "\n\n".join(request.documents)


@dataclass(frozen=True)
class AnswerCorrectnessEvaluator(JudgeEvaluator):
    """Passes a response that says what the reference answer says on everything the user asked for."""

    name = "answer_correctness"
    questions = (CorrectAgainstReference,)
    form = VERDICT_FORM

    def needs(self, request: EvaluationRequest) -> tuple[str, ...]:
        return ("user_text",) if request.documents else ("user_text", "reference")

    async def judged(self, ask: Ask, request: EvaluationRequest) -> Finding:
        question = CorrectAgainstReference(
            question=request.user_text,
            answer=request.response_content,
            reference=reference_of(request),
            prompt=self.prompt_for(CorrectAgainstReference),
        )
        return verdict_finding(await ask(question))

    def as_scorer(self, *, scale: float = 1.0, explain: bool = False) -> AnswerCorrectness:
        return AnswerCorrectness(evaluator=replace(self, judge=None), scale=scale, explain=explain)


@dataclass(frozen=True, kw_only=True)
class AnswerCorrectness(EvaluatorScorer):
    """Whether the answer says what the reference answer says."""

    name = "answer_correctness"
    asks = (CorrectAgainstReference,)
    bands = ((1.0, "the answer is correct by the reference"), (0.0, "the answer is not correct by the reference"))
    advice = "Compare answer and reference: is the answer wrong, or does the reference hold only one way to be right?"

    evaluator: AnswerCorrectnessEvaluator = AnswerCorrectnessEvaluator()

    async def score(self, ask: Ask, *, input: str, output: str, reference: str) -> Score | Skipped:
        return await self.found(ask, EvaluationRequest(user_text=input, response_content=output, reference=reference))
