"""Means corrected by human labels, beside the judge's own, on a terminal, in Markdown and in HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalstone.report.comparison import signed
from evalstone.report.markdown import prose, table
from evalstone.report.page import escaped
from evalstone.report.svg import interval_plot
from evalstone.results.human_labels import PPIResult, RoganGladenResult
from evalstone.stats.intervals import Interval

HEADER = ("mean", "95 % interval", "rests on")


def _rows(score: PPIResult | RoganGladenResult) -> Iterator[tuple[str, Interval | None, str]]:
    if isinstance(score, RoganGladenResult):
        rate = score.result
        yield "corrected", rate.rate, "the judge's scores and its calibration"
        yield "judge alone", rate.raw, "the judge's scores"
        yield "right on yes", rate.sensitivity, _labels(rate.sensitivity)
        yield "right on no", rate.specificity, _labels(rate.specificity)
        return
    result = score.result
    yield "corrected", result.estimate, f"{result.labelled} labels and {result.n} scores"
    yield "judge alone", result.raw, f"{result.n} scores"
    yield "labels alone", result.human, f"{result.labelled} labels"


def _labels(interval: Interval | None) -> str:
    return "no labels" if interval is None else f"{interval.n} labels"


def _title(score: PPIResult | RoganGladenResult) -> str:
    if isinstance(score, RoganGladenResult):
        return f"Share at {score.threshold:g} or more, corrected by the calibration: {score.title}"
    return f"Corrected by human labels: {score.title}"


def _cells(interval: Interval | None, digits: int) -> tuple[str, str]:
    if interval is None:
        return "-", "-"
    low, high = interval.low, interval.high
    spread = "-" if low is None or high is None else f"{low:.{digits}f} to {high:.{digits}f}"
    return f"{interval.mean:.{digits}f}", spread


def _scale(score: PPIResult | RoganGladenResult) -> float:
    return 1.0 if isinstance(score, RoganGladenResult) else score.info.scale


def _digits(score: PPIResult | RoganGladenResult) -> int:
    return 3 if _scale(score) <= 1 else 2


def notes(score: PPIResult | RoganGladenResult) -> Iterator[str]:
    """What the labels say of the judge, and what a reader must know."""
    if isinstance(score, RoganGladenResult):
        yield from (f"{score.title}: {told}." for told in (*score.notes, *filter(None, [score.result.caution])))
        yield (
            "Corrected: Rogan and Gladen's estimator. It holds where the calibration's samples are like those of the "
            "run, and the judge errs on them as it does here."
        )
        return
    result = score.result
    if result.error is not None:
        told = (
            f"over the labelled samples the judge's score is off by {signed(result.error, _digits(score))} on average"
        )
        saved = "" if result.saved is None else f"; its scores make up for {result.saved:.0%} of the labels' variance"
        yield f"{score.title}: {told}{saved}."
    yield from (f"{score.title}: {told}." for told in (*score.notes, *filter(None, [result.caution])))
    yield (
        "Corrected: prediction-powered (PPI++), the labels weighed by strata of the judge's score. It holds where the "
        "labelled samples are a random choice within each stratum, as evalstone label makes it."
    )


def show_corrected(scores: Sequence[PPIResult | RoganGladenResult], console: Console) -> None:
    """Print corrected means beside the judge's."""
    for score in scores:
        console.print(Text(f"\n{_title(score)}", style="bold"))
        made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        made.add_column("")
        for title in HEADER:
            made.add_column(title, justify="left" if title == "rests on" else "right")
        for name, interval, basis in _rows(score):
            style = "bold" if name == "corrected" else ""
            mean, spread = _cells(interval, _digits(score))
            made.add_row(name, Text(mean, style=style), spread, basis)
        console.print(made)
        for told in notes(score):
            console.print(Text(told, style="dim"))


def corrected_markdown(scores: Iterable[PPIResult | RoganGladenResult]) -> Iterator[str]:
    """Corrected means as lines of Markdown."""
    for score in scores:
        yield from ("", f"#### {prose(_title(score))}", "")
        rows = ((name, *_cells(interval, _digits(score)), basis) for name, interval, basis in _rows(score))
        yield from table(("", *HEADER), rows)
        yield ""
        yield from (f"- {prose(told)}" for told in notes(score))


def corrected_html(scores: Iterable[PPIResult | RoganGladenResult]) -> Iterator[str]:
    """Corrected means as a section of a page."""
    for score in scores:
        yield f"<section><h2>{escaped(_title(score))}</h2><table class='scores'><thead><tr>"
        yield "<th scope='col'></th><th scope='col' class='number'>mean</th><th scope='col'>95 % interval</th>"
        yield "<th scope='col'>rests on</th></tr></thead><tbody>\n"
        for name, interval, basis in _rows(score):
            mean, spread = _cells(interval, _digits(score))
            plot = ""
            if interval is not None:
                told = f"{score.title}, {name}: {mean}, interval {spread}"
                plot = interval_plot(interval.mean, interval.low, interval.high, scale=_scale(score), title=told)
            big = " big" if name == "corrected" else ""
            yield f"<tr><th scope='row'>{name}</th><td class='number value{big}'>{mean}</td>"
            yield f"<td>{plot}<span class='under'>{spread}</span></td><td>{basis}</td></tr>\n"
        yield "</tbody></table>"
        yield "".join(f"<p class='note'>{escaped(told)}</p>" for told in notes(score)) + "</section>\n"
