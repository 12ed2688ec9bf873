from __future__ import annotations

from typing import Any

import pytest

from evalstone.errors import ConfigError
from evalstone.scorers import TrajectoryQuality, TrajectoryWeights, parse_scorer
from evalstone.scorers.agents.trajectories import weighted_mean
from evalstone.types import Sample, Trajectory, TrajectoryExpectation
from tests.fakes import score_of


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"stepType": "tool_call", "name": name, **more}


def did(*steps: dict[str, Any], expected: Any = None) -> Sample:
    wanted = None if expected is None else TrajectoryExpectation.read(expected)
    return Sample(trajectory=Trajectory.read(list(steps)), expected_trajectory=wanted)


def value_of(sample: Sample, **options: Any) -> float:
    return score_of(TrajectoryQuality(**options), sample, []).value


PARTS = did(
    *[call("f", success=False), call("f", success=False), call("g")],
    expected={"steps": ["f", "h"], "maxSteps": 2, "maxRetriesPerTool": 0, "blacklistedTools": ["rm"]},
)
FORBIDDEN = did(
    {"stepType": "agent_run", "name": "r", "children": [call("a"), call("rm")]},
    expected={"steps": [{"name": "r", "children": {"blacklistedSequences": [["a", "rm"]]}}]},
)
LEVELS = did(
    {"stepType": "agent_run", "name": "r", "children": [call("a")]},
    expected={"steps": [{"name": "r", "children": ["a", "b"]}, {"name": "s", "children": ["c"]}]},
)


def test_the_parts_that_count_are_weighed():
    # accuracy 1/2, efficiency mean(budget 1/2, redundancy 0.8) = 0.65, failures 0.8, forbidden 1
    score = score_of(TrajectoryQuality(), PARTS, [])
    assert score.evidence.parts == {"accuracy": 0.5, "efficiency": 0.65, "tool_failures": 0.8, "forbidden": 1}
    assert score.value == 0.66  # 0.4 x 0.5 + 0.3 x 0.65 + 0.2 x 0.8 + 0.1 = 0.655, whose rounding is that of the source


def test_parts_that_nothing_is_expected_of_do_not_count():
    assert value_of(did(call("a"), expected=["a", "b"])) == 0.5
    assert value_of(did(call("a"), call("a"), expected={"noRedundantCalls": True})) == 0.8
    assert value_of(did(call("a"), call("a"), expected={"noRedundantCalls": False})) == 1
    assert value_of(did(call("a"), call("a"), expected={"maxSteps": 2})) == 0.9


def test_something_forbidden_makes_everything_0():
    assert value_of(did(call("a"), call("rm"), expected={"steps": ["a"], "blacklistedTools": ["rm"]})) == 0
    assert value_of(FORBIDDEN) == 0


def test_the_levels_inside_count_three_tenths():
    score = score_of(TrajectoryQuality(), LEVELS, [])
    assert score.value == pytest.approx(0.43)  # 0.7 x 0.5 + 0.3 x mean(0.5, 0) = 0.425
    assert [level.path for level in score.evidence.walk()] == [(), ("r",), ("s",)]


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (PARTS, "accuracy 0.50, efficiency 0.65, tool failures 0.80, forbidden 1.00."),
        (FORBIDDEN, "accuracy 1.00; r: forbidden 0.00, did “a → rm”."),
        (LEVELS, "accuracy 0.50, not taken: “s”; r: accuracy 0.50."),
    ],
)
def test_the_reason_has_the_parts_of_every_level(sample: Sample, reason: str):
    assert score_of(TrajectoryQuality(), sample, []).reason == reason


def test_each_step_inside_is_looked_at_once():
    runs = [{"stepType": "agent_run", "name": "r", "children": [call(name)]} for name in "ab"]
    expected = [{"name": "r", "children": ["a"]}, {"name": "r", "children": ["b"]}]
    assert value_of(did(*runs, expected=expected)) == 1


def test_the_duration_inside_a_step_is_the_step_s_own():
    run = {"stepType": "agent_run", "name": "r", "durationMs": 150, "children": [call("a")]}
    expected = {"steps": [{"name": "r", "children": {"maxTotalDurationMs": 100, "noRedundantCalls": False}}]}
    assert value_of(did(run, expected=expected)) == 0.85


def test_retries_count_where_a_failed_call_was_tried_again():
    failing = [call("f", success=False)] * 4
    assert value_of(did(*failing, expected={"maxRetriesPerTool": 1})) == 0.6
    assert value_of(did(call("f"), expected={"maxRetriesPerTool": 0})) == 1


def test_the_sample_wins_over_the_defaults_entry_by_entry():
    defaults = {"steps": ["a", "b"], "maxSteps": 1, "noRedundantCalls": False}
    sample = did(call("a"), call("b"), expected={"maxSteps": 2})
    assert value_of(sample, defaults=defaults) == 1
    assert value_of(did(call("a"), call("b")), defaults=defaults) == 0.57  # (0.4 x 1 + 0.3 x 0) / 0.7


def test_weights_are_the_caller_s_and_a_negative_one_is_0():
    sample = did(call("a"), call("b"), expected={"steps": ["a", "c"], "maxSteps": 2})
    assert value_of(sample, weights=TrajectoryWeights(accuracy=-1)) == 1
    assert value_of(sample, weights=TrajectoryWeights(efficiency=0)) == 0.5
    assert weighted_mean({"accuracy": 0.0}, TrajectoryWeights(accuracy=0)) == 1
    assert TrajectoryQuality(weights={"accuracy": 1}) == TrajectoryQuality(weights=TrajectoryWeights(accuracy=1))
    made = parse_scorer({"name": "trajectory_quality", "weights": {"accuracy": 1}, "defaults": {"maxSteps": 3}})
    assert made == TrajectoryQuality(weights=TrajectoryWeights(accuracy=1), defaults={"max_steps": 3})


KNOWN = {"trajectory_quality": TrajectoryQuality}


def test_where_nothing_is_expected_mastra_looks_for_failures_alone():
    assert value_of(did(call("a")), definition="mastra", scale=10) == 10
    assert value_of(did(*[call("f", success=False)] * 4), definition="mastra") == 0.8


def test_defaults_of_another_kind_are_refused():
    odd: Any = 5
    with pytest.raises(ConfigError, match="defaults: expected steps"):
        TrajectoryQuality(defaults=odd)
