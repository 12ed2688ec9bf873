from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any, cast

import pytest
import statsmodels.stats.proportion as reference  # pyright: ignore[reportMissingTypeStubs]
from hypothesis import assume, example, given
from hypothesis import strategies as st

from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.stats import Interval, mean_interval, missing_bounds, proportion_interval
from evalstone.stats.intervals import cluster_spread
from evalstone.stats.special import t_quantile
from evalstone.types import note

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

COUNTS = [(0, 10), (10, 10), (1, 30), (27, 30), (81, 263), (970, 1000)]
confint = cast("Any", reference.proportion_confint)  # pyright: ignore[reportUnknownMemberType]
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
    assert t_quantile(probability, freedom) == pytest.approx(expected, abs=5.1e-4, rel=1e-5)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 6, 7, 9, 12, 29, 99, 999])
@pytest.mark.parametrize("probability", [0.9, 0.95, 0.975, 0.99, 0.995, 0.9995])
def test_a_quantile_is_as_exact_as_promised(probability: float, freedom: int):
    t = t_quantile(probability, freedom)
    error = (t_cdf(t, freedom) - probability) / t_density(t, freedom)
    assert abs(error / t) < 1e-5


def test_a_quantile_of_very_many_degrees_of_freedom_is_that_of_the_normal_distribution():
    normal = statistics.NormalDist()
    for probability in (0.9, 0.975, 0.9995):
        assert t_quantile(probability, 10**9) == pytest.approx(normal.inv_cdf(probability), rel=1e-6)


@given(st.floats(min_value=0.001, max_value=0.999), st.integers(1, 200))
def test_quantiles_are_symmetric_around_zero(probability: float, freedom: int):
    one, other = t_quantile(probability, freedom), t_quantile(1 - probability, freedom)
    assert one == pytest.approx(-other, rel=1e-6, abs=1e-9)
    assert (one > 0) == (probability > 0.5) or probability == 0.5


@pytest.mark.parametrize(("probability", "freedom"), [(0, 5), (1, 5), (-0.1, 5), (1.1, 5), (math.nan, 5), (0.9, 0)])
def test_a_quantile_that_does_not_exist_is_refused(probability: float, freedom: int):
    with pytest.raises(ValueError, match="probability must be"):
        t_quantile(probability, freedom)


def test_no_values_have_no_mean():
    assert mean_interval([]) is None


SINGLE = (note("single_unit", "caution", noun="sample"),)


def test_one_value_says_little():
    found = mean_interval([0.4], low=0, high=1)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(0.4 * 0.025), pytest.approx(1 - 0.6 * 0.025))
    assert (found.estimate, found.n, found.notes) == (0.4, 1, SINGLE)
    assert mean_interval([0.4]) == Interval(estimate=0.4, low=None, high=None, n=1, notes=SINGLE)


def test_an_interval_worked_by_hand():
    # mean 3, s² = 10/4, s = 1.5811, t(4) = 2.7764, half = 2.7764 · 1.5811 / √5 = 1.9632
    found = mean_interval([1, 2, 3, 4, 5])
    assert found is not None
    assert (found.estimate, found.n, found.confidence, found.method) == (3, 5, 0.95, "Student")
    assert found.notes == (note("small_sample", "caution", n=5),)
    assert (found.low, found.high) == (pytest.approx(1.0368, abs=1e-4), pytest.approx(4.9632, abs=1e-4))


def test_two_values_have_the_wide_interval_that_they_deserve():
    # mean 0.5, s = 0.14142, t(1) = 12.706, half = 12.706 · 0.14142 / √2 = 1.2706
    found = mean_interval([0.4, 0.6])
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(-0.7706, abs=1e-4), pytest.approx(1.7706, abs=1e-4))
    # In [0, 1]: a share of 1 - √0.025 at 0 and the others at 0.6 shows none of these in 2.5 % of samples of two.
    inside = mean_interval([0.4, 0.6], low=0, high=1)
    assert inside is not None
    assert inside.low is not None
    assert inside.high is not None
    assert inside.low == pytest.approx(0.6 * 0.025**0.5, rel=2e-3)
    assert inside.low == pytest.approx(1 - inside.high)


