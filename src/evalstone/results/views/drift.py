"""The drift of a judge as a view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import by_text, digits_for, listed, number, p_value, percent, percents, tests_used
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.report.notes import clause_of
from evalstone.report.view import FOOTER, Cell, Column, Section, Tone, View, table, words
from evalstone.results.run_notes import sample_notes
from evalstone.results.views.comparison import difference_cells, left_out, never_scored, reach_of, run_fact

if TYPE_CHECKING:
    from evalstone.results.drift import DriftResult, ScorerDrift

DRIFT: Mapping[str, tuple[str, Tone]] = {
    "drifted": ("drifted", "bad"),
    "stable": ("stable", "good"),
    "inconclusive": ("inconclusive", "unsure"),
}


def drift_view(result: DriftResult, _: FrontEnd = PYTHON) -> View:
    """Whether a judge's scores of the same anchors changed."""
    level = f"{100 * result.confidence:g}% CI"
    columns = (
        words("scorer"),
        *map(Column, ("n", "before", "now", "change")),
        Column(level, numeric=False, interval=True),
        *map(Column, ("p", "changed")),
        Column(level, interval=True),
        Column("largest change"),
        words("drift"),
    )
    reach = reach_of((one.info.scale, one.drift.comparison) for one in result.scorers)
    rows = [_drift_row(one, reach[one.info.scale]) for one in result.scorers]
    scores = table("Scores of the same anchors, then and now", columns, rows)
    runs = {"Before": result.before, "Now": result.now}
    return View(
        name="Judge drift",
        lead=listed(dict.fromkeys(run.dataset_name for run in runs.values())),
        sections=(Section("Drift", tables=(scores,), notes=tuple(drift_notes(result))),),
        facts=tuple(run_fact(name, run) for name, run in runs.items()),
        footer=FOOTER,
    )


def _drift_row(one: ScorerDrift, reach: float) -> Sequence[Cell]:
    result, (verdict, tone) = one.drift.comparison, DRIFT[one.verdict]
    mark: Tone = "unsure" if tone == "bad" else "dim"  # drift is neither better nor worse
    return (
        Cell(one.title),
        Cell(f"{result.n:,}"),
        *difference_cells(one, result, "change", verdict, mark, reach),
        Cell(p_value(one.adjusted_p_value), under=f"unadjusted {p_value(one.p_value)}"),
        Cell(percent(one.drift.changed.estimate)),
        Cell(percents(one.drift.changed.low, one.drift.changed.high)),
        Cell(number(one.drift.largest_change, digits_for(one.info.scale))),
        Cell(verdict, tone),
    )


def drift_notes(result: DriftResult) -> Iterator[str]:
    """The tests, what the verdicts mean, and which anchors are left out or clustered."""
    scorers, confidence = result.scorers, result.confidence
    tolerances = dict.fromkeys(f"{one.drift.tolerance:g}" for one in scorers)
    adjusted = f", Holm-adjusted over {len(scorers)} scorers" if len(scorers) > 1 else ""
    weighted = any(one.difference.effective is not None for one in scorers)
    tests: dict[str, list[str]] = {}
    for one in scorers:
        test = one.drift.test.name
        if one.difference.effective is not None:
            test = "test of the weighted mean change"
        elif test.startswith("Wilcoxon"):
            test += " of whether scores before and now are interchangeable, as those of an unchanged judge are"
        tests.setdefault(test, []).append(one.title)
    yield (
        f"p: {tests_used(tests)}{adjusted}. Drifted: p is at most {1 - confidence:.3g}. "
        f"Stable: the interval of the mean change is within ±{' or '.join(tolerances)}. Inconclusive: too few "
        f"anchors to tell. Changed: the {'weighted ' if weighted else ''}share of anchors whose score changed."
    )
    about = ((one.title, text) for one in scorers for text in _about_anchors(one))
    yield from by_text(about, len(scorers), "All scorers")


def _about_anchors(one: ScorerDrift) -> Iterator[str]:
    yield from (f"{clause_of(note)}." for note in sample_notes(one.difference))
    if one.unpaired:
        yield left_out(one.unpaired, "anchor")
    if one.unscored:
        yield never_scored(one.unscored, one.of_both, "anchor")
