from __future__ import annotations

import pytest

from evalstone.scorers import RougeL
from evalstone.scorers.text.similarity import Overlap
from evalstone.types import Sample, Skipped
from tests.fakes import outcome_of, score_of


def value(reference: str, output: str) -> float:
    return score_of(RougeL(), Sample(reference=reference, output=output), []).value


def test_lins_example_sentences_have_three_and_two_of_four_words_in_order():
    assert value("police killed the gunman", "police kill the gunman") == pytest.approx(3 / 4)
    assert value("police killed the gunman", "the gunman kill police") == pytest.approx(2 / 4)


def test_precision_and_recall_are_weighed_alike():
    score = score_of(RougeL(), Sample(reference="a b c d", output="a c"), [])
    assert score.value == pytest.approx(2 * 1 * 0.5 / 1.5)
    assert score.evidence == Overlap(common=2, output_words=2, other_words=4)
    assert score.reason == "2 words in common, in order, of 2 and 4."


def test_case_and_punctuation_do_not_count():
    assert value("The cat, it sat!", "the CAT it sat") == 1


def test_japanese_counts_pairs_of_characters():
    assert value("東京都", "東京") == pytest.approx(2 * 1 / 3)


def test_a_long_text_in_thai_has_the_words_of_a_short_one():
    assert value("การทำงาน", "การทำงาน" * 9) == pytest.approx(2 * 8 / (8 + 80))


def test_a_text_without_words_is_skipped():
    assert outcome_of(RougeL(), Sample(reference="?!", output="a"), []) == Skipped("the reference has no words")
    assert outcome_of(RougeL(), Sample(reference="a", output="…"), []) == Skipped("the answer has no words")
    assert outcome_of(RougeL(), Sample(reference=" ", output="a"), []) == Skipped("the reference is blank")


def test_it_compares_with_the_input_where_that_is_asked_for():
    assert RougeL.required_fields == ("reference", "output")
    assert score_of(RougeL(compare_to="input"), Sample(input="a b", output="a b"), []).value == 1
