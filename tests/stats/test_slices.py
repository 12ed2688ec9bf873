from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from scipy.stats import hypergeom, t

from evalstone.errors import DataError
from evalstone.stats import mean_interval
from evalstone.stats.slices import slice_by, worst_slices

SOURCE = np.random.default_rng(1)
TOPICS = ["tax", "travel", "health", "law"] * 30
VALUES = [
    float(x) - (0.4 if topic == "law" else 0) for x, topic in zip(SOURCE.uniform(0.5, 1, 120), TOPICS, strict=True)
]


def test_slices_come_in_order_with_their_means_and_places() -> None:
    found = slice_by([0.1, 0.5, 0.3, 0.9], ["b", "a", "b", None])
    assert [(s.key, s.indexes) for s in found] == [("b", (0, 2)), ("a", (1,)), (None, (3,))]
    assert found[0].interval == mean_interval([0.1, 0.3], low=0, high=1)
    assert found[1].interval.low is None


def test_the_worst_slice_comes_first_and_only_it_is_found() -> None:
    found = worst_slices(VALUES, {"topic": TOPICS, "half": [place < 60 for place in range(120)]})
    assert len(found) == 6
    assert (found[0].field, found[0].key, found[0].n) == ("topic", "law", 30)
    assert found[0].adjusted_p < 0.001
    by_rate = worst_slices(VALUES, {"topic": TOPICS, "half": [place < 60 for place in range(120)]}, correction="fdr_bh")
    assert found[0].adjusted_p >= by_rate[0].adjusted_p == pytest.approx(found[0].p_value * 6)
    assert by_rate[1].adjusted_p < found[1].adjusted_p
    assert min(f.adjusted_p for f in found[1:]) > 0.05
    inside = [x for x, topic in zip(VALUES, TOPICS, strict=True) if topic == "law"]
    outside = [x for x, topic in zip(VALUES, TOPICS, strict=True) if topic != "law"]
    assert found[0].interval.mean == pytest.approx(np.mean(inside))
    assert found[0].rest == pytest.approx(np.mean(outside))
    assert found[0].difference.high is not None
    assert found[0].difference.mean == pytest.approx(np.mean(inside) - np.mean(outside))
    assert found[0].difference.high < -0.3


def test_lower_is_better_turns_the_worst_round() -> None:
    turned = worst_slices([1 - x for x in VALUES], {"topic": TOPICS}, lower_is_better=True)
    plain = worst_slices(VALUES, {"topic": TOPICS})
    assert [f.key for f in turned] == [f.key for f in plain]
    assert [f.p_value for f in turned] == pytest.approx([f.p_value for f in plain])


def test_p_values_are_close_to_those_of_all_permutations() -> None:
    # 6 failures in a slice of 40 of 200 with 10 failures in all: hypergeometric, half of the seen count (mid-p)
    values = [0.0] * 6 + [1.0] * 34 + [0.0] * 4 + [1.0] * 156
    found = {f.key: f for f in worst_slices(values, {"first": [place < 40 for place in range(200)]})}
    exact = float(hypergeom.sf(6, 200, 10, 40)) + float(hypergeom.pmf(6, 200, 10, 40)) / 2
    assert found[True].p_value == pytest.approx(exact, rel=0.4)
    assert found[False].p_value == pytest.approx(1 - found[True].p_value)


def test_shrinking_draws_by_how_little_a_slice_says() -> None:
    found = {f.key: f for f in worst_slices(VALUES, {"topic": TOPICS})}
    grand = float(np.mean(VALUES))
    law, tax = found["law"], found["tax"]
    assert law.interval.mean < law.shrunken < grand
    assert abs(law.shrunken - law.interval.mean) < 0.2 * abs(law.interval.mean - grand)
    assert tax.shrunken == pytest.approx(
        grand + (law.shrunken - grand) / (law.interval.mean - grand) * (tax.interval.mean - grand)
    )
    same = worst_slices([0.2, 0.8] * 20, {"half": [place < 20 for place in range(40)]})
    assert [f.shrunken for f in same] == pytest.approx([0.5, 0.5])


def test_small_slices_are_left_out() -> None:
    keys = ["big"] * 20 + ["small"] * 4
    assert worst_slices([0.5, 0.7] * 12, {"k": keys}) == ()
    assert worst_slices([], {"k": []}) == ()


