from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone.errors import DataError, EvalstoneError
from evalstone.stats.bounded_mean import EXACT, SHARE, BoundedMean
from evalstone.stats.comparison import compare_pairs
from evalstone.stats.comparison_of_many import compare_many
from evalstone.stats.drift import drift
from evalstone.stats.gates import AtLeast, MaxRegression, PassRate, decide
from evalstone.stats.intervals import mean_interval, missing_bounds
from evalstone.stats.slices import slice_by, worst_slices
from evalstone.stats.unpaired import compare_unpaired
from evalstone.stats.weighted_mean import WeightedMean, effective_number, weighted_average
from evalstone.types import note

SOURCE = np.random.default_rng(1)
SCORES = SOURCE.beta(5, 1, 60).tolist()
OTHERS = SOURCE.beta(4, 1, 60).tolist()
PASSES = [1.0] * 52 + [0.0] * 8
WEIGHTS = np.exp(SOURCE.normal(size=60)).tolist()
GROUPS = [place // 3 for place in range(60)]


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_equal_weights_are_none(groups: list[int] | None) -> None:
    for weight in (3.7, 1.7e308, 1e-300):
        for values in (SCORES, PASSES):
            found = WeightedMean.of_units(values, 0, 1, groups=groups, weights=[weight] * 60)
            assert found == WeightedMean.of_units(values, 0, 1, groups=groups)


@pytest.mark.parametrize("values", [SCORES, PASSES])
def test_with_equal_weights_every_figure_is_the_unweighted_one(values: list[float]) -> None:
    keys = [place % 3 for place in range(60)]
    plain, found = (
        (
            mean_interval(values, low=0, high=1, weights=weights),
            compare_pairs(values, OTHERS, weights=weights),
            compare_unpaired(values, OTHERS, weights=(weights, weights)),
            compare_many({"a": values, "b": OTHERS, "c": SCORES}, weights=weights),
            drift(values, OTHERS, weights=weights),
            worst_slices(values, {"f": slice_by(values, keys, weights=weights)}, weights=weights),
            decide([AtLeast("a", values, 0.8, weights=weights)]),
        )
        for weights in (None, [3.7] * 60)
    )
    assert found == plain


@pytest.mark.parametrize("share", [EXACT, SHARE])
def test_a_limit_is_the_mean_whose_p_value_is_the_error_rate(share: float) -> None:
    for values in (SCORES, PASSES, [0.9] * 59 + [0.0]):
        found = WeightedMean.of_units(values, 0, 1, weights=WEIGHTS)
        for alpha in (0.2, 0.025, 0.001):
            lower, upper = found.limit(alpha, 1, share=share), found.limit(alpha, -1, share=share)
            assert 0 <= lower < found.mean < upper <= 1
            assert found.p_value(lower, 1, share=share) == pytest.approx(alpha, rel=1e-3)
            assert found.p_value(upper, -1, share=share) == pytest.approx(alpha, rel=1e-3)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 100)), min_size=2, max_size=20),
    st.sampled_from([1e-200, 0.3, 7.0, 1e200]),
)
@settings(max_examples=25, deadline=None)
def test_only_the_ratios_of_weights_count(data: list[tuple[float, float]], factor: float) -> None:
    values, weights = [x for x, _ in data], [w for _, w in data]
    one, other = (mean_interval(values, low=0, high=1, weights=w) for w in (weights, [factor * w for w in weights]))
    assert one is not None
    assert other is not None
    assert (one.low, one.estimate, one.high) == pytest.approx((other.low, other.estimate, other.high), abs=1e-6)
    assert one.effective == pytest.approx(other.effective)
    assert one.low is not None
    assert one.high is not None
    assert 0 <= one.low <= one.estimate <= one.high <= 1


@given(st.lists(st.floats(0, 1), min_size=8, max_size=20), st.integers(0, 7))
@settings(max_examples=25, deadline=None)
def test_a_sample_of_twice_the_weight_has_the_mean_but_not_the_evidence_of_two(values: list[float], place: int) -> None:
    weights = [2.0 if at == place else 1.0 for at in range(len(values))]
    one = WeightedMean.of_units(values, 0, 1, weights=weights)
    two = BoundedMean.of([*values, values[place]], 0, 1)
    assert one.mean == pytest.approx(two.mean)
    (low, high), (low_of_two, high_of_two) = one.interval(0.95), two.interval(0.95)
    assert high - low > high_of_two - low_of_two - 1e-9


