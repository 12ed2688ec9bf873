from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from evalstone.agents.formats.messages import read_conversation
from evalstone.agents.messages import (
    agent_sample,
    answer_text,
    called_tools,
    conversation_history,
    last_user_text,
    reasoning,
    system_prompt,
    texts,
    tool_calls,
    tool_results,
    trajectory_sample,
)
from evalstone.errors import DataError
from evalstone.types import Message, ToolCall, TrajectoryExpectation

SEARCH = ToolCall(name="search", id="1", arguments={"q": "Bern"}, result={"hits": 2})
TALK = (
    Message(role="system", content="Be brief."),
    Message(role="user", content="Where is Bern?"),
    Message(role="assistant", content="In Switzerland.", tool_calls=[SEARCH], reasoning="I look it up."),
    Message(role="system", content="Be kind."),
    Message(role="user", content="And Basel?"),
    Message(
        role="assistant",
        tool_calls=[
            ToolCall(name="search", id="2", state="error", error="down"),
            ToolCall(name="map", id="3", state="call"),
            ToolCall(name="draft", id="4", state="partial"),
            ToolCall(name="clock", id="5", result=None),
        ],
        reasoning="Again.",
    ),
    Message(role="assistant", content="There too."),
    Message(role="assistant", content=" "),
)


def test_the_last_word_of_each_side_is_the_last_that_has_text():
    assert last_user_text(TALK) == "And Basel?"
    assert answer_text(TALK) == "There too."
    assert last_user_text(()) is None
    assert answer_text(TALK[:2]) is None


def test_the_system_prompt_is_all_system_messages():
    assert system_prompt(TALK) == "\n\n".join((TALK[0].content, TALK[3].content))
    assert system_prompt(TALK[1:3]) is None


def test_the_texts_of_a_side_leave_out_turns_without_words():
    assert texts(TALK, "assistant") == ("In Switzerland.", "There too.")


@pytest.mark.parametrize(
    ("talk", "options", "history"),
    [
        (TALK, {}, "user: Where is Bern?\nassistant: In Switzerland."),
        (TALK, {"limit": 1}, "assistant: In Switzerland."),
        (TALK, {"limit": 0}, None),
        (TALK[:2], {}, None),
        ((), {}, None),
    ],
)
def test_the_history_is_what_came_before_the_last_user_message(
    talk: tuple[Message, ...], options: dict[str, int], history: str | None
):
    assert conversation_history(talk, **options) == history


def test_the_reasoning_is_that_of_the_first_message_that_has_one():
    assert reasoning(TALK) == "I look it up."
    assert reasoning(TALK[:2]) is None


def test_tool_calls_are_found_with_their_places_but_those_never_made():
    placed = tool_calls(TALK)
    assert [(p.call.name, p.message, p.place) for p in placed] == [
        ("search", 2, 0),
        ("search", 5, 0),
        ("map", 5, 1),
        ("clock", 5, 3),
    ]
    assert called_tools(TALK) == ("search", "search", "map", "clock")


def test_tool_results_are_those_that_came():
    assert [(r.name, r.id, r.arguments, r.result) for r in tool_results(TALK)] == [
        ("search", "1", {"q": "Bern"}, {"hits": 2})
    ]


def test_a_sample_of_one_exchange():
    sample = agent_sample(
        "Where?",
        "Here.",
        tool_calls=[SEARCH],
        history=TALK[1:3],
        reasoning="hm",
        instructions="Be brief.",
        reference="r",
    )
    assert (sample.input, sample.output, sample.reference) == ("Where?", "Here.", "r")
    assert [m.role for m in sample.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert sample.messages[-1] == Message(role="assistant", content="Here.", tool_calls=[SEARCH], reasoning="hm")
    assert system_prompt(sample.messages) == "Be brief."


def test_a_sample_of_one_trajectory():
    sample = trajectory_sample([{"stepType": "tool_call", "name": "f"}], expected={"maxSteps": 1}, input="q")
    assert sample.trajectory is not None
    assert [step.name for step in sample.trajectory.steps] == ["f"]
    assert sample.expected_trajectory == TrajectoryExpectation(max_steps=1)
    assert sample.input == "q"


@pytest.mark.parametrize("said", ["Final result processed.", "Returning structured response: city='Bern' rain=True"])
def test_the_arguments_of_a_call_that_was_taken_for_the_answer_are_the_answer(said: str) -> None:
    asked, looking = Message(role="user", content="Rain?"), Message(role="assistant", content="Let me look.")
    call = ToolCall(name="final_result", arguments={"city": "Bern", "rain": True}, result=said)
    answer = Message(role="assistant", tool_calls=[call])
    assert answer_text([asked, looking, answer]) == json.dumps(call.arguments)
    assert answer_text([asked, answer, Message(role="user", content="Sure?")]) is None
    for other in (SEARCH, ToolCall(name="final_result", arguments={"city": "Bern"}, result="no such city")):
        assert answer_text([asked, Message(role="assistant", tool_calls=[other])]) == ""


THOUGHT = "<think>Rain? I look.</think>"


def test_a_message_with_reasoning_alone_has_no_text() -> None:
    asked, answer = Message(role="user", content="Rain?"), Message(role="assistant", content="No.")
    thought = Message(role="assistant", content=THOUGHT, tool_calls=[SEARCH])
    assert answer_text([asked, answer, thought]) == "No."
    assert answer_text([asked, thought, replace(answer, content=f"{THOUGHT}\nNo.")]) == f"{THOUGHT}\nNo."
    assert answer_text([asked, thought]) == THOUGHT  # an option scores it
    call = ToolCall(name="final_result", arguments={"rain": True}, result="Final result processed.")
    assert answer_text([asked, answer, replace(thought, tool_calls=[call])]) == '{"rain": true}'
    assert answer_text([asked, replace(answer, tool_calls=[call])]) == '{"rain": true}'


PLAIN = ("", " ", "Where is Bern?", "<think>Hm.</think>Here.", '{"a": 1}', '[{"type": "text", "text": "x"}]')
FEEDBACK = "1 validation error:\n```json\n[]\n```\n\nFix the errors and try again."


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "tool", "Human", "narrator"])
def test_messages_of_a_role_and_a_text_are_read_as_all_others_are(role: str) -> None:
    for text in (*PLAIN, FEEDBACK):
        said = {"role": role, "content": text}
        try:
            expected = read_conversation([{"role": "user", "content": "?", "id": "1"}, said]).messages[1:]
        except DataError as error:
            with pytest.raises(DataError, match=re.escape(str(error).partition(";")[0])):
                read_conversation([{"role": "user", "content": "?"}, said])
        else:
            assert read_conversation([{"role": "user", "content": "?"}, said]).messages[1:] == expected
