from __future__ import annotations

from typing import Any, cast

import pytest

from evalstone.questions import CheckConversation
from evalstone.scorers import MultiTurnJudge
from evalstone.types import Failed, Message, Sample, Skipped
from tests.fakes import outcome_of, record_of, score_of
from tests.refusals import refused

MESSAGES = [
    Message(role="system", content="Be kind."),
    Message(role="user", content="How much?"),
    Message(role="assistant", content=" It costs 5 euros.\n"),
    Message(role="assistant", content="  "),
    Message(role="user", content="Thanks."),
    Message(role="assistant", content="You are welcome."),
]
SAMPLE = Sample(messages=MESSAGES)
SCORER = MultiTurnJudge(criterion="The price is named")


def said(word: str) -> dict[str, str]:
    return {"reason": "turn 1 does", "verdict": word}


def test_a_criterion_is_worth_the_scale_when_met_and_0_when_not():
    score = score_of(MultiTurnJudge(criterion="The price is named", scale=10), SAMPLE, [said("yes")])
    assert (score.value, score.reason) == (10, "Over 2 turns, it is met: The price is named (turn 1 does)")
    assert score_of(SCORER, SAMPLE, [said("no")]).value == 0


def test_the_judge_sees_the_assistants_turns_alone_trimmed_and_without_blank_ones():
    _, judge = record_of(SCORER, SAMPLE, [said("yes")])
    question = CheckConversation(criterion="The price is named", turns=("It costs 5 euros.", "You are welcome."))
    assert judge.asked == [question]
    shown = question.render()[1]
    assert "<<passage 1>>\nIt costs 5 euros.\n<</passage 1>>" in shown
    assert "How much?" not in shown


def test_a_conversation_in_which_the_assistant_said_nothing_is_skipped_except_by_mastra():
    silent = Sample(messages=[Message(role="user", content="Hello."), Message(role="assistant", content=" \u200b")])
    assert outcome_of(SCORER, silent, []) == Skipped("the assistant says nothing")
    score = score_of(MultiTurnJudge(criterion="c", definition="mastra"), silent, [said("no")])
    assert (score.value, score.reason[:13]) == (0, "Over 0 turns,")


def test_the_criterion_can_come_from_the_sample():
    sample = Sample(messages=MESSAGES, metadata={"criterion": "c"})
    _, judge = record_of(MultiTurnJudge(), sample, [said("yes")])
    assert [cast(CheckConversation, q).criterion for q in judge.asked] == ["c"]


def test_without_a_criterion_or_messages_it_is_skipped():
    told = "multi_turn_judge needs a criterion, its own or in metadata"
    for criterion in ({}, {"criterion": " \u200b"}):
        assert outcome_of(MultiTurnJudge(), Sample(messages=MESSAGES, metadata=criterion), []) == Skipped(told)
    assert outcome_of(SCORER, Sample(), []) == Skipped("multi_turn_judge needs messages")


def test_a_criterion_in_metadata_that_is_not_text_fails():
    sample = Sample(messages=MESSAGES, metadata={"criterion": 5})
    assert isinstance(outcome_of(MultiTurnJudge(), sample, []), Failed)


@pytest.mark.parametrize("reply", [said("perhaps"), {"verdict": None}, {"reason": "x"}, {}])
def test_a_reply_that_does_not_decide_fails(reply: Any):
    assert isinstance(outcome_of(SCORER, SAMPLE, [reply]), Failed)


@pytest.mark.parametrize("criterion", ["", "  ", 5])
def test_a_blank_criterion_is_refused(criterion: Any):
    with refused("criterion", "text that is not blank"):
        MultiTurnJudge(criterion=criterion)
