"""A criterion in words."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from evalstone._core.prompts import Prompt
from evalstone.api import evaluate
from evalstone.errors import ConfigError, PromptError
from evalstone.judges import ScriptedJudge
from evalstone.models.provider import Completion
from evalstone.questions.rating import RateByCriterion, Rating, rating_prompt
from evalstone.scorers import GEval
from evalstone.scorers.custom.geval import expected_share
from evalstone.types import Failed, Sample, Skipped
from tests.fakes import outcome_of, record_of, score_of

SAMPLE = Sample(input="q", output="a")
FIXED = GEval("The answer is plain.", steps=["Look for hard words."])
PLAIN_NOTE = "the judge gave no probabilities; this is its plain rating"


def mark(score: Any) -> dict[str, Any]:
    return {"reason": "r", "score": score}


@pytest.mark.parametrize(
    ("levels", "given", "value"),
    [(5, 1, 0), (5, 4, 0.75), (5, 5, 1), (2, 2, 1), (10, 4, 3 / 9), (5, "4", 0.75), (5, 4.0, 0.75)],
)
def test_a_mark_becomes_its_share_of_the_range(levels: int, given: Any, value: float) -> None:
    scorer = GEval("Plain.", steps=[], levels=levels, scale=10)
    assert score_of(scorer, SAMPLE, [mark(given)]).value == value * 10


@pytest.mark.parametrize("given", [0, 6, 4.5, "high", True, None])
def test_a_mark_outside_the_scale_fails(given: Any) -> None:
    assert isinstance(outcome_of(FIXED, SAMPLE, [mark(given)]), Failed)


def test_the_judge_writes_the_steps_once_for_all_samples() -> None:
    judge = ScriptedJudge({"write_steps": {"steps": ["one", "two"]}, "score_by_criterion": mark(4)})
    samples = [{"id": str(n), "input": "q", "output": f"answer {n}"} for n in range(5)]
    run = evaluate(samples, GEval("Plain.", name="plain"), judge=judge, ledger=None)
    kinds = [question.kind for question in judge.asked]
    assert (kinds.count("write_steps"), kinds.count("score_by_criterion")) == (1, 5)
    assert run["plain"].mean == 0.75
    assert next(iter(run)).to_dict()["evidence"]["steps"] == ["one", "two"]
    assert "1. one\n2. two" in judge.asked[-1].render()[0]


def test_steps_of_your_own_are_not_asked_for() -> None:
    record, judge = record_of(FIXED, SAMPLE, [mark(4)])
    assert [call.question for call in record.calls] == ["score_by_criterion"]
    assert "1. Look for hard" in judge.asked[0].render()[0]
    assert [question.kind for question in GEval("x").questions] == ["write_steps", "score_by_criterion"]
    assert [question.kind for question in FIXED.questions] == ["score_by_criterion"]


def test_steps_that_a_judge_wrote_bring_no_placeholder_with_them() -> None:
    script = {"write_steps": {"steps": ["Compare {{output}} with {{secret}}."]}, "score_by_criterion": mark(5)}
    record, judge = record_of(GEval("Plain."), SAMPLE, script)
    assert record.value == 1
    assert "{{" not in judge.asked[1].render()[0]


@pytest.mark.parametrize("steps", [[], ["", " "]])
def test_no_steps_at_all_are_no_answer(steps: list[str]) -> None:
    assert isinstance(outcome_of(GEval("Plain."), SAMPLE, [{"steps": steps}]), Failed)


def test_a_weighted_mark_is_the_mean_by_probability() -> None:
    scorer = GEval("Plain.", steps=[], weighted=True)
    reply = Completion('{"reason": "r", "score": 4}', alternatives={"4": 0.6, "5": 0.3})
    score = score_of(scorer, SAMPLE, [reply])
    assert score.value == pytest.approx(((4 * 0.6 + 5 * 0.3) / 0.9 - 1) / 4)
    assert score.evidence.probabilities == pytest.approx({"4": 2 / 3, "5": 1 / 3})
    assert score.evidence.rating == pytest.approx(13 / 3)
    assert score.evidence.note.startswith("weighted by")


@pytest.mark.parametrize("alternatives", [None, {}, {"5": 0.9}])
def test_without_probabilities_of_the_mark_itself_the_plain_mark_stands_and_the_evidence_says_so(
    alternatives: dict[str, float] | None,
) -> None:
    scorer = GEval("Plain.", steps=[], weighted=True)
    score = score_of(scorer, SAMPLE, [Completion('{"reason": "r", "score": 4}', alternatives=alternatives)])
    assert score.value == 0.75
    assert score.evidence.note == PLAIN_NOTE


def test_the_mean_mark_is_over_the_probability_that_the_marks_have_together() -> None:
    assert expected_share({"1": 0.2, "3": 0.2}, 5) == pytest.approx(0.25)
    assert expected_share({"5": 0.3}, 5) == 1


def test_what_is_no_mark_or_no_probability_is_left_out_and_the_rest_is_normalised() -> None:
    question = RateByCriterion(
        values=(("output", "x"),), prompt=Prompt("", "{{output}}"), levels=5, by_probability=True
    )
    given = {"9": 0.5, "0": 0.2, "4": 0.3, "5": 0.1, "3": 1.5, "2": -0.1, "1": float("nan")}
    assert question.with_probabilities(Rating(4), given).probabilities == pytest.approx({"4": 0.75, "5": 0.25})
    assert question.with_probabilities(Rating(3), given) == Rating(3)
    assert question.with_probabilities(Rating(4), {"4": 0.0}) == Rating(4)


def test_a_weighted_mark_never_leaves_the_range() -> None:
    scorer = GEval("Plain.", steps=[], weighted=True)
    for probability in (0.1, 0.3, 0.7, 0.9):
        reply = Completion('{"reason": "r", "score": 5}', alternatives={"5": probability})
        assert score_of(scorer, SAMPLE, [reply]).value == 1


def test_fields_say_what_is_shown_and_needed() -> None:
    scorer = GEval("It follows the passages.", fields=["context", "output"])
    assert scorer.required_fields == ("context", "output")
    assert outcome_of(scorer, SAMPLE, []) == Skipped(f"{scorer.name} needs context (or tool results in messages)")


@pytest.mark.parametrize(
    ("text", "options", "error", "told"),
    [
        ("Plain.", {"levels": 1}, ConfigError, "levels must be a whole number from 2 to 100"),
        ("Plain.", {"levels": 101}, ConfigError, "levels must be a whole number from 2 to 100"),
        ("Plain.", {"levels": True}, ConfigError, "levels must be a whole number"),
        ("Plain.", {"levels": 5.0}, ConfigError, "levels must be a whole number"),
        ("Plain.", {"steps": "one"}, ConfigError, "steps must be a list"),
        ("Plain.", {"steps": ["", " "]}, ConfigError, r"texts that are not blank, not \['', ' '\]"),
        ("Plain.", {"steps": ["one", 2]}, ConfigError, r"texts that are not blank, not \['one', 2\]"),
        ("Plain.", {"fields": []}, ConfigError, "fields is empty"),
        ("Plain.", {"fields": ["answer"]}, ConfigError, "unknown sample field 'answer'"),
        (" ", {}, ConfigError, "text must be text that is not blank"),
        ("{{output}} is plain.", {}, PromptError, "has the placeholder {{output}}"),
    ],
)
def test_wrong_options_are_refused(text: str, options: dict[str, Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        GEval(text, **options)


def test_it_is_a_value_with_a_signature_of_all_that_counts() -> None:
    made = [
        GEval("Plain.", name="c"),
        GEval("Short.", name="c"),
        GEval("Plain.", name="c", steps=[]),
        GEval("Plain.", name="c", steps=["one"]),
        GEval("Plain.", name="c", levels=4),
        GEval("Plain.", name="c", weighted=True),
        GEval("Plain.", name="c", fields=["output"]),
        GEval("Plain.", name="c", lower_is_better=True),
    ]
    assert len({scorer.signature for scorer in made}) == len(made)
    for scorer in made:
        assert pickle.loads(pickle.dumps(scorer)) == scorer
        assert hash(scorer) == hash(pickle.loads(pickle.dumps(scorer)))
    assert GEval("It is plain.").name == "it_is_plain"


def test_with_two_marks_what_is_met_in_part_has_the_lower_one() -> None:
    two, three = (rating_prompt("Plain.", (), levels, "{{output}}").instructions for levels in (2, 3))
    (lowest,) = (line for line in two.splitlines() if line.startswith("1 if"))
    assert "only in part" in lowest
    assert "small thing is 2" in three