def test_a_higher_level_gives_a_wider_interval():
    widths: list[float] = []
    for confidence in (0.5, 0.9, 0.95, 0.99):
        found = mean_interval([1, 2, 3, 4], confidence=confidence)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        widths.append(found.high - found.low)
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


@given(st.floats(min_value=0.001, max_value=0.999), st.integers(1, 80))
def test_equal_values_have_the_interval_of_what_was_not_seen(value: float, n: int):
    found = mean_interval([value] * n, low=0, high=1)
    assert found is not None
    unseen = 0.025 ** (1 / n)
    assert (found.low, found.high) == (pytest.approx(value * unseen), pytest.approx(1 - (1 - value) * unseen))
    assert (found.estimate, found.n, found.method) == (pytest.approx(value), n, "Gaffke")
    outside = mean_interval([value] * (n + 1))
    assert outside is not None
    assert (outside.low, outside.notes) == (None, (note("all_equal", "caution", n=n + 1),))


@example([0.0, 1.7056033768393866e-162], 2.0)
@given(st.lists(unit, min_size=2, max_size=60), st.floats(min_value=0.01, max_value=100))
def test_an_interval_holds_its_mean_and_stays_in_the_range(values: list[float], scale: float):
    scaled = [value * scale for value in values]
    found = mean_interval(scaled, low=0, high=scale)
    assert found is not None
    assume(found.low is not None)
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.estimate <= found.high <= scale
    assert min(scaled) <= found.estimate <= max(scaled)


@given(st.lists(unit, min_size=2, max_size=30), st.randoms())
def test_the_order_of_the_values_does_not_matter(values: list[float], random: object):
    turned = sorted(values)
    one, other = mean_interval(values), mean_interval(turned)
    assert one is not None
    assert other is not None
    assert one.estimate == other.estimate
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


def test_an_interval_for_scores_near_the_top_reaches_further_down_than_up() -> None:
    found = mean_interval([1.0] * 27 + [0.5] * 3, low=0, high=1)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.high < 1
    assert found.estimate - found.low > 1.5 * (found.high - found.estimate)


@given(st.lists(unit, min_size=2, max_size=40))
def test_turning_scores_round_turns_their_interval_round(values: list[float]) -> None:
    one, other = mean_interval(values, low=0, high=1), mean_interval([1 - x for x in values], low=0, high=1)
    assert one is not None
    assert other is not None
    assert one.low == (None if other.high is None else pytest.approx(1 - other.high, abs=1e-9))


def test_groups_of_one_are_no_groups() -> None:
    values = [0.2, 0.9, 0.4, 1.0, 0.7]
    plain, grouped = mean_interval(values), mean_interval(values, groups=list("abcde"))
    assert plain is not None
    assert grouped is not None
    assert (grouped.low, grouped.high, grouped.groups) == (pytest.approx(plain.low), pytest.approx(plain.high), 5)


def test_copies_of_samples_in_one_group_add_nothing() -> None:
    values = [0.2, 0.9, 0.4, 1.0, 0.7]
    once, thrice = mean_interval(values), mean_interval(values * 3, groups=list("abcde") * 3)
    assert once is not None
    assert thrice is not None
    assert (thrice.low, thrice.high, thrice.n) == (pytest.approx(once.low), pytest.approx(once.high), 15)


def test_the_cluster_robust_variance_and_its_freedom_are_those_of_their_matrices() -> None:
    import numpy as np  # noqa: PLC0415

    values, groups = [0.1, 0.4, 0.9, 1.0, 0.3, 0.8, 0.6], list("aabbbcd")
    # CR2 by its definition: adjust each group's residuals by (I - H)^(-1/2), H = 1 1' / n.
    y, n = np.array(values), len(values)
    members = [np.array([g == label for g in groups]) for label in "abcd"]
    root = np.zeros((4, n))
    for row, inside in enumerate(members):
        size = int(inside.sum())
        roots, vectors = np.linalg.eigh(np.eye(size) - np.ones((size, size)) / n)
        adjust = vectors @ np.diag(roots**-0.5) @ np.transpose(vectors)
        root[row] = np.ones(size) @ adjust @ (np.eye(n) - 1 / n)[inside] / n
    products = root @ np.transpose(root)
    found = cluster_spread(values, float(y.mean()), groups)
    assert found.variance == pytest.approx(float(np.sum((root @ y) ** 2)))
    assert found.freedom == pytest.approx(float(np.trace(products) ** 2 / np.sum(products**2)))


