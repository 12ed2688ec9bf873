"""Markdown in which judged text cannot act: no link, picture, mention, HTML or broken table."""

from __future__ import annotations

import re

import pytest

from evalstone import Sample, evaluate
from evalstone.report.markdown import lines, literal, prose
from evalstone.report.view import Cell, Column, Section, View, table
from evalstone.results.views.run import run_view
from tests.runs import Given, run_of


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "`plain`"),
        ("a `b` c", "``a `b` c``"),
        ("`", "`` ` ``"),
        ("a|b", "`a|b`"),
        ("<img src=x>\n@team #1", "`<img src=x> @team #1`"),
        ("\u202eevil", "`\\u202eevil`"),
        ("", "` `"),
    ],
)
def test_judged_text_is_a_code_span_that_it_cannot_close(text: str, shown: str) -> None:
    assert literal(text) == shown


def test_a_bar_in_judged_text_is_escaped_in_a_table() -> None:
    columns = (Column("name", numeric=False), Column("value"))
    cells = table("caption", columns, [(Cell("a|b\\|c", quoted=True), "a|b")])
    view = View("", "", (Section("", tables=(cells,)),))
    assert "| `a\\|b\\\\|c` | a\\|b |" in list(lines(view))


def test_names_in_our_own_sentences_are_escaped() -> None:
    assert prose("[x](javascript:1) <b> @team #1 a_b*c|d") == (
        "\\[x\\]\\(javascript\\:1\\) \\<b\\> @<!-- -->team #<!-- -->1 a\\_b\\*c\\|d"
    )


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("write to me@evil.com", "write to me@<!-- -->evil.com"),
        ("a_b@c-d.co.uk", "a\\_b@<!-- -->c\\-d.co.uk"),
        (
            "www.evil.com (WWW.evil.com _www.evil.com",
            "www<!-- -->.evil.com \\(WWW<!-- -->.evil.com \\_www<!-- -->.evil.com",
        ),
        ("other/project#12 GH-3", "other/project#<!-- -->12 GH<!-- -->\\-3"),
        ("lexical@6 # 1 awww.x", "lexical\\@6 \\# 1 awww.x"),
    ],
)
def test_what_becomes_a_link_by_itself_is_broken_up(text: str, broken: str) -> None:
    assert prose(text) == broken


def test_a_run_shows_mean_interval_counts_and_what_is_missing() -> None:
    text = "\n".join(lines(run_view(run_of(["0.25", "0.75", "skip"]))))
    assert re.search(
        r"^\| given \| 0\.500 \| 0\.\d{3} to 0\.\d{3} \| 2 \| 1 \| 0 \| ↑ higher is better \|$", text, re.MULTILINE
    )
    assert "between 0.333 and 0.667" in text
    assert "| given | 1 | `nothing to say` |" in text


def test_every_row_of_a_table_has_the_same_number_of_cells_whatever_the_samples_hold() -> None:
    sample = Sample(id="a|b\n|c|", input="| x | y |", output="0.5", metadata={})
    run = evaluate([sample], [Given()], ledger=None)
    rows = [line for line in lines(run_view(run)) if line.startswith("|")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {8}
