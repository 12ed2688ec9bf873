from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np
import pytest
from scipy.stats import hypergeom, t

from evalstone.errors import DataError, EvalstoneError
from evalstone.stats import mean_interval
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.slices import SliceFinding, slice_by
from evalstone.stats.slices import worst_slices as worst_of
from evalstone.stats.weighted_mean import WeightedMean

SOURCE = np.random.default_rng(1)
TOPICS = ["tax", "travel", "health", "law"] * 30
VALUES = [
    float(x) - (0.4 if topic == "law" else 0) for x, topic in zip(SOURCE.uniform(0.5, 1, 120), TOPICS, strict=True)
]


def worst_slices(
    values: list[float],
    fields: Mapping[str, Sequence[Hashable]],
    *,
    scale: float = 1.0,
    groups: list[int] | None = None,
    weights: list[float] | None = None,
    **options: Any,
) -> tuple[SliceFinding, ...]:
    slices = {
        field: slice_by(values, keys, scale=scale, groups=groups, weights=weights) for field, keys in fields.items()
    }
    return worst_of(values, slices, scale=scale, groups=groups, weights=weights, **options)


def test_slices_come_in_order_with_their_means_and_places() -> None:
    found = slice_by([0.1, 0.5, 0.3, 0.9], ["b", "a", "b", None])
    assert [(s.key, s.indexes) for s in found] == [("b", (0, 2)), ("a", (1,)), (None, (3,))]
    assert found[0].interval == mean_interval([0.1, 0.3], low=0, high=1)
    assert found[1].interval == mean_interval([0.5], low=0, high=1)


def test_the_worst_slice_comes_first_and_only_it_is_found() -> None:
    found = worst_slices(VALUES, {"topic": TOPICS, "half": [place < 60 for place in range(120)]})
    assert len(found) == 6
    assert (found[0].field, found[0].key, found[0].n) == ("topic", "law", 30)
    assert found[0].adjusted_p_value < 0.001
    by_rate = worst_slices(VALUES, {"topic": TOPICS, "half": [place < 60 for place in range(120)]}, correction="fdr_bh")
    assert found[0].adjusted_p_value >= by_rate[0].adjusted_p_value == pytest.approx(found[0].p_value * 6)
    assert by_rate[1].adjusted_p_value < found[1].adjusted_p_value
    assert min(f.adjusted_p_value for f in found[1:]) > 0.05
    inside = [x for x, topic in zip(VALUES, TOPICS, strict=True) if topic == "law"]
    outside = [x for x, topic in zip(VALUES, TOPICS, strict=True) if topic != "law"]
    assert found[0].interval.estimate == pytest.approx(np.mean(inside))
    assert found[0].rest == pytest.approx(np.mean(outside))
    assert found[0].difference.high is not None
    assert found[0].difference.estimate == pytest.approx(np.mean(inside) - np.mean(outside))
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
    assert 1 - found[True].p_value <= found[False].p_value < 1


