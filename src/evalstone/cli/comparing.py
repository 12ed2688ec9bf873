"""What `evalstone compare` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from evalstone.cli.outputs import Outputs, deliver, lines
from evalstone.cli.reporting import found_run
from evalstone.cli.screen import console
from evalstone.datasets.writing import json_line
from evalstone.errors import ConfigError
from evalstone.report.comparison import comparison_csv, comparison_markdown, show_comparison
from evalstone.report.comparison_html import comparison_page
from evalstone.report.drift import show_drift
from evalstone.results.compare import Correction
from evalstone.results.compare import compare as compare_runs
from evalstone.results.drift import judge_drift

OK, DRIFTED = 0, 1


@dataclass(frozen=True)
class Way:
    """How runs are compared: slices, whether they may differ, the adjustment, how many changed samples are shown."""

    by: tuple[str, ...]
    anyway: bool
    adjustment: str
    most: int


def compare(names: Sequence[str], ledger: str | None, outputs: Outputs, way: Way) -> int:
    """Compare runs and show or write the result; the exit code."""
    if len(names) < 2:
        raise ConfigError(f"a comparison takes two runs or more, not {len(names)}")
    runs = [found_run(name, ledger) for name in names]
    made = compare_runs(
        *runs, slice_by=way.by, allow_mismatch=way.anyway, correction=cast("Correction", way.adjustment)
    )
    compared = replace(made, names=dict(zip(made.runs, names, strict=True)))
    deliver(
        outputs,
        {
            "html": lambda: comparison_page(compared, most=way.most),
            "markdown": lambda: lines(comparison_markdown(compared, most=way.most)),
            "csv": lambda: comparison_csv(compared),
            "json": lambda: lines([json_line(compared.to_dict())]),
        },
    )
    if not outputs.wanted:
        show_comparison(compared, console(), most=way.most)
    return OK


def drift(names: Sequence[str], ledger: str | None, outputs: Outputs, way: Way) -> int:
    """Hold the same anchors, judged then and now, against each other; the exit code."""
    if way.by or way.anyway or way.adjustment != "holm":
        raise ConfigError("--anchor goes without --by, --anyway and --adjust: it looks at the same samples as a whole")
    if len(names) != 2:
        raise ConfigError(f"--anchor takes two runs, the earlier one first, not {len(names)}")
    before, now = (found_run(name, ledger) for name in names)
    found = judge_drift(before, now)
    deliver(outputs, {"json": lambda: lines([json_line(found.to_dict())])})
    if not outputs.wanted:
        show_drift(before, now, found.scorers, console())
    return DRIFTED if found.drifted else OK
