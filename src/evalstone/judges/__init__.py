"""Judges: what can answer a question."""

from evalstone.judges.base import Judge
from evalstone.judges.cascade import Cascade
from evalstone.judges.consistent import Consistent
from evalstone.judges.embedded import EmbeddedJudge
from evalstone.judges.fitting import CascadeFit, LabelledQuestion
from evalstone.judges.model import ModelJudge
from evalstone.judges.named import judge_from
from evalstone.judges.panel import Panel
from evalstone.judges.scripted import ReplayJudge, ScriptedJudge
from evalstone.judges.wrapped import Limited, Logged

__all__ = [
    "Cascade",
    "CascadeFit",
    "Consistent",
    "EmbeddedJudge",
    "Judge",
    "LabelledQuestion",
    "Limited",
    "Logged",
    "ModelJudge",
    "Panel",
    "ReplayJudge",
    "ScriptedJudge",
    "judge_from",
]
