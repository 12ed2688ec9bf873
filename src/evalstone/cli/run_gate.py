"""What `evalstone run --gate` adds to a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from evalstone.results.run import Run
from evalstone.run.budget import StopSignal
from evalstone.run.plan import Plan

if TYPE_CHECKING:
    from evalstone.run.sequential import RunGate

OK, FAIL, FAILED, INCONCLUSIVE = 0, 1, 3, 4


def run_gate(plan: Plan, bars: Mapping[str, float], stop: StopSignal) -> RunGate:
    """The gate that watches a run."""
    from evalstone.run.sequential import RunGate  # noqa: PLC0415 - numpy, which only a gate needs

    return RunGate(plan, bars, stop)


def gate_code(watch: RunGate, result: Run, screen: Console) -> int:
    """Show where the gate of a run stands; the exit code."""
    from evalstone.report.comparison_view import decisions_view  # noqa: PLC0415
    from evalstone.report.terminal import show  # noqa: PLC0415
    from evalstone.run.sequential import DECIDED  # noqa: PLC0415

    screen.print()
    show(decisions_view(watch.decisions()), screen)
    told = (
        "Looked at after every sample; the chance of a wrong pass, and of a wrong fail, is at most 5 % however it ends."
    )
    screen.print(Text(told, style="dim"))
    if watch.verdict == "inconclusive":
        return INCONCLUSIVE
    whole = result.complete or result.stop_reason == DECIDED
    return FAIL if watch.verdict == "fail" else OK if whole and not result.failed else FAILED
