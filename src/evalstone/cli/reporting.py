"""What `evalstone report` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalstone._core.json import to_jsonable
from evalstone.api import DEFAULT_LEDGER
from evalstone.cli.outputs import Outputs, deliver, lines
from evalstone.cli.screen import console
from evalstone.datasets import load
from evalstone.datasets.writing import json_line
from evalstone.errors import ConfigError
from evalstone.report.csv import run_csv
from evalstone.report.html import page
from evalstone.report.junit import run_junit
from evalstone.report.markdown import lines as markdown
from evalstone.report.run_view import run_view
from evalstone.report.terminal import show
from evalstone.results.calibration import calibration_for
from evalstone.results.files import with_data
from evalstone.results.human_labels import PPIResult, RoganGladenResult, corrected, corrected_share, load_labels
from evalstone.results.run import Run
from evalstone.results.slices import ScorerSlices, slices
from evalstone.run.saved import read_run

OK, FAILED = 0, 3
PAGE_WORST = 10
"""How many of the worst samples a page shows at least, for it has room for them."""


@dataclass(frozen=True)
class View:
    """What of a run is looked at: how many of the worst samples, which slices, which human labels.

    calibrations: the ledger beside which the judge's calibrations are, if shares are to be corrected by them.
    """

    worst: int = 3
    by: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    calibrations: str | None = None


def found_run(name: str, ledger: str | None, data: str | None = None) -> Run:
    """The run of that name, with its samples at hand where `data` holds them."""
    run = read_run(name, ledger=ledger or DEFAULT_LEDGER)
    return run if data is None else with_data(run, load(data))


def report(run: Run, view: View, outputs: Outputs) -> int:
    """Show a run again, or write it; the exit code says whether outcomes failed."""
    scores = [*(_corrected(run, text) for text in view.labels), *_shares(run, view.calibrations)]
    found = slices(run, view.by) if view.by else ()
    deliver(outputs, _made(run, view, scores, found))
    if not outputs.wanted:
        show(run_view(run, worst=view.worst, corrected=scores, slices=found), console())
    return FAILED if run.failed or not run.complete else OK


def _corrected(run: Run, text: str) -> PPIResult:
    """What `--labels SCORER=FILE` asks for; without a scorer it is the only one of the run."""
    scorer, equals, file = text.rpartition("=")
    if not equals and len(run.scorers) != 1:
        known = ", ".join(run.titles.values())
        raise ConfigError(f"--labels takes SCORER=FILE in a run of several scorers ({known}), not {text!r}")
    name = scorer or next(iter(run.titles.values()))
    return corrected(run, name, load_labels(run, name, file))


def _shares(run: Run, place: str | None) -> list[RoganGladenResult]:
    """The shares of those scorers that the judge has a calibration with."""
    if place is None:
        return []
    known = [(info, calibration_for(run.judge, info.signature, place)) for info in run.scorers]
    found = [corrected_share(run, info.signature, one) for info, one in known if one is not None]
    if not found:
        raise ConfigError(f"{run.judge} has no calibration with a scorer of this run; evalstone calibrate makes one")
    return found


def _made(
    run: Run, view: View, scores: Sequence[PPIResult | RoganGladenResult], found: Sequence[ScorerSlices]
) -> Mapping[str, Callable[[], Iterable[str]]]:
    def as_json() -> Iterable[str]:
        more = {"corrected": to_jsonable(list(scores))} if view.labels or view.calibrations else {}
        sliced = {"slices": to_jsonable(list(found))} if view.by else {}
        return lines([json_line({**run.to_dict(), **more, **sliced})])

    return {
        "html": lambda: page(run_view(run, worst=max(view.worst, PAGE_WORST), corrected=scores, slices=found)),
        "markdown": lambda: lines(markdown(run_view(run, worst=view.worst, corrected=scores, slices=found))),
        "csv": lambda: run_csv(run),
        "json": as_json,
        "junit": lambda: run_junit(run),
    }
