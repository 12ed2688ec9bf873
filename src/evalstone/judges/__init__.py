"""Judges: what can answer a question."""

from evalstone.judges.base import Judge
from evalstone.judges.cascade import Cascade
from evalstone.judges.fitting import CascadeFit, LabelledQuestion
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.logging import LoggingJudge
from evalstone.judges.model import ModelJudge
from evalstone.judges.panel import Panel
from evalstone.judges.parse import parse_judge
from evalstone.judges.providers.limits import Limits
from evalstone.judges.scripted import ReplayJudge, ScriptedJudge
from evalstone.judges.self_consistency import SelfConsistency

__all__ = [
    "Cascade",
    "CascadeFit",
    "Judge",
    "LabelledQuestion",
    "LexicalJudge",
    "Limits",
    "LoggingJudge",
    "ModelJudge",
    "Panel",
    "ReplayJudge",
    "ScriptedJudge",
    "SelfConsistency",
    "parse_judge",
]
