"""What a graph of LangGraph returned, in the span of its chain: another account of its messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone import Sample, score
from evalstone.agents.transcripts import read_transcript
from evalstone.types import TrajectoryExpectation
from tests.agents.test_traces import only, read
from tests.traced import chat, message, span, spans

QUESTION = {"type": "human", "data": {"content": "Umbrella in Bern?", "type": "human"}}
CALLING = {
    "type": "ai",
    "data": {"content": "", "tool_calls": [{"name": "weather", "args": {"city": "Bern"}, "id": "c1"}]},
}
ANSWER = {"type": "ai", "data": {"content": "Yes."}}


def returned(status: str = "success", **more: Any) -> dict[str, Any]:
    return {"type": "tool", "data": {"content": "rainy", "tool_call_id": "c1", "status": status, **more}}


def openinference(id: int, output: Any, parent: int = 0) -> dict[str, Any]:
    values = {"openinference.span.kind": "CHAIN", "llm.input_messages.0.message.role": "user"}
    values |= {"llm.input_messages.0.message.content": "Umbrella in Bern?", "output.value": json.dumps(output)}
    return span(id, "LangGraph", {**values, "input.value": json.dumps({"messages": [QUESTION]})}, parent=parent, end=9)


def traceloop(id: int, output: Any, parent: int = 0) -> dict[str, Any]:
    values = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "LangGraph"}
    values |= {"traceloop.entity.input": json.dumps({"inputs": {"messages": [QUESTION]}, "tags": []})}
    values |= {"traceloop.entity.output": json.dumps({"outputs": output, "kwargs": {}})}
    return span(id, "LangGraph", values, parent=parent, end=9)


GRAPHS = [openinference, traceloop]


def tool(id: int, parent: int = 1) -> dict[str, Any]:
    """The span of a tool, in which OpenInference has the only argument without its name."""
    values = {"openinference.span.kind": "TOOL", "tool.name": "weather", "input.value": "Bern", "output.value": "rainy"}
    return span(id, "weather", values, parent=parent, start=2, end=3)


def models(parent: int = 1) -> list[dict[str, Any]]:
    call = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Bern"}}
    asked, done = message("user", "Umbrella in Bern?"), {"type": "tool_call_response", "id": "c1", "response": "rainy"}
    said = message("assistant", call)
    return [
        span(8, "chat", chat([message("system", "Be brief."), asked], said), parent=parent, start=1, end=2),
        span(9, "chat", chat([asked, said, message("tool", done)], "Yes."), parent=parent, start=3, end=4),
    ]


def checked(sample: Sample) -> None:
    expected = TrajectoryExpectation.read(
        [{"step_type": "tool_call", "name": "weather", "tool_args": {"city": "Bern"}}]
    )
    whole = Sample(messages=sample.messages, trajectory=sample.trajectory, expected_trajectory=expected)
    for scorer in ("tool_call_f1", "trajectory_accuracy", "max_tool_calls(limit=1)"):
        assert score(scorer, whole).value == 1
    roles = [message.role for message in sample.messages if message.role != "system"]
    assert roles == ["user", "assistant", "assistant"]
    assert (sample.input, sample.output) == ("Umbrella in Bern?", "Yes.")


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("with_tool", [True, False])
def test_a_graph_without_the_spans_of_its_models_has_the_messages_that_it_returned(graph: Any, with_tool: bool) -> None:
    state = {"messages": [QUESTION, CALLING, returned(), ANSWER]}
    checked(only(spans(graph(1, state), *([tool(2)] if with_tool else []))))


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(("status", "passed"), [("error", 0), ("success", 1)])
def test_a_state_says_that_a_tool_failed_where_the_messages_of_models_dont(
    graph: Any, status: str, passed: int
) -> None:
    sample = only(spans(graph(1, {"messages": [QUESTION, CALLING, returned(status), ANSWER]}), *models()))
    assert score("no_tool_errors", sample).value == passed
    assert sample.instructions == "Be brief."
    assert [message.role for message in sample.messages] == ["system", "user", "assistant", "assistant"]


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_structured_answer_of_a_graph_is_its_output(graph: Any) -> None:
    state = {"messages": [QUESTION, CALLING, returned(), ANSWER], "structured_response": {"take": True}}
    assert only(spans(graph(1, state), *models())).output == '{"take": true}'
    written: dict[str, Any] = {"messages": [QUESTION, {"type": "ai", "data": {"content": '{"take":true}'}}]}
    written["structured_response"] = {"take": True}
    assert only(spans(graph(1, written))).output == '{"take":true}'
    assert read_transcript(written).output == '{"take":true}'
    blank = {"type": "ai", "data": {"content": ""}}
    assert only(spans(graph(1, {"messages": [QUESTION, blank]}))).output == ""


@pytest.mark.parametrize("graph", GRAPHS)
def test_documents_in_a_state_are_the_context(graph: Any) -> None:
    documents: list[Any] = [{"page_content": "In April.", "metadata": {}, "type": "Document"}]
    states: list[dict[str, Any]] = [
        {"messages": [QUESTION, CALLING, returned(artifact=documents), ANSWER]},
        {"messages": [QUESTION, ANSWER], "documents": documents},
    ]
    for state in states:
        assert only(spans(graph(1, state))).context == ("In April.",)


def said(sample: Sample) -> list[tuple[str, str]]:
    return [(each.role, each.content) for each in sample.messages]


STATED = [("user", "Umbrella in Bern?"), ("assistant", "Yes.")]


@pytest.mark.parametrize("graph", GRAPHS)
def test_what_a_graph_asks_its_models_apart_from_its_state_is_no_part_of_the_conversation(graph: Any) -> None:
    asked, brief = message("user", "Umbrella in Bern?"), message("system", "Be brief.")
    answering = span(5, "chat", chat([brief, asked], "Yes."), parent=1, start=3, end=4)
    route = {"type": "tool_call", "id": "r1", "name": "Route", "arguments": {"to": "weather"}}
    aside = {
        "router": chat([message("system", "Route."), asked], "weather"),
        "router with a schema": chat([message("system", "Route."), asked], message("assistant", route)),
        "rewriter": chat([message("system", "Rewrite."), message("user", "Rewrite: Umbrella in Bern?")], "Rain, Bern?"),
    }
    graded = span(6, "chat", chat([message("user", "Is this good? Yes.")], "good"), parent=1, start=5, end=6)
    for made in aside.values():
        first = span(4, "chat", made, parent=1, start=1, end=2)
        for calls in ([first, answering], [answering, graded], [first, answering, graded]):
            sample = only(spans(graph(1, {"messages": [QUESTION, ANSWER]}), *calls))
            assert said(sample) == [("system", "Be brief."), *STATED]
            assert (sample.instructions, sample.trajectory) == ("Be brief.", None)
            assert score("no_tool_calls", sample).value == 1


def test_the_question_in_a_state_counts_and_not_the_prompt_that_a_node_makes_of_it() -> None:
    prompt = [message("system", "From passages: …"), message("user", "Question: Umbrella in Bern?")]
    model = span(2, "chat", chat(prompt, "Yes."), parent=1, start=1)
    sample = only(spans(openinference(1, {"messages": [QUESTION, ANSWER]}), model))
    assert (sample.input, sample.output) == ("Umbrella in Bern?", "Yes.")
    assert said(sample) == [("system", "From passages: …"), *STATED]


def test_the_text_beside_calls_is_that_of_the_state() -> None:
    # Traceloop has the parts of a reply that are no texts as a text.
    call = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Bern"}}
    calling = message("assistant", '{"type": "function_call"}', call)
    model = span(2, "chat", chat([message("user", "Umbrella in Bern?")], calling), parent=1, start=1)
    sample = only(spans(openinference(1, {"messages": [QUESTION, CALLING, returned(), ANSWER]}), model))
    assert said(sample) == [STATED[0], ("assistant", ""), STATED[1]]


def test_a_history_that_a_model_was_not_sent_is_part_of_the_conversation() -> None:
    before = [{"type": "human", "data": {"content": "Hello."}}, {"type": "ai", "data": {"content": "Hi."}}]
    model = span(2, "chat", chat([message("user", "Umbrella in Bern?")], "Yes."), parent=1, start=1)
    sample = only(spans(openinference(1, {"messages": [*before, QUESTION, ANSWER]}), model))
    assert said(sample) == [("user", "Hello."), ("assistant", "Hi."), *STATED]


def test_examples_in_a_prompt_are_no_calls_of_a_graph() -> None:
    example = {"type": "tool_call", "id": "e1", "name": "weather", "arguments": {"city": "Chur"}}
    given = [
        message("assistant", example),
        message("tool", {"type": "tool_call_response", "id": "e1", "response": "x"}),
    ]
    model = span(2, "chat", chat([*given, message("user", "Umbrella in Bern?")], "Yes."), parent=1, start=1)
    sample = only(spans(openinference(1, {"messages": [QUESTION, ANSWER]}), model))
    assert said(sample) == STATED
    assert sample.trajectory is None


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("with_tool", [True, False])
def test_calls_that_ran_but_are_not_in_the_state_are_calls_of_the_graph(graph: Any, with_tool: bool) -> None:
    # A node that asks an agent, of which it takes only the last message.
    state = {"messages": [QUESTION, ANSWER]}
    sample = only(spans(graph(1, state), *models(), *([tool(2)] if with_tool else [])))
    checked(Sample(messages=sample.messages, trajectory=sample.trajectory, input=sample.input, output=sample.output))
    assert sample.instructions == "Be brief."


def test_a_state_without_the_answer_has_the_conversation_of_its_model_calls() -> None:
    asked = [message("system", "Be brief."), message("user", "Question: umbrella, Bern?")]
    model = span(2, "chat", chat(asked, "Yes."), parent=1, start=1)
    sample = only(spans(openinference(1, {"messages": [QUESTION], "answer": "Yes."}), model))
    assert said(sample) == [("system", "Be brief."), ("user", "Question: umbrella, Bern?"), ("assistant", "Yes.")]


def test_a_model_call_beside_a_graph_is_part_of_the_conversation() -> None:
    app = span(19, "app", {"traceloop.span.kind": "workflow", "traceloop.entity.name": "app"}, end=20)
    polish = span(3, "chat", chat([message("user", "Polish: Yes.")], "Yes, please."), parent=19, start=10)
    sample = only(spans(app, openinference(1, {"messages": [QUESTION, ANSWER]}, parent=19), *models(), polish))
    assert said(sample)[-2:] == [("user", "Polish: Yes."), ("assistant", "Yes, please.")]


def test_the_instructions_of_all_models_count_if_the_answer_of_none_is_in_the_state() -> None:
    asked = [message("system", "Be brief."), message("user", "Umbrella in Bern?")]
    model = span(2, "chat", chat(asked, "yes"), parent=1, start=1)
    sample = only(
        spans(openinference(1, {"messages": [QUESTION, {"type": "ai", "data": {"content": "It rains: yes."}}]}), model)
    )
    assert said(sample) == [("system", "Be brief."), STATED[0], ("assistant", "It rains: yes.")]


def test_an_update_of_a_state_is_no_state() -> None:
    node = openinference(2, {"messages": [returned()]}, parent=1)
    graph = span(1, "graph", {"openinference.span.kind": "CHAIN"}, end=9)
    assert [each.role for each in only(spans(graph, node, *models())).messages] == [
        "system",
        "user",
        "assistant",
        "assistant",
    ]


def test_the_state_of_an_agent_inside_is_not_that_of_the_agent() -> None:
    inner = {**openinference(3, {"messages": [QUESTION, {"type": "ai", "data": {"content": "Inner."}}]}, parent=2)}
    outer = openinference(1, {"messages": [QUESTION, CALLING, returned(), ANSWER]})
    checked(only(spans(outer, tool(2), inner)))


def test_a_state_that_cannot_be_read_is_named_and_the_rest_is_read() -> None:
    broken: dict[str, Any] = {
        "messages": [QUESTION, {"type": "ai", "data": {"content": "", "tool_calls": [{"args": {}}]}}]
    }
    (sample,), (note,) = read(spans(openinference(1, broken), *models()))
    assert sample.output == "Yes."
    assert note.startswith("1 × the state of")
    assert "must have a name" in note


def test_the_agents_of_a_graph_whose_messages_are_in_its_state_are_no_steps() -> None:
    # OpenInference takes a chain for an agent if "agent" is in its name: the node of the graph, and the graph in it.
    named = {"openinference.span.kind": "AGENT"}
    team = [
        openinference(1, {"messages": [QUESTION, CALLING, returned(), ANSWER]}),
        span(2, "weather_agent", named, parent=1, start=1, end=4),
        span(3, "weather_agent", named, parent=2, start=1, end=4),
        *models(parent=3),
        tool(4, parent=3),
    ]
    sample = only(spans(*team))
    assert [message.role for message in sample.messages] == ["system", "user", "assistant", "assistant"]
    assert (sample.input, sample.output) == ("Umbrella in Bern?", "Yes.")
    assert sample.trajectory is not None
    assert [(step.step_type, step.name) for step in sample.trajectory.steps] == [("tool_call", "weather")]


def test_an_agent_of_a_graph_whose_messages_are_not_in_its_state_is_a_step() -> None:
    aside = chat([message("user", "What is a cantonal capital?")], "A town.")
    sample = only(
        spans(
            openinference(1, {"messages": [QUESTION, CALLING, returned(), ANSWER]}),
            span(2, "helper_agent", {"openinference.span.kind": "AGENT"}, parent=1, start=1, end=4),
            span(3, "chat", aside, parent=2, start=1, end=2),
        )
    )
    assert sample.trajectory is not None
    assert [step.step_type for step in sample.trajectory.steps] == ["tool_call", "agent_run"]
    assert "A town." not in [each.content for each in sample.messages]


def test_an_empty_span_that_names_an_agent_of_a_graph_is_no_step() -> None:
    named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "guide"}
    graph = [traceloop(1, {"messages": [QUESTION, CALLING, returned(), ANSWER]}), *models(), tool(4)]
    sample = only(spans(*graph, span(5, "invoke_agent guide", named, parent=1, start=1, end=1)))
    assert sample.trajectory is not None
    assert [step.name for step in sample.trajectory.steps] == ["weather"]
