from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalstone.errors import ConfigError
from evalstone.questions.tool_use import JudgeToolCalls
from evalstone.scorers import ToolCallAppropriateness
from evalstone.types import Message, Sample, Skipped, ToolCall
from tests.fakes import outcome_of, record_of, score_of

CALLS = [
    ToolCall(name="search", arguments={"q": "Bern\nnow"}, result={"n": 1}),
    ToolCall(name="mail", state="error", error="down"),
    ToolCall(name="clock", state="call"),
    ToolCall(name="draft", state="partial"),
]
SHOWN = ('search({"q": "Bern\\nnow"}) returned {"n": 1}', "mail({}) failed: down", "clock({}) did not return")
"""The calls as the judge sees them."""
TALK = [Message(role="user", content="Where?"), Message(role="assistant", content="Here.", tool_calls=CALLS)]
SAMPLE = Sample(input="Where?", output="Here.", messages=TALK)
QUIET = Sample(messages=[Message(role="user", content="Where?"), Message(role="assistant", content="Here.")])


def reply(*appropriate: bool, missing: tuple[str, ...] = ()) -> dict[str, Any]:
    calls = {str(n): {"reason": "because", "appropriate": said} for n, said in enumerate(appropriate, start=1)}
    return {"calls": calls, "missing": list(missing)}


@pytest.mark.parametrize(
    ("sample", "said", "value", "reason"),
    [
        (
            SAMPLE,
            reply(True, False, True, missing=("map",)),
            20 / 3,
            "2 of 3 calls are appropriate; not appropriate: “mail({}) failed: down”; missing: “map”.",
        ),
        (QUIET, reply(missing=("search",)), 0, "No tool was called; missing: “search”."),
        (QUIET, reply(), 10, "No tool was called."),
    ],
)
def test_missing_tools_count_only_where_nothing_was_called_and_the_reason_names_them(
    sample: Sample, said: dict[str, Any], value: float, reason: str
):
    score = score_of(ToolCallAppropriateness(scale=10), sample, [said])
    assert (score.value, score.reason) == (pytest.approx(value), reason)


def test_the_judge_sees_the_request_the_calls_and_the_tools():
    tools = ["search", {"name": "mail", "description": "sends mail"}, {"id": "clock"}]
    _, judge = record_of(ToolCallAppropriateness(tools=tools), SAMPLE, [reply(True, True, True)])
    assert judge.asked == [
        JudgeToolCalls(
            request="Where?",
            answer="Here.",
            calls=SHOWN,
            tools=("search", "mail: sends mail", "clock"),
        )
    ]


def test_request_and_answer_come_from_the_messages_where_the_sample_has_none():
    _, judge = record_of(ToolCallAppropriateness(), QUIET, [reply()])
    asked = judge.asked[0]
    assert isinstance(asked, JudgeToolCalls)
    assert (asked.request, asked.answer) == ("Where?", "Here.")


def test_a_conversation_that_ends_with_the_user_is_skipped_unless_the_sample_has_the_answer():
    open_ended = Sample(messages=(*QUIET.messages, Message(role="user", content="And now?")))
    assert isinstance(outcome_of(ToolCallAppropriateness(), open_ended, []), Skipped)
    _, judge = record_of(ToolCallAppropriateness(), replace(open_ended, output="There."), [reply()])
    asked = judge.asked[0]
    assert isinstance(asked, JudgeToolCalls)
    assert (asked.request, asked.answer) == ("And now?", "There.")


def test_an_answer_of_calls_alone_is_not_that_to_an_older_message():
    calls = Message(role="assistant", content="", tool_calls=[ToolCall(name="search", arguments={})])
    sample = Sample(messages=(*QUIET.messages, Message(role="user", content="And now?"), calls))
    _, judge = record_of(ToolCallAppropriateness(), sample, [reply(True)])
    asked = judge.asked[0]
    assert isinstance(asked, JudgeToolCalls)
    assert (asked.request, asked.answer) == ("And now?", "")


@pytest.mark.parametrize("tools", ["search", 5, [5], [""], [{"description": "nameless"}]])
def test_tools_that_have_no_name_are_refused(tools: Any):
    with pytest.raises(ConfigError, match=r": tools(: a tool)? must"):
        ToolCallAppropriateness(tools=tools)
