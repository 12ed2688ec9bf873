"""Power analysis: the power of the tests that evalstone uses, required sample sizes and minimum detectable differences.

Pass/fail pairs: the exact power of the mid-p McNemar test, over all numbers of changed pairs D and all their splits:

    power = Σ over D of P(D) · P(L <= k(D)),   D ~ Binomial(n, gained + lost),   L ~ Binomial(D, lost / (gained + lost))
    k(D) = the largest k with a p-value of at most 1 - confidence

Scores: with probability `power`, the mean of n units (samples or clusters) is above c, where
c = mean - z(power) · deviation / √n. n is large enough if the test (`BoundedMean`) of the typical sample of n units
with mean c (`typical_sample`) rejects.

A comparison counts missing scores with the lowest possible difference in the test of a gain (`comparison`). If a share
k of the samples have both scores, a difference between these leaves k · difference - lost between all. `partly_known`
has the error rate.

bench/coverage_plan.py simulates the power at the planned n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from evalstone.errors import ConfigError, invalid
from evalstone.stats.bounded_mean import EXACT, BoundedMean, Side
from evalstone.stats.intervals import check_confidence
from evalstone.stats.partly_known import REFERENCE, PartlyKnown
from evalstone.stats.tails import binomial_cdfs, binomial_chances
from evalstone.stats.typical_sample import NORMAL, Points, moments, moved, typical_sample

MAX_SAMPLES = 1_000_000_000
PRACTICAL = 10_000
PRACTICAL_TIMES = 100
"""If more units than this are needed, and more than this many times the current ones, a mean is too close to the
threshold to decide."""
NORMAL_FROM = 1_000_000
"""With more changed pairs than this, the power is that of the normal approximation, within 0.001."""
PRECISION = 0.002


@dataclass(frozen=True)
class Changes:
    """Independent pass/fail pairs with scores of 0 or `scale`, of which `share` change. Test: mid-p McNemar."""

    share: float
    scale: float = 1.0

    def enough(self, n: int, difference: float, power: float, alpha: float, gap: float = 0.0) -> bool:
        """Whether n pairs have this power. If the difference needs more changes than `share`, all changes are gains.

        gap: The distance of the two ends of a mean difference that missing scores leave known in part.
        """
        net = difference / self.scale
        share = max(self.share, net)
        partly = _partly_known(gap, self.scale * math.sqrt(max(0.0, share - net**2)), n)
        return mcnemar_power(n, (share + net) / 2, (share - net) / 2, 2 * partly.error_rate(alpha)) >= power


@dataclass(frozen=True)
class Shifts:
    """Differences in [-scale, scale], as deviations from their mean. Test: the two-sided one of `BoundedMean`."""

    points: Points
    scale: float = 1.0

    def enough(self, n: int, difference: float, power: float, alpha: float, gap: float = 0.0) -> bool:
        """Whether n units have this power for a mean difference in either direction. gap: As for `Changes`."""
        mirrored = tuple((-x, w, share) for x, w, share in self.points)
        return all(self._shows(points, n, difference, power, alpha, gap) for points in (self.points, mirrored))

    def _shows(self, points: Points, n: int, difference: float, power: float, alpha: float, gap: float) -> bool:
        shifted = moved(points, difference, self.scale)
        mean, deviation = moments(shifted)
        edge = mean - NORMAL.inv_cdf(power) * deviation / math.sqrt(n)
        sample = typical_sample(shifted, edge, n, -self.scale, self.scale)
        partly = _partly_known(gap, deviation, n)
        return sample is not None and partly.p_value(sample.two_sided_p(0.0, share=partly.share)) <= alpha


@dataclass(frozen=True)
class PartlyMissing:
    """Differences of which some are missing, and count with their lowest value."""

    lowest: Changes | Shifts
    """All differences, missing ones at their lowest. If it is `Shifts`, the others have a mean of 0."""
    kept: float
    """The share of samples with both scores."""
    lost: float
    """What missing scores take from kept · difference, at most."""
    gap: float
    """The distance of the mean difference with missing ones at their highest from that with them at their lowest."""

    @property
    def scale(self) -> float:
        """That of the differences."""
        return self.lowest.scale

    def enough(self, n: int, difference: float, power: float, alpha: float) -> bool:
        """Whether n units have this power for a mean difference of those with both scores."""
        left = self.kept * difference - self.lost
        return left > 0 and self._at(difference).enough(n, left, power, alpha, self.gap)

    def _at(self, difference: float) -> Changes | Shifts:
        """All differences, those without a missing score moved by the difference: the distance of the others grows."""
        if isinstance(self.lowest, Changes):
            return self.lowest
        variance = moments(self.lowest.points)[1] ** 2
        grown = variance + self.kept * ((1 - self.kept) * difference**2 + 2 * self.lost * difference)
        factor = math.sqrt(grown / variance) if variance else 1.0
        return replace(self.lowest, points=tuple((factor * x, w, share) for x, w, share in self.lowest.points))


Population: TypeAlias = Changes | Shifts | PartlyMissing


def samples_needed(population: Population, difference: float, *, power: float = 0.8, confidence: float = 0.95) -> int:
    """The smallest number of units, 2 or more, with at least this power to detect a true difference.

    Args:
        population: The distribution of the differences between the two runs.
        difference: The true difference, in (0, scale].
        power: The probability of detecting it, in (1 - confidence, 1).
        confidence: The confidence level of the test, in (0, 1).

    Raises:
        ConfigError: An argument is outside its range, or more than 10⁹ samples would be needed.
    """
    _check(power, confidence)
    if not 0 < difference <= population.scale:
        raise ConfigError(invalid("difference", f"above 0 and at most {population.scale:g}", difference))
    needed = _first(lambda n: population.enough(n, difference, power, 1 - confidence), 2, MAX_SAMPLES)
    if needed is None:
        raise ConfigError(f"a difference of {difference:g} would need more than {MAX_SAMPLES:,} samples")
    return needed


def detectable_difference(
    population: Population, n: int, *, power: float = 0.8, confidence: float = 0.95
) -> float | None:
    """The minimum detectable difference: the smallest true difference that n units detect with this power.

    None if n units can't detect even the largest possible difference. Arguments and errors as for `samples_needed`.
    """
    _check(power, confidence)
    if n < 2:
        return None
    return smallest(lambda x: population.enough(n, x, power, 1 - confidence), 0.0, population.scale)


def mcnemar_power(n: int, gained: float, lost: float, alpha: float = 0.05) -> float:
    """The power of the mid-p McNemar test of n pairs: its probability of rejecting with more gained than lost.

    Args:
        n: The number of pairs.
        gained: The share of pairs that change to pass.
        lost: The share of pairs that change to fail.
        alpha: The two-sided error rate.

    Returns:
        The power, in [0, 1].

    Raises:
        ConfigError: A share is below 0, or their sum is above 1.
    """
    share = gained + lost
    if not (gained >= 0 and lost >= 0 and share <= 1 + 1e-12):
        raise ConfigError(f"shares must be 0 or more, with a sum of at most 1: gained {gained}, lost {lost}")
    if share == 0:
        return 0.0
    share = min(share, 1.0)
    if n * share > NORMAL_FROM:
        net = gained - lost
        gap = n * net + NORMAL.inv_cdf(alpha / 2) * math.sqrt(n * share)
        return NORMAL.cdf(gap / math.sqrt(n * (share - net**2))) if share > net**2 else 1.0
    reach = 8 * math.sqrt(n * share * (1 - share)) + 8
    changed = np.arange(max(1, math.floor(n * share - reach)), min(n, math.ceil(n * share + reach)) + 1, dtype=float)
    chance = binomial_chances(changed, n, share)
    edge = np.full(changed.size, -1.0)
    near = np.floor((changed + NORMAL.inv_cdf(alpha / 2) * np.sqrt(changed)) / 2)
    below = binomial_cdfs(near - 3, changed, 0.5)
    around = near + np.arange(-2.0, 3.0)[:, None]
    chances = np.where(around >= 0, binomial_chances(np.clip(around, 0, changed), changed, 0.5), 0.0)
    for k, at_k in zip(around, below + chances.cumsum(axis=0), strict=True):
        edge = np.where((k >= 0) & (2 * k < changed) & (below + at_k <= alpha), k, edge)
        below = at_k
    return float(chance @ binomial_cdfs(edge, changed, lost / share))


def more_units(evidence: BoundedMean, threshold: float, side: Side, alpha: float, *, power: float = 0.8) -> int | None:
    """The number of further units needed to show that the mean is above (1) or below (-1) a threshold.

    The current units are kept, and the new ones follow their empirical distribution, as if the estimate were the true
    value. The test is the one-sided, exact one of `BoundedMean`.

    Args:
        evidence: The current units.
        threshold: The threshold to compare the mean with.
        side: 1 to show that the mean is above the threshold, -1 to show that it is below.
        alpha: The one-sided error rate of the next test, in (0, 0.5).
        power: The probability that the test rejects, in (0, 1).

    Returns:
        1 or more. None if the mean isn't on that side of the threshold, or is too close to it: if neither 10,000 more
        units nor a hundred times as many as now are enough.
    """
    if side * (evidence.mean - threshold) <= 0:
        return None
    points = tuple((x, w, float(count)) for x, w, count in evidence.points)
    mean, deviation = moments(points)
    quantile = side * NORMAL.inv_cdf(power)

    def enough(more: int) -> bool:
        units = evidence.units + more
        edge = mean - quantile * deviation * math.sqrt(more) / units
        sample = typical_sample(points, edge, units, evidence.low, evidence.high)
        return sample is not None and sample.p_value(threshold, side, share=EXACT) <= alpha

    return _first(enough, 1, max(PRACTICAL, PRACTICAL_TIMES * math.ceil(evidence.units)))


def _partly_known(gap: float, deviation: float, n: int) -> PartlyKnown:
    """How far the ends of a mean of n units with this standard deviation are apart."""
    return PartlyKnown.of(gap, -NORMAL.inv_cdf(REFERENCE) * deviation / math.sqrt(n))


def smallest(enough: Callable[[float], bool], low: float, high: float) -> float | None:
    """The smallest difference above low that is large enough, within 0.2%; None if not even the highest is."""
    if not enough(high):
        return None
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _first(enough: Callable[[int], bool], start: int, most: int) -> int | None:
    """The smallest number in [start, most] that is enough, within 0.2%; None if there is none."""
    low, high = start - 1, start
    while not enough(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > max(1.0, PRECISION * low):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _check(power: float, confidence: float) -> None:
    check_confidence(confidence)
    if not 1 - confidence < power < 1:
        raise ConfigError(invalid("power", "above 1 - confidence and below 1, such as 0.8", power))
