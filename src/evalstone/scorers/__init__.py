"""Scorers, by name. To add one: its file here, its line in SCORERS, its test."""

from collections.abc import Mapping

from evalstone.scorers.agents.multi_turn_judge import MultiTurnJudge
from evalstone.scorers.agents.tool_call_accuracy import ToolCallAccuracy
from evalstone.scorers.agents.tool_call_appropriateness import ToolCallAppropriateness
from evalstone.scorers.agents.trajectory_accuracy import TrajectoryAccuracy
from evalstone.scorers.agents.trajectory_judge import TrajectoryJudge
from evalstone.scorers.agents.trajectory_quality import TrajectoryQuality, TrajectoryWeights
from evalstone.scorers.base import ContextScorer, Scorer
from evalstone.scorers.custom import (
    CustomScorer,
    GEval,
    LLMClassifier,
    NotScorable,
    Pipeline,
    PromptStep,
    SoFar,
    not_scorable,
)
from evalstone.scorers.custom.checklist import Criterion
from evalstone.scorers.custom.rubric import Rubric
from evalstone.scorers.rag.answer_relevancy import AnswerRelevancy
from evalstone.scorers.rag.answer_similarity import AnswerSimilarity
from evalstone.scorers.rag.context_position import ContextPosition
from evalstone.scorers.rag.context_precision import ContextPrecision
from evalstone.scorers.rag.context_recall import ContextRecall
from evalstone.scorers.rag.context_relevance import ContextRelevance, Penalties
from evalstone.scorers.rag.context_statement_relevancy import ContextStatementRelevancy
from evalstone.scorers.rag.context_usage import ContextUsage
from evalstone.scorers.rag.factual_correctness import FactualCorrectness
from evalstone.scorers.rag.faithfulness import Faithfulness
from evalstone.scorers.rag.hallucination import Hallucination
from evalstone.scorers.rag.noise_sensitivity import NoiseSensitivity
from evalstone.scorers.safety.bias import Bias
from evalstone.scorers.safety.toxicity import Toxicity
from evalstone.scorers.text.code import CodeScorer, PairScorer
from evalstone.scorers.text.completeness import Completeness
from evalstone.scorers.text.content_similarity import ContentSimilarity
from evalstone.scorers.text.instruction_alignment import InstructionAlignment
from evalstone.scorers.text.keyword_coverage import KeywordCoverage
from evalstone.scorers.text.prompt_alignment import PromptAlignment
from evalstone.scorers.text.rouge_l import RougeL
from evalstone.scorers.text.summarization import Summarization
from evalstone.scorers.text.textual_difference import TextualDifference
from evalstone.scorers.text.tone_consistency import ToneConsistency

SCORERS: Mapping[str, type[Scorer]] = {
    "answer_relevancy": AnswerRelevancy,
    "answer_similarity": AnswerSimilarity,
    "bias": Bias,
    "completeness": Completeness,
    "content_similarity": ContentSimilarity,
    "context_position": ContextPosition,
    "context_precision": ContextPrecision,
    "context_recall": ContextRecall,
    "context_relevance": ContextRelevance,
    "context_statement_relevancy": ContextStatementRelevancy,
    "context_usage": ContextUsage,
    "factual_correctness": FactualCorrectness,
    "faithfulness": Faithfulness,
    "hallucination": Hallucination,
    "instruction_alignment": InstructionAlignment,
    "keyword_coverage": KeywordCoverage,
    "multi_turn_judge": MultiTurnJudge,
    "noise_sensitivity": NoiseSensitivity,
    "prompt_alignment": PromptAlignment,
    "rouge_l": RougeL,
    "rubric": Rubric,
    "summarization": Summarization,
    "textual_difference": TextualDifference,
    "tone_consistency": ToneConsistency,
    "tool_call_accuracy": ToolCallAccuracy,
    "tool_call_appropriateness": ToolCallAppropriateness,
    "toxicity": Toxicity,
    "trajectory_accuracy": TrajectoryAccuracy,
    "trajectory_judge": TrajectoryJudge,
    "trajectory_quality": TrajectoryQuality,
}

__all__ = [
    "SCORERS",
    "AnswerRelevancy",
    "AnswerSimilarity",
    "Bias",
    "CodeScorer",
    "Completeness",
    "ContentSimilarity",
    "ContextPosition",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "ContextScorer",
    "ContextStatementRelevancy",
    "ContextUsage",
    "Criterion",
    "CustomScorer",
    "FactualCorrectness",
    "Faithfulness",
    "GEval",
    "Hallucination",
    "InstructionAlignment",
    "KeywordCoverage",
    "LLMClassifier",
    "MultiTurnJudge",
    "NoiseSensitivity",
    "NotScorable",
    "PairScorer",
    "Penalties",
    "Pipeline",
    "PromptAlignment",
    "PromptStep",
    "RougeL",
    "Rubric",
    "Scorer",
    "SoFar",
    "Summarization",
    "TextualDifference",
    "ToneConsistency",
    "ToolCallAccuracy",
    "ToolCallAppropriateness",
    "Toxicity",
    "TrajectoryAccuracy",
    "TrajectoryJudge",
    "TrajectoryQuality",
    "TrajectoryWeights",
    "not_scorable",
]
