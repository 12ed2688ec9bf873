"""Which call in the messages the span of a tool is of: by its ID, else by its arguments, else by its place."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from evalstone import score
from evalstone.types import Sample
from tests.agents.test_traces import only, read
from tests.traced import chat, message, span, spans

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"}
Rows = list[dict[str, Any]]


def call(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}


def response(id: str, result: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": id, "response": result}


def tool(
    id: int, name: str, call_id: str, result: Any = None, *, at: float, arguments: Any = None, **more: Any
) -> dict[str, Any]:
    """The span of a tool call that took half a second."""
    said = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call_id or None,
        "gen_ai.tool.call.arguments": None if arguments is None else json.dumps(arguments),
        "gen_ai.tool.call.result": None if result is None else json.dumps(result),
    }
    said = {key: value for key, value in said.items() if value is not None}
    place: dict[str, Any] = {"parent": 1, "start": at, "end": at + 0.5, **more}
    return span(id, f"execute_tool {name}", said, **place)


def agent(*inside: dict[str, Any]) -> Sample:
    """The sample of an agent with these spans."""
    return only(spans(span(1, "invoke_agent", AGENT, end=90), *inside))


def calls_of(sample: Sample) -> list[tuple[str, dict[str, Any], Any]]:
    return [
        (each.id, dict(each.arguments), each.error if each.state == "error" else each.result)
        for message in sample.messages or ()
        for each in message.tool_calls
    ]


def steps_of(sample: Sample) -> list[tuple[str, Any]]:
    assert sample.trajectory is not None
    return [
        (step.name, step.data.get("tool_args")) for step in sample.trajectory.walk() if step.step_type != "agent_run"
    ]


def conversation(*turns: Any) -> Rows:
    """Model calls one after the other, each with all messages before it; a turn is what the model says, or hears."""
    said, made, at = [message("user", "q")], list[dict[str, Any]](), 1.0
    for turn in turns:
        if turn["role"] == "assistant":
            made.append(span(100 + len(made), "chat", chat(said, turn), parent=1, start=at, end=at + 0.5))
        said, at = [*said, turn], at + 1
    return made


def test_a_call_without_a_span_is_a_step_beside_another_call_of_the_tool_with_one() -> None:
    made = conversation(
        message("assistant", call("c1", "delete", row=1)),
        message("tool", response("c1", "ok")),
        message("assistant", call("c2", "delete", row=2)),
        message("tool", response("c2", "ok")),
        message("assistant", "Done."),
    )
    both = [("delete", {"row": 1}), ("delete", {"row": 2})]
    for spanned in ("c1", "c2"):
        sample = agent(*made, tool(9, "delete", spanned, "ok", at=2.6, arguments={"row": int(spanned[1])}))
        assert steps_of(sample) == both


def test_a_call_without_a_span_is_a_step_beside_the_same_tool_in_a_sub_agent() -> None:
    made = conversation(
        message("assistant", call("c1", "search", q="outer")),
        message("tool", response("c1", "r")),
        message("assistant", "Done."),
    )
    inside = [
        span(50, "invoke_agent", {**AGENT, "gen_ai.agent.name": "helper"}, parent=1, start=2.1, end=2.9),
        tool(51, "search", "d1", "r", at=2.2, arguments={"q": "inner"}, parent=50),
    ]
    assert sorted(args["q"] for _, args in steps_of(agent(*made, *inside))) == ["inner", "outer"]


def openinference(said: list[dict[str, Any]], answer: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a model call as OpenInference writes them."""
    found: dict[str, Any] = {"openinference.span.kind": "LLM"}
    for where, messages in (("input", said), ("output", [answer])):
        for at, each in enumerate(messages):
            base = f"llm.{where}_messages.{at}.message"
            found |= {f"{base}.{key}": value for key, value in each.items() if key != "calls"}
            for number, (id, name, arguments) in enumerate(each.get("calls", ())):
                found[f"{base}.tool_calls.{number}.tool_call.id"] = id
                found[f"{base}.tool_calls.{number}.tool_call.function.name"] = name
                found[f"{base}.tool_calls.{number}.tool_call.function.arguments"] = json.dumps(arguments)
    return found


def chain(*inside: dict[str, Any]) -> Sample:
    root = {"openinference.span.kind": "CHAIN", "input.value": "q", "output.value": "a"}
    return only(spans(span(1, "chain", root, end=90), *inside))


def oi_tool(id: int, name: str, arguments: Any, *, at: float, **more: Any) -> dict[str, Any]:
    said = {"openinference.span.kind": "TOOL", "tool.name": name, "input.value": json.dumps(arguments)}
    if "result" in more:
        said["output.value"] = more.pop("result")
    return span(id, name, said, parent=1, start=at, end=at + 0.2, **more)


