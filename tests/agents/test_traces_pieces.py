"""A message whose parallel calls are sent again one by one, as OpenAI's items have them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone import evaluate
from evalstone.agents.transcripts import read_transcript
from evalstone.types import Sample
from tests.agents.test_traces import only, read
from tests.traced import attributes, chat, message, span, spans

SYSTEM, QUESTION = message("system", "Be brief."), message("user", "Bern and Basel?")
ANSWER = message("assistant", "Both sunny.")


def call(id: str, city: str) -> dict[str, Any]:
    made = {"type": "tool_call", "name": "weather", "arguments": {"city": city}}
    return {**made, "id": id} if id else made


def response(id: str, city: str) -> dict[str, Any]:
    return message("tool", {"type": "tool_call_response", "id": id, "response": f"sunny in {city}"})


def pieces(*calls: tuple[str, str], text: str = "") -> list[dict[str, Any]]:
    said = [message("assistant", text)] if text else []
    return [*said, *(message("assistant", call(*each)) for each in calls), *(response(*each) for each in calls)]


def whole(*calls: tuple[str, str], text: str = "") -> dict[str, Any]:
    return message("assistant", *filter(None, [text]), *(call(*each) for each in calls))


def calls_of(sample: Sample) -> list[tuple[str, Any, Any]]:
    return [(each.id, each.arguments["city"], each.result) for m in sample.messages for each in m.tool_calls]


FIRST, SECOND = (("c1", "Bern"), ("c2", "Basel")), (("c3", "Bern"), ("c4", "Bern"))


@pytest.mark.parametrize("agent", [True, False])
@pytest.mark.parametrize("text", ["", "Let me look."])
def test_parallel_calls_that_are_sent_again_one_by_one_are_the_same_calls(agent: bool, text: str) -> None:
    said = [message("assistant", text)] if text else []
    first = chat([SYSTEM, QUESTION], whole(*FIRST))
    if text:  # the items of one answer
        first["gen_ai.output.messages"] = json.dumps([*said, whole(*FIRST)])
    then = [SYSTEM, QUESTION, *pieces(*FIRST, text=text)]
    asked = [
        span(2, "chat", first, parent=1 if agent else 0, start=1, end=2),
        span(3, "chat", chat(then, whole(*SECOND)), parent=1 if agent else 0, start=3, end=4),
        span(4, "chat", chat([*then, *pieces(*SECOND)], ANSWER), parent=1 if agent else 0, start=5, end=6),
    ]
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather"}
    sample = only(spans(*([span(1, "invoke_agent", root, end=9)] if agent else []), *asked))
    assert calls_of(sample) == [(id, city, f"sunny in {city}") for id, city in (*FIRST, *SECOND)]
    assert (sample.input, sample.output) == ("Bern and Basel?", "Both sunny.")
    assert sample.trajectory is not None
    assert [step.data["tool_args"] for step in sample.trajectory.steps] == [
        {"city": city} for _, city in (*FIRST, *SECOND)
    ]
    assert [m.content for m in sample.messages if m.role == "assistant" and m.content] == [
        *filter(None, [text]),
        "Both sunny.",
    ]


def test_calls_sent_one_by_one_score_as_the_messages_do() -> None:
    then = [SYSTEM, QUESTION, *pieces(*FIRST)]
    traced = only(
        spans(
            span(2, "chat", chat([SYSTEM, QUESTION], whole(*FIRST)), start=1, end=2),
            span(3, "chat", chat(then, ANSWER), start=3, end=4),
        )
    )
    expected = {"steps": [{"name": "weather", "step_type": "tool_call", "tool_args": {"city": "Bern"}}]}
    sent = read_transcript([*then, ANSWER]).messages
    values = [
        evaluate([{"messages": each, "expected_trajectory": expected}], "tool_call_f1", ledger=None).records[0].value
        for each in (traced.messages, sent)
    ]
    assert values[0] == values[1] == pytest.approx(2 / 3)


def test_a_call_that_is_made_again_is_no_piece_of_the_message_before() -> None:
    once, again = ("c1", "Bern"), ("c2", "Bern")
    then = [SYSTEM, QUESTION, *pieces(once)]
    sample = only(
        spans(
            span(2, "chat", chat([SYSTEM, QUESTION], whole(once)), start=1, end=2),
            span(3, "chat", chat(then, whole(again)), start=3, end=4),
            span(4, "chat", chat([*then, *pieces(again)], ANSWER), start=5, end=6),
        )
    )
    assert [len(m.tool_calls) for m in sample.messages if m.tool_calls] == [1, 1]
    assert calls_of(sample) == [("c1", "Bern", "sunny in Bern"), ("c2", "Bern", "sunny in Bern")]


def test_equal_calls_without_ids_have_a_result_each() -> None:
    def ran(result: str) -> list[dict[str, Any]]:
        done = {"type": "tool_call_response", "response": result}
        return [message("assistant", call("", "Bern")), message("tool", done)]

    then = [SYSTEM, QUESTION, *ran("rain"), *ran("sun")]
    sample = only(
        spans(
            span(2, "chat", chat([SYSTEM, QUESTION], whole(("", "Bern"), ("", "Bern"))), start=1, end=2),
            span(3, "chat", chat(then, ANSWER), start=3, end=4),
        )
    )
    assert calls_of(sample) == [("", "Bern", "rain"), ("", "Bern", "sun")]


def test_the_answer_of_an_agents_span_is_that_of_its_model_without_the_newline_of_a_terminal() -> None:
    def shown(text: str) -> dict[str, Any]:
        return chat([SYSTEM, QUESTION], text, **{"gen_ai.operation.name": "invoke_agent"})

    answer = span(2, "chat", chat([SYSTEM, QUESTION], "Both sunny."), parent=1, start=1, end=2)
    sample = only(spans(span(1, "invoke_agent", shown("Both sunny.\n"), end=9), answer))
    assert sample.output == "Both sunny."
    other = only(spans(span(1, "invoke_agent", shown("Both are sunny.\n"), end=9), answer))
    assert other.output == "Both are sunny.\n"


def in_events(*said: dict[str, Any]) -> dict[str, Any]:
    """What a model call's span has in an event for each attribute."""
    name = "gen_ai.client.inference.operation.details"
    return {"events": [{"name": name, "attributes": attributes(each)} for each in said]}


