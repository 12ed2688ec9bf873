"""What the instrumentations of AutoGen, Haystack, LlamaIndex, MLflow and Semantic Kernel write that others don't."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone.types import Sample
from tests.agents.test_traces import only, read
from tests.traced import chat, log, logs, message, span, spans

LLM = {"openinference.span.kind": "LLM"}
CALLED = [("call_1", "Oslo"), ("call_2", "Bergen")]


def said(number: int, role: str, content: str | None = None, *, side: str = "input") -> dict[str, Any]:
    at = f"llm.{side}_messages.{number}.message"
    return {f"{at}.role": role, **({} if content is None else {f"{at}.content": content})}


def called(number: int, *, side: str = "input") -> dict[str, Any]:
    at = f"llm.{side}_messages.{number}.message"
    calls: dict[str, Any] = {}
    for place, (id, city) in enumerate(CALLED):
        call = f"{at}.tool_calls.{place}.tool_call"
        calls |= {f"{call}.id": id, f"{call}.function.name": "get_weather"}
        calls[f"{call}.function.arguments"] = json.dumps({"city": city})
    return calls


def agent(*model_calls: dict[str, Any]) -> Sample:
    root = span(1, "agent", {"openinference.span.kind": "AGENT"}, end=9)
    made = [span(n, "create", LLM | each, parent=1, start=n, end=n + 1) for n, each in enumerate(model_calls, start=2)]
    return only(spans(root, *made))


ASKED = said(0, "developer", "You know the weather.") | said(1, "user", "The weather in Oslo and Bergen?")
ANSWERED = said(0, "assistant", "Sunny in Oslo.", side="output")


def test_the_results_of_autogen_are_those_of_the_calls_they_name() -> None:
    results = [
        {"name": "get_weather", "content": "sunny", "call_id": "call_1", "is_error": False},
        {"name": "get_weather", "content": "station offline", "call_id": "call_2", "is_error": True},
    ]
    sent = said(2, "assistant") | called(2) | {"llm.input_messages.2.thought": "Let me look."} | said(3, "function")
    sent |= {f"llm.input_messages.3.function.{n}": json.dumps(each) for n, each in enumerate(results)}
    first = ASKED | said(0, "assistant", side="output") | called(0, side="output")
    sample = agent(first, ASKED | sent | ANSWERED)
    assert [(m.role, m.content) for m in sample.messages[2:]] == [
        ("assistant", "Let me look."),
        ("assistant", "Sunny in Oslo."),
    ]
    assert [(call.id, call.result, call.state) for call in sample.messages[2].tool_calls] == [
        ("call_1", "sunny", "result"),
        ("call_2", "station offline", "error"),
    ]


def test_a_result_that_a_message_does_not_have_answers_no_call() -> None:
    first = ASKED | said(0, "assistant", side="output") | called(0, side="output")
    then = ASKED | said(2, "assistant") | called(2) | said(3, "tool") | said(4, "tool", "")
    then["llm.input_messages.4.message.tool_call_id"] = "call_2"
    sample = agent(first, then | ANSWERED)
    assert [(call.id, call.result, call.state) for call in sample.messages[2].tool_calls] == [
        ("call_1", None, "call"),
        ("call_2", "", "result"),
    ]
    assert [m.role for m in sample.messages] == ["system", "user", "assistant", "assistant"]


def test_the_texts_that_are_embedded_are_no_questions() -> None:
    embedded = {"traceloop.span.kind": "workflow", "gen_ai.operation.name": "embeddings"}
    task = {"traceloop.span.kind": "task", "traceloop.entity.input": '{"text": "Bern is in Switzerland."}'}
    call = chat([message("user", "Where is Bern?")], message("assistant", "In Switzerland."))
    request = spans(
        span(1, "MockEmbedding.workflow", embedded, end=3),
        span(2, "MockEmbedding.task", task, parent=1, start=1, end=2),
        span(3, "chat", call, start=4),
    )
    assert only(request).input == "Where is Bern?"


@pytest.mark.parametrize("operation", ["retrieval", "RETRIEVER"])
def test_a_retrieval_without_its_documents_is_noted(operation: str) -> None:
    call = chat([message("user", "Where is Bern?")], message("assistant", "In Switzerland."))
    (sample,), notes = read(
        spans(
            span(1, "agent", {"gen_ai.operation.name": "invoke_agent"}, end=9),
            span(2, "RETRIEVER", {"gen_ai.operation.name": operation}, parent=1, start=1, end=2),
            span(3, "chat", call, parent=1, start=3, end=4),
        )
    )
    assert sample.context is None
    assert sample.trajectory is not None
    assert [step.name for step in sample.trajectory.steps] == ["RETRIEVER"]
    assert ["retrieval whose documents" in note for note in notes] == [True]


def test_the_messages_that_semantic_kernel_logs_as_text_are_read() -> None:
    def logged(id: int, number: int, name: str, body: dict[str, Any]) -> dict[str, Any]:
        return log(id, json.dumps(body), {"event.name": name, "CHAT_MESSAGE_INDEX": number}, time=id + number / 10)

    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    system, question = "You know the weather.", "The weather in Oslo?"
    asked = [
        ("gen_ai.system.message", {"role": "system", "content": system}),
        ("gen_ai.user.message", {"role": "user", "content": question}),
    ]
    made = {"role": "assistant", "content": "Let me look.", "tool_calls": [call]}
    result = {"role": "tool", "content": "sunny", "tool_call_id": "call_1"}
    answer = {"message": {"role": "assistant", "content": "Sunny."}, "finish_reason": "stop"}
    first = [*asked, ("gen_ai.choice", {"message": made, "finish_reason": "tool_calls"})]
    then = [*asked, ("gen_ai.assistant.message", made), ("gen_ai.tool.message", result), ("gen_ai.choice", answer)]
    model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"}
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "meteo"}
    root["gen_ai.input.messages"] = json.dumps([{"role": "user", "content": question}])
    root["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "content": "Sunny.", "name": "meteo"}])
    sample = only(
        spans(
            span(1, "invoke_agent", root, end=9),
            span(2, "chat", model, parent=1, start=2, end=3),
            span(4, "chat", model, parent=1, start=4, end=5),
        ),
        logs(*(logged(2, n, *each) for n, each in enumerate(first)), *(logged(4, n, *e) for n, e in enumerate(then))),
    )
    assert sample.instructions == system
    assert [m.content for m in sample.messages[1:]] == [question, "Let me look.", "Sunny."]
    assert [(made.id, made.result) for made in sample.messages[2].tool_calls] == [("call_1", "sunny")]
