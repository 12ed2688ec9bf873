"""The embedded judge: offline, free and instant, and no more than word comparison."""

from evalstone.judges.embedded.judge import EmbeddedJudge

__all__ = ["EmbeddedJudge"]
