"""Judges: what can answer a question."""

from evalstone.judges.base import Judge
from evalstone.judges.embedded import EmbeddedJudge
from evalstone.judges.model import ModelJudge
from evalstone.judges.named import judge_from
from evalstone.judges.scripted import ReplayJudge, ScriptedJudge

__all__ = ["EmbeddedJudge", "Judge", "ModelJudge", "ReplayJudge", "ScriptedJudge", "judge_from"]
