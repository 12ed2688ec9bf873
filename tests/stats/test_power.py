from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest
import scipy.stats
import statsmodels.stats.power as reference  # pyright: ignore[reportMissingTypeStubs]

from evalstone.errors import ConfigError, DataError
from evalstone.stats.power import (
    change_deviation,
    detectable_difference,
    passes_needed,
    plan_sample_size,
    power_of,
    rate_deviation,
    samples_needed,
)

ttest = cast("Any", reference.TTestPower())
binom = cast("Any", scipy.stats.binom)


@pytest.mark.parametrize(("n", "difference", "deviation"), [(20, 0.1, 0.2), (60, 0.03, 0.1), (500, 0.01, 0.2)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_power_is_that_of_statsmodels(n: int, difference: float, deviation: float, confidence: float) -> None:
    two = ttest.power(difference / deviation, n, 1 - confidence)
    one = ttest.power(difference / deviation, n, 1 - confidence, alternative="larger")
    assert power_of(n, difference, deviation, confidence=confidence) == pytest.approx(float(two), abs=1e-6)
    assert power_of(n, -difference, deviation, confidence=confidence, sided=1) == pytest.approx(float(one), abs=1e-6)


@pytest.mark.parametrize("effect", [0.1, 0.3, 1.0])
def test_samples_needed_are_those_of_statsmodels_rounded_up(effect: float) -> None:
    expected = math.ceil(float(ttest.solve_power(effect, power=0.8, alpha=0.05)))
    assert samples_needed(effect * 0.2, deviation=0.2) == expected
    assert samples_needed(-effect * 0.2, deviation=0.2) == expected


@pytest.mark.parametrize(("n", "expected"), [(30, 0.085736), (500, 0.020336), (3000, 0.008289), (10000, 0.004539)])
def test_what_is_detectable_is_what_statsmodels_says_for_few_and_many(n: int, expected: float) -> None:
    found = detectable_difference(n, 0.162)
    assert found == pytest.approx(expected, abs=1e-6)
    assert power_of(n, expected, 0.162) == pytest.approx(0.8, abs=1e-3)


def test_needed_and_detectable_agree() -> None:
    needed = samples_needed(0.03, deviation=0.15)
    assert needed == 199  # Cohen 1988: n of about 7.85 / 0.2² and a little
    found = detectable_difference(needed, 0.15)
    assert found is not None
    assert 0.0299 < found <= 0.03
    assert power_of(needed, found, 0.15) == pytest.approx(0.8, abs=1e-6)


def test_large_numbers_follow_the_normal_curve_without_a_jump() -> None:
    small, large = power_of(10_000, 0.005, 0.2), power_of(10_001, 0.005, 0.2)
    assert small == pytest.approx(large, abs=2e-4)
    assert power_of(100, 1.0, 0.1) == 1
    assert 7e6 < samples_needed(0.001, deviation=1) < 8e6


def test_groups_take_more_by_their_design_effect() -> None:
    alone, grouped = samples_needed(0.03, deviation=0.15), samples_needed(0.03, deviation=0.15, design_effect=2)
    assert grouped == pytest.approx(2 * alone, abs=1)
    one, two = detectable_difference(100, 0.15), detectable_difference(200, 0.15, design_effect=2)
    assert one == pytest.approx(two)


def test_deviations_of_rates() -> None:
    assert rate_deviation(0.8) == pytest.approx(0.4)
    # 10 % gained, 4 % lost: E d² = 0.14, E d = 0.06
    assert change_deviation(0.1, 0.04) == pytest.approx(math.sqrt(0.14 - 0.0036))


def test_a_plan_from_a_pilot() -> None:
    pilot = [0.1, -0.1] * 20 + [0.0] * 20
    found = plan_sample_size(pilot, 0.03)
    assert found is not None
    assert (found.n, found.mean) == (60, 0)
    assert found.deviation == pytest.approx(math.sqrt(0.4 / 59))
    assert found.needed == samples_needed(0.03, deviation=found.deviation)
    assert found.needed_low < found.needed < found.needed_high
    assert found.detectable == detectable_difference(60, found.deviation)
    assert found.caution == ""


def test_a_pilot_that_says_little_says_so() -> None:
    few, still = plan_sample_size([0.1, 0.2, 0.0], 0.03), plan_sample_size([0.1] * 30, 0.03)
    assert few is not None
    assert still is not None
    assert few.caution == "small pilot (n = 3): its standard deviation is uncertain"
    assert still.caution == "the pilot's values don't vary: the samples needed are unknown"
    assert plan_sample_size([0.1], 0.03) is None


def test_nothing_can_be_seen_with_one_sample_and_no_difference_ever() -> None:
    assert power_of(1, 0.5, 0.1) == 0
    assert power_of(50, 0, 0.1) == pytest.approx(0.05)
    assert power_of(50, 0.1, 0) == 1
    assert detectable_difference(1, 0.1) is None
    with pytest.raises(ConfigError, match="difference must be a finite number other than 0"):
        samples_needed(0, deviation=0.1)
    with pytest.raises(ConfigError, match="would need more than 1,000,000,000 samples"):
        samples_needed(1e-9, deviation=1)


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="power must be above 1 - confidence and below 1"):
        samples_needed(0.1, deviation=0.1, power=0.01)
    with pytest.raises(ConfigError, match="deviation must be a finite number of 0 or more"):
        power_of(10, 0.1, -1)
    with pytest.raises(ConfigError, match="sided must be 1 or 2, not 3"):
        power_of(10, 0.1, 1, sided=3)
    with pytest.raises(ConfigError, match="design_effect must be above 0"):
        detectable_difference(10, 1, design_effect=0)
    with pytest.raises(DataError, match=r"a rate must be in \[0, 1\]"):
        rate_deviation(1.2)
    with pytest.raises(DataError, match="1 at most together"):
        change_deviation(0.7, 0.4)


def test_what_is_no_number_has_no_power() -> None:
    for n, difference in ((100, math.nan), (100, math.inf)):
        with pytest.raises(ConfigError, match="n and difference must be finite"):
            power_of(n, difference, 0.1)


@pytest.mark.parametrize(("rate", "threshold"), [(0.9, 0.85), (0.98, 0.95), (0.82, 0.85), (1.0, 0.95)])
def test_the_exact_test_of_a_rate_has_the_power_that_was_planned(rate: float, threshold: float) -> None:
    def power(n: int) -> float:
        seen = np.arange(n + 1)
        tail = binom.sf(seen - 1, n, threshold) if rate > threshold else binom.cdf(seen, n, threshold)
        return float(np.sum(binom.pmf(seen, n, rate)[tail <= 0.05]))

    n = passes_needed(rate, threshold)
    # a test of whole counts goes up and down with n; over a stretch it has the power that was asked for
    mean = sum(power(m) for m in range(n - 10, n + 11)) / 21
    assert 0.77 < mean <= 1
    assert power(round(0.75 * n)) < 0.8 or rate == 1
    with pytest.raises(ConfigError, match="no number of samples separates"):
        passes_needed(0.9, 0.9)
