"""What reports say: plain values that terminal, HTML and Markdown lay out, each in its own way.

Texts are raw here. Each renderer escapes them for its format and makes invisible characters visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from evalstone._core.display import digits_for, limits, listed, number

if TYPE_CHECKING:
    from evalstone.stats.calibration import Bin
    from evalstone.stats.intervals import Interval

Tone: TypeAlias = Literal["", "good", "bad", "unsure", "dim", "strong"]
ABSENT = ("", "-")
FOOTER = ("Made by evalstone.",)
HIGHER, LOWER = "↑ higher is better", "↓ lower is better"


@dataclass(frozen=True)
class IntervalChart:
    """A mean and its interval on the scale from 0 to `scale`.

    Attributes:
        bounds: Where the mean would lie if the missing scores were all worst, and all best.
        lower_is_better: Which end of the scale is the better one; None where neither is.
    """

    label: str
    mean: float
    low: float | None
    high: float | None
    scale: float
    lower_is_better: bool | None = None
    bounds: tuple[float, float] | None = None
    kind: str = "interval"


@dataclass(frozen=True)
class HistogramChart:
    """How many scores fall into each of equal parts of the scale from 0 to `scale`."""

    label: str
    counts: tuple[int, ...]
    scale: float
    kind: str = "histogram"


@dataclass(frozen=True)
class DifferenceChart:
    """A difference and its interval beside zero, on an axis from -reach to reach."""

    label: str
    difference: float
    low: float | None
    high: float | None
    reach: float
    tone: Tone
    kind: str = "difference"


@dataclass(frozen=True)
class ReliabilityChart:
    """The share of people who say yes in each bin of the judge's scores."""

    label: str
    bins: tuple[Bin, ...]
    kind: str = "reliability"


Chart: TypeAlias = IntervalChart | HistogramChart | DifferenceChart | ReliabilityChart


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: What every format shows.
        chart: Shown in HTML, above the text.
        under: A second line, in HTML.
        quoted: The text is of others; Markdown shows it as code.
    """

    text: str
    tone: Tone = ""
    chart: Chart | None = None
    under: str = ""
    quoted: bool = False


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: The header.
        numeric: Set to the right.
        informative: Kept even where all rows have the same value. Other columns are then said once below the table.
        under: In HTML its cells stand below the row header instead of in a column.
    """

    title: str
    numeric: bool = True
    informative: bool = True
    under: bool = False


def words(title: str, *, under: bool = False) -> Column:
    """A column of words, set to the left."""
    return Column(title, numeric=False, under=under)


