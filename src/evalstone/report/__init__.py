"""Reports: what a run shows of itself, on a terminal and in files."""

from evalstone.report.files import read_run, write_run
from evalstone.report.terminal import show_run

__all__ = ["read_run", "show_run", "write_run"]
