"""Which messages of a sample are its input, and which its output."""

from __future__ import annotations

from typing import Any

import pytest

from evalstone.agents.sides import run_request, run_side, side, whole_conversation
from evalstone.datasets import load
from evalstone.datasets.stored import sample_of, sample_row
from evalstone.errors import ConfigError
from evalstone.types import Message, Sample, ToolCall


def said(role: Any, content: str = "", **fields: Any) -> Message:
    return Message(role=role, content=content, **fields)


HISTORY = (said("user", "u1"), said("assistant", "a1"))
WHOLE = (*HISTORY, said("user", "u2"), said("assistant", "a2"))
SEARCH = said("assistant", tool_calls=[ToolCall(name="search")])


def words(messages: Any) -> str:
    return " ".join(message.content or "-" for message in messages)


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (Sample(input="q", output="a"), "q a"),
        (Sample(input="u2", output="a2", messages=WHOLE), "u1 a1 u2 a2"),
        (Sample(input="q", output="a", messages=HISTORY), "u1 a1 q a"),
        (Sample(input="q", messages=HISTORY), "u1 q a1"),
        (Sample(input="q", output="a2", messages=WHOLE), "u1 a1 u2 q a2"),
        (Sample(input="u2", output="a", messages=WHOLE), "u1 a1 u2 a2 a"),
        (Sample(input="q", output="a", messages=(SEARCH,)), "q - a"),
        (Sample(input="q", output="a", messages=(said("system", "s"), said("assistant", "a"))), "s q a"),
        (Sample(output=" ", messages=WHOLE), "u1 a1 u2 a2"),
        (Sample(output=" a2\n", messages=WHOLE), "u1 a1 u2 a2"),
        (Sample(output="one\ntwo\n", messages=(said("user", "u1"), said("assistant", "onetwo"))), "u1 onetwo"),
        (Sample(turns=[Sample(input="t1", output="b1"), Sample(input="t2", output="b2")]), "t1 b1 t2 b2"),
        (Sample(turns=[Sample(input="ok", output="b1"), Sample(input="ok", output="b1")]), "ok b1 ok b1"),
        (
            Sample(
                output="a2",
                messages=WHOLE,
                turns=[Sample(input="u1", output="a1", messages=HISTORY), Sample(input="u2", output="a2")],
            ),
            "u1 a1 u2 a2",
        ),
        (Sample(messages=HISTORY, turns=[Sample(input="t1")]), "u1 a1 t1"),
    ],
)
def test_a_conversation_has_each_text_of_its_sample_once(sample: Sample, expected: str) -> None:
    assert words(whole_conversation(sample)) == expected


def test_a_side_is_all_messages_of_its_role_or_the_first() -> None:
    sample = Sample(
        input="u2", output="a2", messages=(said("system", "s"), *WHOLE[:3], SEARCH, said("assistant", "a2"))
    )
    assert side(sample, "input", "last") is None
    assert words(side(sample, "input", "all")) == "u1 u2"
    assert words(side(sample, "output", "all")) == "a1 a2"
    assert words(side(sample, "output", "first")) == "a1"
    assert side(Sample(output=""), "output", "all") == ()


def test_a_message_without_text_but_with_an_attachment_is_part_of_its_side() -> None:
    picture = said("user", attachments=["image"])
    sample = Sample(input="u2", output="a2", messages=(picture, *WHOLE))
    assert side(sample, "input", "first") == (picture,)
    assert words(side(sample, "input", "all")) == "- u1 u2"


def of_mastra(role: str, text: str, *before: str) -> dict[str, Any]:
    parts = [{"type": "text", "text": each} for each in (*before, text)]
    steps = [step for part in parts for step in ({"type": "step-start"}, part)] if before else parts
    return {"id": text, "role": role, "content": {"format": 2, "parts": steps, "content": text}}


def test_the_input_side_of_a_run_has_what_the_agent_was_given() -> None:
    row = {
        "input": {"inputMessages": [of_mastra("user", "u1"), of_mastra("assistant", "a1"), of_mastra("user", "u2")]},
        "output": [of_mastra("assistant", "a2"), of_mastra("assistant", "a3")],
    }
    (sample,) = load([row])
    assert words(run_side(sample, "input")) == "u1 a1 u2"
    assert words(run_side(sample, "output")) == "a2 a3"
    assert words(run_request(sample, "input") or ()) == "u1"
    assert run_request(sample, "output") is None


