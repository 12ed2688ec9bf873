"""The points of `BoundedMean` for millions of values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from evalstone.stats.packed_scores import PackedScores

if TYPE_CHECKING:
    from evalstone.stats._arrays import Floats, Positions

_AT_ONCE = 65_536


def points_of(
    values: PackedScores, low: float, high: float, *, steps: float, bins: int
) -> tuple[tuple[float, float, float], ...]:
    """The points of independent values in [low, high], to the last bit as `BoundedMean.of` makes them of a list.

    steps, bins: The number of equal steps of the range to which values are rounded, and of bins of many values.
    """
    ordered = np.sort(values.array)
    found: list[tuple[Floats, Positions]] = []
    for part in _merged(ordered, low, high, steps):
        found.append(part)
        if sum(distinct.size for distinct, _ in found) > bins:
            found = [_binned(ordered, low, high, steps, bins)]
            break
    distinct, counts = (np.concatenate(column) for column in zip(*found, strict=True))
    return tuple(sorted(zip(distinct.tolist(), [1.0] * distinct.size, counts.tolist(), strict=True)))


def _merged(ordered: Floats, low: float, high: float, steps: float) -> Iterator[tuple[Floats, Positions]]:
    """The distinct ones of values in ascending order without rounding error, as of `bounded_mean.rounded`, with their
    counts: in parts, as what arithmetic needs of each is more than a number."""
    last, times = np.empty(0), np.empty(0, np.intp)
    """The largest value of the last part, which may occur in the next one, too."""
    for start in range(0, ordered.size, _AT_ONCE):
        own = ordered[start : start + _AT_ONCE]
        starts = np.flatnonzero(np.concatenate([[True], own[1:] > own[:-1]]))
        near = np.concatenate([last, _rounded(own[starts], low, high, steps)])
        counts = np.concatenate([times, np.diff(starts, append=own.size)])
        starts = np.flatnonzero(np.concatenate([[True], near[1:] > near[:-1]]))
        near, counts = near[starts], np.add.reduceat(counts, starts)
        last, times = near[-1:], counts[-1:]
        yield near[:-1], counts[:-1]
    yield last, times


def _rounded(values: Floats, low: float, high: float, steps: float) -> Floats:
    span = high - low
    near = low + np.rint((values - low) / span * steps) / steps * span
    near[near >= high] = high
    near[near <= low] = low
    return near


def _binned(ordered: Floats, low: float, high: float, steps: float, bins: int) -> tuple[Floats, Positions]:
    """The mean and the count of bins of equal width; values at an end of the range keep their own bin."""
    smallest, largest = _rounded(ordered[[0, -1]], low, high, steps)
    width = (largest - smallest) / bins
    totals, sizes = np.zeros(bins + 3), np.zeros(bins + 3, np.intp)
    for distinct, counts in _merged(ordered, low, high, steps):
        keys = ((distinct - smallest) / width).astype(np.intp) + 1
        keys[distinct == low], keys[distinct == high] = 0, bins + 2
        np.add.at(totals, keys, distinct * counts)  # in ascending order, as in the loop
        np.add.at(sizes, keys, counts)
    used = sizes > 0
    return totals[used] / sizes[used], sizes[used]
