from __future__ import annotations

import pytest

from evalstone import checks
from evalstone.scorers.checks import Check
from evalstone.types import Sample
from tests.fakes import score_of

ANSWER = "The capital of France is Paris."


def value(check: Check, output: str = ANSWER) -> float:
    return score_of(check, Sample(output=output), []).value


def test_includes_looks_anywhere_and_ignores_case_unless_told_otherwise():
    assert value(checks.includes("PARIS")) == 1
    assert value(checks.includes("PARIS", ignore_case=False)) == 0
    assert value(checks.includes("London")) == 0
    assert value(checks.includes("")) == 1


def test_excludes_is_the_opposite_of_includes():
    assert value(checks.excludes("paris")) == 0
    assert value(checks.excludes("PARIS", ignore_case=False)) == 1
    assert value(checks.excludes("")) == 0


def test_equals_takes_the_whole_answer_white_space_included():
    assert value(checks.equals(ANSWER.upper())) == 1
    assert value(checks.equals(ANSWER.upper(), ignore_case=False)) == 0
    assert value(checks.equals(ANSWER + " ")) == 0
    assert value(checks.equals(""), "") == 1


@pytest.mark.parametrize(
    ("check", "output", "held"),
    [
        (checks.matches("[A-Z]aris"), ANSWER, True),
        (checks.matches("paris"), ANSWER, False),
        (checks.matches("paris", ignore_case=True), ANSWER, True),
        (checks.matches("Paris", exact=True), ANSWER, False),
        (checks.matches(".*Paris.", exact=True), ANSWER, True),
        (checks.matches("a|b", exact=True), "a", True),
        (checks.matches("a|b", exact=True), "ac", False),
        (checks.matches("a", exact=True), "a\n", False),
        (checks.matches("(?s)a.b"), "a\nb", True),
    ],
)
def test_matches_looks_anywhere_or_at_the_whole_answer(check: Check, output: str, held: bool):
    assert value(check, output) == held


def test_similarity_is_a_share_of_bigrams_or_whether_it_reaches_a_threshold():
    assert value(checks.similarity("nabd"), "XABD") == pytest.approx(4 / 6)
    assert value(checks.similarity("nabd", ignore_case=False), "XABD") == 0
    assert value(checks.similarity("nabd", threshold=0.6), "xabd") == 1
    assert value(checks.similarity("nabd", threshold=0.7), "xabd") == 0
    assert value(checks.similarity("nabd", threshold=0), "zz") == 1
    assert value(checks.similarity("nabd"), "") == 0


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (checks.includes("paris"), "The answer has “paris” in it."),
        (checks.excludes("London"), "The answer has “London” nowhere."),
        (checks.equals("Paris"), "The answer differs from “Paris”."),
        (checks.matches(r"\d"), r"No part of the answer matches \d."),
        (checks.matches("P.*", exact=True), "The answer as a whole does not match P.*."),
        (checks.similarity("Paris", threshold=0.9), "A similarity of 0.276; at least 0.9 was asked for."),
    ],
)
def test_the_reason_says_what_was_found(check: Check, told: str):
    assert score_of(check, Sample(output=ANSWER), []).reason == told


@pytest.mark.parametrize("text", ["paris", "PARIS", "London", "", "."])
@pytest.mark.parametrize("ignore_case", [True, False])
def test_of_includes_and_excludes_one_holds_and_both_say_the_same(text: str, ignore_case: bool):
    one = score_of(checks.includes(text, ignore_case=ignore_case), Sample(output=ANSWER), [])
    other = score_of(checks.excludes(text, ignore_case=ignore_case), Sample(output=ANSWER), [])
    assert one.value + other.value == 1
    assert one.reason == other.reason
