from __future__ import annotations

import json
from typing import Any, cast

import pytest

from evalstone import evaluate
from evalstone.errors import ConfigError
from evalstone.judges import ScriptedJudge
from evalstone.questions.base import Question
from evalstone.questions.preference import ComparePair, Preference
from evalstone.scorers import Pairwise
from evalstone.scorers.pairwise import verdict_of
from evalstone.types import Failed, Sample
from tests.fakes import outcome_of, record_of, score_of

SAMPLE = Sample(input="Where is Oslo?", output="In Norway.", reference="Up north.", metadata={"other": "In Sweden."})


def reply(better: str, reason: str = "It names the country.") -> str:
    return json.dumps({"reason": reason, "better": better})


def preferring(text: str) -> Any:
    """A judge that likes one text, wherever it stands."""

    def script(question: Question[Any]) -> str:
        return reply("first" if cast(ComparePair, question).first_answer == text else "second")

    return script


def always(better: str) -> Any:
    """A judge that looks at the place alone."""

    def script(question: Question[Any]) -> str:
        return reply(better)

    return script


@pytest.mark.parametrize(
    ("first", "second", "preferred", "consistent", "position"),
    [
        ("first", "second", "output", True, None),
        ("second", "first", "other", True, None),
        ("tie", "tie", "tie", True, None),
        ("first", "first", "tie", False, "first"),
        ("second", "second", "tie", False, "second"),
        ("first", "tie", "tie", False, None),
        ("tie", "first", "tie", False, None),
        ("second", "tie", "tie", False, None),
        ("tie", "second", "tie", False, None),
    ],
)
def test_a_preference_holds_in_both_orders_or_is_a_tie(
    first: Any, second: Any, preferred: str, consistent: bool, position: str | None
):
    verdict = verdict_of(Preference(first), Preference(second))
    assert (verdict.preferred, verdict.consistent, verdict.position) == (preferred, consistent, position)


@pytest.mark.parametrize(
    ("script", "value", "position", "reason"),
    [
        (preferring("In Norway."), 10, None, "The answer is better: It names the country."),
        (preferring("Up north."), 0, None, "The other answer is better: It names the country."),
        *[
            (
                always(place),
                5,
                place,
                f"A tie: the two orders disagree (with the answer first: {place}; with it second: {place}).",
            )
            for place in ("first", "second")
        ],
    ],
)
def test_a_judge_that_prefers_a_place_gives_a_tie_and_the_evidence_names_the_place(
    script: Any, value: float, position: str | None, reason: str
):
    score = score_of(Pairwise(scale=10), SAMPLE, script)
    assert (score.value, score.reason) == (value, reason)
    assert (score.evidence.consistent, score.evidence.position) == (position is None, position)


def test_both_orders_are_asked():
    _, judge = record_of(Pairwise(criterion="It is short."), SAMPLE, always("tie"))
    asked = cast("list[ComparePair]", judge.asked)
    assert [(one.first_answer, one.second_answer, one.criterion) for one in asked] == [
        ("In Norway.", "Up north.", "It is short."),
        ("Up north.", "In Norway.", "It is short."),
    ]
    assert "It is short." in asked[0].render()[1]


def test_equal_texts_are_a_tie_that_nobody_is_asked_about():
    sample = Sample(input="Where?", output="Here.", reference="Here.")
    record, judge = record_of(Pairwise(scale=4), sample, lambda _: pytest.fail("asked"))
    assert (record.value, judge.asked) == (2.0, [])


def test_the_other_answer_may_stand_in_the_metadata():
    scorer = Pairwise(compare_to="other")
    assert scorer.required_fields == ("input", "output", "metadata.other")
    _, judge = record_of(scorer, SAMPLE, always("tie"))
    assert cast(ComparePair, judge.asked[0]).second_answer == "In Sweden."


def test_a_run_has_the_win_rate_and_its_position_bias_can_be_counted():
    samples = [{"input": f"q{n}", "output": f"a{n}", "reference": f"b{n}"} for n in range(4)]

    def script(question: Question[Any]) -> str:
        pair = cast(ComparePair, question)
        if pair.question in ("q0", "q1"):
            return reply("first")
        return reply("first" if pair.first_answer.startswith("a") else "second")

    run = evaluate(samples, "pairwise", judge=ScriptedJudge(script), ledger=None)
    assert run["pairwise"].mean == pytest.approx((0.5 + 0.5 + 1 + 1) / 4)
    evidence = [cast(Any, record.outcome).evidence for record in run]
    assert sum(one["position"] == "first" for one in evidence) == 2
    assert [len(record.calls) for record in run] == [2] * 4


def test_a_reply_that_names_neither_place_fails():
    outcome = outcome_of(Pairwise(), SAMPLE, always("answer A"))
    assert isinstance(outcome, Failed)


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"compare_to": ""}, "compare_to must be text that is not blank"),
        ({"compare_to": 3}, "compare_to must be text"),
        ({"criterion": None}, "criterion must be text"),
    ],
)
def test_a_wrong_parameter_is_refused(parameters: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match=f"pairwise: {told}"):
        Pairwise(**parameters)
