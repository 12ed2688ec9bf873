"""Judges: what can answer a question."""

from evalstone.judges.base import Judge
from evalstone.judges.scripted import ReplayJudge, ScriptedJudge

__all__ = ["Judge", "ReplayJudge", "ScriptedJudge"]
