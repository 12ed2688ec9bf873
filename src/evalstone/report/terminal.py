"""A report in the terminal: tables, the samples to look at, and notes on the numbers.

Judged text is shown literally: markup in it is not interpreted, and control and direction characters are made visible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from evalstone._core.display import safe
from evalstone.report.view import Cell, SampleView, Section, Table, Tone, View

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
    for table in section.tables:
        console.print(_grid(table))
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

    Cells wrap between words. If even the longest words don't fit side by side, each row is printed as lines of
    `column: value`.
    """

    def __init__(self, *columns: str, numbers: Iterable[str] = ()) -> None:
        super().__init__(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim", show_header=any(columns))
        for column in columns:
            self.add_column(Text(column), justify="right" if column in numbers else "left", overflow="fold")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Any:
        columns = [[_plain(cell) for cell in (column.header, *column.cells)] for column in self.columns]
        available = options.max_width - GAP * len(columns)
        for whole in (True, False):
            least = [_least(cells, whole=whole) for cells in columns]
            if sum(least) <= available:
                for column, width in zip(self.columns, _widths(columns, least, available), strict=True):
                    column.width = width
                return super().__rich_console__(console, options)
        return self._blocks()

    def _blocks(self) -> Iterable[RenderableType]:
        """Each row as lines."""
        for row in zip(*(column.cells for column in self.columns), strict=True):
            for column, cell in zip(self.columns, row, strict=True):
                value = cell if isinstance(cell, Text) else Text(str(cell))
                if not value.plain:
                    continue
                if title := _plain(column.header):
                    value = Text.assemble((f"{title}: ", "dim"), value)
                if value.plain:
                    yield value
            yield Text()


def _plain(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)


def _least(cells: list[str], *, whole: bool) -> int:
    """The minimum width of a column, for its title and its cells. whole: numbers and short names stay on one line."""
    words = [word for cell in cells for word in re.findall(r"^\s*\S+|\S+", cell)]
    if whole and any(any(map(str.isdigit, cell)) for cell in cells[1:]):
        words += [cell for cell in cells[1:] if cell_len(cell) <= LONGEST_UNBROKEN]
    return max(map(cell_len, words), default=1)


def _widths(columns: list[list[str]], least: list[int], available: int) -> list[int]:
    """The width of each column: that of its content, reduced to fit the terminal, starting with the widest column."""
    widths = [
        max(low, *(cell_len(line) for cell in cells for line in cell.split("\n")))
        for cells, low in zip(columns, least, strict=True)
    ]
    while sum(widths) > available:
        widest = max((index for index in range(len(widths)) if widths[index] > least[index]), key=widths.__getitem__)
        widths[widest] -= 1
    return widths


def _grid(table: Table) -> Grid:
    indexes = table.text_columns
    grid = Grid()
    grid.show_header = True
    for index in indexes:
        column = table.columns[index]
        grid.add_column(Text(safe(column.title)), justify="right" if column.numeric else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*(_cell(row[index]) for index in indexes))
    return grid


def _cell(cell: Cell) -> Text:
    return Text(f"{INDENT * cell.level}{safe(cell.text)}", style=STYLES[cell.tone])


def _sample(sample: SampleView, console: Console) -> None:
    console.print(Text(safe(sample.id, 80), style="cyan"))
    if sample.question:
        _indented(console, 2, ("question  ", "dim"), safe(sample.question, 160))
    if sample.answer:
        _indented(console, 2, ("answer    ", "dim"), safe(sample.answer))
    if sample.label:
        _indented(console, 2, ("label     ", "dim"), safe(sample.label, 160))
    for outcome in sample.outcomes:
        score = (f"{safe(outcome.title, 80)} {outcome.text}", f"bold {STYLES[outcome.tone]}")
        _indented(console, 2, score, f"  {safe(outcome.reason, 400)}" if outcome.reason else "")
    for finding in sample.findings[:MOST_FINDINGS]:
        label, tone = finding.labels[0]
        why = f"  {safe(finding.why, 200)}" if finding.why else ""
        _indented(console, 4, (f"{safe(label)}: ", STYLES[tone]), safe(finding.text, 160), (why, "dim"))
    if (more := len(sample.findings) - MOST_FINDINGS) > 0:
        _indented(console, 2, (f"  and {more} more {'claim' if more == 1 else 'claims'}", "dim"))


def _indented(console: Console, by: int, *parts: str | tuple[str, str]) -> None:
    """Print a text with all lines indented, without the trailing spaces that rich's padding adds."""
    for line in Text.assemble(*parts).wrap(console, console.width - by, overflow="fold"):
        console.print(Text(" " * by) + line)