def test_groups_make_a_slice_less_certain_and_count_as_one_each() -> None:
    groups = [place // 12 for place in range(120)]
    keys = [place < 60 for place in range(120)]
    values = [0.4 + 0.05 * (group % 5) + 0.1 * (group >= 5) for group in groups]
    alone = worst_slices(values, {"half": keys})
    grouped = worst_slices(values, {"half": keys}, groups=groups)
    assert alone[0].p_value < 1e-6
    assert 0.001 < grouped[0].p_value < 0.2
    assert worst_slices(values, {"half": [place < 48 for place in range(120)]}, groups=groups) == ()


def test_a_cluster_of_a_slice_may_be_as_large_as_all_other_samples() -> None:
    groups = [0] * 6 + list(range(1, 11))
    found = worst_slices(VALUES[:16], {"k": [place < 10 for place in range(16)]}, groups=groups)
    rest = mean_interval(VALUES[10:16], low=0, high=1, groups=groups[10:])
    assert rest is not None
    assert rest.low is not None
    one = next(f for f in found if f.key)
    assert one.interval.high is not None
    reach = math.hypot(one.interval.high - one.interval.mean, rest.mean - rest.low)
    assert one.difference.high == pytest.approx(one.difference.mean + reach)


@pytest.mark.parametrize("across", [True, False], ids=["clusters across the slice", "whole clusters"])
def test_the_p_value_of_clusters_is_that_of_their_parts_in_the_difference(across: bool) -> None:
    groups = [place % 7 if across else place // 12 for place in range(120)]
    inside = [place < 60 or (across and place % 7 == 0) for place in range(120)]
    found = {f.key: f.p_value for f in worst_slices(VALUES, {"k": inside}, groups=groups)}
    mean, size = sum(VALUES) / 120, sum(inside)
    parts = dict.fromkeys(groups, 0.0)
    for value, group, own in zip(VALUES, groups, inside, strict=True):
        parts[group] += (value - mean) * (1 / size if own else -1 / (120 - size))
    error = math.sqrt(sum(part**2 for part in parts.values()) * len(parts) / (len(parts) - 1))
    assert found[True] == pytest.approx(float(t.cdf(sum(parts.values()) / error, len(parts) - 2)))
    assert found[False] == pytest.approx(1 - found[True])


def test_slices_without_spread_are_no_worse() -> None:
    found = worst_slices([1.0] * 20, {"half": [place < 10 for place in range(20)]})
    assert [f.p_value for f in found] == [1, 1]
    assert [f.shrunken for f in found] == [1, 1]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="values has 1, keys has 2"):
        slice_by([0.5], ["a", "b"])
    with pytest.raises(DataError, match="values: value 0 is nan"):
        worst_slices([math.nan], {"k": ["a"]})


def test_a_field_and_the_slices_of_many_documents_may_be_called_anything() -> None:
    found = worst_slices(VALUES, {"values": TOPICS, "groups": TOPICS})
    assert {f.field for f in found} == {"values", "groups"}
    with pytest.raises(DataError, match="values has 120, field k has 1"):
        worst_slices(VALUES, {"k": ["a"]})


FEW_FAILURES = [0.0, 0.0] + [1.0] * 118
GROUPS = {
    "none": None,
    "pairs": [place // 2 for place in range(120)],
    "uneven": [int(place**1.5 / 30) for place in range(120)],
    "across the topics": [place % 23 for place in range(120)],
}


@pytest.mark.parametrize("values", [VALUES, [float(x > 0.6) for x in VALUES], FEW_FAILURES, [1.0] * 120])
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_the_rest_is_all_other_samples(groups: list[int] | None, values: list[float]) -> None:
    found = worst_slices(values, {"topic": TOPICS, "tenth": [place // 12 for place in range(120)]}, groups=groups)
    assert len(found) > 4
    for one in found:
        keys = TOPICS if one.field == "topic" else [place // 12 for place in range(120)]
        others = [place for place, key in enumerate(keys) if key != one.key]
        labels = None if groups is None else [groups[place] for place in others]
        rest = mean_interval([values[place] for place in others], low=0, high=1, groups=labels)
        assert rest is not None
        assert one.rest == pytest.approx(rest.mean)
        if one.interval.low is None or rest.high is None:
            assert one.difference.low is None
            continue
        reach = math.hypot(one.interval.mean - one.interval.low, rest.high - rest.mean)
        assert one.difference.low == pytest.approx(one.difference.mean - reach)


def calls_of(n: int, groups: list[int] | None) -> int:
    """How many functions are called, steps of generators included, for the slices of n samples."""
    calls = 0

    def count(_frame: object, _event: str, _argument: object) -> None:
        nonlocal calls
        calls += 1

    values = SOURCE.uniform(0, 1, n).tolist()
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        worst_slices(values, {"url": [place // 20 for place in range(n)]}, groups=groups)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("clustered", [False, True])
def test_the_work_on_many_slices_is_in_proportion_to_the_samples(clustered: bool) -> None:
    few, many = (calls_of(n, [place // 3 for place in range(n)] if clustered else None) for n in (500, 4000))
    assert many < 12 * few


@pytest.mark.parametrize("size", range(5, 15))
def test_the_rest_may_lack_any_spread(size: int) -> None:
    # The sums of squares cancel but for rounding.
    found = worst_slices([0.0] + [1.0] * 19, {"failing": [place < size for place in range(20)]})
    (one,) = (f for f in found if f.key)
    rest = mean_interval([1.0] * (20 - size), low=0, high=1)
    assert rest is not None
    assert rest.low is not None
    assert one.interval.high is not None
    reach = math.hypot(one.interval.high - one.interval.mean, rest.mean - rest.low)
    assert one.difference.high == pytest.approx(one.difference.mean + reach)
