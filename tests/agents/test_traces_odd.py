"""Traces that are delivered twice, lack ids or values, or have what no instrumentation should write."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from evalstone.agents.formats import known_messages
from evalstone.ledger.base import sample_hash
from tests.agents.test_traces import only, read
from tests.traced import TRACE, chat, log, logs, message, span, spans

AGENT = {"gen_ai.operation.name": "invoke_agent"}


def test_log_records_that_were_delivered_twice_count_once_and_a_note_says_so() -> None:
    asked = log(1, {"content": "Again?"}, {}, name="gen_ai.user.message")
    answer = log(1, {"message": {"content": "Yes."}}, {}, name="gen_ai.choice", time=2)
    batch = logs(asked, asked, answer)
    for call in ([spans(span(1, "chat", {"gen_ai.operation.name": "chat"}))], []):
        (sample,), notes = read(*call, batch, json.loads(json.dumps(batch)))
        (note,) = notes
        assert note.startswith("3 × a log record equal")
        assert note.endswith(f"first in trace '{TRACE}', {asked['eventName']}")
        assert [(each.role, each.content) for each in sample.messages] == [
            ("user", "Again?"),
            ("user", "Again?"),
            ("assistant", "Yes."),
        ]


def test_log_records_one_per_line_that_differ_in_anything_all_count() -> None:
    asked = log(1, {"content": "Again?"}, {}, name="gen_ai.user.message")
    later, known = {**asked, "timeUnixNano": str(int(asked["timeUnixNano"]) + 1)}, {**asked, "flags": 1}
    answer = log(1, {"message": {"content": "Yes."}}, {}, name="gen_ai.choice", time=2)
    sample = only(asked, later, known, answer)
    assert [each.role for each in sample.messages] == ["user", "user", "user", "assistant"]
    (sample,), (note,) = read(asked, asked, answer)
    assert [each.role for each in sample.messages] == ["user", "assistant"]
    assert note.startswith("1 × a log record equal")


def test_the_same_log_record_of_two_services_counts_twice() -> None:
    name = "gen_ai.client.inference.operation.details"
    record = log("", None, chat([message("user", "q")], "a"), name=name)
    record = {key: value for key, value in record.items() if key not in ("traceId", "spanId")}
    batches: list[Any] = []
    for service in ("shop", "desk"):
        resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
        batches.append({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [record]}]}]})
    samples, _ = read(*batches, *batches)
    assert [each.metadata["trace"]["service"] for each in samples] == ["shop", "desk"]


def test_log_records_without_a_span_id_are_not_mixed() -> None:
    asked = [log("", {"content": text}, {}, name="gen_ai.user.message") for text in ("q1", "q2")]
    details = [
        log("", None, chat([message("user", text)], f"a of {text}"), name="gen_ai.client.inference.operation.details")
        for text in ("q3", "q4")
    ]
    samples, notes = read(logs(*asked, *details))
    assert [(each.input, each.output, len(each.messages)) for each in samples] == [
        ("q3", "a of q3", 2),
        ("q4", "a of q4", 2),
    ]
    (note,) = notes
    assert note.startswith("2 × a message")
    assert "without a span" in note


@pytest.mark.parametrize("empty", [{}, {"value": {}}])
def test_an_attribute_without_a_value_is_as_if_it_were_not_there(empty: dict[str, Any]) -> None:
    given = span(1, "chat", chat([message("user", "q")], "a"))
    given["attributes"] += [{"key": key, **empty} for key in ("error.type", "gen_ai.retrieval.documents")]
    sample = only(spans(given))
    assert (sample.input, sample.output, sample.context) == ("q", "a", None)
    assert "error" not in sample.metadata


@pytest.mark.parametrize(
    "odd",
    [
        {"gen_ai.prompt.0.tool_calls": "x", "gen_ai.prompt.0.tool_calls.0.name": "y"},
        {"gen_ai.prompt.0.tool_calls.0.name": "y", "gen_ai.prompt.0.tool_calls": "x"},
        {"openinference.span.kind": "LLM", "llm.input_messages.².message.role": "user"},
        {"openinference.span.kind": "LLM", f"llm.input_messages.{'1' * 5000}.message.role": "user"},
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "f",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "g",
        },
    ],
)
def test_odd_attributes_of_one_span_break_nothing_else(odd: dict[str, Any]) -> None:
    agent = {"gen_ai.operation.name": "invoke_agent"}
    call = span(2, "chat", chat([message("user", "q")], "a"), parent=1)
    for values in (odd, {**odd, **agent}):
        samples, _ = read(spans(span(1, "agent", agent, end=9), call, span(3, "odd", values, parent=1)))
        assert samples == [] or samples[0].input == "q"


@pytest.mark.parametrize("time", [[1e300, 0], ["inf", 0], ["nan", 0], 1e22, "9999999999999999999999"])
def test_a_time_beyond_all_calendars_is_no_time(time: Any) -> None:
    given = {**span(1, "chat", chat([message("user", "q")], "a")), "startTimeUnixNano": time, "endTimeUnixNano": time}
    sample = only(spans(given))
    assert "started" not in sample.metadata
    assert "target" not in sample.metadata


def flat(side: str, *said: dict[str, Any]) -> dict[str, Any]:
    """Messages as OpenInference has them."""
    return {
        f"llm.{side}_messages.{n}.message.{key}": value for n, each in enumerate(said) for key, value in each.items()
    }


def test_a_graph_of_langchain_has_the_messages_of_its_model_calls() -> None:
    """A ReAct agent of LangGraph 1.2 in its second turn, as openinference-instrumentation-langchain 0.1.80 records it:
    each chain has the first message of its input alone, and a node that is named agent is an agent."""
    state = [
        {"type": "human", "data": {"content": "Hello", "type": "human"}},
        {"type": "ai", "data": {"content": "Hi.", "type": "ai"}},
        {"type": "human", "data": {"content": "Weather in Bern?", "type": "human"}},
    ]
    part = {"input.value": json.dumps({"messages": state}), **flat("input", {"role": "user", "content": "Hello"})}
    node = {"openinference.span.kind": "AGENT", **part}
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "Weather in Bern?"},
    ]
    names = {"tool_calls.0.tool_call.id": "c1", "tool_calls.0.tool_call.function.name": "weather"}
    call = {"role": "assistant", **names, "tool_calls.0.tool_call.function.arguments": '{"city": "Bern"}'}
    result = {"role": "tool", "content": "rainy", "tool_call_id": "c1"}
    returned = {"type": "tool", "data": {"content": "rainy", "type": "tool", "tool_call_id": "c1", "status": "success"}}
    model = {"openinference.span.kind": "LLM"}
    first = {**model, **flat("input", *history), **flat("output", call)}
    answer = flat("output", {"role": "assistant", "content": "It rains."})
    tool = {"openinference.span.kind": "TOOL", "tool.name": "weather", "input.value": "Bern"}
    sample = only(
        spans(
            span(1, "LangGraph", {"openinference.span.kind": "CHAIN", **part}, end=9),
            span(2, "agent", node, parent=1, start=1, end=2),
            span(3, "ChatOpenAI", first, parent=2, start=1, end=2),
            span(4, "weather", {**tool, "output.value": json.dumps(returned)}, parent=1, start=3, end=4),
            span(5, "agent", node, parent=1, start=5, end=6),
            span(
                6, "ChatOpenAI", {**model, **flat("input", *history, call, result), **answer}, parent=5, start=5, end=6
            ),
        )
    )
    assert (sample.input, sample.output, sample.instructions) == ("Weather in Bern?", "It rains.", "Be brief.")
    said = ["Be brief.", "Hello", "Hi.", "Weather in Bern?", "", "It rains."]
    assert [each.content for each in sample.messages] == said
    assert sample.trajectory is not None
    (step,) = [each for each in sample.trajectory.steps if each.step_type == "tool_call"]
    done = {"tool_args": {"city": "Bern"}, "tool_result": {"value": "rainy"}, "success": True}
    assert dict(step.data) == done
    assert [(each.name, each.result) for each in sample.messages[4].tool_calls] == [("weather", "rainy")]


@pytest.mark.parametrize(
    "time", ["253402300799999999999", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+14:00", "0"]
)
def test_a_time_that_no_date_has_is_unknown(time: str) -> None:
    made = {**span(1, "chat", chat([message("user", "q")], "a")), "startTimeUnixNano": time}
    assert "started" not in only(spans(made)).metadata


def test_an_answer_that_is_too_deep_for_json_is_left_out() -> None:
    call: Any = {"type": "tool_call", "id": "c", "name": "w", "arguments": json.loads("[" * 700 + "]" * 700)}
    samples, notes = read(
        spans(
            span(1, "chat", chat([message("user", "q"), message("assistant", call)], "a")),
            span(2, "chat", chat([message("user", "other")], "b")),
        )
    )
    assert all(map(sample_hash, samples))
    if sys.version_info < (3, 12):  # later ones read and write JSON that is deeper than what Python calls
        assert [sample.output for sample in samples] == ["b"]
        assert notes[0].startswith("1 × an answer")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["model calls", "tools", "repeated calls"])
def test_the_messages_of_many_spans_are_compared_with_few_others(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    compared = 0

    def counting(*messages: Any) -> bool:
        nonlocal compared
        compared += 1
        return same(*messages)

    same = known_messages._same  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(known_messages, "_same", counting)
    many = range(2, 502)
    if kind == "tools":
        inside = [
            span(number, "w", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "w"}, parent=1)
            for number in many
        ]
    else:
        calls: list[Any] = [{"type": "tool_call", "id": f"c{number}", "name": "w", "arguments": {}} for number in many]
        asked = [[message("user", f"q{number}"), message("assistant", calls[number - 2])] for number in many]
        again = 2 if kind == "repeated calls" else 1
        inside = [
            span(number + 1000 * each, "chat", chat(asked[number - 2], "a"), parent=1, start=number)
            for number in many
            for each in range(again)
        ]
    sample = only(spans(span(1, "agent", chat([message("user", "q")], "a") | AGENT, end=9_000), *inside))
    assert len(sample.messages) > 500
    assert compared < 3000


DETAILS = "gen_ai.client.inference.operation.details"


def answered(answer: str, **more: Any) -> dict[str, Any]:
    return {**log(1, None, chat([message("user", "q")], answer), time=1, name=DETAILS), **more}


def test_log_records_of_a_trace_at_two_places_are_two_and_without_any_id_one() -> None:
    record = answered("a")
    del record["spanId"]
    samples, notes = read(logs(record, record))
    assert ([each.output for each in samples], notes) == (["a", "a"], ())
    del record["traceId"]
    samples, notes = read(logs(record, record))
    assert [each.output for each in samples] == ["a"]
    assert notes[0].startswith("1 × a log record equal")


def test_equal_log_records_may_have_their_entries_in_another_order_and_values_that_json_lacks() -> None:
    record = answered("a", seen=datetime(2026, 1, 1, tzinfo=UTC))
    turned = dict(reversed([*record.items()]))
    (sample,), notes = read(logs(record), logs(turned))
    assert sample.output == "a"
    assert notes[0].startswith("1 × a log record equal")


def test_of_two_spans_with_one_id_that_ended_at_once_the_last_is_read() -> None:
    two = [span(1, "chat", chat([message("user", "q")], answer), end=2) for answer in ("first", "second")]
    (sample,), (note,) = read(spans(*two))
    assert sample.output == "second"
    assert "1 × a span with" in note
    assert "id of another" in note