def test_a_failure_of_a_tool_without_an_id_marks_its_call_although_messages_have_a_result() -> None:
    user, called = {"role": "user", "content": "q"}, {"role": "assistant", "calls": [("i1", "f", {"x": 1})]}
    heard = {"role": "tool", "tool_call_id": "i1", "content": "Error: boom. Please fix."}
    failed = {"status": {"code": 2, "message": "ValueError: boom"}}
    sample = chain(
        span(2, "llm", openinference([user], called), parent=1, start=1, end=2),
        oi_tool(3, "f", {"x": 1}, at=2, **failed),
        span(4, "llm", openinference([user, called, heard], {"role": "assistant", "content": "a"}), parent=1, start=3),
    )
    assert score("no_tool_errors", sample).value == 0


def test_results_in_messages_stay_with_their_calls_and_a_span_goes_to_the_call_with_its_arguments() -> None:
    made = conversation(
        message("assistant", call("i1", "f", x=1), call("i2", "f", x=2)),
        message("tool", response("i1", "bad args"), response("i2", "r2")),
        message("assistant", "a"),
    )
    sample = agent(*made, tool(9, "f", "", "r2", at=1.6, arguments={"x": 2}))
    assert calls_of(sample) == [("i1", {"x": 1}, "bad args"), ("i2", {"x": 2}, "r2")]
    assert steps_of(sample) == [("f", {"x": 1}), ("f", {"x": 2})]


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize("apart", [0.0, 0.1])
def test_spans_without_ids_go_to_the_calls_with_their_arguments_in_any_order(
    order: tuple[int, int], apart: float
) -> None:
    made = conversation(message("assistant", call("i1", "f", x=1), call("i2", "f", x=2)))
    ran = [tool(10 + x, "f", "", f"r{x}", at=2 + apart * at, arguments={"x": x}) for at, x in enumerate(order)]
    assert calls_of(agent(*made, *ran)) == [("i1", {"x": 1}, "r1"), ("i2", {"x": 2}, "r2")]


def test_spans_without_ids_or_arguments_go_to_the_calls_of_their_tool_in_their_order() -> None:
    made = conversation(message("assistant", call("i1", "f", x=1), call("i2", "g"), call("i3", "f", x=2)))
    ran = [
        tool(10 + at, name, "", result, at=2 + at) for at, (name, result) in enumerate(zip("fgf", "abc", strict=True))
    ]
    assert [result for _, _, result in calls_of(agent(*made, *ran))] == ["a", "b", "c"]


def test_of_two_parallel_calls_without_ids_the_one_that_failed_is_an_error() -> None:
    made = conversation(message("assistant", call("i1", "f", x=1), call("i2", "f", x=2)))
    failed = tool(10, "f", "", at=2, arguments={"x": 1}, status={"code": 2, "message": "boom"})
    sample = agent(*made, failed, tool(11, "f", "", "r2", at=2, arguments={"x": 2}))
    assert calls_of(sample) == [("i1", {"x": 1}, "boom"), ("i2", {"x": 2}, "r2")]
    assert score("no_tool_errors", sample).value == 0


def test_equal_calls_of_one_message_have_a_result_each() -> None:
    user, twice = {"role": "user", "content": "q"}, [("", "f", {"x": 1}), ("", "f", {"x": 1})]
    called = {"role": "assistant", "calls": twice}
    heard = [{"role": "tool", "content": text} for text in ("r1", "r2")]
    sample = chain(
        span(2, "llm", openinference([user], called), parent=1, start=1, end=2),
        span(3, "llm", openinference([user, called, *heard], {"role": "assistant", "content": "a"}), parent=1, start=3),
    )
    assert [result for _, _, result in calls_of(sample)] == ["r1", "r2"]


@pytest.mark.parametrize("arguments", [True, False])
def test_of_the_calls_with_one_id_each_has_its_span(arguments: bool) -> None:
    said = [message("user", "q")]
    turns: Rows = []
    for x in (1, 2):
        turns += [message("assistant", call("call_0", "f", x=x)), message("tool", response("call_0", f"r{x}"))]
    models = [
        span(2 + at, "chat", chat([*said, *turns[: 2 * at]], answer), parent=1, start=2 * at, end=2 * at + 1)
        for at, answer in enumerate((turns[0], turns[2], message("assistant", "a")))
    ]
    failed = tool(10, "f", "call_0", at=1.5, arguments={"x": 1} if arguments else None, status={"code": 2})
    ran = [failed, tool(11, "f", "call_0", "r2", at=3.5, arguments={"x": 2} if arguments else None)]
    sample = agent(*models, *ran)
    assert calls_of(sample) == [("call_0", {"x": 1}, "r1"), ("call_0", {"x": 2}, "r2")]
    assert [each.state for said in sample.messages or () for each in said.tool_calls] == ["error", "result"]
    assert [name for name, _ in steps_of(sample)] == ["f", "f"]