@pytest.mark.parametrize("share", [EXACT, SHARE])
def test_the_p_value_is_that_of_weight_times_distance_having_a_mean_of_0(share: float) -> None:
    values, weights = [0.2, 1.0, 1.0, 0.6, 0.9, 0.0], [1.0, 3.0, 2.0, 5.0, 1.0, 2.0]
    found = WeightedMean.of_units(values, 0, 1, weights=weights)
    for m in (0.3, 0.65, 0.9):
        pulls = BoundedMean.of([w * (x - m) for x, w in zip(values, weights, strict=True)], -5 * m, 5 * (1 - m))
        assert found.p_value(m, 1, share=share) == pytest.approx(pulls.p_value(0, 1, share=share), rel=1e-9)
        assert found.p_value(m, -1, share=share) == pytest.approx(pulls.p_value(0, -1, share=share), rel=1e-9)
    clusters = WeightedMean.of_units(values, 0, 1, weights=weights, groups=[0, 0, 1, 1, 2, 3])
    pulls = BoundedMean.of([0.2 + 3 - 2, 2 + 3 - 3.5, 0.9 - 0.5, -1.0], -3.5, 3.5)
    assert clusters.p_value(0.5, 1, share=share) == pytest.approx(pulls.p_value(0, 1, share=share), rel=1e-9)


def test_the_effective_number_is_kishs() -> None:
    assert effective_number([1.0, 1.0, 2.0]) == pytest.approx(16 / 6)
    assert effective_number([5.0] * 3) is None
    assert effective_number(None) is None
    assert weighted_average([1.0, 3.0], [0.0, 1.0]) == 0.75


def test_samples_as_heavy_as_the_heaviest_may_exist_unseen_at_the_worst_score() -> None:
    # If 9.5 % of all were heavy and failed, 30 samples would have none in 5 % of cases. Where 10 % are heavy and pass,
    # the weighted mean is then 0.65, and not the 0.905 of equal weights.
    found = WeightedMean.of_units([1.0] * 30, 0, 1, weights=[10.0] * 3 + [1.0] * 27).limit(0.05, 1)
    assert found == pytest.approx(0.67, abs=0.03)
    assert BoundedMean.of([1.0] * 30, 0, 1).limit(0.05, 1) == pytest.approx(0.905, abs=1e-3)


def test_the_interval_and_the_gate_hold_where_heavy_samples_fail_more() -> None:
    source = np.random.default_rng(7)
    truth, turns, covered, passed = (0.9 * 0.97 + 0.1 * 10 * 0.5) / 1.9, 250, 0, 0
    for _ in range(turns):
        heavy = source.random(30) < 0.1
        values = (source.random(30) < np.where(heavy, 0.5, 0.97)).astype(float).tolist()
        weights = np.where(heavy, 10.0, 1.0).tolist()
        found = WeightedMean.of_units(values, 0, 1, weights=weights)
        covered += found.two_sided_p(truth) >= 0.05
        passed += found.p_value(truth, 1) <= 0.05
    assert covered >= 0.9 * turns
    assert passed <= 0.09 * turns


@pytest.mark.slow
def test_intervals_and_gates_hold_where_long_conversations_fail_more() -> None:
    source = np.random.default_rng(7)
    sizes = np.maximum(1, np.rint(np.exp(source.normal(1.2, 0.8, 1_000_000))))
    rates = np.where(sizes >= 12, 0.5, 0.98)
    truth, turns, covered, passed, failed = float((sizes * rates).sum() / sizes.sum()), 300, 0, 0, 0
    for _ in range(turns):
        drawn = source.integers(0, sizes.size, 60)
        size = sizes[drawn].astype(int)
        passes = source.binomial(size, rates[drawn])
        values = [x for k, n in zip(passes, size, strict=True) for x in [1.0] * k + [0.0] * (n - k)]
        groups = np.repeat(np.arange(60), size).tolist()
        found = mean_interval(values, low=0, high=1, groups=groups)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
        above, below = (
            AtLeast("above", values, truth + 1e-9, groups=groups),
            AtLeast("below", values, truth - 1e-9, groups=groups),
        )
        passed += decide([above])[0].verdict == "pass"
        failed += decide([below])[0].verdict == "fail"
    assert covered >= 0.935 * turns
    assert max(passed, failed) <= 0.07 * turns  # 5 % and two standard errors


