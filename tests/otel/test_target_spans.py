"""Spans of target calls: the trace that a target gets, and the scores under its call."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from evalstone import evaluate
from evalstone.targets import FunctionTarget
from tests.otel.emitted import Emitted, attributes, gen_ai, ids, parent_of
from tests.otel.test_spans import CONTAINS, SAMPLES, answered, listener, model, saying, under
from tests.serving import serving


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_function_s_own_spans_and_its_scores_are_under_its_call(emitted: Emitted, asynchronous: bool) -> None:
    tracer, threads = trace.get_tracer("app", tracer_provider=emitted.tracers), set[int]()

    def agent(*, input: str) -> str:
        threads.add(threading.get_ident())
        with tracer.start_as_current_span(f"inside {input}"):
            time.sleep(0.002)
            return f"Ada, {input}"

    async def aagent(*, input: str) -> str:
        with tracer.start_as_current_span(f"inside {input}"):
            await asyncio.sleep(0.002)
            return f"Ada, {input}"

    with emitted.enabled():
        run = evaluate(SAMPLES, [CONTAINS, "faithfulness"], target=aagent if asynchronous else agent, ledger=None)
    calls = {attributes(span)["evalstone.sample.id"]: span for span in emitted.named("invoke_agent ")}
    assert len(calls) == 8
    assert {ids(under(emitted, span)) for span in calls.values()} == {ids(emitted.named("evaluate ")[0])}
    for n in range(8):
        (inside,) = emitted.named(f"inside Who? {n}")
        assert parent_of(inside) == ids(calls[f"q{n}"])
    assert len(emitted.events) == 16
    for event in emitted.events:
        assert event.parent == ids(calls[event.attributes["evalstone.sample.id"]])
        assert gen_ai(event.attributes)["evaluation.target"] == run.target.identity  # pyright: ignore[reportOptionalMemberAccess]
    (seconds,) = emitted.metric("evalstone.target.duration").values()
    assert seconds.count == 8


def test_a_failed_call_of_a_target_is_the_parent_of_its_failed_scores(emitted: Emitted) -> None:
    def agent(*, input: str) -> str:
        raise ValueError("down")

    with emitted.enabled():
        evaluate(SAMPLES[:1], CONTAINS, target=agent, ledger=None)
    (call,) = emitted.named("invoke_agent ")
    (event,) = emitted.events
    assert (event.parent, event.attributes["error.type"], event.severity) == (ids(call), "ValueError", "WARN")
    assert call.status.status_code is StatusCode.ERROR
    assert {dict(key)["error.type"] for key in emitted.metric("evalstone.target.duration")} == {"ValueError"}


class Mute(Exception):
    """Its text can't be read."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_error_whose_text_can_t_be_read_ends_a_span_as_any_other(emitted: Emitted) -> None:
    def agent(*, input: str) -> str:
        raise Mute

    with emitted.enabled():
        run = evaluate(SAMPLES[:1], CONTAINS, target=agent, ledger=None)
    (call,) = emitted.named("invoke_agent ")
    assert "can't be read" in (call.status.description or "")
    assert "Mute" in str(run.records[0].outcome)


def test_an_http_target_gets_the_trace_of_its_call(emitted: Emitted) -> None:
    def answer(request: dict[str, Any], _: int) -> Any:
        return {"answer": "Ada"}

    with serving(answer) as server, emitted.enabled():
        target = {"address": f"{server.url}/ask", "body": {"q": "{input}"}, "output": "answer"}
        evaluate(SAMPLES[:3], CONTAINS, target=target, ledger=None)
    calls = {trace.format_span_id(ids(span)[1]): span for span in emitted.named("invoke_agent ")}
    assert {span.kind for span in calls.values()} == {SpanKind.CLIENT}
    assert {headers["traceparent"].split("-")[2] for headers in server.headers} == set(calls)


