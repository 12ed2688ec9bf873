"""Scorers, by name. To add one: its file here, its line in SCORERS, its test."""

from collections.abc import Mapping

from evalstone.scorers.answer_relevancy import AnswerRelevancy
from evalstone.scorers.answer_similarity import AnswerSimilarity
from evalstone.scorers.base import ContextScorer, Scorer
from evalstone.scorers.bias import Bias
from evalstone.scorers.checklist import Criterion
from evalstone.scorers.code import CodeScorer, PairScorer
from evalstone.scorers.completeness import Completeness
from evalstone.scorers.content_similarity import ContentSimilarity
from evalstone.scorers.context_position import ContextPosition
from evalstone.scorers.context_precision import ContextPrecision
from evalstone.scorers.context_recall import ContextRecall
from evalstone.scorers.context_relevance import ContextRelevance, Penalties
from evalstone.scorers.context_statement_relevancy import ContextStatementRelevancy
from evalstone.scorers.context_usage import ContextUsage
from evalstone.scorers.custom import (
    Classify,
    Criteria,
    CustomScorer,
    NotScorable,
    Pipeline,
    PromptStep,
    SoFar,
    not_scorable,
)
from evalstone.scorers.factual_correctness import FactualCorrectness
from evalstone.scorers.faithfulness import Faithfulness
from evalstone.scorers.hallucination import Hallucination
from evalstone.scorers.instruction_alignment import InstructionAlignment
from evalstone.scorers.keyword_coverage import KeywordCoverage
from evalstone.scorers.multi_turn_judge import MultiTurnJudge
from evalstone.scorers.noise_sensitivity import NoiseSensitivity
from evalstone.scorers.prompt_alignment import PromptAlignment
from evalstone.scorers.rouge_l import RougeL
from evalstone.scorers.rubric import Rubric
from evalstone.scorers.summarization import Summarization
from evalstone.scorers.textual_difference import TextualDifference
from evalstone.scorers.tone_consistency import ToneConsistency
from evalstone.scorers.tool_call_accuracy import ToolCallAccuracy
from evalstone.scorers.tool_call_appropriateness import ToolCallAppropriateness
from evalstone.scorers.toxicity import Toxicity
from evalstone.scorers.trajectory_accuracy import TrajectoryAccuracy
from evalstone.scorers.trajectory_judge import TrajectoryJudge
from evalstone.scorers.trajectory_quality import TrajectoryQuality, TrajectoryWeights

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
    "Classify",
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
    "Criteria",
    "Criterion",
    "CustomScorer",
    "FactualCorrectness",
    "Faithfulness",
    "Hallucination",
    "InstructionAlignment",
    "KeywordCoverage",
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