def test_bins_of_many_weighted_values_keep_the_mean() -> None:
    source = np.random.default_rng(3)
    values, weights = source.beta(9, 1, 3000).tolist(), np.exp(source.normal(size=3000)).tolist()
    found = WeightedMean.of_units(values, 0, 1, weights=weights)
    assert found.mean == pytest.approx(np.average(values, weights=weights))
    assert len(found.points) < 3000
    low, high = found.interval(0.95)
    assert low < found.mean < high
    assert found.p_value(low, 1, share=SHARE) == pytest.approx(0.025, rel=1e-3)


def test_bins_of_repeated_values_have_the_weight_of_each() -> None:
    source = np.random.default_rng(3)
    values, weights = source.beta(9, 1, 3000).tolist(), np.exp(source.normal(size=3000)).tolist()
    once, thrice = (WeightedMean.of_units(values * k, 0, 1, weights=weights * k).points for k in (1, 3))
    assert [(x, w) for x, w, _ in thrice] == [pytest.approx((x, w)) for x, w, _ in once]
    assert [k for *_, k in thrice] == [3 * k for *_, k in once]


@pytest.mark.parametrize("weights", [None, [1.0, 4.0, 4.0, 2.0]])
def test_values_that_occur_several_times_are_those_values(weights: list[float] | None) -> None:
    values, counts = [0.3, 0.9, 0.3, 0.6], [4, 1, 2, 5]
    several = [[x for x, k in zip(of, counts, strict=True) for _ in range(k)] for of in (values, weights or values)]
    found = WeightedMean.of_units(values, 0, 1, weights=weights, counts=counts)
    one_by_one = WeightedMean.of_units(several[0], 0, 1, weights=weights and several[1])
    assert (found.points, found.units) == (one_by_one.points, 12)
    assert found.mean == pytest.approx(one_by_one.mean, abs=1e-15)
    assert found.interval(0.95) == pytest.approx(one_by_one.interval(0.95), abs=1e-12)


def test_a_weighted_mean_stays_in_the_range_of_scores() -> None:
    found = mean_interval([1 + 1e-13] * 3, low=0, high=1, weights=[1.0, 2.0, 3.0])
    assert found is not None
    assert found.estimate == found.high == 1


def test_missing_scores_count_with_their_weights() -> None:
    bounds = missing_bounds([1.0, 0.0], 1, weights=([3.0, 1.0], [4.0]))
    assert bounds == pytest.approx((3 / 8, 7 / 8))
    assert missing_bounds([1.0, 0.0], 0, weights=([3.0, 1.0], [])) == (0.75, 0.75)


def test_comparisons_of_weighted_samples_have_weighted_figures_and_no_others() -> None:
    a, b, weights = [0.0, 1.0, 0.0, 1.0] * 5, [1.0, 1.0, 0.0, 0.0] * 5, [3.0, 1.0, 1.0, 1.0] * 5
    found = compare_pairs(a, b, weights=weights)
    assert found is not None
    assert (found.mean_a, found.mean_b) == pytest.approx((1 / 3, 2 / 3))
    assert found.difference.estimate == pytest.approx(1 / 3)
    assert found.difference.effective == pytest.approx(30**2 / (5 * 12))
    assert found.mcnemar is None
    assert (found.wins, found.ties, found.losses) == (5, 10, 5)
    assert found.p_value == WeightedMean.of_units(
        [y - x for x, y in zip(a, b, strict=True)], -1, 1, weights=weights
    ).two_sided_p(0)
    many = compare_many({"a": a, "b": b, "c": a}, weights=weights)
    assert many is not None
    assert many.means == pytest.approx({"a": 1 / 3, "b": 2 / 3, "c": 1 / 3})
    assert many.pairs[0].comparison == found
    changed = drift(a, b, weights=weights)
    assert changed is not None
    assert (changed.changed.estimate, changed.mean_change) == pytest.approx((4 / 6, 4 / 6))
    assert changed.p_value == found.p_value


