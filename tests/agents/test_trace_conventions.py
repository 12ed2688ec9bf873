"""Traces of several conventions as samples: messages in attributes, events and log records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agents.test_traces import only, read
from tests.traced import attributes, chat, log, logs, message, number, span, spans


def spring() -> list[Any]:
    """What Spring AI 2.0.1 exports with its content in the logs."""
    client = {"gen_ai.operation.name": "framework", "gen_ai.system": "spring_ai", "spring.ai.kind": "chat_client"}
    advisor = {"gen_ai.operation.name": "framework", "spring.ai.kind": "advisor", "spring.ai.advisor.name": "Rag"}
    model = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "gpt-5.1"}
    store = {"db.operation.name": "query", "db.system": "pg_vector", "spring.ai.kind": "vector_store"}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "spring.ai.kind": "tool_call",
        "spring.ai.tool.definition.name": "weather",
        "spring.ai.tool.call.id": "c1",
        "spring.ai.tool.call.arguments": '{"city": "Bern"}',
        "spring.ai.tool.call.result": '"rainy"',
    }
    conversation = {"spring.ai.chat.client.conversation.id": "talk 7"}
    return [
        spans(
            span(1, "http post /ask", {}, end=9),
            span(2, "spring_ai chat_client", {**client, **conversation}, parent=1, start=1, end=8),
            span(3, "rag", advisor, parent=2, start=1.5, end=8),
            span(4, "pg_vector query", {**store, "db.vector.query.content": "Umbrella?"}, parent=3, start=2, end=3),
            span(5, "chat gpt-5.1", {**model, "gen_ai.usage.input_tokens": 9}, parent=3, start=4, end=5),
            span(6, "execute_tool weather", tool, parent=3, start=5, end=6),
            span(7, "chat gpt-5.1", {**model, "gen_ai.usage.input_tokens": 9}, parent=3, start=6, end=7),
        ),
        logs(
            log(4, 'Vector Store Query Response:\n["Carry one, says p. 3.", "He said "maybe"."]', {}, time=3),
            log(2, 'Chat Client Prompt Content:\n["user":"Umbrella in Bern?", "system":"Be brief."]', {}, time=8),
            log(2, 'Chat Client Completion:\n["Yes, it rains."]', {}, time=8),
            log(1, "Served the request", {}, time=9),
        ),
    ]


def test_spring_ai_with_its_content_in_the_logs() -> None:
    sample = only(*spring())
    assert (sample.input, sample.output, sample.instructions) == ("Umbrella in Bern?", "Yes, it rains.", "Be brief.")
    assert sample.context == ("Carry one, says p. 3.", 'He said "maybe".')
    assert sample.group == "talk 7"
    assert sample.metadata["trace"]["span_id"] == number(2)
    assert sample.metadata["target"]["usage"]["input"] == 18
    assert sample.trajectory is not None
    retrieval, tool = sample.trajectory.steps
    assert (retrieval.name, retrieval.metadata) == ("pg_vector query", {"input": "Umbrella?"})
    assert dict(tool.data) == {"tool_args": {"city": "Bern"}, "tool_result": {"value": "rainy"}, "success": True}


def test_spring_ai_with_its_content_in_events() -> None:
    def event(name: str, key: str, *texts: str) -> dict[str, Any]:
        return {"name": name, "timeUnixNano": "1", "attributes": attributes({key: list(texts)})}

    events = [
        event("gen_ai.content.prompt", "gen_ai.prompt", "Be brief.", "Umbrella?"),
        event("gen_ai.content.completion", "gen_ai.completion", "Yes."),
    ]
    store = {"db.operation.name": "query", "spring.ai.kind": "vector_store"}
    documents = {"db.vector.query.response.documents": '["A passage.", "Another."]'}
    model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    client = {"gen_ai.operation.name": "framework", "spring.ai.kind": "chat_client"}
    sample = only(
        spans(
            span(1, "spring_ai chat_client", client, end=9),
            span(2, "chat m", model, parent=1, start=3, events=events),
            span(3, "pg_vector query", {**store, **documents}, parent=1, start=1),
        )
    )
    assert (sample.input, sample.output, sample.instructions) == ("Umbrella?", "Yes.", "Be brief.")
    assert sample.context == ("A passage.", "Another.")


def test_the_events_of_version_1_36_are_read_from_logs_of_their_own() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}
    asked = [
        log(2, {"content": "Be brief."}, {}, name="gen_ai.system.message"),
        log(2, {"content": "Weather?"}, {}, name="gen_ai.user.message"),
    ]
    first = log(2, {"index": 0, "message": {"tool_calls": [call]}}, {}, name="gen_ai.choice", time=1)
    again = [{**each, "spanId": number(3)} for each in asked]
    said = [
        log(3, {"tool_calls": [call]}, {}, name="gen_ai.assistant.message", time=1.5),
        log(3, {"id": "c1", "content": "rainy"}, {}, name="gen_ai.tool.message", time=1.6),
        log(3, {"index": 0, "message": {"content": "It rains."}}, {}, name="gen_ai.choice", time=2),
    ]
    model = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai"}
    sample = only(
        logs(*asked, first, *again, *said),
        spans(span(2, "chat", model, start=0, end=1), span(3, "chat", model, start=1.4, end=2)),
    )
    assert (sample.input, sample.output, sample.instructions) == ("Weather?", "It rains.", "Be brief.")
    assert [each.role for each in sample.messages] == ["system", "user", "assistant", "assistant"]
    assert sample.messages[2].tool_calls[0].result == "rainy"
    assert only(logs(*again, *said)).output == "It rains."  # without any span


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"content": "q"}, {"message": json.dumps({"role": "assistant", "content": "a"})}),
        ({"content": "q"}, {"message": "a", "finish_reason": "stop"}),
        ({"content": "q"}, {"message": json.dumps([{"text": "a"}])}),
        (
            {"gen_ai.event.content": json.dumps({"role": "user", "content": "q"})},
            {"gen_ai.event.content": json.dumps({"index": 0, "message": {"content": "a"}})},
        ),
    ],
)
def test_the_events_of_a_span_have_messages_as_texts_or_json(asked: dict[str, Any], said: dict[str, Any]) -> None:
    events = [
        {"name": name, "timeUnixNano": "1", "attributes": attributes(values)}
        for name, values in (("gen_ai.user.message", asked), ("gen_ai.choice", said))
    ]
    sample = only(spans(span(1, "chat m", {"gen_ai.operation.name": "chat"}, events=events)))
    assert (sample.input, sample.output) == ("q", "a")


@pytest.mark.parametrize("is_log", [True, False])
def test_the_answer_in_an_event_may_be_a_refusal_without_a_role(is_log: bool) -> None:
    refusal = {"refusal": "I can't help."}
    event = {
        "name": "gen_ai.choice",
        "timeUnixNano": "1",
        "attributes": attributes({"message": json.dumps(refusal)}),
    }
    model = span(1, "chat m", {"gen_ai.operation.name": "chat"}, events=[] if is_log else [event])
    answer = [logs(log(1, {"index": 0, "message": refusal}, {}, name="gen_ai.choice"))] if is_log else []
    assert only(spans(model), *answer).output == "I can't help."


@pytest.mark.parametrize("text", ['{"a": 1}', '[{"a": 1}]', '["a"]'])
def test_an_answer_in_an_event_may_be_json_itself(text: str) -> None:
    event = {"name": "gen_ai.choice", "timeUnixNano": "1", "attributes": attributes({"message": text})}
    sample = only(spans(span(1, "chat m", {"gen_ai.operation.name": "chat"}, events=[event])))
    assert sample.output == text


def test_the_tool_calls_of_an_event_may_be_json() -> None:
    calls = json.dumps([{"id": "c1", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}])
    event = {"name": "gen_ai.choice", "timeUnixNano": "1", "attributes": attributes({"tool_calls": calls})}
    sample = only(spans(span(1, "chat m", {"gen_ai.operation.name": "chat"}, events=[event])))
    assert [(each.name, each.arguments) for each in sample.messages[0].tool_calls] == [("weather", {"city": "Bern"})]


def test_the_events_of_a_span_have_parts_as_json() -> None:
    def said(**parts: Any) -> list[dict[str, Any]]:
        names = {"choice": "message"}
        return [
            {
                "name": f"gen_ai.{name}" if name in names else f"gen_ai.{name}.message",
                "timeUnixNano": str(number),
                "attributes": attributes({names.get(name, "content"): json.dumps(value)}),
            }
            for number, (name, value) in enumerate(parts.items(), 1)
        ]

    user, call = [{"text": "Weather?"}], {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"city": "Bern"}}}
    result = [{"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"text": "rainy"}]}}]
    model = {"gen_ai.operation.name": "chat"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "t1"}
    sample = only(
        spans(
            span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, end=9),
            span(2, "chat", model, parent=1, events=said(user=user, choice=[{"text": "Let me see."}, call])),
            span(3, "tool", tool, parent=1, start=2, events=said(tool={"city": "Bern"}, choice=[{"text": "rainy"}])),
            span(
                4,
                "chat",
                model,
                parent=1,
                start=4,
                events=said(
                    user=user,
                    assistant=[{"text": "Let me see."}, call],
                    tool=result,
                    choice=[{"text": "It rains."}],
                ),
            ),
        )
    )
    assert [(each.role, each.content) for each in sample.messages] == [
        ("user", "Weather?"),
        ("assistant", "Let me see."),
        ("assistant", "It rains."),
    ]
    (called,) = sample.messages[1].tool_calls
    assert (called.id, called.arguments, called.result) == ("t1", {"city": "Bern"}, "rainy")


@pytest.mark.parametrize("with_span", [True, False])
def test_events_without_content_are_no_sample_and_are_reported(with_span: bool) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather"}}
    events = [
        log(1, None, {"gen_ai.system": "openai"}, name="gen_ai.user.message"),
        log(1, {"index": 0, "message": {"role": "assistant", "tool_calls": [call]}}, {}, name="gen_ai.choice"),
        log(1, {"id": "c1"}, {}, name="gen_ai.tool.message", time=1),
        log(1, {"index": 0, "message": {"role": "assistant"}}, {}, name="gen_ai.choice", time=2),
        log(1, {"index": 1, "message": {}}, {}, name="gen_ai.choice", time=2),
    ]
    made = [spans(span(1, "chat m", {"gen_ai.operation.name": "chat"}))] if with_span else []
    samples, notes = read(*made, logs(*events))
    assert samples == []
    assert ["trace without content" in note for note in notes] == [True]


def test_events_without_content_add_nothing_to_messages_that_others_have() -> None:
    agent = {**chat([message("user", "q")], "a"), "gen_ai.operation.name": "invoke_agent"}
    model = span(2, "chat", {"gen_ai.operation.name": "chat"}, parent=1)
    events = [
        log(2, None, {}, name="gen_ai.user.message"),
        log(2, {"index": 0, "message": {"role": "assistant"}}, {}, name="gen_ai.choice", time=2),
    ]
    sample = only(spans(span(1, "agent", agent), model), logs(*events))
    assert [(each.role, each.content) for each in sample.messages or ()] == [("user", "q"), ("assistant", "a")]


def test_the_event_with_the_details_of_an_inference_has_the_messages() -> None:
    details = chat([message("user", "q")], "a", **{"gen_ai.response.id": "r9"})
    event = log(1, None, details, name="gen_ai.client.inference.operation.details", time=1)
    sample = only(spans(span(1, "chat", {"gen_ai.operation.name": "chat"})), logs(event))
    assert (sample.input, sample.output) == ("q", "a")
    assert sample.metadata["trace"]["response_id"] == "r9"


@pytest.mark.parametrize(
    ("given", "instructions", "asked"),
    [
        ([message("user", "q", {"type": "generic", "generic_type": "search_result", "source": "https://example.org",
                                "content": [{"type": "text", "text": "A passage."}]})], None, "q"),
        ([message("user", "q", {"type": "generic", "generic_type": "cache_control", "cache_control": {}})], None, "q"),
        ([message("user", "q", {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "aGk="})],
         None, "q"),
        ([message("system", "Be brief."), message("user", "q")], "Be brief.", "q"),
    ],
)  # fmt: skip
def test_the_parts_of_the_conventions_are_read(given: list[Any], instructions: str | None, asked: str) -> None:
    answer = {"role": "assistant", "finish_reason": "stop", "parts": [
        {"type": "reasoning", "content": "A short answer."},
        {"type": "redacted_thinking", "data": "Emw"},
        {"type": "text", "content": "a"},
    ]}  # fmt: skip
    sample = only(spans(span(1, "chat", chat(given, answer))))
    assert (sample.input, sample.output, sample.instructions) == (asked, "a", instructions)
    assert sample.messages[-1].reasoning == "A short answer."
    assert [*sample.messages[-2].attachments] == (["image"] if "image" in json.dumps(given) else [])
    assert sample.context == (("A passage.",) if "A passage." in json.dumps(given) else None)


def test_structured_attributes_and_instructions_apart_are_read() -> None:
    call = {
        "gen_ai.operation.name": "chat",
        "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
        "gen_ai.input.messages": [message("user", "q")],
        "gen_ai.output.messages": [message("assistant", "a")],
    }
    sample = only(spans(span(1, "chat", call)))
    assert (sample.input, sample.output, sample.instructions) == ("q", "a", "Be brief.")


def test_the_results_of_a_vector_database_in_events_are_passages() -> None:
    names = ("first passage", "second passage")
    events = [
        {"name": "db.query.result", "attributes": attributes({"db.query.result.document": name})} for name in names
    ]
    root = {"openinference.span.kind": "CHAIN", "input.value": "q", "output.value": "a"}
    assert only(spans(span(1, "ask", root), span(2, "chroma.query", {}, parent=1, events=events))).context == names


@pytest.mark.parametrize("key", ["gen_ai.agent.name", "gen_ai.workflow.name"])
def test_a_workflow_has_its_name_in_the_current_attribute_and_in_the_earlier_one(key: str) -> None:
    values = {**chat([message("user", "q")], "a"), "gen_ai.operation.name": "invoke_workflow", key: "plan"}
    sample = only(spans(span(1, "invoke_workflow", values)))
    assert (sample.input, sample.output, sample.metadata["trace"]["entity"]) == ("q", "a", "plan")
