from __future__ import annotations

import json
import re
from typing import Any

import pytest

from evalstone.datasets import load, sample_from, write_jsonl
from evalstone.errors import DataError
from evalstone.scorers import TrajectoryAccuracy, parse_scorer
from evalstone.types import ExpectedStep, ToolCall, Trajectory, TrajectoryExpectation

STEPS: list[dict[str, Any]] = [{"stepType": "tool_call", "name": "search", "toolArgs": {"q": "a"}}]
ROW: dict[str, Any] = {"input": "q", "trajectory": {"steps": STEPS}, "expectedTrajectory": {"maxSteps": 2}}


def test_trajectories_and_what_is_expected_of_them_are_read():
    sample = sample_from(ROW)
    assert sample.trajectory == Trajectory.read(STEPS)
    assert sample.expected_trajectory == TrajectoryExpectation(max_steps=2)
    assert not sample.metadata


def test_a_text_that_holds_json_is_read_as_in_a_table():
    sample = sample_from({"trajectory": json.dumps(STEPS), "expected_trajectory": json.dumps(STEPS)})
    assert sample.trajectory == Trajectory.read(STEPS)
    assert sample.expected_trajectory == TrajectoryExpectation.read(STEPS)


CALLED = {"name": "search", "arguments": {"q": "Ada"}}
WRITTEN = {"name": "search", "arguments": '{"q": "Ada"}'}


@pytest.mark.parametrize(
    "call",
    [
        CALLED,
        WRITTEN,
        {"function": WRITTEN},
        {"id": "call_1", "index": 0, "type": "function", "function": WRITTEN},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed", **WRITTEN},
        {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"q": "Ada"}},
        {"type": "tool_call", "id": "call_1", "name": "search", "args": {"q": "Ada"}},
        {"name": "search", "inputParameters": {"q": "Ada"}},
        {"step_type": "tool_call", **CALLED},
    ],
)
def test_expected_calls_are_read_as_models_write_them(call: dict[str, Any]):
    expected = TrajectoryExpectation.read([{"step_type": "tool_call", "name": "search", "tool_args": {"q": "Ada"}}])
    assert TrajectoryExpectation.read([call]) == expected
    for column in ([call], {"steps": [call]}, json.dumps([call]), repr([call])):
        assert sample_from({"input": "q", "expected_trajectory": column}).expected_trajectory == expected
    assert parse_scorer(f"trajectory_accuracy(expected={[call]!r})") == TrajectoryAccuracy(expected=expected)


@pytest.mark.parametrize(
    ("call", "data"),
    [
        ({"type": "function", "function": {"name": "search"}}, {}),
        ({"name": "search", "arguments": ""}, {"tool_args": {}}),
        ({"name": "search", "arguments": None}, None),
    ],
)
def test_an_expected_call_may_leave_its_arguments_open(call: dict[str, Any], data: dict[str, Any] | None):
    step = ExpectedStep.read(call)
    assert (step.step_type, step.data) == ((None, {}) if data is None else ("tool_call", data))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            {"name": "f", "arguments": "{bad"},
            "arguments of expected step 'f' must be an object or the JSON text of one",
        ),
        ({"name": "f", "arguments": "[1]"}, "arguments of expected step 'f' must be an object or the JSON text of one"),
        ({"name": "f", "arguments": "{'q': "}, "arguments of expected step 'f'"),
        ({"name": "f", "arguments": {}, "tool_args": {}}, "'f' has its arguments more than once: arguments, tool_args"),
        ({"name": "f", "step_type": "agent_run", "arguments": {}}, "unknown entry of agent_run 'arguments'"),
        ({"function": {"arguments": "{}"}}, "a step must have a name, not None"),
    ],
)
def test_expected_calls_that_cannot_be_read_say_what_is_wrong(call: dict[str, Any], told: str):
    with pytest.raises(DataError, match=re.escape(told)):
        sample_from({"input": "q", "expected_trajectory": [call]})


def test_samples_with_trajectories_read_back_as_they_were(tmp_path: Any):
    sample = sample_from(ROW)
    write_jsonl(tmp_path / "a.jsonl", [sample])
    assert load(tmp_path / "a.jsonl").samples == (sample,)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"trajectory": 5}, "row 1: trajectory cannot be read: the steps of a trajectory must be a list, not int: 5"),
        ({"trajectory": [{"name": "f"}]}, "row 1: trajectory cannot be read: step 'f': it has no step_type"),
        ({"input": "q", "expectedTrajectory": {"maxSteps": -1}}, "max_steps must be a number of 0 or more, not -1"),
    ],
)
def test_what_cannot_be_read_names_the_row_and_the_column(row: dict[str, Any], told: str):
    with pytest.raises(DataError) as caught:
        sample_from(row, where="row 1")
    assert told in str(caught.value)


def invocation(id: str, state: str, **more: Any) -> dict[str, Any]:
    return {"toolCallId": id, "toolName": f"t{id}", "args": {}, "state": state, **more}


def test_calls_in_parts_and_in_the_list_beside_them_are_merged_by_their_ids():
    message = {
        "role": "assistant",
        "content": {
            "format": 2,
            "parts": [
                {"type": "tool-invocation", "toolInvocation": invocation("2", "result", result={"from": "part"})}
            ],
            "toolInvocations": [
                invocation("1", "call"),
                invocation("2", "result", result={"from": "list"}),
                invocation("3", "partial-call"),
            ],
        },
    }
    sample = sample_from({"input": "q", "messages": [message]})
    assert sample.messages[0].tool_calls == (
        ToolCall(name="t1", id="1", state="call"),
        ToolCall(name="t2", id="2", result={"from": "part"}),
        ToolCall(name="t3", id="3", state="partial"),
    )


def test_a_signal_speaks_in_the_name_that_its_tag_gives():
    signal = {"role": "signal", "content": "Hello", "metadata": {"signal": {"tagName": "user", "type": "system"}}}
    sample = sample_from({"messages": [signal], "output": "Hi"})
    assert [(m.role, m.content) for m in sample.messages] == [("user", "Hello")]


def test_tagged_system_messages_follow_the_others():
    run = {
        "input": {
            "inputMessages": [{"role": "user", "content": "hi"}],
            "systemMessages": [{"role": "system", "content": "Be kind."}],
            "taggedSystemMessages": {"memory": [{"role": "system", "content": "Be brief."}]},
        },
        "output": "hello",
    }
    sample = sample_from(run)
    assert sample.instructions == "\n\n".join(("Be kind.", "Be brief."))
    assert [m.content for m in sample.messages][:3] == ["Be kind.", "hi", "Be brief."]
