"""The slices of a run on a terminal, in Markdown and in HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalstone.report.comparison import p_told, signed
from evalstone.report.markdown import literal_cell, prose, table
from evalstone.report.page import escaped
from evalstone.report.svg import interval_plot
from evalstone.report.terminal import safe
from evalstone.results.slices import ScorerSlices, SliceMean
from evalstone.stats.slices import SliceFinding

HEADER = ("n", "mean", "95 % interval", "against the rest", "p", "likely on repetition")
NOTE = (
    "p: that the slice is no worse than the rest, one-sided, adjusted by Holm over all slices of the scorer. Slices "
    "with fewer than five samples inside or outside are not tested."
)


def _cells(part: SliceMean, finding: SliceFinding | None, digits: int) -> tuple[str, ...]:
    low, high = part.interval.low, part.interval.high
    spread = "-" if low is None or high is None else f"{low:.{digits}f} to {high:.{digits}f}"
    numbers = (str(part.interval.n), f"{part.interval.mean:.{digits}f}", spread)
    if finding is None:
        return (*numbers, "-", "-", "-")
    gap = signed(finding.difference.mean, digits)
    return (*numbers, gap, p_told(finding.adjusted_p), f"{finding.shrunken:.{digits}f}")


def _worse(finding: SliceFinding | None) -> bool:
    return finding is not None and finding.adjusted_p <= 1 - finding.interval.confidence


def _rows(found: ScorerSlices) -> Iterator[tuple[SliceMean, SliceFinding | None, tuple[str, ...]]]:
    findings: Mapping[tuple[str, object], SliceFinding] = {(f.field, f.key): f for f in found.findings}
    digits = 3 if found.info.scale <= 1 else 2
    for part in found.means:
        finding = findings.get((part.field, part.key))
        yield part, finding, _cells(part, finding, digits)


def show_slices(all_found: Sequence[ScorerSlices], console: Console) -> None:
    """Print the slices of each scorer."""
    for found in all_found:
        console.print(Text(f"\nSlices: {found.title}", style="bold"))
        made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        made.add_column("slice")
        for title in HEADER:
            made.add_column(title, justify="right")
        made.add_column("")
        for part, finding, cells in _rows(found):
            verdict = Text("▼ worse", style="red") if _worse(finding) else Text("")
            made.add_row(Text(safe(f"{part.field}={part.key}", 60)), *cells, verdict)
        console.print(made)
    if all_found:
        console.print(Text(NOTE, style="dim"))


def slices_markdown(all_found: Iterable[ScorerSlices]) -> Iterator[str]:
    """The slices of each scorer as lines of Markdown."""
    for found in all_found:
        yield from ("", f"#### Slices: {prose(found.title)}", "")
        rows = (
            (literal_cell(f"{part.field}={part.key}", 60), *cells, "▼ worse" if _worse(finding) else "")
            for part, finding, cells in _rows(found)
        )
        yield from table(("slice", *HEADER, "verdict"), rows)
        yield from ("", f"<sub>{prose(NOTE)}</sub>")


def slices_html(all_found: Iterable[ScorerSlices]) -> Iterator[str]:
    """The slices of each scorer as a section of a page."""
    for found in all_found:
        yield f"<section><h2>Slices: {escaped(found.title)}</h2><div class='scroll'><table class='scores'><thead><tr>"
        heads = ("slice", "n", "mean", "95 % interval", "against the rest", "p", "likely on repetition")
        yield "".join(
            f"<th scope='col' class='{'word' if h in ('slice', '95 % interval') else 'number'}'>{h}</th>" for h in heads
        )
        yield "<th scope='col'></th></tr></thead><tbody>\n"
        for part, finding, cells in _rows(found):
            yield _row(part, cells, found.info.scale, worse=_worse(finding))
        yield f"</tbody></table></div><p class='note'>{escaped(NOTE)}</p></section>\n"


def _row(part: SliceMean, cells: Sequence[str], scale: float, *, worse: bool) -> str:
    n, mean, spread, gap, p_value, likely = cells
    interval = part.interval
    told = f"{part.field}={part.key}: mean {mean}, interval {spread}"
    plot = interval_plot(interval.mean, interval.low, interval.high, scale=scale, title=told)
    badge = "<span class='verdict bad'>▼ worse</span>" if worse else ""
    return (
        f"<tr><th scope='row'>{escaped(part.field)}={escaped(part.key)}</th><td class='number' data-label='n'>{n}</td>"
        f"<td class='number value'>{mean}</td><td>{plot}<span class='under'>{spread}</span></td>"
        f"<td class='number' data-label='against the rest'>{gap}</td><td class='number' data-label='p'>{p_value}</td>"
        f"<td class='number' data-label='likely on repetition'>{likely}</td><td>{badge}</td></tr>\n"
    )
