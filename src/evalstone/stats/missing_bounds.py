"""What skipped and failed samples could change: the mean if all the missing were worst, or best.

    low = (Σ x + k · low end) / (n + k),   high = (Σ x + k · high end) / (n + k),   k missing beside n scored

Source: Manski 1990, "Nonparametric bounds on treatment effects", American Economic Review 80(2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalstone.errors import DataError
from evalstone.stats.intervals import mean_of


@dataclass(frozen=True)
class Bounds:
    """The mean over n scored values (None for none), and what it would be with the missing ones at either end."""

    mean: float | None
    low: float
    high: float
    n: int
    missing: int

    @property
    def width(self) -> float:
        """How far the missing could move the mean: high - low."""
        return self.high - self.low


def bounds(values: Sequence[float], missing: int, low: float = 0.0, high: float = 1.0) -> Bounds | None:
    """The bounds of the mean when `missing` more values in [low, high] were not measured; None for no sample at all.

    These are no confidence interval: they hold for the samples at hand, whatever the missing are.
    Raises DataError for a negative count, an empty range, or a value outside of it.
    """
    if not missing >= 0:
        raise DataError(f"missing must be 0 or more, not {missing}")
    if not low < high:
        raise DataError(f"the range must go up: low is {low}, high is {high}")
    n = len(values)
    if n + missing == 0:
        return None
    if not n:
        return Bounds(None, low, high, 0, missing)
    mean = mean_of(values)
    if min(values) < low or max(values) > high:
        raise DataError(f"values from {min(values)} to {max(values)} are not all in [{low}, {high}]")
    if not missing:
        return Bounds(mean, mean, mean, n, 0)
    share = missing / (n + missing)
    return Bounds(mean, mean + share * (low - mean), mean + share * (high - mean), n, missing)
