"""The sections of a report on means and pass rates corrected with human labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import count, digits_for, limits, number, signed
from evalstone._core.front_ends import FrontEnd
from evalstone.report.notes import sentences_of
from evalstone.report.view import Cell, Column, Section, Table, interval_cells, table, words
from evalstone.results.corrections import LABELS_OF_SLICE, PPIResult, RoganGladenResult
from evalstone.results.views.comparison import more_labels
from evalstone.stats.intervals import Interval
from evalstone.types import of_scorer

if TYPE_CHECKING:
    pass


def corrected_section(result: PPIResult | RoganGladenResult, front_end: FrontEnd) -> Section:
    """A corrected mean or pass rate, next to the judge's."""
    if isinstance(result, RoganGladenResult):
        title = f"Pass rate at {result.threshold:g}, corrected by the calibration: {result.title}"
        rows, scale = list(_rate_rows(result)), 1.0
        method = (
            "Corrected by the Rogan-Gladen estimator. It assumes that the run's samples are like the calibration's, so "
            "that the judge makes the same errors on both."
        )
    else:
        title = f"Corrected by human labels: {result.title}"
        rows, scale = list(_mean_rows(result)), result.info.scale
        method = (
            "Corrected by prediction-powered inference (PPI++), stratified by the judge's score. It assumes that the "
            "labeled samples are a random choice within each stratum, which is how evalstone annotate selects them."
        )
    columns = (words("estimate"), Column("mean"), Column("95% CI", numeric=False, interval=True), words("based on"))
    cells = [
        (name, *interval_cells(f"{result.title}, {name}", interval, scale), basis) for name, interval, basis in rows
    ]
    notes = [f"{result.title}: {text}." for text in _judge_error(result)]
    notes += sentences_of(result.notes, front_end)
    notes += sentences_of(of_scorer(result.result.notes, result.title), front_end)
    tables = [table(title, columns, cells)]
    if isinstance(result, PPIResult) and result.slices:
        tables.append(_corrected_slices(result))
        if any(part.result.estimate is None for part in result.slices):
            notes.append(f"{result.title}: a slice with fewer than {LABELS_OF_SLICE} labels has no corrected mean.")
    return Section(title, tables=tuple(tables), notes=(*notes, method))


def _corrected_slices(result: PPIResult) -> Table:
    """The corrected means by slice, next to the judge's."""
    columns = (
        words("slice"),
        Column("judge only"),
        Column("corrected"),
        Column("95% CI", numeric=False, interval=True),
        Column("labels"),
        Column("n"),
    )
    digits = digits_for(result.info.scale)
    rows: list[Sequence[Cell]] = []
    for part in result.slices:
        name, ppi = f"{part.field}={part.key}", part.result
        raw = "-" if ppi.raw is None else number(ppi.raw.estimate, digits)
        corrected = interval_cells(f"{result.title}, {name}", ppi.estimate, result.info.scale)
        if ppi.estimate is None:
            corrected = Cell("-"), Cell("too few labels", "dim")
        rows.append((Cell(name, quoted=True), Cell(raw), *corrected, Cell(f"{ppi.labeled:,}"), Cell(f"{ppi.n:,}")))
    return table(f"Corrected by human labels, by slice: {result.title}", columns, rows)


def _rate_rows(result: RoganGladenResult) -> Iterator[tuple[str, Interval | None, str]]:
    rate = result.result
    yield "corrected", rate.rate, "the judge's scores and its calibration"
    yield "judge only", rate.raw, "the judge's scores"
    for name, interval in (("sensitivity (TPR)", rate.sensitivity), ("specificity (TNR)", rate.specificity)):
        yield name, interval, "no labels" if interval is None else count(interval.n, "label")


def _mean_rows(result: PPIResult) -> Iterator[tuple[str, Interval | None, str]]:
    ppi = result.result
    labels = count(ppi.labeled, "label")
    yield "corrected", ppi.estimate, f"{labels} and {count(ppi.n, 'score')}"
    yield "judge only", ppi.raw, count(ppi.n, "score")
    yield "labels only", ppi.human, labels


def _judge_error(result: PPIResult | RoganGladenResult) -> Iterator[str]:
    if isinstance(result, PPIResult) and result.result.bias is not None:
        bias, digits = result.result.bias, digits_for(result.info.scale)
        interval = f"{100 * bias.confidence:g}% CI {limits(bias.low, bias.high, digits, sign=True)}"
        yield f"the judge's score differs from the labels by {signed(bias.estimate, digits)} on average ({interval})"
        if text := more_labels(result.result, result.info.scale):
            yield text
