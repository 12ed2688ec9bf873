from __future__ import annotations

import pytest

from evalstone.scorers.base import lines_of
from evalstone.scorers.custom.rubric import Criterion, parse_criteria


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
