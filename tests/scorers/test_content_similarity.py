from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.scorers import ContentSimilarity
from evalstone.scorers.text.similarity import dice
from evalstone.types import Sample, Score, Skipped
from tests.fakes import outcome_of, score_of


def value(left: str, right: str, **options: Any) -> float:
    return score_of(ContentSimilarity(**options), Sample(input=left, output=right), []).value


def test_two_of_three_bigrams_in_each_text_are_four_sixths():
    assert value("nabd", "xabd") == pytest.approx(4 / 6)


def test_a_bigram_counts_as_often_as_both_texts_have_it():
    assert dice("aaaa", "aa") == pytest.approx(2 * 1 / 4)
    assert dice("aaaa", "aaa") == pytest.approx(2 * 2 / 5)


def test_white_space_is_left_out_before_bigrams_are_counted():
    assert value("night fall", "nightfall\n") == 1


def test_case_is_ignored_unless_it_is_asked_for():
    assert value("ABC", "abc") == 1
    assert value("ABC", "abc", ignore_case=False) == 0


def test_texts_of_one_character_are_equal_or_wholly_different():
    assert (dice("a", "a"), dice("a", "b"), dice("a", "ab"), dice("", "")) == (1, 0, 0, 1)


def test_an_emoji_is_two_characters():
    assert dice("😀", "😁") == 0
    assert dice("a😀", "b😀") == pytest.approx(2 * 1 / 4)


@given(st.text(max_size=20), st.text(max_size=20))
def test_it_lies_between_zero_and_one_and_is_the_same_both_ways_round(left: str, right: str):
    assert 0 <= dice(left, right) <= 1
    assert dice(left, right) == dice(right, left)
    assert dice(left, left) == 1


def test_it_compares_with_the_reference_where_that_is_asked_for():
    scorer = ContentSimilarity(compare_to="reference")
    assert scorer.required_fields == ("reference", "output")
    assert score_of(scorer, Sample(input="x", output="abc", reference="abc"), []).value == 1
    assert isinstance(outcome_of(scorer, Sample(input="x", output="abc"), []), Skipped)


def test_called_alone_it_tells_what_is_absent():
    skipped = outcome_of(ContentSimilarity(), Sample(output="a", reference="a"), [])
    assert ContentSimilarity().score(output="a", reference="a") == skipped


def test_the_score_stands_on_its_scale():
    assert score_of(ContentSimilarity(scale=10), Sample(input="abc", output="abc"), []) == Score(
        10, "Bigrams in common.", scale=10
    )
