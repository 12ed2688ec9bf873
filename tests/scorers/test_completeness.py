from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.scorers import Completeness
from evalstone.scorers.text.word_coverage import Coverage, content_words, covers, latin_words, uncovered
from evalstone.types import Sample
from tests.fakes import score_of


def letters(text: str) -> Sequence[str]:
    return [letter for letter in text if letter.isalpha()]


LETTERS = Completeness(elements=letters, definition="mastra", scale=5)


@pytest.mark.parametrize(
    ("scorer", "text", "output", "value", "reason"),
    [
        (
            Completeness(),
            "Name the river, the bridge and the engine.",
            "Rivers under bridges.",
            0.5,
            "2 of 4 elements are covered; missing: “name”; “engine”.",
        ),
        (LETTERS, "1", "a", 0, "The input has no elements; the answer has 1."),
        (LETTERS, "1", "2", 5, "The input has no elements; the answer has 0."),
    ],
)
def test_the_reason_counts_the_elements_and_names_those_that_are_missing(
    scorer: Completeness, text: str, output: str, value: float, reason: str
):
    score = score_of(scorer, Sample(input=text, output=output), [])
    assert (score.value, score.reason) == (value, reason)


def test_the_evidence_has_the_elements_and_the_missing_ones():
    score = score_of(Completeness(elements=str.split), Sample(input="abcde xy", output="abcd xyz"), [])
    assert score.value == 0.5
    assert score.evidence == Coverage(("abcde", "xy"), ("xy",))


@pytest.mark.parametrize(
    ("given", "wanted", "held"),
    [
        ("report", "reports", True),
        ("reports", "report", True),
        ("report", "reporters", True),
        ("abc", "abcd", True),
        ("abcd", "abc", False),
        ("abc", "abcde", False),
        ("abcd", "abcdef", True),
        ("xabcd", "abcde", False),
        ("", "a", False),
    ],
)
def test_an_element_is_covered_by_a_like_one_of_like_length(given: str, wanted: str, held: bool):
    assert covers(given, wanted) is held
    assert (uncovered([wanted], [given]) == ()) is held


SOME = st.lists(st.text("ab", max_size=8) | st.text("ab", min_size=30, max_size=90), max_size=6)


@given(SOME, SOME)
def test_looking_parts_up_gives_what_trying_every_pair_would(wanted: list[str], there: list[str]):
    tried = tuple(w for w in wanted if not any(covers(g, w) for g in there))
    assert uncovered(wanted, there) == tried


@pytest.mark.parametrize(
    ("elements", "text", "expected"),
    [
        (content_words, "The café, the CAFÉ and a crème brûlée at 7:30.", ("cafe", "creme", "brulee", "7", "30")),
        (content_words, "東京は日本", ("東京", "京は", "は日", "日本")),
        (content_words, "and of the", ()),
        (latin_words, "The CAFÉ's crème, and the 東京 x2!", ("the", "cafe", "s", "creme", "and", "x2")),
    ],
)
def test_elements_are_distinct_words_ours_without_stop_words_and_mastra_s_in_latin_letters(
    elements: Callable[[str], Sequence[str]], text: str, expected: tuple[str, ...]
):
    assert elements(text) == expected


def test_the_reference_may_be_what_is_to_be_taken_up():
    sample = Sample(input="x", output="Paris", reference="Paris")
    assert score_of(Completeness(compare_to="reference"), sample, []).value == 1


def test_mastra_takes_all_words():
    sample = Sample(input="Is it open?", output="It is.")
    assert score_of(Completeness(definition="mastra"), sample, []).value == pytest.approx(2 / 3)
    assert score_of(Completeness(), sample, []).value == 0


@pytest.mark.slow
def test_thousands_of_elements_take_no_quadratic_time():
    wanted = [f"{number:06}abcdef" for number in range(20_000)]
    started = time.perf_counter()
    assert len(uncovered(wanted, [word[::-1] for word in wanted])) > 19_000
    assert time.perf_counter() - started < 20
