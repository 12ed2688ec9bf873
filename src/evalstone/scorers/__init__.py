"""Scorers: `from evalstone.scorers import Faithfulness`. Each is imported when it is first used."""

import importlib
from typing import TYPE_CHECKING, Any

from evalstone.scorers.base import ContextScorer as ContextScorer
from evalstone.scorers.base import Scorer as Scorer
from evalstone.scorers.registry import SCORERS as SCORERS
from evalstone.scorers.registry import TEMPLATES
from evalstone.scorers.registry import parse_scorer as parse_scorer
from evalstone.scorers.registry import parse_scorers as parse_scorers

if TYPE_CHECKING:
    from evalstone.scorers.agents.multi_turn_judge import MultiTurnJudge as MultiTurnJudge
    from evalstone.scorers.agents.tool_call_accuracy import ToolCallAccuracy as ToolCallAccuracy
    from evalstone.scorers.agents.tool_call_appropriateness import ToolCallAppropriateness as ToolCallAppropriateness
    from evalstone.scorers.agents.trajectory_accuracy import TrajectoryAccuracy as TrajectoryAccuracy
    from evalstone.scorers.agents.trajectory_judge import TrajectoryJudge as TrajectoryJudge
    from evalstone.scorers.agents.trajectory_quality import TrajectoryQuality as TrajectoryQuality
    from evalstone.scorers.agents.trajectory_quality import TrajectoryWeights as TrajectoryWeights
    from evalstone.scorers.custom import CustomScorer as CustomScorer
    from evalstone.scorers.custom.geval import GEval as GEval
    from evalstone.scorers.custom.llm_classifier import LLMClassifier as LLMClassifier
    from evalstone.scorers.custom.pipeline import NotScorable as NotScorable
    from evalstone.scorers.custom.pipeline import Pipeline as Pipeline
    from evalstone.scorers.custom.pipeline import PromptStep as PromptStep
    from evalstone.scorers.custom.pipeline import SoFar as SoFar
    from evalstone.scorers.custom.pipeline import not_scorable as not_scorable
    from evalstone.scorers.custom.rubric import Criterion as Criterion
    from evalstone.scorers.custom.rubric import Rubric as Rubric
    from evalstone.scorers.rag.answer_relevancy import AnswerRelevancy as AnswerRelevancy
    from evalstone.scorers.rag.answer_similarity import AnswerSimilarity as AnswerSimilarity
    from evalstone.scorers.rag.context_position import ContextPosition as ContextPosition
    from evalstone.scorers.rag.context_precision import ContextPrecision as ContextPrecision
    from evalstone.scorers.rag.context_recall import ContextRecall as ContextRecall
    from evalstone.scorers.rag.context_relevance import ContextRelevance as ContextRelevance
    from evalstone.scorers.rag.context_relevance import Penalties as Penalties
    from evalstone.scorers.rag.context_statement_relevancy import ContextStatementRelevancy as ContextStatementRelevancy
    from evalstone.scorers.rag.context_usage import ContextUsage as ContextUsage
    from evalstone.scorers.rag.factual_correctness import FactualCorrectness as FactualCorrectness
    from evalstone.scorers.rag.faithfulness import Faithfulness as Faithfulness
    from evalstone.scorers.rag.graded import AnswerCorrectness as AnswerCorrectness
    from evalstone.scorers.rag.graded import AnswerFaithfulness as AnswerFaithfulness
    from evalstone.scorers.rag.graded import AnswerRelevanceGrade as AnswerRelevanceGrade
    from evalstone.scorers.rag.graded import FactCheck as FactCheck
    from evalstone.scorers.rag.graded import RelevancyCheck as RelevancyCheck
    from evalstone.scorers.rag.hallucination import Hallucination as Hallucination
    from evalstone.scorers.rag.noise_sensitivity import NoiseSensitivity as NoiseSensitivity
    from evalstone.scorers.safety import Bias as Bias
    from evalstone.scorers.safety import Toxicity as Toxicity
    from evalstone.scorers.text import CodeScorer as CodeScorer
    from evalstone.scorers.text import PairScorer as PairScorer
    from evalstone.scorers.text.completeness import Completeness as Completeness
    from evalstone.scorers.text.content_similarity import ContentSimilarity as ContentSimilarity
    from evalstone.scorers.text.instruction_alignment import InstructionAlignment as InstructionAlignment
    from evalstone.scorers.text.keyword_coverage import KeywordCoverage as KeywordCoverage
    from evalstone.scorers.text.prompt_alignment import PromptAlignment as PromptAlignment
    from evalstone.scorers.text.rouge_l import RougeL as RougeL
    from evalstone.scorers.text.summarization import Summarization as Summarization
    from evalstone.scorers.text.textual_difference import TextualDifference as TextualDifference
    from evalstone.scorers.text.tone_consistency import ToneConsistency as ToneConsistency

_PATHS = (
    *SCORERS.paths.values(),
    *TEMPLATES.paths.values(),
    "custom.CustomScorer",
    "custom.pipeline.NotScorable",
    "custom.pipeline.Pipeline",
    "custom.pipeline.PromptStep",
    "custom.pipeline.SoFar",
    "custom.pipeline.not_scorable",
    "custom.rubric.Criterion",
    "rag.context_relevance.Penalties",
    "text.CodeScorer",
    "text.PairScorer",
    "agents.trajectory_quality.TrajectoryWeights",
)
_MODULES = {name: module for module, _, name in (path.rpartition(".") for path in _PATHS)}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
