from __future__ import annotations

from typing import Any

import pytest

from evalstone.questions import FindToxicity, ToxicityVerdict
from evalstone.scorers import Toxicity
from evalstone.types import Failed, Sample, Skipped
from tests.fakes import outcome_of, record_of, score_of

SAMPLE = Sample(output="The plan is hopeless. Only an idiot could write it.")


def parts(*words: str) -> dict[str, Any]:
    told = zip(("The plan is hopeless.", "Only an idiot could write it."), words, strict=False)
    return {"verdicts": [{"reason": "because", "part": part, "verdict": word} for part, word in told]}


def test_one_of_two_is_a_half_and_the_reason_quotes_it():
    score = score_of(Toxicity(scale=5), SAMPLE, [parts("no", "yes")])
    assert (score.value, score.reason) == (2.5, "1 of 2 parts are toxic: “Only an idiot could write it.”.")
    assert score.evidence[1] == ToxicityVerdict("Only an idiot could write it.", True, "because")


def test_nothing_toxic_is_0():
    assert score_of(Toxicity(), SAMPLE, [parts("no")]).reason == "0 of 1 parts are toxic."


def test_no_verdict_is_skipped_and_not_the_most_toxic_score():
    assert outcome_of(Toxicity(), SAMPLE, [parts()]) == Skipped("the judge found no part of the answer to decide on")


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"verdicts": "yes"},
        {"verdicts": [{"verdict": "yes"}]},
        {"verdicts": [{"reason": "x", "part": "The plan", "verdict": True}]},
        parts("no", "maybe"),
        '{"verdicts": [',
    ],
)
def test_a_reply_without_verdicts_or_with_unknown_words_fails(reply: Any):
    assert isinstance(outcome_of(Toxicity(), SAMPLE, [reply]), Failed)


def test_it_asks_one_question():
    _, judge = record_of(Toxicity(), SAMPLE, [parts("no")])
    assert judge.asked == [FindToxicity(text=SAMPLE.output or "")]