@dataclass(frozen=True)
class Table:
    """Columns and rows of cells; the first column names the rows."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


def table(
    caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell | str]], notes: Iterable[str] = ()
) -> Table:
    """A table without the columns that say nothing: empty ones, and those with one value, which a note names."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    keep: list[int] = []
    constant: list[str] = []
    for place, column in enumerate(columns):
        texts = {row[place].text for row in cells}
        drawn = any(row[place].chart for row in cells)
        if not drawn and cells and texts <= set(ABSENT) and place:
            continue
        if column.informative or len(cells) < 2 or len(texts) > 1:
            keep.append(place)
        else:
            constant.append(f"{column.title} {texts.pop()}")
    said = [f"The same in every row: {', '.join(constant)}."] if constant else []
    kept_rows = tuple(tuple(row[place] for place in keep) for row in cells)
    return Table(caption, tuple(columns[place] for place in keep), kept_rows, (*said, *notes))


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        title: The heading; "" for none.
        lead: Sentences above the tables.
        chart: A chart below the tables, which `plain` stands for where nothing can be drawn.
        notes: Sentences below.
        warnings: What makes the numbers above doubtful, below them.
        legend: Sentences on the charts, for formats that draw them.
        folded: Tables are opened on demand, where a format can do that; the lead is always shown.
    """

    title: str
    lead: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    chart: Chart | None = None
    plain: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    legend: tuple[str, ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class Block:
    """A piece of a sample: a text with a heading, labels, further values and pieces inside it.

    Attributes:
        kind: What it is, for the layout: "part", "passage", "claim", "columns", "outcome" and so on.
        labels: Short words with their tones, such as a verdict.
        why: The judge's reason, and the passages that it cites.
        pairs: Names and values, for what has no layout of its own.
        cites: Numbers of the passages that decide a claim.
        folded: Opened on demand.
    """

    kind: str = "part"
    title: str = ""
    text: str = ""
    labels: tuple[tuple[str, Tone], ...] = ()
    why: str = ""
    pairs: tuple[tuple[str, str], ...] = ()
    items: tuple[Block, ...] = ()
    cites: tuple[int, ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class Outcome:
    """What one scorer said of a sample. value: None for a skip or a failure, which `text` names."""

    title: str
    value: float | None
    text: str
    tone: Tone
    reason: str


@dataclass(frozen=True)
class SampleView:
    """One sample with its outcomes.

    Attributes:
        goodness: The mean over its scores, from 0 (worst) to 1 (best) whatever their scales and directions.
        headline: What is wrong with it, in a line.
        findings: Claims that no passage supports, for reports that can't show all of a sample.
        panel: All of the sample, for those that can.
    """

    id: str
    question: str
    answer: str
    goodness: float | None
    outcomes: tuple[Outcome, ...]
    headline: str = ""
    findings: tuple[Block, ...] = ()
    panel: tuple[Block, ...] = ()


@dataclass(frozen=True)
class Examples:
    """Samples that a report shows, with a heading."""

    title: str
    samples: tuple[SampleView, ...]


@dataclass(frozen=True)
class ScoreColumn:
    """A scorer as a column of the list of samples."""

    title: str
    scale: float
    lower_is_better: bool


@dataclass(frozen=True)
class SampleList:
    """All samples of a run, for reports that can be searched. size: how many there are; total: with those left out;
    noun: what they are."""

    columns: tuple[ScoreColumn, ...]
    samples: Iterable[SampleView]
    size: int
    total: int
    noun: str = "samples"


@dataclass(frozen=True)
class Fact:
    """Something about how results were made. line: the same as part of a line of facts; "" to leave it out there."""

    name: str
    text: str
    line: str = ""


@dataclass(frozen=True)
class View:
    """A report: results first, then what explains them, then how they were made.

    Attributes:
        name: What it is about: a dataset, "Comparison".
        lead: What was evaluated, in a line.
        notice: What is said of the judge.
        warnings: What makes the numbers doubtful.
        verdict: The result in a word, for a gate.
        sections: The results.
        examples: The samples to look at first.
        details: Further sections.
        samples: All samples.
        facts: Run metadata.
        footer: Sentences at the end.
    """

    name: str
    lead: str
    sections: tuple[Section, ...]
    notice: str = ""
    warnings: tuple[str, ...] = ()
    verdict: Cell | None = None
    examples: tuple[Examples, ...] = ()
    details: tuple[Section, ...] = ()
    samples: SampleList | None = None
    facts: tuple[Fact, ...] = ()
    footer: tuple[str, ...] = ()


def interval_cells(name: str, interval: Interval | None, scale: float, lower: bool | None = None) -> tuple[Cell, Cell]:
    """A mean and its interval, with a chart."""
    if interval is None:
        return Cell("-"), Cell("-")
    digits = digits_for(scale)
    mean, spread = number(interval.mean, digits), limits(interval.low, interval.high, digits)
    between = f"{100 * interval.confidence:g}% confidence interval {spread}" if spread != "-" else "no interval"
    label = f"{name}: {mean}, {between}"
    chart = IntervalChart(label, interval.mean, interval.low, interval.high, scale, lower)
    return Cell(mean, "strong"), Cell(spread, chart=chart)


def direction(lower_is_better: bool) -> str:
    """Which direction of a score is better, in words."""
    return LOWER if lower_is_better else HIGHER


def tone_of(goodness: float | None) -> Tone:
    """The tone of a score by how good it is, from 0 to 1: the worst third bad, the best third good."""
    if goodness is None:
        return "dim"
    return "bad" if goodness < 1 / 3 else "good" if goodness > 2 / 3 else "unsure"


def by_text(titled: Iterable[tuple[str, str]], of: int, everyone: str, separator: str = ", ") -> list[str]:
    """Texts, each once, after its titles; after `everyone` where it has all of several."""
    titles_of: dict[str, list[str]] = {}
    for title, text in titled:
        titles_of.setdefault(text, []).append(title)
    return [
        f"{everyone if of > 1 and len(titles) == of else separator.join(titles)}: {text}"
        for text, titles in titles_of.items()
    ]


def tests_used(tests: Mapping[str, Iterable[str]]) -> str:
    """Tests by name, with the scorers that each is of; without them where there is one test."""
    return "; ".join(f"{test} ({listed(titles)})" if len(tests) > 1 else test for test, titles in tests.items())
