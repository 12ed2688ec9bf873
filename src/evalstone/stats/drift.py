"""Drift of a judge: how its scores of the same outputs changed.

If the judge is the same, its scores then and now are interchangeable, and their differences symmetric around 0. This
is what Wilcoxon's signed-rank test tests. It finds small changes of one direction with few anchors, which the test of a
mean can't: a rare large change the other way might not have been seen. The interval of the mean change allows for one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evalstone.errors import ConfigError
from evalstone.stats._arrays import column
from evalstone.stats.comparison import Comparison, compare_pairs, differences
from evalstone.stats.intervals import Interval, check_number, mean_interval
from evalstone.stats.multiple_testing import Correction, adjust_p_values
from evalstone.stats.weighted_mean import weighted_average


@dataclass(frozen=True)
class Drift:
    """The same anchors judged before and now."""

    comparison: Comparison
    adjusted_p_value: float
    """`p_value`, corrected for all scorers that are tested together."""
    verdict: Literal["drifted", "stable", "inconclusive"]
    """"drifted" if the adjusted p-value is at most 1 - confidence; otherwise "stable" if the interval of the mean
    change is within ± tolerance; otherwise "inconclusive": too few anchors."""
    tolerance: float
    changed: Interval
    """The share of anchors whose score changed, in [0, 1], with its interval; weighted where anchors are."""
    mean_change: float
    """Mean |now - before|, weighted where anchors are, which shows a judge that changes in both directions."""
    largest_change: float
    """The largest |now - before|."""

    @property
    def p_value(self) -> float:
        """The p-value of Wilcoxon's signed-rank test; for clustered anchors, of the clusters' sums; for weighted ones,
        that of the mean change."""
        return (self.comparison.wilcoxon or self.comparison.test).p_value


def drift(
    before: Sequence[float],
    now: Sequence[float],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    tolerance: float | None = None,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
) -> Drift | None:
    """Drift of a judge: how its scores of pinned anchors changed. Judge the same outputs again with the same questions.

    The verdict is for a single scorer; `adjust_drifts` corrects those of several.

    Args:
        before: The earlier scores, in [0, scale].
        now: The scores of the same anchors now.
        scale: The upper end of the range.
        confidence: The test rejects "no change" at 1 - confidence.
        tolerance: A mean change within ± tolerance counts as none; None is 0.02 · scale.
        groups: One cluster label per anchor; anchors of one cluster may depend on each other. None: all independent.
        weights: One weight above 0 per anchor, for the change in the population that they weight to. None: all equal.

    Returns:
        The drift; None for no anchors.

    Raises:
        DataError: As `compare_pairs` does.
        ConfigError: The tolerance is not in (0, scale].
    """
    tolerance = 0.02 * scale if tolerance is None else tolerance
    check_number("tolerance", tolerance)
    if not 0 < tolerance <= scale:
        raise ConfigError(f"tolerance must be above 0 and at most {scale:g}, not {tolerance}")
    comparison = compare_pairs(before, now, scale=scale, confidence=confidence, groups=groups, weights=weights)
    if comparison is None:
        return None
    change = np.abs(column("now", now, 0.0, scale) - column("before", before, 0.0, scale))
    moved = (differences(column("before", before), column("now", now)) != 0).astype(np.float64).tolist()
    changed = mean_interval(moved, low=0.0, high=1.0, confidence=confidence, groups=groups, weights=weights)
    if changed is None:
        return None
    mean = weighted_average(weights, change.tolist())
    found = Drift(comparison, 1.0, "inconclusive", tolerance, changed, mean, float(change.max()))
    return _judged(found, found.p_value)


def adjust_drifts(drifts: Sequence[Drift], correction: Correction = "holm") -> tuple[Drift, ...]:
    """The drifts of several scorers, their p-values and verdicts corrected for all of them together."""
    adjusted = adjust_p_values([one.p_value for one in drifts], correction)
    return tuple(_judged(one, p_value) for one, p_value in zip(drifts, adjusted, strict=True))


def _judged(drift: Drift, p_value: float) -> Drift:
    """The drift with the verdict that follows from an adjusted p-value."""
    interval, verdict = drift.comparison.difference, "inconclusive"
    if p_value <= 1 - interval.confidence:
        verdict = "drifted"
    elif interval.low is not None and interval.high is not None:
        verdict = "stable" if max(-interval.low, interval.high) <= drift.tolerance else "inconclusive"
    return replace(drift, adjusted_p_value=p_value, verdict=verdict)
