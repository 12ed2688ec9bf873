"""Turns of conversations and steps of trajectories as samples."""

from __future__ import annotations

from typing import Any

import pytest

from evalstone.agents.turns import step_samples, succeeded, trajectory_of, turns_of
from evalstone.types import Message, Sample, ToolCall, Trajectory, TrajectoryStep

ASK, TELL = Message(role="user", content="Hi"), Message(role="assistant", content="Hello")


def test_a_turn_keeps_what_is_its_own_and_has_the_trial_of_the_conversation() -> None:
    own = Sample(id="1", input="Hi", output="Hello", context=["a"], reference="b", state={"c": 1}, messages=[ASK, TELL])
    talk = Sample(turns=[own], context=["x"], reference="y", state={"z": 1}, instructions="Be kind.", trial=3)
    (turn,) = turns_of(talk)
    assert (turn.context, turn.reference, turn.state, turn.messages) == (("a",), "b", {"c": 1}, (ASK, TELL))
    assert (turn.instructions, turn.trial) == ("Be kind.", 3)
    assert turns_of(Sample(output="x")) == ()


def test_what_is_expected_of_a_recorded_conversation_is_expected_of_its_only_turn() -> None:
    fields: dict[str, Any] = {"expected_trajectory": ["find"], "reference": "r", "state": {"a": 1}}
    (turn,) = turns_of(Sample(messages=[ASK, TELL], **fields))
    assert turn.expected_trajectory is not None
    assert (turn.reference, turn.state) == ("r", {"a": 1})
    first, last = turns_of(Sample(messages=[ASK, TELL, ASK, TELL], **fields))
    assert first.expected_trajectory is last.expected_trajectory is None
    assert (first.reference, last.reference, first.state, last.state) == (None, "r", None, {"a": 1})


def test_the_output_of_the_sample_is_that_of_a_last_turn_without_an_answer() -> None:
    first, last = turns_of(Sample(messages=[ASK, ASK], output="Hello"))
    assert (first.output, last.output) == (None, "Hello")
    (said,) = turns_of(Sample(messages=[ASK, TELL], output="Something else"))
    assert said.output == "Hello"


def test_each_message_of_the_user_begins_a_turn_that_ends_before_the_next() -> None:
    blank = Message(role="user", attachments=["image"])
    talk = [Message(role="system", content="Be kind."), TELL, ASK, TELL, TELL, blank, TELL]
    first, second = turns_of(Sample(messages=talk))
    assert (len(first.messages), len(second.messages), second.input) == (3, 2, None)
    assert first.instructions == second.instructions == "Be kind."
    assert (first.id, second.id) == ("1", "2")


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("tool_call", {"success": True}, True),
        ("tool_call", {"success": False, "tool_result": {}}, False),
        ("tool_call", {"success": "false", "tool_result": {}}, False),
        ("tool_call", {"tool_result": {"n": 1}}, True),
        ("mcp_tool_call", {"tool_args": {}}, False),
        ("workflow_step", {"status": "success"}, True),
        ("workflow_step", {"status": "COMPLETED"}, True),
        ("workflow_step", {"status": "failed", "output": "x"}, False),
        ("workflow_run", {"status": "running"}, False),
        ("workflow_step", {"output": "x"}, True),
        ("agent_run", {}, True),
    ],
)
def test_whether_a_step_succeeded(kind: str, data: dict[str, object], expected: bool) -> None:
    step = TrajectoryStep.read({"step_type": kind, "name": "x", "data": data})
    assert succeeded(step) is expected


def test_a_step_without_a_result_leaves_the_input_of_the_next_as_it_is() -> None:
    steps = [
        {"step_type": "agent_run", "name": "plan"},
        {"step_type": "tool_call", "name": "find", "success": False, "tool_result": {"value": "lost"}},
        {"step_type": "agent_run", "name": "write", "output": "Done.", "tone": "dry"},
        {"step_type": "agent_run", "name": "check", "input": {"a": "é"}},
        {"step_type": "agent_run", "name": "send"},
    ]
    sample = Sample(
        input="Go",
        context=["c"],
        instructions="i",
        metadata={"tone": "wet", "target": {"cost": 1}},
        trajectory=Trajectory.read(steps),
        trial=2,
    )
    plan, find, write, check, send = (one for _, one in step_samples(sample))
    assert find is None
    assert plan is not None
    assert write is not None
    assert check is not None
    assert send is not None
    assert [one.input for one in (plan, write, check, send)] == ["Go", "Go", '{"a": "é"}', "Done."]
    assert [one.output for one in (plan, write, check, send)] == [None, "Done.", None, None]
    assert [one.id for one in (plan, write, check, send)] == ["1", "3", "4", "5"]
    assert (plan.context, plan.instructions, plan.trial) == (("c",), "i", 2)
    assert (plan.metadata, write.metadata["tone"]) == ({"tone": "wet"}, "dry")


def test_the_trajectory_of_a_sample_wins_over_the_calls_in_its_messages() -> None:
    call = Message(role="assistant", tool_calls=[ToolCall(name="find", result={"value": 1, "n": 2})])
    own = Trajectory.read([{"step_type": "agent_run", "name": "own"}])
    assert trajectory_of(Sample(messages=[call], trajectory=own)) is own
    assert trajectory_of(Sample(output="x")) is None
    ((step, sample),) = step_samples(Sample(messages=[call]))
    assert step.name == "find"
    assert sample is not None
    assert sample.output == '{"value": 1, "n": 2}'
    assert step_samples(Sample(output="x")) == ()
