"""The probability of a yes, and expected values of other choices."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone import LLMClassifier, ScriptedJudge, score
from evalstone.models.provider import Completion
from evalstone.types import Score, Skipped


def value(choices: Any, chosen: str, alternatives: dict[str, float] | None, **options: Any) -> Any:
    reply = json.dumps({"reason": "It says so.", "verdict": chosen})
    judge = ScriptedJudge([reply if alternatives is None else Completion(reply, alternatives=alternatives)])
    scorer = LLMClassifier("Is {{output}} polite?", choices=choices, **options)
    return score(scorer, output="Hi.", judge=judge).outcome


YES_NO = {"yes": 1.0, "no": 0.0}


@pytest.mark.parametrize(
    ("chosen", "alternatives", "expected"),
    [
        ("yes", {"yes": 0.75, "no": 0.25}, 0.75),
        ("no", {"yes": 0.2, "no": 0.6}, 0.25),
        ("yes", {"yes": 0.9}, 1.0),
        ("no", {"no": 1.0}, 0.0),
        ("yes", {"yes": 0.5, "no": 0.25, "maybe": 0.25}, 2 / 3),
    ],
)
def test_the_probability_of_a_yes(chosen: str, alternatives: dict[str, float], expected: float) -> None:
    outcome = value(YES_NO, chosen, alternatives, weighted=True, scale=10)
    assert isinstance(outcome, Score)
    assert outcome.value == pytest.approx(10 * expected)
    assert value(YES_NO, chosen, alternatives).value == YES_NO[chosen]


def test_the_expected_value_of_several_words() -> None:
    choices = {"rude": 0.0, "neutral": 0.5, "polite": 1.0, "unclear": None}
    outcome = value(choices, "neutral", {"neutral": 0.5, "polite": 0.25, "unclear": 0.25}, weighted=True)
    assert outcome.value == pytest.approx((0.25 + 0.25) / 0.75)
    abstained = value(choices, "unclear", {"unclear": 0.9, "polite": 0.1}, weighted=True)
    assert isinstance(abstained, Skipped)
    assert "'unclear'" in abstained.reason


@pytest.mark.parametrize("alternatives", [None, {"no": 1.0}, {"yes": 7.0}])
def test_without_probabilities_the_word_decides_and_the_reason_says_so(alternatives: Any) -> None:
    outcome = value(YES_NO, "yes", alternatives, weighted=True)
    assert outcome.value == 1.0
    assert outcome.reason.startswith("yes: It says")
    assert "no probabilities" in outcome.reason


def test_weighting_is_part_of_the_signature_and_of_the_question() -> None:
    plain, weighted = (
        LLMClassifier("Is {{output}} ok?", name="ok"),
        LLMClassifier("Is {{output}} ok?", name="ok", weighted=True),
    )
    assert plain.signature != weighted.signature
