"""What frameworks write beside or around messages, tool calls and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone import score
from evalstone.agents.from_traces import extract_trajectory
from tests.agents.test_traces import CALL, only, read
from tests.traced import attributes, chat, message, span, spans

QUESTION = message("user", "Umbrella?")
FAILED: dict[str, Any] = {"status": {"code": 2}}


def agent(id: int, name: str, parent: int = 0, **more: Any) -> dict[str, Any]:
    return span(id, name, {"openinference.span.kind": "AGENT", "agent.name": name}, parent=parent, **more)


def tool(id: int, parent: int, values: dict[str, Any], **more: Any) -> dict[str, Any]:
    named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", **values}
    return span(id, "execute_tool weather", named, parent=parent, **more)


def raised(text: str) -> dict[str, Any]:
    return {**FAILED, "events": [{"name": "exception", "attributes": attributes({"exception.message": text})}]}


def test_agents_that_hand_over_are_one_request() -> None:
    over: dict[str, Any] = {"type": "tool_call", "id": "h1", "name": "transfer_to_weather", "arguments": {}}
    done = {"type": "tool_call_response", "id": "h1", "response": "weather"}
    first = chat([message("system", "Triage."), QUESTION], message("assistant", over))
    then = [message("system", "Know weather."), QUESTION, message("assistant", over), message("tool", done)]
    handoff = {"openinference.span.kind": "TOOL", "input.value": "triage", "output.value": "weather"}
    sample = only(
        spans(
            agent(1, "Agent workflow", end=9),
            agent(2, "triage", 1, end=3),
            span(3, "response", first, parent=2, end=2),
            span(4, "handoff to weather", handoff, parent=2, start=2, end=3),
            agent(5, "weather", 1, start=3, end=9),
            span(6, "response", chat(then, "No."), parent=5, start=4, end=9),
        )
    )
    assert (sample.input, sample.output, sample.metadata["target"]["seconds"]) == ("Umbrella?", "No.", 9.0)
    assert sample.instructions == "Triage.\n\nKnow weather."
    assert [call.name for each in sample.messages for call in each.tool_calls] == ["transfer_to_weather"]
    assert sample.trajectory is not None
    steps = [(step.step_type, step.name) for step in sample.trajectory.steps]
    assert steps == [("tool_call", "transfer_to_weather")]


def test_steps_of_agents_that_hand_over_are_those_of_their_messages() -> None:
    over: dict[str, Any] = {"type": "tool_call", "id": "h1", "name": "transfer_to_weather", "arguments": {}}
    done = {"type": "tool_call_response", "id": "h1", "response": "weather"}
    found = {"type": "tool_call_response", "id": "c1", "response": "rainy"}
    handed = [QUESTION, message("assistant", over), message("tool", done)]
    told = [*handed, message("assistant", CALL), message("tool", found)]
    sample = only(
        spans(
            agent(1, "Agent workflow", end=9),
            agent(2, "triage", 1, end=3),
            span(3, "response", chat([QUESTION], message("assistant", over)), parent=2, end=2),
            agent(5, "weather", 1, start=3, end=9),
            span(6, "response", chat(handed, message("assistant", CALL)), parent=5, start=4, end=5),
            tool(7, 5, {"gen_ai.tool.call.id": "c1"}, start=5, end=6),
            span(8, "response", chat(told, "Yes."), parent=5, start=6, end=9),
        )
    )
    assert sample.trajectory is not None
    wanted = extract_trajectory(sample.messages)
    assert [step.name for step in wanted.steps] == ["transfer_to_weather", "weather"]
    assert [(step.step_type, step.name, step.data) for step in sample.trajectory.steps] == [
        (step.step_type, step.name, step.data) for step in wanted.steps
    ]


def test_a_function_that_makes_the_answer_is_no_tool_and_its_result_is_not_what_the_model_was_told() -> None:
    made = {"logfire.msg": "running output function: final_result", "gen_ai.tool.name": "final_result"}
    route: dict[str, Any] = {"type": "tool_call", "id": "c9", "name": "final_result", "arguments": {"city": "Bern"}}
    told = {"type": "tool_call_response", "id": "c9", "name": "final_result", "result": "Final result processed."}
    everything = [QUESTION, message("assistant", route), message("user", told)]
    run = {"gen_ai.operation.name": "invoke_agent", "final_result": "Routed to Bern.",
           "pydantic_ai.all_messages": json.dumps(everything)}  # fmt: skip
    by_id = {**made, "gen_ai.tool.call.id": "c9", "gen_ai.tool.call.arguments": '"Bern"'}
    sample = only(
        spans(
            span(1, "invoke_agent", run, end=9),
            span(2, "chat", chat([QUESTION], message("assistant", route)), parent=1, end=2),
            tool(3, 1, {**by_id, "gen_ai.tool.call.result": "Routed to Bern."}, start=2, end=3),
        )
    )
    (call,) = (call for each in sample.messages for call in each.tool_calls)
    assert (call.arguments, call.result, call.state) == ({"city": "Bern"}, "Final result processed.", "result")
    assert sample.output == "Routed to Bern."
    assert all(not each.notes for each in sample.messages)

    run["pydantic_ai.all_messages"] = json.dumps([QUESTION, message("assistant", "bern")])
    sample = only(
        spans(
            span(1, "invoke_agent", run, end=9),
            span(2, "chat", chat([QUESTION], "bern"), parent=1, end=2),
            tool(3, 1, {**made, "gen_ai.tool.call.arguments": '"bern"'}, start=2, end=3),
        )
    )
    assert (sample.output, sample.trajectory) == ("Routed to Bern.", None)
    assert [call for each in sample.messages for call in each.tool_calls] == []


def test_agents_that_answer_are_requests_of_their_own_though_the_second_knows_the_first() -> None:
    then = [QUESTION, message("assistant", "No."), message("user", "In Thun?")]
    samples, _ = read(
        spans(
            span(1, "script", {}, end=9),
            agent(2, "one", 1, end=2),
            span(3, "response", chat([QUESTION], "No."), parent=2),
            agent(4, "two", 1, start=3, end=5),
            span(5, "response", chat(then, "Neither."), parent=4, start=3),
        )
    )
    assert [(each.input, each.output) for each in samples] == [("Umbrella?", "No."), ("In Thun?", "Neither.")]


@pytest.mark.parametrize("summed_up", [True, False])
def test_an_agent_that_sums_its_calls_up_in_one_message_made_each_once(summed_up: bool) -> None:
    answered = {"type": "tool_call_response", "id": "c1", "response": "rainy"}
    said = message("assistant", "Yes.", CALL, answered) if summed_up else message("assistant", "Yes.")
    last = chat([QUESTION, message("assistant", CALL), message("tool", answered)], "Yes.")
    sample = only(
        spans(
            span(1, "invoke_agent", {**chat([QUESTION], said), "gen_ai.operation.name": "invoke_agent"}, end=9),
            span(2, "chat", chat([QUESTION], message("assistant", CALL)), parent=1),
            tool(3, 1, {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": '"rainy"'}, start=1),
            span(4, "chat", last, parent=1, start=3),
        )
    )
    assert [(each.role, each.content) for each in sample.messages] == [
        ("user", "Umbrella?"),
        ("assistant", ""),
        ("assistant", "Yes."),
    ]
    (call,) = sample.messages[1].tool_calls
    assert (call.result, call.state) == ("rainy", "result")


@pytest.mark.parametrize("asked_alone", [True, False])
def test_a_tool_that_raised_failed_in_the_messages_too_and_what_was_said_before_is_no_answer(
    asked_alone: bool,
) -> None:
    given = chat([QUESTION], message("assistant", "Let me look.", CALL))
    values = {**given, "gen_ai.operation.name": "invoke_agent"}
    inside = [span(3, "chat", given, parent=1)] if asked_alone else []
    if asked_alone:
        del values["gen_ai.output.messages"]
    sample = only(
        spans(
            span(1, "invoke_agent", values, end=9, **raised("weather down")),
            *inside,
            tool(2, 1, {"gen_ai.tool.call.id": "c1"}, start=1, **raised("weather down")),
        )
    )
    assert (sample.output, sample.metadata["error"]) == (None, "weather down")
    assert [(each.role, each.content) for each in sample.messages] == [
        ("user", "Umbrella?"),
        ("assistant", "Let me look."),
    ]
    (call,) = sample.messages[-1].tool_calls
    assert (call.state, call.error) == ("error", "weather down")


def test_a_failure_that_the_model_was_told_of_keeps_its_words() -> None:
    told = {"type": "tool_call_response", "id": "c1", "response": "Error: weather down"}
    last = chat([QUESTION, message("assistant", CALL), message("tool", told)], "Sorry.")
    sample = only(
        spans(
            span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, end=9),
            span(2, "chat", chat([QUESTION], message("assistant", CALL)), parent=1),
            tool(3, 1, {"gen_ai.tool.call.id": "c1"}, start=1, **FAILED),
            span(4, "chat", last, parent=1, start=3),
        )
    )
    (call,) = (call for each in sample.messages for call in each.tool_calls)
    assert (sample.output, call.state, call.error) == ("Sorry.", "error", "Error: weather down")


def told(status: str) -> dict[str, Any]:
    """What LangChain's message with a tool's result has."""
    return {"type": "tool", "content": "station down", "tool_call_id": "c1", "status": status}


def langchain_tools(status: str) -> list[tuple[str, dict[str, Any]]]:
    """The spans of OpenInference and Traceloop for a tool whose failure LangChain catches and tells the model."""
    kept = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "ToolMessage"]}
    openinference = {
        "openinference.span.kind": "TOOL",
        "tool.name": "weather",
        "input.value": "Bern",
        "output.value": json.dumps({"type": "tool", "data": told(status)}),
    }
    traceloop = {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "weather",
        "traceloop.entity.input": json.dumps({"input_str": "{'city': 'Bern'}"}),
        "traceloop.entity.output": json.dumps({"output": {**kept, "kwargs": told(status)}}),
    }
    return [("openinference", openinference), ("traceloop", traceloop)]


@pytest.mark.parametrize(("status", "passed"), [("error", 0), ("success", 1)])
@pytest.mark.parametrize("place", [0, 1])
def test_a_failure_that_langchain_caught_is_one(status: str, passed: int, place: int) -> None:
    _, values = langchain_tools(status)[place]
    told_it = {"type": "tool_call_response", "id": "c1", "response": "station down"}
    last = chat([QUESTION, message("assistant", CALL), message("tool", told_it)], "Sorry.")
    sample = only(
        spans(
            span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, end=9),
            span(2, "chat", chat([QUESTION], message("assistant", CALL)), parent=1),
            span(3, "weather", values, parent=1, start=1),
            span(4, "chat", last, parent=1, start=3),
        )
    )
    (call,) = (call for each in sample.messages for call in each.tool_calls)
    assert (call.arguments, call.state) == ({"city": "Bern"}, "result" if passed else "error")
    assert call.error == (None if passed else "station down")
    assert score("no_tool_errors", sample).value == passed


def test_the_span_of_a_tool_whose_result_says_that_it_failed_failed() -> None:
    result = {"content": [{"type": "text", "text": "no such city"}], "isError": True}
    sample = only(
        spans(
            span(1, "invoke_agent", {**chat([QUESTION], "Sorry."), "gen_ai.operation.name": "invoke_agent"}, end=9),
            tool(2, 1, {"gen_ai.tool.call.result": json.dumps(result)}, start=1),
        )
    )
    (call,) = (call for each in sample.messages for call in each.tool_calls)
    assert (call.state, call.error) == ("error", "no such city")


def test_a_tool_of_pydantic_ai_returned_what_the_model_gets() -> None:
    returned = {"return_value": "rainy", "content": ["a picture"], "metadata": {"id": 1}, "kind": "tool-return"}
    answered = message("tool", {"type": "tool_call_response", "id": "c1", "response": "rainy"})
    sample = only(
        spans(
            span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, end=9),
            span(2, "chat", chat([QUESTION, message("assistant", CALL), answered], "Yes."), parent=1, start=3),
            tool(3, 1, {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": json.dumps(returned)}, start=1),
        )
    )
    (call,) = (call for each in sample.messages for call in each.tool_calls)
    assert call.result == "rainy"


def test_an_error_is_its_message_and_not_the_code_that_was_run() -> None:
    status = {"code": 2, "message": 'ValueError("down")Traceback (most recent call last):\n File "/srv/app.py"'}
    sample = only(spans(span(1, "chat", chat([QUESTION], "Yes."), status=status)))
    assert sample.metadata["error"] == 'ValueError("down")'


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ({"response": "No.", "source_nodes": [], "metadata": None}, "No."),
        ("StopEvent(result=AgentOutput(response=ChatMessage(role=<MessageRole.ASSIS...", None),
        ({"answer": "No.", "sure": True}, None),
    ],
)
def test_the_answer_of_a_chat_engine_is_its_response(answer: Any, output: str | None) -> None:
    said = answer if isinstance(answer, str) else json.dumps(answer)
    values = {"openinference.span.kind": "CHAIN", "input.value": '{"message": "Umbrella?"}', "output.value": said}
    sample = only(spans(span(1, "ContextChatEngine.chat", values)))
    assert (sample.input, sample.output) == ("Umbrella?", output)


@pytest.mark.parametrize("failed", [{}, FAILED])
def test_a_tool_call_that_only_its_span_has_comes_before_the_answer(failed: dict[str, Any]) -> None:
    values = {**chat([QUESTION], "Yes."), "gen_ai.operation.name": "invoke_agent"}
    looked = [tool(n, 1, {"gen_ai.tool.call.id": f"c{n}"}, start=n) for n in (2, 3)]
    sample = only(spans(span(1, "invoke_agent", values, end=9, **failed), *looked))
    assert [[call.id for call in each.tool_calls] or each.content for each in sample.messages] == [
        "Umbrella?",
        ["c2"],
        ["c3"],
        "Yes.",
    ]
    assert sample.output == "Yes."


def retriever(id: int, name: str, parent: int, *documents: str) -> dict[str, Any]:
    values = {f"retrieval.documents.{n}.document.content": text for n, text in enumerate(documents)}
    return span(id, name, {"openinference.span.kind": "RETRIEVER", "input.value": "rain", **values}, parent=parent)


def test_a_retriever_inside_another_is_a_step_if_it_has_documents_or_the_other_one_has_none() -> None:
    sample = only(
        spans(
            agent(1, "guide", end=9),
            span(2, "chat", chat([QUESTION], "Yes."), parent=1, start=8),
            retriever(3, "Fusion.retrieve", 1, "It rains.", "It pours."),
            retriever(4, "Fusion._retrieve", 3),
            retriever(5, "First.retrieve", 4, "It rains."),
            retriever(6, "First._retrieve", 5),
            retriever(7, "Second.retrieve", 4, "It pours."),
            retriever(8, "Silent.retrieve", 1),
            retriever(9, "Silent._retrieve", 8),
        )
    )
    assert sample.trajectory is not None
    assert [step.name for step in sample.trajectory.walk()] == [
        "Fusion.retrieve",
        "First.retrieve",
        "Second.retrieve",
        "Silent.retrieve",
        "Silent._retrieve",
    ]


def test_the_model_calls_of_a_tool_are_no_part_of_the_conversation_of_its_agent() -> None:
    ask: dict[str, Any] = {"type": "tool_call", "id": "a1", "name": "ask_guide", "arguments": {}}
    inner = [message("system", "Know it."), message("user", "Weather?")]
    chain, looked = {"openinference.span.kind": "CHAIN"}, {"openinference.span.kind": "TOOL", "tool.name": "weather"}
    sample = only(
        spans(
            span(1, "graph", chain, end=9),
            span(2, "chat", chat([message("system", "Delegate."), QUESTION], message("assistant", ask)), parent=1),
            span(3, "ask_guide", {**looked, "tool.name": "ask_guide"}, parent=1, start=1, end=7),
            span(4, "guide", chain, parent=3, start=2, end=6),
            span(5, "chat", chat(inner, message("assistant", CALL)), parent=4, start=2, end=3),
            span(6, "weather", {**looked, "input.value": "Bern", "output.value": "rainy"}, parent=4, start=3, end=4),
            span(7, "chat", chat([*inner, message("assistant", CALL)], "It rains."), parent=4, start=4, end=5),
            span(8, "chat", chat([QUESTION, message("assistant", ask)], "Yes."), parent=1, start=7, end=8),
        )
    )
    assert (sample.input, sample.output, sample.instructions) == ("Umbrella?", "Yes.", "Delegate.")
    assert [each.content for each in sample.messages if each.role == "user"] == ["Umbrella?"]
    limited = score("max_tool_calls(limit=1)", sample)
    assert limited.value == 1
    assert sample.trajectory is not None
    (step,) = sample.trajectory.steps
    (nested,) = step.children
    assert (step.name, nested.name, nested.data["tool_args"]) == ("ask_guide", "weather", {"city": "Bern"})


def test_a_call_that_only_its_span_has_comes_before_the_answer_beside_an_agent_inside() -> None:
    values = {**chat([QUESTION], "Yes."), "gen_ai.operation.name": "invoke_agent"}
    inner = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "guide"}
    sample = only(
        spans(
            span(1, "invoke_agent", values, end=9),
            tool(2, 1, {"gen_ai.tool.call.id": "c1"}, start=1, end=8),
            span(3, "invoke_agent", inner, parent=2, start=2, end=7),
            span(4, "chat", chat([message("user", "Weather?")], "Rain."), parent=3, start=3),
        )
    )
    assert [[call.name for call in each.tool_calls] or each.content for each in sample.messages] == [
        "Umbrella?",
        ["weather"],
        "Yes.",
    ]


@pytest.mark.parametrize("place", [0, 1])
def test_a_tool_that_hands_over_returned_its_message(place: int) -> None:
    _, values = langchain_tools("success")[place]
    key = ("output.value", "traceloop.entity.output")[place]
    returned = json.loads(values[key])
    message_of = returned["output"] if place else returned
    handed = {"graph": "__parent__", "update": {"messages": [message_of]}, "resume": None, "goto": "writer"}
    said = json.dumps({"output": handed} if place else handed)
    given = {**chat([QUESTION], message("assistant", CALL)), "gen_ai.operation.name": "invoke_agent"}
    sample = only(
        spans(span(1, "invoke_agent", given, end=9), span(3, "weather", {**values, key: said}, parent=1, start=1))
    )
    (call,) = (call for each in sample.messages for call in each.tool_calls)
    assert (call.id, call.arguments, call.result) == ("c1", {"city": "Bern"}, "station down")


def test_a_trace_that_only_creates_an_agent_needs_no_note() -> None:
    created = {"gen_ai.operation.name": "create_agent", "gen_ai.agent.name": "a", "gen_ai.system_instructions": "Hi."}
    assert read(spans(span(1, "create_agent a", created))) == ([], ())
    assert len(read(spans(span(1, "create_agent a", created), span(2, "GET /", {})))[1]) == 1


def test_calls_that_are_sent_again_with_the_ids_of_their_items_are_made_once() -> None:
    def calling(id: str, city: str) -> dict[str, Any]:
        return message("assistant", {"type": "tool_call", "id": id, "name": "weather", "arguments": {"city": city}})

    def told_of(id: str, result: str) -> dict[str, Any]:
        return message("tool", {"type": "tool_call_response", "id": id, "response": result})

    made = [calling("call_1", "Bern"), calling("call_2", "Thun")]
    again = [
        QUESTION,
        calling("fc_1", "Bern"),
        calling("fc_2", "Thun"),
        told_of("call_1", "wet"),
        told_of("call_2", "dry"),
    ]
    last = [*again, calling("fc_3", "Bern"), told_of("call_3", "dry")]
    sample = only(
        spans(
            span(1, "guide.agent", {"traceloop.span.kind": "agent", "gen_ai.agent.name": "guide"}, end=9),
            span(2, "openai.response", {**chat([QUESTION], ""), "gen_ai.output.messages": json.dumps(made)}, parent=1),
            span(3, "openai.response", chat(again, calling("call_3", "Bern")), parent=1, start=3),
            span(4, "openai.response", chat(last, "Dry."), parent=1, start=5),
        )
    )
    calls = [(call.id, call.result, call.state) for each in sample.messages for call in each.tool_calls]
    assert calls == [("call_1", "wet", "result"), ("call_2", "dry", "result"), ("call_3", "dry", "result")]
    assert [each.content for each in sample.messages if not each.tool_calls] == ["Umbrella?", "Dry."]


@pytest.mark.parametrize("result", [None, "null"])
def test_a_tool_that_returned_nothing_returned_no_text(result: str | None) -> None:
    answered = message("tool", {"type": "tool_call_response", "id": "c1", "response": result})
    looked = tool(3, 1, {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "null"}, start=1)
    sample = only(
        spans(
            span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, end=9),
            span(2, "chat", chat([QUESTION, message("assistant", CALL), answered], "Yes."), parent=1, start=3),
            looked,
        )
    )
    (call,) = (call for each in sample.messages for call in each.tool_calls)
    assert (call.state, call.result) == ("result", result)


def adk(calls: list[dict[str, Any]], results: list[dict[str, Any]], ids: list[str]) -> dict[str, Any]:
    """A trace of an agent of Google ADK that calls tools in parallel; ids: those in the spans of the tools."""
    own = {"gen_ai.operation.name": "generate_content", "gen_ai.provider.name": "gcp", "gcp.vertex.agent.event_id": "e"}
    said = message("assistant", "Let me look.", *({"type": "tool_call", **each} for each in calls))
    told = message("user", *({"type": "tool_call_response", **each} for each in results))
    runs = [
        tool(5 + number, 1, {"gen_ai.tool.call.id": ids[number], **named}, start=3 + number / 10, end=3.9)
        for number, named in enumerate(
            {
                "gen_ai.tool.call.arguments": json.dumps(call["arguments"]),
                "gen_ai.tool.call.result": json.dumps(result["response"]),
            }
            for call, result in zip(calls, results, strict=True)
        )
    ]
    merged = span(9, "execute_tool (merged)", {**CALL, "gen_ai.operation.name": "execute_tool", **MERGED}, parent=1)
    return spans(
        span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "w"}, end=9),
        span(2, "generate_content", chat([QUESTION], said, **own), parent=1, start=1, end=2),
        *runs,
        {**merged, "startTimeUnixNano": runs[-1]["endTimeUnixNano"]},
        span(
            3, "generate_content", chat([QUESTION, said, told], message("assistant", "No."), **own), parent=1, start=5
        ),
    )


MERGED = {"gen_ai.tool.name": "(merged tools)", "gen_ai.tool.call.id": "m"}
CITIES = ("Bern", "Oslo")


@pytest.mark.parametrize("has_ids", [True, False])
def test_places_in_a_message_of_adk_are_no_ids_of_calls(has_ids: bool) -> None:
    # A text comes before the calls, so that the places of their results are others.
    ids = ["call_1", "call_2"] * 2 if has_ids else ["weather_1", "weather_2", "weather_0", "weather_1"]
    calls = [{"id": id, "name": "weather", "arguments": {"city": city}} for id, city in zip(ids, CITIES, strict=False)]
    results = [{"id": id, "response": {"in": city}} for id, city in zip(ids[2:], CITIES, strict=True)]
    sample = only(adk(calls, results, ids if has_ids else ["adk-1", "adk-2"]))
    assert [each.role for each in sample.messages] == ["user", "assistant", "assistant"]
    made = sample.messages[1].tool_calls
    assert [(call.arguments, call.result) for call in made] == [({"city": city}, {"in": city}) for city in CITIES]
    assert sample.trajectory is not None
    assert [step.data["tool_result"] for step in sample.trajectory.steps] == [{"in": city} for city in CITIES]
