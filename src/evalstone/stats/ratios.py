"""Confidence limits for ratios of two means, such as observed disagreement / expected disagreement.

A ratio of means is r if the mean of (numerator - r · denominator) is 0. The interval contains all r for which the
two-sided test of that mean (`bounded_mean`) doesn't reject. The test allows for possible units that were not observed,
so the interval has a positive width even if all units agree.
Source: Fieller 1954, Journal of the Royal Statistical Society B 16(2).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeAlias

from evalstone.stats.bounded_mean import NORMAL, SHARE, BoundedMean, Side
from evalstone.stats.roots import root

Parts: TypeAlias = tuple[float, float]
"""A unit's contributions to the numerator and to the denominator."""
STEPS = 20
CLOSE = 1e-3
"""The tolerance of the search, in normal quantiles: p is within 0.3% of alpha."""
FIELLER = "Fieller"


def ratio_limits(
    units: Sequence[Parts],
    possible: Iterable[Parts],
    *,
    low: float,
    high: float,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """The confidence limits of mean(numerators) / mean(denominators), within [low, high].

    Args:
        units: The contributions of each independent unit, two or more; the mean of their denominators is above 0.
        possible: The contributions of units that may exist, observed or not; the extreme ones are enough.
        low: The lowest possible ratio.
        high: The highest ratio to consider.
        confidence: The confidence level, in (0, 1).
    """
    numerator, denominator = (math.fsum(parts[i] for parts in units) for i in (0, 1))
    estimate = min(max(numerator / denominator, low), high)
    ends = {*units, *possible}
    alpha = (1 - confidence) / 2

    def p_value(r: float, side: Side) -> float:
        reach = [a - r * b for a, b in ends]
        values = [a - r * b for a, b in units]
        evidence = BoundedMean.of(values, min(0.0, *reach), max(0.0, *reach))
        return evidence.p_value(0.0, side, share=SHARE)

    return _limit(lambda r: p_value(r, 1), estimate, low, alpha), _limit(
        lambda r: p_value(r, -1), estimate, high, alpha
    )


def of_clusters(units: Sequence[Parts], groups: Sequence[Hashable] | None) -> Sequence[Parts]:
    """The contributions of clusters for `ratio_limits`: the sums of those of their units / the units of the largest
    cluster. Those of single units stand for clusters of that size.

    groups: One cluster label per unit. None: all independent.
    """
    if groups is None:
        return units
    sums: dict[Hashable, list[float]] = {}
    for (a, b), group in zip(units, groups, strict=True):
        own = sums.setdefault(group, [0.0, 0.0])
        own[0] += a
        own[1] += b
    largest = max(Counter(groups).values())
    return [(a / largest, b / largest) for a, b in sums.values()]


def _limit(p_value: Callable[[float], float], start: float, end: float, alpha: float) -> float:
    """The ratio at which a p-value that decreases from start to end is alpha; `end` if it stays above alpha."""

    def height(r: float) -> float:
        """The normal quantile of p, which is nearly linear in r, less that of alpha."""
        return NORMAL.inv_cdf(min(max(p_value(r), 1e-12), 1 - 1e-12)) - NORMAL.inv_cdf(alpha)

    above, below = height(start), height(end)
    if below >= 0 or above <= 0:
        return end if below >= 0 else start
    return root(height, start, end, start - above * (start - end) / (above - below), at_start=above, close=CLOSE)


def farthest(holds: Callable[[float], bool], start: float, end: float) -> float:
    """The point farthest from start toward end at which a condition holds that holds at start, by bisection."""
    if holds(end):
        return end
    near, far = start, end
    for _ in range(STEPS):
        middle = (near + far) / 2
        near, far = (middle, far) if holds(middle) else (near, middle)
    return far