def test_a_span_is_of_the_last_of_the_calls_with_its_id() -> None:
    before = [message("user", "q"), message("assistant", call("c", "f", x=1)), message("tool", response("c", "old"))]
    asked = [*before, message("assistant", "a"), message("user", "again")]
    sample = agent(
        span(2, "chat", chat(asked, message("assistant", call("c", "f", x=1))), parent=1),
        tool(10, "f", "c", at=2, arguments={"x": 1}, status={"code": 2, "message": "boom"}),
    )
    assert [result for _, _, result in calls_of(sample)] == ["old", "boom"]


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_every_result_is_that_of_its_call_whatever_the_order_of_the_spans(ids: bool, seed: int) -> None:
    rng = random.Random(seed)
    names = [rng.choice("fg") for _ in range(6)]
    calls = [call(f"i{at}", name, x=at) for at, name in enumerate(names)]
    turns: Rows = []
    for some in (calls[:3], calls[3:]):
        turns += [message("assistant", *some), message("tool", *(response(each["id"], each["id"]) for each in some))]
    made = conversation(*turns, message("assistant", "a"))
    ran = [
        tool(10 + at, name, f"i{at}" * ids, f"i{at}", at=rng.choice([1.6, 2.6, 3.6]), arguments={"x": at})
        for at, name in enumerate(names)
        if rng.random() < 0.7
    ]
    rng.shuffle(ran)
    sample = agent(*made, *ran)
    assert calls_of(sample) == [(f"i{at}", {"x": at}, f"i{at}") for at in range(6)]
    assert sorted(args["x"] for _, args in steps_of(sample)) == list(range(6))


def test_a_tool_outside_of_all_model_calls_belongs_to_the_conversation_that_has_its_id() -> None:
    called = message("assistant", call("c1", "f"))
    made = [
        span(2, "chat", chat([message("user", "q1")], called), start=1, end=2),
        tool(3, "f", "c1", "r", at=2, parent=0),
        span(4, "chat", chat([message("user", "other")], "o"), start=3.1, end=4),
        span(5, "chat", chat([message("user", "q1"), called, message("tool", response("c1", "r"))], "a1"), start=5.5),
    ]
    samples, notes = read(spans(*made))
    assert not notes
    assert {each.input: [name for name, _ in steps_of(each)] if each.trajectory else [] for each in samples} == {
        "q1": ["f"],
        "other": [],
    }


@pytest.mark.parametrize("has_id", [True, False])
@pytest.mark.parametrize("ends", ["ok", "error"])
def test_attempts_of_a_tool_before_the_model_was_told_are_one_call(has_id: bool, ends: str) -> None:
    heard = "r" if ends == "ok" else "f failed after 3 attempts"
    made = conversation(
        message("assistant", call("c1", "f", x=1)), message("tool", response("c1", heard)), message("assistant", "a")
    )
    failed = {"status": {"code": 2, "message": "boom"}}
    last: dict[str, Any] = {"result": "r"} if ends == "ok" else failed
    ran = [
        tool(10 + at, "f", "c1" * has_id, at=1.6 + at / 10, arguments={"x": 1}, **(last if at == 2 else failed))
        for at in range(3)
    ]
    inside = [span(20, "invoke_agent", {**AGENT, "gen_ai.agent.name": "helper"}, parent=10, start=1.6, end=1.7)]
    sample = agent(*made, *ran, *inside)
    assert calls_of(sample) == [("c1", {"x": 1}, heard)]
    assert steps_of(sample) == [("f", {"x": 1})]
    assert score("no_tool_errors", sample).value == (ends == "ok")


def test_attempts_of_a_tool_of_an_agent_inside_are_one_step() -> None:
    helper = span(50, "invoke_agent", {**AGENT, "gen_ai.agent.name": "helper"}, parent=1, start=0.5, end=9)
    made = conversation(
        message("assistant", call("c1", "f", x=1)), message("tool", response("c1", "r")), message("assistant", "a")
    )
    failed = tool(10, "f", "", at=1.6, arguments={"x": 1}, status={"code": 2, "message": "boom"})
    inside = [*made, failed, tool(11, "f", "", "r", at=2.2, arguments={"x": 1})]
    outer = span(99, "chat", chat([message("user", "q")], "a"), parent=1, start=80)
    assert steps_of(agent(helper, *({**each, "parentSpanId": helper["spanId"]} for each in inside), outer)) == [
        ("f", {"x": 1})
    ]


def test_a_tool_that_failed_is_a_call_if_the_model_called_it_again() -> None:
    again = call("c2", "f", x=1)
    told = [message("assistant", call("c1", "f", x=1)), message("tool", response("c1", "boom"))]
    one_by_one = conversation(*told, message("assistant", again), message("assistant", "a"))
    at_once = conversation(message("assistant", call("c1", "f", x=1), again))
    failed = {"status": {"code": 2, "message": "boom"}}
    for made, later in ((one_by_one, 3.6), (at_once, 1.8)):
        ran = [
            tool(10, "f", "", at=1.6, arguments={"x": 1}, **failed),
            tool(11, "f", "", "r", at=later, arguments={"x": 1}),
        ]
        assert calls_of(agent(*made, *ran)) == [("c1", {"x": 1}, "boom"), ("c2", {"x": 1}, "r")]


def test_a_tool_that_failed_and_ran_again_is_two_calls_if_no_message_has_any() -> None:
    made = span(100, "chat", chat([message("user", "q")], "a"), parent=1, start=4)
    failed = tool(10, "f", "", at=1.6, arguments={"x": 1}, status={"code": 2, "message": "boom"})
    assert len(calls_of(agent(failed, tool(11, "f", "", "r", at=2, arguments={"x": 1}), made))) == 2
