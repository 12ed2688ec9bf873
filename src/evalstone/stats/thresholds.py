"""What values say about their mean against a threshold: one-sided p-values and limits that agree with each other.

A limit at error rate alpha is the threshold whose p-value is alpha. Pass/fail values use the exact binomial test,
scores the interval of `mean_interval`, differences that of `difference_interval`, both one-sided. Values that don't
vary have no spread; they use bounds that are valid for any values.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from evalstone.stats._arrays import column, same_length
from evalstone.stats.comparison import difference_spread
from evalstone.stats.intervals import (
    ROUNDING,
    Spread,
    binomial_cdf,
    cluster_spread,
    limits,
    lower_limit,
    mean_of,
    plain_spread,
    t_quantile,
    upper_limit,
)


@dataclass(frozen=True)
class Evidence(ABC):
    """The mean of n values, in the unit of the values, and what follows for the true mean."""

    mean: float
    n: int

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation per sample, design effect included: √(n · variance of the mean)."""

    @abstractmethod
    def p_above(self, threshold: float) -> float:
        """The p-value of "the true mean is at most the threshold": small when the mean is above it."""

    @abstractmethod
    def p_below(self, threshold: float) -> float:
        """The p-value of "the true mean is at least the threshold": small when the mean is below it."""

    @abstractmethod
    def lower(self, alpha: float) -> float:
        """The one-sided lower limit of the true mean, with confidence 1 - alpha."""

    @abstractmethod
    def upper(self, alpha: float) -> float:
        """The one-sided upper limit of the true mean, with confidence 1 - alpha."""


@dataclass(frozen=True)
class Passes(Evidence):
    """Pass/fail values of independent samples, worth 0 or `scale` each: the exact binomial test."""

    successes: int
    scale: float = 1.0

    @property
    def deviation(self) -> float:
        """√(p (1 - p)) · scale, p the rate after one more success and one more failure."""
        rate = (self.successes + 1) / (self.n + 2)
        return math.sqrt(rate * (1 - rate)) * self.scale

    def p_above(self, threshold: float) -> float:
        """P(X >= successes) at the threshold."""
        return binomial_cdf(self.n - self.successes, self.n, 1 - _share(threshold, self.scale))

    def p_below(self, threshold: float) -> float:
        """P(X <= successes) at the threshold."""
        return binomial_cdf(self.successes, self.n, _share(threshold, self.scale))

    def lower(self, alpha: float) -> float:
        """Clopper and Pearson's limit."""
        return lower_limit(self.successes, self.n, 1 - alpha) * self.scale

    def upper(self, alpha: float) -> float:
        """Clopper and Pearson's limit."""
        return upper_limit(self.successes, self.n, 1 - alpha) * self.scale


@dataclass(frozen=True)
class Scores(Evidence):
    """Values in [0, scale] that vary: Wilson's interval for means."""

    spread: Spread
    scale: float

    @property
    def deviation(self) -> float:
        """√(n · variance of the mean)."""
        return math.sqrt(self.n * self.spread.variance)

    def p_above(self, threshold: float) -> float:
        """Student's t at the threshold, with the variance that the threshold would have."""
        return _t_tail(self.mean - threshold, self._variance_at(threshold), self.spread.freedom)

    def p_below(self, threshold: float) -> float:
        """Student's t at the threshold, with the variance that the threshold would have."""
        return _t_tail(threshold - self.mean, self._variance_at(threshold), self.spread.freedom)

    def lower(self, alpha: float) -> float:
        """The lower limit of `mean_interval` at confidence 1 - 2 · alpha."""
        return self._limits(alpha)[0]

    def upper(self, alpha: float) -> float:
        """The upper limit of `mean_interval` at confidence 1 - 2 · alpha."""
        return self._limits(alpha)[1]

    def _limits(self, alpha: float) -> tuple[float, float]:
        quantile = t_quantile(1 - alpha, self.spread.freedom)
        return limits(self.mean, self.spread.variance, quantile, 0.0, self.scale)

    def _variance_at(self, threshold: float) -> float:
        at_threshold = max(0.0, threshold * (self.scale - threshold))
        return self.spread.variance * at_threshold / (self.mean * (self.scale - self.mean))


@dataclass(frozen=True)
class Differences(Evidence):
    """Paired differences in [-scale, scale]: Student's t around `center`, as in `difference_interval`."""

    spread: Spread
    center: float
    scale: float

    @property
    def deviation(self) -> float:
        """√(n · variance of the mean)."""
        return math.sqrt(self.n * self.spread.variance)

    def p_above(self, threshold: float) -> float:
        """Student's t."""
        return _t_tail(self.center - threshold, self.spread.variance, self.spread.freedom)

    def p_below(self, threshold: float) -> float:
        """Student's t."""
        return _t_tail(threshold - self.center, self.spread.variance, self.spread.freedom)

    def lower(self, alpha: float) -> float:
        """Student's limit, cut to the range."""
        return max(-self.scale, self.center - self._half(alpha))

    def upper(self, alpha: float) -> float:
        """Student's limit, cut to the range."""
        return min(self.scale, self.center + self._half(alpha))

    def _half(self, alpha: float) -> float:
        return t_quantile(1 - alpha, self.spread.freedom) * math.sqrt(self.spread.variance)


