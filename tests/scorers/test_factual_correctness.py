"""Factual correctness: precision and recall of claims, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from evalstone import ScriptedJudge, evaluate, score
from evalstone.errors import ConfigError
from evalstone.scorers import FactualCorrectness
from evalstone.scorers.rag.claims import f_measure
from evalstone.types import Skipped
from tests.fakes import verdicts

CLAIMS = {"answer": ["a", "b", "c"], "reference": ["a", "b", "d", "e"]}
SAMPLE = {"output": "answer", "reference": "reference", "context": ["reference"]}


def judge(question: Any) -> Any:
    if question.kind == "list_claims":
        return {"claims": CLAIMS.get(question.text, [])}
    known = CLAIMS[question.context[0]]
    told = ("supported" if claim in known else "not_mentioned" for claim in question.claims)
    return verdicts(*told)


@pytest.mark.parametrize(("beta", "value"), [(1.0, 4 / 7), (2.0, 5 * (2 / 3) * 0.5 / (4 * (2 / 3) + 0.5))])
def test_two_of_three_claims_right_and_two_of_four_covered(beta: float, value: float) -> None:
    record = score(FactualCorrectness(beta=beta, scale=10), SAMPLE, judge=ScriptedJudge(judge))
    assert record.value == pytest.approx(10 * value)


def test_nothing_in_common_is_zero_and_everything_is_one() -> None:
    assert f_measure(0, 0, 1) == 0
    assert f_measure(1, 1, 3) == 1


@pytest.mark.parametrize(
    ("output", "reference", "told"), [("x", "reference", "the answer"), ("answer", "x", "the reference")]
)
def test_without_claims_on_a_side_it_is_undefined(output: str, reference: str, told: str) -> None:
    record = score("factual_correctness", output=output, reference=reference, judge=ScriptedJudge(judge))
    assert record.outcome == Skipped(f"{told} makes no claim")


def test_the_claims_are_listed_once_beside_faithfulness_and_context_recall() -> None:
    scripted = ScriptedJudge(judge)
    evaluate([SAMPLE], ["faithfulness", "context_recall", "factual_correctness"], judge=scripted, ledger=None)
    assert sorted(question.kind for question in scripted.asked) == ["list_claims"] * 2 + ["verify_claims"] * 3


def test_the_lexical_judge_can_answer_it() -> None:
    text = "Ada was born in 1815."
    assert score("factual_correctness", output=text, reference=text).value == 1.0


@pytest.mark.parametrize("beta", [0, -1, float("nan"), True])
def test_a_beta_that_is_no_positive_number_is_refused(beta: float) -> None:
    with pytest.raises(ConfigError, match="beta"):
        FactualCorrectness(beta=beta)
