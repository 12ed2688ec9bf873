from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from evalstone.errors import ConfigError, DataError
from evalstone.stats.bounded_mean import SHARE, BoundedMean
from evalstone.stats.comparison import compare_pairs
from evalstone.stats.paired_differences import possible_differences
from evalstone.stats.partly_known import PartlyKnown
from evalstone.stats.pilot import Pilot, SampleSizePlan, plan_sample_size
from evalstone.stats.power import Changes, PartlyMissing, Shifts, mcnemar_power, samples_needed
from evalstone.types import note


def plan(pilot: Pilot | None, difference: float) -> SampleSizePlan:
    found = plan_sample_size(pilot, difference)
    assert found is not None
    return found


def numbers(found: SampleSizePlan) -> tuple[int, int, int]:
    """The number of samples, between the ends of its range."""
    assert found.needed_low is not None
    assert found.needed is not None
    assert found.needed_high is not None
    return found.needed_low, found.needed, found.needed_high


Draw: TypeAlias = Callable[[np.random.Generator], NDArray[np.float64]]


POPULATIONS: dict[str, Draw] = {
    "small differences": lambda s: s.normal(0, 0.05, 2000),
    "ordinary differences": lambda s: np.clip(s.normal(0.02, 0.15, 2000), -1, 1),
    "few change": lambda s: np.where(s.random(2000) < 0.2, np.clip(s.normal(0, 0.3, 2000), -1, 1), 0.0),
    "skewed": lambda s: np.where(s.random(2000) < 0.08, -s.beta(5, 5, 2000), 0.0),
}


@pytest.mark.parametrize("name", POPULATIONS)
def test_plans_for_scores_have_the_power_that_was_asked_for(name: str) -> None:
    source = np.random.default_rng(4)
    pilot = np.round(POPULATIONS[name](source), 2)
    found = Pilot.of(pilot.tolist())
    assert found is not None
    n = samples_needed(found.population(), 0.06)
    moved = np.clip(pilot + (0.06 - pilot.mean()), -1, 1)
    samples = [BoundedMean.of(source.choice(moved, n).tolist(), -1, 1) for _ in range(200)]
    shown = np.mean([sample.p_value(0.0, 1, share=SHARE) <= 0.025 for sample in samples])
    assert 0.8 - 0.1 < shown < 0.8 + 0.1  # 3.5 standard errors


def test_a_range_holds_the_samples_that_are_truly_needed() -> None:
    source = np.random.default_rng(6)
    truly = samples_needed(Changes(0.3), 0.1)
    held = 0
    for _ in range(60):
        found = plan(
            Pilot.of(source.choice([1.0, -1.0, 0.0], p=[0.2, 0.1, 0.7], size=60).tolist(), pass_fail=True), 0.1
        )
        low, _, high = numbers(found)
        held += low <= truly <= high
    assert 0.7 * 60 < held < 0.95 * 60


def test_needed_and_detectable_agree() -> None:
    for pilot in (
        Pilot.of([0.1, -0.1, 0.3, -0.2, 0.0] * 40),
        Pilot.of([1.0, -1.0, 0.0, 0.0, 0.0] * 40, pass_fail=True),
    ):
        assert pilot is not None
        found = pilot.detectable()
        assert found is not None
        assert samples_needed(pilot.population(), found) == pytest.approx(200, rel=0.02)


def test_a_plan_from_a_pilot() -> None:
    found = plan(Pilot.of([0.1, -0.1] * 20 + [0.0] * 20), 0.03)
    assert (found.n, found.mean, found.groups, found.notes) == (60, 0, None, ())
    assert found.deviation == pytest.approx(math.sqrt(0.4 / 59))
    low, needed, high = numbers(found)
    assert low <= needed < high
    assert found.test.endswith("mean difference")
    changes = plan(Pilot.of([1.0] * 8 + [-1.0] * 3 + [0.0] * 89, pass_fail=True), 0.05)
    assert changes.needed == samples_needed(Changes(0.11), 0.05)
    assert changes.test == "mid-p McNemar test"


def test_missing_scores_take_what_a_comparison_counts() -> None:
    known = [1.0] * 20 + [-1.0] * 8 + [0.0] * 64
    pilot = Pilot.of([*known, *[None] * 8], pass_fail=True, ends=[*((x, x) for x in known), *[(-1.0, 0.0)] * 8])
    assert pilot is not None
    assert (pilot.n, pilot.samples, pilot.units, pilot.missing) == (92, 100, 100, 8)
    population = pilot.population()
    assert isinstance(population, PartlyMissing)
    # 20 gained, 16 lost at worst: 0.92 · 12/92 - 0.08 = 0.04
    assert isinstance(population.lowest, Changes)
    assert population.lowest.share == pytest.approx(0.36)
    n = samples_needed(population, 12 / 92)
    partly = PartlyKnown(0.08 * math.sqrt(n / (0.36 - 0.04**2)))
    assert mcnemar_power(n, 0.2, 0.16, 2 * partly.error_rate(0.05)) == pytest.approx(0.8, abs=0.005)
    with pytest.raises(ConfigError, match="would need more"):
        samples_needed(population, 0.08)
    assert plan(pilot, 0.08).needed is None
    assert plan(pilot, 12 / 92).needed == pytest.approx(n, rel=0.005)


