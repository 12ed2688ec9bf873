"""A report in the terminal: tables, the samples to look at, and notes on the numbers.

Judged text is shown literally: markup in it is not interpreted, and control and direction characters are made visible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from evalstone._core.display import safe, visible
from evalstone._core.redaction import redacted
from evalstone._core.word_diff import marked
from evalstone.report.view import LONGEST_TEXT, Cell, SampleView, Section, Table, Tone, View, cut, outline

STYLES: Mapping[Tone, str] = {"": "", "good": "green", "bad": "red", "unsure": "yellow", "dim": "dim", "strong": "bold"}
LONG = 1000
MOST_FINDINGS = 4
LONGEST_UNBROKEN = 30
GAP = 2
INDENT = "  "


def show(view: View, console: Console) -> None:
    """Print a report."""
    if view.name:
        lead = f" · {safe(view.lead, LONG)}" if view.lead else ""
        console.print(Text.assemble((safe(view.name), "bold"), lead))
    _lines(console, view.notice.splitlines(), "dim")
    _lines(console, view.warnings, "yellow")
    # A single section needs no heading.
    for section in view.sections:
        _section(section, console, heading=len(view.sections) > 1)
    for examples in view.examples:
        console.print(Text(f"\n{safe(examples.title, LONG)}", style="bold"))
        for place, sample in enumerate(examples.samples):
            if place:
                console.print()
            _sample(sample, console)
    if view.whole is not None:
        _whole(view.whole, console)
    for section in view.details:
        _section(section, console, heading=True)
    if facts := [fact.line for fact in view.facts if fact.line]:
        console.print(Text(f"\n{safe(' · '.join(facts), LONG)}", style="dim"))
    if view.verdict is not None:
        console.print(Text.assemble("Gate: ", (view.verdict.text, f"bold {STYLES[view.verdict.tone]}")))


def _section(section: Section, console: Console, *, heading: bool) -> None:
    if heading and section.title:
        console.print(Text(f"\n{safe(section.title, LONG)}", style="bold"))
    _lines(console, section.lead, "")
    for place, table in enumerate(section.tables):
        if place:
            console.print()
        console.print(grid(table))
        _lines(console, table.notes, "dim")
    if section.plain:
        console.print(Text("\n".join(section.plain)))
    _lines(console, section.warnings, STYLES["unsure"])
    _lines(console, section.notes, "dim")


def _lines(console: Console, texts: Iterable[str], style: str) -> None:
    for text in texts:
        console.print(Text(safe(text, LONG), style=style))


class Grid(RichTable):
    """A table without borders that shows every cell in full, however narrow the terminal.

    Cells wrap between words. Where that would take more lines, or numbers don't fit side by side, the columns are split
    into several blocks, each beside the columns that name the rows, without the rows whose values are all in other
    blocks. If even that is too wide, each row is printed as lines of `column: value`.
    """

    def __init__(self, *columns: str, numbers: Iterable[str] = ()) -> None:
        super().__init__(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim", show_header=any(columns))
        self.keys: Sequence[int] = (0,)
        """The columns that name the rows."""
        self.intervals: Sequence[int] = ()
        """The columns with the interval of the column before them, beside which they stay."""
        self.headings: dict[int, Text] = {}
        """The rows that head those below them, as wide as the table."""
        for column in columns:
            self.add_column(Text(column), justify="right" if column in numbers else "left", overflow="fold")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Any:
        rows = [row for row in range(self.row_count) if row not in self.headings]
        cells = [[*column.cells] for column in self.columns]
        texts = ([column.header, *(of[row] for row in rows)] for column, of in zip(self.columns, cells, strict=True))
        measured = [_Measured.of([*map(_plain, of)]) for of in texts]
        blocks = _blocks(measured, self.keys, self.intervals, options.max_width)
        for part in self._parts(cells, blocks) if blocks else self._as_lines():
            for line in console.render_lines(part, options, pad=False):
                yield from _without_end(line)
                yield Segment.line()

    def _parts(
        self, cells: Sequence[Sequence[RenderableType]], blocks: Iterable[Mapping[int, int]]
    ) -> Iterator[RenderableType]:
        """Tables of some of the columns, each with its width. A heading begins another one, without titles."""
        for place, block in enumerate(blocks):
            if place:
                yield Text()
            part = self._part(block, show_header=self.show_header)
            for row in range(self.row_count):
                if row in self.headings:
                    if part.row_count or part.show_header:
                        yield part
                    yield self.headings[row]
                    part = self._part(block, show_header=False)
                elif _belongs([_plain(of[row]) for of in cells], block, self.keys):
                    part.add_row(*(cells[index][row] for index in block))
            yield part

    def _part(self, block: Mapping[int, int], *, show_header: bool) -> RichTable:
        part = RichTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim", show_header=show_header)
        for index, width in block.items():
            column = self.columns[index]
            part.add_column(column.header, justify=column.justify, overflow="fold", width=width)
        return part

    def _as_lines(self) -> Iterable[RenderableType]:
        """Each row as lines."""
        for place, row in enumerate(zip(*(column.cells for column in self.columns), strict=True)):
            if place in self.headings:
                yield self.headings[place]
                continue
            for column, cell in zip(self.columns, row, strict=True):
                value = cell if isinstance(cell, Text) else Text(str(cell))
                if not value.plain:
                    continue
                if title := _plain(column.header):
                    value = Text.assemble((f"{title}: ", "dim"), value)
                if value.plain:
                    yield value
            yield Text()


def _without_end(line: list[Segment]) -> list[Segment]:
    """A line without the spaces at its end, which rich pads cells with."""
    while line and not line[-1].text.rstrip():
        line = line[:-1]
    return [*line[:-1], Segment(line[-1].text.rstrip(), line[-1].style)] if line else []


def _plain(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)


def _belongs(row: Sequence[str], block: Iterable[int], keys: Sequence[int]) -> bool:
    """Whether a row is in a block: it has a value there, or in none."""
    values = {index for index, text in enumerate(row) if text and index not in keys}
    return not values or not values.isdisjoint(block)


@dataclass(frozen=True)
class _Measured:
    """A column's texts, its title first, and its widths: that of its longest word, the least at which numbers and short
    names stay on one line, and that of its longest line."""

    texts: Sequence[str]
    word: int
    least: int
    full: int

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Measured:
        word = max((cell_len(word) for text in texts for word in re.findall(r"^\s*\S+|\S+", text)), default=1)
        unbroken = texts[1:] if any(any(map(str.isdigit, text)) for text in texts[1:]) else ()
        least = max((width for text in unbroken if (width := cell_len(text)) <= LONGEST_UNBROKEN), default=1)
        full = max((cell_len(line) for text in texts for line in text.split("\n")), default=1)
        return cls(texts, word, max(word, least), max(word, least, full))


def _blocks(
    columns: Sequence[_Measured], keys: Sequence[int], intervals: Sequence[int], width: int
) -> list[dict[int, int]]:
    """The columns of each block with their widths; empty if rows are better printed as lines of `column: value`.

    One block is preferred, unless its cells would wrap into more lines than several blocks have.
    """
    everything = range(len(columns))
    full, least = ([getattr(column, name) for column in columns] for name in ("full", "least"))
    one = _fitted(columns, everything, width, least)
    if one is not None and list(one.values()) == full:
        return [one]
    blocks: list[dict[int, int]] = []
    for together in _together(columns, keys, intervals, width, least):
        alone = _fitted(columns, sorted([*keys, *together]), width, least)
        if alone is None:
            blocks = []
            break
        beside = _fitted(columns, sorted([*blocks[-1], *together]), width, least) if blocks else None
        if beside and _height(columns, [beside], keys) < _height(columns, [blocks[-1], alone], keys):
            blocks[-1] = beside
        else:
            blocks.append(alone)
    if not blocks:
        wrapped = one or _fitted(columns, everything, width, [column.word for column in columns])
        return [wrapped] if wrapped else []
    height = _height(columns, blocks, keys)
    if one is not None and _height(columns, [one], keys) <= height:
        return [one]
    as_lines = sum(1 + sum(map(bool, row)) for row in zip(*(column.texts[1:] for column in columns), strict=True))
    return blocks if height <= as_lines else []


def _together(
    columns: Sequence[_Measured], keys: Sequence[int], intervals: Sequence[int], width: int, least: Sequence[int]
) -> Iterator[list[int]]:
    """The columns that name no rows: each with its interval, if both fit beside those that do."""
    left = [index for index in range(len(columns)) if index not in keys]
    while left:
        both = [index for index in left[:2] if index == left[0] or (index == left[0] + 1 and index in intervals)]
        both = both if _fitted(columns, sorted([*keys, *both]), width, least) else both[:1]
        yield both
        del left[: len(both)]


def _fitted(
    columns: Sequence[_Measured], indexes: Sequence[int], width: int, least: Sequence[int]
) -> dict[int, int] | None:
    """The width of each column: that of its content, reduced to fit the terminal, starting with the widest column; None
    if the columns don't fit at their least widths."""
    if _total(least, indexes) > width:
        return None
    widths = {index: columns[index].full for index in indexes}
    for _ in range(_total(widths, indexes) - width):
        widest = max((index for index in indexes if widths[index] > least[index]), key=widths.__getitem__)
        widths[widest] -= 1
    return widths