def asked_in_events(given: list[Any], answer: Any, *, system: str) -> dict[str, Any]:
    instructions = json.dumps([{"type": "text", "content": system}])
    both = chat(given, answer)
    return in_events(
        {"gen_ai.system_instructions": instructions},
        {"gen_ai.input.messages": both["gen_ai.input.messages"]},
        {"gen_ai.output.messages": both["gen_ai.output.messages"]},
    )


CALL = {"gen_ai.operation.name": "chat"}


def test_instructions_in_an_event_of_their_own_are_those_of_the_messages_after_it() -> None:
    sample = only(spans(span(1, "chat", CALL, **asked_in_events([QUESTION], ANSWER, system="Be brief."))))
    assert (sample.instructions, sample.input, sample.output) == ("Be brief.", "Bern and Basel?", "Both sunny.")
    assert [m.role for m in sample.messages] == ["system", "user", "assistant"]


def test_instructions_in_an_event_without_messages_are_not_those_of_the_next_call() -> None:
    silent = in_events({"gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be long."}])})
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather"}
    sample = only(
        spans(
            span(1, "invoke_agent", root, end=9, **silent),
            span(2, "chat", chat([QUESTION], ANSWER), parent=1, start=1, end=2),
        )
    )
    assert sample.instructions is None


def test_an_answer_in_an_event_of_its_own_that_repeats_an_earlier_one_is_one_more() -> None:
    given = [QUESTION, ANSWER, QUESTION]
    sample = only(spans(span(1, "chat", CALL, **asked_in_events(given, ANSWER, system="Be brief."))))
    assert sample.output == "Both sunny."
    assert [m.role for m in sample.messages] == ["system", "user", "assistant", "user", "assistant"]


