"""Traces as samples: what is evaluated, what belongs to it, and what is said of the rest."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone.agents import span_tree
from evalstone.agents.formats import spans as spans_module
from evalstone.agents.formats.records import records_in
from evalstone.agents.formats.spans import read_spans
from evalstone.agents.notes import Notes
from evalstone.agents.traces import samples_of
from evalstone.datasets import load
from evalstone.types import Sample
from tests.traced import TRACE, chat, log, logs, message, number, span, spans

FOLDER = Path(__file__).parent / "traces"
CALL = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Bern"}}
RESULT = {"type": "tool_call_response", "id": "c1", "response": "rainy, 14 degrees"}

# What the recorded agents were asked, answered and told.
RECORDED = (
    "Do I need an umbrella in Bern tomorrow?",
    "No, it will be sunny in Bern.",
    "Be brief and cite the handbook.",
)
WEATHER = "clear all afternoon, 21 degrees"


def read(*requests: Any) -> tuple[list[Sample], tuple[str, ...]]:
    """The samples of one trace, and the notes."""
    notes = Notes()
    return samples_of([record for each in requests for record in records_in(each)], notes), notes.lines()


def only(*requests: Any) -> Sample:
    samples, notes = read(*requests)
    assert notes == ()
    (sample,) = samples
    return sample


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.jsonl")))
def test_what_real_instrumentations_record_is_one_sample(name: str) -> None:
    dataset = load(FOLDER / f"{name}.jsonl")
    assert dataset.notes == ()
    (sample,) = dataset.samples
    assert (sample.input, sample.output, sample.instructions) == RECORDED
    trace = sample.metadata["trace"]
    assert len(trace["trace_id"]) == 32
    assert sample.id == f"{trace['trace_id']}-{trace['span_id']}"
    assert trace["service"] == "travel-service"
    retrieved = ("Handbook, page 3: carry an umbrella in April.", "Handbook, page 9: trains to Thun leave hourly.")
    assert sample.context == (retrieved if name.startswith(("openinference", "traceloop_lang")) else None)
    assert sample.trajectory is not None
    tools = [step for step in sample.trajectory.walk() if step.step_type == "tool_call"]
    searches = [step for step in sample.trajectory.walk() if step.step_type == "workflow_step"]
    assert len(searches) == (0 if sample.context is None else 1)
    calls = [call for each in sample.messages for call in each.tool_calls]
    if name != "openinference_langchain":
        (call,), (step,) = calls, tools
        assert (call.name, call.arguments, call.result) == (
            "weather",
            {"city": "Bern, Switzerland"},
            WEATHER,
        )
        assert dict(step.data) == {
            "tool_args": {"city": "Bern, Switzerland"},
            "tool_result": {"value": WEATHER},
            "success": True,
        }
        assert step.seconds is not None
        assert sample.metadata.get("model") == (None if name == "traceloop_langgraph" else "gpt-5.1")
        assert sample.metadata["target"]["usage"]["requests"] == 2
        assert [each.role for each in sample.messages] == ["system", "user", "assistant", "assistant"]
    chains = {"openinference_langchain": "RunnableSequence", "openinference_llama_index": "FunctionAgent.run"}
    chains |= {"traceloop": "service", "traceloop_flat": "service"}
    assert trace["entity"] == chains.get(name, "travel")


def test_a_lone_model_call_is_a_sample() -> None:
    given = [message("system", "Be brief."), message("user", "Where is Bern?")]
    more = {"gen_ai.response.id": "r1", "gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 2}
    sample = only(spans(span(1, "chat gpt-5.1", chat(given, "In Switzerland.", **more), end=2.5)))
    assert (sample.input, sample.output, sample.instructions) == ("Where is Bern?", "In Switzerland.", "Be brief.")
    assert sample.context is None
    assert sample.trajectory is None
    assert sample.metadata == {
        "trace": {
            "trace_id": TRACE,
            "span_id": number(1),
            "response_id": "r1",
            "entity": "chat gpt-5.1",
            "service": "shop",
        },
        "target": {"seconds": 2.5, "usage": {"input": 5, "output": 2, "cached": 0, "requests": 1}},
        "started": "2026-11-18T11:06:40+00:00",
        "model": "gpt-5.1",
    }


def conversation() -> list[dict[str, Any]]:
    """A tool call and its answer as siblings below a span of a web server."""
    user, asked, answered = message("user", "Weather?"), message("assistant", CALL), message("tool", RESULT)
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1"}
    return [
        span(1, "POST /ask", {"http.request.method": "POST"}, end=9),
        span(2, "chat", chat([user], asked), parent=1, start=1),
        span(3, "execute_tool weather", tool, parent=1, start=2),
        span(4, "chat", chat([user, asked, answered], "It rains."), parent=1, start=3),
    ]


def test_model_calls_that_go_on_from_each_other_are_one_sample() -> None:
    sample = only(spans(*conversation()))
    assert (sample.input, sample.output) == ("Weather?", "It rains.")
    assert sample.metadata["trace"]["span_id"] == number(4)
    assert sample.metadata["target"]["seconds"] == pytest.approx(3)
    assert [each.role for each in sample.messages] == ["user", "assistant", "assistant"]
    assert sample.messages[1].tool_calls[0].result == "rainy, 14 degrees"
    assert sample.trajectory is not None
    assert [step.name for step in sample.trajectory.steps] == ["weather"]


def test_independent_model_calls_of_one_request_are_samples_in_a_group() -> None:
    calls = [span(n, f"chat {n}", chat([message("user", f"q{n}")], f"a{n}"), parent=1, start=n) for n in (2, 3)]
    samples, notes = read(spans(span(1, "POST /", {}, end=9), *calls))
    assert [(sample.input, sample.output, sample.group) for sample in samples] == [
        ("q2", "a2", TRACE),
        ("q3", "a3", TRACE),
    ]
    assert notes == ()


def test_a_retrieval_beside_model_calls_belongs_to_the_next_one() -> None:
    found = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": '[{"id": "d", "content": "Passage."}]'}
    samples, _ = read(
        spans(
            span(1, "POST /", {}, end=9),
            span(2, "chat", chat([message("user", "rewrite")], "rewritten"), parent=1, start=0, end=1),
            span(3, "retrieval", found, parent=1, start=2, end=4),
            span(4, "chat", chat([message("user", "answer")], "answered"), parent=1, start=4, end=5),
        )
    )
    assert [sample.context for sample in samples] == [None, ("Passage.",)]
    late = span(5, "retrieval", found, parent=1, start=7, end=8)
    calls = [span(n, "chat", chat([message("user", f"q{n}")], "a"), start=n, end=n + 0.5) for n in (2, 3)]
    samples, notes = read(spans(*calls, late))
    assert [sample.context for sample in samples] == [None, None]
    assert "to no sample" in notes[0]


def agent(name: str, **more: Any) -> dict[str, Any]:
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **more}


def test_an_agent_inside_another_is_a_step_of_it() -> None:
    inner = chat([message("user", "inner question")], "inner answer")
    outer = chat([message("user", "outer question")], "outer answer")
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "delegate"}
    sample = only(
        spans(
            span(1, "invoke_agent boss", agent("boss"), end=9),
            span(2, "execute_tool delegate", tool, parent=1, start=1, end=5),
            span(3, "invoke_agent helper", agent("helper", **{"gen_ai.agent.id": "h"}), parent=2, start=2, end=4),
            span(4, "chat", inner, parent=3, start=2, end=3),
            span(5, "chat", outer, parent=1, start=6, end=7),
        )
    )
    assert (sample.input, sample.output) == ("outer question", "outer answer")
    assert all("inner" not in each.content for each in sample.messages)
    assert sample.trajectory is not None
    walked = [(step.step_type, step.name, step.seconds) for step in sample.trajectory.walk()]
    assert walked == [("tool_call", "delegate", 4.0), ("agent_run", "helper", 2.0)]
    assert sample.trajectory.steps[0].children[0].data == {"agent_id": "h"}
    assert sample.trajectory.total_seconds == 9.0


def test_a_frame_around_agents_without_content_gives_way_to_them() -> None:
    calls = [span(n + 10, "chat", chat([message("user", f"q{n}")], f"a{n}"), parent=n, start=n) for n in (2, 3)]
    agents = [span(n, f"invoke_agent a{n}", agent(f"a{n}"), parent=1, start=n) for n in (2, 3)]
    samples, _ = read(spans(span(1, "invoke_workflow", {"gen_ai.operation.name": "invoke_workflow"}), *agents, *calls))
    assert [(s.metadata["trace"]["entity"], s.input, s.group) for s in samples] == [
        ("a2", "q2", TRACE),
        ("a3", "q3", TRACE),
    ]


@pytest.mark.parametrize(
    ("documents", "context"),
    [
        ([], ()),
        ([{"content": "b"}, {"content": "a"}, {"content": "b"}], ("b", "a")),
        ([{"id": "doc-1", "score": 0.9}, {"id": "doc-2"}, {}], None),
        ([{"content": "a"}, {"id": "doc-2"}], None),
    ],
)
def test_context_is_absent_without_texts_and_empty_when_nothing_was_found(
    documents: list[Any], context: tuple[str, ...] | None
) -> None:
    found = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": json.dumps(documents)}
    samples, notes = read(
        spans(
            span(1, "invoke_agent", agent("a"), end=9),
            span(2, "retrieval handbook", found, parent=1, start=1, end=3),
            span(3, "chat", chat([message("user", "q")], "a"), parent=1, start=4),
        )
    )
    (sample,) = samples
    assert sample.context == context
    assert bool(notes) == any("content" not in each for each in documents)
    assert sample.trajectory is not None
    (step,) = sample.trajectory.steps
    assert (step.step_type, step.name, step.seconds) == ("workflow_step", "retrieval handbook", 2.0)


def test_a_retrieval_of_openinference_that_says_it_found_nothing_is_empty() -> None:
    nothing = {"openinference.span.kind": "RETRIEVER", "input.value": "q", "output.value": '{"documents": []}'}
    unknown = {"openinference.span.kind": "RETRIEVER", "input.value": "q"}
    root = {"openinference.span.kind": "CHAIN", "input.value": "q", "output.value": "a"}
    for found, context in ((nothing, ()), (unknown, None)):
        (sample,), notes = read(spans(span(1, "root", root), span(2, "retriever", found, parent=1)))
        assert (sample.context, len(notes)) == (context, int(context is None))


def test_a_failed_tool_is_a_failed_step_and_a_failed_agent_has_its_error() -> None:
    failed = {"code": 2, "message": "no such city"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}
    sample = only(
        spans(
            span(1, "invoke_agent", agent("a"), status=failed),
            span(2, "chat", chat([message("user", "q")], message("assistant", CALL)), parent=1),
            span(3, "execute_tool weather", {**tool, "gen_ai.tool.call.id": "c1"}, parent=1, start=1, status=failed),
        )
    )
    assert sample.output is None
    assert sample.metadata["error"] == "no such city"
    assert sample.trajectory is not None
    (step,) = sample.trajectory.steps
    assert (step.data["success"], step.metadata["error"]) == (False, "no such city")


def test_calls_without_a_span_keep_their_place_among_the_steps() -> None:
    ids = [("c1", "first"), ("c2", "hosted"), ("c3", "last")]
    parts: list[Any] = [{"type": "tool_call", "id": id, "name": name, "arguments": {}} for id, name in ids]
    tools = [
        span(n, "tool", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": id},
             parent=1, start=n)
        for n, (id, name) in ((3, ids[0]), (4, ids[2]))
    ]  # fmt: skip
    model = span(2, "chat", chat([message("user", "q")], message("assistant", *parts)), parent=1)
    sample = only(spans(span(1, "invoke_agent", agent("a")), model, *tools))
    assert sample.trajectory is not None
    assert [step.name for step in sample.trajectory.steps] == ["first", "hosted", "last"]
    assert [step.seconds is None for step in sample.trajectory.steps] == [False, True, False]


def test_the_tokens_of_nested_model_spans_count_once() -> None:
    tokens = {"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 3, "operation.cost": 0.5}
    call = chat([message("user", "q")], "a", **tokens)
    total = agent("a", **{**tokens, "gen_ai.usage.input_tokens": 99})
    sample = only(
        spans(span(1, "invoke_agent", total), span(2, "chat", call, parent=1), span(3, "chat", call, parent=2))
    )
    assert sample.metadata["target"] == {
        "seconds": 1.0,
        "usage": {"input": 7, "output": 3, "cached": 0, "requests": 1},
        "cost": 0.5,
    }


def test_what_model_calls_cost_is_added_up() -> None:
    first, then = [message("user", "q")], [message("user", "q"), message("assistant", "a"), message("user", "r")]
    calls = (chat(first, "a", **{"operation.cost": 0.5}), chat(then, "b", **{"operation.cost": 0.25}))
    used = {"gen_ai.usage.input_tokens": 7}
    model = [span(n, "chat", {**call, **used}, parent=1, start=n) for n, call in enumerate(calls, start=2)]
    sample = only(spans(span(1, "invoke_agent", agent("a"), end=9), *model))
    assert sample.metadata["target"]["cost"] == 0.75


@pytest.mark.parametrize(
    ("outer", "inner"),
    [("operation.cost", "gen_ai.usage.input_tokens"), ("gen_ai.usage.input_tokens", "operation.cost")],
)
def test_tokens_and_costs_may_be_reported_by_different_spans_of_one_call(outer: str, inner: str) -> None:
    call = chat([message("user", "q")], "a")
    sample = only(spans(span(1, "gateway", {**call, outer: 3}), span(2, "chat", {**call, inner: 3}, parent=1)))
    target = sample.metadata["target"]
    assert (target["usage"]["input"], target["cost"]) == (3, 3.0)


def test_a_call_that_reports_its_cost_and_no_tokens_counts_beside_one_that_reports_tokens() -> None:
    first, then = [message("user", "q")], [message("user", "q"), message("assistant", "a"), message("user", "r")]
    model = [
        span(2, "chat", chat(first, "a", **{"operation.cost": 0.5}), parent=1, start=2),
        span(3, "chat", chat(then, "b", **{"gen_ai.usage.input_tokens": 7, "operation.cost": 0.25}), parent=1, start=3),
    ]
    assert only(spans(span(1, "invoke_agent", agent("a"), end=9), *model)).metadata["target"]["cost"] == 0.75


def test_a_cost_that_only_an_agent_reports_counts_though_its_calls_report_tokens() -> None:
    call = chat([message("user", "q")], "a", **{"gen_ai.usage.input_tokens": 7})
    sample = only(
        spans(span(1, "invoke_agent", agent("a", **{"operation.cost": 0.5})), span(2, "chat", call, parent=1))
    )
    assert (sample.metadata["target"]["usage"]["input"], sample.metadata["target"]["cost"]) == (7, 0.5)


def test_costs_and_tokens_of_agents_that_hand_over_to_each_other_are_added_up() -> None:
    question, handover = message("user", "q"), message("assistant", {**CALL, "name": "transfer"})
    done = message("tool", {**RESULT, "response": "done"})
    used = {"gen_ai.usage.input_tokens": 7, "operation.cost": 0.5}
    agents = [
        span(1, "invoke_agent", {**chat([question], handover), **agent("a", **used)}, start=1),
        span(2, "invoke_agent", {**chat([question, handover, done], "b"), **agent("b", **used)}, start=3),
    ]
    sample = only(spans(*agents))
    assert (sample.metadata["target"]["usage"]["input"], sample.metadata["target"]["cost"]) == (14, 1.0)


def test_the_cost_in_the_logs_of_a_call_whose_span_is_missing_counts() -> None:
    values = chat([message("user", "q")], "a", **{"operation.cost": 0.5, "gen_ai.usage.input_tokens": 7})
    sample = only(logs(log(1, "gen_ai.client.inference.operation.details", values)))
    assert (sample.metadata["target"]["usage"]["input"], sample.metadata["target"]["cost"]) == (7, 0.5)


def test_a_free_call_costs_nothing_and_one_that_reports_no_cost_has_none() -> None:
    free, silent = chat([message("user", "q")], "a", **{"operation.cost": 0}), chat([message("user", "q")], "a")
    assert only(spans(span(1, "chat", free))).metadata["target"]["cost"] == 0.0
    assert "cost" not in only(spans(span(1, "chat", silent))).metadata["target"]


def test_the_span_of_a_tool_is_read_once_for_messages_and_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    read_of = list[str]()
    of = spans_module.tool_run

    def counting(attributes: Any, error: str | None) -> Any:
        read_of.append(attributes["gen_ai.tool.name"])
        return of(attributes, error)

    for module in (spans_module, span_tree):
        monkeypatch.setattr(module, "tool_run", counting)
    tools = [span(n, "tool", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool {n}"}, parent=1)
             for n in range(3, 6)]  # fmt: skip
    model = span(2, "chat", chat([message("user", "q")], "a"), parent=1)
    assert only(spans(span(1, "invoke_agent", agent("a")), model, *tools)).trajectory is not None
    assert sorted(read_of) == [f"tool {n}" for n in range(3, 6)]


def test_the_tokens_that_an_agent_alone_knows_are_those_of_a_request() -> None:
    tokens = {"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 3}
    values = {**chat([message("user", "q")], "a", **tokens), "gen_ai.operation.name": "invoke_agent"}
    assert only(spans(span(1, "invoke_agent", values))).metadata["target"]["usage"]["requests"] == 1


def test_a_span_that_ends_before_it_began_took_no_time() -> None:
    sample = only(spans(span(1, "chat", chat([message("user", "q")], "a"), start=5, end=3)))
    assert sample.metadata["target"] == {"seconds": 0.0}


@pytest.mark.parametrize(("given", "known"), [("Thun", {"city": "Thun"}), ("in Thun", {"raw": "in Thun"})])
def test_a_tool_has_the_arguments_of_a_call_only_if_it_is_surely_that_one(given: str, known: dict[str, str]) -> None:
    calls: list[dict[str, Any]] = [
        {"type": "tool_call", "id": id, "name": "weather", "arguments": {"city": city}}
        for id, city in (("c1", "Bern"), ("c2", "Thun"))
    ]
    model = span(2, "chat", chat([message("user", "q")], message("assistant", *calls)), parent=1)
    values = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}
    ran = span(3, "execute_tool", {**values, "gen_ai.tool.call.arguments": given}, parent=1, start=2)
    sample = only(spans(span(1, "invoke_agent", agent("a"), end=9), model, ran))
    assert sample.trajectory is not None
    (step,) = (each for each in sample.trajectory.steps if each.seconds is not None)
    assert step.data["tool_args"] == known


def test_a_conversation_is_a_group() -> None:
    for key in ("gen_ai.conversation.id", "session.id"):
        call = chat([message("user", "q")], "a", **{key: "talk 7"})
        assert only(spans(span(1, "chat", call))).group == "talk 7"


def test_what_is_not_understood_is_said() -> None:
    odd = chat([message("user", {"beam": 1})], "a")
    samples, notes = read(spans(span(1, "chat", odd), span(2, "chat", chat([message("user", "q")], "a"))))
    assert [sample.input for sample in samples] == ["q"]
    (note,) = notes
    assert note.startswith("1 × an answer")
    assert TRACE in note
    assert "no type" in note
    assert "it has beam" in note


def test_a_trace_without_content_says_what_to_turn_on() -> None:
    empty = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    samples, (note,) = read(spans(span(1, "invoke_agent", agent("a")), span(2, "chat", empty, parent=1)))
    assert samples == []
    assert "trace without content;" in note
    _, (note,) = read(spans(span(1, "POST /", {})))
    assert "without a span" in note
    samples, (note,) = read(spans(span(1, "chat", chat([message("user", "q")], "a")), span(2, "chat", empty)))
    assert len(samples) == 1
    assert "call without content" in note


def everything() -> list[dict[str, Any]]:
    return [
        *conversation(),
        span(5, "chat", chat([message("user", "another")], "one"), parent=1, start=6),
        span(6, "invoke_agent", agent("a"), parent=1, start=7),
        span(7, "chat", chat([message("user", "of the agent")], "yes"), parent=6, start=7),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_in_which_records_come_does_not_matter(seed: int) -> None:
    shuffled = everything()
    random.Random(seed).shuffle(shuffled)
    assert read(spans(*shuffled)) == read(spans(*everything()))
    twice = [*shuffled, *shuffled[::-1]]
    assert read(spans(*twice)) == read(spans(*everything()))


@pytest.mark.slow
def test_spans_in_a_circle_and_deep_ones_are_read() -> None:
    circle = [span(n, "chain", agent("a"), parent=n % 3 + 1) for n in (1, 2, 3)]
    samples, _ = read(spans(*circle, span(4, "chat", chat([message("user", "q")], "a"), parent=2)))
    assert [sample.output for sample in samples] == ["a"]
    own = span(1, "chat", chat([message("user", "q")], "a"), parent=1)
    assert only(spans(own)).output == "a"
    deep = [span(n, "step", {}, parent=n - 1) for n in range(1, 20_000)]
    assert only(spans(*deep, span(20_000, "chat", chat([message("user", "q")], "a"), parent=19_999))).output == "a"
    nested = [span(n, "agent", agent("a"), parent=n - 1) for n in range(1, 3000)]
    samples, notes = read(spans(*nested, span(3000, "chat", chat([message("user", "q")], "a"), parent=1)))
    assert samples == []
    assert "nested too deeply" in notes[0]


def test_two_spans_with_one_id_are_said() -> None:
    two = [span(1, "chat", chat([message("user", "q")], f"ended at {end}"), end=end) for end in (1, 2)]
    for order in (two, two[::-1]):
        samples, (note,) = read(spans(*order))
        assert [sample.output for sample in samples] == ["ended at 2"]
        assert "id of another" in note


def test_spans_without_times_are_read_in_the_order_in_which_they_come() -> None:
    made = [span(1, "invoke_agent", agent("a")), *({**each, "parentSpanId": number(1)} for each in conversation()[1:])]
    for each in made:
        del each["startTimeUnixNano"], each["endTimeUnixNano"]
    sample = only(spans(*made))
    assert [each.content for each in sample.messages] == ["Weather?", "", "It rains."]
    assert "started" not in sample.metadata
    assert "target" not in sample.metadata


def test_of_two_calls_with_one_name_each_has_its_step() -> None:
    calls = [{"type": "tool_call", "name": "weather", "arguments": {"city": city}} for city in ("Bern", "Thun")]
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}
    model = span(2, "chat", chat([message("user", "q")], message("assistant", *calls)), parent=1)
    sample = only(spans(span(1, "invoke_agent", agent("a")), model, span(3, "tool", tool, parent=1, start=1)))
    assert sample.trajectory is not None
    assert [(step.name, step.seconds) for step in sample.trajectory.steps] == [
        ("weather", 1.0),
        ("weather", None),
    ]


def test_the_question_of_an_agent_is_its_input_and_that_of_a_model_call_is_in_its_messages() -> None:
    said = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "context and question",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "a",
        "input.value": "question",
    }
    for kind, question in (("LLM", "context and question"), ("AGENT", "question"), ("CHAIN", "question")):
        assert only(spans(span(1, "x", {"openinference.span.kind": kind, **said}))).input == question


def test_a_call_that_failed_before_its_answer_does_not_double_the_question() -> None:
    model = {"gen_ai.operation.name": "chat"}
    user = [log(n, {"content": "Weather?"}, {}, name="gen_ai.user.message", time=n) for n in (2, 3)]
    choice = log(3, {"message": {"content": "Sun."}}, {}, name="gen_ai.choice", time=4)
    calls = [span(n, "chat", model, parent=1, start=n) for n in (2, 3)]
    sample = only(spans(span(1, "invoke_agent", agent("a"), end=9), *calls), logs(*user, choice))
    assert [each.content for each in sample.messages] == ["Weather?", "Sun."]


def test_the_tokens_of_an_event_count_only_without_its_span() -> None:
    details = chat([message("user", "q")], "a", **{"gen_ai.usage.input_tokens": 5})
    event = log(1, None, details, name="gen_ai.client.inference.operation.details")
    for requests in ([logs(event)], [logs(event), spans(span(1, "chat", details))]):
        assert only(*requests).metadata["target"]["usage"]["input"] == 5


def test_ids_of_zeros_and_empty_objects_of_otlp_are_none() -> None:
    (record,) = records_in({**span(1, "x", {"empty": {}}), "parentSpanId": "0" * 16})
    assert (record.is_root, record.attributes) == (True, {"empty": {}})


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["chat", "invoke_agent", "[]", "{"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
KEYS = (
    *("gen_ai.operation.name", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"),
    *("gen_ai.retrieval.documents", "openinference.span.kind", "input.value", "output.value", "traceloop.span.kind"),
    *("traceloop.entity.input", "traceloop.entity.output", "ai.operationId", "ai.prompt", "ai.response.toolCalls"),
    *("gen_ai.prompt", "gen_ai.completion", "gen_ai.prompt.0.content", "gen_ai.prompt.0.tool_calls.0.name"),
    *("db.vector.query.response.documents", "spring.ai.kind", "gen_ai.tool.name", "gen_ai.usage.input_tokens"),
    *("llm.input_messages.0.message.role", "session.id", "error.type", "final_result", "body", "gen_ai.response.id"),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6), min_size=1, max_size=4), JSON, JSON)
def test_no_value_of_any_attribute_breaks_the_reading(values: list[dict[str, Any]], times: Any, id: Any) -> None:
    made = [
        {"traceId": TRACE, "spanId": f"{n:016x}", "parentSpanId": f"{n - 1:016x}", "name": "x", "attributes": each}
        for n, each in enumerate(values, start=1)
    ]
    made[-1] |= {"startTimeUnixNano": times, "spanId": id, "status": times, "events": times}
    samples, notes = read(made)
    assert samples or notes
    for sample in samples:
        assert sample.content_hash


@pytest.mark.parametrize("turned", [False, True])
def test_the_message_of_a_tool_in_the_logs_is_the_result_of_its_call(turned: bool) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    said = [
        log(1, {"content": "q"}, {}, name="gen_ai.user.message", time=1),
        log(1, {"content": "", "tool_calls": [call]}, {}, name="gen_ai.assistant.message", time=2),
        log(1, {"id": "c1", "content": "rainy"}, {}, name="gen_ai.tool.message", time=3),
        log(1, {"message": {"content": "Take one."}}, {}, name="gen_ai.choice", time=4),
    ]
    model = span(1, "chat", {"gen_ai.operation.name": "chat"}, end=9)
    sample = only(spans(model), logs(*(said[::-1] if turned else said)))
    assert [each.result for message in sample.messages for each in message.tool_calls] == ["rainy"]
    assert sample.output == "Take one."


def test_cached_tokens_of_openinference_count() -> None:
    values: dict[str, Any] = {"openinference.span.kind": "LLM"}
    for place, role, text in (("input", "user", "q"), ("output", "assistant", "a")):
        values[f"llm.{place}_messages.0.message.role"] = role
        values[f"llm.{place}_messages.0.message.content"] = text
    values |= {f"llm.token_count.{name}": count for name, count in (("prompt", 7), ("completion", 3))}
    sample = only(spans(span(1, "call", {**values, "llm.token_count.prompt_details.cache_read": 5})))
    usage = sample.metadata["target"]["usage"]
    assert usage == {"input": 7, "output": 3, "cached": 5, "requests": 1}


@pytest.mark.parametrize("operation", ["invoke_agent", "invoke_workflow"])
def test_the_tokens_of_an_agent_or_workflow_are_used_only_if_its_calls_report_none(operation: str) -> None:
    outer = {"gen_ai.operation.name": operation, "gen_ai.agent.name": "a", "gen_ai.usage.input_tokens": 9}
    call = chat([message("user", "q")], "a")
    counted = {**call, "gen_ai.usage.input_tokens": 7}
    for inner, tokens in ((call, 9), (counted, 7)):
        sample = only(spans(span(1, "run", outer), span(2, "chat", inner, parent=1)))
        assert sample.metadata["target"]["usage"]["input"] == tokens


def test_a_transcript_has_the_costs_of_its_calls_together_and_no_tokens_of_embeddings() -> None:
    first, then = [message("user", "q")], [message("user", "q"), message("assistant", "a"), message("user", "r")]
    used = {"gen_ai.usage.input_tokens": 7, "operation.cost": 0.5}
    reading = read_spans(
        spans(
            span(1, "chat", chat(first, "a", **used)),
            span(2, "chat", chat(then, "b", **used), start=2),
            span(3, "embeddings", {"gen_ai.operation.name": "embeddings", "gen_ai.usage.input_tokens": 99}, start=3),
        )
    )
    assert reading.cost == 1.0
    assert reading.usage is not None
    assert (reading.usage.input, reading.usage.requests) == (14, 2)


def test_a_transcript_is_in_the_order_of_time_and_parts_of_messages_come_last() -> None:
    first, then = [message("user", "q")], [message("user", "q"), message("assistant", "a"), message("user", "r")]
    later = span(1, "chat", chat(then, "b"), start=2)
    earlier = span(2, "chat", chat([message("system", "s"), *first], "a"), start=1)
    chain = {"openinference.span.kind": "CHAIN", "llm.input_messages.0.message.role": "user"}
    chain |= {"llm.input_messages.0.message.content": "only a part"}
    for part in ([], [span(3, "chain", chain)]):
        reading = read_spans(spans(*part, later, earlier))
        assert [each.content for each in reading.conversation.messages] == ["s", "q", "a", "r", "b"]


def test_steps_are_in_the_order_of_time_whatever_that_of_their_spans() -> None:
    def tool(number: int) -> dict[str, Any]:
        values = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool {number}"}
        return span(number, "tool", values, parent=6, start=number)

    model, task = span(2, "chat", chat([message("user", "q")], "a"), parent=1, start=1), span(6, "task", {}, parent=1)
    for order in ((3, 4, 5), (5, 3, 4)):
        sample = only(spans(span(1, "invoke_agent", agent("a"), end=9), *map(tool, order), model, task))
        assert sample.trajectory is not None
        assert [step.name for step in sample.trajectory.steps] == ["tool 3", "tool 4", "tool 5"]


def test_more_than_ten_documents_keep_their_order() -> None:
    found: dict[str, Any] = {"openinference.span.kind": "RETRIEVER"}
    found |= {f"retrieval.documents.{n}.document.content": f"passage {n}" for n in range(12)}
    model = span(2, "chat", chat([message("user", "q")], "a"), parent=1, start=2)
    sample = only(spans(span(1, "invoke_agent", agent("a"), end=9), span(3, "search", found, parent=1, start=1), model))
    assert sample.context == tuple(f"passage {n}" for n in range(12))


def test_attributes_that_contradict_each_other_break_nothing() -> None:
    odd = {"llm.input_messages": "text", "llm.input_messages.0.message.role": "user", "llm": 1, "llm.token_count": 5}
    sample = only(spans(span(1, "chat", {**chat([message("user", "q")], "a"), **odd})))
    assert (sample.input, sample.output) == ("q", "a")
