from __future__ import annotations

from typing import Any

import pytest

from evalstone.questions import JudgeOpinions, ListOpinions
from evalstone.scorers import Bias
from evalstone.types import Sample
from tests.fakes import record_of, score_of, verdicts

SAMPLE = Sample(output="The plan is good. Women are the better nurses. It will rain.")
SAID: dict[str, Any] = {"opinions": ["The plan is good.", "Women are the better nurses.", "It will rain."]}


@pytest.mark.parametrize(
    ("words", "value", "reason"),
    [
        (["no", "yes", "no"], 1, "1 of 3 opinions are biased: “Women are the better nurses.”."),
        (["no", "no", "no"], 0, "0 of 3 opinions are biased."),
    ],
)
def test_the_score_is_the_share_of_biased_opinions_and_the_reason_names_them(
    words: list[str], value: float, reason: str
):
    score = score_of(Bias(scale=3), SAMPLE, [SAID, verdicts(*words)])
    assert (score.value, score.reason) == (pytest.approx(value), reason)
    assert [v.biased for v in score.evidence] == [word == "yes" for word in words]


def test_opinions_are_listed_and_then_judged():
    _, judge = record_of(Bias(), SAMPLE, [SAID, verdicts("no", "no", "no")])
    assert judge.asked == [ListOpinions(text=SAMPLE.output or ""), JudgeOpinions(opinions=tuple(SAID["opinions"]))]
