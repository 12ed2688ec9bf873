from __future__ import annotations

from typing import Any

import pytest

from evalstone.errors import ConfigError
from evalstone.scorers import TrajectoryAccuracy
from evalstone.types import Message, Sample, Skipped, ToolCall, Trajectory, TrajectoryExpectation
from tests.fakes import outcome_of, score_of


def did(*names: str, expected: Any = None) -> Sample:
    steps = [{"step_type": "tool_call", "name": name} for name in names]
    wanted = None if expected is None else TrajectoryExpectation.read(expected)
    return Sample(trajectory=Trajectory.read(steps), expected_trajectory=wanted)


@pytest.mark.parametrize(
    ("definition", "sample", "value", "reason"),
    [
        (
            "evalstone",
            did("b", "a", "x", expected=["b", "x", "c"]),
            2,
            "2 of 3 expected steps were taken; missing: “c”; not expected: “a”.",
        ),
        ("evalstone", did("b", expected=["b"]), 3, "1 of 1 expected step was taken."),
        ("mastra", did("a"), 0, "No steps are expected: 0 by mastra."),
    ],
)
def test_the_reason_counts_the_expected_steps_and_names_those_that_differ(
    definition: Any, sample: Sample, value: float, reason: str
):
    score = score_of(TrajectoryAccuracy(scale=3, definition=definition), sample, [])
    assert (score.value, score.reason) == (pytest.approx(value), reason)


def test_the_scorer_s_steps_win_and_the_sample_s_ordering_wins():
    sample = did("b", "a", expected={"steps": ["x"], "ordering": "unordered"})
    assert score_of(TrajectoryAccuracy(expected=["a", "b"]), sample, []).value == 1
    assert score_of(TrajectoryAccuracy(expected=["a", "b"], ordering="strict"), sample, []).value == 1
    assert score_of(TrajectoryAccuracy(expected=["a", "b"], ordering="strict"), did("b", "a"), []).value == 0


def test_repeats_may_be_forbidden_by_the_scorer_and_allowed_by_the_sample():
    scorer = TrajectoryAccuracy(expected=["a"], allow_repeated_steps=False)
    assert score_of(scorer, did("a", "a"), []).value == pytest.approx(0.9)
    assert score_of(scorer, did("a", "a", expected={"allowRepeatedSteps": True}), []).value == 1


def test_steps_too_many_cost_half_each_in_strict_order():
    scorer = TrajectoryAccuracy(expected=["a", "b"], ordering="strict")
    assert score_of(scorer, did("a", "b", "c"), []).value == 0.75


def test_an_empty_expectation_is_met_by_doing_nothing():
    assert score_of(TrajectoryAccuracy(expected=[]), did(), []).value == 1
    assert score_of(TrajectoryAccuracy(expected=[]), did("a"), []).value == 0


def test_the_tool_calls_of_the_messages_stand_in_for_a_trajectory():
    talk = [Message(role="assistant", tool_calls=[ToolCall(name="a")])]
    assert score_of(TrajectoryAccuracy(expected=["a"]), Sample(messages=talk), []).value == 1
    silent = [Message(role="assistant", content="I did nothing.")]
    assert score_of(TrajectoryAccuracy(expected=["a"]), Sample(messages=silent), []).value == 0
    assert isinstance(outcome_of(TrajectoryAccuracy(expected=["a"]), Sample(), []), Skipped)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"expected": 5}, "expected: expected steps must be a list, not int"),
        ({"ordering": "loose"}, "ordering must be 'strict', 'relaxed' or 'unordered', not 'loose'"),
        ({"allow_repeated_steps": "no"}, "allow_repeated_steps must be true or false, not 'no'"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(options: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match=f"trajectory_accuracy: {told}"):
        TrajectoryAccuracy(**options)
