"""Users by themselves: what a played person says and sees, and how a user is named."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from evalstone import ConfigError, Message, Sample, ScriptedJudge
from evalstone.errors import TargetError
from evalstone.questions.simulated_user import UserMessage
from evalstone.targets.users import AskUser, SimulatedUser, parse_user, said_in

SAMPLE = Sample(id="c1", metadata={"goal": "Cancel the order."})


def said(reply: UserMessage, turn: int) -> str | None:
    async def ask(judge: Any, question: Any) -> Any:
        return reply

    user = SimulatedUser(judge=ScriptedJudge([]))
    return asyncio.run(user.say(SAMPLE, (), turn, cast(AskUser, ask)))


def test_a_person_says_something_to_begin_with_whether_they_call_it_finished_or_not() -> None:
    finished = UserMessage(finished=True, message="Cancel my order.")
    assert (said(finished, 1), said(finished, 2)) == ("Cancel my order.", None)
    with pytest.raises(TargetError, match="said nothing"):
        said(UserMessage(finished=True), 1)


def test_a_person_sees_what_was_said_without_tools() -> None:
    talk = [
        Message(role="system", content="Be kind."),
        Message(role="user", content="Hi."),
        Message(role="assistant", content=" "),
        Message(role="tool", content="42"),
        Message(role="assistant", content="Hello.", reasoning="The person says hi."),
    ]
    assert said_in(talk) == ["Person: Hi.", "Assistant: Hello."]


def test_a_name_with_a_colon_in_parentheses_is_that_of_a_judge() -> None:
    with pytest.raises(ConfigError, match="judge"):
        parse_user("nobody(model=a:b)")


def test_what_changes_who_talks_changes_the_name() -> None:
    judge = ScriptedJudge([])
    users = [
        SimulatedUser(judge=judge),
        SimulatedUser(judge=judge, check=False),
        SimulatedUser(judge=judge, max_turns=3),
    ]
    assert len({user.identity for user in users}) == 3


def test_a_blank_goal_is_none() -> None:
    user = SimulatedUser(judge=ScriptedJudge([]))
    assert user.lacking(Sample(id="c1", metadata={"goal": " \n"})).startswith("the simulated user")
    assert user.lacking(SAMPLE) == ""
