"""The lexical judge: offline, free and instant, and no more than word comparison."""

from evalstone.judges.lexical.judge import LexicalJudge

__all__ = ["LexicalJudge"]
