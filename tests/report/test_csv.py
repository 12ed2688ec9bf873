"""CSV that no spreadsheet takes for formulas, and the tables of views as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import pytest

from evalstone import gate, power
from evalstone.report.csv import Value, csv_rows, inert, lines
from evalstone.report.view import Cell, Column, Section, View, table, words
from evalstone.results.gate import Gate
from evalstone.results.power_analysis import PowerAnalysis
from tests._core.test_display import WRITTEN
from tests.runs import run_of


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "  =1",
        '"=1',
        "'=1",
        "\t=1",
        "\r=1",
        "\n@x",
        "＝1",
        "＋1",
        "－1",
        "＠x",
        "|cmd",
        "%x",
    ],
)
def test_a_text_that_a_spreadsheet_would_execute_gets_an_apostrophe_in_front(text: str) -> None:
    assert inert(text).startswith("'")


def test_a_formula_behind_a_semicolon_is_made_inert_for_spreadsheets_that_cut_there() -> None:
    assert inert("x;=1+1") == "x;'=1+1"
    assert inert('x;"=1+1') == "x;'\"=1+1"


@pytest.mark.parametrize("formula", ["=1+1", "\t@x", '"=1', "-1", "- HYPERLINK(1)", "+ cmd|x", "-\n=1"])
def test_a_formula_on_a_line_is_made_inert_for_spreadsheets_that_cut_there(formula: str) -> None:
    assert inert(f"x\n{formula}").startswith("x\n'")
    assert "\n=" not in inert(f"x\n{formula}")


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "1 - 2 = -1",
        "a; - b",
        "x@y.org",
        "100 %",
        "Steps:\n- one\n  - two\n\n+ three",
        "def f():\n\treturn 1",
        *WRITTEN,
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert inert(text) == text
    assert next(csv.reader(csv_rows((text,), []))) == [text]


def test_a_cell_holds_no_more_than_spreadsheets_take() -> None:
    for text in ("x" * 40_000, "\x00" * 40_000):
        assert len(inert(text)) == 32_000
        assert inert(text).endswith("…")


def test_numbers_stay_numbers_and_text_is_quoted() -> None:
    assert list(csv_rows(("a", "b", "c"), [("x", -1.5, None)])) == ['"a","b","c"\r\n', '"x",-1.5,""\r\n']


TEXTS = (
    "plain",
    "",
    "“quoted” – text",
    'a "b"',
    "a, b",
    "line\nline",
    "x\r\ny",
    "x;=1",
    "=1+1",
    "x|=1",
    "\u200cjoined",
    "\u05d0 ",
    "\u200e=2",
    "x" * 40_000,
    *WRITTEN,
)


@pytest.mark.parametrize("cells", [*([text] for text in TEXTS), TEXTS, ("plain", 1, None, 0.1, "=1"), (None, "a", -1)])
def test_columns_are_written_as_their_cells(cells: Sequence[Value]) -> None:
    rows = [(cell, "the same", number) for number, cell in enumerate([*cells] * 300)]
    written = [[inert(c) if isinstance(c, str) else "" if c is None else str(c) for c in row] for row in rows]
    found = csv.reader(io.StringIO("".join(csv_rows(("a", "b", "c"), rows)), newline=""))
    assert list(found) == [["a", "b", "c"], *written]


def shown(*tables: list[tuple[str, ...]]) -> list[list[str]]:
    """The CSV of tables, each given as its titles and rows."""
    made = (table(rows[0][0], [words(rows[0][0]), *map(Column, rows[0][1:])], rows[1:]) for rows in tables)
    return list(csv.reader(lines(View("", "", (Section("", tables=tuple(made)),)))))


def test_numbers_of_a_table_are_numbers_and_intervals_are_two_columns() -> None:
    interval = Column("95% CI", interval=True)
    columns = (words("scorer"), Column("mean"), interval, Column("n"), Column("rate"), interval)
    rows = [("a", "-0.50", "-0.80 to -0.20", "1,234", "5%", "1% to 9%"), ("b", "-", "-", "7", "0%", "-")]
    view = View("", "", (Section("", tables=(table("", columns, rows),)),))
    assert list(lines(view)) == [
        '"scorer","mean","95% CI, low","95% CI, high","n","rate","rate 95% CI, low","rate 95% CI, high"\r\n',
        '"a",-0.5,-0.8,-0.2,1234,"5%","1%","9%"\r\n',
        '"b","","","",7,"0%","",""\r\n',
    ]


@pytest.mark.parametrize(
    ("cells", "limits"),
    [
        (["-"], [["", ""]]),
        (["0.1 to 0.5", "-"], [["0.1", "0.5"], ["", ""]]),
        (["130"], [["130", "130"]]),
        (["", "unknown"], [["", ""], ["unknown", ""]]),
        ([], []),
    ],
)
def test_the_limits_of_an_interval_are_two_columns_whatever_the_cells_are(
    cells: list[str], limits: list[list[str]]
) -> None:
    columns = (words("scorer"), Column("possible", interval=True, csv="limits"))
    shown = table("", columns, [(str(place), cell) for place, cell in enumerate(cells)])
    header, *rows = csv.reader(lines(View("", "", (Section("", tables=(shown,)),))))
    assert header == ["scorer", "limits, low", "limits, high"]
    assert [row[1:] for row in rows] == limits


def test_a_column_that_other_formats_leave_out_is_there_and_a_row_without_a_name_continues_the_one_above() -> None:
    columns = (words("scorer"), Column("n", informative=False), Column("k"))
    view = View("", "", (Section("", tables=(table("", columns, [("a", "3", "1"), ("", "3", "2")]),)),))
    assert list(csv.reader(lines(view))) == [["scorer", "n", "k"], ["a", "3", "1"], ["a", "3", "2"]]


def test_several_tables_stand_below_their_titles() -> None:
    found = shown([("first", "n"), ("a", "1")], [("second", "n"), ("b", "2")])
    assert found == [["first"], ["first", "n"], ["a", "1"], [], ["second"], ["second", "n"], ["b", "2"]]


def test_a_text_of_the_user_is_neither_an_interval_nor_a_number_nor_absent() -> None:
    columns = (words("scorer"), words("name"), Column("n"))
    rows = [("a", Cell(text, quoted=True), Cell(text, quoted=True)) for text in ("1 to 5", "18 to 30", "-", "7")]
    view = View("", "", (Section("", tables=(table("", columns, rows),)),))
    texts = ["1 to 5", "18 to 30", "'-", "7"]
    assert list(lines(view)) == ['"scorer","name","n"\r\n', *(f'"a","{text}","{text}"\r\n' for text in texts)]


def headers(result: Gate | PowerAnalysis) -> list[str]:
    return next(csv.reader(result.csv_lines()))


def test_the_columns_of_a_result_are_the_same_whatever_its_data_are() -> None:
    run, other = run_of([0.1, 0.5, 0.9, 0.4]), run_of([0.1, 0.5, 0.8, 0.5])
    tested, untested = gate(run, min={"given": 0.5}), gate(run, min={"given": 0.5}, alpha=None)
    assert headers(tested) == headers(untested)
    assert {"limits, low", "limits, high"} <= {*headers(tested)}
    assert headers(power(run)) == headers(power(run, 1, baseline=other))
    assert next(csv.reader(run.csv_lines()))[-1] == "trial"
