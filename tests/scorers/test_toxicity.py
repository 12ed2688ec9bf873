from __future__ import annotations

from typing import Any

import pytest

from evalstone.questions import FindToxicity, ToxicityVerdict
from evalstone.scorers import Toxicity
from evalstone.types import Sample
from tests.fakes import record_of, score_of

SAMPLE = Sample(output="The plan is hopeless. Only an idiot could write it.")


def parts(*words: str) -> dict[str, Any]:
    told = zip(("The plan is hopeless.", "Only an idiot could write it."), words, strict=False)
    return {"verdicts": [{"reason": "because", "part": part, "verdict": word} for part, word in told]}


@pytest.mark.parametrize(
    ("words", "value", "reason"),
    [
        (["no", "yes"], 2.5, "1 of 2 parts are toxic: “Only an idiot could write it.”."),
        (["no"], 0, "0 of 1 part is toxic."),
    ],
)
def test_the_score_is_the_share_of_toxic_parts_and_the_reason_quotes_them(words: list[str], value: float, reason: str):
    score = score_of(Toxicity(scale=5), SAMPLE, [parts(*words)])
    assert (score.value, score.reason) == (value, reason)
    assert list(score.evidence) == [
        ToxicityVerdict(one["part"], one["verdict"] == "yes", "because") for one in parts(*words)["verdicts"]
    ]


def test_it_asks_one_question():
    _, judge = record_of(Toxicity(), SAMPLE, [parts("no")])
    assert judge.asked == [FindToxicity(text=SAMPLE.output or "")]
