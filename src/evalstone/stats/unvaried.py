"""What values that do not vary say of their mean: valid bounds in place of a spread.

One-sided p-values and limits as in `evidence`; a limit is the threshold whose p-value is the error rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Equal:
    """Values that are all equal, of so many independent units: Chernoff's bound, valid for any values in the range.

    p = exp(-units · KL(mean, threshold)), in shares of the range; at an end of it threshold^units, the exact chance.
    """

    mean: float
    n: int
    units: int
    low: float
    high: float

    @property
    def deviation(self) -> float:
        """That of pass/fail with one success and one failure more: the values tell none."""
        rate = ((self.mean - self.low) / (self.high - self.low) * self.units + 1) / (self.units + 2)
        return math.sqrt(rate * (1 - rate)) * (self.high - self.low)

    def above(self, threshold: float) -> float:
        """Chernoff's bound on seeing a mean this high."""
        return 1.0 if self.mean <= threshold else self._bound(threshold)

    def below(self, threshold: float) -> float:
        """Chernoff's bound on seeing a mean this low."""
        return 1.0 if self.mean >= threshold else self._bound(threshold)

    def lower(self, error: float) -> float:
        """The threshold at which the bound is the error rate."""
        return _root(lambda x: self.above(x) - error, self.low, self.mean)

    def upper(self, error: float) -> float:
        """The threshold at which the bound is the error rate."""
        return _root(lambda x: self.below(x) - error, self.high, self.mean)

    def _bound(self, threshold: float) -> float:
        span = self.high - self.low
        p, q = (self.mean - self.low) / span, (threshold - self.low) / span
        total = 0.0
        for seen, true in ((p, q), (1 - p, 1 - q)):
            if seen > 0:
                if true <= 0:
                    return 0.0
                total += seen * math.log(seen / true)
        return math.exp(-self.units * total)


@dataclass(frozen=True)
class Unchanged:
    """Differences that are all 0: a mean of ± d needs a share d / scale of samples that changed, and none of n did."""

    n: int
    units: int
    scale: float
    mean: float = 0.0

    @property
    def deviation(self) -> float:
        """That of one change in units + 2 samples."""
        return self.scale / math.sqrt(self.units + 2)

    def above(self, threshold: float) -> float:
        """(1 - |threshold| / scale)^units below 0, else 1."""
        return (1 - min(1.0, -threshold / self.scale)) ** self.units if threshold < 0 else 1.0

    def below(self, threshold: float) -> float:
        """(1 - threshold / scale)^units above 0, else 1."""
        return self.above(-threshold)

    def lower(self, error: float) -> float:
        """-scale · (1 - error^(1 / units))."""
        return -self.upper(error)

    def upper(self, error: float) -> float:
        """scale · (1 - error^(1 / units))."""
        return self.scale * -math.expm1(math.log(error) / self.units)


def _root(rising: Callable[[float], float], end: float, mean: float) -> float:
    """Where a function that is below 0 at the end of the range and above 0 at the mean is 0, else the end."""
    inside, outside = mean, end
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if rising(middle) < 0 else (middle, outside)
    return outside
