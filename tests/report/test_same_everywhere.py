"""What a result says is the same wherever it is shown: printed, in notebooks, in Markdown, on a page, in the terminal.

Charts, with the second lines of their cells, are drawn on pages alone.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

import evalstone
from evalstone.report import markdown
from evalstone.report.html import fragment, page
from evalstone.report.shown import Shown
from evalstone.report.terminal import show
from evalstone.report.text import text
from evalstone.report.view import Section, View

NAMES = (
    "run", "run by a judge", "run of trials", "slices", "comparison", "comparison of three", "gate", "estimate",
    "sample size", "drift", "audit", "calibration", "alignment", "alignment estimate", "judges", "saved runs",
    "imported", "experiment", "live coverage", "live drift", "ledger", "scores", "data check",
)  # fmt: skip
REPORTED = ("run report", "record")


@pytest.mark.slow
def test_there_is_a_result_of_every_kind_that_is_shown(results: dict[str, Shown], views: dict[str, View]) -> None:
    source = Path(evalstone.__file__ or "").parent
    kinds = {
        name
        for file in source.rglob("*.py")
        for name in re.findall(r"^class (\w+)\(.*\bShown\)", file.read_text(), re.M)
    }
    assert {type(result).__name__ for result in results.values()} == kinds
    assert (*results, *REPORTED) == (*NAMES, *REPORTED) == tuple(views)


def said(view: View) -> Iterator[str]:
    """The numbers, names and sentences of a view, without its samples."""
    yield from (view.name, view.lead, *view.notice.splitlines(), *view.warnings)
    yield from () if view.verdict is None else (view.verdict.text,)
    yield from (fact.text for fact in view.facts if fact.line)
    for section in (*view.sections, *view.details):
        yield from _said(section)


def _said(section: Section) -> Iterator[str]:
    yield from (*section.lead, *section.notes, *section.warnings)
    for table in section.tables:
        yield from table.notes
        yield from (table.columns[index].title for index in table.text_columns if not table.columns[index].under)
        yield from (cell.text for row in table.rows for cell in row)


def of_samples(view: View) -> Iterator[str]:
    """What a view says of the samples to look at."""
    for examples in view.examples:
        yield examples.title
        for sample in examples.samples:
            yield sample.id
            yield from (part for outcome in sample.outcomes for part in (outcome.text, outcome.reason))


def from_html(shown: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"<(style|script)\b.*?</\1>", "", shown, flags=re.S)))


def from_markdown(shown: str) -> str:
    return re.sub(r"\\([^a-zA-Z0-9\s])", r"\1", re.sub(r"<!-- -->|`|\*\*", "", html.unescape(shown)))


def in_terminal(view: View) -> str:
    out = io.StringIO()
    show(view, Console(file=out, width=10_000, force_terminal=True, color_system="truecolor"))
    return re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())


FORMATS: dict[str, Callable[[View], str]] = {
    "print": text,
    "notebook": lambda view: from_html(fragment(view)),
    "page": lambda view: from_html("".join(page(view))),
    "Markdown": lambda view: from_markdown("\n".join(markdown.lines(view))),
    "terminal": in_terminal,
}


def squeezed(shown: str) -> str:
    return "".join(shown.replace("|", "").split())


def rows_of(view: View) -> set[str]:
    """The rows of its tables."""
    tables = [table for section in (*view.sections, *view.details) for table in section.tables]
    return {squeezed("".join(row[at].text for at in table.text_columns)) for table in tables for row in table.rows}


@pytest.mark.parametrize("name", [*NAMES, *REPORTED])
def test_every_number_and_note_is_in_every_format(views: dict[str, View], name: str) -> None:
    view = views[name]
    expected = {squeezed(part) for part in said(view)}
    assert len(expected) > 4
    for kind, written in FORMATS.items():
        found = squeezed(written(view))
        # On pages, charts and second lines stand between the cells.
        rows = set[str]() if kind == "page" else rows_of(view)
        assert {part for part in expected | rows if part not in found} == set(), kind


@pytest.mark.parametrize("name", ["run", "comparison", "run of trials"])
def test_the_samples_to_look_at_are_in_every_report(views: dict[str, View], name: str) -> None:
    expected = {squeezed(part) for part in of_samples(views[name])}
    assert len(expected) > 4
    for kind in ("page", "Markdown", "terminal"):
        found = squeezed(FORMATS[kind](views[name]))
        assert {part for part in expected if part not in found} == set(), kind


@pytest.mark.parametrize("name", NAMES)
def test_a_result_shows_its_brief_view_wherever_python_shows_it(results: dict[str, Shown], name: str) -> None:
    result = results[name]
    brief = result.brief()
    assert str(result) == text(brief)
    assert result._repr_html_() == fragment(brief)  # pyright: ignore[reportPrivateUsage] - for notebooks
    assert result._repr_markdown_() == "\n".join(markdown.lines(brief))  # pyright: ignore[reportPrivateUsage]
    for shown in (text(brief), from_html(fragment(brief)), from_markdown(result.to_markdown())):
        assert {part for part in map(squeezed, said(brief)) if part not in squeezed(shown)} == set()
    assert result.to_csv() == "".join(result.csv_lines())
