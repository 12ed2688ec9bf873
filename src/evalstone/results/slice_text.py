"""The slices of a run as text: a table with one row per slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import aligned, digits_for, limits, number, p_value, signed, tests_used, visible

if TYPE_CHECKING:
    from evalstone.results.slices import ScorerSlices
    from evalstone.results.summary import ScorerInfo
    from evalstone.stats.slices import SliceFinding

WORSE = "▼ worse"


def slices_of_run_text(result: ScorerSlices) -> str:
    """The table of one scorer's slices, the slices that are worse, and how to read both."""
    findings = {(finding.field, finding.key): finding for finding in result.findings}
    level = f"{100 * result.means[0].interval.confidence:g}%"
    title, mean = f"{result.title} by slice", "weighted mean" if result.weighted else "mean"
    difference = "vs. other samples", f"{level} CI of the difference"
    rows: list[tuple[str, ...]] = [(title, "n", mean, f"{level} CI", *difference, "p", "shrunken estimate", "verdict")]
    for part in result.means:
        finding, digits, interval = findings.get((part.field, part.key)), digits_for(result.info.scale), part.interval
        spread = limits(interval.low, interval.high, digits)
        rows.append(
            (
                f"{part.field}={part.key}",
                f"{interval.n:,}",
                number(interval.mean, digits),
                spread,
                *finding_cells(finding, result.info),
                WORSE if is_worse(finding) else "",
            )
        )
    lead, note = slice_lead([result]), slice_note([result])
    return visible("\n".join([*lead, "", *aligned(rows, words=(title, "verdict"), drop_empty=True), "", note]))


def finding_cells(finding: SliceFinding | None, info: ScorerInfo) -> tuple[str, str, str, str]:
    """The difference from the other samples with its interval and p-value, and the shrunken mean."""
    if finding is None:
        return "-", "-", "-", "-"
    difference, digits = finding.difference, digits_for(info.scale)
    interval = limits(difference.low, difference.high, digits, sign=True)
    return signed(difference.mean, digits), interval, p_value(finding.adjusted_p), number(finding.shrunken, digits)


def is_worse(finding: SliceFinding | None) -> bool:
    """Whether a slice is significantly worse than the other samples."""
    return finding is not None and finding.adjusted_p <= 1 - finding.interval.confidence


def slice_lead(results: Sequence[ScorerSlices]) -> list[str]:
    """A sentence on each slice that is significantly worse, or one that none is."""
    return [
        f"{result.title}, {finding.field}={finding.key}: worse than the other samples by "
        f"{number(abs(finding.difference.mean), digits_for(result.info.scale))} "
        f"(n = {finding.n}, p {p_value(finding.adjusted_p)})."
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
