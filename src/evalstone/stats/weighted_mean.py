"""Inference about a mean from clusters and from values with sampling weights.

A unit is a cluster, or a single value. Its weight w is the sum of the sampling weights of its values, without sampling
weights their number. Weights may be related to values: long conversations may fail more often than short ones. An
interval that ignored this would be too narrow if no heavy unit failed by chance. The mean over all values is the m for
which the mean over units of

    y = w · (x - m),   x the unit's mean

is 0. For a cluster, y is the sum of its values' distances to m. y lies in [-W · (m - low), W · (high - m)], where W is
the largest weight in the sample. The p-value of "the mean is at most m" is that of "the mean of y is at most 0" by
`bounded_mean`. This allows for unseen units as heavy as the heaviest one; no method can allow for heavier ones. With
equal weights, it is the p-value of the units' means.

Source: Fieller 1954, Journal of the Royal Statistical Society B 16(2), for the ratio of means Σ w x / Σ w.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from evalstone.stats.bounded_mean import BINS, NORMAL, BoundedMean, added_up, crossing, rounded
from evalstone.stats.packed_scores import exact_total

WEIGHT_BINS = 32
LEAST_WEIGHT = 1e-30
"""Relative to the largest weight. Smaller weights have no effect on a mean, and their squares could underflow to 0."""


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
    if weights is None:
        return exact_total(numbers) / len(numbers)
    heaviest = max(weights)
    shares = [weight / heaviest for weight in weights]
    return math.fsum(w * x for w, x in zip(shares, numbers, strict=True)) / math.fsum(shares)


@dataclass(frozen=True)
class WeightedMean(BoundedMean):
    """`BoundedMean` for units with unequal weights (see the module docstring). Build it with `of_units`."""

    heaviest: float = 0.0
    """The largest weight of units that may exist, if no unit is as heavy."""

    @classmethod
    def of_units(
        cls,
        values: Sequence[float],
        low: float,
        high: float,
        *,
        groups: Sequence[Hashable] | None = None,
        weights: Sequence[float] | None = None,
        heaviest: float = 0.0,
        counts: Sequence[int] | None = None,
    ) -> BoundedMean:
        """Inference about the mean of one or more values in [low, high].

        Args:
            values: Numbers in [low, high].
            low: The lower end of the range.
            high: The upper end.
            groups: One cluster label per value; values of one cluster may depend on each other. None: all independent.
            weights: One sampling weight above 0 per value. None: equal weights.
            heaviest: The weight of values that may exist, if none of these is as heavy. Without groups.
            counts: How often each value occurs, with its weight. Without groups. None: once.
        """
        lighter = weights is not None and heaviest > max(weights)
        weights = weights if lighter else unequal(weights)
        if weights is not None:
            heaviest = max(heaviest, *weights)
            weights = [max(weight / heaviest, LEAST_WEIGHT) for weight in weights]
        if groups is not None:
            values, weights = _clusters(values, weights, groups)
            weights = unequal(weights)
        if weights is None:
            return BoundedMean.of(values, low, high, counts=counts)
        totals = weights if counts is None else [weight * k for weight, k in zip(weights, counts, strict=True)]
        mean = min(max(weighted_average(totals, values), min(values), low), max(values), high)
        points = _points(rounded(values, low, high), weights, counts)
        units = len(values) if counts is None else sum(counts)
        return cls(low, high, mean, units, tuple(sorted(points)), float(lighter))

    @cached_property
    def heaviest_half(self) -> float:
        """The number of units that carry half of the weight, the heaviest first."""
        half = math.fsum(w * k for _, w, k in self.points) / 2 * (1 - 1e-9)  # without rounding error at ties
        carried = units = 0.0
        for _, w, k in sorted(self.points, key=lambda point: -point[1]):
            if carried + w * k >= half:
                return units + math.ceil((half - carried) / w)
            carried, units = carried + w * k, units + k
        return units

    @cached_property
    def _mirrored(self) -> BoundedMean:
        points = tuple((-x, w, k) for x, w, k in reversed(self.points))
        return WeightedMean(-self.high, -self.low, -self.mean, self.units, points, self.heaviest)

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
        heaviest = max(self.heaviest, *(weight for _, weight, _ in self.points))
        return BoundedMean(heaviest * (self.low - m), heaviest * (self.high - m), mean, self.units, points)

    def _limit_below(self, alpha: float, share: float) -> float:
        if self.points[-1][0] <= self.low:
            return self.low
        guess = self.mean + self._error * NORMAL.inv_cdf(alpha)
        return crossing(lambda m: self._p_above(m, share), self.low, self.mean, alpha, guess)


def _clusters(
    values: Sequence[float], weights: Sequence[float] | None, groups: Sequence[Hashable]
) -> tuple[list[float], list[float]]:
    """The weighted mean and the total weight of each cluster."""
    sums: dict[Hashable, list[float]] = {}
    for place, (value, group) in enumerate(zip(values, groups, strict=True)):
        weight = 1.0 if weights is None else weights[place]
        totals = sums.setdefault(group, [0.0, 0.0])
        totals[0] += weight * value
        totals[1] += weight
    return [total / weight for total, weight in sums.values()], [weight for _, weight in sums.values()]


def _points(
    values: Sequence[float], weights: Sequence[float], times: Sequence[int] | None
) -> Iterable[tuple[float, float, int]]:
    """(value, weight, count), binned by value and weight if there are many."""
    pairs = zip(values, weights, strict=True)
    counts = Counter(pairs) if times is None else added_up(pairs, times)
    if len(counts) <= BINS:
        return ((x, w, k) for (x, w), k in counts.items())
    smallest, largest = min(values), max(values)
    width, heaviest = (largest - smallest) / BINS or 1.0, max(weights)
    bins: dict[tuple[int, int], list[float]] = {}
    for (value, weight), count in counts.items():
        key = (int((value - smallest) / width), int(weight / heaviest * WEIGHT_BINS))
        totals = bins.setdefault(key, [0.0, 0.0, 0])
        totals[0] += value * weight * count
        totals[1] += weight * count
        totals[2] += count
    return ((total / weight, weight / count, int(count)) for total, weight, count in bins.values())
