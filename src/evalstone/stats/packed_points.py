"""The points of `BoundedMean` for millions of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evalstone.stats.packed_scores import PackedScores

if TYPE_CHECKING:
    from evalstone.stats._arrays import Floats, Positions


def points_of(
    values: PackedScores, low: float, high: float, *, steps: float, bins: int
) -> tuple[tuple[float, float, float], ...]:
    """The points of independent values in [low, high], to the last bit as `BoundedMean.of` makes them of a list.

    steps, bins: The number of equal steps of the range to which values are rounded, and of bins of many values.
    """
    distinct, counts = _merged(*np.unique(values.array, return_counts=True), low, high, steps)
    if distinct.size > bins:
        distinct, counts = _binned(distinct, counts, low, high, bins)
    return tuple(sorted(zip(distinct.tolist(), [1.0] * distinct.size, counts.tolist(), strict=True)))


def _merged(distinct: Floats, counts: Positions, low: float, high: float, steps: float) -> tuple[Floats, Positions]:
    """The distinct values without rounding error, as of `bounded_mean.rounded`, with their counts."""
    span = high - low
    near = distinct - low
    for change, number in ((np.divide, span), (np.multiply, steps)):
        change(near, number, out=near)
    np.rint(near, out=near)
    for change, number in ((np.divide, steps), (np.multiply, span), (np.add, low)):
        change(near, number, out=near)
    near[near >= high] = high
    near[near <= low] = low
    is_first = np.concatenate([[True], near[1:] > near[:-1]])
    if is_first.all():
        return near, counts
    starts = np.flatnonzero(is_first)
    return near[starts], np.add.reduceat(counts, starts)


def _binned(distinct: Floats, counts: Positions, low: float, high: float, bins: int) -> tuple[Floats, Positions]:
    """The mean and the count of bins of equal width; values at an end of the range keep their own bin."""
    smallest = distinct[0]
    width = (distinct[-1] - smallest) / bins
    places = distinct - smallest
    places /= width
    keys = places.astype(np.intp)
    keys += 1
    keys[distinct == low], keys[distinct == high] = 0, bins + 2
    totals = np.bincount(keys, distinct * counts)  # in ascending order, as in the loop
    sizes = np.bincount(keys, counts).astype(np.intp)
    used = sizes > 0
    return totals[used] / sizes[used], sizes[used]
