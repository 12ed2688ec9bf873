from __future__ import annotations

import re
import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.scorers import F1Tokens
from evalstone.scorers.text.similarity import squad_tokens
from evalstone.types import Sample, Score
from tests.fakes import outcome_of, score_of


def value(reference: str, output: str) -> float:
    return score_of(F1Tokens(), Sample(reference=reference, output=output), []).value


@pytest.mark.parametrize(
    ("reference", "output", "expected"),
    [
        ("The Eiffel Tower", "eiffel tower!", 1),
        ("Eiffel Tower", "It is the Eiffel Tower in Paris", 2 * (2 / 6) * 1 / (2 / 6 + 1)),
        ("a b b c", "b b b", 2 * (2 / 3) * (2 / 3) / (2 / 3 + 2 / 3)),
        ("Paris", "London", 0),
        ("1,234.5", "12345", 1),
        ("don't", "dont", 1),
        ("Theatre", "The atre", 0),
        ("東京", "東京", 1),
        ("東京タワー", "東京", 0),
        ("“Paris”", "Paris", 0),
    ],
)
def test_words_in_common_by_hand(reference: str, output: str, expected: float):
    assert value(reference, output) == pytest.approx(expected)


def test_the_evidence_has_the_counts():
    score = score_of(F1Tokens(), Sample(reference="the red fox", output="a fox, red or blue"), [])
    assert (score.evidence.common, score.evidence.output_words, score.evidence.other_words) == (2, 4, 2)


@pytest.mark.parametrize("output", ["", " ", "the", "..."])
def test_an_answer_without_words_has_zero(output: str):
    assert value("Paris", output) == 0


def normalized(text: str) -> list[str]:
    """In the steps that SQuAD's evaluation is published with."""
    text = "".join(character for character in text.lower() if character not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split()).split()


@given(st.text("aAnthe .,é1😀\n", max_size=30), st.text("aAnthe .,é1😀\n", max_size=30))
def test_it_is_the_harmonic_mean_of_precision_and_recall(reference: str, output: str):
    assert squad_tokens(reference) == normalized(reference)
    outcome = outcome_of(F1Tokens(), Sample(reference=reference, output=output), [])
    if isinstance(outcome, Score):
        expected, own = normalized(reference), normalized(output)
        common = sum((Counter(expected) & Counter(own)).values())
        precision, recall = (common / len(own) if own else 0), common / len(expected)
        assert outcome.value == pytest.approx(2 * precision * recall / (precision + recall) if common else 0)
        if own:
            assert outcome.value == pytest.approx(value(output, reference))
        assert value(reference, reference) == 1
