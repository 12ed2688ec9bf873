"""Traces of which a part is missing: spans that were not exported, and attributes that were cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone import score
from evalstone.agents import span_tree
from evalstone.agents.formats.cut import is_cut
from evalstone.agents.formats.spans import read_spans
from evalstone.agents.traces import REDACTED
from evalstone.agents.transcripts import read_transcript
from evalstone.errors import DataError
from tests.agents.test_traces import only, read
from tests.traced import TRACE, attributes, chat, log, logs, message, span, spans

MISSING = 99
USER = message("user", "Weather?")
CALL = message("assistant", {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {}})
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "travel"}
MASTRA = {"mastra.span.type": "agent_run", "mastra.agent_run.output": '{"text": "12"}'}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1"}


def agent(id: int = 1, question: str = "Weather?", answer: str = "12", **more: Any) -> dict[str, Any]:
    messages = chat([message("user", question)], answer)
    return span(id, "invoke_agent", {**messages, **AGENT}, **more)


def calls(parent: int) -> list[dict[str, Any]]:
    """A model call, a tool and the answer."""
    return [
        span(2, "chat", chat([USER], CALL), parent=parent, start=1),
        span(3, "execute_tool weather", TOOL, parent=parent, start=3),
        span(4, "chat", chat([USER, CALL], "12"), parent=parent, start=5),
    ]


def test_spans_below_one_that_was_not_exported_belong_to_the_agent_that_ran() -> None:
    whole = only(spans(agent(end=9), *calls(1)))
    (sample,), notes = read(spans(agent(end=9), *calls(MISSING)))
    assert notes == (f"3 × {span_tree.ADOPTED}; first in trace '{TRACE}', chat",)
    assert sample == whole
    called = score("tool_called(tool=weather)", sample)
    assert called.value == 1


def test_log_records_of_a_span_that_was_not_exported_belong_to_the_agent_that_ran() -> None:
    details = log(MISSING, None, chat([USER, CALL], "12"), time=5, name="gen_ai.client.inference.operation.details")
    (sample,), (note,) = read(spans(agent(end=9)), logs(details))
    assert note.startswith(f"1 × {span_tree.ADOPTED}")
    assert [call.name for each in sample.messages for call in each.tool_calls] == ["weather"]


def test_an_orphan_may_begin_and_end_with_its_agent_or_have_no_end() -> None:
    for end in (9, None):
        orphan = span(3, "execute_tool weather", TOOL, parent=MISSING, end=9)
        if end is None:
            del orphan["endTimeUnixNano"]
        (sample,), notes = read(spans(agent(end=9), orphan))
        assert notes[0].startswith(f"1 × {span_tree.ADOPTED}")
        assert [call.name for each in sample.messages for call in each.tool_calls] == ["weather"]


def test_spans_outside_of_the_time_of_an_agent_or_beside_it_are_not_part_of_it() -> None:
    after = span(2, "chat", chat([message("user", "And?")], "Yes."), parent=MISSING, start=20)
    samples, notes = read(spans(agent(end=9), after))
    assert [each.output for each in samples] == ["12", "Yes."]
    assert notes == ()
    beside = span(2, "chat", chat([message("user", "Safe?")], "Yes."), parent=MISSING, start=1)
    samples, notes = read(spans(agent(end=9, parent=MISSING), beside))
    assert [each.output for each in samples] == ["12", "Yes."]
    assert notes == ()


@pytest.mark.parametrize("turned", [False, True])
def test_an_orphan_belongs_to_the_inner_of_two_agents(turned: bool) -> None:
    outer, inner = agent(end=9), agent(5, "Which city?", "Bern", parent=1, start=2, end=4)
    tool = span(3, "execute_tool weather", TOOL, parent=MISSING, start=3, end=3.5)
    (sample,), _ = read(spans(*[outer, inner, tool][:: -1 if turned else 1]))
    assert sample.trajectory is not None
    (step,) = sample.trajectory.steps
    assert [each.name for each in step.children] == ["weather"]


def test_an_orphan_in_the_time_of_several_agents_is_read_apart_and_named() -> None:
    two = [agent(end=9), agent(2, "Time?", "Noon", end=9)]
    samples, notes = read(spans(*two, span(3, "chat", chat([USER], "12"), parent=MISSING, start=1)))
    assert [each.output for each in samples] == ["12", "Noon", "12"]
    assert notes == (f"1 × {span_tree.UNSURE}; first in trace '{TRACE}', chat",)


def test_two_agents_whose_parents_are_missing_stay_two() -> None:
    samples, (note,) = read(spans(agent(parent=98, end=9), agent(2, "Time?", "Noon", parent=MISSING, start=1, end=8)))
    assert [each.output for each in samples] == ["12", "Noon"]
    assert note.startswith(f"1 × {span_tree.UNSURE}")
    sub = agent(2, "Time?", "Noon", parent=MISSING, start=1, end=8)
    (sample,), _ = read(spans(agent(end=9), sub))
    assert sample.output == "12"


def test_an_agent_below_a_missing_span_takes_its_own_orphans_along() -> None:
    sub = agent(2, "Time?", "Noon", parent=MISSING, start=1, end=8)
    tool = span(3, "execute_tool weather", TOOL, parent=98, start=3, end=4)
    (sample,), (note,) = read(spans(agent(end=9), sub, tool))
    assert note.startswith(f"2 × {span_tree.ADOPTED}")
    assert sample.trajectory is not None
    (step,) = sample.trajectory.steps
    assert [each.name for each in step.children] == ["weather"]


def test_an_orphan_that_has_nothing_to_do_with_models_is_not_said() -> None:
    assert only(spans(agent(end=9), span(2, "SELECT", {"db.system": "x"}, parent=MISSING, start=1))).output == "12"


@pytest.mark.parametrize("count", [2, 3])
def test_orphans_in_the_time_of_each_other_are_no_circle(count: int) -> None:
    numbers = range(1, count + 1)
    parts = [span(n, "frame", {"openinference.span.kind": "CHAIN"}, parent=90 + n, end=9) for n in numbers]
    inside = [agent(10 + n, f"q{n}", f"a{n}", parent=n, end=9) for n in numbers]
    samples, _ = read(spans(*parts, *inside))
    assert sorted(str(each.output) for each in samples) == [f"a{n}" for n in numbers]


@pytest.mark.parametrize(
    "text",
    ['{"a": "b', '[{"a": tr', "[", '{"a": 1,', "[1, 2", '{"a', '["\\u12', '["a\\', '{"a": -', '[{"a": [1]}', " [1, "],
)
def test_json_that_goes_on_after_its_end_was_cut(text: str) -> None:
    assert is_cut(text)


def test_json_was_cut_wherever_it_ends_before_its_end() -> None:
    numbers = [-1.5e-07, 12.25, float("nan"), float("-inf"), float("inf")]
    whole = json.dumps([{"role": "user", "n": numbers, "flags": [True, False, None], "text": 'a"\\é'}])
    assert [whole[:end] for end in range(1, len(whole)) if not is_cut(whole[:end])] == []
    assert not is_cut(whole)


@pytest.mark.parametrize("text", ["", "a {", "[INST] hello", "{'a': 1}", "[1] See page 3.", "[]", '{"a": 1}', "{x}"])
def test_other_texts_were_not(text: str) -> None:
    assert not is_cut(text)


@pytest.mark.parametrize(
    ("kind", "given", "answered"),
    [
        ({"openinference.span.kind": "AGENT"}, "input.value", "output.value"),
        ({"traceloop.span.kind": "workflow"}, "traceloop.entity.input", "traceloop.entity.output"),
        ({"mastra.span.type": "workflow_run"}, "mastra.workflow_run.input", "mastra.workflow_run.output"),
    ],
)
def test_a_question_that_was_cut_is_none_and_is_named(kind: dict[str, str], given: str, answered: str) -> None:
    cut = json.dumps({"messages": [{"role": "user", "content": "long " * 300}]})[:1000]
    values = {**kind, given: cut, answered: "Two years."}
    samples, notes = read(spans(span(1, "agent", values)))
    assert samples == []
    assert any(f"span 'agent'.attributes['{given}']: was cut after 1,000 " in note for note in notes)
    assert not any("turn on" in note or "aren't read" in note for note in notes)
    (sample,), notes = read(spans(span(1, "agent", values, end=9), span(2, "chat", chat([USER], "12"), parent=1)))
    assert (sample.input, sample.output) == ("Weather?", "Two years.")
    assert notes == (f"1 × {span_tree.CUT}; first in trace '{TRACE}', span 'agent'.attributes['{given}']",)


def test_a_text_that_only_looks_like_json_is_a_question() -> None:
    values = {"openinference.span.kind": "AGENT", "input.value": '{"a": ', "input.mime_type": "text/plain"}
    assert only(spans(span(1, "agent", values))).input == '{"a": '
    values = {"openinference.span.kind": "AGENT", "input.value": "[1] What is this?"}
    assert only(spans(span(1, "agent", values))).input == "[1] What is this?"


@pytest.mark.parametrize(
    "values",
    [
        {"gen_ai.operation.name": "chat", "gen_ai.input.messages": '[{"role": "user", "par'},
        {"ai.operationId": "ai.generateText", "ai.prompt": '{"messages": [{"ro', "ai.response.text": "a"},
        {"ai.operationId": "ai.generateText.doGenerate", "ai.response.toolCalls": '[{"toolName": "wea'},
        {"gen_ai.operation.name": "chat", "gen_ai.system_instructions": '[{"type": "text", "cont'},
        {"openinference.span.kind": "LLM", "llm.input_messages": '[{"message": {"ro'},
        {"gen_ai.input.messages": json.dumps([USER]), "gen_ai.output.messages": '[{"role": "assi'},
        {"gen_ai.operation.name": "invoke_agent", "pydantic_ai.all_messages": '[{"role": "us'},
        {"llm.request.type": "chat", "gen_ai.completion.0.content": '[{"type": "te'},
        {"gen_ai.operation.name": "invoke_agent", **MASTRA, "mastra.agent_run.input": '[{"role": "us'},
        {"mastra.span.type": "model_generation", "mastra.model_generation.output": '{"text": "In'},
    ],
)
def test_messages_that_were_cut_leave_out_the_answer_with_the_setting_to_raise(values: dict[str, str]) -> None:
    samples, (note,) = read(spans(span(1, "call", values)))
    assert samples == []
    name = next(name for name, value in values.items() if is_cut(value))
    assert f"span 'call'.attributes['{name}']: was cut after {len(values[name])} characters" in note
    assert "_VALUE_LENGTH_LIMIT" in note
    with pytest.raises(DataError, match="was cut after"):
        read_spans(spans(span(1, "call", values)))


HIDDEN = "__REDACTED__"


def test_a_trace_of_redacted_texts_has_no_content() -> None:
    hidden = {"input.value": HIDDEN, "output.value": HIDDEN}
    traced = spans(
        span(1, "LangGraph", {"openinference.span.kind": "CHAIN", **hidden}, end=9),
        span(2, "chat", {"openinference.span.kind": "LLM", "llm.model_name": "m", **hidden}, parent=1),
        span(3, "weather", {"openinference.span.kind": "TOOL", "tool.name": "weather", **hidden}, parent=1),
    )
    samples, (note,) = read(traced)
    assert samples == []
    assert note.startswith("1 × a trace without content")
    with pytest.raises(DataError, match="trace without content"):
        read_transcript(traced)


@pytest.mark.parametrize(("asked", "said"), [(HIDDEN, "Yes."), ("Umbrella?", HIDDEN), (HIDDEN, HIDDEN)])
def test_a_redacted_question_or_answer_counts_as_absent(asked: str, said: str) -> None:
    messages = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": asked,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": said,
    }
    answer = span(2, "chat", {"openinference.span.kind": "LLM", **messages}, parent=1)
    samples, (note,) = read(spans(span(1, "run", {"openinference.span.kind": "AGENT"}, end=9), answer))
    if asked == said:
        assert samples == []
        return
    (sample,) = samples
    assert (sample.input, sample.output) == (None if asked == HIDDEN else asked, None if said == HIDDEN else said)
    assert note.startswith(f"1 × {REDACTED}")


@pytest.mark.parametrize("arguments", [HIDDEN, json.dumps({"city": "Bern"})])
def test_the_redacted_arguments_and_result_of_a_tool_are_unknown(arguments: str) -> None:
    tool = {**TOOL, "gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": HIDDEN}
    tool.pop("gen_ai.tool.call.id")
    sample = only(spans(agent(end=9), span(3, "execute_tool", tool, parent=1, start=1)))
    (call,) = [call for each in sample.messages for call in each.tool_calls]
    assert (call.arguments, call.result) == ({} if arguments == HIDDEN else {"city": "Bern"}, None)


@pytest.mark.parametrize(
    ("event", "name", "cut"),
    [
        ("gen_ai.choice", "message", '{"content": "In Switz'),
        ("gen_ai.choice", "gen_ai.event.content", '{"message": {"content": "I'),
        ("gen_ai.user.message", "content", '[{"text": "In Switz'),
        ("gen_ai.assistant.message", "tool_calls", '[{"id": "c1", "fun'),
    ],
)
def test_messages_of_an_event_that_were_cut_leave_out_the_answer(event: str, name: str, cut: str) -> None:
    events = [{"name": event, "attributes": {name: cut}}]
    samples, (note,) = read(spans(span(1, "chat", {"gen_ai.operation.name": "chat"}, events=events)))
    assert samples == []
    assert f"attributes['{name}']: was cut after {len(cut)} characters" in note


def test_attributes_that_are_not_read_may_be_cut() -> None:
    asked = agent(end=9)
    asked["attributes"] += attributes({"content": '{"a": "b', "tool_calls": '[{"a'})
    logged = [{"name": "logging", "attributes": attributes({"message": '{"level": "inf'})}]
    (sample,), notes = read(spans({**asked, "events": logged}))
    assert (sample.output, notes) == ("12", ())


@pytest.mark.parametrize(
    ("tool", "arguments", "result"),
    [
        ({"gen_ai.operation.name": "execute_tool"}, "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
        ({"gen_ai.operation.name": "execute_tool"}, "tool_arguments", "tool_response"),
        (
            {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "weather"},
            "ai.toolCall.args",
            "ai.toolCall.result",
        ),
        (
            {"spring.ai.kind": "tool_call", "spring.ai.tool.definition.name": "weather"},
            "spring.ai.tool.call.arguments",
            "spring.ai.tool.call.result",
        ),
        ({"traceloop.span.kind": "tool"}, "traceloop.entity.input", "traceloop.entity.output"),
        ({"openinference.span.kind": "TOOL"}, "tool.parameters", "output.value"),
        ({"openinference.span.kind": "TOOL"}, "input.value", "output.value"),
    ],
)
def test_arguments_that_were_cut_are_unknown_and_named(tool: dict[str, str], arguments: str, result: str) -> None:
    cut = {**tool, "gen_ai.tool.name": "weather", arguments: '{"city": "Ber', result: '{"temp": 1'}
    (sample,), (note,) = read(spans(agent(end=9), span(3, "execute_tool", cut, parent=1, start=1)))
    assert note.startswith(f"2 × {span_tree.CUT}")
    assert note.endswith(f" 'execute_tool'.attributes['{arguments}']")
    (call,) = [call for each in sample.messages for call in each.tool_calls]
    assert (call.arguments, call.result) == ({}, None)


@pytest.mark.parametrize(
    ("values", "base"),
    [
        ({"llm.request.type": "chat"}, "gen_ai.completion.0.tool_calls.0"),
        (
            {"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant"},
            "llm.output_messages.0.message.tool_calls.0.tool_call.function",
        ),
    ],
)
def test_arguments_in_a_message_that_were_cut_are_unknown_and_named(values: dict[str, str], base: str) -> None:
    cut = {**values, f"{base}.name": "weather", f"{base}.arguments": '{"city": "Ber'}
    (sample,), notes = read(spans(agent(end=9), span(3, "call", cut, parent=1, start=1)))
    assert notes == (f"1 × {span_tree.CUT}; first in trace '{TRACE}', span 'call'.attributes['{base}.arguments']",)
    (call,) = [call for each in sample.messages for call in each.tool_calls]
    assert (call.name, call.arguments) == ("weather", {})


@pytest.mark.parametrize(
    "values",
    [
        {"openinference.span.kind": "AGENT", "input.value": "Weather?", "output.value": '{"temp": 1'},
        {"ai.operationId": "ai.generateObject", "ai.prompt": '{"prompt": "Weather?"}', "ai.response.object": '{"t'},
        {
            "mastra.span.type": "workflow_run",
            "mastra.workflow_run.input": "Weather?",
            "mastra.workflow_run.output": '{"temp": 1',
        },
    ],
)
def test_an_answer_that_was_cut_is_none_and_is_named(values: dict[str, str]) -> None:
    (sample,), (note,) = read(spans(span(1, "agent", values)))
    assert (sample.input, sample.output) == ("Weather?", None)
    assert note.startswith(f"1 × {span_tree.CUT}")


@pytest.mark.parametrize(
    "values",
    [
        {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": '[{"id": "1", "content": "Bern i'},
        {
            "gen_ai.operation.name": "vector_db_retrieve",
            "traceloop.span.kind": "task",
            "traceloop.entity.output": '{"documents": [{"page_content": "Bern i',
        },
    ],
)
def test_documents_that_were_cut_leave_the_context_absent(values: dict[str, str]) -> None:
    found = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": json.dumps([{"content": "Thun."}])}
    (sample,), notes = read(
        spans(agent(end=9), span(3, "retrieval", values, parent=1), span(4, "retrieval", found, parent=1))
    )
    assert sample.context is None
    assert notes[0].startswith(f"1 × {span_tree.CUT}")


def test_an_agent_whose_model_calls_were_not_exported_has_no_answer_instead_of_a_blank_one() -> None:
    asked = {"gen_ai.input.messages": json.dumps([USER]), **AGENT}
    tool = span(3, "execute_tool weather", TOOL, parent=1, start=3)
    (sample,), notes = read(spans(span(1, "invoke_agent", asked, end=9), tool))
    assert (sample.input, sample.output) == ("Weather?", None)
    assert [call.name for each in sample.messages for call in each.tool_calls] == ["weather"]
    assert len(notes) == 1
    assert "in no span" in notes[0]
    called = span(2, "chat", chat([USER], CALL), parent=1, start=1)
    (sample,), notes = read(spans(span(1, "invoke_agent", asked, end=9), called, tool))
    assert (sample.output, notes) == ("", ())
