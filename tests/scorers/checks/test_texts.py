from __future__ import annotations

from collections.abc import Callable

import pytest

from evalstone import checks
from evalstone.errors import ConfigError
from evalstone.scorers.checks import Check
from evalstone.types import Sample
from tests.fakes import score_of

ANSWER = "The capital of France is Paris."


def value(check: Check, output: str = ANSWER) -> float:
    return score_of(check, Sample(output=output), []).value


def test_contains_looks_anywhere_and_ignores_case_unless_it_counts():
    assert value(checks.contains("PARIS")) == 1
    assert value(checks.contains("PARIS", ignore_case=False)) == 0
    assert value(checks.contains("London")) == 0


def test_not_contains_is_the_opposite_of_contains():
    assert value(checks.not_contains("paris")) == 0
    assert value(checks.not_contains("PARIS", ignore_case=False)) == 1


@pytest.mark.parametrize("check", [checks.contains, checks.not_contains, checks.regex])
def test_a_text_that_every_answer_contains_is_refused(check: Callable[..., Check]):
    with pytest.raises(ConfigError, match=r"(contains|regex): .* empty"):
        check("")
    assert value(check("", definition="mastra")) == (check is not checks.not_contains)


def test_an_empty_text_is_compared_with_the_whole_answer():
    assert value(checks.exact_match(""), "") == value(checks.regex("", exact=True), "") == 1
    assert value(checks.exact_match("")) == value(checks.regex("", exact=True)) == 0


def test_exact_match_takes_the_whole_answer_white_space_included():
    assert value(checks.exact_match(ANSWER.upper())) == 1
    assert value(checks.exact_match(ANSWER.upper(), ignore_case=False)) == 0
    assert value(checks.exact_match(ANSWER + " ")) == 0
    assert value(checks.exact_match(""), "") == 1


@pytest.mark.parametrize(
    ("check", "output", "held"),
    [
        (checks.regex("[A-Z]aris"), ANSWER, True),
        (checks.regex("paris"), ANSWER, False),
        (checks.regex("paris", ignore_case=True), ANSWER, True),
        (checks.regex("Paris", exact=True), ANSWER, False),
        (checks.regex(".*Paris.", exact=True), ANSWER, True),
        (checks.regex("a|b", exact=True), "a", True),
        (checks.regex("a|b", exact=True), "ac", False),
        (checks.regex("a", exact=True), "a\n", False),
        (checks.regex("(?s)a.b"), "a\nb", True),
    ],
)
def test_regex_looks_anywhere_or_at_the_whole_answer(check: Check, output: str, held: bool):
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
        (checks.contains("paris"), "The answer contains “paris”."),
        (checks.not_contains("London"), "The answer does not contain “London”."),
        (checks.exact_match("Paris"), "The answer differs from “Paris”."),
        (checks.regex(r"\d"), r"No part of the answer matches \d."),
        (checks.regex("P.*", exact=True), "The answer as a whole does not match P.*."),
        (checks.similarity("Paris", threshold=0.9), "The similarity is 0.276; the threshold is 0.9."),
    ],
)
def test_the_reason_says_what_was_found(check: Check, told: str):
    assert score_of(check, Sample(output=ANSWER), []).reason == told


@pytest.mark.parametrize("text", ["paris", "PARIS", "London", " ", "."])
@pytest.mark.parametrize("ignore_case", [True, False])
def test_of_contains_and_not_contains_one_holds_and_both_say_the_same(text: str, ignore_case: bool):
    one = score_of(checks.contains(text, ignore_case=ignore_case), Sample(output=ANSWER), [])
    other = score_of(checks.not_contains(text, ignore_case=ignore_case), Sample(output=ANSWER), [])
    assert one.value + other.value == 1
    assert one.reason == other.reason
