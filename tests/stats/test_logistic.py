from __future__ import annotations

import math

import numpy as np
import pytest

from evalstone.stats.logistic import logistic_curve


def test_a_curve_through_two_points_goes_through_them():
    # p(0) = 1/4 and p(1) = 3/4: the intercept is log(1/3), the slope 2 log 3
    slope, intercept = logistic_curve(np.array([0.0, 1.0]), np.array([0.25, 0.75]), 0.0)
    assert (slope, intercept) == (pytest.approx(2 * math.log(3)), pytest.approx(-math.log(3)))


def test_scores_far_from_one_another_do_not_overflow():
    slope, intercept = logistic_curve(np.array([-1e4, 0.0, 1e4]), np.array([0.1, 0.5, 0.9]), 0.0)
    assert slope * 1e4 == pytest.approx(math.log(9))
    assert intercept == pytest.approx(0.0, abs=1e-6)


def test_many_cases_take_no_more_steps_than_few():
    draw = np.random.default_rng(0)
    scores = draw.random(200_000)
    targets = 1 / (1 + np.exp(-(4 * scores - 2)))
    assert logistic_curve(scores, targets, 1.0) == (pytest.approx(4), pytest.approx(-2))
