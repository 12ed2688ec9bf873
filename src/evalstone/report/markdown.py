"""Markdown for a pull request or notes: tables of numbers, and judged text in code spans.

Nothing in a code span is a link, an image, a mention or HTML, so judged text has no effect in a discussion.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from evalstone._core.display import safe, visible
from evalstone._core.redaction import redacted
from evalstone._core.word_diff import marked
from evalstone.report.view import LONGEST_TEXT, Cell, Examples, SampleView, Section, Table, View, cut, outline

LONG = 2000
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~$@:&-])")
_LINKED = (
    (re.compile(r"(?<!\w)\\@(?=\w)|\\@(?=[\w\\-]+\.\w)"), "@<!-- -->"),  # a mention, an address
    (re.compile(r"\\#(?=\d)"), "#<!-- -->"),  # an issue, also owner/project#1
    (re.compile(r"(?i)(?<![^\W_])(?:www(?=\.)|gh(?=\\-\d))"), r"\g<0><!-- -->"),
)
"""What GitHub links despite a backslash, or without any character that a backslash could escape."""


def literal(text: str, width: int = 160) -> str:
    """Judged text as a code span on one line."""
    line = safe(text, width) or " "
    ticks = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def prose(text: str) -> str:
    """Our own text, which may contain a user's names: every character with a meaning in Markdown is escaped.

    A comment breaks up mentions, addresses and issue numbers, which GitHub links despite a backslash.
    """
    text = _SPECIAL.sub(r"\\\1", safe(text, LONG))
    for pattern, broken in _LINKED:
        text = pattern.sub(broken, text)
    return text


def lines(view: View) -> Iterator[str]:
    """A report as lines of Markdown."""
    verdict = f": {view.verdict.text}" if view.verdict is not None else ""
    yield f"### {prose(view.name)}{verdict}"
    yield ""
    yield prose(view.lead)
    for notice in view.notice.splitlines():
        yield from ("", prose(notice))
    for warning in view.warnings:
        yield from ("", f"**{prose(warning)}**")
    for section in view.sections:
        yield from _section(section, heading=len(view.sections) > 1)
    for examples in view.examples:
        yield from _folded(prose(examples.title), _samples(examples))
    if view.whole is not None:
        yield from _whole(view.whole)
    for section in view.details:
        yield from _section(section, heading=True)
    footer = [*(fact.line for fact in view.facts if fact.line), *view.footer]
    if footer:
        yield from ("", "<sub>" + prose(". ".join(text.rstrip(".") for text in footer)) + ".</sub>")


def _section(section: Section, *, heading: bool) -> Iterator[str]:
    if heading and section.title:
        yield from ("", f"#### {prose(section.title)}")
    yield from (line for text in section.lead for line in ("", prose(text)))
    tables = [line for table in section.tables for line in _table(table)]
    yield from _folded("Table", tables) if section.folded else tables
    if section.plain:
        yield from ("", "```text", *section.plain, "```")
    if section.warnings or section.notes:
        yield ""
        yield from (f"- **{prose(warning)}**" for warning in section.warnings)
        yield from (f"- {prose(note)}" for note in section.notes)


def _folded(title: str, inside: Iterable[str]) -> Iterator[str]:
    yield from ("", f"<details><summary>{title}</summary>", "")
    yield from inside
    yield from ("", "</details>")


def _table(table: Table) -> Iterator[str]:
    """A table. Texts are escaped, so that a bar in a text doesn't end the cell."""
    indexes = table.text_columns
    columns = [table.columns[index] for index in indexes]
    yield ""
    yield _row([prose(column.title) for column in columns])
    yield "|" + "|".join(" --: " if column.numeric else " :-- " for column in columns) + "|"
    for row in table.rows:
        yield _row([_cell(row[index]) for index in indexes])
    if table.notes:
        yield ""
    yield from (f"- {prose(note)}" for note in table.notes)


def _cell(cell: Cell) -> str:
    text = literal(cell.text, 240).replace("|", "\\|") if cell.quoted else prose(cell.text)
    return f"{'&emsp;' * cell.level}{text}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _whole(sample: SampleView) -> Iterator[str]:
    """A sample in full. Its texts are in blocks of code, so that nothing in them has a meaning."""
    for line in outline(sample.panel):
        if line.heading or line.labels:
            title = " ".join(filter(None, (line.heading, *(f"· {text}" for text, _ in line.labels))))
            yield from ("", f"{'&emsp;' * line.depth}**{prose(title)}**")
        if line.text:
            text = visible(redacted(line.text)[:LONGEST_TEXT])
            ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            yield from ("", f"{ticks}text", *text.splitlines(), ticks)
            yield from filter(None, [cut(line.text)])


def _samples(examples: Examples) -> Iterator[str]:
    for sample in examples.samples:
        yield f"- {literal(sample.id, 80)}"
        yield from (f"  - {line}" for line in _sample(sample))


def _sample(sample: SampleView) -> Iterator[str]:
    for name, text in (("question", sample.question), ("answer", sample.answer), ("label", sample.label)):
        if text:
            yield f"{name} {literal(text)}"
    if sample.loss:
        yield f"loss: {prose(sample.loss)}"
    if sample.changes:
        yield f"answer {literal(''.join(text for _, text in marked(sample.changes)), LONG)}"
    for outcome in sample.outcomes:
        reason = f" {literal(outcome.reason, 240)}" if outcome.reason else ""
        yield f"{prose(outcome.title)} **{prose(outcome.text)}**{reason}"
    for finding in sample.findings:
        yield f"{prose(finding.labels[0][0])}: {literal(finding.text)}"
