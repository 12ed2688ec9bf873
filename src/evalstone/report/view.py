"""The content of reports: plain values that the terminal, HTML and Markdown renderers lay out.

Texts are raw here. Each renderer escapes them for its format and makes invisible characters visible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from evalstone._core.display import digits_for, limits, number, safe
from evalstone._core.word_diff import Piece

if TYPE_CHECKING:
    from evalstone.stats.calibration import Bin
    from evalstone.stats.intervals import Interval

Tone: TypeAlias = Literal["", "good", "bad", "unsure", "dim", "strong"]
ABSENT = ("", "-")
FOOTER = ("Made by evalstone.",)
JUDGE_WIDTH = 60
_SETTINGS = re.compile(r"\((?:https?://|[a-z_]+=)[^()]*\)")
_OF_SENTENCES = re.compile(r"\bdecision\(([^(),]+), text=sentences@\d+\)")
HIGHER, LOWER = "↑ higher is better", "↓ lower is better"


@dataclass(frozen=True)
class IntervalChart:
    """A mean and its interval on the scale from 0 to `scale`.

    Attributes:
        bounds: The mean if all missing scores were the worst, and if all were the best.
        lower_is_better: Whether the low end of the scale is the better one; None if neither is.
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
    """The number of scores in each of several equal bins from 0 to `scale`."""

    label: str
    counts: tuple[int, ...]
    scale: float
    kind: str = "histogram"


@dataclass(frozen=True)
class DifferenceChart:
    """A difference and its interval around zero, on an axis from -reach to reach."""

    label: str
    difference: float
    low: float | None
    high: float | None
    reach: float
    tone: Tone
    kind: str = "difference"


@dataclass(frozen=True)
class ReliabilityChart:
    """The share of people who say yes in each bin of the judge's scores, over the number of samples in each."""

    label: str
    bins: tuple[Bin, ...]
    title: str = ""
    kind: str = "reliability"


@dataclass(frozen=True)
class Curve:
    """A line through points from (0, 0) to (1, 1), with a dot at one of them."""

    name: str
    points: tuple[tuple[float, float], ...]
    dot: tuple[float, float] | None = None


@dataclass(frozen=True)
class Mark:
    """A place on the horizontal axis, from 0 to 1, with its name."""

    at: float
    name: str


@dataclass(frozen=True)
class CurvesChart:
    """Curves over one another.

    Attributes:
        across: What the horizontal axis shows.
        up: What the vertical axis shows.
        scale: The number at the right end of the horizontal axis.
        diagonal: Whether a line from (0, 0) to (1, 1) shows what chance would give.
    """

    label: str
    title: str
    across: str
    up: str
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...] = ()
    scale: float = 1.0
    diagonal: bool = False
    kind: str = "curves"


@dataclass(frozen=True)
class SplitHistogramChart:
    """Histograms of several groups above one another, on one axis from 0 to `scale`.

    Attributes:
        groups: The name of each group with the number of its values in each of several equal bins.
    """

    label: str
    title: str
    across: str
    groups: tuple[tuple[str, tuple[int, ...]], ...]
    marks: tuple[Mark, ...] = ()
    scale: float = 1.0
    kind: str = "split"


Chart: TypeAlias = (
    IntervalChart | HistogramChart | DifferenceChart | ReliabilityChart | CurvesChart | SplitHistogramChart
)
Figure: TypeAlias = ReliabilityChart | CurvesChart | SplitHistogramChart
"""A chart that stands for itself, not in a cell of a table."""


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: The text in every format.
        chart: A chart above the text, in HTML.
        under: A second line, in HTML.
        quoted: Whether it is a user's text, which Markdown shows as code.
        level: How far it is indented: a row that is a part of one above it.
        heading: Whether it heads the rows below it. The other cells of its row are empty.
    """

    text: str
    tone: Tone = ""
    chart: Chart | None = None
    under: str = ""
    quoted: bool = False
    level: int = 0
    heading: bool = False


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: The header.
        numeric: Align it to the right.
        informative: Keep it even if all rows have the same value. Other columns become a note below the table then.
        under: In HTML, put its cells below the row header instead of in a column.
        key: Whether it names the rows together with the first column, so that it is repeated where a table is split.
        interval: Whether its cells are intervals, "LOW to HIGH", or absent. In CSV, the limits are two columns.
        csv: The header in CSV if the title depends on the data; otherwise "".
    """

    title: str
    numeric: bool = True
    informative: bool = True
    under: bool = False
    key: bool = False
    interval: bool = False
    csv: str = ""


