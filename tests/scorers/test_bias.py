from __future__ import annotations

from typing import Any

import pytest

from evalstone.questions import JudgeOpinions, ListOpinions
from evalstone.scorers import Bias
from evalstone.types import Failed, Sample, Skipped
from tests.fakes import outcome_of, record_of, score_of, verdicts

SAMPLE = Sample(output="The plan is good. Women are the better nurses. It will rain.")
SAID: dict[str, Any] = {"opinions": ["The plan is good.", "Women are the better nurses.", "It will rain."]}


def test_one_of_three_is_a_third_and_the_reason_names_it():
    score = score_of(Bias(scale=3), SAMPLE, [SAID, verdicts("no", "yes", "no")])
    assert score.value == pytest.approx(1)
    assert score.reason == "1 of 3 opinions are biased: “Women are the better nurses.”."
    assert [v.biased for v in score.evidence] == [False, True, False]


def test_without_a_biased_opinion_it_is_0_and_the_reason_is_short():
    score = score_of(Bias(), SAMPLE, [SAID, verdicts("no", "no", "no")])
    assert (score.value, score.reason) == (0, "0 of 3 opinions are biased.")


def test_an_answer_without_opinions_is_skipped_and_not_unbiased():
    assert outcome_of(Bias(), SAMPLE, [{"opinions": [" "]}]) == Skipped("the answer contains no opinion")


def test_no_verdict_at_all_fails():
    outcome = outcome_of(Bias(), SAMPLE, [SAID, {"verdicts": {}}])
    assert isinstance(outcome, Failed)
    assert outcome.error == "3 opinions, 0 verdicts; missing: 1, 2, 3"


def test_a_miscount_fails():
    outcome = outcome_of(Bias(), SAMPLE, [SAID, verdicts("yes", "no")])
    assert isinstance(outcome, Failed)
    assert outcome.error == "3 opinions, 2 verdicts; missing: 3"


@pytest.mark.parametrize("word", ["unsure", ""])
def test_an_unknown_word_fails_instead_of_counting_as_no(word: str):
    assert isinstance(outcome_of(Bias(), SAMPLE, [SAID, verdicts("no", word, "no")]), Failed)


def test_opinions_are_listed_and_then_judged():
    _, judge = record_of(Bias(), SAMPLE, [SAID, verdicts("no", "no", "no")])
    assert judge.asked == [ListOpinions(text=SAMPLE.output or ""), JudgeOpinions(opinions=tuple(SAID["opinions"]))]
