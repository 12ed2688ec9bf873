from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from evalstone.questions import JudgeRobustness, NoiseImpact, Robustness
from evalstone.questions.robustness import DIMENSIONS
from evalstone.scorers import NoiseSensitivity
from evalstone.types import Failed, Sample, Skipped
from tests.fakes import outcome_of, record_of, score_of

SCORER = NoiseSensitivity(baseline="In 1815.", noisy_query="When, in 1816, was Ada born?", noise="misinformation")
UNHARMED = {"reason": "because", "impact": "none"}
SAMPLE = Sample(input="When was Ada born?", output="In 1815, not in 1816.")


def judged(number: float, *impacts: str, issues: list[str] | None = None) -> dict[str, Any]:
    dimensions = [
        {"reason": "because", "dimension": name, "impact": impact}
        for name, impact in zip(DIMENSIONS, impacts, strict=False)
    ]
    return {"dimensions": dimensions, "issues": issues or [], "robustness": number}


def by_name(impact: str) -> dict[str, Any]:
    return {
        "dimensions": {name: {"reason": "because", "impact": impact} for name in DIMENSIONS},
        "issues": [],
        "robustness": 1,
    }


def found(number: float, *impacts: Any, issues: int = 0) -> Robustness:
    dimensions = tuple(NoiseImpact("because", name, impact) for name, impact in zip(DIMENSIONS, impacts, strict=False))
    return Robustness(dimensions, ("x",) * issues, number)


@pytest.mark.parametrize(
    ("judgement", "expected"),
    [
        (found(0.9, "none", "none"), 0.9),
        (found(0.9, "none", "moderate"), 0.9),
        (found(0.9, "moderate", "moderate"), 0.6),
        (found(0.2, "none", "none"), 0.2),
        (found(0.85, "none", "minimal", "moderate", "significant", "severe"), 0.57),
        (found(0.9), 0.9),
        (found(0.9, issues=1), 0.8),
        (found(0.9, issues=3), 0.6),
        (found(0.9, issues=9), 0.6),
        (found(0.1, issues=2), 0.0),
        (found(1.7, "none"), 1.0),
        (found(-0.4, "none"), 0.0),
    ],
)
def test_the_formula_on_small_cases(judgement: Robustness, expected: float):
    assert SCORER.robustness(judgement) == pytest.approx(expected)


def test_every_figure_counts():
    scorer = NoiseSensitivity(severe=0.5, none=0.9, discrepancy=0.05, issue=0.2, issue_limit=0.25)
    assert scorer.robustness(found(0.8, "severe", "none", issues=1)) == pytest.approx(0.7 - 0.2)
    assert scorer.robustness(found(0.8, "severe", "none", issues=2)) == pytest.approx(0.7 - 0.25)


@pytest.mark.parametrize(
    ("reply", "value", "reason"),
    [
        (
            judged(0.5, "severe", "none", "moderate", "none", "none", issues=["it took up 1816"]),
            0.4,
            "the judge's number is 0.5; severe: content_accuracy; moderate: relevance; "
            "none: completeness, consistency, hallucination_resistance; grave issues: “it took up 1816”.",
        ),
        (judged(1, "none", "none"), 1, "the judge's number is 1; none: content_accuracy, completeness."),
    ],
)
def test_the_reason_names_the_number_the_dimensions_that_suffered_and_the_issues(
    reply: dict[str, Any], value: float, reason: str
):
    score = score_of(SCORER, SAMPLE, [reply])
    assert (score.value, score.reason) == (pytest.approx(value), reason)


def test_the_question_holds_both_questions_both_answers_and_the_kind_of_noise():
    _, judge = record_of(SCORER, SAMPLE, [judged(1)])
    assert judge.asked == [
        JudgeRobustness(
            question=SAMPLE.input or "",
            baseline=SCORER.baseline or "",
            noisy_question=SCORER.noisy_query or "",
            answer=SAMPLE.output or "",
            noise=SCORER.noise,
        )
    ]


def test_baseline_and_noisy_question_can_come_from_the_sample():
    sample = Sample(input="q", output="a", reference="b", metadata={"noisy_query": "n"})
    _, judge = record_of(NoiseSensitivity(), sample, [judged(1)])
    assert judge.asked == [
        JudgeRobustness(question="q", baseline="b", noisy_question="n", answer="a", noise="not named")
    ]


@pytest.mark.parametrize(
    ("sample", "told"),
    [(Sample(input="", output="a"), "the question is empty"), (Sample(input="q", output=""), "the answer is empty")],
)
def test_an_empty_question_or_answer_is_skipped_and_by_mastra_an_error(sample: Sample, told: str):
    assert isinstance(outcome_of(SCORER, sample, []), Skipped)
    outcome = outcome_of(replace(SCORER, definition="mastra"), sample, [])
    assert isinstance(outcome, Failed)
    assert told in outcome.error


@pytest.mark.parametrize(
    "reply",
    [
        {"dimensions": [], "issues": []},
        judged(cast(Any, "high")),
        judged(cast(Any, True)),
        judged(0.5, "strong"),
        '{"dimensions": [], "issues": [], "robustness": 1e999}',
        by_name("none") | {"dimensions": [{"reason": "x", "dimension": "relevance", "impact": "none"}] * 2},
        by_name("none") | {"dimensions": {"relevance": UNHARMED}},
        by_name("none") | {"dimensions": dict.fromkeys((*DIMENSIONS, "tone"), UNHARMED)},
        by_name("strong"),
    ],
)
def test_a_reply_that_is_none_fails(reply: Any):
    assert isinstance(outcome_of(SCORER, SAMPLE, [reply]), Failed)


def test_dimensions_are_asked_for_by_name_with_the_reason_first():
    _, judge = record_of(SCORER, SAMPLE, [by_name("none")])
    schema: Any = judge.asked[0].json_schema
    members = schema["properties"]["dimensions"]
    assert tuple(members["properties"]) == tuple(members["required"]) == DIMENSIONS
    assert all(item == {"$ref": "#/$defs/impact"} for item in members["properties"].values())
    assert list(schema["$defs"]["impact"]["properties"]) == ["reason", "impact"]


def test_dimensions_by_name_and_in_a_list_give_the_same_score():
    named = score_of(SCORER, SAMPLE, [by_name("moderate")])
    assert named.value == pytest.approx(0.6)
    assert named == score_of(SCORER, SAMPLE, [judged(1, *["moderate"] * 5)])


def test_a_list_may_have_other_dimensions_but_none_twice():
    dimensions = [{"reason": "r", "dimension": name, "impact": "severe"} for name in ("tone", "safety")]
    reply = {"dimensions": dimensions, "issues": [], "robustness": 1}
    assert score_of(SCORER, SAMPLE, [reply]).value == pytest.approx(0.1)


def test_an_object_without_any_dimension_is_no_answer():
    reply: dict[str, Any] = {"dimensions": {}, "issues": [], "robustness": 1}
    outcome = outcome_of(SCORER, SAMPLE, [reply])
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith(f"dimensions: missing: {', '.join(DIMENSIONS)} ")
