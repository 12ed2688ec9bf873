"""The drift of a judge on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalstone.report.comparison import p_told, signed
from evalstone.report.terminal import safe
from evalstone.results.drift import ScorerDrift
from evalstone.results.run import Run

STYLES = {"drifted": "red", "stable": "green", "unclear": "yellow"}


def show_drift(before: Run, now: Run, found: Sequence[ScorerDrift], console: Console) -> None:
    """Print whether a judge's scores of the same anchors moved."""
    for name, run in (("then", before), ("now ", now)):
        told = f"{run.dataset_name}, {run.samples} samples, judged by {run.judge}, run {run.id}"
        console.print(Text.assemble((name, "bold"), "  ", safe(told, 600)))
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    made.add_column("scorer")
    for title in ("then", "now", "change", "95 % interval", "p", "moved", "largest"):
        made.add_column(title, justify="right")
    made.add_column("the judge has")
    for one in found:
        drift, result = one.drift, one.drift.comparison
        low, high = result.difference.low, result.difference.high
        made.add_row(
            Text(one.title),
            f"{result.mean_a:.3f}",
            f"{result.mean_b:.3f}",
            signed(result.difference.mean),
            "-" if low is None or high is None else f"{signed(low)} to {signed(high)}",
            p_told(result.p_value),
            f"{drift.moved:.0%}",
            f"{drift.largest_change:.3f}",
            Text(drift.verdict, style=STYLES[drift.verdict]),
        )
    console.print(made)
    told = "Stable: the interval lies within a fiftieth of the scale. Unclear: too few anchors to say either."
    console.print(Text(told, style="dim"))
    for one in found:
        if one.unpaired:
            told = f"{one.title}: anchors with a score in one run only are left out: {one.unpaired}"
            console.print(Text(told, style="dim"))
