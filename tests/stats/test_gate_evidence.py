from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_1samp

from evalstone.errors import DataError
from evalstone.stats import mean_interval
from evalstone.stats.comparison import difference_interval
from evalstone.stats.gates import Evidence, of_differences, of_scores

SCORES = np.random.default_rng(1).beta(5, 1, 50).tolist()


def scores(values: list[float], scale: float = 1.0, groups: list[int] | None = None) -> Evidence:
    found = of_scores(values, scale=scale, groups=groups)
    assert found is not None
    return found


def differences(values: list[float], groups: list[int] | None = None) -> Evidence:
    found = of_differences(values, groups=groups)
    assert found is not None
    return found


CASES = {
    "pass/fail": scores([1.0] * 27 + [0.0] * 3),
    "marks": scores([5.0] * 10 + [2.0, 3.0], 5.0),
    "grouped": scores(SCORES, groups=[place // 5 for place in range(50)]),
    "grouped pass/fail": scores([1.0, 1.0, 1.0, 0.0] * 5, groups=[place // 3 for place in range(20)]),
    "all at the top": scores([1.0] * 40),
    "all equal inside": scores([0.7] * 40),
    "differences": differences([0.2, -0.1, 0.0, 0.3, 0.0, 0.1, 0.0]),
    "grouped differences": differences([0.2, -0.1, 0.0, 0.3, 0.0, 0.1, 0.0, 0.5], [1, 1, 2, 2, 3, 3, 4, 4]),
    "unchanged": differences([0.0] * 30),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("error", [0.2, 0.05, 0.01])
def test_a_limit_is_the_threshold_whose_p_value_is_the_error_rate(name: str, error: float) -> None:
    found = CASES[name]
    lower, upper = found.limit(error, 1), found.limit(error, -1)
    assert lower <= found.mean <= upper
    if name != "all at the top" or error == 0:
        assert found.p_value(upper, -1) == pytest.approx(error, rel=1e-4)
    assert found.p_value(lower, 1) == pytest.approx(error, rel=1e-4)


def test_pass_fail_is_the_binomial_test() -> None:
    found = CASES["pass/fail"]
    for threshold in (0.7, 0.85, 0.95):
        above = binomtest(27, 30, threshold, alternative="greater").pvalue
        below = binomtest(27, 30, threshold, alternative="less").pvalue
        assert found.p_value(threshold, 1) == pytest.approx(float(above))
        assert found.p_value(threshold, -1) == pytest.approx(float(below))


def test_limits_of_scores_are_those_of_the_interval() -> None:
    interval, found = mean_interval(SCORES, low=0, high=1, confidence=0.9), scores(SCORES)
    assert interval is not None
    assert (found.limit(0.05, 1), found.limit(0.05, -1)) == (pytest.approx(interval.low), pytest.approx(interval.high))
    apart, moved = difference_interval([0.2, -0.1, 0.0, 0.3], confidence=0.9), differences([0.2, -0.1, 0.0, 0.3])
    assert (moved.limit(0.05, 1), moved.limit(0.05, -1)) == (pytest.approx(apart.low), pytest.approx(apart.high))


def test_many_differences_are_students_test() -> None:
    d = np.random.default_rng(2).normal(0.02, 0.1, 3000).tolist()
    expected = ttest_1samp(d, 0.015, alternative="greater").pvalue
    assert differences(d).p_value(0.015, 1) == pytest.approx(float(expected), abs=3e-3)


def test_scores_all_at_the_top_have_the_exact_chance() -> None:
    found = CASES["all at the top"]
    assert found.p_value(0.9, 1) == pytest.approx(0.9**40)
    assert (found.p_value(0.9, -1), found.limit(0.05, -1)) == (1, 1)
    assert found.limit(0.05, 1) == pytest.approx(0.05 ** (1 / 40))


def test_scores_all_equal_inside_the_range_have_chernoffs_bound() -> None:
    # 40 values of 0.7 against 0.6: exp(-40 (0.7 ln(7/6) + 0.3 ln(3/4)))
    divergence = 0.7 * math.log(7 / 6) + 0.3 * math.log(3 / 4)
    assert CASES["all equal inside"].p_value(0.6, 1) == pytest.approx(math.exp(-40 * divergence))
    assert CASES["all equal inside"].p_value(0.0, 1) == 0
    one_group = of_scores([0.2, 0.9], groups=["g", "g"])
    assert one_group is not None
    assert one_group.p_value(0.1, 1) > 0.5


def test_nothing_changed_is_evidence_against_large_changes_only() -> None:
    found = CASES["unchanged"]
    assert found.p_value(-0.1, 1) == pytest.approx(0.9**30)
    assert found.p_value(0.1, -1) == pytest.approx(0.9**30)
    assert (found.p_value(0.0, 1), found.p_value(0.1, 1), found.p_value(-0.1, -1)) == (1, 1, 1)


def test_thresholds_at_the_ends_are_settled() -> None:
    found = scores([0.5, 0.7, 0.9])
    assert (found.p_value(0.0, 1), found.p_value(1.0, -1)) == (0, 0)
    assert (found.p_value(1.0, 1), found.p_value(0.0, -1)) == (1, 1)


def test_every_kind_tells_a_deviation_for_planning() -> None:
    assert all(case.deviation > 0 for case in CASES.values())
    assert scores(SCORES).deviation == pytest.approx(float(np.std(SCORES, ddof=1)))
    assert CASES["pass/fail"].deviation == pytest.approx(math.sqrt(28 / 32 * 4 / 32))


def test_no_values_are_no_evidence_and_wrong_ones_are_named() -> None:
    assert of_scores([]) is None
    assert of_differences([]) is None
    with pytest.raises(DataError, match="values: value 1 is 2"):
        of_scores([0.5, 2.0])
    with pytest.raises(DataError, match="differences: value 0 is -2"):
        of_differences([-2.0])
    with pytest.raises(DataError, match="values has 1, groups has 2"):
        of_scores([0.5], groups=[1, 2])
