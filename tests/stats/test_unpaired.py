from __future__ import annotations

import math

import numpy as np
import pytest

from evalstone.errors import ConfigError, DataError
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.packed_scores import LARGE, PackedEnds, PackedScores
from evalstone.stats.unpaired import UnpairedComparison, compare_unpaired
from evalstone.types import note

A = [1.0] * 24 + [0.0] * 6
B = [1.0] * 38 + [0.0] * 2


def compared(a: list[float], b: list[float], **options: object) -> UnpairedComparison:
    found = compare_unpaired(a, b, **options)  # pyright: ignore[reportArgumentType]
    assert found is not None
    return found


def limits(found: UnpairedComparison) -> tuple[float, float]:
    assert found.difference.low is not None
    assert found.difference.high is not None
    return found.difference.low, found.difference.high


def test_the_limits_of_a_difference_are_those_of_both_means() -> None:
    found = compared(A, B)
    (low_a, high_a), (low_b, high_b) = (BoundedMean.of(values, 0, 1).interval(0.95) for values in (A, B))
    low, high = limits(found)
    assert (found.n, found.n_b, found.mean_a, found.mean_b) == (30, 40, 0.8, 0.95)
    assert found.difference.estimate == pytest.approx(0.15)
    assert low == pytest.approx(0.15 - math.hypot(0.95 - low_b, high_a - 0.8))
    assert high == pytest.approx(0.15 + math.hypot(high_b - 0.95, 0.8 - low_a))
    back = compared(B, A)
    assert limits(back) == pytest.approx((-high, -low))
    assert back.p_value == pytest.approx(found.p_value)
    ten = compared([10 * x for x in A], [10 * x for x in B], scale=10.0)
    assert limits(ten) == pytest.approx((10 * low, 10 * high))
    assert ten.p_value == pytest.approx(found.p_value, rel=1e-6)


@pytest.mark.parametrize("failures", [2, 7, 8, 9, 10, 15, 20])
def test_the_interval_ends_at_0_where_its_confidence_is_that_of_the_p_value(failures: int) -> None:
    a = [0.0] * failures + [1.0] * (40 - failures)
    p = compared(a, B).p_value
    assert min(map(abs, limits(compared(a, B, confidence=1 - p)))) < 1e-6 if p < 1 else failures == 2
    low, high = limits(compared(a, B))
    assert (p <= 0.05) == (not low <= 0 <= high)


def test_equal_means_have_a_p_value_of_1_and_means_far_apart_a_small_one() -> None:
    assert compared([0.5] * 30, [0.5] * 20).p_value == 1
    assert compared([0.0] * 300, [1.0] * 300).p_value < 1e-12


def test_clusters_and_weights_count() -> None:
    groups = [place // 10 for place in range(30)]
    found = compared(A, B, groups=(groups, None))
    assert found.groups == 3 + 40
    assert found.p_value > compared(A, B).p_value
    weighted = compared(A, B, weights=([3.0] * 6 + [1.0] * 24, None))
    assert weighted.mean_a == pytest.approx((18 + 18) / (18 + 24))


def test_a_single_sample_is_cautioned_and_none_has_no_result() -> None:
    found = compared([1.0], B)
    assert found.notes == (note("single_unit_run", "caution"),)
    assert found.difference.low is not None
    assert compare_unpaired([], B) is None


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="b: value 1 is 2"):
        compare_unpaired([0.5], [0.5, 2.0])
    with pytest.raises(DataError, match="a has 1, groups has 2"):
        compare_unpaired([0.5], [0.5], groups=([1, 2], None))
    with pytest.raises(ConfigError, match="confidence"):
        compare_unpaired([0.5], [0.5], confidence=1.5)


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.97])
def test_runs_of_equal_pass_rates_seldom_differ(rate: float) -> None:
    source, times = np.random.default_rng(4), 60
    rejected = [
        compared(*((source.random(n) < rate).astype(float).tolist() for n in (60, 30))).p_value <= 0.05
        for _ in range(times)
    ]
    assert sum(rejected) <= 6  # 5 % and two standard errors


