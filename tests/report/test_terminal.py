"""Tables on terminals of every width: nothing vanishes."""

from __future__ import annotations

import io
import itertools
import re
from collections import Counter

import pytest
from rich.console import Console

from evalstone.report.terminal import Grid, show
from evalstone.report.text import text
from evalstone.report.view import Cell, Column, Section, Table, View, table, words
from tests.report.test_same_everywhere import NAMES, REPORTED

WIDTHS = (60, 80, 120, 200)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [*NAMES, *REPORTED])
def test_every_word_of_every_cell_is_shown_whole_at_every_width(views: dict[str, View], name: str, width: int) -> None:
    view, out = views[name], io.StringIO()
    show(view, Console(file=out, width=width))
    tables = [table for section in (*view.sections, *view.details) for table in section.tables]
    assert tables
    cells = [cell.text for table in tables for row in table.rows for cell in row]
    titles = [
        column.title
        for table in tables
        for at, column in enumerate(table.columns)
        if any(row[at].text for row in table.rows)
    ]
    missing = Counter(" ".join([*cells, *titles]).replace(":", " ").split()) - Counter(
        out.getvalue().replace(":", " ").split()
    )
    assert not missing
    assert max(map(len, out.getvalue().splitlines())) <= width


def test_a_row_that_does_not_fit_becomes_lines_with_the_columns_names() -> None:
    grid = Grid("name", "value", "note")
    grid.add_row("n" * 30, "0.123 to 0.456", "")
    grid.add_row("m" * 30, "7", "w" * 30)
    out = io.StringIO()
    Console(file=out, width=40).print(grid)
    blocks = [f"name: {'n' * 30}\nvalue: 0.123 to 0.456\n", f"name: {'m' * 30}\nvalue: 7\nnote: {'w' * 30}\n"]
    assert out.getvalue() == "\n".join([*blocks, ""])


def test_columns_that_do_not_fit_are_split_into_blocks_beside_the_columns_that_name_the_rows() -> None:
    columns = (words("scorer"), Column("k", key=True), words("interval"), words("other interval"))
    rows = [("one", "1", "0.123 to 0.456", "0.100 to 0.400"), ("", "2", "0.200 to 0.500", "0.300 to 0.600")]
    view = View("", "", (Section("", tables=(table("", columns, rows),)),))
    lines = text(view, 32).splitlines()
    assert [line.split()[:3] for line in lines if line.endswith(("interval", "0"))] == [
        ["scorer", "k", "interval"],
        ["2", "0.200", "to"],
        ["scorer", "k", "other"],
        ["one", "1", "0.100"],
        ["2", "0.300", "to"],
    ]
    assert lines[3] == ""
    assert len(text(view).splitlines()) == 3


def test_a_block_leaves_out_the_rows_that_have_all_their_values_in_other_blocks() -> None:
    columns = (words("scorer"), Column("k", key=True), words("interval"), words("spread"))
    interval = "0.123 to 0.456"
    rows = [
        ("one", "1", interval, "0.100"),
        ("", "2", interval, ""),
        ("none", "", "", ""),
        ("two", "1", interval, "0.2"),
    ]
    view = View("", "", (Section("", tables=(table("", columns, rows),)),))
    assert [line.split() for line in text(view, 28).splitlines()[5:]] == [
        [], ["scorer", "k", "spread"], ["one", "1", "0.100"], ["none"], ["two", "1", "0.2"],
    ]  # fmt: skip
    assert len(text(view).splitlines()) == 5


@pytest.mark.parametrize("width", range(10, 40))
def test_a_column_that_fits_no_block_is_in_the_lines(width: int) -> None:
    grid = Grid("name", "long", "short", "b")
    for name in ("first", "second"):
        grid.add_row(name, "20261128-143107-52cd4430", "0", "1")
    out = io.StringIO()
    Console(file=out, width=width).print(grid)
    assert re.sub(r"\s", "", out.getvalue()).count("20261128-143107-52cd4430") == 2


def test_words_wrap_in_one_block_where_that_takes_fewer_lines() -> None:
    grid = Grid("name", "value", "why")
    for name in "ab":
        grid.add_row(name, "0.5", "a reason that is long and wraps")
    out = io.StringIO()
    Console(file=out, width=30).print(grid)
    assert [line.split()[:2] for line in out.getvalue().splitlines()[1::2]] == [["a", "0.5"], ["b", "0.5"]]


def test_a_heading_is_as_wide_as_the_table() -> None:
    long, short = "test_of_something_with_a_long_name", "test_b"
    rows = (
        (Cell(long, heading=True), Cell("")),
        (Cell("a", level=1), Cell("1")),
        (Cell(short, heading=True), Cell("")),
    )
    shown = Table("", (words("scorer"), Column("mean")), (*rows, (Cell("b", level=1), Cell("2"))))
    assert text(View("", "", (Section("", tables=(shown,)),))).splitlines() == [
        "scorer  mean", long, "  a        1", short, "  b        2",
    ]  # fmt: skip


def test_a_long_text_of_our_own_is_shown_whole_and_one_of_a_user_is_cut() -> None:
    long = "mean 0.500, " * 40
    cells = (Cell("a"), Cell(long), Cell(long, quoted=True))
    shown = text(View("", "", (Section("", tables=(Table("", (words("a"), words("b"), words("c")), (cells,)),)),)))
    assert shown.count(long.strip()) == 1
    assert shown.endswith("…")


@pytest.mark.parametrize("width", [20, 100])
def test_no_line_of_a_table_ends_with_spaces(width: int) -> None:
    grid = Grid("name", "note")
    for row in (("one", "some words that may wrap"), ("two", "x"), ("three", ""), ("", "")):
        grid.add_row(*row)
    out = io.StringIO()
    Console(file=out, width=width).print(grid)
    lines = out.getvalue().split("\n")
    assert [line for line in lines if line != line.rstrip()] == []
    assert "three" in lines
    assert any(line.split() == ["two", "x"] for line in lines)


def test_numbers_stay_on_one_line_as_long_as_words_can_wrap() -> None:
    grid = Grid("name", "interval", "note")
    grid.add_row("one", "0.123 to 0.456", "some words that may wrap")
    out = io.StringIO()
    Console(file=out, width=40).print(grid)
    assert "0.123 to 0.456" in out.getvalue()


@pytest.mark.parametrize("width", range(36, 80, 4))
def test_an_interval_stays_beside_its_estimate(width: int) -> None:
    titles = ("pass@k", "of 1", "pass^k", "of 2")
    columns = (words("scorer"), *(Column(title, interval=title.startswith("of")) for title in titles))
    row = ("exact_match", "0.475", "0.361 to 0.570", "0.475", "0.361 to 0.570")
    out = io.StringIO()
    show(View("", "", (Section("", tables=(table("", columns, [row]),)),)), Console(file=out, width=width))
    headers = [re.findall("|".join(map(re.escape, titles)), line) for line in out.getvalue().splitlines()]
    assert [*itertools.chain(*headers)] == [*titles]
    assert all(len(header) % 2 == 0 for header in headers)
