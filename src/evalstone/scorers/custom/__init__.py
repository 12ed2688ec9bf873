"""Scorers that are made of data and functions, without a class of their own."""

from evalstone.scorers.custom.base import CustomScorer
from evalstone.scorers.custom.geval import GEval, Marked
from evalstone.scorers.custom.llm_classifier import LLMClassifier
from evalstone.scorers.custom.pipeline import Pipeline
from evalstone.scorers.custom.steps import NotScorable, PromptStep, SoFar, StepResult, not_scorable

__all__ = [
    "CustomScorer",
    "GEval",
    "LLMClassifier",
    "Marked",
    "NotScorable",
    "Pipeline",
    "PromptStep",
    "SoFar",
    "StepResult",
    "not_scorable",
]
