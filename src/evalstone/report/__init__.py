"""Reports: what a run shows of itself, on a terminal and in files."""

from evalstone.report.terminal import show_run

__all__ = ["show_run"]
