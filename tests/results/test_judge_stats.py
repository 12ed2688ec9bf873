"""Statistics of composite judges: each question counts once, and intervals know which belong together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from evalstone import Record, Score
from evalstone.results.judge_stats import JudgeStats
from evalstone.stats import mean_interval
from evalstone.types import JudgeCall, Outcome


def record(outcome: Outcome, *calls: JudgeCall, sample: str = "s", **more: Any) -> Record:
    return Record(sample_id=sample, scorer="f", signature="f@1", outcome=outcome, calls=calls, **more)


def call(answer: Any = "a", **more: Any) -> JudgeCall:
    fields: dict[str, Any] = {"question": "q", "fingerprint": "p", "judge": "j", "answer": answer, **more}
    return JudgeCall(**fields)


def escalated(share: float, costs: Sequence[float | None] = (), *, source: Any = "asked", **more: Any) -> JudgeCall:
    members = (call(judge="small"), *(call(judge="big", cost=cost, source=source) for cost in costs))
    return call(
        judge="cascade", members=members, detail={"kind": "cascade", "fallback": "big", "escalated": share}, **more
    )


def stats_of(*records: Record) -> dict[str, dict[str, Any]]:
    stats = JudgeStats()
    for each in records:
        stats.add(each)
    return stats.to_dict()


def test_a_question_to_a_composite_judge_counts_once_and_no_two_are_taken_for_one() -> None:
    found = stats_of(
        record(Score(1.0), escalated(0.0, fingerprint="a"), escalated(0.0, fingerprint="a")),
        record(Score(1.0), escalated(0.0, fingerprint="a"), sample="t"),
        record(Score(1.0), escalated(0.0, fingerprint="a", repeat_index=1), sample="\ud83d"),
        record(Score(1.0), replace(escalated(0.0, fingerprint="a"), judge="cascade2")),
        record(Score(1.0), replace(escalated(0.0, fingerprint="2a"), judge="cascade")),
    )
    assert {judge: stats["questions"] for judge, stats in found.items()} == {"cascade": 3, "cascade2": 1}


def test_the_questions_about_a_sample_or_a_group_are_a_cluster() -> None:
    shares = [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    places = [("s", None), ("s", None), ("t", None), ("t", None), ("u", "s"), ("v", "s")]
    found = stats_of(
        *(
            record(Score(1.0), escalated(share, fingerprint=str(number)), sample=sample, group=group)
            for number, (share, (sample, group)) in enumerate(zip(shares, places, strict=True))
        )
    )["cascade"]
    interval = mean_interval(shares, low=0.0, high=1.0, groups=[0, 0, 1, 1, 2, 2])
    assert interval is not None
    assert (found["escalated"], found["share"], found["share_interval"]) == (4.0, 4 / 6, [interval.low, interval.high])


@pytest.mark.parametrize(
    ("costs", "source", "saved"),
    [
        ([(0.25,), (0.75,)], "asked", 1.5),
        ([(0.25,), (None,)], "asked", None),
        ([(0.25,), (0.75,)], "cached", None),
        ([], "asked", None),
    ],
)
def test_a_cascade_saves_what_its_fallback_would_have_cost(
    costs: list[tuple[float | None]], source: str, saved: float | None
) -> None:
    kept = [escalated(0.0, fingerprint=f"kept {number}") for number in range(3)]
    sent = [escalated(1.0, each, source=source, fingerprint=f"sent {number}") for number, each in enumerate(costs)]
    found = stats_of(record(Score(1.0), *kept, *sent))["cascade"]
    assert (found["saved_calls"], found["saved_cost"], found["fallback"]) == (3, saved, "big")


def test_the_price_of_a_kind_of_question_is_that_of_this_kind() -> None:
    cheap = [escalated(0.0, question="a", fingerprint="1"), escalated(1.0, [0.25], question="a", fingerprint="2")]
    dear = [escalated(0.0, question="b", fingerprint="3"), escalated(1.0, [2.0], question="b", fingerprint="4")]
    assert stats_of(record(Score(1.0), *cheap, *dear, dear[0]))["cascade"]["saved_cost"] == 2.25
    alone = escalated(1.0, [None], question="c", fingerprint="5")  # nothing of this kind was saved
    assert stats_of(record(Score(1.0), *cheap, alone))["cascade"]["saved_cost"] == 0.25


def test_composite_judges_in_composite_judges_have_statistics_of_their_own() -> None:
    inner = call(judge="inner", detail={"kind": "panel", "verdicts": [{"agreement": 0.5, "entropy": 1.0}]})
    outer = replace(escalated(1.0), members=(call(judge="small"), inner))
    found = stats_of(record(Score(1.0), outer))
    assert (found["inner"]["agreement"], found["inner"]["questions"], found["cascade"]["escalated"]) == (0.5, 1, 1.0)


def test_an_aligned_judge_says_what_its_alignment_did() -> None:
    asked = [{"left_out": 1}, {"left_out": 2, "changed": True}, {"changed": True}, {"changed": True}, {}]
    calls = [
        call(judge="aligned", fingerprint=str(number), detail={"kind": "aligned", **detail})
        for number, detail in enumerate(asked)
    ]
    expected = {"kind": "aligned", "questions": 5, "left_out": 2, "changed": 3}
    assert stats_of(record(Score(1.0), *calls))["aligned"] == expected


def test_the_rows_of_other_statistics_count_each_question_once() -> None:
    rows = [list[Sequence[Any]](), list[Sequence[Any]]()]
    calls = [
        escalated(0.5, [0.25], fingerprint="a"),
        escalated(0.0, fingerprint="b"),
        call(judge="p", detail={"kind": "panel", "verdicts": [{"agreement": 0.5, "entropy": 1.0}]}),
        call(judge="l", detail={"kind": "aligned", "changed": True}),
    ]
    together, merged = JudgeStats(), JudgeStats()
    parts = [JudgeStats(own) for own in rows]
    for number, each in enumerate([*calls, calls[0], calls[2]]):
        one = record(Score(1.0), each, sample=f"s{number % len(calls)}")
        together.add(one)
        parts[number % 2].add(one)
        parts[1].add(one)
    for row in json.loads(json.dumps([*rows[0], *rows[1]])):
        merged.add_row(row)
    assert [len(own) for own in rows] == [2, 4]
    assert merged.to_dict() == together.to_dict()
    assert merged.to_dict()["cascade"]["questions"] == 2


@pytest.mark.parametrize("kind", ["panel", "self_consistency"])
def test_agreement_is_a_mean_over_verdicts(kind: str) -> None:
    full, split = {"agreement": 1.0, "entropy": 0.0}, {"agreement": 0.5, "entropy": 0.75}
    votes = [[full, full, {"agreement": None}], [split], []]
    silent = [{"j #2": "no reply", "j #3": "no reply"}, {}, {}]
    calls = [
        call(
            judge=kind,
            fingerprint=str(number),
            detail={"kind": kind, "verdicts": verdicts, "no_answer": silent[number]},
        )
        for number, verdicts in enumerate(votes)
    ]
    found = stats_of(*(record(Score(1.0), each, sample=each.fingerprint) for each in calls))[kind]
    assert (found["questions"], found["verdicts"], found["numbers"]) == (3, 3, 1)
    assert (found["agreement"], found["entropy"], found["no_answer"]) == (2.5 / 3, 0.25, {"j": 2})
    assert ("flip_rate" in found) is (kind == "self_consistency")
    assert found.get("flip_rate", 1 - 2.5 / 3) == 1 - 2.5 / 3
