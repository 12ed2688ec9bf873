from __future__ import annotations

from typing import Any, cast

import pytest

from evalstone.questions import JudgeRequests, ListRequests
from evalstone.scorers import TopicAdherence
from evalstone.types import Message, Sample, Skipped, ToolCall
from tests.fakes import outcome_of, record_of, score_of

TALK = [
    Message(role="user", content="How do I bake bread, and who invented the oven?"),
    Message(
        role="assistant",
        content="Knead, rest, bake.",
        tool_calls=[ToolCall(name="cook_book", arguments={"q": "bread"}, result="Knead, rest, bake.")],
    ),
    Message(role="user", content="And a cake? And pasta? And the weather?"),
    Message(role="assistant", content="No, no, and it rains."),
]
SAMPLE = Sample(messages=TALK, metadata={"topics": ["baking", "pasta"]})
REQUESTS = ["How to bake bread", "Who invented the oven", "How to bake a cake", "How pasta", "The weather"]


def said(*verdicts: str) -> list[Any]:
    """Replies for as many requests: on topic (+) or not (-), answered (a) or refused (r)."""
    members = {
        str(n): {"reason": "so", "on_topic": word[0] == "+", "answered": word[1] == "a"}
        for n, word in enumerate(verdicts, start=1)
    }
    return [{"requests": REQUESTS[: len(verdicts)]}, {"verdicts": members}]


@pytest.mark.parametrize(
    ("measure", "value"),
    # One answered on topic, one answered off topic, two refused on topic, one refused off topic.
    [("precision", 1 / 2), ("recall", 1 / 3), ("f1", 2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3)), ("accuracy", 2 / 5)],
)
def test_each_measure_has_its_formula(measure: Any, value: float):
    replies = said("+a", "-a", "+r", "+r", "-r")
    assert score_of(TopicAdherence(measure=measure, scale=10), SAMPLE, replies).value == pytest.approx(10 * value)


@pytest.mark.parametrize(
    ("words", "value", "reason"),
    [
        (
            ("+a", "-a", "+r"),
            2 / 4,
            "2 of 3 requests on topic, 2 answered; answered off topic: “Who invented the oven”; "
            "refused on topic: “How to bake a cake”.",
        ),
        (("+a",), 1, "1 of 1 request on topic, 1 answered."),
    ],
)
def test_f1_is_the_measure_that_is_not_named_and_the_reason_names_what_went_wrong(
    words: tuple[str, ...], value: float, reason: str
):
    score = score_of(TopicAdherence(), SAMPLE, said(*words))
    assert (score.value, score.reason) == (pytest.approx(value), reason)


@pytest.mark.parametrize(
    ("measure", "verdicts", "result"),
    [
        ("f1", ["-a"], 0.0),
        ("f1", ["+r"], 0.0),
        ("f1", ["-r"], "no request is on topic, and none was answered, so f1 is undefined"),
        ("precision", ["+r", "-r"], "no request was answered, so precision is undefined"),
        ("precision", ["-a"], 0.0),
        ("recall", ["-a", "-r"], "no request is on topic, so recall is undefined"),
        ("recall", ["+r"], 0.0),
        ("accuracy", ["-r"], 1.0),
        ("accuracy", ["-a"], 0.0),
    ],
)
def test_a_measure_without_a_divisor_is_undefined(measure: Any, verdicts: list[str], result: float | str):
    scorer = TopicAdherence(measure=measure)
    if isinstance(result, str):
        assert outcome_of(scorer, SAMPLE, said(*verdicts)) == Skipped(result)
    else:
        assert score_of(scorer, SAMPLE, said(*verdicts)).value == result


def test_requests_are_listed_from_what_was_said_and_judged_by_what_was_done():
    _, judge = record_of(TopicAdherence(), SAMPLE, said("+a"))
    spoken = tuple(f"{message.role}:\n{message.content}" for message in TALK)
    call = 'tool call: cook_book\narguments: {"q": "bread"}\nresult: Knead, rest, bake.'
    assert judge.asked == [
        ListRequests(conversation=spoken),
        JudgeRequests(requests=(REQUESTS[0],), topics=("baking", "pasta"), conversation=(spoken[0], call, *spoken[1:])),
    ]


def test_the_scorers_topics_win_over_those_of_the_sample():
    _, judge = record_of(TopicAdherence(topics=["history"]), SAMPLE, said("+a"))
    assert cast(JudgeRequests, judge.asked[1]).topics == ("history",)
    one = Sample(messages=TALK, metadata={"topics": "baking"})
    assert cast(JudgeRequests, record_of(TopicAdherence(), one, said("+a"))[1].asked[1]).topics == ("baking",)
