"""Traces: spans, their events and log records, however an exporter writes them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from evalstone import Sample, load, score
from evalstone.agents.span_tree import ADOPTED
from evalstone.agents.transcripts import read_transcript
from evalstone.errors import DataError, TargetError
from evalstone.targets import Answer
from evalstone.types import Message, ToolCall, Usage
from tests.traced import TRACE, chat, message, span, spans

FOLDER = Path(__file__).parent / "transcripts"


def fixture(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["transcript"]


def test_tools_that_only_their_spans_have_are_calls() -> None:
    spans = [
        {"name": "chat", "attributes": {"gen_ai.operation.name": "chat", "gen_ai.output.messages": _said("Sunny.")}},
        {
            "name": "execute_tool weather",
            "attributes": {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "weather",
                "gen_ai.tool.call.arguments": '{"city": "Bern"}',
                "gen_ai.tool.call.result": '{"sky": "clear"}',
            },
        },
    ]
    transcript = read_transcript(spans)
    call = ToolCall(name="weather", arguments={"city": "Bern"}, result={"sky": "clear"})
    assert transcript.messages == (
        Message(role="assistant", tool_calls=[call]),
        Message(role="assistant", content="Sunny."),
    )
    assert transcript.output == "Sunny."


def _said(text: str) -> str:
    return json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])


def test_a_turn_that_is_said_twice_is_two_turns() -> None:
    yes = {"role": "user", "parts": [{"type": "text", "content": "yes"}]}
    first, second = json.loads(_said("ok")), json.loads(_said("fine"))
    spans = [
        {"attributes": {"gen_ai.input.messages": [yes], "gen_ai.output.messages": first}},
        {"attributes": {"gen_ai.input.messages": [yes, *first, yes], "gen_ai.output.messages": second}},
    ]
    assert [message.content for message in read_transcript(spans).messages] == ["yes", "ok", "yes", "fine"]


def test_spans_are_read_in_the_order_in_which_they_began() -> None:
    spans = fixture("opentelemetry_spans")
    random.Random(0).shuffle(spans)
    assert read_transcript(spans) == read_transcript(fixture("opentelemetry_spans"))


def test_reranked_passages_come_first() -> None:
    spans = [
        {"attributes": {"openinference.span.kind": "RETRIEVER", **_documents("retrieval.documents", "a", "b")}},
        {"attributes": {"openinference.span.kind": "RERANKER", **_documents("reranker.output_documents", "b")}},
    ]
    assert read_transcript(spans).context == ("b", "a")


def _documents(prefix: str, *texts: str) -> dict[str, str]:
    return {f"{prefix}.{number}.document.content": text for number, text in enumerate(texts)}


def test_a_trace_without_messages_says_what_to_turn_on() -> None:
    with pytest.raises(DataError, match="no messages; turn"):
        read_transcript([{"name": "chat", "attributes": {"gen_ai.operation.name": "chat"}}])


def test_the_events_of_a_span_are_read() -> None:
    event: Any = {
        "name": "gen_ai.client.inference.operation.details",
        "attributes": {"gen_ai.output.messages": _said("Hi.")},
    }
    spans: list[Any] = [{"name": "chat", "attributes": {}, "events": [event]}]
    assert read_transcript(spans).output == "Hi."


def test_attributes_in_columns_of_a_data_frame_are_read() -> None:
    rows = [
        {
            "context.span_id": "1",
            "attributes.llm.output_messages": [{"message.role": "assistant", "message.content": "Hi."}],
        }
    ]
    transcript = read_transcript(rows)
    assert (transcript.format, transcript.output) == ("OpenInference", "Hi.")


def test_attributes_as_a_tree_are_read() -> None:
    message = {
        "message": {"role": "assistant", "content": "Hi.", "tool_calls": [{"tool_call": {"function": {"name": "f"}}}]}
    }
    transcript = read_transcript({"attributes": {"llm": {"output_messages": [message], "token_count": {"prompt": 3}}}})
    assert transcript.messages == (
        Message(role="assistant", content="Hi.", tool_calls=[ToolCall(name="f", state="call")]),
    )
    assert transcript.usage == Usage(3, 0, 0, 1)


def test_values_of_otlp_are_read() -> None:
    attributes = [
        {"key": "gen_ai.output.messages", "value": {"arrayValue": {"values": [_otlp_message("Hi.")]}}},
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": 7}},
        {"key": "ok", "value": {"boolValue": True}},
    ]
    transcript = read_transcript({"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": attributes}]}]}]})
    assert (transcript.output, transcript.usage) == ("Hi.", Usage(7, 0, 0, 1))


def _otlp_message(text: str) -> dict[str, Any]:
    part = {"kvlistValue": {"values": [_otlp("type", "text"), _otlp("content", text)]}}
    parts = {"key": "parts", "value": {"arrayValue": {"values": [part]}}}
    return {"kvlistValue": {"values": [_otlp("role", "assistant"), parts]}}


def _otlp(key: str, text: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": text}}


def test_the_tokens_of_an_agent_count_where_its_calls_have_none() -> None:
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.output.messages": _said("Hi."),
    }
    assert read_transcript([{"attributes": agent}]).usage == Usage(5, 0, 0, 1)
    chat = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 3, "gen_ai.output.messages": _said("Hi.")}
    assert read_transcript([{"attributes": agent}, {"attributes": chat}]).usage == Usage(3, 0, 0, 1)


def test_tools_of_openinference_are_calls_once() -> None:
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "weather",
        "input.value": '{"city": "Bern"}',
        "output.value": "sunny",
    }
    failed = {
        "attributes": {**tool, "output.value": "no such city"},
        "status": {"status_code": "ERROR"},
        "parent_id": "1",
    }
    call = ToolCall(name="weather", arguments={"city": "Bern"}, result="sunny")
    spans: list[Any] = [{"attributes": tool, "parent_id": "1"}]
    assert read_transcript(spans).messages == (Message(role="assistant", tool_calls=[call]),)
    (message,) = read_transcript([failed]).messages
    assert (message.tool_calls[0].state, message.tool_calls[0].error) == ("error", "no such city")
    said = {
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "weather",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"city": "Bern"}',
    }
    assert read_transcript([{"attributes": said}, *spans]).messages == (Message(role="assistant", tool_calls=[call]),)
    assert len(read_transcript([{"attributes": said}, *spans, *spans]).messages) == 2


def test_a_chain_without_model_calls_has_its_input_and_output() -> None:
    root = {"openinference.span.kind": "CHAIN", "input.value": "Umbrella?", "output.value": "Yes."}
    transcript = read_transcript([{"attributes": root}])
    assert transcript.messages == (Message(role="user", content="Umbrella?"), Message(role="assistant", content="Yes."))
    assert transcript.output == "Yes."


def agent(id: int, name: str, parent: int = 0, **more: Any) -> dict[str, Any]:
    return span(id, name, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}, parent=parent, **more)


def tool(id: int, parent: int, name: str, **more: Any) -> dict[str, Any]:
    values = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": name}
    return span(id, name, values, parent=parent, **more)


def delegating() -> dict[str, Any]:
    """An agent whose only tool asks another agent, which calls a tool of its own."""
    user, asked = message("user", "Umbrella?"), message("user", "Weather?")
    ask = message("assistant", {"type": "tool_call", "id": "ask_guide", "name": "ask_guide", "arguments": {}})
    look = message("assistant", {"type": "tool_call", "id": "weather", "name": "weather", "arguments": {}})
    return spans(
        agent(1, "main", end=9),
        span(2, "chat", chat([message("system", "Delegate."), user], ask), parent=1),
        tool(3, 1, "ask_guide", start=1, end=7),
        agent(4, "guide", 3, start=2, end=6),
        span(5, "chat", chat([message("system", "Know it."), asked], look), parent=4, start=2, end=3),
        tool(6, 4, "weather", start=3, end=4),
        span(7, "chat", chat([asked, look], "Rain."), parent=4, start=4, end=5),
        span(8, "chat", chat([user, ask], "Yes."), parent=1, start=7, end=8),
    )


@pytest.mark.parametrize("scorer", ["max_tool_calls(limit=1)", "tool_call_accuracy(tool='ask_guide', strict=True)"])
def test_a_trace_has_the_same_scores_in_a_file_and_as_the_answer_of_a_target(scorer: str, tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_text(json.dumps(delegating()) + "\n")
    (sample,) = load(tmp_path / "trace.jsonl").samples
    (asked,) = load([{"input": "Umbrella?", "messages": delegating()}]).samples
    answered = Answer.of(delegating()).fill(Sample(input="Umbrella?"), seconds=1)
    for each in (sample, asked, answered):
        assert score(scorer, each).value == 1
        assert (each.messages, each.trajectory) == (sample.messages, sample.trajectory)


def test_several_requests_are_refused_unless_the_last_one_continues_the_others() -> None:
    first, second = message("user", "Rain in Bern?"), message("user", "And in Thun?")
    tokens = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5, "gen_ai.usage.cost": 0.25}
    one = [agent(2, "guide", 1, end=2), span(3, "chat", chat([first], "Yes.", **tokens), parent=2, end=1)]
    given = [first, message("assistant", "Yes."), second]
    for asked, answer in (([second], "No."), (given, "No.")):
        two = [
            agent(4, "guide", 1, start=3, end=5),
            span(5, "chat", chat(asked, answer, **tokens), parent=4, start=3, end=4),
        ]
        traced = spans(*two, *one, span(1, "session", {}, end=9))
        if asked == [second]:
            with pytest.raises(DataError) as caught:
                read_transcript(traced)
            assert "of 2 requests" in str(caught.value)
            assert "'Rain in Bern?', " in str(caught.value)
            assert "'And in Thun?'; " in str(caught.value)
            with pytest.raises(DataError, match="of 2 requests"):
                Answer.of(traced)
        else:
            read = read_transcript(traced)
            assert [each.content for each in read.messages] == ["Rain in Bern?", "Yes.", "And in Thun?", "No."]
            assert (read.output, read.usage, read.cost) == ("No.", Usage(20, 10, 0, 2), 0.5)


def test_a_request_that_was_made_twice_is_two_requests() -> None:
    calls = [span(n, "chat", chat([message("user", "Rain?")], "No."), parent=9, start=n) for n in (1, 3)]
    agents = [agent(n + 4, "guide", start=n, end=n + 1) for n in (1, 3)]
    for call, each in zip(calls, agents, strict=True):
        call["parentSpanId"] = each["spanId"]
    with pytest.raises(DataError, match="of 2 requests"):
        read_transcript(spans(*agents, *calls))


def test_what_a_reader_of_a_trace_notes_is_on_its_last_message() -> None:
    request = delegating()
    del request["resourceSpans"][0]["scopeSpans"][0]["spans"][2]
    (note,) = read_transcript(request).messages[-1].notes
    assert note.startswith(f"{ADOPTED}: in trace '{TRACE}'")


def test_an_agent_without_an_answer_is_a_failed_answer_of_a_target() -> None:
    asked = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": json.dumps([message("user", "Rain?")])}
    silent = spans(span(1, "main", asked, end=9), tool(2, 1, "weather", start=1))
    with pytest.raises(TargetError, match="in no span"):
        Answer.of(silent)
    failed = spans(span(1, "main", asked, end=9, status={"code": 2, "message": "down"}), tool(2, 1, "weather", start=1))
    with pytest.raises(TargetError, match="down"):
        Answer.of(failed)


def test_the_names_of_tools_alone_are_no_content() -> None:
    bare = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "weather"}]}]
    values = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(bare)}
    with pytest.raises(DataError, match="trace without content"):
        read_transcript(spans(span(1, "chat", values), tool(2, 0, "weather", start=1)))


def test_a_retrieval_that_found_nothing_is_an_empty_context() -> None:
    nothing = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": "[]"}
    answer = span(2, "chat", chat([message("user", "q")], "a"), parent=1, start=2)
    assert read_transcript(spans(agent(1, "main", end=9), span(3, "search", nothing, parent=1), answer)).context == ()


def test_the_text_that_the_first_span_returns_is_the_answer() -> None:
    trace = fixture("openinference_spans")
    for each in trace:
        if each["name"] == "run":
            each["attributes"]["output.value"] = "Sunny, says guide."
    assert read_transcript(trace).output == "Sunny, says guide."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([{"attributes": {"gen_ai.input.messages": "{}"}}], "[0].attributes['gen_ai.input.messages']: must be a list"),
        ([{"attributes": {"gen_ai.operation.name": "execute_tool"}}], "[0]: the span of a tool must have its name"),
        (
            [{"attributes": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": 5}}],
            "[0]: the span of a tool must have its name",
        ),
        ({"spans": [{"attributes": {"gen_ai.system": "x"}}]}, "the spans have no messages"),
        (
            [{"attributes": {"gen_ai.system_instructions": [{"scent": 1}]}}],
            "[0].attributes['gen_ai.system_instructions'].parts[0]: a part with no type is not understood",
        ),
    ],
)
def test_a_broken_trace_is_refused(value: Any, text: str) -> None:
    with pytest.raises(DataError) as caught:
        read_transcript(value)
    assert str(caught.value).startswith(f"OpenTelemetry: {text}")


def test_the_text_beside_the_calls_of_a_request_that_failed_is_no_answer_in_any_column() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Bern"}}
    trace = spans(
        span(1, "agent", {"gen_ai.operation.name": "invoke_agent"}, end=9, status={"code": 2, "message": "no answer"}),
        span(2, "chat", chat([message("user", "Bern?")], message("assistant", "Let me look.", call)), parent=1),
    )
    transcript = read_transcript(trace)
    assert (transcript.output, transcript.error) == (None, "no answer")
    for row in ({"messages": trace}, {"input": "Bern?", "output": trace}):
        (sample,) = load([row]).samples
        assert (sample.output, sample.messages) == (None, transcript.messages)
