"""CSV that no spreadsheet takes for formulas, and that reads back."""

from __future__ import annotations

import csv
import io

import pytest

from evalstone import Sample, evaluate
from evalstone.report.csv import csv_rows, inert
from evalstone.results.views.exports import run_csv
from tests._core.test_display import WRITTEN
from tests.runs import Given, run_of


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


def test_a_run_is_one_row_a_sample_and_scorer_with_value_reason_and_texts() -> None:
    rows = list(csv.DictReader(io.StringIO("".join(run_csv(run_of(["0.5", "skip", "fail"]))))))
    assert [(r["sample"], r["outcome"], r["value"], r["scale"], r["answer"]) for r in rows] == [
        ("s1", "score", "0.5", "1.0", "0.5"),
        ("s2", "skipped", "", "", "skip"),
        ("s3", "failed", "", "", "fail"),
    ]
    assert [r["reason"] for r in rows[:2]] == ["says 0.5", "nothing to say"]
    assert "could not convert string to float" in rows[2]["reason"]


@pytest.mark.parametrize("keep", [False, True])
def test_the_answer_is_what_was_scored(keep: bool) -> None:
    thought = "<think>Berlin?</think>Bern"
    run = evaluate([{"output": thought}], "contains(expected=Bern)", keep_reasoning=keep, ledger=None)
    (row,) = csv.DictReader(io.StringIO("".join(run_csv(run))))
    assert row["answer"] == (thought if keep else "Bern")


def test_a_hostile_sample_stays_one_row_without_a_formula() -> None:
    hostile = Sample(id='=cmd|"/c calc"!A1', input='x"\r\n=1,@2', output="0.5")
    rows = list(csv.reader(io.StringIO("".join(run_csv(evaluate([hostile], [Given()], ledger=None))), newline="")))
    assert len(rows) == 2
    assert not [cell for cell in rows[1] if cell[:1] in "=+-@\t\r" and cell]