@dataclass(frozen=True)
class Equal(Evidence):
    """Values in [low, high] that are all equal, in so many independent units: Chernoff's bound.

    p = exp(-units · KL(mean, threshold)), both as shares of the range. Valid for any values in the range; at an end of
    it threshold^units, the exact chance.
    """

    units: int
    low: float
    high: float

    @property
    def deviation(self) -> float:
        """That of pass/fail with one more success and one more failure, as the values have none."""
        rate = ((self.mean - self.low) / (self.high - self.low) * self.units + 1) / (self.units + 2)
        return math.sqrt(rate * (1 - rate)) * (self.high - self.low)

    def p_above(self, threshold: float) -> float:
        """Chernoff's bound on a mean this high."""
        return 1.0 if self.mean <= threshold else self._bound(threshold)

    def p_below(self, threshold: float) -> float:
        """Chernoff's bound on a mean this low."""
        return 1.0 if self.mean >= threshold else self._bound(threshold)

    def lower(self, alpha: float) -> float:
        """The threshold at which the bound is alpha."""
        return _crossing(lambda x: self.p_above(x) - alpha, self.low, self.mean)

    def upper(self, alpha: float) -> float:
        """The threshold at which the bound is alpha."""
        return _crossing(lambda x: self.p_below(x) - alpha, self.high, self.mean)

    def _bound(self, threshold: float) -> float:
        span = self.high - self.low
        p, q = (self.mean - self.low) / span, (threshold - self.low) / span
        divergence = 0.0
        for observed, true in ((p, q), (1 - p, 1 - q)):
            if observed > 0:
                if true <= 0:
                    return 0.0
                divergence += observed * math.log(observed / true)
        return math.exp(-self.units * divergence)


@dataclass(frozen=True)
class Unchanged(Evidence):
    """Differences that are all 0: a mean of ± d needs a share d / scale of changed samples, and none has changed."""

    units: int
    scale: float

    @property
    def deviation(self) -> float:
        """That of one change in units + 2 samples."""
        return self.scale / math.sqrt(self.units + 2)

    def p_above(self, threshold: float) -> float:
        """(1 - |threshold| / scale)^units below 0, else 1."""
        return (1 - min(1.0, -threshold / self.scale)) ** self.units if threshold < 0 else 1.0

    def p_below(self, threshold: float) -> float:
        """(1 - threshold / scale)^units above 0, else 1."""
        return self.p_above(-threshold)

    def lower(self, alpha: float) -> float:
        """-scale · (1 - alpha^(1 / units))."""
        return -self.upper(alpha)

    def upper(self, alpha: float) -> float:
        """scale · (1 - alpha^(1 / units))."""
        return self.scale * -math.expm1(math.log(alpha) / self.units)


def of_scores(
    values: Sequence[float], *, scale: float = 1.0, groups: Sequence[Hashable] | None = None
) -> Evidence | None:
    """The evidence of scores; None for no values. Pass/fail values without clusters are exact.

    Args:
        values: Numbers in [0, scale].
        scale: The upper end of the range.
        groups: One cluster label per value.

    Raises:
        DataError: A value is not a finite number in [0, scale], or `groups` has another length.
    """
    same_length(values=values, groups=groups)
    x = column("values", values, 0.0, scale)
    n = x.size
    if n == 0:
        return None
    if groups is None and bool(np.all((x == 0) | (x == scale))):
        successes = int(np.sum(x == scale))
        return Passes(successes / n * scale, n, successes, scale)
    numbers, units = x.tolist(), n if groups is None else len(set(groups))
    mean = mean_of(numbers)
    if units == 1 or min(numbers) == max(numbers):
        return Equal(mean, n, units, 0.0, scale)
    spread = plain_spread(numbers, mean) if groups is None else cluster_spread(numbers, mean, groups)
    # Clusters whose sums happen to be equal have no spread, and no test can divide by it.
    if spread.variance <= ROUNDING * scale**2:
        return Equal(mean, n, units, 0.0, scale)
    return Scores(mean, n, spread, scale)


def of_differences(
    differences: Sequence[float], *, scale: float = 1.0, groups: Sequence[Hashable] | None = None
) -> Evidence | None:
    """The evidence of paired differences in [-scale, scale]; None for no values. Arguments and errors: `of_scores`."""
    same_length(differences=differences, groups=groups)
    d = column("differences", differences, -scale, scale)
    n = d.size
    if n == 0:
        return None
    units = n if groups is None else len(set(groups))
    if not d.any():
        return Unchanged(0.0, n, units, scale)
    if units == 1:
        return Equal(float(d.mean()), n, 1, -scale, scale)
    center, spread = difference_spread(d, groups)
    return Differences(float(d.mean()), n, spread, center, scale)


def _share(threshold: float, scale: float) -> float:
    return min(1.0, max(0.0, threshold / scale))


def _t_tail(gap: float, variance: float, freedom: float) -> float:
    """P(T >= gap in standard errors), T Student's t."""
    if variance <= 0:
        return 0.0 if gap > 0 else 1.0
    from scipy.special import stdtr  # noqa: PLC0415 - 0.15 s of import

    return float(stdtr(freedom, -gap / math.sqrt(variance)))


def _crossing(rising: Callable[[float], float], end: float, mean: float) -> float:
    """Where a function below 0 at the end of the range and above 0 at the mean is 0, by bisection; else the end."""
    inside, outside = mean, end
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if rising(middle) < 0 else (middle, outside)
    return outside
