"""Inference about the mean of paired differences, also if some are missing: its test, its interval, and equivalence."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evalstone.errors import DataError
from evalstone.stats._arrays import Floats, column, same_length
from evalstone.stats.betting import BettingMean
from evalstone.stats.bounded_mean import EXACT
from evalstone.stats.intervals import GAFFKE, Interval, heavy, mean_interval, single
from evalstone.stats.packed_scores import packed
from evalstone.stats.paired_tests import McNemar, PairedTest, mcnemar, mean_test
from evalstone.stats.partly_known import PartlyKnown
from evalstone.stats.ratios import farthest
from evalstone.stats.special import beta_cdf
from evalstone.stats.weighted_mean import WeightedMean, effective_number
from evalstone.types import Note, note

STOPPED_TEST, SEQUENCE = "betting, valid at any stopping time", "confidence sequence"
"""The test and the limits of runs whose number of samples depends on their scores."""


class MeanDifference:
    """Inference about the mean difference, with missing differences at their lowest and at their highest."""

    def __init__(
        self,
        ends: tuple[Floats, Floats],
        reach: float,
        confidence: float,
        groups: Sequence[Hashable] | None,
        weights: Sequence[float] | None,
        passes: bool,
    ) -> None:
        self.reach, self.confidence = reach, confidence
        self.missing = int(np.sum(ends[0] != ends[1]))
        self.options: Any = {"groups": groups, "weights": weights}
        self.ends = ends if self.missing else ends[:1] * 2
        self.lowest, self.highest = (WeightedMean.of_units(packed(d), -reach, reach, **self.options) for d in self.ends)
        self.partly = PartlyKnown.between(self.lowest, self.highest) if self.missing else PartlyKnown(0.0)
        # A missing pass/fail score is a pass or a failure too.
        self.changed = [mcnemar(int(np.sum(d > 0)), int(np.sum(d < 0))) for d in self.ends] if passes else None

    @property
    def test(self) -> PairedTest:
        """The test that the mean difference is 0, whatever the missing differences are."""
        side = 0 if self.lowest.mean > 0 or not self.missing else 1
        test = mean_test((self.lowest, self.highest)[side], share=self.partly.share)
        if self.changed is not None:
            test = PairedTest(name="McNemar's test, mid-p", p_value=self.changed[side].p_value)
        if not self.missing:
            return test
        undecided = self.lowest.mean <= 0 <= self.highest.mean
        return replace(test, p_value=1.0 if undecided else self.partly.p_value(test.p_value))

    def interval(self, mean: float, n: int, groups: Sequence[Hashable] | None) -> Interval:
        """The mean of the pairs at hand, with limits that hold whatever the missing differences are."""
        level = 1 - 2 * self.partly.error_rate(1 - self.confidence)
        low, high = (
            Interval(estimate=end.mean, low=below, high=above, n=len(self.ends[0]), confidence=level)
            for end in (self.lowest, self.highest)
            for below, above in (end.interval(level, share=self.partly.share),)
        )
        if self.changed is not None:
            low, high = (
                _consistent(interval, changed, self.reach)
                for interval, changed in zip((low, high), self.changed, strict=True)
            )
        return Interval(
            estimate=mean,
            # Missing pairs can pull the mean of all beyond that of the pairs at hand.
            low=None if low.low is None else min(low.low, mean),
            high=None if high.high is None else max(high.high, mean),
            n=n,
            confidence=self.confidence,
            groups=None if groups is None else len(set(groups)),
            method=GAFFKE,
            notes=self.notes,
            effective=effective_number(self.options["weights"]),
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """That there is a single pair or cluster, or that few have most of the weight."""
        if self.lowest.units == 1:
            return single(len(self.ends[0]))
        return heavy(self.lowest, self.options["groups"] is not None)

    def equivalence(self, margin: float) -> PairedTest:
        """Two one-sided tests. Source: Schuirmann 1987, Journal of Pharmacokinetics and Biopharmaceutics 15(6)."""
        p = max(
            self.lowest.p_value(max(-margin, -self.reach), 1, share=EXACT),
            self.highest.p_value(min(margin, self.reach), -1, share=EXACT),
        )
        return PairedTest(name="two one-sided tests of the mean difference", p_value=p)


class StoppedMeanDifference:
    """`MeanDifference` for pairs whose number depends on their scores, in the order in which they were drawn."""

    notes = (note("stopped_comparison", "caution"),)

    def __init__(self, ends: tuple[Floats, Floats], reach: float, confidence: float) -> None:
        self.reach, self.confidence = reach, confidence
        self.missing = int(np.sum(ends[0] != ends[1]))
        self.lowest, self.highest = (BettingMean.of(d.tolist(), -reach, reach) for d in ends)

    @property
    def _p_values(self) -> tuple[float, float]:
        """The p-values of "the mean difference is at most 0" and of "at least 0"."""
        return self.lowest.p_value(0.0, 1), self.highest.p_value(0.0, -1)

    @property
    def test(self) -> PairedTest:
        """The test that the mean difference is 0, whatever the missing differences are."""
        return PairedTest(name=STOPPED_TEST, p_value=min(1.0, 2 * min(self._p_values)))

    def interval(self, mean: float, n: int, groups: Sequence[Hashable] | None) -> Interval:
        """The mean of the pairs at hand, with the confidence sequence after the last one."""
        alpha = (1 - self.confidence) / 2
        low, high = self.lowest.limit(alpha, 1), self.highest.limit(alpha, -1)
        p_low, p_high = self._p_values
        # The limits are on a grid, so that either may be a step beyond 0 on the wrong side of it.
        low = max(low, 0.0) if p_low <= alpha else min(low, 0.0)
        high = min(high, 0.0) if p_high <= alpha else max(high, 0.0)
        low, high = min(low, mean), max(high, mean)
        return Interval(
            estimate=mean, low=low, high=high, n=n, confidence=self.confidence, groups=None, method=SEQUENCE
        )

    def equivalence(self, margin: float) -> PairedTest:
        """Two one-sided tests."""
        p = max(self.lowest.p_value(max(-margin, -self.reach), 1), self.highest.p_value(min(margin, self.reach), -1))
        return PairedTest(name=f"two one-sided tests, {STOPPED_TEST}", p_value=p)


def difference_interval(
    differences: Sequence[float],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
) -> Interval:
    """The mean of paired differences with the interval of `mean_interval` over [-scale, scale].

    Args:
        differences: Numbers in [-scale, scale], at least one.
        scale: The largest possible difference.
        confidence: The confidence level, in (0, 1).
        groups: One cluster label per difference.
        weights: One sampling weight above 0 per difference.

    Returns:
        The interval, in [-scale, scale].

    Raises:
        DataError: There are no differences, one is outside [-scale, scale], or `groups` or `weights` differ in length.
        ConfigError: confidence is outside (0, 1).
    """
    same_length(differences=differences, groups=groups, weights=weights)
    d = column("differences", differences, -scale, scale).tolist()
    interval = mean_interval(d, low=-scale, high=scale, confidence=confidence, groups=groups, weights=weights)
    if interval is None:
        raise DataError("need at least one difference")
    return interval


def _consistent(interval: Interval, changed: McNemar, scale: float) -> Interval:
    """The interval, adjusted so that it excludes 0 if and only if McNemar's test rejects.

    The mid-p test is more powerful than the test that the interval inverts, so the two can disagree in borderline
    cases. If the test rejects but the interval includes 0, the limit on the side of 0 becomes
    (share of pairs that changed) · (2 π - 1), where π is the test's own confidence limit of the probability that a
    change is a gain. If the test doesn't reject, the interval is extended to 0.
    """
    low, high = interval.low, interval.high
    if low is None or high is None:
        return interval
    alpha = (1 - interval.confidence) / 2
    if changed.p_value > 2 * alpha:
        low, high = min(low, 0.0), max(high, 0.0)
    elif interval.estimate > 0 >= low:
        low = (2 * _lowest_share(changed, alpha) - 1) * (changed.gained + changed.lost) / interval.n * scale
    elif interval.estimate < 0 <= high:
        high = -(2 * _lowest_share(changed, alpha) - 1) * (changed.gained + changed.lost) / interval.n * scale
    return replace(interval, low=low, high=high)


def _lowest_share(changed: McNemar, alpha: float) -> float:
    """The lower mid-p limit, at one-sided error rate alpha, of the probability of the more frequent kind of change.

    The mid-p test must reject a probability of 1/2 at this rate.
    """
    fewer, more = sorted((changed.gained, changed.lost))

    def rejected(share: float) -> bool:
        doubled = beta_cdf(share, more, fewer + 1) + (beta_cdf(share, more + 1, fewer) if fewer else 0.0)
        return doubled <= 2 * alpha

    return farthest(rejected, 0.5, 1.0)
