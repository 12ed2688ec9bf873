"""Scorers that are made of data and functions, without a class of their own."""

from evalstone.scorers.custom.base import CustomScorer
from evalstone.scorers.custom.classify import Classify
from evalstone.scorers.custom.criteria import Criteria, Marked
from evalstone.scorers.custom.pipeline import Pipeline
from evalstone.scorers.custom.steps import NotScorable, PromptStep, SoFar, StepResult, not_scorable

__all__ = [
    "Classify",
    "Criteria",
    "CustomScorer",
    "Marked",
    "NotScorable",
    "Pipeline",
    "PromptStep",
    "SoFar",
    "StepResult",
    "not_scorable",
]