def test_groups_of_equal_size_have_one_degree_of_freedom_less_than_there_are_groups() -> None:
    values = [0.1, 0.4, 0.9, 1.0, 0.3, 0.8]
    assert cluster_spread(values, sum(values) / 6, [1, 1, 2, 2, 3, 3]).freedom == pytest.approx(2)


def test_one_group_has_no_interval_and_perfect_groups_count_as_one_sample_each() -> None:
    alone = mean_interval([0.1, 0.2], groups=["a", "a"])
    assert alone is not None
    assert (alone.estimate, alone.low, alone.high) == (pytest.approx(0.15), None, None)
    assert (alone.groups, alone.notes) == (1, (note("single_unit", "caution", noun="cluster"),))
    perfect = mean_interval([1.0] * 20, low=0, high=1, groups=list(range(10)) * 2)
    assert perfect is not None
    assert perfect.low == pytest.approx(0.025**0.1)


@pytest.mark.parametrize("freedom", [1.5, 2.7, 8.3, 44.4])
def test_a_quantile_for_broken_degrees_of_freedom_is_scipys(freedom: float) -> None:
    from scipy.special import stdtrit  # noqa: PLC0415

    assert t_quantile(0.975, freedom) == pytest.approx(float(stdtrit(freedom, 0.975)))
    assert t_quantile(0.975, 9 + 1e-12) == pytest.approx(t_quantile(0.975, 9))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_named(wrong: float) -> None:
    with pytest.raises(DataError, match=f"value 1 is {wrong}"):
        mean_interval([0.5, wrong, 0.5], low=0, high=1)


def test_impossible_levels_and_groups_are_refused() -> None:
    for confidence in (0, 1, 95, math.nan):
        with pytest.raises(ConfigError) as raised:
            mean_interval([0.5, 0.6], confidence=confidence)
        assert (raised.value.field, str(raised.value.value)) == ("confidence", str(confidence))
        assert raised.value.allowed.startswith("between 0 and 1")
    with pytest.raises(DataError, match="2 values, 1 groups"):
        mean_interval([0.5, 0.6], groups=["a"])
    with pytest.raises(DataError, match="beyond floating point"):
        mean_interval([1e308, 1e308])


def test_few_groups_say_so() -> None:
    few, enough = (mean_interval([x / 30 for x in range(30)], groups=[x % k for x in range(30)]) for k in (4, 20))
    assert few is not None
    assert enough is not None
    assert few.notes == (note("few_clusters", "caution", clusters=4),)
    assert enough.notes == ()


def test_groups_whose_means_are_alike_count_as_so_many_equal_values() -> None:
    found = mean_interval([0.2, 0.8, 0.3, 0.7], low=0, high=1, groups=["a", "a", "b", "b"])
    assert found is not None
    assert (found.low, found.groups) == (pytest.approx(0.5 * 0.025**0.5), 2)
    outside = mean_interval([0.2, 0.8, 0.3, 0.7], groups=["a", "a", "b", "b"])
    assert outside is not None
    assert outside.notes == (note("equal_clusters", "caution", clusters=outside.groups),)


def test_weights_weigh_and_wrong_ones_are_refused() -> None:
    found = mean_interval([1.0, 0.5, 0.0], low=0, high=1, weights=[1, 2, 1])
    assert found is not None
    assert found.estimate == 0.5
    with pytest.raises(DataError) as raised:
        mean_interval([1.0, 0.5, 0.0], low=0, high=1, weights=[1, -2, 1])
    assert (raised.value.field, raised.value.value, raised.value.allowed) == (
        "weights[1]",
        -2,
        "finite numbers above 0",
    )


@pytest.mark.parametrize("wrong", [None, "0.5"])
def test_what_is_no_number_at_all_is_named(wrong: Any) -> None:
    with pytest.raises(DataError, match=f"value 1 is {wrong!r}"):
        mean_interval([0.5, wrong], low=0, high=1)


def test_values_and_ranges_that_do_not_fit_are_refused() -> None:
    for low, high in ((1, 0), (0, 0), (0, math.nan)):
        with pytest.raises(ConfigError, match="low must be below"):
            mean_interval([0.5, 0.6], low=low, high=high)