def test_unpaired_comparisons_weight_each_run_by_its_own() -> None:
    found = compare_unpaired([0.0, 1.0] * 10, [1.0, 0.0] * 8, weights=([1.0, 3.0] * 10, None))
    assert found is not None
    assert (found.mean_a, found.mean_b) == (0.75, 0.5)
    assert found.difference.effective == pytest.approx(40**2 / 100 + 16)


def test_a_missing_score_counts_in_a_gate_with_its_weight() -> None:
    values, weights = [1.0] * 60 + [None], [1.0, 2.0] * 30 + [400.0]
    (light,), (heavy,) = (decide([AtLeast("a", values, 0.5, weights=w)]) for w in ([*weights[:60], 1.0], weights))
    assert (light.verdict, heavy.verdict) == ("pass", "inconclusive")
    assert (heavy.missing, heavy.n) == (1, 60)
    assert heavy.effective == pytest.approx(90**2 / 150)
    (rate,) = decide([PassRate("r", [1.0, 0.0] * 20, 0.5, weights=[9.0, 1.0] * 20)])
    assert (rate.estimate, rate.verdict) == (pytest.approx(0.9), "pass")
    (worse,) = decide([MaxRegression("m", [0.0, 1.0] * 20, [1.0] * 40, 0.3, weights=[1.0, 9.0] * 20)])
    assert worse.estimate == pytest.approx(-0.1)


def test_weighted_slices_are_compared_by_their_weighted_means() -> None:
    # Within each half, weights hide or show what fails; the slices' plain means are equal.
    values = [1.0, 0.0] * 60
    keys = ["bad"] * 60 + ["good"] * 60
    weights = [1.0, 9.0] * 30 + [9.0, 1.0] * 30
    slices = slice_by(values, keys, weights=weights)
    assert [part.interval.estimate for part in slices] == pytest.approx([0.1, 0.9])
    first, second = worst_slices(values, {"f": slices}, weights=weights)
    assert (first.key, second.key) == ("bad", "good")
    assert first.difference.estimate == pytest.approx(-0.8)
    assert first.rest == pytest.approx(0.9)
    assert first.adjusted_p_value < 0.001
    assert second.p_value == 1
    assert first.shrunken == pytest.approx(0.1, abs=0.05)


def test_many_values_are_grouped_without_losing_which_of_them_are_heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    source = np.random.default_rng(4)
    heavy = source.random(3000) < 0.1
    values = np.where(heavy, source.beta(2, 4, 3000), source.beta(4, 2, 3000)).tolist()
    weights = np.where(heavy, 20.0, 1 + source.random(3000)).tolist()
    grouped = WeightedMean.of_units(values, 0, 1, weights=weights)
    monkeypatch.setattr("evalstone.stats.weighted_mean.BINS", 10**6)
    single = WeightedMean.of_units(values, 0, 1, weights=weights)
    assert len(grouped.points) < len(single.points) == 3000
    assert grouped.mean == single.mean
    for mine, theirs in zip(grouped.interval(0.95), single.interval(0.95), strict=True):
        assert mine - single.mean == pytest.approx(theirs - single.mean, rel=0.01)


def test_a_few_groups_that_carry_half_of_the_weight_are_a_caution() -> None:
    values, groups = [1.0, 0.0] * 40, [place if place < 20 else 20 + place // 30 for place in range(80)]
    found = mean_interval(values, low=0, high=1, groups=groups)
    assert found is not None
    assert found.notes == (note("heavy_units", "caution", heaviest=2, of=23, noun="cluster"),)
    even = mean_interval(values, low=0, high=1, groups=[place // 3 for place in range(80)])
    assert even is not None
    assert even.notes == ()


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: missing_bounds([1.0, 0.0], 1, weights=([3.0], [4.0])),
        DataError,
        "weights must have one entry per value: 2 values and 1 missing ones",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
