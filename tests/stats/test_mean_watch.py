"""Watching a mean: an error rate over the whole watch, late changes found, and nothing that later values change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone.errors import ConfigError, DataError
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.mean_watch import BASELINE_SHARE, BETS, MeanWatch, capitals, watch_mean

SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]), min_size=1, max_size=60)
BASELINE = [1.0] * 180 + [0.0] * 20


def watched(baseline: list[float], values: list[float], **options: Any) -> MeanWatch:
    watch = watch_mean(baseline, values, **options)
    assert watch is not None
    return watch


def by_definition(values: list[float], bound: float) -> list[float]:
    """M(t), each start and bet by itself."""
    found: list[float] = []
    for t in range(1, len(values) + 1):
        total = 0.0
        for bet in BETS:
            for j in range(1, t + 1):
                given = 1 / math.log2(j + 1) - 1 / math.log2(j + 2)
                total += given * math.prod(1 + bet / (1 - bound) * (bound - x) for x in values[j - 1 : t])
        found.append(total / len(BETS))
    return found


@given(SCORES, st.floats(0.05, 0.95))
@settings(max_examples=30, deadline=None)
def test_the_capital_is_that_of_every_start_and_bet(values: list[float], bound: float) -> None:
    together, _ = capitals(np.array(values[:15]), bound, np.arange(len(values[:15])))
    assert np.exp(together) == pytest.approx(by_definition(values[:15], bound), rel=1e-9)


@pytest.mark.parametrize("bound", [0.1, 0.5, 0.9])
def test_the_capital_never_grows_on_average_where_the_mean_is_the_bound(bound: float) -> None:
    """Exactly: over all sequences of six values that are 0 or 1 with this mean, the mean of M + G is at most 1."""
    at_six = 0.0
    for bits in range(64):
        values = [float(bits >> place & 1) for place in range(6)]
        chance = math.prod(bound if value else 1 - bound for value in values)
        at_six += chance * (math.exp(capitals(np.array(values), bound, np.arange(6))[0][-1]) + 1 / math.log2(8))
    assert at_six == pytest.approx(1.0)


@pytest.mark.parametrize("rates", [[0.9, 0.2, 0.4], [0.5, 0.5, 0.5], [1.0, 0.0, 0.5]])
def test_the_capital_never_grows_on_average_over_whole_cycles_with_this_mean(rates: list[float]) -> None:
    """Exactly: over all sequences of two cycles of three values that are 0 or 1."""
    bound, both, at_end = 0.5, rates * 2, 0.0
    for bits in range(64):
        values = [float(bits >> place & 1) for place in range(6)]
        chance = math.prod(rate if value else 1 - rate for value, rate in zip(values, both, strict=True))
        at_end += chance * (math.exp(capitals(np.array(values), bound, np.array([0, 3]))[0][-1]) + 1 / math.log2(4))
    assert at_end <= 1 + 1e-12


def test_a_cycle_is_one_bet_after_another_and_bettors_start_with_cycles() -> None:
    values, bound, starts = np.array([1.0, 0.0, 0.25, 0.5, 0.0]), 0.6, [0, 2, 3]
    expected: list[float] = []
    for end in (2, 3, 5):
        total = 0.0
        for bet in BETS:
            for j, start in enumerate(starts[: starts.index(end) if end in starts else 3], 1):
                given = 1 / math.log2(j + 1) - 1 / math.log2(j + 2)
                total += given * math.prod(1 + bet / (1 - bound) * (bound - x) for x in values[start:end])
        expected.append(total / len(BETS))
    assert np.exp(capitals(values, bound, np.array(starts))[0]) == pytest.approx(expected)


def test_a_bad_night_is_a_drop_unless_days_are_the_cycles() -> None:
    source = np.random.default_rng(8)

    def days(number: int, night: float) -> list[float]:
        rate = np.tile(np.repeat([0.95, night], [700, 300]), number)
        return (source.random(rate.size) < rate).astype(float).tolist()

    baseline, same, worse = days(7, 0.7), days(10, 0.7), days(10, 0.4)
    day = [place // 1000 for place in range(10_000)]
    assert watched(baseline, same).verdict == "drifted"
    assert watch_mean(baseline, same, cycles=day) == watch_mean(baseline, same, cycles=[3 * d for d in day])
    by_day = watch_mean(baseline, same, cycles=day)
    assert by_day is not None
    assert by_day.verdict.startswith("no drift")
    fell = watch_mean(baseline, worse, cycles=day)
    assert fell is not None
    assert (fell.verdict, fell.alarm, fell.changed) == ("drifted", 999, 0)
    late = watch_mean(baseline, same + worse, cycles=[place // 1000 for place in range(20_000)])
    assert late is not None
    assert (late.alarm, late.changed) == (11_999, 10_000)  # the end of the second worse day


def test_every_value_its_own_cycle_is_no_cycle() -> None:
    values = [1.0, 1.0, 0.0, 0.0] * 50
    assert watch_mean(BASELINE, values, cycles=range(200)) == watch_mean(BASELINE, values)
    assert watch_mean(BASELINE, [], cycles=[]) == watch_mean(BASELINE, [])


@pytest.mark.parametrize(("cycles", "says"), [([0, 1, 0], "value 2 is of an earlier cycle"), ([0, 0], "cycles has 2")])
def test_cycles_that_go_back_or_are_missing_are_refused(cycles: list[int], says: str) -> None:
    with pytest.raises(DataError, match=says):
        watch_mean(BASELINE, [1.0, 1.0, 1.0], cycles=cycles)


@given(SCORES, SCORES, st.integers(0, 60))
@settings(max_examples=60, deadline=None)
def test_later_values_change_nothing_that_was_said(baseline: list[float], values: list[float], cut: int) -> None:
    early, late = watched(baseline, values[:cut], alpha=0.4), watched(baseline, values, alpha=0.4)
    assert late.evidence >= early.evidence * (1 - 1e-9)
    if early.verdict == "drifted":
        assert (late.alarm, late.changed) == (early.alarm, early.changed)
        assert late.verdict == "drifted"
    elif late.alarm is not None:
        assert late.alarm >= len(values[:cut])


def test_a_fall_is_found_at_once_and_late_with_about_where_it_began() -> None:
    source = np.random.default_rng(5)
    good, bad = (source.random(2000) < 0.9), (source.random(400) < 0.6)
    early = watched(BASELINE, bad.astype(float).tolist())
    assert early.alarm is not None
    assert early.alarm < 120
    late = watched(BASELINE, np.concatenate([good, bad]).astype(float).tolist())
    assert late.verdict == "drifted"
    assert late.alarm is not None
    assert late.changed is not None
    assert 2000 <= late.alarm < 2200
    assert 1950 <= late.changed <= 2050
    assert late.mean_since == pytest.approx(0.6, abs=0.08)
    assert late.mean is not None
    assert late.mean > late.bound  # the mean over everything hides it


def test_what_comes_after_an_alarm_does_not_move_where_the_change_began() -> None:
    fall = [1.0] * 60 + [0.6, 0.4] * 60
    at_alarm, later = watched(BASELINE, fall), watched(BASELINE, fall + [1.0] * 2000)
    assert at_alarm.alarm is not None
    assert (later.alarm, later.changed) == (at_alarm.alarm, at_alarm.changed)


def test_what_is_no_worse_than_the_baseline_raises_no_alarm() -> None:
    source = np.random.default_rng(6)
    alarms = 0
    for _ in range(200):
        baseline = (source.random(60) < 0.8).astype(float).tolist()
        alarms += watched(baseline, (source.random(600) < 0.8).astype(float).tolist(), tolerance=0).verdict == "drifted"
    assert alarms <= 10, "5% of 200"


def test_a_fall_within_the_tolerance_is_none() -> None:
    values = [1.0, 0.0] * 500
    baseline = [0.55] * 4000
    assert watched(baseline, values, tolerance=0.2).verdict.startswith("no drift")
    assert watched(baseline, values, tolerance=0.02).bound == pytest.approx(
        BoundedMean.of(baseline, 0, 1).limit(BASELINE_SHARE * 0.05, 1) - 0.02
    )


def test_too_few_is_said_while_the_worst_could_raise_no_alarm() -> None:
    assert watched(BASELINE, []).verdict == "too few"
    assert watched(BASELINE, [0.0]).verdict == "too few"
    worst = [watched(BASELINE, [0.0] * n).verdict for n in range(12)]
    assert set(worst) == {"too few", "drifted"}
    turn = worst.index("drifted")
    assert watched(BASELINE, [1.0] * (turn - 1)).verdict == "too few"
    assert watched(BASELINE, [1.0] * turn).verdict.startswith("no drift")


def test_a_baseline_that_says_nothing_finds_nothing() -> None:
    watch = watched([0.5], [0.0] * 1000)
    assert (watch.verdict, watch.alarm) == ("too few", None)
    assert watch.bound <= 0.02
    assert watch_mean([], [1.0]) is None


def test_scores_of_another_scale_give_the_same() -> None:
    values = [1.0] * 50 + [0.0] * 50
    ones, tens = watched(BASELINE, values), watched([10 * x for x in BASELINE], [10 * x for x in values], scale=10)
    assert (tens.alarm, tens.changed, tens.verdict) == (ones.alarm, ones.changed, "drifted")
    assert tens.bound == pytest.approx(10 * ones.bound)
    assert tens.mean_since == pytest.approx(10 * (ones.mean_since or 0))


def test_the_alarm_comes_with_the_first_capital_of_one_by_the_watchs_part_of_alpha() -> None:
    values = [1.0, 1.0, 1.0, 0.0] * 200
    alarm = watched(BASELINE, values).alarm
    assert alarm is not None
    bar = 1 / (0.05 * (1 - BASELINE_SHARE))
    assert watched(BASELINE, values[:alarm]).evidence < bar <= watched(BASELINE, values[: alarm + 1]).evidence


def test_a_stricter_alpha_alarms_later() -> None:
    values = [0.0] * 100
    at = [watched(BASELINE, values, alpha=alpha).alarm or 0 for alpha in (0.4, 0.05, 0.001)]
    assert at == sorted(set(at))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"alpha": 0.5}, "alpha"),
        ({"alpha": 0}, "alpha"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"tolerance": 1}, "tolerance"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        watch_mean([1.0], [1.0], **options)


@pytest.mark.parametrize(("baseline", "values"), [([1.1], [1.0]), ([1.0], [math.nan]), ([1.0], [-0.5])])
def test_values_outside_the_range_are_refused(baseline: list[float], values: list[float]) -> None:
    with pytest.raises(DataError, match="not a number in"):
        watch_mean(baseline, values)