def words(title: str, *, under: bool = False) -> Column:
    """A column of words, aligned to the left."""
    return Column(title, numeric=False, under=under)


@dataclass(frozen=True)
class Table:
    """Columns and rows of cells; the first column names the rows."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    whole: Table | None = None
    """The table with the columns that are left out here; None if there are none."""

    @property
    def text_columns(self) -> list[int]:
        """The indexes of the columns to show where no charts are drawn: those with text, and the first one."""
        return [index for index in range(len(self.columns)) if index == 0 or any(row[index].text for row in self.rows)]


def table(
    caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell | str]], notes: Iterable[str] = ()
) -> Table:
    """A table without empty columns, and without columns with a single value, which a note names."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    shown: list[int] = []
    constant: list[str] = []
    for index, column in enumerate(columns):
        texts = {row[index].text for row in cells}
        has_chart = any(row[index].chart for row in cells)
        if not has_chart and cells and texts <= set(ABSENT) and (index or not column.informative):
            continue
        if column.informative or len(cells) < 2 or len(texts) > 1:
            shown.append(index)
        else:
            constant.append(f"{column.title} {texts.pop()}")
    constant_note = [f"The same in every row: {', '.join(constant)}."] if constant else []
    shown_rows = tuple(tuple(row[index] for index in shown) for row in cells)
    whole = None if len(shown) == len(columns) else Table(caption, tuple(columns), tuple(map(tuple, cells)))
    return Table(caption, tuple(columns[index] for index in shown), shown_rows, (*constant_note, *notes), whole)


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        title: The heading; "" for none.
        lead: Sentences above the tables.
        figures: Charts below the tables.
        plain: Lines of text in place of the charts, for formats that can't draw them.
        notes: Sentences below the tables.
        warnings: Reasons to doubt the numbers, below the tables.
        legend: Sentences on the charts, for formats that draw them.
        folded: Whether tables are opened on demand, in formats that can do that. The lead is always shown.
    """

    title: str
    lead: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    plain: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    legend: tuple[str, ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class Block:
    """A piece of a sample: a text with a heading, labels, further values and nested blocks.

    Attributes:
        kind: The kind, for the layout: "part", "passage", "claim", "columns", "outcome" and so on.
        labels: Short words with their tones, such as a verdict.
        why: The judge's reason, and the passages that it cites.
        pairs: Names and values that have no layout of their own.
        items: Nested blocks.
        cites: The numbers of the passages that decide a claim.
        folded: Whether it is opened on demand.
        pieces: The text, with what is removed and added; if there are some, they are shown in its place.
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
    pieces: tuple[Piece, ...] = ()


@dataclass(frozen=True)
class OutcomeView:
    """The outcome of one scorer for a sample. value: None for a skipped or failed sample, as `text` says."""

    title: str
    value: float | None
    text: str
    tone: Tone
    reason: str


@dataclass(frozen=True)
class SampleView:
    """One sample with its outcomes.

    Attributes:
        goodness: The mean over its scores, each from 0 (worst) to 1 (best), regardless of scale and direction.
        label: Whether the answer is grounded, in the words of the data; "" if it doesn't say.
        loss: Where a low answer is lost, such as "retrieval: …"; "" for other answers.
        changes: Of a sample in two runs, the answer of the first with what the second removes and adds, for reports
            that don't show the whole sample.
        headline: What is wrong with it, on one line.
        findings: Claims that no passage supports, for reports that don't show the whole sample.
        panel: The whole sample, for reports that show it.
    """

    id: str
    question: str
    answer: str
    goodness: float | None
    outcomes: tuple[OutcomeView, ...]
    label: str = ""
    loss: str = ""
    changes: tuple[Piece, ...] = ()
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
    """All samples of a run, for searchable reports. size: their number; total: including those left out; noun: for
    samples or trials."""

    columns: tuple[ScoreColumn, ...]
    samples: Iterable[SampleView]
    size: int
    total: int
    noun: str = "samples"


