from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.errors import ConfigError
from evalstone.questions import PassageRating, PassageRatings, RatePassages
from evalstone.questions.relevance import LEVELS, RelevanceLevel
from evalstone.scorers import ContextRelevance, Penalties
from evalstone.scorers.rag.context_relevance import WEIGHTS, relevance
from evalstone.types import Sample
from tests.fakes import ratings, record_of, score_of

SAMPLE = Sample(input="q", output="a", context=["p1", "p2", "p3", "p4", "p5"])
WORKED = ratings(("high", True), ("high", True), ("high", False), ("medium", True), ("none", False))
LENIENT = Penalties(unused=0.05)


def one(level: Any, used: bool = True) -> PassageRating:
    return PassageRating(1, level, used)


def test_the_worked_example_is_0_64_by_default_and_0_69_when_lenient():
    assert score_of(ContextRelevance(), SAMPLE, [WORKED]).value == pytest.approx(0.64)
    assert score_of(ContextRelevance(penalties=LENIENT), SAMPLE, [WORKED]).value == pytest.approx(0.69)
    assert score_of(ContextRelevance(scale=100), SAMPLE, [WORKED]).value == pytest.approx(64)


@pytest.mark.parametrize(
    ("passages", "default", "lenient"),
    [
        ([("high", True), ("high", False), ("medium", True), ("medium", True), ("low", True)], 0.64, 0.69),
        ([("high", True), ("high", True), ("none", False), ("none", False), ("high", False)], 0.50, 0.55),
        ([("high", True)] * 5, 1.0, 1.0),
        ([("high", True), ("low", False), ("none", False), ("none", False), ("none", False)], 0.26, 0.26),
        ([("none", False), ("none", True), ("none", False), ("none", False), ("high", True)], 0.2, 0.2),
        ([("medium", False), ("low", False), ("none", False), ("low", False), ("none", False)], 0.26, 0.26),
        ([("high", False)] * 5, 0.5, 0.75),
    ],
)
def test_the_documented_numbers_of_the_source(passages: list[tuple[str, bool]], default: float, lenient: float):
    assert score_of(ContextRelevance(), SAMPLE, [ratings(*passages)]).value == pytest.approx(default)
    assert score_of(ContextRelevance(penalties=LENIENT), SAMPLE, [ratings(*passages)]).value == pytest.approx(lenient)


@pytest.mark.parametrize(("missing", "expected"), [(0, 1.0), (1, 0.85), (2, 0.7), (3, 0.55), (4, 0.5), (40, 0.5)])
def test_each_missing_piece_costs_0_15_up_to_one_half(missing: int, expected: float):
    found = PassageRatings((one("high"),), tuple(f"piece {n}" for n in range(missing)))
    assert relevance(found, WEIGHTS, Penalties()) == pytest.approx(expected)


@pytest.mark.parametrize(("level", "weight"), [("high", 1.0), ("medium", 0.7), ("low", 0.3), ("none", 0.0)])
def test_each_level_has_its_weight_and_only_high_is_penalised_for_being_unused(level: RelevanceLevel, weight: float):
    assert relevance(PassageRatings((one(level, True),)), WEIGHTS, Penalties()) == weight
    penalty = 0.1 if level == "high" else 0
    assert relevance(PassageRatings((one(level, False),)), WEIGHTS, Penalties()) == pytest.approx(weight - penalty)


def test_the_score_stops_at_zero():
    assert relevance(PassageRatings((one("none"),), ("x", "y")), WEIGHTS, Penalties()) == 0
    assert score_of(ContextRelevance(), SAMPLE, [ratings(*[("low", False)] * 5, missing=["x", "y", "z"])]).value == 0


levels = st.lists(st.tuples(st.sampled_from(LEVELS), st.booleans()), min_size=1, max_size=12)


@given(levels, st.integers(0, 9))
def test_the_score_is_the_formula_in_the_documentation(passages: list[tuple[RelevanceLevel, bool]], missing: int):
    found = PassageRatings(tuple(one(level, used) for level, used in passages), ("x",) * missing)
    base = sum({"high": 1, "medium": 0.7, "low": 0.3, "none": 0}[level] for level, _ in passages) / len(passages)
    unused = 0.1 * passages.count(("high", False))
    expected = max(0, base - unused - min(0.15 * missing, 0.5))
    assert relevance(found, WEIGHTS, Penalties()) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("penalties", "passages", "missing", "reason"),
    [
        (Penalties(), [("high", True)] * 5, [], "high: passage 1, 2, 3, 4, 5; used: 1, 2, 3, 4, 5."),
        (
            Penalties(),
            [("high", True), ("high", True), ("high", False), ("medium", True), ("none", False)],
            ["the year", "the place"],
            "high: passage 1, 2, 3; medium: passage 4; none: passage 5; used: 1, 2, 4; "
            "-0.1 for high but unused: 3; -0.3 for missing: “the year”; “the place”.",
        ),
        (
            LENIENT,
            [("high", False)] * 5,
            ["a", "b", "c", "d", "e"],
            "high: passage 1, 2, 3, 4, 5; none was used; "
            "-0.25 for high but unused: 1, 2, 3, 4, 5; -0.5 for missing: “a”; “b”; “c”; and 2 more.",
        ),
    ],
)
def test_the_reason_names_the_level_of_every_passage_which_were_used_and_what_was_taken_off_for_what(
    penalties: Penalties, passages: list[tuple[str, bool]], missing: list[str], reason: str
):
    score = score_of(ContextRelevance(penalties=penalties), SAMPLE, [ratings(*passages, missing=missing)])
    assert score.value == pytest.approx(relevance(score.evidence, WEIGHTS, penalties))
    assert score.reason == reason
    assert [(r.passage, r.level, r.used) for r in score.evidence.passages] == [
        (number, level, used) for number, (level, used) in enumerate(passages, start=1)
    ]
    assert score.evidence.missing == tuple(missing)


def test_other_weights_count():
    scorer = ContextRelevance(high=0.9, medium=0.5, low=0.25, none=0.1)
    reply = ratings(("high", True), ("medium", True), ("low", True), ("none", True), ("none", True))
    assert score_of(scorer, SAMPLE, [reply]).value == pytest.approx((0.9 + 0.5 + 0.25 + 0.2) / 5)


def test_an_empty_list_of_passages_has_the_full_scale_and_says_why_and_nothing_is_asked():
    record, judge = record_of(ContextRelevance(scale=10), Sample(input="q", output="a", context=[]), [])
    assert record.value == 10
    assert "No passages" in record.to_dict()["reason"]
    assert judge.asked == []


def test_it_asks_one_question():
    _, judge = record_of(ContextRelevance(), SAMPLE, [WORKED])
    assert judge.asked == [RatePassages(question="q", answer="a", context=("p1", "p2", "p3", "p4", "p5"))]


def test_penalties_may_be_a_table_as_in_a_configuration_file():
    made = ContextRelevance(penalties={"unused": 0.2})
    assert made == ContextRelevance(penalties=Penalties(unused=0.2))
    assert made.signature == ContextRelevance(penalties=Penalties(unused=0.2)).signature
    assert hash(made) == hash(ContextRelevance(penalties=Penalties(unused=0.2)))


def test_penalties_that_are_none_are_refused_when_the_scorer_is_made():
    with pytest.raises(ConfigError, match=r"penalties: .* 'unusd'"):
        ContextRelevance(penalties={"unusd": 0.2})
