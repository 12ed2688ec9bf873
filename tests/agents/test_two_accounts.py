"""A tool call that is written twice: in a message and in the span of its tool, in parts and in the list beside them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone import score
from evalstone.agents.transcripts import read_transcript
from evalstone.datasets import sample_from
from evalstone.types import Message, ToolCall
from tests.agents.test_trace_tools import AGENT, agent, call, calls_of, conversation, response, steps_of, tool
from tests.agents.test_traces import only, read
from tests.traced import attributes, message, span, spans

WEATHER = ToolCall(name="weather", arguments={"city": "Bern"}, result={"degrees": 12}, id="c1")
LISTED: dict[str, Any] = {"toolCallId": "c1", "toolName": "weather", "args": {"city": "Bern"}}


def talk(result: Any = "12", **arguments: Any) -> list[dict[str, Any]]:
    return conversation(
        message("assistant", call("c1", "weather", **(arguments or {"city": "Bern"}))),
        message("tool", response("c1", result)),
        message("assistant", "12 degrees."),
    )


@pytest.mark.parametrize("arguments", [None, {}, {"city": "[REDACTED]"}, {"city": "Bern"}])
@pytest.mark.parametrize("result", [None, "", "<redacted>", "12"])
@pytest.mark.parametrize("id", ["c1", ""])
def test_a_span_that_says_less_than_the_message_hides_nothing(arguments: Any, result: Any, id: str) -> None:
    sample = agent(*talk(), tool(9, "weather", id, result, at=1.6, arguments=arguments))
    assert calls_of(sample) == [("c1", {"city": "Bern"}, "12")]
    assert steps_of(sample) == [("weather", {"city": "Bern"})]
    assert sample.trajectory is not None
    assert sample.trajectory.steps[0].data["tool_result"] == {"value": "12"}
    assert sample.trajectory.steps[0].seconds == 0.5


@pytest.mark.parametrize("id", ["c1", ""])
def test_a_message_that_says_less_than_the_span_hides_nothing(id: str) -> None:
    silent = {"type": "tool_call", "id": "c1", "name": "weather"}
    made = conversation(message("assistant", silent), message("assistant", "12 degrees."))
    sample = agent(*made, tool(9, "weather", id, "12", at=1.6, arguments={"city": "Bern"}))
    assert calls_of(sample) == [("c1", {"city": "Bern"}, "12")]
    assert steps_of(sample) == [("weather", {"city": "Bern"})]


def test_a_contradiction_is_a_note_of_the_sample_and_of_the_trace() -> None:
    ran = tool(9, "weather", "c1", "13", at=1.6, arguments={"city": "Basel"})
    (sample,), (note,) = read(spans(span(1, "invoke_agent", AGENT, end=90), *talk(), ran))
    assert calls_of(sample) == [("c1", {"city": "Bern"}, "13")]
    assert steps_of(sample) == [("weather", {"city": "Bern"})]
    assert note.startswith("2 × two accounts of")
    assert len([each for message in sample.messages for each in message.notes]) == 2


def test_the_calls_of_a_nested_agent_have_what_its_own_messages_say() -> None:
    inner = span(50, "invoke_agent", {**AGENT, "gen_ai.agent.name": "helper"}, parent=1, start=0.5, end=9)
    turns = [{**each, "parentSpanId": inner["spanId"]} for each in talk()]
    bare = {**tool(9, "weather", "c1", at=1.6), "parentSpanId": inner["spanId"]}
    outer = {**AGENT, "gen_ai.input.messages": json.dumps([message("user", "q")]),
             "gen_ai.output.messages": json.dumps([message("assistant", "a")])}  # fmt: skip
    sample = only(spans(span(1, "invoke_agent", outer, end=90), inner, *turns, bare))
    assert steps_of(sample) == [("weather", {"city": "Bern"})]
    assert calls_of(sample) in ([], [("c1", {"city": "Bern"}, "12")])


@pytest.mark.parametrize("current", [False, True])
def test_the_arguments_and_the_result_of_a_tool_may_be_in_events_of_its_span(current: bool) -> None:
    given, result = {"city": "Bern"}, [{"text": "12"}]
    asked = [{"role": "tool", "parts": [{"type": "tool_call", "name": "weather", "id": "c1", "arguments": given}]}]
    said = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": result}]}]
    name = "gen_ai.client.inference.operation.details"
    events = (
        [(name, {"gen_ai.input.messages": json.dumps(asked)}), (name, {"gen_ai.output.messages": json.dumps(said)})]
        if current
        else [
            ("gen_ai.tool.message", {"content": json.dumps(given), "id": "c1"}),
            ("gen_ai.choice", {"message": json.dumps(result), "id": "c1"}),
        ]
    )
    rows = [{"name": n, "timeUnixNano": "1", "attributes": attributes(each)} for n, each in events]
    silent = {"type": "tool_call", "id": "c1", "name": "weather"}
    made = conversation(message("assistant", silent), message("assistant", "12 degrees."))
    request = spans(span(1, "invoke_agent", AGENT, end=90), *made, tool(9, "weather", "c1", at=1.6, events=rows))
    sample = only(request)
    assert [each.role for each in sample.messages] == ["user", "assistant", "assistant"]
    assert calls_of(sample) == [("c1", {"city": "Bern"}, "12")]
    assert steps_of(sample) == [("weather", {"city": "Bern"})]
    assert read_transcript(request).messages == sample.messages


@pytest.mark.parametrize("id", ["c1", None])
@pytest.mark.parametrize("whole_in", ["parts", "list"])
@pytest.mark.parametrize("steps", [False, True])
def test_a_call_of_mastra_has_what_its_part_or_the_list_beside_says(id: str | None, whole_in: str, steps: bool) -> None:
    base = {key: value for key, value in {**LISTED, "toolCallId": id}.items() if value is not None}
    whole, less = {**base, "state": "result", "result": {"degrees": 12}}, {**base, "state": "call"}
    part, beside = (whole, less) if whole_in == "parts" else (less, whole)
    parts = [
        {"type": "tool-invocation", "toolInvocation": part},
        *([{"type": "step-start"}] if steps else []),
        {"type": "text", "text": "12"},
    ]
    content = {"format": 2, "parts": parts, "toolInvocations": [beside]}
    sample = sample_from({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": content}]})
    (made,) = [call for message in sample.messages for call in message.tool_calls]
    assert (made.arguments, made.result, made.state) == (WEATHER.arguments, WEATHER.result, "result")
    assert score("no_tool_errors", sample).value == 1


def test_a_call_of_mastra_that_waited_for_approval_is_one_call() -> None:
    approved = {**LISTED, "state": "result", "result": "12", "approval": {"id": "c1", "approved": True}}
    part = {"type": "tool-invocation", "toolInvocation": {**approved, "toolCallId": "c1"}}
    text = {"type": "text", "text": "12 degrees."}
    question = {"role": "user", "content": {"format": 2, "parts": [{"type": "text", "text": "q"}]}}
    stored = [{"role": "assistant", "content": {"format": 2, "parts": parts}} for parts in ([part], [text, part])]
    messages = read_transcript([question, *stored]).messages
    assert [(each.content, len(each.tool_calls)) for each in messages] == [("q", 0), ("", 1), ("12 degrees.", 0)]
    again: dict[str, Any] = {"type": "tool-invocation", "toolInvocation": {**approved, "toolCallId": "c2"}}
    other = {"role": "assistant", "content": {"format": 2, "parts": [again]}}
    assert [len(each.tool_calls) for each in read_transcript([question, stored[0], other]).messages] == [0, 1, 1]


def test_a_result_that_is_written_twice_is_read_once_and_another_one_is_kept() -> None:
    done: dict[str, Any] = {
        "type": "tool-weather",
        "toolCallId": "c1",
        "state": "output-available",
        "input": {},
        "output": "12",
    }
    for result, rest in (("12", ()), ("13", (Message(role="tool", content="13"),))):
        said: list[Any] = [
            {"role": "assistant", "parts": [done]},
            {"role": "tool", "tool_call_id": "c1", "content": result},
        ]
        messages = read_transcript(said).messages
        assert messages[0].tool_calls[0].result == "12"
        assert messages[1:] == rest


def test_a_redacted_document_is_no_passage() -> None:
    documents = json.dumps([{"id": "d1", "content": "[REDACTED]"}])
    found = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": documents}
    (sample,), (note,) = read(spans(span(1, "invoke_agent", AGENT, end=90), *talk(), span(9, "find", found, parent=1)))
    assert sample.context is None
    assert "documents have no" in note
