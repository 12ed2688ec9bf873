"""Messages and trajectory of one sample: two accounts of the tool calls of one agent, in which all scorers see the
same calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone import score
from evalstone.types import TOOL_STEPS, Message, Sample, ToolCall
from evalstone.types.agreement import step_of

QUESTION, ANSWER = Message(role="user", content="Weather in Bern?"), Message(role="assistant", content="12 degrees.")
CALL = ToolCall(name="weather", arguments={"city": "Bern"}, result="12", id="c1")
STEP: dict[str, Any] = {"step_type": "tool_call", "name": "weather", "tool_args": {"city": "Bern"}, "success": True}
EXPECTED = [{"step_type": "tool_call", "name": "weather", "tool_args": {"city": "Bern"}}]


def sample(*calls: ToolCall, steps: list[dict[str, Any]], **fields: Any) -> Sample:
    made = [Message(role="assistant", tool_calls=[call]) for call in calls]
    return Sample(messages=[QUESTION, *made, ANSWER], trajectory=steps, **fields)  # pyright: ignore[reportArgumentType]


def calls_of(sample: Sample) -> list[ToolCall]:
    return [call for message in sample.messages for call in message.tool_calls]


def steps_of(sample: Sample) -> list[tuple[str, Any]]:
    assert sample.trajectory is not None
    return [(step.name, dict(step.data)) for step in sample.trajectory.walk() if step.step_type in TOOL_STEPS]


def notes_of(sample: Sample) -> list[str]:
    return [note for message in sample.messages for note in message.notes]


@pytest.mark.parametrize(
    ("call", "step"),
    [
        (CALL, {"step_type": "tool_call", "name": "weather", "success": True}),
        (replace(CALL, result=None, state="call"), {**STEP, "tool_result": {"value": "12"}}),
        (replace(CALL, arguments={}), STEP),
        (replace(CALL, result="[REDACTED]"), {**STEP, "tool_result": {"value": "12"}}),
        (CALL, {**STEP, "tool_args": {"city": "***"}}),
    ],
)
def test_what_one_account_of_a_call_lacks_is_in_the_other(call: ToolCall, step: dict[str, Any]) -> None:
    made = sample(call, steps=[step], expected_trajectory=EXPECTED)
    assert calls_of(made) == [CALL]
    assert steps_of(made) == [
        ("weather", {"tool_args": {"city": "Bern"}, "tool_result": {"value": "12"}, "success": True})
    ]
    assert notes_of(made) == []
    for scorer in ("tool_call_f1", "trajectory_accuracy", "tool_call_accuracy", "no_tool_errors"):
        assert score(scorer, made).value == 1, scorer


def test_a_call_that_only_one_account_has_is_in_both_with_a_note() -> None:
    for made in (sample(CALL, steps=[]), sample(steps=[STEP])):
        assert [call.name for call in calls_of(made)] == [name for name, _ in steps_of(made)] == ["weather"]
        (note,) = notes_of(made)
        assert "that only the" in note
        assert made.messages[-1] == ANSWER
        assert score({"name": "tool_called", "tool": "weather"}, made).value == 1


def test_the_place_of_a_call_that_only_one_account_has_is_after_the_call_before_it() -> None:
    first, second, third = (replace(CALL, name=name, id="") for name in "abc")
    steps = [{**STEP, "name": name, "tool_result": "12"} for name in "abc"]
    made = sample(first, third, steps=steps)
    assert [call.name for call in calls_of(made)] == ["a", "b", "c"]
    made = sample(second, steps=steps[:2])
    assert [call.name for call in calls_of(made)] == ["a", "b"]
    made = sample(first, second, third, steps=[steps[0], steps[2]])
    assert [name for name, _ in steps_of(made)] == ["a", "b", "c"]


def test_a_step_is_read_as_a_call_with_its_id_its_error_and_arguments_of_any_form() -> None:
    step = {**STEP, "success": False, "tool_args": "Bern", "metadata": {"tool_call_id": "c7", "error": "boom"}}
    (call,) = calls_of(sample(steps=[step]))
    assert call == ToolCall(name="weather", arguments={"arguments": "Bern"}, id="c7", state="error", error="boom")


@pytest.mark.parametrize(
    ("data", "state"),
    [
        ({}, "call"),
        ({"tool_result": {"value": "12"}}, "result"),
        ({"success": True}, "result"),
        ({"success": False, "tool_result": {"value": "12"}}, "error"),
    ],
)
def test_a_step_with_a_result_or_with_success_is_a_call_that_returned(data: dict[str, Any], state: str) -> None:
    (call,) = calls_of(sample(steps=[{"step_type": "tool_call", "name": "weather", **data}]))
    assert call.state == state


def test_a_note_on_a_call_is_added_to_the_notes_of_its_message() -> None:
    message = Message(role="assistant", tool_calls=[CALL], notes=["cut off"])
    made = Sample(messages=[QUESTION, message, ANSWER], trajectory=[{**STEP, "tool_args": {"city": "Basel"}}])  # pyright: ignore[reportArgumentType]
    first, second = notes_of(made)
    assert first == "cut off"
    assert "Bern" in second
    assert "Basel" in second


def test_a_call_inside_a_step_of_a_workflow_has_what_the_message_says() -> None:
    made = sample(CALL, steps=[{"step_type": "workflow_step", "name": "look_up", "children": [STEP]}])
    assert [data["tool_result"] for _, data in steps_of(made)] == [{"value": "12"}]


def test_a_contradiction_is_a_note_and_both_accounts_have_what_the_messages_say() -> None:
    made = sample(CALL, steps=[{**STEP, "tool_args": {"city": "Basel"}}])
    assert calls_of(made)[0].arguments == steps_of(made)[0][1]["tool_args"] == {"city": "Bern"}
    (note,) = notes_of(made)
    assert "arguments of 'weather c1'" in note
    assert [bool(message.notes) for message in made.messages] == [False, True, False]
    assert notes_of(replace(made, trajectory=[{**STEP, "tool_args": {"city": "Basel"}}])) == [note]


def test_the_steps_of_a_workflow_and_of_another_agent_are_not_the_agents_calls() -> None:
    workflow = {"step_type": "workflow_step", "name": "look_up", "output": "12"}
    made = sample(CALL, steps=[workflow], expected_trajectory=EXPECTED)
    assert steps_of(made) == []
    assert notes_of(made) == []
    assert score("tool_call_f1", made).value == 1  # the calls are those of the messages, as for the checks
    nested = {"step_type": "agent_run", "name": "helper", "children": [{**STEP, "name": "search"}]}
    made = sample(CALL, steps=[{**STEP, "tool_result": "12"}, nested])
    assert [call.name for call in calls_of(made)] == ["weather"]
    assert notes_of(made) == []


def test_calls_of_turns_that_the_trajectory_has_nothing_of_stay_out_of_it() -> None:
    earlier = Message(role="assistant", tool_calls=[replace(CALL, name="earlier", id="c0")])
    made = Sample(
        messages=[QUESTION, earlier, ANSWER, QUESTION, Message(role="assistant", tool_calls=[CALL]), ANSWER],
        trajectory=[STEP],  # pyright: ignore[reportArgumentType]
    )
    assert [name for name, _ in steps_of(made)] == ["weather"]
    assert notes_of(made) == []


def test_checks_read_a_trajectory_where_there_are_no_messages() -> None:
    made = Sample(input="q", trajectory=[STEP], expected_trajectory=EXPECTED)  # pyright: ignore[reportArgumentType]
    for scorer in ("tool_called(tool=weather)", "no_tool_errors", "tool_call_accuracy", "tool_call_f1"):
        assert score(scorer, made).value == 1, scorer
    assert score({"name": "tool_not_called", "tool": "weather"}, made).value == 0


def test_notes_are_no_part_of_the_content() -> None:
    message = Message(role="assistant", content="a")
    noted = replace(message, notes=["a part of an unknown type: 'scent', with x"])
    assert Sample(messages=[message]).content_hash == Sample(messages=[noted]).content_hash


CALLS = st.builds(
    ToolCall,
    name=st.sampled_from("ab"),
    arguments=st.sampled_from([{}, {"x": 1}, {"x": 2}, {"x": "[REDACTED]"}]),
    result=st.sampled_from([None, "r", "s", {"y": 1}]),
    state=st.sampled_from(["result", "call", "error", "partial"]),
    id=st.sampled_from(["", "c1", "c2"]),
).map(lambda call: call if call.state in ("result", "error") else replace(call, result=None))


@given(st.lists(CALLS, max_size=4), st.lists(CALLS, max_size=4))
def test_both_accounts_have_the_same_calls_and_making_them_one_again_changes_nothing(
    calls: list[ToolCall], told: list[ToolCall]
) -> None:
    steps = [step_of(call) for call in told if call.state != "partial"]
    made = Sample(
        messages=[QUESTION, Message(role="assistant", tool_calls=calls), ANSWER],
        trajectory=steps,  # pyright: ignore[reportArgumentType]
    )
    executed = [call for call in calls_of(made) if call.state != "partial"]
    assert sorted(call.name for call in executed) == sorted(name for name, _ in steps_of(made))
    assert {(call.name, str(dict(call.arguments))) for call in executed} == {
        (name, str(data["tool_args"])) for name, data in steps_of(made)
    }
    assert len(executed) >= len(steps)
    again = replace(made)
    assert (again.messages, again.trajectory) == (made.messages, made.trajectory)


def test_accounts_that_agree_are_not_merged_again_for_each_copy_of_a_sample() -> None:
    made = sample(CALL, replace(CALL, id="c2", result={"degrees": 12}), steps=[])
    copy = replace(made, id="copy")
    assert copy.trajectory is made.trajectory
    assert [id(message) for message in copy.messages] == [id(message) for message in made.messages]
