"""Drift of a judge: how its scores of the same outputs (the anchors) change over time.

If the judge hasn't changed, its earlier and current scores are exchangeable, so their differences are symmetric around
0. Wilcoxon's signed-rank test tests this. With few anchors, it detects small shifts in one direction that a test of the
mean can't, because a mean could be offset by a rare large change in the other direction that was not observed. The
interval of the mean change allows for such changes. For pass/fail scores, the test is McNemar's mid-p test, as in a
comparison: Wilcoxon's would be the exact sign test, which has less power.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evalstone._core.truth import PASSED, NoTruthValue
from evalstone.errors import ConfigError, invalid
from evalstone.stats._arrays import Floats, Positions, codes, column, group_sums
from evalstone.stats.comparison import PairedComparison, compare_pairs
from evalstone.stats.intervals import Interval, check_number, mean_interval
from evalstone.stats.multiple_testing import Correction, adjust_p_values
from evalstone.stats.paired_differences import differences
from evalstone.stats.paired_tests import PairedTest, wilcoxon
from evalstone.stats.weighted_mean import unequal, weighted_average


@dataclass(frozen=True, kw_only=True)
class Drift(NoTruthValue):
    """The same anchors, judged before and now."""

    comparison: PairedComparison
    """The scores before (a) and now (b)."""
    test: PairedTest
    """Wilcoxon's signed-rank test, of the clusters' sums if anchors are clustered. For pass/fail scores of independent
    anchors, McNemar's mid-p test; for weighted anchors, the test of the mean change."""
    adjusted_p_value: float
    """`p_value`, corrected for the number of scorers tested together."""
    verdict: Literal["drifted", "stable", "inconclusive"]
    """"drifted" if the adjusted p-value is at most 1 - confidence. Otherwise "stable" if the interval of the mean
    change is within ± tolerance, and "inconclusive" (too few anchors) if not."""
    tolerance: float
    """The largest change of the mean that doesn't count as drift."""
    changed: Interval
    """The share of anchors whose score changed, in [0, 1], with its interval; weighted if anchors are."""
    mean_change: float
    """The mean of |now - before|, weighted if anchors are. It reveals changes that cancel in the mean difference."""
    largest_change: float
    """The largest |now - before|."""

    @property
    def p_value(self) -> float:
        """The p-value of `test`."""
        return self.test.p_value

    @property
    def passed(self) -> bool | None:
        """True if the scores are stable, False if they drifted; None if that is inconclusive."""
        return PASSED[self.verdict]


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
    """Test whether a judge's scores of the same outputs, judged again with the same questions, have drifted.

    The verdict is for a single scorer. Use `adjust_drifts` to correct the verdicts of several.

    Args:
        before: The earlier scores, in [0, scale].
        now: The scores of the same anchors now.
        scale: The upper end of the range.
        confidence: The test rejects "no change" at 1 - confidence.
        tolerance: A mean change within ± tolerance counts as no change. None: 0.02 · scale.
        groups: One cluster label per anchor; anchors of one cluster may depend on each other. None: all independent.
        weights: One sampling weight above 0 per anchor, for an estimate of the change in the population. None: all
            equal.

    Returns:
        The drift; None for no anchors.

    Raises:
        DataError: As for `compare_pairs`.
        ConfigError: tolerance is not in (0, scale], or confidence is outside (0, 1).
    """
    tolerance = 0.02 * scale if tolerance is None else tolerance
    check_number("tolerance", tolerance)
    if not 0 < tolerance <= scale:
        raise ConfigError(invalid("tolerance", f"above 0 and at most {scale:g}", tolerance))
    comparison = compare_pairs(before, now, scale=scale, confidence=confidence, groups=groups, weights=weights)
    if comparison is None:
        return None
    changes = differences(column("before", before), column("now", now))
    is_changed = (changes != 0).astype(np.float64).tolist()
    changed = mean_interval(is_changed, low=0.0, high=1.0, confidence=confidence, groups=groups, weights=weights)
    if changed is None:
        return None
    test = comparison.test
    if comparison.mcnemar is None and unequal(weights) is None:
        test = wilcoxon(changes if groups is None else _cluster_changes(changes, codes(groups)))
    sizes = np.abs(changes)
    mean = weighted_average(weights, sizes.tolist())
    result = Drift(
        comparison=comparison,
        test=test,
        adjusted_p_value=1.0,
        verdict="inconclusive",
        tolerance=tolerance,
        changed=changed,
        mean_change=mean,
        largest_change=float(sizes.max()),
    )
    return _with_verdict(result, result.p_value)


def _cluster_changes(d: Floats, groups: Positions) -> Floats:
    """The sum of each cluster's differences, and 0 if they cancel up to rounding error."""
    sums = group_sums(d, groups)
    return np.where(np.abs(sums) <= 1e-12 * group_sums(np.abs(d), groups), 0.0, sums)


def adjust_drifts(drifts: Sequence[Drift], correction: Correction = "holm") -> tuple[Drift, ...]:
    """The drifts of several scorers, with p-values and verdicts corrected for multiple testing."""
    adjusted = adjust_p_values([drift.p_value for drift in drifts], correction)
    return tuple(_with_verdict(drift, p_value) for drift, p_value in zip(drifts, adjusted, strict=True))


def _with_verdict(drift: Drift, p_value: float) -> Drift:
    """The drift with the verdict that follows from an adjusted p-value."""
    interval, verdict = drift.comparison.difference, "inconclusive"
    if p_value <= 1 - interval.confidence:
        verdict = "drifted"
    elif interval.low is not None and interval.high is not None:
        verdict = "stable" if max(-interval.low, interval.high) <= drift.tolerance else "inconclusive"
    return replace(drift, adjusted_p_value=p_value, verdict=verdict)
