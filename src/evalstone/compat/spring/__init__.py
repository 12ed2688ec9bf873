"""Evaluators: pass or fail a response on a judge's verdict, in the manner of Spring AI's `Evaluator`."""

from collections.abc import Mapping

from evalstone.compat.spring.answer_correctness import AnswerCorrectness, AnswerCorrectnessEvaluator
from evalstone.compat.spring.answer_faithfulness import AnswerFaithfulness, AnswerFaithfulnessEvaluator
from evalstone.compat.spring.answer_relevancy import AnswerRelevanceGrade, AnswerRelevancyEvaluator
from evalstone.compat.spring.base import Evaluator, Finding, JudgeEvaluator, UndecidedError
from evalstone.compat.spring.fact_checking import ClaimCheck, FactCheck, FactCheckingEvaluator
from evalstone.compat.spring.relevancy import RelevancyCheck, RelevancyEvaluator
from evalstone.compat.spring.request import EvaluationRequest
from evalstone.compat.spring.response import EvaluationResponse
from evalstone.compat.spring.scorer import EvaluatorScorer

EVALUATORS: Mapping[str, type[JudgeEvaluator]] = {
    "answer_correctness": AnswerCorrectnessEvaluator,
    "answer_faithfulness": AnswerFaithfulnessEvaluator,
    "answer_relevance_grade": AnswerRelevancyEvaluator,
    "fact_check": FactCheckingEvaluator,
    "relevancy_check": RelevancyEvaluator,
}

__all__ = [
    "EVALUATORS",
    "AnswerCorrectness",
    "AnswerCorrectnessEvaluator",
    "AnswerFaithfulness",
    "AnswerFaithfulnessEvaluator",
    "AnswerRelevanceGrade",
    "AnswerRelevancyEvaluator",
    "ClaimCheck",
    "EvaluationRequest",
    "EvaluationResponse",
    "Evaluator",
    "EvaluatorScorer",
    "FactCheck",
    "FactCheckingEvaluator",
    "Finding",
    "JudgeEvaluator",
    "RelevancyCheck",
    "RelevancyEvaluator",
    "UndecidedError",
]
