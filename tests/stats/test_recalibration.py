from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.errors import DataError
from evalstone.stats.recalibration import Isotonic, Platt, isotonic, platt, recalibration_from

CASES = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30)


def test_a_logistic_curve_is_the_one_of_greatest_likelihood():
    draw = random.Random(1)
    scores = [draw.random() for _ in range(300)]
    truths = [draw.random() < 1 / (1 + math.exp(3 - 5 * score)) for score in scores]
    found = platt(scores, truths)
    positives = sum(truths)
    high, low = (positives + 1) / (positives + 2), 1 / (300 - positives + 2)
    errors = [found(s) - (high if t else low) for s, t in zip(scores, truths, strict=True)]
    assert math.fsum(errors) == pytest.approx(0, abs=1e-6)
    assert math.fsum(e * s for e, s in zip(errors, scores, strict=True)) == pytest.approx(0, abs=1e-6)
    assert found.slope == pytest.approx(5, abs=1.2)


def test_scores_that_separate_leave_the_curve_finite():
    found = platt([0.1, 0.2, 0.8, 0.9], [False, False, True, True])
    assert math.isfinite(found.slope)
    # two of each: the targets are 1/4 and 3/4
    assert found(0.1) < 0.5 < found(0.9) < 0.9


def test_scores_that_are_all_equal_give_the_smoothed_base_rate():
    # one of four, smoothed: mean of 2/3 and three times 1/5
    assert platt([0.5] * 4, [True, False, False, False])(0.5) == pytest.approx((2 / 3 + 3 / 5) / 4, abs=1e-6)


@given(CASES)
def test_every_mapping_gives_probabilities_and_comes_back_from_its_data(cases: list[tuple[float, bool]]):
    scores, truths = [score for score, _ in cases], [truth for _, truth in cases]
    for found in (platt(scores, truths), isotonic(scores, truths)):
        assert all(0 <= found(score) <= 1 for score in [*scores, 0.0, 0.5, 1.0])
        assert recalibration_from(found.to_dict()) == found


def test_isotonic_steps_pool_what_falls():
    # 0, 1, 0, 1, 1 pools the second and the third to 1/2
    found = isotonic([1, 2, 3, 4, 5], [False, True, False, True, True])
    assert found == Isotonic(((1, 0), (2, 0.5), (3, 0.5), (4, 1), (5, 1)))
    assert [found(score) for score in (0, 1.5, 2.5, 3.5, 9)] == [0, 0.25, 0.5, 0.75, 1]


def test_isotonic_takes_cases_of_one_score_together():
    found = isotonic([1, 1, 1, 2], [True, False, False, True])
    assert found.corners == ((1, pytest.approx(1 / 3)), (2, 1))


@given(CASES)
def test_isotonic_never_falls_and_keeps_the_base_rate(cases: list[tuple[float, bool]]):
    scores, truths = [score for score, _ in cases], [truth for _, truth in cases]
    found = isotonic(scores, truths)
    heights = [height for _, height in found.corners]
    assert heights == sorted(heights)
    assert math.fsum(map(found, scores)) == pytest.approx(sum(truths))


@pytest.mark.parametrize("fit", [platt, isotonic])
def test_nothing_is_learned_from_nothing_or_from_lists_that_do_not_fit(fit: object):
    assert callable(fit)
    with pytest.raises(DataError, match="from no cases"):
        fit([], [])
    with pytest.raises(DataError, match="1 scores, 0 truths"):
        fit([1], [])


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"kind": "platt", "slope": "1"},
        {"kind": "isotonic", "corners": []},
        3,
        {"kind": "platt", "slope": math.nan, "intercept": 0},
        {"kind": "isotonic", "corners": [[0, 0.5], [1, 0.2]]},
        {"kind": "isotonic", "corners": [[0, 1.5]]},
    ],
)
def test_what_is_no_mapping_is_refused(data: object):
    with pytest.raises(DataError, match="a mapping is platt"):
        recalibration_from(data)


def test_a_curve_does_not_overflow():
    assert Platt(1e6, 0)(1) == 1
    assert Platt(-1e6, 0)(1) == 0
