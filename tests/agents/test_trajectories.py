from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from typing import Any, cast

import pytest

from evalstone._core.json import content_hash
from evalstone.agents import trajectory_sample
from evalstone.datasets.writing import json_line
from evalstone.errors import ConfigError
from evalstone.types import STEP_DATA, ExpectedStep, Sample, Trajectory, TrajectoryExpectation, TrajectoryStep

CAMEL = {
    "steps": [
        {
            "stepType": "agent_run",
            "name": "researcher",
            "durationMs": 40,
            "agentId": "r",
            "children": [
                {
                    "stepType": "mcp_tool_call",
                    "name": "search",
                    "toolArgs": {"q": "a"},
                    "success": True,
                    "mcpServer": "m",
                },
                {"stepType": "model_generation", "name": "gpt", "promptTokens": 3, "completionTokens": 4, "seed": 7},
            ],
            "metadata": {"from": "trace"},
        }
    ],
    "totalDurationMs": 50,
    "rawOutput": ["ignored"],
}
SNAKE = {
    "steps": [
        {
            "step_type": "agent_run",
            "name": "researcher",
            "seconds": 0.04,
            "agent_id": "r",
            "children": [
                {
                    "step_type": "mcp_tool_call",
                    "name": "search",
                    "tool_args": {"q": "a"},
                    "success": True,
                    "mcp_server": "m",
                },
                {"step_type": "model_generation", "name": "gpt", "prompt_tokens": 3, "completion_tokens": 4, "seed": 7},
            ],
            "metadata": {"from": "trace"},
        }
    ],
    "total_seconds": 0.05,
}
EXPECTED: dict[str, Any] = {
    "steps": [
        "plan",
        {"name": "search", "stepType": "tool_call", "toolArgs": {"q": "a"}, "durationMs": 3},
        {"name": "researcher", "children": {"steps": [{"name": "gpt"}], "maxTotalTokens": 9}},
    ],
    "ordering": "strict",
    "blacklistedSequences": [["a", "b"], []],
    "noRedundantCalls": False,
}


def test_camel_case_and_snake_case_are_read_alike():
    trajectory = Trajectory.read(CAMEL)
    assert trajectory == Trajectory.read(SNAKE)
    assert trajectory.total_seconds == 0.05
    step = trajectory.steps[0]
    assert (step.step_type, step.name, step.seconds, step.data) == (
        "agent_run",
        "researcher",
        0.04,
        {"agent_id": "r"},
    )
    assert step.metadata == {"from": "trace"}
    assert [child.name for child in step.children] == ["search", "gpt"]


def test_what_a_type_of_step_does_not_know_is_kept_in_the_metadata():
    gpt = Trajectory.read(CAMEL).steps[0].children[1]
    assert gpt.data == {"prompt_tokens": 3, "completion_tokens": 4}
    assert gpt.metadata == {"seed": 7}


def test_the_keys_inside_arguments_stay_as_they_are():
    step = TrajectoryStep.read({"stepType": "tool_call", "name": "f", "toolArgs": {"userId": 1}})
    assert step.data == {"tool_args": {"userId": 1}}


def test_a_list_of_steps_is_a_trajectory():
    assert Trajectory.read(cast("list[Mapping[str, Any]]", CAMEL["steps"])).steps == Trajectory.read(CAMEL).steps


def test_walking_goes_from_the_top_down():
    assert [step.name for step in Trajectory.read(CAMEL).walk()] == ["researcher", "search", "gpt"]


def test_an_expectation_is_read_with_what_is_nested_in_it():
    expected = TrajectoryExpectation.read(EXPECTED)
    assert expected.steps is not None
    plan, search, researcher = expected.steps
    assert plan == ExpectedStep(name="plan")
    assert search == ExpectedStep(name="search", step_type="tool_call", data={"tool_args": {"q": "a"}})
    assert researcher.children == TrajectoryExpectation(steps=[ExpectedStep(name="gpt")], max_total_tokens=9)
    assert expected.forbidden_sequences == (("a", "b"), ())
    assert expected.no_redundant_calls is False
    assert expected.max_steps is None


def test_a_trajectory_can_be_what_is_expected():
    expected = TrajectoryExpectation.read(Trajectory.read(CAMEL))
    assert expected.steps is not None
    inside = expected.steps[0].children
    assert inside is not None
    assert inside.steps is not None
    assert [step.name for step in inside.steps] == ["search", "gpt"]


def test_a_null_in_an_expected_step_expects_nothing():
    step = ExpectedStep.read({"name": "f", "stepType": "tool_call", "toolArgs": None, "success": True})
    assert step.data == {"success": True}


def test_an_expectation_over_another_wins_entry_by_entry():
    defaults = TrajectoryExpectation(max_steps=3, ordering="strict", forbidden_tools=["x"])
    own = TrajectoryExpectation(max_steps=0, forbidden_tools=[])
    assert own.over(defaults) == TrajectoryExpectation(max_steps=0, ordering="strict", forbidden_tools=())


