from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.stats import Interval, mean_interval, student_t_quantile

FREEDOM = (1, 2, 3, 4, 5, 10, 20, 30, 60, 120)
# Quantiles as printed in NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, but for the first of the last row:
# it prints 318.313 for 1 / tan(π / 1000) = 318.309.
TABLE = {
    0.9: (3.078, 1.886, 1.638, 1.533, 1.476, 1.372, 1.325, 1.310, 1.296, 1.289),
    0.95: (6.314, 2.920, 2.353, 2.132, 2.015, 1.812, 1.725, 1.697, 1.671, 1.658),
    0.975: (12.706, 4.303, 3.182, 2.776, 2.571, 2.228, 2.086, 2.042, 2.000, 1.980),
    0.99: (31.821, 6.965, 4.541, 3.747, 3.365, 2.764, 2.528, 2.457, 2.390, 2.358),
    0.995: (63.657, 9.925, 5.841, 4.604, 4.032, 3.169, 2.845, 2.750, 2.660, 2.617),
    0.999: (318.309, 22.327, 10.215, 7.173, 5.893, 4.144, 3.552, 3.385, 3.232, 3.160),
}
CASES = [(p, f, value) for p, values in TABLE.items() for f, value in zip(FREEDOM, values, strict=True)]

unit = st.floats(min_value=0, max_value=1)


def t_cdf(t: float, freedom: int) -> float:
    """P(T <= t), by Simpson's rule after t = √freedom · tan θ, which makes the density a power of cos θ."""
    end = math.atan(t / math.sqrt(freedom))
    steps = 4000
    h = end / steps
    weights = ((4 if i % 2 else 2) if 0 < i < steps else 1 for i in range(steps + 1))
    area = h / 3 * math.fsum(w * math.cos(i * h) ** (freedom - 1) for i, w in enumerate(weights))
    return 0.5 + area * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)


def t_density(t: float, freedom: int) -> float:
    log = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    return math.exp(log - (freedom + 1) / 2 * math.log1p(t * t / freedom))


@pytest.mark.parametrize(("probability", "freedom", "expected"), CASES)
def test_a_quantile_is_the_one_in_the_tables(probability: float, freedom: int, expected: float):
    assert student_t_quantile(probability, freedom) == pytest.approx(expected, abs=5.1e-4, rel=1e-5)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 6, 7, 9, 12, 29, 99, 999])
@pytest.mark.parametrize("probability", [0.9, 0.95, 0.975, 0.99, 0.995, 0.9995])
def test_a_quantile_is_as_exact_as_promised(probability: float, freedom: int):
    t = student_t_quantile(probability, freedom)
    error = (t_cdf(t, freedom) - probability) / t_density(t, freedom)
    assert abs(error / t) < 1e-5


def test_a_quantile_of_very_many_degrees_of_freedom_is_that_of_the_normal_distribution():
    normal = statistics.NormalDist()
    for probability in (0.9, 0.975, 0.9995):
        assert student_t_quantile(probability, 10**9) == pytest.approx(normal.inv_cdf(probability), rel=1e-6)


@given(st.floats(min_value=0.001, max_value=0.999), st.integers(1, 200))
def test_quantiles_are_symmetric_around_zero(probability: float, freedom: int):
    one, other = student_t_quantile(probability, freedom), student_t_quantile(1 - probability, freedom)
    assert one == pytest.approx(-other, rel=1e-6, abs=1e-9)
    assert (one > 0) == (probability > 0.5) or probability == 0.5


@pytest.mark.parametrize(("probability", "freedom"), [(0, 5), (1, 5), (-0.1, 5), (1.1, 5), (math.nan, 5), (0.9, 0)])
def test_a_quantile_that_does_not_exist_is_refused(probability: float, freedom: int):
    with pytest.raises(ValueError, match="probability must be in"):
        student_t_quantile(probability, freedom)


def test_no_values_have_no_mean():
    assert mean_interval([]) is None


def test_one_value_has_a_mean_and_no_interval():
    assert mean_interval([0.4], low=0, high=1) == Interval(0.4, None, None, 1)


def test_an_interval_worked_by_hand():
    # mean 3, s² = 10/4, s = 1.5811, t(4) = 2.7764, half = 2.7764 · 1.5811 / √5 = 1.9632
    found = mean_interval([1, 2, 3, 4, 5])
    assert found is not None
    assert (found.mean, found.n, found.level) == (3, 5, 0.95)
    assert (found.low, found.high) == (pytest.approx(1.0368, abs=1e-4), pytest.approx(4.9632, abs=1e-4))


def test_two_values_have_the_wide_interval_that_they_deserve():
    # mean 0.5, s = 0.14142, t(1) = 12.706, half = 12.706 · 0.14142 / √2 = 1.2706
    found = mean_interval([0.4, 0.6])
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(-0.7706, abs=1e-4), pytest.approx(1.7706, abs=1e-4))
    assert mean_interval([0.4, 0.6], low=0, high=1) == Interval(found.mean, 0, 1, 2)


def test_a_higher_level_gives_a_wider_interval():
    widths: list[float] = []
    for level in (0.5, 0.9, 0.95, 0.99):
        found = mean_interval([1, 2, 3, 4], level=level)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        widths.append(found.high - found.low)
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


@given(st.floats(min_value=0.001, max_value=0.999), st.integers(2, 80))
def test_equal_values_inside_the_range_give_an_interval_of_no_width_at_that_value(value: float, n: int):
    assert mean_interval([value] * n, low=0, high=1) == Interval(value, value, value, n)


@given(st.lists(unit, min_size=2, max_size=60), st.floats(min_value=0.01, max_value=100))
def test_an_interval_holds_its_mean_and_stays_in_the_range(values: list[float], scale: float):
    scaled = [value * scale for value in values]
    found = mean_interval(scaled, low=0, high=scale)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.mean <= found.high <= scale
    assert min(scaled) <= found.mean <= max(scaled)


@given(st.lists(unit, min_size=2, max_size=30), st.randoms())
def test_the_order_of_the_values_does_not_matter(values: list[float], random: object):
    turned = sorted(values)
    one, other = mean_interval(values), mean_interval(turned)
    assert one is not None
    assert other is not None
    assert one.mean == other.mean
    assert one.low == pytest.approx(other.low, abs=1e-12)


def test_the_interval_covers_the_true_mean_as_often_as_it_says():
    import random  # noqa: PLC0415

    source = random.Random(7)
    covered = 0
    for _ in range(2000):
        found = mean_interval([source.gauss(0.5, 0.1) for _ in range(8)])
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.5 <= found.high
    assert 0.935 < covered / 2000 < 0.965


def test_scores_that_all_stand_at_an_end_of_the_range_have_an_exact_interval() -> None:
    perfect = mean_interval([1.0] * 60, low=0, high=1)
    assert perfect is not None
    assert perfect.low == pytest.approx(0.025 ** (1 / 60))
    assert perfect.high == 1
    nothing = mean_interval([0.0] * 10, low=0, high=10)
    assert nothing is not None
    assert (nothing.low, nothing.high) == (0, pytest.approx(10 * (1 - 0.025**0.1)))
