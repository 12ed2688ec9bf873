"""Populations of units, and their typical samples.

A population is a few kinds of units, each with a value, a weight and a share. The most likely sample of n units with
mean c is the population, exponentially tilted to mean c: share · e^(t · weight · (value - c)).

Source of the tilting: Gibbs conditioning, Dembo and Zeitouni 1998, Large Deviations Techniques and Applications, 7.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from evalstone.stats._arrays import Floats
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.weighted_mean import WeightedMean

POINTS = 32
"""A population of more distinct values is grouped into this many classes, which are narrow at both ends: equal steps of
the normal quantile of the rank, up to ± REACH."""
REACH = 4.0
NORMAL = NormalDist()
Points: TypeAlias = tuple[tuple[float, float, float], ...]
"""(value, weight, share of units) of each kind of unit."""


def classes_of(values: Floats, weights: Floats, shares: Floats) -> Points:
    """At most `POINTS` kinds of units, with the same mean and variance."""
    if values.size > POINTS:
        order = np.argsort(values, kind="stable")
        values, weights, shares = values[order], weights[order], shares[order]
        ranks = ((np.cumsum(shares) - shares / 2) / shares.sum()).tolist()
        quantiles = np.array([NORMAL.inv_cdf(rank) for rank in ranks])
        place = np.clip((quantiles / REACH + 1) * POINTS / 2, 0, POINTS - 1).astype(int)
        total: Floats = np.bincount(place, shares, POINTS).astype(np.float64)
        used = total > 0
        mass = np.bincount(place, shares * weights, POINTS)[used]
        means = np.bincount(place, shares * weights * values, POINTS)[used] / mass
        before = float(shares @ (weights * values) ** 2)
        values, weights, shares = means, mass / total[used], total[used]
        after = float(shares @ (weights * values) ** 2)
        values = values * math.sqrt(before / after) if after else values
    return tuple(zip(values.tolist(), weights.tolist(), shares.tolist(), strict=True))


def moved(points: Points, mean: float, scale: float) -> Points:
    """Points shifted to a mean and clipped to the range; the shift makes up for the clipping."""
    shift, shifted = mean, points
    for _ in range(50):
        shifted = tuple((min(scale, max(-scale, x + shift)), w, share) for x, w, share in points)
        error = mean - moments(shifted)[0]
        if abs(error) <= 1e-9 * scale:
            break
        shift += error
    return shifted


def moments(points: Points) -> tuple[float, float]:
    """The weighted mean, and the standard deviation per unit: √(units · variance of the mean)."""
    total = math.fsum(share for _, _, share in points)
    mass = math.fsum(w * share for _, w, share in points)
    mean = math.fsum(w * share * x for x, w, share in points) / mass
    square = math.fsum(share * (w * (x - mean)) ** 2 for x, w, share in points)
    return mean, math.sqrt(square * total) / mass


def typical_sample(points: Points, mean: float, units: float, low: float, high: float) -> BoundedMean | None:
    """The most likely sample of this many units with this mean; None if no sample has this mean."""
    points = tuple(point for point in points if point[2] > 0)
    values = [x for x, _, _ in points]
    smallest, largest = min(values), max(values)
    total = math.fsum(share for _, _, share in points)
    if smallest == largest:
        counts = [(x, w, share * units / total) for x, w, share in points]
    elif not smallest < mean < largest:
        return None
    else:
        pulls: Floats = np.array([w * (x - mean) for x, w, _ in points])
        base: Floats = np.array([share for *_, share in points])
        tilt = _tilt(pulls, base)
        tilted = base * np.exp(tilt * pulls - float((tilt * pulls).max()))
        tilted *= units / float(tilted.sum())
        counts = [(x, w, count) for (x, w, _), count in zip(points, tilted.tolist(), strict=True) if count > 0]
    sums: dict[tuple[float, float], float] = {}
    for x, w, count in counts:
        sums[x, w] = sums.get((x, w), 0.0) + count
    counts = _with_whole_ends([(x, w, count) for (x, w), count in sorted(sums.items())])
    counts = _with_whole_ends(counts[::-1])
    kind = BoundedMean if len({w for _, w, _ in counts}) == 1 else WeightedMean
    return kind(low, high, mean, units, tuple(sorted(counts)))


def _tilt(pulls: Floats, base: Floats) -> float:
    """The t at which Σ base · e^(t · pull) · pull is 0: the minimum of a convex function, by Newton's method."""
    left, right, t = -math.inf, math.inf, 0.0
    scale = float(np.abs(pulls).max())
    for _ in range(200):
        tilted = base * np.exp(t * pulls - float((t * pulls).max()))
        tilted /= tilted.sum()
        slope = float(tilted @ pulls)
        if slope > 0:
            right = t
        else:
            left = t
        if abs(slope) <= 1e-10 * scale:
            break
        step = -slope / max(float(tilted @ (pulls - slope) ** 2), 1e-12 * scale**2)
        step = max(-10 / scale, min(10 / scale, step))
        t += step
        if not left < t < right:
            t = (left + right) / 2 if math.isfinite(left + right) else t
    return t


def _with_whole_ends(counts: Sequence[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Units by value, the first ones merged so that half of all samples contain one: log(2) expected units."""
    total = mass = pull = 0.0
    for place, (x, w, count) in enumerate(counts):
        total, mass, pull = total + count, mass + w * count, pull + w * count * x
        if total >= math.log(2):
            return [(pull / mass, mass / total, total), *counts[place + 1 :]]
    return list(counts)