def test_a_picture_without_content_is_no_content() -> None:
    picture = {"type": "blob", "mime_type": "image/png", "modality": "image"}
    given = [message("user", {"type": "text"}, picture)]
    samples, (note,) = read(spans(span(1, "chat", chat(given, message("assistant", {"type": "text"})))))
    assert samples == []
    assert "trace without content;" in note


def test_the_cycle_around_a_call_repeats_its_messages_and_adds_none() -> None:
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather"}
    cycle = {"gen_ai.operation.name": "execute_event_loop_cycle"}
    first, second = FIRST
    results = [message("user", *response(*first)["parts"], *response(*second)["parts"])]
    repeated = in_events(*({"gen_ai.input.messages": json.dumps(each)} for each in ([QUESTION], results)))
    then = [QUESTION, whole(*FIRST), *results]
    sample = only(
        spans(
            span(1, "invoke_agent", root, end=9),
            span(2, "cycle", cycle, parent=1, start=1, end=4, **repeated),
            span(3, "chat", chat([QUESTION], whole(*FIRST)), parent=2, start=2, end=3),
            span(4, "chat", chat(then, ANSWER), parent=1, start=5, end=6),
        )
    )
    assert [m.role for m in sample.messages] == ["user", "assistant", "assistant"]
    assert calls_of(sample) == [(id, city, f"sunny in {city}") for id, city in FIRST]


THOUGHT = "<think>\nBern first.\n</think>\n\n"


@pytest.mark.parametrize("agent", [True, False])
def test_an_answer_that_is_sent_again_without_its_reasoning_is_the_same_answer(agent: bool) -> None:
    talk = [SYSTEM, QUESTION, message("assistant", "Both sunny."), message("user", "Sure?")]
    parent = 1 if agent else 0
    asked = [
        span(2, "chat", chat([SYSTEM, QUESTION], message("assistant", f"{THOUGHT}Both sunny.")), parent=parent, end=2),
        span(3, "chat", chat(talk, message("assistant", f"{THOUGHT}Yes.")), parent=parent, start=3, end=4),
    ]
    root = chat([SYSTEM, QUESTION], message("assistant", "Yes.")) | {"gen_ai.operation.name": "invoke_agent"}
    sample = only(spans(*([span(1, "invoke_agent", root, end=9)] if agent else []), *asked))
    said = [(m.role, m.content) for m in sample.messages]
    assert said == [
        ("system", "Be brief."),
        ("user", "Bern and Basel?"),
        ("assistant", f"{THOUGHT}Both sunny."),
        ("user", "Sure?"),
        ("assistant", f"{THOUGHT}Yes."),
    ]


def test_what_a_user_repeats_with_tags_is_another_message() -> None:
    again = [SYSTEM, QUESTION, ANSWER, message("user", f"{THOUGHT}Bern and Basel?")]
    asked = [
        span(2, "chat", chat([SYSTEM, QUESTION], ANSWER), start=1, end=2),
        span(3, "chat", chat(again, message("assistant", "Yes.")), start=3, end=4),
    ]
    sample = only(spans(*asked))
    assert [m.role for m in sample.messages] == ["system", "user", "assistant", "user", "assistant"]


@pytest.mark.parametrize("agent", [True, False])
@pytest.mark.parametrize(("made", "sent"), [("Let me look.", ""), ("", "Let me look."), ("[REDACTED]", "Let me look.")])
def test_calls_that_are_sent_again_without_the_text_beside_them_are_the_same_calls(
    agent: bool, made: str, sent: str
) -> None:
    then = [SYSTEM, QUESTION, whole(*FIRST, text=sent), *(response(*each) for each in FIRST)]
    asked = [
        span(2, "chat", chat([SYSTEM, QUESTION], whole(*FIRST, text=made)), parent=1 if agent else 0, start=1, end=2),
        span(3, "chat", chat(then, ANSWER), parent=1 if agent else 0, start=3, end=4),
    ]
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather"}
    sample = only(spans(*([span(1, "invoke_agent", root, end=9)] if agent else []), *asked))
    assert [m.content for m in sample.messages] == ["Be brief.", "Bern and Basel?", "Let me look.", "Both sunny."]
    assert calls_of(sample) == [(id, city, f"sunny in {city}") for id, city in FIRST]
    assert sample.trajectory is not None
    assert len(sample.trajectory.steps) == 2