def test_the_direction_in_which_missing_scores_take_more_is_planned() -> None:
    known = [0.1, -0.1, 0.2, -0.2] * 20
    losses, gains = ([*((x, x) for x in known), *[end] * 4] for end in ((-0.9, 0.1), (-0.1, 0.9)))
    one, other = (plan(Pilot.of([*known, *[None] * 4], ends=ends), 0.1) for ends in (losses, gains))
    assert one.needed == other.needed
    # 0.1 · 80/84 - 4 · 0.9/84 = 0.052 of 0.1 is left
    assert numbers(one)[1] > 2 * numbers(plan(Pilot.of(known), 0.1))[1]
    anything = plan(Pilot.of([*known, *[None] * 4]), 0.1)
    assert numbers(anything)[1] > numbers(one)[1]


def test_plans_with_missing_scores_have_the_power_that_was_asked_for() -> None:
    source = np.random.default_rng(8)

    def runs(n: int) -> tuple[list[float], list[float | None]]:
        a = np.round(source.uniform(0.3, 0.7, n), 2)
        b = np.round(a + source.normal(0.08, 0.12, n), 2)
        return a.tolist(), [None if source.random() < 0.05 else x for x in np.clip(b, 0, 1).tolist()]

    a, b = runs(4000)
    values, ends = possible_differences(a, b, scale=1, reach=1)
    pilot = Pilot.of(values, ends=ends)
    assert pilot is not None
    n = samples_needed(pilot.population(), 0.08)
    ignoring = Pilot.of([x for x in values if x is not None])
    assert ignoring is not None
    assert n > 1.5 * samples_needed(ignoring.population(), 0.08)
    compared = [compare_pairs(*runs(n)) for _ in range(200)]
    assert 0.7 < np.mean([one is not None and one.p_value <= 0.05 for one in compared]) < 0.9  # 3.5 standard errors


def test_one_run_stands_for_two_independent_ones() -> None:
    one = Pilot.of([0.0] * 20 + [1.0] * 80, paired=False, pass_fail=True)
    assert one is not None
    changes = one.population()
    assert isinstance(changes, Changes)
    assert changes.share == pytest.approx(2 * 0.8 * 0.2 * 100 / 99)
    scores = Pilot.of([0.2, 0.4, 0.6, 0.8] * 25, paired=False)
    assert scores is not None
    assert scores.deviation == pytest.approx(math.sqrt(2 * 0.05 * 100 / 99))


def test_the_scale_changes_nothing() -> None:
    scores = [0.1, -0.1, 0.3, -0.2, 0.0] * 12
    one, five = plan(Pilot.of(scores), 0.05), plan(Pilot.of([5 * x for x in scores], scale=5), 0.25)
    assert (one.needed, one.needed_low, one.needed_high) == (five.needed, five.needed_low, five.needed_high)
    passes = [1.0, -1.0, 0.0, 0.0, 0.0] * 12
    one = plan(Pilot.of(passes, pass_fail=True), 0.1)
    five = plan(Pilot.of([5 * x for x in passes], scale=5, pass_fail=True), 0.5)
    assert (one.needed, one.needed_low, one.needed_high) == (five.needed, five.needed_low, five.needed_high)


