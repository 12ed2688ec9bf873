from __future__ import annotations

from typing import Any

import pytest

from evalstone.errors import ConfigError
from evalstone.questions import CheckCriteria
from evalstone.scorers import Criterion, Rubric
from evalstone.scorers.custom.rubric import meets
from evalstone.types import Sample
from tests.fakes import record_of, score_of, verdicts

SAMPLE = Sample(input="Tell me about Ada.", output="Ada, 1815.")
CRITERIA = (Criterion("It names Ada"), Criterion("It names a year"), Criterion("It is kind", required=False))


def required(*flags: bool) -> list[Criterion]:
    return [Criterion("c", required=flag) for flag in flags]


@pytest.mark.parametrize(
    ("criteria", "met", "expected"),
    [
        (required(True, True), [True, True], True),
        (required(True, True), [True, False], False),
        (required(True, False), [True, False], True),
        (required(True, False), [False, True], False),
        (required(False, False), [True, False], False),
        (required(False, False), [True, True], True),
    ],
)
def test_required_criteria_decide_and_all_do_where_none_is_required(
    criteria: list[Criterion], met: list[bool], expected: bool
):
    assert meets(criteria, met) is expected


@pytest.mark.parametrize(
    ("words", "value", "reason"),
    [
        (
            ("yes", "no", "no"),
            0,
            "1 of 3 criteria are met; required and not met: “It names a year”; optional and not met: “It is kind”.",
        ),
        (("yes", "yes", "no"), 10, "2 of 3 criteria are met; optional and not met: “It is kind”."),
    ],
)
def test_required_criteria_decide_and_the_reason_names_what_is_not_met(
    words: tuple[str, ...], value: float, reason: str
):
    score = score_of(Rubric(criteria=CRITERIA, scale=10), SAMPLE, [verdicts(*words)])
    assert (score.value, score.reason) == (value, reason)


@pytest.mark.parametrize(
    "given",
    [
        "- It names Ada\n\n  2) It names a year\n",
        ["It names Ada", {"description": "It names a year"}],
        [Criterion("It names Ada"), {"description": "It names a year", "required": True}],
    ],
)
def test_criteria_can_be_written_in_several_ways(given: Any):
    assert Rubric(criteria=given).criteria == CRITERIA[:2]
    _, judge = record_of(Rubric(), Sample(output="a", metadata={"rubric": given}), [verdicts("yes", "yes")])
    assert judge.asked == [CheckCriteria(criteria=("It names Ada", "It names a year"), task="", answer="a")]


def test_the_scorers_criteria_win_over_those_of_the_sample_and_the_task_is_shown():
    sample = Sample(input="t", output="a", metadata={"rubric": "other"})
    _, judge = record_of(Rubric(criteria="one"), sample, [verdicts("yes")])
    assert judge.asked == [CheckCriteria(criteria=("one",), task="t", answer="a")]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (5, "criteria must be a checklist or a list of criteria, not int"),
        ([5], "a criterion is a text, a Criterion or a table, not int"),
        ([" "], "Criterion: description must be text"),
        ([{"required": True}], "a criterion's table needs a description"),
        ([{"descripton": "x"}], "criterion: unknown field 'descripton'; did you mean description"),
        ([{"description": "x", "required": "no"}], "required must be true or false"),
    ],
)
def test_criteria_that_are_none_are_refused(given: Any, told: str):
    with pytest.raises(ConfigError, match=told):
        Rubric(criteria=given)
