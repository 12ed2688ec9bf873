"""Binomial, gamma and t probabilities are those of scipy, or better ones where scipy's lose digits."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
import scipy.special

from evalstone.stats.tails import binomial_cdfs, binomial_chances, gamma_tails, normal_cdf, t_cdf

special = cast("Any", scipy.special)

TRIALS = (1, 2, 5, 17, 60, 299, 300, 301, 600, 601, 1000, 3000, 10_000, 100_000, 1_000_000)
CHANCES = (1e-4, 0.003, 0.02, 0.1, 0.3, 0.45, 0.5, 0.7, 0.9, 0.99, 0.9999)
DEVIATIONS = np.linspace(-8, 8, 65)


@pytest.mark.parametrize("n", TRIALS)
def test_binomial_tails_are_those_of_scipy(n: int) -> None:
    for p in CHANCES:
        k = np.unique(np.clip(np.floor(n * p + math.sqrt(n * p * (1 - p)) * DEVIATIONS), -1, n))
        expected = np.where(k < 0, 0.0, np.where(k >= n, 1.0, special.betainc(np.maximum(n - k, 1), k + 1, 1 - p)))
        # scipy takes 1 - p, which has lost digits of a small p, each success one more time.
        exact = 1e-12 + 2e-16 / min(p, 1 - p) * (n * min(p, 1 - p) + 30)
        np.testing.assert_allclose(binomial_cdfs(k, n, p), expected, rtol=min(exact, 1e-10), atol=1e-290)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "p"), [(7, Fraction(1, 8)), (40, Fraction(1, 2)), (700, Fraction(3, 8))])
def test_binomial_probabilities_are_exact(n: int, p: Fraction) -> None:
    chances = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    k = np.arange(n + 1, dtype=float)
    np.testing.assert_allclose(binomial_chances(k, n, float(p)), [float(c) for c in chances], rtol=1e-12, atol=1e-300)
    sums = [float(sum(chances[: i + 1])) for i in range(n + 1)]
    np.testing.assert_allclose(binomial_cdfs(k, n, float(p)), sums, rtol=1e-12, atol=1e-300)


def test_binomial_probabilities_sum_to_one_where_log_gamma_has_no_digits_left() -> None:
    n, p = 10**9, 1e-3
    k = np.arange(10**6 - 8000, 10**6 + 8001, dtype=float)
    assert float(binomial_chances(k, n, p).sum()) == pytest.approx(1, abs=1e-10)
    low, high = binomial_cdfs(k[[0, -1]], n, p)
    assert high - low == pytest.approx(1, abs=1e-10)


def test_a_certain_or_impossible_success_has_no_tail() -> None:
    k = np.array([-1.0, 0.0, 400.0, 999.0, 1000.0, 1001.0])
    assert binomial_cdfs(k, 1000, 0.0).tolist() == [0, 1, 1, 1, 1, 1]
    assert binomial_cdfs(k, 1000, 1.0).tolist() == [0, 0, 0, 0, 1, 1]
    ends = np.array([0.0, 3.0, 5.0])
    assert binomial_chances(ends, 5, 0.0).tolist() == [1, 0, 0]
    assert binomial_chances(ends, 5, 1.0).tolist() == [0, 0, 1]
    assert binomial_chances(np.zeros(1), 0, 0.3).tolist() == [1]


@pytest.mark.parametrize("shape", [0.01, 0.1, 0.5, 1, 1.5, 3, 10, 50, 150, 299.5, 300, 301, 500, 1000, 10_000])
def test_gamma_tails_are_those_of_scipy(shape: float) -> None:
    for x in shape + DEVIATIONS * math.sqrt(shape):
        if x > 0:
            expected = (float(special.gammainc(shape, x)), float(special.gammaincc(shape, x)))
            assert gamma_tails(shape, x) == pytest.approx(expected, rel=1e-11, abs=1e-290)
    assert gamma_tails(shape, 0) == (0, 1)


@pytest.mark.parametrize("shape", [1e-6, 1e-5, 1e-4, 0.01, 0.3, 0.9])
def test_gamma_tails_just_above_a_small_shape_are_those_of_scipy(shape: float) -> None:
    # A continued fraction is 7% off here after 100,000 terms.
    for x in np.geomspace(shape, 3, 40):
        expected = (float(special.gammainc(shape, x)), float(special.gammaincc(shape, x)))
        assert gamma_tails(shape, float(x)) == pytest.approx(expected, rel=1e-8 if shape < 1e-3 else 1e-11)


@pytest.mark.parametrize("shape", [1e6, 4e8])
def test_gamma_tails_of_a_large_shape_are_shares_of_the_density(shape: float) -> None:
    # From 4.5 deviations on, scipy's lower tail is up to 62% too small.
    z = np.linspace(-12, 12, 240_001)
    from_mode = 1 + z * math.sqrt(shape)
    density = np.exp((shape - 1) * np.log1p(from_mode / (shape - 1)) - from_mode)
    for at in (-8, -6, -5, -1, 0, 1, 5, 6, 8):
        place = int(np.searchsorted(z, at - 1e-9))
        below, above = np.trapezoid(density[: place + 1]), np.trapezoid(density[place:])
        lower, upper = gamma_tails(shape, shape + at * math.sqrt(shape))
        assert (lower, upper) == pytest.approx((below / (below + above), above / (below + above)), rel=1e-6)


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 10, 30, 99, 100, 101, 1000, 100_000])
def test_t_probabilities_are_those_of_scipy(freedom: float) -> None:
    for t in np.linspace(-9, 9, 73):
        assert t_cdf(t, freedom) == pytest.approx(float(special.stdtr(freedom, t)), rel=1e-11)


def test_normal_probabilities_are_those_of_scipy() -> None:
    for z in np.linspace(-30, 9, 100):
        assert normal_cdf(z) == t_cdf(z, math.inf) == pytest.approx(float(special.ndtr(z)), rel=1e-12)
