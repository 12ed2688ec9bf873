"""Thresholds with a certified share of wrong verdicts among the kept ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binomtest

from evalstone.stats.selective_risk import certified_threshold, fewest, short_threshold, upper_bound, why_not_certified


@pytest.mark.parametrize(("wrong", "n"), [(0, 1), (0, 59), (1, 60), (7, 100), (50, 100), (99, 100), (100, 100)])
def test_the_bound_is_that_of_clopper_and_pearson(wrong: int, n: int) -> None:
    expected = 1.0 if wrong == n else beta.ppf(0.95, wrong + 1, n - wrong)
    assert upper_bound(wrong, n) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("limit", [0.01, 0.05, 0.2, 0.5])
def test_the_fewest_right_verdicts_that_show_a_limit(limit: float) -> None:
    n = fewest(limit)
    assert upper_bound(0, n) <= limit < upper_bound(0, n - 1)


def test_the_lowest_threshold_before_the_first_one_that_is_not_shown() -> None:
    # 60 right ones at .9, 40 at .8 of which one is wrong, then 20 wrong ones at .7, and 1,000 right ones at .6.
    probabilities = [0.9] * 60 + [0.8] * 40 + [0.7] * 20 + [0.6] * 1000 + [None] * 80
    wrong = [False] * 60 + [True] + [False] * 39 + [True] * 20 + [False] * 1000 + [False] * 80
    found = certified_threshold(probabilities, wrong, 0.05)
    assert found is not None
    assert (found.threshold, found.kept, found.wrong, found.labeled) == (0.8, 100, 1, 1200)
    assert found.share_kept == pytest.approx(1 / 12)
    assert found.bound == pytest.approx(beta.ppf(0.95, 2, 99))
    assert binomtest(1, 100, 0.05, alternative="less").pvalue <= 0.05
    assert certified_threshold(probabilities, wrong, 0.01) is None


def test_too_few_verdicts_and_none_with_a_probability_show_nothing() -> None:
    assert certified_threshold([0.9] * 58, [False] * 58, 0.05) is None
    assert certified_threshold([0.9] * 59, [False] * 59, 0.05) is not None
    assert certified_threshold([None] * 100, [False] * 100, 0.05) is None
    assert certified_threshold([], [], 0.05) is None


@pytest.mark.parametrize("overconfident", [False, True])
def test_the_risk_of_what_is_kept_exceeds_the_limit_in_at_most_one_of_twenty(overconfident: bool) -> None:
    source = np.random.default_rng(1)
    grid = np.linspace(0.5, 1, 51)
    right = 0.45 + 0.5 * grid if overconfident else grid  # P(right | probability)
    exceeded, chosen = 0, 0
    for _ in range(400):
        drawn = source.integers(0, 51, 300)
        wrong = source.random(300) > right[drawn]
        if (found := certified_threshold(grid[drawn].tolist(), wrong.tolist(), 0.1)) is not None:
            chosen += 1
            exceeded += 1 - right[grid >= found.threshold].mean() > 0.1
    assert exceeded <= 30  # 20 are expected at most; more than 30 have a chance of 1 %
    assert chosen > (0 if overconfident else 200)


@pytest.mark.parametrize(
    ("probability", "below", "short"),
    [
        (0.8333333333333333, 0.81, 0.83),
        (0.8333333333333333, 0.8333, 0.83333),
        (0.8333333333333333, 0.5, 0.83),  # near it, whatever is below
        (0.9666666666666667, None, 0.96),
        (1.0, 0.7, 1.0),
        (0.9, 0.8, 0.9),
    ],
)
def test_a_threshold_has_few_digits(probability: float, below: float | None, short: float) -> None:
    assert short_threshold(probability, below) == short


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_short_threshold_keeps_the_same(one: float, other: float) -> None:
    below, probability = sorted((one, other))
    if below < probability:
        assert below < short_threshold(probability, below) <= probability


def test_probabilities_of_numpy_give_a_plain_threshold() -> None:
    found = certified_threshold([np.float64(2 / 3)] * 100, [False] * 100, 0.05)
    assert found is not None
    assert repr(found.threshold) == "0.66"


def test_a_certified_threshold_is_short_and_keeps_the_same() -> None:
    probabilities = [1 - 1 / n for n in range(3, 203)]
    found = certified_threshold(probabilities, [False] * 200, 0.05)
    assert found is not None
    assert (found.threshold, found.kept) == (0.66, 200)


@pytest.mark.parametrize(
    ("right", "wrong", "without", "why"),
    [
        (10, 0, 0, "14 right ones would, 10 are labeled, which can show 25.9% at best"),
        (10, 0, 9, "14 right ones would, and 10 have a probability"),
        (12, 8, 0, "of the 14 with the highest probability, 8 are judged wrongly"),
        (19, 1, 0, "of the 14 with the highest probability, 1 is judged wrongly"),
    ],
)
def test_why_no_threshold_is_shown_is_said(right: int, wrong: int, without: int, why: str) -> None:
    probabilities = [*[0.9] * wrong, *[0.7] * right, *[None] * without]
    errors = [*[True] * wrong, *[False] * (right + without)]
    assert certified_threshold(probabilities, errors, 0.2) is None
    assert why_not_certified(probabilities, errors, 0.2) == why