def test_what_an_agent_remembers_is_on_no_side_of_a_run_but_is_part_of_the_conversation() -> None:
    memory = [of_mastra("user", "u1"), of_mastra("assistant", "a0", "Let me look.")]
    row = {
        "input": {"inputMessages": [of_mastra("user", "u2")], "rememberedMessages": memory, "systemMessages": []},
        "output": [of_mastra("assistant", "a2")],
    }
    (sample,) = load([row])
    assert [m.origin for m in sample.messages] == ["memory", "memory", "memory", "request", None]
    assert words(run_side(sample, "input")) == "u2"
    assert words(run_request(sample, "input") or ()) == "u2"
    assert words(side(sample, "input", "all") or ()) == "u1 u2"


def test_the_steps_of_one_message_are_one_text_of_a_run() -> None:
    row = {
        "input": "q",
        "output": [of_mastra("assistant", "Sunny.", "Look.", "Hm."), of_mastra("assistant", "b")],
    }
    (sample,) = load([row])
    assert [m.continued for m in sample.messages if m.role == "assistant"] == [True, True, False, False]
    assert words(run_side(sample, "output")) == "Sunny. b"
    assert words(side(sample, "output", "all") or ()) == "Look. Hm. Sunny. b"


MEMORY = (said("user", "u0", origin="memory"), said("assistant", "a0", origin="memory"))
PICTURE = said("user", attachments=["image"], origin="request")
TURNS = [Sample(input="u1", output="a1"), Sample(input="u2", output="a2")]


@pytest.mark.parametrize(
    ("sample", "asked", "answered"),
    [
        (Sample(messages=(*MEMORY, *WHOLE)), "u1 u2", "a1 a2"),
        (Sample(messages=(said("user", "u0"), said("assistant", "a0"), *WHOLE), turns=TURNS), "u1", "a0 a1 a2"),
        (Sample(messages=(said("system", "s", origin="request"), said("user", "u", origin="request"))), "u", ""),
        (Sample(messages=(*HISTORY[:1], said("assistant", "a", continued=True), SEARCH)), "u1", "a"),
        (Sample(messages=(said("assistant", "a", continued=True), said("tool", "t"), said("assistant", "b"))), "", "b"),
    ],
    ids=["memory without a request", "messages before the turns", "instructions", "a last step without text", "tools"],
)
def test_a_side_of_a_run_has_what_was_asked_and_answered_in_it(sample: Sample, asked: str, answered: str) -> None:
    assert words(run_side(sample, "input")) == asked
    assert words(run_side(sample, "output")) == answered


def test_a_request_that_begins_with_a_picture_is_asked_by_it() -> None:
    sample = Sample(messages=(PICTURE, said("user", "u", origin="request")), output="a")
    assert run_request(sample, "input") == (PICTURE,)
    blank = Sample(messages=(said("user", " ", origin="request"), said("user", "u", origin="request")), output="a")
    assert words(run_request(blank, "input")) == "u"


def test_marks_of_messages_survive_a_file_of_samples() -> None:
    stored = Sample(messages=(said("user", "a", origin="memory"), said("assistant", "b", continued=True)), output="b")
    row = sample_row(stored)
    for read in (sample_of(row), next(iter(load([row])))):
        assert [(m.origin, m.continued) for m in read.messages] == [("memory", False), (None, True)]


def test_the_first_turn_is_the_input_side_of_a_conversation_with_turns() -> None:
    turns = [Sample(input="u1", output="a1"), Sample(input="u2", output="a2")]
    sample = Sample(output="a2", messages=WHOLE, turns=turns)
    assert words(run_side(sample, "input")) == "u1"
    assert words(run_side(sample, "output")) == "a1 a2"
    assert words(run_side(Sample(turns=turns), "output")) == "a1 a2"


def test_without_a_request_the_sides_of_a_run_are_those_of_its_roles() -> None:
    sample = Sample(input="u2", output="a2", messages=WHOLE)
    assert words(run_side(sample, "input")) == "u1 u2"
    assert words(run_side(sample, "output")) == "a1 a2"
    assert words(run_request(sample, "input") or ()) == "u1"


def test_an_input_that_is_a_conversation_is_a_request_if_there_is_an_output() -> None:
    conversation = [{"role": "user", "content": "u1"}, {"role": "assistant", "content": "a1"}]
    (answered,) = load([{"input": [*conversation, {"role": "user", "content": "u2"}], "output": "a2"}])
    assert [m.origin for m in answered.messages] == ["request", "request", "request", None]
    (whole,) = load([{"input": conversation}])
    assert [m.origin for m in whole.messages] == [None, None]
    assert words(run_side(whole, "output")) == "a1"


def test_an_unknown_origin_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"origin .*'cache'"):
        said("user", origin="cache")


def test_a_conversation_without_a_user_has_no_input_side() -> None:
    sample = Sample(output="b", messages=(said("assistant", "a"), said("assistant", "b")))
    assert run_side(sample, "input") == ()
    assert words(run_side(sample, "output")) == "a b"
    assert run_request(sample, "input") is None
