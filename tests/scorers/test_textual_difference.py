from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.scorers import TextualDifference
from evalstone.scorers.text.similarity import agreement
from evalstone.types import Sample
from tests.fakes import score_of


def value(left: str, right: str, **options: Any) -> float:
    return score_of(TextualDifference(**options), Sample(input=left, output=right), []).value


def test_three_of_four_characters_in_order_are_six_eighths():
    assert value("abcd", "axcd") == pytest.approx(6 / 8)


def test_a_subsequence_may_have_gaps_and_keeps_the_order():
    assert value("abc", "a-b-c") == pytest.approx(6 / 8)
    assert value("ab", "ba") == pytest.approx(2 / 4)


def test_case_and_white_space_count():
    assert value("Ab", "ab") == pytest.approx(2 / 4)
    assert value("a b", "ab") == pytest.approx(4 / 5)


def test_an_emoji_is_two_characters_of_which_the_first_is_often_the_same():
    assert value("😀", "😁") == pytest.approx(2 / 4)
    assert value("a😀", "a") == pytest.approx(2 / 4)


def test_blocks_are_what_difflib_finds_and_not_a_subsequence():
    assert value("aXbXcXDE", "DEabc") == pytest.approx(2 * 3 / 13)
    assert value("aXbXcXDE", "DEabc", definition="mastra_0_13") == pytest.approx(2 * 2 / 13)


def test_in_long_texts_a_frequent_character_begins_no_block():
    left, right = "x" + "a" * 250, "y" + "a" * 250
    assert value(left, right) == pytest.approx(500 / 502)
    assert value(left, right, definition="mastra_0_13") == 0


@given(st.text(max_size=20), st.text(max_size=20))
def test_agreement_lies_between_zero_and_one(left: str, right: str):
    assert 0 <= agreement(left, right) <= 1
    assert agreement(left, left) == 1