def test_values_that_miss_the_end_by_rounding_stand_at_the_end() -> None:
    short = 0.7 + 0.2 + 0.1
    assert short < 1
    for values in ([short] * 60, [short, 1.0] * 30):
        found = mean_interval(values, low=0, high=1)
        assert found is not None
        assert (found.low, found.method) == (pytest.approx(0.025 ** (1 / 60)), "Gaffke")


def test_values_that_differ_by_rounding_only_are_equal() -> None:
    found = mean_interval([0.1 + 0.2, 0.3] * 20, low=0, high=1)
    assert found is not None
    assert found.low == pytest.approx(0.3 * 0.025 ** (1 / 40))


@pytest.mark.parametrize(("successes", "n"), COUNTS)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_a_proportion_has_limits_a_little_within_clopper_and_pearsons(
    successes: int, n: int, confidence: float
) -> None:
    found = proportion_interval(successes, n, confidence)
    assert found == mean_interval([1] * successes + [0] * (n - successes), low=0, high=1, confidence=confidence)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    exact = confint(successes, n, 1 - confidence, method="beta")
    assert float(exact[0]) - 1e-9 <= found.low <= successes / n <= found.high <= float(exact[1]) + 1e-9
    assert found.high - found.low > 0.85 * float(exact[1] - exact[0])


def test_impossible_counts_and_levels_are_refused() -> None:
    assert proportion_interval(0, 0) is None
    for successes, n in ((3, 2), (-1, 2)):
        with pytest.raises(DataError, match=rf"from 0 to n: {successes} of {n}"):
            proportion_interval(successes, n)
    with pytest.raises(ConfigError, match="confidence"):
        proportion_interval(1, 2, 1.5)


def test_bounds_put_the_missing_at_the_worst_and_the_best() -> None:
    # 0.5 + 0.9 over 4 with two at 0, and with two at 1
    found = missing_bounds([0.5, 0.9], 2)
    assert found == (pytest.approx(0.35), pytest.approx(0.85))


def test_bounds_without_missing_are_the_mean_and_without_values_the_range() -> None:
    assert missing_bounds([1.0, 4.0], 0, 0, 5) == (2.5, 2.5)
    assert missing_bounds([], 3, 0, 5) == (0, 5)
    assert missing_bounds([], 0) is None


def test_bounds_refuse_what_cannot_be() -> None:
    with pytest.raises(DataError) as raised:
        missing_bounds([0.5], -1)
    assert (raised.value.field, raised.value.value, raised.value.allowed) == ("missing", -1, "0 or more")
    with pytest.raises(DataError, match="value 0 is nan"):
        missing_bounds([math.nan], 1)


def test_without_missing_values_the_bounds_are_the_mean_in_any_range() -> None:
    assert missing_bounds([0.5], 0, high=math.inf) == (0.5, 0.5)
    with pytest.raises(DataError) as raised:
        missing_bounds([0.5], cast("int", math.nan))
    assert (raised.value.field, raised.value.allowed) == ("missing", "0 or more")


def test_the_caution_of_a_small_sample_ends_at_thirty():
    one, other = (mean_interval([place / n for place in range(n)]) for n in (29, 30))
    assert one is not None
    assert other is not None
    assert (one.notes, other.notes) == ((note("small_sample", "caution", n=29),), ())


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: mean_interval([1.0, 0.5, 0.0], low=0, high=1, weights=[1, 2]),
        DataError,
        "weights must have one entry per value: 3 values, 2 weights",
    ),
    (
        lambda: mean_interval([1.0, 0.5, 0.0], weights=[1, 2, 1]),
        ConfigError,
        "weights need a finite range: set low and high",
    ),
    (
        lambda: mean_interval([2.0, 0.5], low=0, high=1),
        DataError,
        "values from 0.5 to 2.0 are not all in [0, 1]",
    ),
    (
        lambda: mean_interval([1e200, -1e200, 3e200]),
        DataError,
        "values from -1e+200 to 3e+200 are too far apart for floating point",
    ),
    (
        lambda: missing_bounds([0.5, 1.5], 1),
        DataError,
        "values from 0.5 to 1.5 are not all in [0.0, 1.0]",
    ),
    (
        lambda: missing_bounds([0.5], 1, 1, 0),
        DataError,
        "low must be below high: low is 1, high is 0",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
