from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.scorers import Levenshtein
from evalstone.types import Sample, Skipped
from tests.fakes import outcome_of, score_of


def value(reference: str, output: str, **options: Any) -> float:
    return score_of(Levenshtein(**options), Sample(reference=reference, output=output), []).value


def test_three_edits_of_seven_characters_leave_four_sevenths():
    score = score_of(Levenshtein(), Sample(reference="sitting", output="kitten"), [])
    assert score.value == pytest.approx(4 / 7)
    assert (score.evidence.edits, score.evidence.characters) == (3, 7)


def distance(left: str, right: str) -> int:
    """The table of Wagner and Fischer, row by row."""
    row = list(range(len(right) + 1))
    for i, one in enumerate(left, start=1):
        before, row = row, [i]
        for j, other in enumerate(right, start=1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (one != other)))
    return row[-1]


@given(st.text("abé😀 ", min_size=1, max_size=12), st.text("abé😀 ", max_size=12))
def test_it_is_the_distance_by_the_longer_length(reference: str, output: str):
    outcome = outcome_of(Levenshtein(), Sample(reference=reference, output=output), [])
    if not reference.strip():
        assert isinstance(outcome, Skipped)
    elif output.strip():
        longest = max(len(reference), len(output))
        assert value(reference, output) == pytest.approx(1 - distance(reference, output) / longest)
        assert value(reference, output) == value(output, reference)
        assert value(reference, reference) == 1


def test_case_and_white_space_count_unless_they_are_ignored():
    assert value("Oslo", "oslo") == pytest.approx(3 / 4)
    assert value("Oslo", "oslo", ignore_case=True) == 1
    assert value("a  b", " a\nb ") < 1
    assert value("a  b", " a\nb ", ignore_whitespace=True) == 1


def test_characters_are_code_points_as_they_are():
    assert value("é", "e\u0301") == 0
    assert value("😀a", "😁a") == 0.5


@pytest.mark.parametrize("output", ["", " ", "\n\t"])
def test_a_blank_answer_has_zero(output: str):
    assert value("a b", output) == 0