def test_a_command_gets_the_trace_of_its_call_beside_its_environment(
    emitted: Emitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_SETTING", "kept")
    script = tmp_path / "agent.py"
    script.write_text(
        "import json\nfrom os import environ as set\n"
        "print(json.dumps({'output': set.get('TRACEPARENT', 'none') + set['OWN_SETTING']}))"
    )
    target = f"cmd:{sys.executable} {script}"
    with emitted.enabled():
        run = evaluate(SAMPLES[:1], CONTAINS, target=target, ledger=None)
    (call,) = emitted.named("invoke_agent ")
    assert (answered(run).output or "")[:53] == f"00-{ids(call)[0]:032x}-{ids(call)[1]:016x}-"
    assert answered(evaluate(SAMPLES[:1], CONTAINS, target=target, ledger=None)).output == "nonekept"


def test_model_endpoints_get_no_trace(emitted: Emitted) -> None:
    with serving() as server, emitted.enabled():
        evaluate(SAMPLES[:1], "faithfulness", judge=model(server), ledger=None)
    assert server.headers
    assert not [headers for headers in server.headers if "traceparent" in headers]


def test_a_conversation_is_one_span_over_its_turns_and_the_parent_of_its_scores(emitted: Emitted) -> None:
    sample = {"id": "c", "turns": ["Who was Ada?", "When was she born?"]}
    with emitted.enabled():
        evaluate([sample], CONTAINS, target=listener, ledger=None)
    (whole,) = emitted.named("conversation ")
    turns = emitted.named("invoke_agent ")
    assert [parent_of(span) for span in turns] == [ids(whole)] * 2
    assert [event.parent for event in emitted.events] == [ids(whole)]


def test_a_conversation_that_a_turn_ends_has_failed(emitted: Emitted) -> None:
    def agent(*, messages: Sequence[Any]) -> str:
        if len(messages) > 1:
            raise KeyError("lost")
        return "Ada"

    with emitted.enabled():
        evaluate([{"id": "c", "turns": ["Who was Ada?", "When was she born?"]}], CONTAINS, target=agent, ledger=None)
    (whole,) = emitted.named("conversation ")
    assert (attributes(whole)["error.type"], whole.status.status_code) == ("_OTHER", StatusCode.ERROR)
    assert [attributes(span).get("error.type") for span in emitted.named("invoke_agent ")] == [None, "KeyError"]
    assert [(event.parent, event.attributes["evalstone.outcome"]) for event in emitted.events] == [
        (ids(whole), "failed")
    ]


def test_scores_of_kept_answers_go_to_the_call_that_gave_them(emitted: Emitted, tmp_path: Path) -> None:
    @dataclass
    class Agent:
        calls: int = 0

        def __call__(self, *, input: str) -> str:
            self.calls += 1
            return "Ada"

    agent, later = Agent(), Emitted()
    target = FunctionTarget(function=agent, version="1")
    options: dict[str, Any] = {"target": target, "ledger": tmp_path / "l.db"}
    with emitted.enabled():
        evaluate(SAMPLES[:2], CONTAINS, **options)
    with later.enabled():
        evaluate(SAMPLES[:2], "contains(expected=Bob)", **options)
    assert agent.calls == 2
    assert not later.named("invoke_agent ")
    assert {event.parent for event in later.events} == {ids(span) for span in emitted.named("invoke_agent ")}


def test_the_trace_that_a_sample_came_with_is_not_that_of_a_new_answer(emitted: Emitted) -> None:
    old = {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331"}
    sample = {**SAMPLES[0], "metadata": {"trace": old, "topic": "x"}}
    untraced = evaluate([sample], CONTAINS, target=saying("Ada"), ledger=None)
    assert "trace" not in answered(untraced).metadata
    assert answered(untraced).metadata["topic"] == "x"
    with emitted.enabled():
        traced = evaluate([sample], CONTAINS, target=saying("Ada"), ledger=None)
    (call,) = emitted.named("invoke_agent ")
    assert [event.parent for event in emitted.events] == [ids(call)]
    assert answered(traced).metadata["trace"]["span_id"] == f"{ids(call)[1]:016x}"
    mine = {**SAMPLES[0], "metadata": {"trace": "my own"}}
    kept = evaluate([mine], CONTAINS, target=saying("Ada"), ledger=None)
    assert answered(kept).metadata["trace"] == "my own"
