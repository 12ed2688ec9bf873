from __future__ import annotations

import numpy as np
import pytest

from evalstone.errors import ConfigError
from evalstone.stats.drift import drift
from evalstone.stats.intervals import mean_interval


def test_a_judge_that_moved_has_drifted() -> None:
    before = np.random.default_rng(2).uniform(0.3, 0.8, 60)
    moved = drift(before.tolist(), (before + 0.05).tolist())
    assert moved is not None
    assert (moved.verdict, moved.changed) == ("drifted", mean_interval([1.0] * 60, low=0, high=1))
    assert moved.mean_change == pytest.approx(0.05)
    assert moved.largest_change == pytest.approx(0.05)
    assert moved.comparison.difference.estimate == pytest.approx(0.05)


def test_a_judge_that_stays_is_stable_if_there_are_enough_anchors_to_say() -> None:
    values = [0.5] * 300
    many, few = drift(values, values), drift(values[:20], values[:20])
    assert many is not None
    assert few is not None
    assert (many.verdict, many.tolerance, many.changed.estimate) == ("stable", 0.02, 0)
    assert many.changed.high is not None
    assert 0 < many.changed.high < 0.02
    assert few.verdict == "inconclusive"  # none of 20 changed: up to 17 % could
    loose = drift(values[:20], values[:20], tolerance=0.2)
    assert loose is not None
    assert loose.verdict == "stable"


def test_drift_refuses_a_tolerance_of_nothing_and_has_no_result_without_anchors() -> None:
    assert drift([], []) is None
    with pytest.raises(ConfigError) as raised:
        drift([0.5], [0.5], tolerance=0)
    assert (raised.value.field, raised.value.value) == ("tolerance", 0)
    for tolerance, taken in ((None, 0.2), (10.0, 10.0)):
        found = drift([5.0], [5.0], scale=10.0, tolerance=tolerance)
        assert found is not None
        assert found.tolerance == taken


@pytest.mark.parametrize(
    ("changed", "confidence", "drifted"),
    [
        (6, 0.95, True),  # p = 2 / 2^6 = 0.031
        (5, 0.95, False),  # p = 2 / 2^5 = 0.0625
        (5, 0.9375, True),  # p is 1 - confidence exactly
        (5, 0.94, False),
    ],
)
def test_drift_is_tested_at_one_minus_the_confidence(changed: int, confidence: float, drifted: bool) -> None:
    before = [0.5] * 40
    found = drift(before, [0.6 + 0.01 * i for i in range(changed)] + [0.5] * (40 - changed), confidence=confidence)
    assert found is not None
    assert found.p_value == 2 / 2**changed
    assert (found.verdict == "drifted") == drifted


def test_pass_fail_anchors_have_the_test_of_a_comparison() -> None:
    before = [0.0] * 5 + [1.0] * 35
    found = drift(before, [1.0] * 40)
    assert found is not None
    assert (found.test, found.verdict) == (found.comparison.test, "drifted")
    assert found.p_value == pytest.approx(1 / 2**5)  # twice half of 1 / 2^5
    grouped = drift(before, [1.0] * 40, groups=list(range(40)))
    assert grouped is not None
    assert grouped.p_value == 2 / 2**5


def test_a_judge_is_stable_only_if_both_limits_are_within_the_tolerance() -> None:
    found = drift([0.5] * 60, [0.5 + (0.04 if place < 4 else 0.0) for place in range(60)], tolerance=0.057)
    assert found is not None
    assert found.comparison.difference.low is not None
    assert found.comparison.difference.high is not None
    assert -0.057 <= found.comparison.difference.low < 0.057 < found.comparison.difference.high
    assert found.verdict == "inconclusive"


def test_the_share_that_changed_has_the_interval_of_groups_where_there_are_some() -> None:
    values, groups = [0.5] * 40, [place // 8 for place in range(40)]
    later = [0.6] * 8 + [0.5] * 32
    alone, grouped = drift(values, later), drift(values, later, groups=groups)
    assert alone is not None
    assert grouped is not None
    assert alone.changed.estimate == grouped.changed.estimate == 0.2
    assert alone.changed.high is not None
    assert grouped.changed.high is not None
    assert grouped.changed.high > alone.changed.high + 0.2
