from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone import Panel, ScriptedJudge, evaluate
from evalstone.questions import JudgeExecution
from evalstone.scorers import PlanAdherence
from evalstone.scorers.agents.plans import out_of_order
from evalstone.types import Failed, Message, Sample, Score, ToolCall
from tests.fakes import outcome_of, record_of, score_of

PLAN = ["Search", "Book", "Pay", "Report"]
TALK = [
    Message(role="user", content="Book a flight."),
    Message(role="assistant", content="On it.", tool_calls=[ToolCall(name=name) for name in ("pay", "find", "book")]),
    Message(role="assistant", content="Booked.", tool_calls=[ToolCall(name="joke")]),
]
SAMPLE = Sample(messages=TALK, state={"plan": PLAN})
USER, ON_IT, PAY, FIND, BOOK, JOKE, BOOKED = range(1, 8)
"""The numbers of the passages."""


def said(*cited: Sequence[int], unplanned: Sequence[int] = ()) -> list[Any]:
    """A reply: for each planned step the passages in which it was done; none for one that was not done."""
    verdicts = {
        str(n): {"reason": "so", "passages": list(numbers), "verdict": "done" if numbers else "not_done"}
        for n, numbers in enumerate(cited, start=1)
    }
    return [{"plan": verdicts, "unplanned": list(unplanned)}]


CASES: list[tuple[Any, list[int], float]] = [
    (([FIND], [BOOK], [JOKE], [BOOKED]), [], 4 / 4),
    (([FIND], [BOOK], [], [BOOKED]), [], 3 / 4),
    (([FIND], [BOOK], [PAY], [BOOKED]), [], (3 + 0.5) / 4),  # paid before it was searched and booked
    (([FIND], [BOOK], [PAY], [BOOKED]), [JOKE], (3 + 0.5) / 5),
    (([], [], [], []), [PAY, FIND, BOOK, JOKE], 0),
    (([BOOK], [BOOK], [BOOK], [BOOK]), [], 4 / 4),  # one call did all of it
    (([PAY, BOOK], [FIND], [JOKE], [BOOKED]), [], (3 + 0.5) / 4),  # the last passage says when a step was done
]


@pytest.mark.parametrize(("cited", "unplanned", "value"), CASES)
def test_steps_in_order_count_1_others_half_and_unplanned_calls_add_to_the_divisor(
    cited: Any, unplanned: list[int], value: float
):
    assert score_of(PlanAdherence(scale=10), SAMPLE, said(*cited, unplanned=unplanned)).value == pytest.approx(
        10 * value
    )


def test_what_a_step_out_of_order_counts_can_be_set():
    for weight in (0, 0.25, 1):
        score = score_of(PlanAdherence(out_of_order=weight), SAMPLE, said([FIND], [BOOK], [PAY], []))
        assert score.value == pytest.approx((2 + weight) / 4)


@pytest.mark.parametrize(
    ("replies", "reason", "out_of_order", "unplanned"),
    [
        (
            said([FIND], [BOOK], [PAY], [], unplanned=[JOKE]),
            "3 of 4 planned steps done; out of order: “Pay”; not done: “Report”; "
            "not planned: “tool call: joke arguments: {} result: null”.",
            ["Pay"],
            ["tool call: joke\narguments: {}\nresult: null"],
        ),
        (said([FIND], [BOOK], [JOKE], [BOOKED]), "4 of 4 planned steps done.", [], []),
    ],
)
def test_the_reason_and_the_evidence_name_what_was_otherwise(
    replies: list[Any], reason: str, out_of_order: list[str], unplanned: list[str]
):
    score = score_of(PlanAdherence(), SAMPLE, replies)
    assert score.reason == reason
    assert (score.evidence["out_of_order"], score.evidence["unplanned"]) == (out_of_order, unplanned)


def test_the_judge_sees_the_plan_and_what_was_done_without_the_thinking():
    thoughts = Message(role="assistant", content="On it.", reasoning="Hm.")
    _, judge = record_of(
        PlanAdherence(), Sample(messages=[TALK[0], thoughts], state={"plan": PLAN}), said([], [], [], [])
    )
    assert judge.asked == [
        JudgeExecution(plan=tuple(PLAN), conversation=("user:\nBook a flight.", "assistant:\nOn it."))
    ]


def test_a_verdict_must_cite_and_only_calls_without_a_step_are_unplanned():
    cases: list[tuple[list[Any], str]] = [
        (said([], [], [], [], unplanned=[ON_IT]), "unplanned: passage 2 is not a tool call"),
        (said([FIND], [], [], [], unplanned=[FIND]), "unplanned: passage 4 is cited for a step of the plan"),
        (said([FIND], [], [], [], unplanned=[8]), "cites item 8; there are 7 items"),
        ([{"plan": {str(n): {"reason": "", "passages": [], "verdict": "done"} for n in range(1, 5)}, "unplanned": []}],
         "'done' cites the passages that decide it"),
        (said([FIND]), "verdict"),
    ]  # fmt: skip
    for reply, told in cases:
        outcome = outcome_of(PlanAdherence(), SAMPLE, reply)
        assert isinstance(outcome, Failed)
        assert told in outcome.error


@given(st.lists(st.one_of(st.none(), st.integers(1, 6)), max_size=7))
def test_no_fewer_steps_can_be_left_out_for_the_others_to_be_in_order(places: list[int | None]):
    out = out_of_order(places)
    kept = [place for number, place in enumerate(places) if number not in out and place is not None]
    assert kept == sorted(kept)
    done = [place for place in places if place is not None]
    longer = combinations(done, len(kept) + 1)
    assert not any(list(some) == sorted(some) for some in longer)
    assert all(places[number] is not None for number in out)
    assert len(kept) + len(out) == len(done)


def test_the_votes_of_a_panel_never_count_a_call_twice():
    # The steps are voted on one by one; what is unplanned is the word of the first judge, who did not see a step.
    replies = (said([], [PAY], [PAY], unplanned=[ON_IT]), said([ON_IT], [PAY], []), said([ON_IT], [], [PAY]))
    panel = Panel(*(ScriptedJudge(reply, name=f"judge {n}") for n, reply in enumerate(replies)))
    calls = Message(role="assistant", tool_calls=[ToolCall(name="find"), ToolCall(name="pay")])
    sample = Sample(messages=[TALK[0], calls], state={"plan": PLAN[:3]})
    run = evaluate([sample], "plan_adherence", judge=panel, ledger=None)
    [record] = run.records
    assert isinstance(record.outcome, Score)
    assert record.calls[0].answer["unplanned"] == [ON_IT]
    assert (record.outcome.value, record.outcome.evidence["unplanned"]) == (1, [])
