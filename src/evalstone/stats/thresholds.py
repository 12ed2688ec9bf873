"""What values say of their mean against a threshold: one-sided p-values and limits that agree with each other.

A limit at an error rate is the threshold whose p-value is that rate. Pass/fail values by the exact binomial; scores
by the interval of `mean_interval`, one-sided; differences as in `difference_interval`; what does not vary: `unvaried`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evalstone.stats._arrays import column, same_length
from evalstone.stats.comparison import difference_spread
from evalstone.stats.intervals import ROUNDING, Spread, cluster_spread, limits, mean_of, plain_spread, t_quantile
from evalstone.stats.proportions import lower_limit, upper_limit
from evalstone.stats.unvaried import Equal, Unchanged


class Evidence(Protocol):
    """Values and what follows for their true mean. deviation: per sample, with the design effect in it."""

    @property
    def mean(self) -> float: ...
    @property
    def n(self) -> int: ...
    @property
    def deviation(self) -> float: ...
    def above(self, threshold: float) -> float:
        """The p-value of "the true mean is at most the threshold": small when it is above."""
        ...

    def below(self, threshold: float) -> float:
        """The p-value of "the true mean is at least the threshold": small when it is below."""
        ...

    def lower(self, error: float) -> float:
        """The limit that the true mean is above, but for this error rate."""
        ...

    def upper(self, error: float) -> float:
        """The limit that the true mean is below, but for this error rate."""
        ...


@dataclass(frozen=True)
class Passes:
    """Pass/fail: successes of n independent samples, worth `scale` each. Exact."""

    successes: int
    n: int
    scale: float = 1.0

    @property
    def mean(self) -> float:
        """The pass rate times the scale."""
        return self.successes / self.n * self.scale

    @property
    def deviation(self) -> float:
        """√(p (1 - p)), of the rate after one success and one failure more, times the scale."""
        rate = (self.successes + 1) / (self.n + 2)
        return math.sqrt(rate * (1 - rate)) * self.scale

    def above(self, threshold: float) -> float:
        """P(X >= successes) at the threshold."""
        return _binomial_above(self.successes, self.n, threshold / self.scale)

    def below(self, threshold: float) -> float:
        """P(X <= successes) at the threshold."""
        return _binomial_above(self.n - self.successes, self.n, 1 - threshold / self.scale)

    def lower(self, error: float) -> float:
        """Clopper and Pearson's limit."""
        return lower_limit(self.successes, self.n, 1 - error) * self.scale

    def upper(self, error: float) -> float:
        """Clopper and Pearson's limit."""
        return upper_limit(self.successes, self.n, 1 - error) * self.scale


@dataclass(frozen=True)
class Scores:
    """The mean of values in [low, high] that vary, with its spread: Wilson's interval for means."""

    mean: float
    n: int
    spread: Spread
    low: float
    high: float

    @property
    def deviation(self) -> float:
        """√(n · variance of the mean)."""
        return math.sqrt(self.n * self.spread.variance)

    def above(self, threshold: float) -> float:
        """Student's t at the threshold, with the variance that the threshold would have."""
        return _student_above(self._distance(threshold), self.spread.freedom)

    def below(self, threshold: float) -> float:
        """Student's t at the threshold, with the variance that the threshold would have."""
        return _student_above(-self._distance(threshold), self.spread.freedom)

    def lower(self, error: float) -> float:
        """The lower limit of `mean_interval` at level 1 - 2 · error."""
        return self._limits(error)[0]

    def upper(self, error: float) -> float:
        """The upper limit of `mean_interval` at level 1 - 2 · error."""
        return self._limits(error)[1]

    def _limits(self, error: float) -> tuple[float, float]:
        quantile = t_quantile(1 - error, self.spread.freedom)
        return limits(self.mean, self.spread.variance, quantile, self.low, self.high)

    def _distance(self, threshold: float) -> float:
        there = max(0.0, (threshold - self.low) * (self.high - threshold))
        variance = self.spread.variance * there / ((self.mean - self.low) * (self.high - self.mean))
        return _in_deviations(self.mean - threshold, variance)


@dataclass(frozen=True)
class Differences:
    """The mean of paired differences in [-scale, scale]: Student's t around `center`, as in `difference_interval`."""

    mean: float
    n: int
    spread: Spread
    center: float
    scale: float

    @property
    def deviation(self) -> float:
        """√(n · variance of the mean)."""
        return math.sqrt(self.n * self.spread.variance)

    def above(self, threshold: float) -> float:
        """Student's t."""
        gap = _in_deviations(self.center - threshold, self.spread.variance)
        return _student_above(gap, self.spread.freedom)

    def below(self, threshold: float) -> float:
        """Student's t."""
        gap = _in_deviations(threshold - self.center, self.spread.variance)
        return _student_above(gap, self.spread.freedom)

    def lower(self, error: float) -> float:
        """Student's limit, cut to the range."""
        return max(-self.scale, self.center - self._half(error))

    def upper(self, error: float) -> float:
        """Student's limit, cut to the range."""
        return min(self.scale, self.center + self._half(error))

    def _half(self, error: float) -> float:
        return t_quantile(1 - error, self.spread.freedom) * math.sqrt(self.spread.variance)


def of_scores(
    values: Sequence[float], *, scale: float = 1.0, groups: Sequence[Hashable] | None = None
) -> Evidence | None:
    """The evidence of scores in [0, scale]; None for no value. Pass/fail without groups is exact."""
    same_length(values=values, groups=groups)
    x = column("values", values, 0.0, scale)
    n = x.size
    if n == 0:
        return None
    if groups is None and bool(np.all((x == 0) | (x == scale))):
        return Passes(int(np.sum(x == scale)), n, scale)
    numbers, units = x.tolist(), n if groups is None else len(set(groups))
    mean = mean_of(numbers)
    if units == 1 or min(numbers) == max(numbers):
        return Equal(mean, n, units, 0.0, scale)
    spread = plain_spread(numbers, mean) if groups is None else cluster_spread(numbers, mean, groups)
    # Groups whose sums happen to be alike show no spread, which no test can divide by.
    if spread.variance <= ROUNDING * scale**2:
        return Equal(mean, n, units, 0.0, scale)
    return Scores(mean, n, spread, 0.0, scale)


def of_differences(
    differences: Sequence[float], *, scale: float = 1.0, groups: Sequence[Hashable] | None = None
) -> Evidence | None:
    """The evidence of paired differences in [-scale, scale]; None for no value."""
    same_length(differences=differences, groups=groups)
    d = column("differences", differences, -scale, scale)
    n = d.size
    if n == 0:
        return None
    units = n if groups is None else len(set(groups))
    if not d.any():
        return Unchanged(n, units, scale)
    if units == 1:
        return Equal(float(d.mean()), n, 1, -scale, scale)
    center, spread = difference_spread(d, groups)
    return Differences(float(d.mean()), n, spread, center, scale)


def _binomial_above(successes: int, n: int, rate: float) -> float:
    from scipy.special import bdtrc  # noqa: PLC0415 - 0.1 s of import

    return float(bdtrc(successes - 1, n, min(1.0, max(0.0, rate)))) if successes > 0 else 1.0


def _student_above(gap: float, freedom: float) -> float:
    from scipy.special import stdtr  # noqa: PLC0415 - 0.1 s of import

    if math.isinf(gap):
        return 0.0 if gap > 0 else 1.0
    return float(stdtr(freedom, -gap))


def _in_deviations(gap: float, variance: float) -> float:
    if variance > 0:
        return gap / math.sqrt(variance)
    return math.copysign(math.inf, gap) if gap else 0.0
