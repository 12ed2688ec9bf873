from __future__ import annotations

import pytest

from evalstone._core.text import lines_of
from evalstone.scorers.base import share
from evalstone.scorers.custom.rubric import Criterion, parse_criteria
from evalstone.scorers.reasons import reason_with


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("- a\n* b\n  • c\n1. d\n2) e\nf", ("a", "b", "c", "d", "e", "f")),
        ("a\n\n   \n b \r\n", ("a", "b")),
        ("1815 is named\n-5 is below 0\n3.5 is a number", ("1815 is named", "-5 is below 0", "3.5 is a number")),
        ("- - twice", ("- twice",)),
        ("", ()),
        ("-\n- \n1.\n*bold* b\n•c\na - b 1. c", ("*bold* b", "c", "a - b 1. c")),
    ],
)
def test_the_lines_of_a_checklist_lose_one_mark_and_blank_ones_fall_out(text: str, lines: tuple[str, ...]):
    assert lines_of(text) == lines


def test_every_line_is_required():
    assert parse_criteria("- a\n- b") == (Criterion("a", required=True), Criterion("b", required=True))


@pytest.mark.parametrize(("values", "expected"), [([True], 1), ([False], 0), ([True, False, False], 1 / 3)])
def test_a_share_is_what_is_true_of_all(values: list[bool], expected: float):
    assert share(values) == expected


def test_a_reason_names_the_texts_of_each_list_that_is_not_empty():
    assert reason_with("2 of 3", ("missing", ["a", "b"]), ("extra", [])) == "2 of 3; missing: “a”; “b”."
    assert reason_with("2 of 3") == "2 of 3."