def test_clusters_are_what_is_planned() -> None:
    scores = [0.1, -0.1, 0.3, -0.2, 0.0, 0.2, -0.3, 0.0] * 10
    alone = plan(Pilot.of(scores), 0.05)
    twins = plan(Pilot.of([x for x in scores for _ in range(3)], groups=[g for g in range(80) for _ in range(3)]), 0.05)
    assert twins.groups == alone.needed
    assert twins.needed == 3 * numbers(alone)[1]
    assert Pilot.of([0.1, 0.2], groups=["a", "a"]) is None
    uneven = plan(Pilot.of(scores, groups=[*range(60), *(g // 4 for g in range(20))]), 0.05)
    assert uneven.groups is not None
    assert uneven.needed == pytest.approx(uneven.groups * 80 / 60, abs=1)


def test_a_pilot_that_says_little_says_so() -> None:
    few, still = plan(Pilot.of([0.1, 0.2, 0.0]), 0.03), plan(Pilot.of([0.1] * 30), 0.03)
    assert few.notes == (note("small_pilot", "caution", n=3),)
    assert still.notes == (note("constant_pilot", "caution"),)
    # p = (1 / 1.03)^n: that a sample in 34 is at -1 and was not seen
    assert still.needed == still.needed_low == math.ceil(math.log(40) / math.log(1.03))
    assert numbers(still)[2] > 2 * numbers(still)[1]
    assert Pilot.of([0.1]) is None
    unchanged = plan(Pilot.of([0.0] * 30, pass_fail=True), 0.05)
    low, needed, high = numbers(unchanged)
    assert samples_needed(Changes(0.0), 0.05) == low < needed == high


@pytest.mark.parametrize("pass_fail", [True, False])
def test_a_difference_beyond_the_changes_of_the_pilot_is_planned_by_a_bound(pass_fail: bool) -> None:
    pilot = Pilot.of([1.0] + [0.0] * 79, pass_fail=pass_fail)
    found = plan(pilot, 0.05)
    assert found.notes == (note("few_pilot_changes", "caution", changed=1 / 80, difference=0.05),)
    # The changes of the pilot stay, and 5% more samples change.
    low, needed, high = numbers(found)
    assert low < needed == high
    assert pilot is not None
    if pass_fail:
        assert found.needed == samples_needed(Changes(pilot.limits()[1] + 0.05), 0.05)
        assert mcnemar_power(needed, 0.07, 0.02) > 0.8
    detectable = pilot.detectable()
    assert detectable is not None
    assert samples_needed(pilot.population(difference=detectable), detectable) <= 81
    within = plan(Pilot.of([1.0, -1.0] * 4 + [0.0] * 72, pass_fail=pass_fail), 0.05)
    assert within.notes == ()


def test_a_few_changes_by_the_whole_scale_have_a_detectable_difference() -> None:
    changes = [1.0, *[-1.0] * 4, *[0.0] * 35]
    pilot, pairs = Pilot.of(changes), Pilot.of(changes, pass_fail=True)
    assert pilot is not None
    assert pairs is not None
    detectable = pilot.detectable()
    assert detectable is not None
    assert detectable == pytest.approx(pairs.detectable(), rel=0.02)
    assert samples_needed(pilot.population(difference=detectable), detectable) == pytest.approx(40, abs=1)


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ConfigError) as raised:
        samples_needed(Changes(0.1), 0.1, power=0.01)
    assert (raised.value.field, raised.value.value) == ("power", 0.01)
    for difference in (0.0, -0.1, 1.5, math.nan, math.inf):
        with pytest.raises(ConfigError) as raised:
            samples_needed(Changes(0.1), difference)
        assert (raised.value.field, str(raised.value.value)) == ("difference", str(difference))
        assert raised.value.allowed.endswith("at most 1")
    with pytest.raises(DataError, match=r"a number in \[0, 1\]"):
        Pilot.of([0.5, -0.5], paired=False)


@pytest.mark.filterwarnings("error")
def test_changes_that_no_pilot_cluster_shows_are_planned_for_without_a_warning() -> None:
    groups = [place // 12 for place in range(72)]
    changes = np.repeat([1.0, 1.0, 0.0, 0.0, 0.0, -1.0], 12).tolist()
    pilot = Pilot.of(changes, groups=groups)
    assert pilot is not None
    assert pilot.most == 0.5
    assert pilot.detectable() == pytest.approx(0.79, abs=0.01)


def test_a_larger_mean_square_adds_just_as_many_changes_by_the_whole_scale() -> None:
    pilot = Pilot.of([0.1, 0.3, -0.2, 0.4, 0.0, 0.2])
    assert pilot is not None
    for square in (0.01, 0.1, 0.5, 1.0):
        population = pilot.population(square)
        assert isinstance(population, Shifts)
        assert sum(share for *_, share in population.points) == pytest.approx(1)
        within = sum(share * x**2 for x, _, share in population.points)
        added = 0.0 if square < 0.05 else (square - pilot.mean_square) / (1 - pilot.mean_square)
        own = sum(share * x**2 for x, _, share in pilot.points)
        expected = added + (1 - added) * own if added else own * square / pilot.mean_square
        assert within == pytest.approx(expected)


def test_the_largest_square_is_that_of_a_change_by_the_whole_scale_against_the_mean() -> None:
    pilot = Pilot.of([0.1, 0.3, -0.2, 0.4, 0.0, 0.2], scale=2.0)
    assert pilot is not None
    assert pilot.largest == pytest.approx(6 / 5 * (2 + 0.8 / 6) ** 2)


def test_a_plan_s_detectable_difference_has_the_plan_s_power() -> None:
    pilot = Pilot.of([0.1, 0.3, -0.2, 0.4, 0.0, 0.2] * 20)
    plan = plan_sample_size(pilot, 0.1, power=0.95)
    assert pilot is not None
    assert plan is not None
    assert plan.detectable == pilot.detectable(power=0.95)
    assert plan.detectable != pilot.detectable()
