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
from evalstone.report.comparison_view import comparison_view, drift_view
from evalstone.report.csv import comparison_csv
from evalstone.report.html import page
from evalstone.report.markdown import lines as markdown
from evalstone.report.terminal import show
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
    view = comparison_view(compared, most=way.most)
    deliver(
        outputs,
        {
            "html": lambda: page(view),
            "markdown": lambda: lines(markdown(view)),
            "csv": lambda: comparison_csv(compared),
            "json": lambda: lines([json_line(compared.to_dict())]),
        },
    )
    if not outputs.wanted:
        show(view, console())
    return OK


def drift(names: Sequence[str], ledger: str | None, outputs: Outputs, way: Way) -> int:
    """Hold the same anchors, judged then and now, against each other; the exit code."""
    if way.by or way.anyway or way.adjustment != "holm":
        raise ConfigError("--anchor goes without --by, --anyway and --adjust: it looks at the same samples as a whole")
    if len(names) != 2:
        raise ConfigError(f"--anchor takes two runs, the earlier one first, not {len(names)}")
    before, now = (found_run(name, ledger) for name in names)
    found = judge_drift(before, now)
    view = drift_view(found)
    deliver(
        outputs,
        {
            "html": lambda: page(view),
            "markdown": lambda: lines(markdown(view)),
            "json": lambda: lines([json_line(found.to_dict())]),
        },
    )
    if not outputs.wanted:
        show(view, console())
    return DRIFTED if found.drifted else OK