def _total(widths: Sequence[int] | Mapping[int, int], indexes: Sequence[int]) -> int:
    return sum(widths[index] for index in indexes) + GAP * (len(indexes) - 1)


def _height(columns: Sequence[_Measured], blocks: Sequence[Mapping[int, int]], keys: Sequence[int]) -> int:
    """The number of lines of blocks, with an empty one between them."""
    lines = len(blocks) - 1
    rows = [*zip(*(column.texts for column in columns), strict=True)]
    for block in blocks:
        shown = (row for place, row in enumerate(rows) if not place or _belongs(row, block, keys))
        lines += sum(max(_wrapped(row[index], width) for index, width in block.items()) for row in shown)
    return lines


def _wrapped(text: str, width: int) -> int:
    """The number of lines of a text that wraps between words."""
    if cell_len(text) <= width:
        return 1
    lines, left = 1, width
    for word in text.split():
        if (needed := cell_len(word)) > left:
            lines, left = lines + 1, width
        left -= needed + 1
    return lines


def grid(table: Table) -> Grid:
    """A table for a console."""
    indexes = table.text_columns
    shown = Grid()
    shown.show_header = True
    shown.keys = [place for place, index in enumerate(indexes) if place == 0 or table.columns[index].key]
    shown.intervals = [place for place, index in enumerate(indexes) if table.columns[index].interval]
    for index in indexes:
        column = table.columns[index]
        shown.add_column(Text(safe(column.title)), justify="right" if column.numeric else "left", overflow="fold")
    for place, row in enumerate(table.rows):
        cells = [_cell(row[index]) for index in indexes]
        if row[0].heading:
            shown.headings[place] = cells[0]
        shown.add_row(*cells)
    return shown


