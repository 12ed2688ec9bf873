"""The error rates of limits of a mean that missing scores leave known only between two ends."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from evalstone.stats.bounded_mean import EXACT, SHARE, BoundedMean
from evalstone.stats.comparison import compare_pairs
from evalstone.stats.partly_known import PartlyKnown

NORMAL = NormalDist()


def test_ends_that_coincide_share_the_error_rate() -> None:
    for known in (PartlyKnown(0.0), PartlyKnown.of(0.0, 0.1, 0.2), PartlyKnown.of(-1e-17, 0.0)):
        assert (known.error_rate(0.05), known.share) == (0.025, SHARE)
        assert known.p_value(0.04) == pytest.approx(0.04)


def test_ends_that_are_far_apart_have_it_each() -> None:
    for known in (PartlyKnown(8.0), PartlyKnown.of(0.3, 0.0, 0.0), PartlyKnown(math.inf)):
        assert (known.error_rate(0.05), known.share) == (pytest.approx(0.05), EXACT)
        assert known.p_value(0.08) == pytest.approx(0.04)


@pytest.mark.parametrize("distance", [0.01, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.4, 0.8])
def test_both_limits_together_err_in_alpha_wherever_the_mean_is(distance: float, alpha: float) -> None:
    """For normal estimates. Imbens and Manski's equation is that of a mean at one of the ends, which is the worst."""
    rate = PartlyKnown(distance).error_rate(alpha)
    deviate = -NORMAL.inv_cdf(rate)
    errors = [
        NORMAL.cdf(-deviate - distance * place) + NORMAL.cdf(-deviate - distance * (1 - place))
        for place in (0, 0.25, 0.5, 1)
    ]
    assert max(errors) <= alpha + 1e-9
    assert rate == pytest.approx(0.49) or errors[0] == pytest.approx(alpha)


def test_a_p_value_of_alpha_is_that_of_a_limit_at_its_error_rate() -> None:
    known = PartlyKnown(0.7)
    assert known.p_value(2 * known.error_rate(0.05)) == pytest.approx(0.05)
    assert (known.p_value(0.0), known.p_value(1.0)) == (0.0, pytest.approx(0.5 + NORMAL.cdf(-0.7)))


def test_the_distance_is_in_standard_errors_of_the_less_precise_end() -> None:
    lowest = BoundedMean.of([0.0] * 30 + [1.0] * 70, 0, 1)
    highest = BoundedMean.of([0.0] * 20 + [1.0] * 80, 0, 1)
    known = PartlyKnown.between(lowest, highest)
    reach = lowest.mean - lowest.limit(0.025, 1, share=SHARE)
    assert known.distance == pytest.approx(0.1 / reach * NORMAL.inv_cdf(0.975))


@pytest.mark.slow
@pytest.mark.parametrize("pass_fail", [True, False])
def test_the_test_rejects_where_the_interval_excludes_0(pass_fail: bool) -> None:
    source = np.random.default_rng(11)
    decided = 0
    for n in (20, 60, 200):
        for missing in (0.01, 0.05, 0.15):
            for confidence in (0.4, 0.9, 0.95):
                a, b = source.beta(2, 2, n), source.beta(6, 2, n)
                if pass_fail:
                    a, b = np.round(a), np.round(b)
                some = [None if source.random() < missing else x for x in b.tolist()]
                found = compare_pairs(a.tolist(), some, confidence=confidence)
                assert found is not None
                low, high = found.difference.low, found.difference.high
                assert low is not None
                assert high is not None
                assert found.difference.confidence == confidence
                excludes = not low <= 0 <= high
                assert (found.p_value <= 1 - confidence) == excludes
                decided += excludes
    assert decided > 10


@pytest.mark.parametrize("worst", [True, False])
def test_intervals_cover_a_mean_at_either_end(worst: bool) -> None:
    """One in ten scores of b is missing: they all are 0, or all 1."""
    source, covers, times = np.random.default_rng(12), 0, 150
    for _ in range(times):
        a, b = source.random(80) < 0.7, source.random(80) < 0.7
        known = source.random(80) >= 0.1
        some = [float(x) if is_known else None for x, is_known in zip(b.tolist(), known.tolist(), strict=True)]
        found = compare_pairs(a.astype(float).tolist(), some)
        assert found is not None
        truth = 0.9 * 0.7 + (0.0 if worst else 0.1) - 0.7
        low, high = found.difference.low, found.difference.high
        assert low is not None
        assert high is not None
        covers += low <= truth <= high
    assert 0.9 * times <= covers <= 0.99 * times