def test_trajectories_and_expectations_are_values():
    trajectory, expectation = Trajectory.read(CAMEL), TrajectoryExpectation.read(EXPECTED)
    assert Trajectory.read(trajectory) is trajectory
    assert TrajectoryExpectation.read(expectation) is expectation
    for value in (trajectory, expectation):
        assert pickle.loads(pickle.dumps(value)) == value
        assert isinstance(hash(value), int)


def test_what_was_written_as_json_reads_back():
    sample = Sample(trajectory=Trajectory.read(CAMEL), expected_trajectory=TrajectoryExpectation.read(EXPECTED))
    data = json.loads(json_line(sample))
    assert Trajectory.read(data["trajectory"]) == sample.trajectory
    assert TrajectoryExpectation.read(data["expected_trajectory"]) == sample.expected_trajectory


def test_a_sample_takes_them_as_plain_data_too():
    given: Any = CAMEL
    wanted: Any = EXPECTED
    sample = Sample(trajectory=given, expected_trajectory=wanted)
    assert sample.trajectory == Trajectory.read(CAMEL)
    assert sample.expected_trajectory == TrajectoryExpectation.read(EXPECTED)


def test_absent_trajectories_leave_the_content_hash_of_older_samples_as_it_was():
    older = ("input", "output", "context", "reference", "messages", "instructions", "metadata")
    sample = Sample(input="q")
    assert sample.content_hash == content_hash({name: getattr(sample, name) for name in older})


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (5, "a trajectory must be a list, not int"),
        ({"stps": []}, "a trajectory must have steps; it has stps"),
        ([5], "a step must be an object, not int"),
        ([""], "name"),
        ([{"name": "f"}], "step 'f': it has no step_type"),
        ([{"name": "f", "stepType": "tol_call"}], "unknown step_type 'tol_call'; did you mean tool_call"),
        ([{"stepType": "tool_call"}], "a step must have a name"),
        ([{"stepType": "tool_call", "name": "f", "children": "x"}], "children of step 'f' must be a list"),
    ],
)
def test_what_is_no_trajectory_is_refused(data: Any, told: str):
    with pytest.raises(ConfigError, match=told.replace("(", r"\(")):
        Trajectory.read(data)


NO_EXPECTATIONS: list[tuple[Any, str]] = [
    ({"maxStep": 3}, "unknown entry 'max_step'; did you mean max_steps"),
    ({"blacklisted_tools": ["rm"]}, "unknown entry 'blacklisted_tools'"),
    ({"maxSteps": -1}, "max_steps must be a number of 0 or more, not -1"),
    ({"maxSteps": True}, "max_steps must be a number of 0 or more, not True"),
    ({"maxTotalTokens": float("inf")}, "max_total_tokens must be a number of 0 or more, not inf"),
    ({"maxTotalDurationMs": float("nan")}, "max_total_seconds must be a number of 0 or more, not nan"),
    ({"maxRetriesPerTool": "2"}, "max_retries_per_tool must be a number of 0 or more, not '2'"),
    ({"ordering": "loose"}, "ordering must be 'strict', 'relaxed' or 'unordered', not 'loose'"),
    ({"noRedundantCalls": "no"}, "no_redundant_calls must be true or false, not 'no'"),
    ({"blacklistedTools": "rm"}, "must be a list of texts, not 'rm'"),
    ({"blacklistedSequences": [[1]]}, "must be a list of lists of texts"),
    (
        [{"name": "f", "toolArgs": {}}],
        "expected step 'f' has tool_args and no step_type; give it one, such as 'tool_call'",
    ),
    ([{"name": "f", "loopType": "while"}], "has loop_type and no step_type; give it one, such as 'workflow_loop'"),
    ([{"name": "f", "stepType": "agent_run", "toolArgs": {}}], "unknown entry of agent_run 'tool_args'"),
    ([{"children": []}], "an expected step must have a name, not None"),
]


@pytest.mark.parametrize(("data", "told"), NO_EXPECTATIONS)
def test_what_is_no_expectation_is_refused(data: Any, told: str):
    with pytest.raises(ConfigError, match=told):
        TrajectoryExpectation.read(data)


def test_steps_that_are_no_steps_are_refused_when_built_by_hand():
    odd: Any = [{"name": "f"}]
    with pytest.raises(ConfigError, match="TrajectoryStep values"):
        Trajectory(steps=odd)
    with pytest.raises(ConfigError, match="children of step 'f'"):
        TrajectoryStep(step_type="tool_call", name="f", children=odd)


@pytest.mark.parametrize("step_type", STEP_DATA)
def test_every_type_of_step_takes_its_own_data_and_no_other(step_type: Any):
    data = dict.fromkeys(STEP_DATA[step_type], "x")
    assert TrajectoryStep(step_type=step_type, name="s", data=data).data == data
    with pytest.raises(ConfigError, match=f"unknown entry of {step_type} 'other'"):
        TrajectoryStep(step_type=step_type, name="s", data={"other": 1})


def test_a_text_in_a_trajectory_is_a_tool_that_was_called() -> None:
    called = [TrajectoryStep(step_type="tool_call", name=name) for name in ("search", "answer")]
    assert Trajectory.read(["search", {"step_type": "tool_call", "name": "answer"}]).steps == tuple(called)
    assert trajectory_sample(["search", "answer"]).trajectory == Trajectory(steps=called)
