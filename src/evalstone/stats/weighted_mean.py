"""Inference about a population mean from values with sampling weights.

A sampling weight is the number of samples in the population that a sample represents. It may be related to the value:
heavy samples may fail more often. `bounded_mean` assumes that weights are unrelated to values, so its interval would be
too narrow if no heavy sample failed by chance. The population mean is the m for which the mean of

    y = w · (x - m)

is 0. y lies in [-W · (m - low), W · (high - m)], where W is the largest weight in the sample. The p-value of "the
population mean is at most m" is that of "the mean of y is at most 0" by `bounded_mean`, without weights. This allows
for unseen samples as heavy as the heaviest one. With equal weights, it is the p-value of the values themselves. For
clusters, y is the sum over the cluster. No method can allow for weights larger than any in the sample.

Source: Fieller 1954, Journal of the Royal Statistical Society B 16(2), for the ratio of means Σ w x / Σ w.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

from evalstone.stats.bounded_mean import NORMAL, BoundedMean, crossing


def unequal(weights: Sequence[float] | None) -> Sequence[float] | None:
    """The weights, or None if all are equal: equal weights have no effect."""
    return None if weights is None or min(weights) == max(weights) else weights


def effective_number(weights: Sequence[float] | None) -> float | None:
    """Kish's effective sample size, (Σ w)² / Σ w²: as many equally weighted values have the same precision.

    It assumes that weights are unrelated to values. None for equal weights. Source: Kish 1965, Survey Sampling.
    """
    if not weights or unequal(weights) is None:
        return None
    heaviest = max(weights)
    shares = [weight / heaviest for weight in weights]
    return math.fsum(shares) ** 2 / math.fsum(share * share for share in shares)


def weighted_average(weights: Sequence[float] | None, numbers: Sequence[float]) -> float:
    """The weighted mean Σ w x / Σ w of one number or more. None: equal weights."""
    heaviest = max(weights or (1.0,))
    shares = [1.0] * len(numbers) if weights is None else [weight / heaviest for weight in weights]
    return math.fsum(w * x for w, x in zip(shares, numbers, strict=True)) / math.fsum(shares)


@dataclass(frozen=True)
class WeightedMean(BoundedMean):
    """`BoundedMean` for values with sampling weights (see the module docstring)."""

    @classmethod
    def of(
        cls,
        values: Sequence[float],
        low: float,
        high: float,
        *,
        groups: Sequence[Hashable] | None = None,
        weights: Sequence[float] | None = None,
    ) -> BoundedMean:
        """Build it from one or more values in [low, high]. Arguments as for `BoundedMean.of`."""
        if unequal(weights) is None:
            return BoundedMean.of(values, low, high, groups=groups)
        return super().of(values, low, high, groups=groups, weights=weights)

    @cached_property
    def _mirrored(self) -> BoundedMean:
        points = tuple((-x, w, k) for x, w, k in reversed(self.points))
        return WeightedMean(-self.high, -self.low, -self.mean, self.units, points, self._typical)

    @cached_property
    def _heaviest(self) -> float:
        return max(weight for _, weight, _ in self.points)

    def _p_above(self, m: float, share: float) -> float:
        if m <= self.low:
            return float(self.mean <= m)
        return self._pulls(m).p_value(0.0, 1, share=share)

    def _pulls(self, m: float) -> BoundedMean:
        """Inference about the mean of y = w · (x - m)."""
        counts: dict[float, float] = {}
        for x, w, k in self.points:
            counts[w * (x - m)] = counts.get(w * (x - m), 0.0) + k
        mean = math.fsum(y * k for y, k in counts.items()) / self.units
        points = tuple((y, 1.0, k) for y, k in sorted(counts.items()))
        heaviest = self._heaviest
        return BoundedMean(heaviest * (self.low - m), heaviest * (self.high - m), mean, self.units, points, 1.0)

    def _limit_below(self, alpha: float, share: float) -> float:
        if self.points[-1][0] <= self.low:
            return self.low
        guess = self.mean + self._error * NORMAL.inv_cdf(alpha)
        return crossing(lambda m: self._p_above(m, share), self.low, self.mean, alpha, guess)
