"""Means and pass rates that are corrected by human labels, as a part of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import count, digits_for, limits, number, signed
from evalstone.report.view import Cell, Column, Section, Table, interval_cells, table, words
from evalstone.results.human_labels import LABELS_OF_SLICE, PPIResult, RoganGladenResult
from evalstone.stats.intervals import Interval

if TYPE_CHECKING:
    from evalstone.stats.ppi import PPIEstimate


def corrected_section(result: PPIResult | RoganGladenResult) -> Section:
    """A mean or a pass rate, corrected by labels, beside the judge's."""
    if isinstance(result, RoganGladenResult):
        title = f"Pass rate at {result.threshold:g}, corrected by the calibration: {result.title}"
        rows = list(_rate_rows(result))
        scale, said = 1.0, (*result.notes, result.result.caution)
        method = (
            "Corrected by the Rogan-Gladen estimator. It assumes that the run's samples are like the calibration's, so "
            "that the judge makes the same errors on both."
        )
    else:
        title = f"Corrected by human labels: {result.title}"
        rows = list(_mean_rows(result))
        scale, said = result.info.scale, (*result.notes, result.result.caution)
        method = (
            "Corrected by prediction-powered inference (PPI++), stratified by the judge's score. It assumes that the "
            "labeled samples are a random choice within each stratum, as evalstone annotate makes it."
        )
    columns = (words("estimate"), Column("mean"), words("95% CI"), words("based on"))
    cells = [
        (name, *interval_cells(f"{result.title}, {name}", interval, scale), basis) for name, interval, basis in rows
    ]
    notes = [f"{result.title}: {text}." for text in (*_judge_error(result), *said) if text]
    tables = [table(title, columns, cells)]
    if isinstance(result, PPIResult) and result.slices:
        tables.append(_corrected_slices(result))
        if any(part.result.estimate is None for part in result.slices):
            notes.append(f"{result.title}: a slice with fewer than {LABELS_OF_SLICE} labels has no corrected mean.")
    return Section(title, tables=tuple(tables), notes=(*notes, method))


def _corrected_slices(result: PPIResult) -> Table:
    """The corrected means by slice, beside the judge's."""
    columns = (
        words("slice"),
        Column("judge only"),
        Column("corrected"),
        words("95% CI"),
        Column("labels"),
        Column("n"),
    )
    digits = digits_for(result.info.scale)
    rows: list[Sequence[Cell]] = []
    for part in result.slices:
        name, found = f"{part.field}={part.key}", part.result
        raw = "-" if found.raw is None else number(found.raw.mean, digits)
        corrected = interval_cells(f"{result.title}, {name}", found.estimate, result.info.scale)
        if found.estimate is None:
            corrected = Cell("-"), Cell("too few labels", "dim")
        rows.append((Cell(name, quoted=True), Cell(raw), *corrected, Cell(f"{found.labeled:,}"), Cell(f"{found.n:,}")))
    return table(f"Corrected by human labels, by slice: {result.title}", columns, rows)


def _rate_rows(result: RoganGladenResult) -> Iterator[tuple[str, Interval | None, str]]:
    rate = result.result
    yield "corrected", rate.rate, "the judge's scores and its calibration"
    yield "judge only", rate.raw, "the judge's scores"
    for name, interval in (("sensitivity (TPR)", rate.sensitivity), ("specificity (TNR)", rate.specificity)):
        yield name, interval, "no labels" if interval is None else count(interval.n, "label")


def _mean_rows(result: PPIResult) -> Iterator[tuple[str, Interval | None, str]]:
    found = result.result
    labels = count(found.labeled, "label")
    yield "corrected", found.estimate, f"{labels} and {count(found.n, 'score')}"
    yield "judge only", found.raw, count(found.n, "score")
    yield "labels only", found.human, labels


def _judge_error(result: PPIResult | RoganGladenResult) -> Iterator[str]:
    if isinstance(result, PPIResult) and result.result.bias is not None:
        off, digits = result.result.bias, digits_for(result.info.scale)
        between = f"{100 * off.confidence:g}% CI {limits(off.low, off.high, digits, sign=True)}"
        yield f"by the labels, the judge's score is off by {signed(off.mean, digits)} on average ({between})"
        if text := more_labels(result.result, result.info.scale):
            yield text


def more_labels(found: PPIEstimate, scale: float) -> str:
    """What as many labels again would bring; "" where nothing is known or all are labeled."""
    if found.doubled is None or found.estimate is None:
        return ""
    low, high, digits = found.estimate.low or 0.0, found.estimate.high or 0.0, digits_for(scale)
    now, then = number((high - low) / 2, digits), number(found.doubled, digits)
    return f"about {count(found.labeled, 'more label')} would narrow ± {now} to ± {then}"
