"""What values with sampling weights say about the weighted mean behind them.

A weight says how many samples of the population one sample stands for. It may go along with the value: heavy samples
may fail more often. So `bounded_mean`, whose weights say nothing of the values, would be too sure where no heavy
failure was seen. The mean of the population is m where the mean of

    y = w · (x - m)

is 0, and y lies in [-W · (m - low), W · (high - m)], W being the largest weight of the sample. The p-value of "the true
weighted mean is at most m" is that of "the mean of y is at most 0" by `bounded_mean`, without weights: what may exist
unseen are samples as heavy as the heaviest. With equal weights this is the p-value of the values themselves. Of a
cluster, y is the sum. Weights heavier than any of the sample can't be allowed for.

Source: Fieller 1954, Journal of the Royal Statistical Society B 16(2), for the ratio of means Σ w x / Σ w.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

from evalstone.stats.bounded_mean import NORMAL, BoundedMean, crossing


def effective_number(weights: Sequence[float] | None) -> float | None:
    """How many equally weighted values would say as much, where weights don't go along with values: (Σ w)² / Σ w².

    None for equal weights. Source: Kish 1965, Survey Sampling.
    """
    if not weights or min(weights) == max(weights):
        return None
    heaviest = max(weights)
    shares = [weight / heaviest for weight in weights]
    return math.fsum(shares) ** 2 / math.fsum(share * share for share in shares)


def weighted_average(weights: Sequence[float] | None, numbers: Sequence[float]) -> float:
    """Σ w x / Σ w of one number or more; None: all weights are equal."""
    heaviest = max(weights or (1.0,))
    shares = [1.0] * len(numbers) if weights is None else [weight / heaviest for weight in weights]
    return math.fsum(w * x for w, x in zip(shares, numbers, strict=True)) / math.fsum(shares)


@dataclass(frozen=True)
class WeightedMean(BoundedMean):
    """Independent values in [low, high] with sampling weights; as `BoundedMean`, but see the module."""

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
        """The evidence of values, at least one, all in [low, high]. Arguments: those of `BoundedMean.of`."""
        if weights is None or min(weights) == max(weights):
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
        """The values y of the module, w · (x - m)."""
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