def _cell(cell: Cell) -> Text:
    text = safe(cell.text) if cell.quoted else safe(cell.text, LONG)
    return Text(f"{INDENT * cell.level}{text}", style=STYLES[cell.tone])


def _sample(sample: SampleView, console: Console) -> None:
    console.print(Text(safe(sample.id, 80), style="cyan"))
    if sample.question:
        _indented(console, 2, ("question  ", "dim"), safe(sample.question, 160))
    if sample.answer:
        _indented(console, 2, ("answer    ", "dim"), safe(sample.answer))
    if sample.changes:
        styles: Mapping[str, str] = {"removed": STYLES["bad"], "added": STYLES["good"], "gap": "dim"}
        parts = [(text, styles.get(kind, "")) for kind, text in marked(sample.changes)]
        _indented(console, 2, ("answer    ", "dim"), *parts)
    if sample.label:
        _indented(console, 2, ("label     ", "dim"), safe(sample.label, 160))
    if sample.loss:
        _indented(console, 2, ("loss      ", "dim"), safe(sample.loss, 400))
    for outcome in sample.outcomes:
        score = (f"{safe(outcome.title, 80)} {outcome.text}", f"bold {STYLES[outcome.tone]}")
        _indented(console, 2, score, f"  {safe(outcome.reason, 400)}" if outcome.reason else "")
    for finding in sample.findings[:MOST_FINDINGS]:
        label, tone = finding.labels[0]
        why = f"  {safe(finding.why, 200)}" if finding.why else ""
        _indented(console, 4, (f"{safe(label)}: ", STYLES[tone]), safe(finding.text, 160), (why, "dim"))
    if (more := len(sample.findings) - MOST_FINDINGS) > 0:
        _indented(console, 2, (f"  and {more} more {'claim' if more == 1 else 'claims'}", "dim"))


def _whole(sample: SampleView, console: Console) -> None:
    console.print()
    for line in outline(sample.panel):
        if line.heading or line.labels:
            labels = ((f"  {safe(text, 160)}", STYLES[tone]) for text, tone in line.labels)
            _indented(console, 2 * line.depth, (safe(line.heading, LONG), "bold"), *labels)
        for part in (*redacted(line.text)[:LONGEST_TEXT].splitlines(), *filter(None, [cut(line.text)])):
            _indented(console, 2 * line.depth, visible(part))


def _indented(console: Console, by: int, *parts: str | tuple[str, str]) -> None:
    """Print a text with all lines indented, without the trailing spaces that rich's padding adds."""
    for line in Text.assemble(*parts).wrap(console, console.width - by, overflow="fold"):
        console.print(Text(" " * by) + line)
