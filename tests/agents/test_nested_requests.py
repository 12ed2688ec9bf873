"""Agents and model calls that a tool asked, in traces that don't say so: they are part of the tool call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from evalstone import Sample, score
from evalstone.agents.transcripts import read_transcript
from evalstone.types import TrajectoryExpectation
from tests.agents.test_traces import only, read
from tests.traced import chat, message, span, spans

USER = message("user", "Ask the expert.")
ASKED: dict[str, Any] = {"type": "tool_call", "id": "c1", "name": "expert", "arguments": {"question": "Bern?"}}
TOLD = {"type": "tool_call_response", "id": "c1", "response": "Rain in Bern."}
INNER = [message("system", "Know it."), message("user", "Bern?")]
CALL: dict[str, Any] = {"type": "tool_call", "id": "i1", "name": "weather", "arguments": {"city": "Bern"}}
FOUND = {"type": "tool_call_response", "id": "i1", "response": "rain"}
TOKENS = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5}
MISSING = 99


def agent(id: int, name: str, parent: int = 0, **more: Any) -> dict[str, Any]:
    return span(id, name, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}, parent=parent, **more)


def chain(id: int, parent: int, **more: Any) -> dict[str, Any]:
    return span(id, "graph", {"openinference.span.kind": "CHAIN"}, parent=parent, **more)


def tool(id: int, parent: int, call: dict[str, Any], result: str | None, **more: Any) -> dict[str, Any]:
    values = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call["name"]}
    if result is not None:
        values["gen_ai.tool.call.arguments"] = json.dumps(call["arguments"])
        values["gen_ai.tool.call.result"] = result
    return span(id, f"execute_tool {call['name']}", values, parent=parent, **more)


def caller(parent: int, answer: str = "Rain, it says.") -> list[dict[str, Any]]:
    """The model calls of an agent that asks an expert from second 2 to 8."""
    system = message("system", "Delegate.")
    then = [system, USER, message("assistant", ASKED), message("tool", TOLD)]
    return [
        span(2, "chat", chat([system, USER], message("assistant", ASKED), **TOKENS), parent=parent, start=1, end=2),
        span(3, "chat", chat(then, answer, **TOKENS), parent=parent, start=8, end=9),
    ]


def expert(parent: int, question: str = "Bern?", answer: str = "Rain in Bern.") -> list[dict[str, Any]]:
    """The model calls of an expert, with a tool call."""
    given = [INNER[0], message("user", question)]
    then = [*given, message("assistant", CALL), message("tool", FOUND)]
    return [
        span(12, "chat", chat(given, message("assistant", CALL), **TOKENS), parent=parent, start=3.5, end=4),
        span(13, "chat", chat(then, answer, **TOKENS), parent=parent, start=5, end=6),
    ]


def check_delegated(sample: Sample, inside: Sequence[str] = ("weather",)) -> None:
    """Whether a sample is that of the agent that asked the expert: with one call, in which there are others."""
    assert (sample.input, sample.output) == ("Ask the expert.", "Rain, it says.")
    assert sample.instructions == "Delegate."
    calls = [(call.name, dict(call.arguments), call.result) for each in sample.messages for call in each.tool_calls]
    assert calls == [("expert", {"question": "Bern?"}, "Rain in Bern.")]
    assert sample.trajectory is not None
    (step,) = (step for step in sample.trajectory.steps if step.step_type == "tool_call")
    assert (step.name, step.data["success"]) == ("expert", True)
    assert [each.name for each in step.walk() if each.step_type == "tool_call"] == ["expert", *inside]
    assert sample.metadata["target"]["usage"]["requests"] == 4
    whole = Sample(
        messages=sample.messages,
        trajectory=sample.trajectory,
        expected_trajectory=TrajectoryExpectation.read([{"name": "expert"}]),
    )
    assert score("tool_call_f1", whole).value == 1
    assert score("max_tool_calls(limit=1)", sample).value == 1


WEATHER = tool(14, 11, CALL, "rain", start=4, end=5)
BESIDE = [agent(1, "boss", 20, end=9), *caller(1), agent(11, "expert", 20, start=3, end=7), *expert(11), WEATHER]
ROOT = span(20, "Agent Workflow", {"traceloop.span.kind": "workflow"}, end=9)


@pytest.mark.parametrize("result", ["Rain in Bern.", None])
def test_an_agent_beside_the_one_whose_tool_asked_it_is_part_of_the_tool_call(result: str | None) -> None:
    # The span of the tool may lack what the messages have.
    sample = only(spans(ROOT, *BESIDE, tool(4, 1, ASKED, result, start=2, end=8)))
    check_delegated(sample)
    assert sample.trajectory is not None
    (step,) = sample.trajectory.steps
    assert [(each.step_type, each.name) for each in step.children] == [("agent_run", "expert")]
    assert step.seconds == pytest.approx(6, rel=1e-6)


def test_it_is_if_the_span_of_the_tool_is_missing() -> None:
    sample = only(spans(ROOT, *BESIDE))
    check_delegated(sample)
    assert sample.trajectory is not None
    (step,) = sample.trajectory.steps
    assert [(each.step_type, each.name) for each in step.children] == [("agent_run", "expert")]
    assert step.seconds is None  # which no span says


@pytest.mark.parametrize("has_tools", [True, False])
def test_model_calls_that_another_ones_tool_made_are_no_request(has_tools: bool) -> None:
    tools = [tool(4, 98, ASKED, "Rain in Bern.", start=2, end=8), tool(14, 97, CALL, "rain", start=4, end=5)]
    traced = spans(*caller(MISSING), *expert(96), *(tools if has_tools else []))
    check_delegated(only(traced), ["weather"] if has_tools else [])
    assert read_transcript(traced).messages == only(traced).messages


@pytest.mark.parametrize("has_tool", [True, False])
def test_orphans_that_a_tool_asked_are_no_part_of_the_conversation_of_their_agent(has_tool: bool) -> None:
    tools = [tool(4, 1, ASKED, "Rain in Bern.", start=2, end=8)] if has_tool else []
    within = [chain(11, MISSING, start=3, end=7), *expert(11), WEATHER]
    for apart in (within, [*expert(MISSING), tool(14, 97, CALL, "rain", start=4, end=5)]):
        (sample,), _ = read(spans(chain(1, 0, end=9), *caller(1), *tools, *apart))
        check_delegated(sample)


def test_orphans_of_one_missing_call_are_in_one_step() -> None:
    beside = [agent(15, "expert", MISSING, start=2.9, end=7), chain(11, MISSING, start=3, end=7), *expert(11), WEATHER]
    (sample,), _ = read(spans(agent(1, "boss", end=9), *caller(1), *beside))
    check_delegated(sample)
    assert sample.trajectory is not None
    (step,) = sample.trajectory.steps
    assert [each.name for each in step.walk()] == ["expert", "expert", "weather"]


def test_orphans_inside_of_an_orphan_are_in_the_same_step() -> None:
    beside = [agent(15, "expert", 98, start=2.9, end=7.1), chain(11, MISSING, start=3, end=7), *expert(11), WEATHER]
    (sample,), _ = read(spans(agent(1, "boss", end=9), *caller(1), *beside))
    check_delegated(sample)
    assert sample.trajectory is not None
    (step,) = sample.trajectory.steps
    assert [each.name for each in step.walk()] == ["expert", "expert", "weather"]


def test_an_orphan_may_be_part_of_a_call_of_an_agent_further_out() -> None:
    inner = agent(5, "runner", 1, start=0.5, end=8.5)
    beside = [chain(11, MISSING, start=3, end=7), *expert(11), WEATHER]
    (sample,), _ = read(spans(agent(1, "boss", end=9), inner, *caller(1), *beside))
    check_delegated(sample)
    assert sample.trajectory is not None
    assert [step.name for step in sample.trajectory.walk()] == ["runner", "expert", "weather"]


@pytest.mark.parametrize(
    ("question", "answer", "nested"),
    [
        ("Bern?", "It pours.", True),
        ("What is the weather in Bern?", "Rain in Bern.", True),
        ("What is the weather in Bern?", "It pours.", False),
        ("What is the weather in Bern?", " ", False),
    ],
)
def test_what_ran_during_a_tool_call_is_part_of_it_if_the_call_passed_its_question_or_its_answer_on(
    question: str, answer: str, nested: bool
) -> None:
    traced = [ROOT, agent(1, "boss", 20, end=9), *caller(1), tool(4, 1, ASKED, "Rain in Bern.", start=2, end=8)]
    samples, _ = read(spans(*traced, agent(11, "expert", 20, start=3, end=7), *expert(11, question, answer)))
    assert len(samples) == (1 if nested else 2)


def test_an_agent_that_was_asked_the_same_at_another_time_is_a_request_of_its_own() -> None:
    traced = [ROOT, agent(1, "boss", 20, end=9), *caller(1), tool(4, 1, ASKED, "Rain in Bern.", start=2, end=8)]
    for start, end in ((1.5, 7), (3, 8.5)):
        samples, _ = read(spans(*traced, agent(11, "expert", 20, start=start, end=end), *expert(11)))
        assert [each.output for each in samples] == ["Rain, it says.", "Rain in Bern."]


def test_what_a_call_passed_on_earlier_is_no_reason_during_a_later_one() -> None:
    now: dict[str, Any] = {"type": "tool_call", "id": "n1", "name": "now", "arguments": {}}
    second = [USER, message("assistant", ASKED), message("tool", TOLD)]
    third = [*second, message("assistant", now), message("tool", {**TOLD, "id": "n1", "response": "12:00"})]
    boss = [
        agent(1, "boss", 20, end=9),
        span(2, "chat", chat([USER], message("assistant", ASKED)), parent=1, start=1, end=2),
        span(3, "chat", chat(second, message("assistant", now)), parent=1, start=2.2, end=2.5),
        span(5, "chat", chat(third, "Rain at noon."), parent=1, start=8, end=9),
    ]
    beside = [agent(11, "expert", 20, start=3, end=7), *expert(11, "Bern?", "It pours."), WEATHER]
    samples, _ = read(spans(ROOT, *boss, *beside))
    assert [each.output for each in samples] == ["Rain at noon.", "It pours."]


def test_an_agent_may_have_run_the_whole_time_of_its_call() -> None:
    traced = [ROOT, agent(1, "boss", 20, end=9), *caller(1), tool(4, 1, ASKED, "Rain in Bern.", start=2, end=8)]
    check_delegated(only(spans(*traced, agent(11, "expert", 20, start=2, end=8), *expert(11), WEATHER)))


def test_agents_inside_of_each_others_tool_calls_are_steps_inside_of_each_other() -> None:
    asked: dict[str, Any] = {"type": "tool_call", "id": "w1", "name": "ask_station", "arguments": {"place": "Bern"}}
    station = span(21, "chat", chat([message("user", "Bern")], "rain"), parent=30, start=4.2, end=4.8)
    given = [message("user", "Bern?")]
    then = [*given, message("assistant", asked), message("tool", {**FOUND, "id": "w1"})]
    sample = only(
        spans(
            ROOT,
            agent(1, "boss", 20, end=9),
            *caller(1),
            tool(4, 1, ASKED, "Rain in Bern.", start=2, end=8),
            agent(11, "expert", 20, start=3, end=7),
            span(12, "chat", chat(given, message("assistant", asked)), parent=11, start=3.5, end=4),
            span(13, "chat", chat(then, "Rain in Bern."), parent=11, start=5, end=6),
            tool(14, 11, asked, "rain", start=4, end=5),
            agent(30, "station", 20, start=4.1, end=4.9),
            station,
        )
    )
    assert sample.output == "Rain, it says."
    assert sample.trajectory is not None
    assert [each.name for each in sample.trajectory.walk()] == ["expert", "expert", "ask_station", "station"]


def test_an_answer_in_json_is_the_result_of_its_call() -> None:
    told = {**TOLD, "response": {"rain": True}}
    traced = [
        ROOT,
        agent(1, "boss", 20, end=9),
        span(2, "chat", chat([USER], message("assistant", ASKED)), parent=1, start=1, end=2),
        span(3, "chat", chat([USER, message("assistant", ASKED), message("tool", told)], "Yes."), parent=1, start=8),
        agent(11, "expert", 20, start=3, end=7),
        span(12, "chat", chat([message("user", "Well?")], '{"rain":true}'), parent=11, start=4, end=5),
    ]
    assert only(spans(*traced)).output == "Yes."


def test_model_calls_below_a_tool_of_another_conversation_are_part_of_its_call() -> None:
    summary = span(12, "chat", chat([message("user", "Sum up: a b c")], "ABC"), parent=4, start=4, end=5)
    sample = only(spans(*caller(MISSING), tool(4, 98, ASKED, None, start=2, end=8), summary))
    assert sample.output == "Rain, it says."
    (alone,), _ = read(spans(tool(4, 0, ASKED, None, start=2, end=8), summary))
    assert alone.output == "ABC"
