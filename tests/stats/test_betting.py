"""Betting on the mean: p-values and limits that hold whenever one stops."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from evalstone.stats.betting import BettingMean, Bettors, ConfidenceSequence, sequence_bounds
from evalstone.stats.bounded_mean import Side
from evalstone.stats.gates import Decision, alpha_at_look
from evalstone.stats.intervals import mean_interval
from evalstone.stats.sequential import SequentialCriterion, SequentialGate

VALUES = [float(random.Random(n).random() < 0.8) for n in range(120)]


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_a_limit_is_where_the_p_value_is_alpha(side: Side, alpha: float) -> None:
    found = BettingMean.of([5 * value - 2 for value in VALUES], -2.0, 3.0)
    limit = found.limit(alpha, side)
    assert found.p_value(limit, side) <= alpha < found.p_value(limit + side * 1e-4 * 5, side)
    mirrored = BettingMean.of([2 - 5 * value for value in VALUES], -3.0, 2.0)
    assert mirrored.limit(alpha, -1 if side == 1 else 1) == pytest.approx(-limit)


def test_the_p_value_is_that_of_the_gate_that_watched_the_values() -> None:
    gate = SequentialGate([SequentialCriterion("a", 0.7)])
    for value in VALUES:
        gate.add({"a": value})
    found = BettingMean.of(VALUES, 0.0, 1.0)
    decision = gate.decisions()[0]
    assert (found.p_value(0.7, 1), found.p_value(0.7, -1)) == pytest.approx((decision.p_pass, decision.p_fail))
    assert found.mean == pytest.approx(decision.estimate)


def test_at_the_ends_of_the_range_one_value_inside_decides() -> None:
    some, none = BettingMean.of([0.0, 0.5], 0.0, 1.0), BettingMean.of([0.0, 0.0], 0.0, 1.0)
    assert (some.p_value(0.0, 1), some.p_value(0.0, -1)) == (0.0, 1.0)
    assert (none.p_value(0.0, 1), none.p_value(0.0, -1)) == (1.0, 1.0)
    assert (some.p_value(1.0, 1), some.p_value(1.0, -1)) == (1.0, 0.0)
    assert (BettingMean.of([1.0], 0.0, 1.0).p_value(1.0, -1), none.limit(0.05, 1)) == (1.0, 0.0)


def test_a_missing_value_counts_as_the_lowest_and_as_the_highest() -> None:
    decided: list[tuple[Decision, tuple[float, float]]] = []
    for values in ([1.0, None], [1.0, 0.0], [1.0, 1.0]):
        gate = SequentialGate([SequentialCriterion("a", 0.7)])
        sequence = ConfidenceSequence()
        for value in values * 40:
            gate.add({"a": value})
            sequence.add(value)
        decided.append((gate.decisions()[0], sequence.bounds))
    (missing, both), (lowest, low), (highest, high) = decided
    assert (missing.p_pass, missing.p_fail) == pytest.approx((lowest.p_pass, highest.p_fail))
    assert both == pytest.approx((low[0], high[1]), abs=1e-3)
    assert (missing.n, missing.missing, missing.estimate, missing.verdict) == (40, 40, 1.0, "inconclusive")


def test_the_interval_of_a_stopped_run_covers_where_one_for_a_fixed_number_does_not() -> None:
    """Far fewer than 95% of the fixed intervals cover: here, runs with a true rate of 0.78 and a gate at 0.85."""
    source, limit = np.random.default_rng(10), -math.log(alpha_at_look(0.05, 1))
    covered: list[tuple[bool, bool]] = []
    for _ in range(100):
        bettors = Bettors(np.array([0.85]))
        values: list[float] = []
        while max(float(best[0]) for best in bettors.best) < limit and len(values) < 150:
            values.append(float(source.random() < 0.78))
            bettors.add(values[-1], values[-1])
        if len(values) < 150:
            fixed = mean_interval(values, low=0.0, high=1.0)
            assert fixed is not None
            assert fixed.low is not None
            assert fixed.high is not None
            low, high = sequence_bounds(values, 0.0, 1.0, 0.95)
            covered.append((low <= 0.78 <= high, fixed.low <= 0.78 <= fixed.high))
    sequences, fixed_ones = (sum(column) / len(covered) for column in zip(*covered, strict=True))
    assert (len(covered) > 25, sequences >= 0.94, fixed_ones < 0.9) == (True, True, True)
