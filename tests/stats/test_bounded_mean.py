from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binomtest, ttest_1samp

from evalstone.stats.bounded_mean import EXACT, SHARE, BoundedMean, probability_below_zero
from evalstone.stats.paired_tests import mcnemar
from evalstone.stats.weighted_mean import WeightedMean

pytestmark = pytest.mark.slow

RATINGS = [1.0] * 25 + [0.5] * 3 + [0.75] * 2
SCORES = np.random.default_rng(1).beta(5, 1, 50).tolist()
CASES = {
    "pass/fail": BoundedMean.of([1.0] * 27 + [0.0] * 3, 0, 1),
    "ratings": BoundedMean.of([5 * x for x in RATINGS], 0, 5),
    "scores": BoundedMean.of(SCORES, 0, 1),
    "groups": WeightedMean.of_units(SCORES, 0, 1, groups=[place // 5 for place in range(50)]),
    "unequal groups": WeightedMean.of_units(SCORES, 0, 1, groups=[place**2 // 100 for place in range(50)]),
    "weights": WeightedMean.of_units(SCORES, 0, 1, weights=[1 + place % 4 for place in range(50)]),
    "all at the top": BoundedMean.of([1.0] * 40, 0, 1),
    "all equal inside": BoundedMean.of([0.7] * 40, 0, 1),
    "one": BoundedMean.of([0.7], 0, 1),
    "two": BoundedMean.of([0.2, 0.9], 0, 1),
    "differences": BoundedMean.of([0.2, -0.1, 0.0, 0.3, 0.0, 0.1, 0.0], -1, 1),
    "unchanged": BoundedMean.of([0.0] * 30, -1, 1),
    "more values than bins": BoundedMean.of(np.random.default_rng(2).beta(5, 1, 2000).tolist(), 0, 1),
}


def exact(terms: list[float]) -> float:
    """P(Σ z e <= 0) of different z: the sum over z(i) < 0 of the product of z(i) / (z(i) - z(j)) over all other j."""
    z = [Fraction(term) for term in terms]
    total = Fraction(0)
    for i, one in enumerate(z):
        if one < 0:
            total += math.prod((one / (one - other) for j, other in enumerate(z) if j != i), start=Fraction(1))
    return float(total)


@pytest.mark.parametrize("n", [2, 3, 8, 30])
def test_the_probability_of_a_sum_of_exponentials_is_close_to_the_exact_one(n: int) -> None:
    source = random.Random(n)
    for _ in range(40 if n < 30 else 8):
        shape = source.choice([(9, 1), (1, 1), (4, 4), (0.5, 0.5), (80, 20)])
        values = [source.betavariate(*shape) for _ in range(n)]
        mean = sum(values) / n
        for m in (mean * part for part in (0.7, 0.9, 0.98, 1.0)):
            for added in (min(values), max(values), 0.0, 1.0):
                # Values must differ for the exact sum, so that an added one stands beside its like.
                z = [x - m for x in values] + [added + 1e-9 - m]
                expected = exact(z)
                if 1e-4 < expected < 0.5:
                    found = probability_below_zero([(x, 1) for x in z])
                    assert found == pytest.approx(expected, rel=0.15 if n < 8 else 0.08)


def test_the_probability_goes_smoothly_through_the_point_where_the_approximation_divides_by_zero() -> None:
    values = [0.1, 0.4, 0.45, 0.9, 1.0]
    mean = sum(values) / 5
    around = [probability_below_zero([(x - mean - gap, 1) for x in values]) for gap in (-1e-3, -1e-5, 0, 1e-5, 1e-3)]
    assert around == sorted(around)
    assert around[3] - around[1] < 1e-3
    assert around[2] == pytest.approx(exact([x - mean for x in values]), rel=0.02)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("share", [EXACT, SHARE])
def test_a_limit_is_the_mean_whose_p_value_is_the_error_rate(name: str, share: float) -> None:
    found = CASES[name]
    for alpha in (0.2, 0.025, 0.001):
        lower, upper = found.limit(alpha, 1, share=share), found.limit(alpha, -1, share=share)
        assert found.low <= lower <= found.mean <= upper <= found.high
        assert lower < upper
        assert found.p_value(lower, 1, share=share) == pytest.approx(alpha, rel=1e-3)
        if name != "all at the top":
            assert found.p_value(upper, -1, share=share) == pytest.approx(alpha, rel=1e-3)


@pytest.mark.parametrize("values", [RATINGS, SCORES, [0.95] * 20 + [1.0] * 30, [0.3, 0.9, 1.0], [0.0] * 2 + [1.0] * 80])
@pytest.mark.parametrize("m", [0.02, 0.3, 0.6, 0.9])
def test_what_was_not_seen_counts_at_the_share_that_makes_it_likeliest(values: list[float], m: float) -> None:
    found = BoundedMean.of(values, 0.0, 1.0)
    n, likeliest = len(values), 0.0
    for unseen in (place / 1000 for place in range(1000)):
        rest = m / (1 - unseen)
        gaps = [(x - rest, count) for x, _, count in found.points]
        likeliest = max(likeliest, (1 - unseen) ** n * probability_below_zero([*gaps, (gaps[0][0], 1)]))
    gaffke = probability_below_zero([*((x - m, count) for x, _, count in found.points), (-m, 1)])
    assert found.p_value(m, 1) == pytest.approx(min(likeliest, gaffke), rel=0.01, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_p_values_rise_with_the_mean_that_they_test(name: str) -> None:
    found = CASES[name]
    grid = np.linspace(found.low, found.high, 25).tolist()
    for share in (EXACT, SHARE):
        above = [found.p_value(m, 1, share=share) for m in grid]
        assert all(one <= other + 1e-9 for one, other in itertools.pairwise(above))
        assert 0 <= above[0] <= above[-1] <= 1


def test_pass_fail_is_the_binomial_test_and_its_limits_are_clopper_and_pearsons() -> None:
    found = CASES["pass/fail"]
    for m in (0.7, 0.85, 0.95):
        assert found.p_value(m, 1) == pytest.approx(float(binomtest(27, 30, m, alternative="greater").pvalue))
        assert found.p_value(m, -1) == pytest.approx(float(binomtest(27, 30, m, alternative="less").pvalue))
    assert found.limit(0.05, 1) == pytest.approx(float(beta.ppf(0.05, 27, 4)))
    assert found.limit(0.05, -1) == pytest.approx(float(beta.ppf(0.95, 28, 3)))


def test_equal_values_have_the_chance_of_seeing_none_of_the_worst() -> None:
    # A true mean of m takes a share of (v - m) / (v - low) at the low end, and none of n was seen.
    for value, low, high in ((0.7, 0.0, 1.0), (1.0, 0.0, 1.0), (3.0, 0.0, 5.0)):
        found = BoundedMean.of([value] * 40, low, high)
        m = low + 0.9 * (value - low)
        for share in (EXACT, SHARE):
            assert found.p_value(m, 1, share=share) == pytest.approx(0.9**40, rel=1e-6)
        assert found.limit(0.05, 1) == pytest.approx(low + (value - low) * 0.05 ** (1 / 40))
    assert CASES["all at the top"].limit(0.05, -1) == 1
    assert CASES["one"].interval(0.95) == (pytest.approx(0.7 * 0.025), pytest.approx(1 - 0.3 * 0.025))


def test_pass_fail_differences_have_mcnemars_mid_p_value_at_no_difference() -> None:
    found = BoundedMean.of([1.0] * 9 + [-1.0] * 2 + [0.0] * 50, -1, 1)
    p_above = found.p_value(0.0, 1, share=0.5)
    assert 2 * p_above == pytest.approx(mcnemar(9, 2).p_value, rel=0.02)


def test_many_values_are_students_test() -> None:
    d = np.random.default_rng(2).normal(0.02, 0.1, 3000).tolist()
    expected = ttest_1samp(d, 0.015, alternative="greater").pvalue
    assert BoundedMean.of(d, -1, 1).p_value(0.015, 1) == pytest.approx(float(expected), abs=0.02)


def test_unseen_values_widen_the_interval_of_values_that_hardly_vary() -> None:
    values = [0.98, 0.99, 1.0] * 10
    low, high = BoundedMean.of(values, 0, 1).interval(0.95)
    # With 9 % of zeros in the population, 30 samples have none in 6 % of cases; 0.99 · 0.91 = 0.9.
    assert low < 0.9
    assert high < 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=25), st.floats(0.6, 0.99))
@settings(max_examples=60, deadline=None)
def test_turned_values_have_turned_limits(values: list[float], confidence: float) -> None:
    low, high = BoundedMean.of(values, 0, 1).interval(confidence)
    other = BoundedMean.of([1 - x for x in values], 0, 1).interval(confidence)
    assert (low, high) == (pytest.approx(1 - other[1], abs=1e-6), pytest.approx(1 - other[0], abs=1e-6))
    assert 0 <= low <= high <= 1
    assert low < high


@given(st.lists(st.floats(0, 1), min_size=2, max_size=15), st.integers(0, 14))
@settings(max_examples=60, deadline=None)
def test_a_higher_value_never_lowers_the_lower_limit(values: list[float], place: int) -> None:
    higher = list(values)
    higher[place % len(values)] = 1.0
    one, other = (BoundedMean.of(x, 0, 1).limit(0.05, 1) for x in (values, higher))
    assert other >= one - 0.003  # but for the error of the approximation


def test_groups_of_one_and_equal_weights_change_nothing_and_copies_in_a_group_add_nothing() -> None:
    plain = BoundedMean.of(RATINGS, 0, 1).interval(0.95)
    assert WeightedMean.of_units(RATINGS, 0, 1, groups=range(30)).interval(0.95) == plain
    assert WeightedMean.of_units(RATINGS, 0, 1, weights=[2.0] * 30).interval(0.95) == plain
    thrice = WeightedMean.of_units(RATINGS * 3, 0, 1, groups=[*range(30)] * 3)
    assert thrice.interval(0.95) == (pytest.approx(plain[0]), pytest.approx(plain[1]))
    assert thrice.units == 30


def test_weights_weigh_and_more_unequal_ones_widen() -> None:
    values = [1.0, 0.5, 0.75, 1.0] * 10
    slightly = WeightedMean.of_units(values, 0, 1, weights=[1.0, 2.0, 1.0, 2.0] * 10)
    mostly = WeightedMean.of_units(values, 0, 1, weights=[1.0, 2.0, 1.0, 2.0] * 9 + [1.0, 2.0, 1.0, 40.0])
    assert slightly.mean == pytest.approx((1 + 1 + 0.75 + 2) / 6)
    one, other = slightly.interval(0.95), mostly.interval(0.95)
    assert other[1] - other[0] > 1.3 * (one[1] - one[0])


def test_bins_change_nothing_that_shows() -> None:
    values = np.random.default_rng(3).beta(9, 1, 600).tolist()
    rounded = [round(x, 3) for x in values]
    one, other = BoundedMean.of(values, 0, 1).interval(0.95), BoundedMean.of(rounded, 0, 1).interval(0.95)
    assert one == (pytest.approx(other[0], abs=2e-4), pytest.approx(other[1], abs=2e-4))
    weights = [1 + place % 3 for place in range(600)]
    one, other = (WeightedMean.of_units(x, 0, 1, weights=weights).interval(0.95) for x in (values, rounded))
    assert one == (pytest.approx(other[0], abs=1e-3), pytest.approx(other[1], abs=1e-3))


def test_a_million_values_take_seconds_at_most_and_nothing_overflows() -> None:
    values = np.random.default_rng(4).beta(9, 1, 200_000).tolist()
    low, high = BoundedMean.of(values, 0, 1).interval(0.95)
    half = 1.96 * math.sqrt(0.9 * 0.1 / 11 / 200_000)
    assert (high - low) / 2 == pytest.approx(half, rel=0.05)
    assert BoundedMean.of([1e-300, 1.0, 0.0], 0, 1).interval(0.95)[0] > 0


def test_the_p_value_is_never_more_than_gaffkes() -> None:
    # A lowest value close to 0 is nearly a zero: it must not count both as seen and as unseen.
    zero, close = (BoundedMean.of([1.0] * 28 + [lowest] * 2, 0, 1).limit(0.05, 1) for lowest in (0.0, 0.0001))
    assert zero < close < zero + 0.001


def rare_zeros(source: np.random.Generator, n: int) -> list[float]:
    u = source.random(n)
    return np.where(u < 0.05, 0.0, np.where(u < 0.5, 0.95, 1.0)).tolist()


def claims(source: np.random.Generator, n: int) -> list[float]:
    of = source.integers(2, 6, n)
    return (source.binomial(of, 0.9) / of).tolist()


def similarities(source: np.random.Generator, n: int) -> list[float]:
    return source.beta(9, 1, n).tolist()


@pytest.mark.parametrize(("draw", "mean"), [(rare_zeros, 0.9275), (claims, 0.9), (similarities, 0.9)])
@pytest.mark.parametrize("n", [8, 30])
def test_intervals_cover_and_tests_err_as_they_say(
    draw: Callable[[np.random.Generator, int], list[float]], mean: float, n: int
) -> None:
    source = np.random.default_rng(5)
    covered = wrong_passes = wrong_fails = 0
    for _ in range(400):
        found = BoundedMean.of(draw(source, n), 0, 1)
        covered += found.two_sided_p(mean) > 0.05
        wrong_passes += found.p_value(mean, 1) <= 0.05
        wrong_fails += found.p_value(mean, -1) <= 0.05
    assert covered > 0.935 * 400
    assert max(wrong_passes, wrong_fails) < 0.072 * 400  # 5 % and two standard errors


EDGES = st.sampled_from([0.0, -0.0, 1.0, 0.5, 0.1 + 0.2, 1 - 2**-53, 1e-13, 1e-300, 5e-324])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_smallest_numbers_and_any_weights_give_probabilities_and_limits_in_order(data: st.DataObject) -> None:
    scale = data.draw(st.sampled_from([1.0, 1e-9, 1e9, 1e300]))
    values = [scale * share for share in data.draw(st.lists(EDGES, min_size=1, max_size=12))]
    a_weight = st.floats(1e-300, 1.7e308)
    weights = data.draw(st.none() | st.lists(a_weight, min_size=len(values), max_size=len(values)))
    groups = data.draw(st.none() | st.lists(st.integers(0, 2), min_size=len(values), max_size=len(values)))
    found = WeightedMean.of_units(values, 0.0, scale, groups=groups, weights=weights)
    for m in (5e-324, 1e-13 * scale, data.draw(EDGES) * scale, math.nextafter(scale, 0)):
        for share in (EXACT, SHARE):
            assert 0 <= found.p_value(m, 1, share=share) <= 1
            assert 0 <= found.p_value(m, -1, share=share) <= 1
    low, high = found.interval(data.draw(st.sampled_from([1e-9, 0.95, 1 - 1e-12])))
    assert 0 <= low <= found.mean <= high <= scale


def test_only_the_ratios_of_weights_count() -> None:
    weights = [1.0 + place % 4 for place in range(50)]
    p = WeightedMean.of_units(SCORES, 0, 1, weights=weights).p_value(0.8, 1)
    for factor in (1e-300, 1e300, 4e307):
        other = WeightedMean.of_units(SCORES, 0, 1, weights=[factor * weight for weight in weights])
        assert other.p_value(0.8, 1) == pytest.approx(p, rel=1e-9)
