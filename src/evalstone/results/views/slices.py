"""The slices of a run as a view: a table for each scorer, and the slices that are worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstone._core.display import digits_for, limits, listed, number, p_value, signed, tests_used
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.report.view import Cell, Column, Section, Table, View, interval_cells, table, words

if TYPE_CHECKING:
    from evalstone.results.slices import ScorerSlices, SliceMean
    from evalstone.results.summary import ScorerInfo
    from evalstone.stats.slices import SliceFinding

WORSE = "▼ worse"


def slices_view(result: ScorerSlices, _: FrontEnd = PYTHON) -> View:
    """The slices of one scorer."""
    section = replace(slices_section([result]), folded=False)
    return View(name=section.title, lead="", sections=(section,))


def slices_section(results: Sequence[ScorerSlices]) -> Section:
    """The slices of scorers, folded where that is possible."""
    titles = listed(result.title for result in results)
    lead, notes = tuple(slice_lead(results)), (slice_note(results),)
    return Section(f"Slices: {titles}", lead, tuple(map(_slice_table, results)), notes=notes, folded=True)


def _slice_table(result: ScorerSlices) -> Table:
    findings = {(finding.field, finding.key): finding for finding in result.findings}
    level = f"{100 * result.means[0].interval.confidence:g}%"
    columns = (
        words(f"{result.title} by slice"),
        Column("n", informative=False),
        Column("weighted mean" if result.weighted else "mean", csv="mean"),
        Column(f"{level} CI", numeric=False, interval=True),
        Column("vs. other samples"),
        Column(f"{level} CI of the difference", numeric=False, interval=True),
        Column("p", informative=False),
        Column("shrunken estimate"),
        words("verdict"),
    )
    rows = [_slice_row(part, findings.get((part.field, part.key)), result.info) for part in result.means]
    return table(f"{result.title} by slice", columns, rows)


def _slice_row(part: SliceMean, finding: SliceFinding | None, info: ScorerInfo) -> Sequence[Cell | str]:
    name, worse = f"{part.field}={part.key}", is_worse(finding)
    change, interval, p, shrunken = map(Cell, finding_cells(finding, info))
    if finding is not None:
        p = replace(p, under=f"unadjusted {p_value(finding.p_value)}")
    return (
        Cell(name, quoted=True),
        f"{part.interval.n:,}",
        *interval_cells(name, part.interval, info.scale, info.lower_is_better),
        *(change, interval, p, shrunken),
        Cell(WORSE, "bad") if worse else "",
    )


def finding_cells(finding: SliceFinding | None, info: ScorerInfo) -> tuple[str, str, str, str]:
    """The difference from the other samples with its interval and p-value, and the shrunken mean."""
    if finding is None:
        return "-", "-", "-", "-"
    difference, digits = finding.difference, digits_for(info.scale)
    interval = limits(difference.low, difference.high, digits, sign=True)
    return (
        signed(difference.estimate, digits),
        interval,
        p_value(finding.adjusted_p_value),
        number(finding.shrunken, digits),
    )


def is_worse(finding: SliceFinding | None) -> bool:
    """Whether a slice is significantly worse than the other samples."""
    return finding is not None and finding.adjusted_p_value <= 1 - finding.interval.confidence


def slice_lead(results: Sequence[ScorerSlices]) -> list[str]:
    """A sentence on each slice that is significantly worse, or one that none is."""
    return [
        f"{result.title}, {finding.field}={finding.key}: worse than the other samples by "
        f"{number(abs(finding.difference.estimate), digits_for(result.info.scale))} "
        f"(n = {finding.n}, p {p_value(finding.adjusted_p_value)})."
        for result in results
        for finding in result.findings
        if is_worse(finding)
    ] or ["No slice is significantly worse than the other samples."]


def slice_note(results: Sequence[ScorerSlices]) -> str:
    """How p-values, intervals and shrunken estimates are computed."""
    tests: dict[str, list[str]] = {}
    for result in results:
        weighted = "test of whether the slice's weighted mean is worse than that of the other samples"
        plain = "permutation test of whether the slice is worse than the other samples"
        tests.setdefault(weighted if result.weighted else plain, []).append(result.title)
    return (
        f"p: one-sided {tests_used(tests)}, Holm-adjusted over all slices and scorers. Slices with fewer than five "
        "samples inside or outside are not tested. The intervals are corrected for the number of slices, so that of "
        "the worst one holds too. Shrunken estimate: the mean shrunk toward the other slices, which better predicts "
        "the result of a repetition."
    )