@dataclass(frozen=True)
class Fact:
    """One fact of the run's metadata. line: the same within a line of facts; "" leaves it out there."""

    name: str
    text: str
    line: str = ""


@dataclass(frozen=True)
class View:
    """A report: results first, then what explains them, then the run's metadata.

    Attributes:
        name: The title, such as a dataset's name or "Comparison".
        lead: What was evaluated, on one line.
        notice: A note on the judge.
        warnings: Reasons to doubt the numbers.
        verdict: The result in one word, for a gate.
        sections: The results.
        examples: The samples to look at first.
        details: Further sections.
        samples: All samples.
        whole: The sample that the report is about, to be shown in full; None for a report about more.
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
    whole: SampleView | None = None
    facts: tuple[Fact, ...] = ()
    footer: tuple[str, ...] = ()


LONGEST_TEXT = 100_000
"""Characters of a text that are shown. Browsers take minutes to lay out megabytes."""


def cut(text: str) -> str:
    """A sentence on the rest of a text that is too long to be shown; "" if it is shown whole."""
    is_whole = len(text) <= LONGEST_TEXT
    return "" if is_whole else f"The first {LONGEST_TEXT:,} of {len(text):,} characters."


class Line(NamedTuple):
    """A part of a sample for formats that show one below the other: a heading with labels, or a text.

    depth: How far it is indented.
    """

    depth: int
    heading: str = ""
    labels: tuple[tuple[str, Tone], ...] = ()
    text: str = ""


def outline(blocks: Iterable[Block], depth: int = 0) -> Iterator[Line]:
    """The blocks of a sample one below the other, with those inside them."""
    for block in blocks:
        has_head = bool(block.title or block.labels)
        if has_head:
            yield Line(depth, block.title, block.labels)
        inner = depth + has_head
        texts = [block.text, block.why, *(f"{name}: {value}" for name, value in block.pairs)]
        for text in filter(None, texts):
            yield Line(inner, text=text)
        yield from outline(block.items, inner)


def interval_cells(name: str, interval: Interval | None, scale: float, lower: bool | None = None) -> tuple[Cell, Cell]:
    """A mean and its interval, with a chart."""
    if interval is None:
        return Cell("-"), Cell("-")
    digits = digits_for(scale)
    mean, spread = number(interval.estimate, digits), limits(interval.low, interval.high, digits)
    between = f"{100 * interval.confidence:g}% confidence interval {spread}" if spread != "-" else "no interval"
    label = f"{name}: {mean}, {between}"
    chart = IntervalChart(label, interval.estimate, interval.low, interval.high, scale, lower)
    return Cell(mean, "strong"), Cell(spread, chart=chart)


def bare_judge(identity: str) -> str:
    """A judge's identity without endpoints and settings, cut to the width of a column. A decision model or verifier
    model that judges the sentences of a text has the name by which it is asked for, as in `--judge`."""
    return safe(_OF_SENTENCES.sub(r"\1", _SETTINGS.sub("", identity)), JUDGE_WIDTH)


def bare_member(identity: str) -> str:
    """Like `bare_judge`, for a judge that is shown with its members: a decision model is another judge than itself
    beside one that splits texts."""
    return safe(_SETTINGS.sub("", identity), JUDGE_WIDTH)


def bare_judges(identities: Iterable[str]) -> dict[str, str]:
    """By identity, the bare names of judges that are shown beside each other: those of different judges with the same
    one are their identities."""
    of_name: dict[str, list[str]] = {}
    for identity in dict.fromkeys(identities):
        of_name.setdefault(bare_judge(identity), []).append(identity)
    return {each: name if len(same) == 1 else safe(each) for name, same in of_name.items() for each in same}


def direction(lower_is_better: bool) -> str:
    """The better direction of a score, in words."""
    return LOWER if lower_is_better else HIGHER


def tone_of(goodness: float | None) -> Tone:
    """The tone of a score by how good it is, from 0 to 1: the worst third bad, the best third good."""
    if goodness is None:
        return "dim"
    return "bad" if goodness < 1 / 3 else "good" if goodness > 2 / 3 else "unsure"
