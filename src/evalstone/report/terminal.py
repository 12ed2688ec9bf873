"""A report on a terminal: tables, the samples to look at, and what explains the numbers.

Judged text is shown as text: no markup in it is read, and control and direction characters are made visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from evalstone.report.text import safe
from evalstone.report.view import SampleView, Section, Table, Tone, View

STYLES: Mapping[Tone, str] = {"": "", "good": "green", "bad": "red", "unsure": "yellow", "dim": "dim", "strong": "bold"}
LONG = 1000
MOST_FINDINGS = 4
LONGEST_UNBROKEN = 30


def show(view: View, console: Console) -> None:
    """Print a report."""
    if view.name:
        lead = f" · {safe(view.lead, LONG)}" if view.lead else ""
        console.print(Text.assemble((safe(view.name), "bold"), lead))
    _lines(console, [view.notice] if view.notice else [], "dim")
    _lines(console, view.warnings, "yellow")
    # One section needs no heading; of several, each has one.
    for section in view.sections:
        _section(section, console, heading=len(view.sections) > 1)
    for examples in view.examples:
        console.print(Text(f"\n{safe(examples.title, LONG)}", style="bold"))
        for sample in examples.samples:
            console.print(_sample(sample))
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
    _lines(console, section.notes, "dim")


def _lines(console: Console, texts: Iterable[str], style: str) -> None:
    for text in texts:
        console.print(Text(safe(text, LONG), style=style))


def _grid(table: Table) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    # A column without any text holds charts, which a terminal does not show.
    places = [at for at in range(len(table.columns)) if at == 0 or any(row[at].text for row in table.rows)]
    for at in places:
        column, longest = table.columns[at], max((len(row[at].text) for row in table.rows), default=0)
        justify = "right" if column.numeric else "left"
        # Numbers and names are never cut; words may wrap.
        whole = at == 0 or any(any(map(str.isdigit, row[at].text)) for row in table.rows)
        width = min(longest, LONGEST_UNBROKEN) if whole else None
        grid.add_column(Text(safe(column.title)), justify=justify, no_wrap=whole, overflow="fold", min_width=width)
    for row in table.rows:
        grid.add_row(*(Text(safe(row[at].text), style=STYLES[row[at].tone]) for at in places))
    return grid


def _sample(sample: SampleView) -> RenderableType:
    lines: list[RenderableType] = []
    if sample.question:
        lines.append(Text.assemble(("question  ", "dim"), safe(sample.question, 160)))
    if sample.answer:
        lines.append(Text.assemble(("answer    ", "dim"), safe(sample.answer)))
    for outcome in sample.outcomes:
        score = (f"{safe(outcome.title, 80)} {outcome.text}", f"bold {STYLES[outcome.tone]}")
        lines.append(Text.assemble(score, f"  {safe(outcome.reason, 400)}" if outcome.reason else ""))
    for finding in sample.findings[:MOST_FINDINGS]:
        label, tone = finding.labels[0]
        why = f"  {safe(finding.why, 200)}" if finding.why else ""
        text = Text.assemble((f"{safe(label)}: ", STYLES[tone]), safe(finding.text, 160), (why, "dim"))
        lines.append(Padding(text, (0, 0, 0, 2)))
    if (more := len(sample.findings) - MOST_FINDINGS) > 0:
        lines.append(Text(f"  and {more} more {'claim' if more == 1 else 'claims'}", style="dim"))
    return Group(Text(safe(sample.id, 80), style="cyan"), Padding(Group(*lines), (0, 0, 1, 2)))
