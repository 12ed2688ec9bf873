from __future__ import annotations

from typing import Any, cast

import pytest

from evalstone.questions import FindAnswers, ListClaims, ListQuestions, QuestionVerdict, VerifyClaims
from evalstone.scorers import Summarization
from evalstone.scorers.text.summarization import coverage
from evalstone.types import Failed, Sample
from tests.fakes import claims, outcome_of, record_of, score_of, verdicts
from tests.refusals import refused

SAMPLE = Sample(input="Ada wrote notes in 1843.", output="Ada wrote. She was tall.")
MADE = claims("Ada wrote.", "She was tall.")
SUPPORT = verdicts("supported", "not_mentioned")


def questions(*texts: str) -> dict[str, Any]:
    return {"questions": list(texts)}


def source_of(sample: Sample) -> str:
    return sample.metadata["source"]


@pytest.mark.parametrize(
    ("answered", "most", "expected"),
    [
        ([True, False], 10, 0.5),
        ([True, True, False, False], 2, 1),
        ([False, True, True], 1, 0),
        ([True, True, True], 2.5, 0.8),
        ([True], 2.5, 1),
    ],
)
def test_coverage_counts_the_first_questions_up_to_a_number(answered: list[bool], most: float, expected: float):
    assert coverage([QuestionVerdict("q", one) for one in answered], most) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answered", "value", "reason"),
    [
        (
            ("yes", "no", "no"),
            10 / 3,
            "alignment 0.5, coverage 0.33; not in the source: “She was tall.”; "
            "not answered: “Was it in 1843?”; “Were it notes?”.",
        ),
        (("yes", "yes", "yes"), 5, "alignment 0.5, coverage 1; not in the source: “She was tall.”."),
    ],
)
def test_the_worse_of_both_shares_is_the_score(answered: tuple[str, ...], value: float, reason: str):
    three = questions("Did Ada write?", "Was it in 1843?", "Were it notes?")
    score = score_of(Summarization(scale=10), SAMPLE, [three, verdicts(*answered), MADE, SUPPORT])
    assert (score.value, score.reason) == (pytest.approx(value), reason)


def test_it_asks_four_questions_two_of_them_those_of_faithfulness_to_the_source():
    source, summary = SAMPLE.input or "", SAMPLE.output or ""
    _, judge = record_of(Summarization(max_questions=3), SAMPLE, [questions("q"), verdicts("yes"), MADE, SUPPORT])
    assert judge.asked == [
        ListQuestions(text=source, limit="3"),
        FindAnswers(text=summary, questions=("q",)),
        ListClaims(text=summary),
        VerifyClaims(claims=tuple(MADE["claims"]), context=(source,)),
    ]


@pytest.mark.parametrize(
    ("scorer", "source"),
    [
        (Summarization(source="own"), "own"),
        (Summarization(source="own", source_from=source_of), "from the sample"),
        (Summarization(), "input"),
    ],
)
def test_the_source_comes_from_the_function_then_the_scorer_then_the_input(scorer: Summarization, source: str):
    sample = Sample(input="input", output="o", metadata={"source": "from the sample"})
    _, judge = record_of(scorer, sample, [questions("q"), verdicts("yes"), claims("c"), verdicts("supported")])
    assert cast(ListQuestions, judge.asked[0]).text == source
    assert cast(VerifyClaims, judge.asked[3]).context == (source,)


def test_a_scorer_with_a_source_needs_no_input():
    replies = [questions("q"), verdicts("yes"), claims("c"), verdicts("supported")]
    assert score_of(Summarization(source="s"), Sample(output="o"), replies).value == 1


def test_a_broken_reply_on_one_side_is_not_hidden_by_nothing_on_the_other():
    assert isinstance(outcome_of(Summarization(), SAMPLE, [questions(), MADE, verdicts("supported")]), Failed)
    assert isinstance(outcome_of(Summarization(), SAMPLE, [questions("q", "r"), verdicts("yes"), claims()]), Failed)


def test_more_questions_than_the_limit_are_all_answered_and_the_first_count():
    scorer = Summarization(max_questions=1)
    replies = [questions("q", "r"), verdicts("yes", "no"), claims("c"), verdicts("supported")]
    assert score_of(scorer, SAMPLE, replies).value == 1
    replies[1] = verdicts("yes")
    assert isinstance(outcome_of(scorer, SAMPLE, replies), Failed)


def test_a_source_that_is_no_function_is_refused():
    with refused("source_from"):
        Summarization(source_from=cast(Any, "f"))
