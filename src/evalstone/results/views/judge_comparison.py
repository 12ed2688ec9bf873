"""Several judges on the same labels as a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstone._core.display import limits, number, signed
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.report.notes import sentences_of
from evalstone.report.view import FOOTER, Cell, Column, Section, View, bare_judges, table, words
from evalstone.results.views.calibration import USES, agreement_by_slice

if TYPE_CHECKING:
    from evalstone.results.judge_comparison import JudgeComparison, JudgedJudge
    from evalstone.stats.intervals import Interval


_OF_ONE_JUDGE = ("same_family_labeled", "labels_used_to_align", "examples_not_counted", "labeled_without_score")
"""The notes that aren't on the labels that all judges have in common, and that their verdicts don't tell."""


def judge_comparison_view(comparison: JudgeComparison, front_end: FrontEnd = PYTHON) -> View:
    """A table with a row for each judge, under the advice, and each judge's agreement by slice."""
    from evalstone.results.measures import measure  # noqa: PLC0415 - only calibrations need their statistics

    first = comparison.calibrations[0]
    columns = (
        words("judge"),
        words("verdict"),
        Column("AUROC"),
        Column("95% CI", interval=True),
        Column("ECE"),
        Column("95% CI", interval=True),
        Column("accuracy"),
        Column("best - this"),
        Column("95% CI", interval=True),
        Column("threshold"),
        Column("$ per 1,000"),
        Column("s per sample"),
    )
    names = bare_judges(judge.judge for judge in comparison.judges)
    calibrations = {each.judge: each for each in comparison.calibrations}
    ordered = {names[judge.judge]: calibrations[judge.judge] for judge in comparison.judges}
    rows = [_row(names[judge.judge], judge) for judge in comparison.judges]
    notes = [
        "ECE: expected calibration error, 0 is best. Accuracy at the scorer's default threshold, on the same samples.",
        "Price and time of a sample that is asked anew: what its answers cost and took when they were given.",
    ]
    if len(rows) > 2:
        notes.append("The intervals of the differences are corrected for the number of judges.")
    if any(judge.cost is None or judge.seconds is None for judge in comparison.judges):
        notes.append("-: unknown.")
    return View(
        name=f"Judges on {first.dataset_name}",
        lead=f"{comparison.n} labeled samples · {first.scorer} · {len(rows)} judges",
        warnings=tuple(
            f"{name}: {sentence}"
            for name, each in ordered.items()
            for sentence in sentences_of([note for note in each.notes if note.kind in _OF_ONE_JUDGE], front_end)
        ),
        sections=(
            Section("Advice", tuple(sentences_of([comparison.advice], front_end))),
            Section("Judges", tables=(table("Judges compared", columns, rows),), notes=tuple(notes)),
            *(agreement_by_slice(slices, name) for name, each in ordered.items() if (slices := measure(each).slices)),
        ),
        footer=FOOTER,
    )


def _row(name: str, judge: JudgedJudge) -> list[Cell]:
    use, tone = USES[judge.use]
    return [
        Cell(name),
        Cell(use, tone),
        *_estimate(judge.auroc),
        *_estimate(judge.ece),
        Cell(number(judge.accuracy.estimate)),
        *_difference(judge.difference),
        Cell("-" if judge.threshold is None else number(judge.threshold)),
        Cell("-" if judge.cost is None else f"{judge.cost:.4g}"),
        Cell("-" if judge.seconds is None else f"{judge.seconds:.3g}"),
    ]


def _estimate(interval: Interval | None) -> tuple[Cell, Cell]:
    if interval is None or interval.low is None:
        return Cell(number(None if interval is None else interval.estimate)), Cell("")
    return Cell(number(interval.estimate)), Cell(limits(interval.low, interval.high))


def _difference(interval: Interval | None) -> tuple[Cell, Cell]:
    if interval is None:
        return Cell(""), Cell("")
    return Cell(signed(interval.estimate)), Cell(limits(interval.low, interval.high, sign=True))
