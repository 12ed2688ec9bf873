from __future__ import annotations

from typing import cast

from evalstone.questions import CheckConversation
from evalstone.scorers import MultiTurnJudge
from evalstone.types import Message, Sample, Skipped
from tests.fakes import outcome_of, record_of, score_of

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
    for word, value in (("yes", 10), ("no", 0)):
        assert score_of(MultiTurnJudge(criterion="It is priced", scale=10), SAMPLE, [said(word)]).value == value


def test_the_judge_sees_the_assistants_turns_alone_trimmed_and_without_blank_ones():
    _, judge = record_of(SCORER, SAMPLE, [said("yes")])
    first, second = "It costs 5 euros.", "You are welcome."
    question = CheckConversation(criterion="The price is named", turns=(first, second))
    assert judge.asked == [question]
    shown = question.render()[1]
    assert f"<<passage 1>>\n{first}\n<</passage 1>>" in shown
    assert "How much?" not in shown


def test_a_conversation_in_which_the_assistant_said_nothing_is_skipped_except_by_mastra():
    silent = Sample(messages=[Message(role="user", content="Hello."), Message(role="assistant", content=" \u200b")])
    assert isinstance(outcome_of(SCORER, silent, []), Skipped)
    score = score_of(MultiTurnJudge(criterion="c", definition="mastra"), silent, [said("no")])
    assert (score.value, score.reason[:13]) == (0, "Over 0 turns,")


def test_the_criterion_can_come_from_the_sample():
    sample = Sample(messages=MESSAGES, metadata={"criterion": "c"})
    _, judge = record_of(MultiTurnJudge(), sample, [said("yes")])
    assert [cast(CheckConversation, q).criterion for q in judge.asked] == ["c"]
