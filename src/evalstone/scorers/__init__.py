"""Scorers, by name. To add one: its file here, its line in SCORERS, its test."""

from collections.abc import Mapping

from evalstone.scorers.answer_relevancy import AnswerRelevancy
from evalstone.scorers.base import ContextScorer, Scorer
from evalstone.scorers.context_position import ContextPosition
from evalstone.scorers.context_precision import ContextPrecision
from evalstone.scorers.context_recall import ContextRecall
from evalstone.scorers.context_relevance import ContextRelevance, Penalties
from evalstone.scorers.faithfulness import Faithfulness
from evalstone.scorers.hallucination import Hallucination

SCORERS: Mapping[str, type[Scorer]] = {
    "answer_relevancy": AnswerRelevancy,
    "context_position": ContextPosition,
    "context_precision": ContextPrecision,
    "context_recall": ContextRecall,
    "context_relevance": ContextRelevance,
    "faithfulness": Faithfulness,
    "hallucination": Hallucination,
}

__all__ = [
    "SCORERS",
    "AnswerRelevancy",
    "ContextPosition",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "ContextScorer",
    "Faithfulness",
    "Hallucination",
    "Penalties",
    "Scorer",
]