def test_shrinking_draws_by_how_little_a_slice_says() -> None:
    found = {f.key: f for f in worst_slices(VALUES, {"topic": TOPICS})}
    grand = float(np.mean(VALUES))
    law, tax = found["law"], found["tax"]
    assert law.interval.estimate < law.shrunken < grand
    assert abs(law.shrunken - law.interval.estimate) < 0.2 * abs(law.interval.estimate - grand)
    assert tax.shrunken == pytest.approx(
        grand + (law.shrunken - grand) / (law.interval.estimate - grand) * (tax.interval.estimate - grand)
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


@pytest.mark.parametrize("layout", ["whole clusters", "across the clusters"])
def test_the_p_value_of_clusters_is_that_of_exchanges_between_and_within_them(layout: str) -> None:
    # 12 clusters of 6. Whole: 5 clusters are the slice. Across: 2 samples of each are, the last cluster's are 4.
    source = np.random.default_rng(3)
    groups = np.repeat(np.arange(12), 6)
    x = np.clip(source.uniform(0.3, 0.9, 12)[groups] + source.normal(0, 0.1, 72), 0, 1)
    inside = groups < 5 if layout == "whole clusters" else (np.arange(72) % 6 < 2) | (np.arange(72) > 67)
    x -= 0.06 * inside
    (found,) = (f for f in worst_slices(x.tolist(), {"k": inside.tolist()}, groups=groups.tolist()) if f.key)
    d = (x - x.mean()).reshape(12, 6)
    shares, times = inside.reshape(12, 6).mean(axis=1), 4000
    between = [(shares * source.permutation(d.sum(axis=1))).sum() for _ in range(times)]
    within = source.permuted(np.repeat(d[None] - d.mean(axis=1)[:, None], times, axis=0), axis=2)
    sums = np.array(between) + within[:, inside.reshape(12, 6)].sum(axis=1)
    exact = sum(sums <= float(d[inside.reshape(12, 6)].sum())) / times
    assert 0.01 < exact < 0.3
    assert found.p_value == pytest.approx(exact, rel=0.25)


def test_what_varies_more_between_clusters_than_within_them_counts_as_it_varies() -> None:
    # Half of each cluster is in the slice: its half is all bad in two of eight clusters, and all good in the others.
    groups = [place // 10 for place in range(80)]
    keys = [place % 2 == 0 for place in range(80)]
    values = [float(not (key and group < 2)) for key, group in zip(keys, groups, strict=True)]
    found = {f.key: f.p_value for f in worst_slices(values, {"k": keys}, groups=groups)}
    alone = {f.key: f.p_value for f in worst_slices(values, {"k": keys})}
    assert alone[True] < 0.001
    assert 0.05 < found[True] < 0.2


def test_a_short_tail_has_no_p_value_of_0() -> None:
    groups = [place // 10 for place in range(80)]
    keys = [place % 10 < 7 for place in range(80)]
    values = [float(place not in (0, 13, 14)) for place in range(80)]  # three failures, all in the slice
    (found,) = (f for f in worst_slices(values, {"k": keys}, groups=groups) if f.key)
    assert found.p_value > 0.05


@pytest.mark.parametrize(("clusters", "layout"), [(20, "whole clusters"), (8, "across the clusters")])
@pytest.mark.slow
def test_few_clusters_of_skewed_scores_are_seldom_called_worse(clusters: int, layout: str) -> None:
    source, wrong, times = np.random.default_rng(8), 0, 250
    groups = np.repeat(np.arange(clusters), 10)
    for _ in range(times):
        x = (source.random(groups.size) < source.beta(1.7, 0.3, clusters)[groups]).astype(float)
        keys = np.isin(groups, source.choice(clusters, 3 * clusters // 4, replace=False))
        if layout == "across the clusters":
            keys = source.random(groups.size) < 0.25
        (found,) = (f for f in worst_slices(x.tolist(), {"k": keys.tolist()}, groups=groups.tolist()) if f.key)
        wrong += found.p_value <= 0.05
    assert wrong / times < 0.078  # 5 % and two standard errors


@pytest.mark.slow
def test_copies_in_a_cluster_say_no_more_about_a_slice_than_one_sample() -> None:
    source = np.random.default_rng(3)
    values, keys = source.random(60), np.arange(60) % 10
    weights = source.uniform(0.5, 1.5, 60)
    for own in (None, weights.tolist()):
        single = worst_slices(values.tolist(), {"k": keys.tolist()}, weights=own)
        copies = worst_slices(
            np.repeat(values, 10).tolist(),
            {"k": np.repeat(keys, 10).tolist()},
            groups=np.repeat(np.arange(60), 10).tolist(),
            weights=None if own is None else np.repeat(weights, 10).tolist(),
        )
        shrunken = {f.key: f.shrunken for f in single}
        assert {f.key: f.shrunken for f in copies} == pytest.approx(shrunken, abs=0.02 if own else 1e-9)


def test_clusters_that_share_nothing_shrink_like_independent_samples() -> None:
    source = np.random.default_rng(4)
    values, keys = source.random(600), np.arange(600) % 10
    clustered = worst_slices(values.tolist(), {"k": keys.tolist()}, groups=(np.arange(600) // 10).tolist())
    independent = {f.key: f.shrunken for f in worst_slices(values.tolist(), {"k": keys.tolist()})}
    assert {f.key: f.shrunken for f in clustered} == pytest.approx(independent, abs=0.01)


@pytest.mark.parametrize("shared", [0.2, -0.2, 0.0], ids=["alike", "unlike", "independent"])
@pytest.mark.parametrize("effect", [0.1, 0.0], ids=["unequal slices", "equal slices"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_means_shrink_by_the_variances_between_and_within_clusters(
    shared: float, effect: float, weighted: bool
) -> None:
    source = np.random.default_rng(6)
    groups = np.repeat(np.arange(30), [1, 2, 3, 4, 5] * 6)
    within = np.concatenate([np.arange(size) - (size - 1) / 2 for size in [1, 2, 3, 4, 5] * 6])  # adds up to 0 in each
    keys = np.arange(90) % 4
    noise = shared * source.standard_normal(30)[groups] if shared > 0 else shared * within
    values = np.clip(0.5 + effect * keys / 2 + noise + 0.1 * source.standard_normal(90), 0, 1)
    weights = source.uniform(0.5, 1.5, 90) if weighted else np.ones(90)
    found = worst_slices(
        values.tolist(),
        {"k": keys.tolist()},
        groups=groups.tolist() if shared else None,
        weights=weights.tolist() if weighted else None,
    )
    grand = float(np.average(values, weights=weights))
    if shared:
        parts = [values[groups == group] for group in range(30)]
        inside = sum(float(np.sum((part - part.mean()) ** 2)) for part in parts) / 60
        across = sum(part.size * (float(part.mean()) - float(values.mean())) ** 2 for part in parts) / 29
        between = max(0.0, (across - inside) / ((90 - sum(part.size**2 for part in parts) / 90) / 29))
    else:
        between = 0.0
        inside = float(np.average((values - grand) ** 2, weights=weights)) * (1 if weighted else 90 / 89)
    means, variances = np.empty(4), np.empty(4)
    for key in range(4):
        chosen = keys == key
        of_groups = [float(weights[chosen & (groups == group)].sum()) for group in range(30)]
        squares = between * sum(weight**2 for weight in of_groups) + inside * float(np.sum(weights[chosen] ** 2))
        means[key] = np.average(values[chosen], weights=weights[chosen])
        variances[key] = squares / float(weights[chosen].sum()) ** 2
    precisions = 1 / variances
    total = float(precisions.sum())
    center = float(np.sum(precisions * means)) / total
    spread = float(np.sum(precisions * (means - center) ** 2)) - 3
    of_slices = max(0.0, spread / (total - float(np.sum(precisions**2)) / total))
    expected = grand + of_slices / (of_slices + variances) * (means - grand)
    assert {f.key: f.shrunken for f in found} == pytest.approx(dict(enumerate(expected)))


def test_slices_without_spread_are_no_worse() -> None:
    found = worst_slices([1.0] * 20, {"half": [place < 10 for place in range(20)]})
    assert [f.p_value for f in found] == [1, 1]
    assert [f.shrunken for f in found] == [1, 1]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError) as raised:
        worst_slices([math.nan], {"k": ["a"]})
    assert (raised.value.field, raised.value.allowed) == ("values[0]", "a number in [0, 1]")


def test_a_field_and_the_slices_of_many_documents_may_be_called_anything() -> None:
    found = worst_slices(VALUES, {"values": TOPICS, "groups": TOPICS})
    assert {f.field for f in found} == {"values", "groups"}


FEW_FAILURES = [0.0, 0.0] + [1.0] * 118
GROUPS = {
    "none": None,
    "pairs": [place // 2 for place in range(120)],
    "uneven": [int(place**1.5 / 30) for place in range(120)],
    "across the topics": [place % 23 for place in range(120)],
}


@pytest.mark.parametrize("values", [VALUES, [float(x > 0.6) for x in VALUES], FEW_FAILURES, [1.0] * 120])
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_the_limits_of_a_difference_are_those_of_both_means(groups: list[int] | None, values: list[float]) -> None:
    tenths = [place // 12 for place in range(120)]
    found = worst_slices(values, {"topic": TOPICS, "tenth": tenths}, groups=groups)
    assert len(found) > 4
    for one in found:
        keys = TOPICS if one.field == "topic" else tenths
        others = [place for place, key in enumerate(keys) if key != one.key]
        labels = None if groups is None else [groups[place] for place in others]
        rest = WeightedMean.of_units([values[place] for place in others], 0, 1, groups=labels)
        assert one.rest == pytest.approx(rest.mean if groups is None else np.mean([values[i] for i in others]))
        if one.interval.low is None or one.interval.high is None:
            assert one.difference.low is None
            continue
        low, high = rest.interval(0.95)
        assert one.difference.low is not None
        assert one.difference.high is not None
        below = math.hypot(one.interval.estimate - one.interval.low, high - one.rest)
        above = math.hypot(one.interval.high - one.interval.estimate, one.rest - low)
        assert one.difference.estimate - one.difference.low == pytest.approx(below, rel=0.01)
        assert one.difference.high - one.difference.estimate == pytest.approx(above, rel=0.01)


def test_others_by_far_more_than_the_slice_take_their_reach_from_all_samples() -> None:
    values = [0.0] * 10 + VALUES + [min(1.0, x + 0.01) for x in VALUES]
    (found,) = (f for f in worst_slices(values, {"first": [place < 10 for place in range(250)]}) if f.key)
    low, high = BoundedMean.of(values[10:], 0, 1).interval(0.95)
    assert found.interval.high is not None
    assert found.difference.high is not None
    reach = math.hypot(found.interval.high - found.interval.estimate, found.rest - low)
    # The reach of all samples, which have the zeros, is wider.
    assert reach <= found.difference.high - found.difference.estimate < 1.03 * reach
    assert low < found.rest < high


def calls_of(n: int, groups: list[int] | None) -> int:
    """How many functions evalstone calls, steps of generators included, for the slices of n samples."""
    calls = 0

    def count(frame: FrameType, _event: str, _argument: object) -> None:
        nonlocal calls
        calls += frame.f_globals.get("__name__", "").startswith("evalstone.")

    values = SOURCE.uniform(0, 1, n).tolist()
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        worst_slices(values, {"url": [place // 20 for place in range(n)]}, groups=groups)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.slow
def test_the_work_on_many_slices_is_in_proportion_to_the_samples(clustered: bool) -> None:
    few, many = (calls_of(n, [place // 3 for place in range(n)] if clustered else None) for n in (500, 4000))
    assert many < 12 * few


def test_clusters_of_one_sample_are_independent_samples():
    values = [round((place % 13) ** 3 / 12**3, 3) for place in range(60)]
    keys = [place % 7 < 2 for place in range(60)]
    plain, single = (worst_slices(values, {"k": keys}, groups=groups) for groups in (None, list(range(60))))
    assert [one.p_value for one in single] == pytest.approx([one.p_value for one in plain], rel=1e-9)
    assert {0.0, 1.0}.isdisjoint(one.p_value for one in plain)


def test_a_slice_of_shares_of_clusters_has_a_degree_of_freedom_less_than_clusters() -> None:
    values, keys = [0.4, 0.4, 0.6, 0.6] * 6, ["low", "low", "high", "high"] * 6
    groups = [place // 4 for place in range(24)]
    worst = worst_slices(values, {"f": keys}, groups=groups)[0]
    assert worst.key == "low"
    assert worst.p_value == pytest.approx(t(5).cdf(-math.sqrt(6)))


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: slice_by([0.5], ["a", "b"]),
        DataError,
        "one entry per sample is needed in each: values has 1, keys has 2",
    ),
    (
        lambda: worst_slices(VALUES, {"k": ["a"]}),
        DataError,
        "one entry per sample is needed in each: values has 120, keys has 1",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
