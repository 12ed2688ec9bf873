"""What a call gave is the same value whether it was just returned or read from the ledger."""

from __future__ import annotations

import pytest

from evalstone import Failed, Sample
from evalstone.ledger import StoredAnswer
from evalstone.run.answer_rows import TargetCost, TargetReply, as_stored, read_answer
from evalstone.targets import Answer
from evalstone.types import Message, ToolCall, Usage

SAMPLE = Sample(id="a", input="How far?", metadata={"team": "x", "trace": {"trace_id": "1", "span_id": "2"}})
CALLS = [
    ToolCall(name="look_up", arguments={"place": ("Ulm", 3), "deep": {"1": [None, 1.5, True]}}, result={"m": 161.5})
]
ANSWERS = [
    Answer(output="161 m"),
    Answer(output=""),
    Answer(output="\ud83d\ude00 \x00 \u2028 ü"),
    Answer(messages=[Message(role="assistant", tool_calls=CALLS), Message(role="assistant", content="161 m")]),
    Answer(messages=[{"role": "user", "content": "And now?"}, {"role": "assistant", "content": [{"text": "Far."}]}]),
    Answer(output="far", context=("one", "two"), instructions="Be short.", state={"seen": (1, 2), "at": {"x": None}}),
    Answer(output="far", metadata={"version": 3, "tags": ("a", "b")}, usage=Usage(3, 4), cost=0.25, trace={"id": "t"}),
    Answer(output="far", trajectory=[{"name": "look_up", "step_type": "tool_call", "tool_result": {"m": 1}}]),  # pyright: ignore[reportArgumentType]
    Answer(turns=[Sample(id="t1", input="a", output="b"), Sample(id="t2", input="c", output="d", context=["p"])]),
]


def row(text: str) -> StoredAnswer:
    return StoredAnswer(
        question="q",
        judge="t",
        repeat_index=1,
        kind="target",
        reply=text,
        usage=Usage(3, 4),
        cost=0.25,
        seconds=1.5,
        probability=None,
        run="r",
    )


@pytest.mark.parametrize(
    "reply",
    [
        *(TargetReply(as_stored(answer)) for answer in ANSWERS),
        TargetReply(ANSWERS[0], trace={"trace_id": "9", "span_id": "8"}),
        TargetReply(ANSWERS[0], skipped="the user left their part", conversation=TargetCost(None, Usage(1), 0.5)),
        TargetReply(failed=Failed("the target failed: KeyError: 'x'", exception="KeyError"), trace={"trace_id": "9"}),
        TargetReply(failed=Failed("turn 2: no"), conversation=TargetCost(0.5, Usage(7, 1, 2, 3), None)),
    ],
)
def test_a_reply_that_is_read_from_its_row_has_the_same_outcome(reply: TargetReply) -> None:
    stored = row(reply.to_json())
    outcome = reply.outcome(SAMPLE, stored, restored=True)
    assert read_answer(SAMPLE, stored, paid=True) == outcome
    assert repr(read_answer(SAMPLE, stored, paid=True)) == repr(outcome)
    expected = reply.conversation or (0.25, Usage(3, 4), 0.0)
    assert (outcome.cost, outcome.usage, outcome.user_cost) == tuple(expected)


def test_an_answer_of_text_stays_the_value_that_it_is() -> None:
    assert [as_stored(answer) is answer for answer in ANSWERS] == [
        True,
        True,
        False,
        False,
        True,
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"answer": 3}', '{"failed": []}', '{"answer": {"output": 1}}']
)
def test_a_row_that_cannot_be_read_is_none(text: str) -> None:
    assert read_answer(SAMPLE, row(text), paid=True) is None
