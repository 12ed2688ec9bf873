"""How the numbers of a column are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalstone.types import Sample, metadata_at

SPREADS = ("cost", "tokens", "seconds", "latency")
"""The columns whose distribution is shown."""
SPREAD_BINS = 24
"""The number of bars that show it."""
_AT_ONCE = 65_536


def spread_of(column: Sequence[float] | NDArray[Any]) -> dict[str, Any] | None:
    """How numbers are distributed; None if there are fewer than two different ones. The bins are equal parts from 0 to
    the 99th percentile, and the last one has what is beyond."""
    every = np.asarray(column, np.float64)
    numbers = every[~np.isnan(every)]
    if not numbers.size or numbers.min() == numbers.max():
        return None
    at = [min(numbers.size - 1, int(share * numbers.size)) for share in (0.5, 0.95, 0.99)]
    numbers.partition(at)
    median, p95, p99 = numbers[at].tolist()
    highest = float(numbers.max())
    width = (p99 or highest) / SPREAD_BINS
    bins = np.zeros(SPREAD_BINS, np.int64)
    for start in range(0, numbers.size, _AT_ONCE):
        places = np.minimum(numbers[start : start + _AT_ONCE] / width, SPREAD_BINS - 1).astype(np.intp)
        bins += np.bincount(places, minlength=SPREAD_BINS)
    return {
        "n": numbers.size, "median": median, "p95": p95, "highest": highest, "bins": bins.tolist(), "width": width,
    }  # fmt: skip


def latency_of(sample: Sample | None) -> float | None:
    """How long the target took to answer, in seconds; None if no target did."""
    seconds = None if sample is None else metadata_at(sample.metadata, "target.seconds")
    return float(seconds) if isinstance(seconds, int | float) else None