def assert_within(found: UnpairedComparison, lowest: UnpairedComparison, highest: UnpairedComparison) -> None:
    """Each limit is within those of the ends at half the error rate, and beyond the difference at its end."""
    assert limits(lowest)[0] < limits(found)[0] < lowest.difference.estimate
    assert highest.difference.estimate < limits(found)[1] < limits(highest)[1]


def test_missing_scores_count_as_any_value() -> None:
    """On the side of each limit, the missing scores are at their worst or at their best."""
    a, b = [*A, None, None], [*B, None]
    found = compare_unpaired(a, b)
    assert found is not None
    lowest, highest = compared([*A, 1, 1], [*B, 0]), compared([*A, 0, 0], [*B, 1])
    assert_within(found, lowest, highest)
    assert (found.n, found.n_b, found.missing, found.difference.n) == (30, 40, 3, 70)
    assert (found.mean_a, found.mean_b, found.difference.estimate) == (0.8, 0.95, pytest.approx(0.15))
    assert lowest.p_value / 2 <= found.p_value < lowest.p_value
    assert compared(A, B).missing == 0


def test_a_difference_that_missing_scores_can_turn_has_a_p_value_of_1() -> None:
    found = compare_unpaired([1.0] * 90 + [0.0] * 10, [1.0] * 90 + [None] * 10)
    assert found is not None
    assert (found.mean_b, found.p_value) == (1.0, 1.0)
    low, high = limits(found)
    assert low < 0 < high
    back = compare_unpaired([1.0] * 90 + [None] * 10, [1.0] * 90 + [0.0] * 10)
    assert back is not None
    assert limits(back) == pytest.approx((-high, -low))


def test_worse_is_found_whatever_the_missing_scores_are() -> None:
    a, b = [1.0] * 95 + [None] * 5, [1.0] * 20 + [0.0] * 75 + [None] * 5
    found = compare_unpaired(a, b)
    assert found is not None
    worst = compared([1.0] * 95 + [0.0] * 5, [1.0] * 25 + [0.0] * 75)
    assert worst.p_value / 2 <= found.p_value < worst.p_value
    assert (limits(found)[1]) < 0


def test_missing_scores_have_groups_and_weights_and_known_ends() -> None:
    groups = [place // 10 for place in range(40)]
    some = [*A, *([None] * 10)]
    found = compare_unpaired(some, B, groups=(groups, None), weights=([1.0] * 30 + [3.0] * 10, None))
    assert found is not None
    assert found.groups == 3 + 40
    by_hand = compared([*A, *([1.0] * 10)], B, groups=(groups, None), weights=([1.0] * 30 + [3.0] * 10, None))
    assert limits(by_hand)[0] < limits(found)[0] < by_hand.difference.estimate
    ends = compare_unpaired([*A, None], B, ends=([*((x, x) for x in A), (0.4, 0.6)], None))
    assert ends is not None
    assert_within(ends, compared([*A, 0.6], B), compared([*A, 0.4], B))
    assert compare_unpaired([None, None], B) is None


def test_many_scores_give_what_a_list_of_them_gives() -> None:
    numbers = np.random.default_rng(1)
    packed: list[PackedScores] = []
    listed: list[list[float | None]] = []
    ends: list[PackedEnds] = []
    for least in (0.0, 0.1):
        values = numbers.uniform(least, 1, LARGE + 5)
        values[[3, 77]] = math.nan
        packed.append(PackedScores(values))
        listed.append([None if math.isnan(value) else value for value in values.tolist()])
        ends.append(PackedEnds(values, [3, 77], [(0.0, 1.0), (0.0, 0.5)]))
    result = compare_unpaired(packed[0], packed[1], ends=(ends[0], ends[1]))
    assert result == compare_unpaired(listed[0], listed[1], ends=([*ends[0]], [*ends[1]]))
    assert result is not None
    assert result.missing == 4
