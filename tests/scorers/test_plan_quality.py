from __future__ import annotations

import json
from typing import Any, cast

import pytest

from evalstone import ScriptedJudge, evaluate
from evalstone.questions import JudgePlan, ListPlan
from evalstone.scorers import PlanQuality
from evalstone.types import Message, Sample, ToolCall
from tests.fakes import record_of, score_of

STEPS = ("Search a flight to Oslo", "Book the flight to Oslo")
TALK = [
    Message(role="user", content="Book a flight to Oslo."),
    Message(
        role="assistant",
        content="On it.",
        reasoning="First I search a flight to Oslo, then I book the flight.",
        tool_calls=[ToolCall(name="search", arguments={"to": "Oslo"}, result=[7])],
    ),
    Message(role="assistant", content="Booked."),
]
SAMPLE = Sample(messages=TALK)
SHOWN = (
    f"user:\n{TALK[0].content}",
    f"assistant, thinking:\n{TALK[1].reasoning}",
    f"assistant:\n{TALK[1].content}",
    'tool call: search\narguments: {"to": "Oslo"}\nresult: [7]',
    f"assistant:\n{TALK[2].content}",
)
"""The conversation as the judge sees it."""
LISTED = {"steps": list(STEPS)}


def review(complete: str, feasible: str, ordered: str, economical: str) -> dict[str, Any]:
    words = {"complete": complete, "feasible": feasible, "ordered": ordered, "economical": economical}
    return {
        name: {"reason": "so", "problems": [] if word == "yes" else [f"not {name} enough"], "verdict": word}
        for name, word in words.items()
    }


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("yes", "yes", "yes", "yes"), 1),
        (("no", "no", "no", "no"), 0),
        (("yes", "partly", "yes", "no"), 2.5 / 4),
        (("partly", "partly", "no", "yes"), 2 / 4),
    ],
)
def test_the_score_is_the_mean_over_the_four_criteria(words: tuple[str, str, str, str], value: float):
    assert score_of(PlanQuality(scale=10), SAMPLE, [LISTED, review(*words)]).value == pytest.approx(10 * value)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ("yes", "partly", "yes", "no"),
            "The plan of 2 steps is complete: yes, feasible: partly, ordered: yes, economical: no; "
            "not feasible: “not feasible enough”; not economical: “not economical enough”.",
        ),
        (
            ("yes", "yes", "yes", "yes"),
            "The plan of 2 steps is complete: yes, feasible: yes, ordered: yes, economical: yes.",
        ),
    ],
)
def test_the_reason_names_the_verdicts_and_the_problems_and_the_evidence_has_the_plan(
    words: tuple[str, str, str, str], reason: str
):
    given = review(*words)
    score = score_of(PlanQuality(), SAMPLE, [LISTED, given])
    assert score.reason == reason
    assert score.evidence["plan"] == STEPS
    assert score.evidence["feasible"] == given["feasible"] | {"problems": tuple(given["feasible"]["problems"])}


def test_the_plan_is_looked_for_in_messages_thinking_and_calls_and_judged_by_the_task_alone():
    scorer = PlanQuality(tools=["search", {"name": "book", "description": "books a flight"}])
    _, judge = record_of(scorer, SAMPLE, [LISTED, review("yes", "yes", "yes", "yes")])
    listed, judged = judge.asked
    assert listed == ListPlan(conversation=SHOWN)
    assert isinstance(judged, JudgePlan)
    assert judged.task.endswith(f" {TALK[0].content}")
    assert (judged.plan, judged.tools) == (STEPS, ("search", "book: books a flight"))


def test_a_plan_in_the_state_is_taken_and_one_in_words_is_listed():
    good = review("yes", "yes", "yes", "yes")
    book = {"content": "Book", "status": "pending"}
    for plan in (["Search", book], ("Search", " ", book)):
        _, judge = record_of(PlanQuality(), Sample(messages=TALK, state={"plan": plan}), [good])
        [question] = judge.asked
        assert cast(JudgePlan, question).plan == ("Search", json.dumps(book))
    _, judge = record_of(
        PlanQuality(), Sample(messages=TALK, state={"plan": f"{STEPS[0]}. {STEPS[1]}."}), [LISTED, good]
    )
    assert judge.asked[0] == ListPlan(conversation=(f"assistant:\n{STEPS[0]}. {STEPS[1]}.",))


def test_the_task_is_the_goal_in_the_metadata():
    sample = Sample(messages=TALK, metadata={"goal": ["A flight", "A seat"]}, state={"plan": ["Search"]})
    _, judge = record_of(PlanQuality(), sample, [review("yes", "yes", "yes", "yes")])
    assert cast(JudgePlan, judge.asked[0]).task == "A flight\nA seat"


def test_quality_and_adherence_share_the_search_for_the_plan():
    judge = ScriptedJudge(
        {
            "list_plan": LISTED,
            "judge_plan": review("yes", "yes", "yes", "yes"),
            "judge_execution": {
                "plan": {n: {"reason": "so", "passages": [], "verdict": "not_done"} for n in "12"},
                "unplanned": [],
            },
        }
    )
    run = evaluate([SAMPLE], ["plan_quality", "plan_adherence"], judge=judge, ledger=None)
    assert (run["plan_quality"].mean, run["plan_adherence"].mean) == (1, 0)
    assert sorted(question.kind for question in judge.asked) == ["judge_execution", "judge_plan", "list_plan"]
