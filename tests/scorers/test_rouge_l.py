from __future__ import annotations

import pytest

from evalstone.scorers import RougeL
from evalstone.scorers.text.similarity import Overlap
from evalstone.types import Sample
from tests.fakes import score_of


def value(reference: str, output: str) -> float:
    return score_of(RougeL(), Sample(reference=reference, output=output), []).value


@pytest.mark.parametrize(
    ("reference", "output", "share"),
    [
        ("police killed the gunman", "police kill the gunman", 3 / 4),  # the sentences of Lin 2004
        ("police killed the gunman", "the gunman kill police", 2 / 4),
        ("The cat, it sat!", "the CAT it sat", 1),
    ],
)
def test_words_in_order_count_whatever_their_case_and_punctuation(reference: str, output: str, share: float):
    assert value(reference, output) == pytest.approx(share)


def test_precision_and_recall_are_weighed_alike():
    score = score_of(RougeL(), Sample(reference="a b c d", output="a c"), [])
    assert score.value == pytest.approx(2 * 1 * 0.5 / 1.5)
    assert score.evidence == Overlap(common=2, output_words=2, other_words=4)


def test_japanese_counts_pairs_of_characters():
    assert value("東京都", "東京") == pytest.approx(2 * 1 / 3)


def test_a_long_text_in_thai_has_the_words_of_a_short_one():
    assert value("การทำงาน", "การทำงาน" * 9) == pytest.approx(2 * 8 / (8 + 80))


def test_it_compares_with_the_input_where_that_is_asked_for():
    assert RougeL.required_fields == ("reference", "output")
    assert score_of(RougeL(compare_to="input"), Sample(input="a b", output="a b"), []).value == 1