def test_an_id_that_a_model_gives_again_beside_other_text_is_another_call() -> None:
    once = ("c1", "Bern")
    first, second = whole(once, text="I look up Bern."), whole(("c1", "Basel"), text="Now Basel.")
    then = [SYSTEM, QUESTION, first, response(*once)]
    last = [*then, second, response("c1", "Basel")]
    sample = only(
        spans(
            span(2, "chat", chat([SYSTEM, QUESTION], first), start=1, end=2),
            span(3, "chat", chat(then, second), start=3, end=4),
            span(4, "chat", chat(last, ANSWER), start=5, end=6),
        )
    )
    assert calls_of(sample) == [("c1", "Bern", "sunny in Bern"), ("c1", "Basel", "sunny in Basel")]


@pytest.mark.parametrize("around", [False, True])
def test_tools_that_run_at_the_same_time_are_steps_in_the_order_of_their_message(around: bool) -> None:
    def ran(number: int, id: str, city: str, start: float) -> list[dict[str, Any]]:
        values = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": id}
        values["gen_ai.tool.call.arguments"] = json.dumps({"city": city})
        parent = number + 10 if around else 1
        tool = span(number, "execute_tool", values, parent=parent, start=start, end=start + 0.5)
        node = span(number + 10, "tools", {"openinference.span.kind": "CHAIN"}, parent=1, start=start, end=start + 0.5)
        return [node, tool] if around else [tool]

    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather"}
    then = [SYSTEM, QUESTION, whole(*FIRST), *(response(*each) for each in FIRST)]
    last = [*then, whole(*SECOND), *(response(*each) for each in SECOND)]
    sample = only(
        spans(
            span(1, "invoke_agent", root, end=9),
            span(2, "chat", chat([SYSTEM, QUESTION], whole(*FIRST)), parent=1, start=1, end=2),
            *ran(3, "c2", "Basel", 2),
            *ran(4, "c1", "Bern", 2),
            span(5, "chat", chat(then, whole(*SECOND)), parent=1, start=3, end=4),
            *ran(6, "c4", "Bern", 4),
            *ran(7, "c3", "Bern", 4.1),
            span(8, "chat", chat(last, ANSWER), parent=1, start=5, end=6),
        )
    )
    assert sample.trajectory is not None
    assert [step.data["tool_args"]["city"] for step in sample.trajectory.steps] == ["Bern", "Basel", "Bern", "Bern"]


@pytest.mark.parametrize("later", [True, False])
def test_messages_of_the_user_that_a_model_call_has_as_one_are_those_of_the_agent(later: bool) -> None:
    hello, asked, answer = message("user", "Hello."), message("user", "How is Bern?"), message("assistant", "Sunny.")
    brief, again = message("system", "Be brief."), message("user", "Hello.")
    more = [message("assistant", "And?"), again] if later else []
    every = [brief, hello, asked, *more, answer]
    whole = {"gen_ai.operation.name": "invoke_agent", "pydantic_ai.all_messages": json.dumps(every)}
    given = [brief, message("user", "Hello.", "How is Bern?"), *more]
    sample = only(
        spans(
            span(1, "invoke_agent", whole, end=9),
            span(2, "chat", chat(given, "Sunny."), parent=1, start=1),
            span(3, "chat", chat([*given, answer], answer), parent=1, start=3),
        )
    )
    texts = [(each["role"], each["parts"][0]["content"]) for each in every]
    assert [(each.role, each.content) for each in sample.messages] == [*texts, ("assistant", "Sunny.")]
    assert sample.input == ("Hello." if later else "How is Bern?")
