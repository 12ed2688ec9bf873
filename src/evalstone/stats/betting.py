"""Anytime-valid inference for a bounded mean, by betting: p-values and limits that stay valid under optional stopping.

For each candidate mean m, one bettor bets against "the mean is at most m" and another against "the mean is at least m".
Each starts with a capital of 1 and multiplies it by 1 ± λ · (x - m) for each value x. Here x and m are shares of the
range, and λ >= 0 depends on earlier values only. Under the null hypothesis, the probability that the capital ever
reaches 1 / alpha is at most alpha (Ville's inequality). So 1 / (largest capital so far) is a p-value at any stopping
time. λ maximizes the growth of the capital if mean and variance stay as they are so far (aGRAPA), capped at 3/4 of the
bet that could ruin the bettor.

Values must arrive in an order unrelated to their size; shuffle them. A missing value may lie anywhere in the range, or
between two ends of its own. It counts as the lowest of these for the bettor against "at most", and as the highest for
the bettor against "at least".
Source: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", JRSS B 86(1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import Floats
from evalstone.stats.bounded_mean import DIGITS, Side
from evalstone.stats.intervals import check_confidence

Value: TypeAlias = float | tuple[float, float] | None
"""A value, the lowest and the highest that it can be, or None for a missing one, which can be anything in the range."""
MAX_BET = 0.75
GRID = 1000
FINER = 100
"""Limits are searched on a grid of 1/1,000 of the range, then on one of 1/100 of its step."""


class ConfidenceSequence:
    """A confidence sequence for the mean of values in [low, high]: its interval is valid at all sample sizes at once.

    The interval is open. It spans the means that no bettor has ruled out, on a grid of 1/1,000 of the range, up to the
    nearest ones that are ruled out.

    Args:
        low: The lowest possible value.
        high: The highest possible value.
        confidence: The confidence level, in (0, 1).
        at: Further means for the grid, such as thresholds that the interval is compared with.

    Raises:
        ConfigError: low or high is not finite, low is not below high, or confidence is outside (0, 1).
    """

    def __init__(
        self, low: float = 0.0, high: float = 1.0, *, confidence: float = 0.95, at: Sequence[float] = ()
    ) -> None:
        check_confidence(confidence)
        check_range("the range", low, high)
        self._low, self._span = low, high - low
        inside = low + self._span * np.arange(1, GRID) / GRID
        inside = np.union1d(inside, [mean for mean in at if low < mean < high])
        self._ends: Floats = np.concatenate(([low], inside, [high]))
        self._bettors = Bettors((inside - low) / self._span)
        self._limit = math.log(2 / (1 - confidence))
        self._from, self._to = 0, self._ends.size - 1

    def add(self, value: Value) -> None:
        """Add one value. Raises DataError outside the range."""
        self._bettors.add(*shares("value", value, self._low, self._span))
        over, under = self._bettors.best
        possible = np.flatnonzero((over < self._limit) & (under < self._limit))
        if possible.size:
            self._from = max(self._from, int(possible[0]))
            self._to = min(self._to, int(possible[-1]) + 2)

    @property
    def bounds(self) -> tuple[float, float]:
        """The current interval (low, high). It never widens."""
        return float(self._ends[self._from]), float(self._ends[self._to])


@dataclass(frozen=True)
class BettingMean:
    """Inference about the mean of values in [low, high], in the order in which they were drawn.

    P-values and limits stay valid if the number of values depends on the values. Build it with `of`.
    """

    low: float
    high: float
    mean: float
    _shares: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float], low: float, high: float) -> BettingMean:
        """Build it from one or more values in [low, high]."""
        return cls(low, high, math.fsum(values) / len(values), tuple((x - low) / (high - low) for x in values))

    def p_value(self, m: float, side: Side) -> float:
        """The p-value of "the true mean is at most m" (side 1) or "at least m" (side -1), m in [low, high]."""
        share = round((m - self.low) / (self.high - self.low), DIGITS)
        if not 0 < share < 1:  # the mean is at an end of the range only if all values are
            at_end = self.mean <= m if side == 1 else self.mean >= m
            return float(at_end or share not in (0, 1) or (share == 0) != (side == 1))
        return float(self._p_values(np.array([share]), side)[0])

    def limit(self, alpha: float, side: Side) -> float:
        """The one-sided lower (side 1) or upper (side -1) confidence limit at error rate alpha, in (0, 1)."""
        beyond, step = 0.0, 1.0
        for parts in (GRID, FINER):
            grid = beyond + step * np.arange(1, parts) / parts  # shares of the range, from its end inward
            p_values = self._p_values(grid if side == 1 else 1 - grid, side)
            first = int(np.argmax(p_values > alpha)) if (p_values > alpha).any() else parts - 1
            beyond, step = beyond + step * first / parts, step / parts
        return self.low + (self.high - self.low) * (beyond if side == 1 else 1 - beyond)

    def _p_values(self, means: Floats, side: Side) -> Floats:
        bettors = Bettors(means)
        for share in self._shares:
            bettors.add(share, share)
        return np.exp(-bettors.best[0 if side == 1 else 1])


class Bettors:
    """The log capital of the bettors against each candidate mean in (0, 1): current, and largest so far."""

    def __init__(self, means: Floats) -> None:
        self._means = means
        self._capital = (np.zeros(means.size), np.zeros(means.size))
        self.best = (np.zeros(means.size), np.zeros(means.size))
        """The largest log capital so far, against "the mean is at most m" and against "at least m"."""
        self._lowest, self._highest = _Moments(), _Moments()

    def add(self, lowest: float, highest: float) -> None:
        """Add a value as a share of the range: the lowest and the highest that it can be, which differ if missing."""
        means = self._means
        over = np.clip(self._lowest.bet(means), 0, MAX_BET / means)
        under = np.clip(-self._highest.bet(means), 0, MAX_BET / (1 - means))
        growths = (over * (lowest - means), under * (means - highest))
        for capital, best, growth in zip(self._capital, self.best, growths, strict=True):
            capital += np.log1p(growth)
            np.maximum(best, capital, out=best)
        self._lowest.add(lowest)
        self._highest.add(highest)


class _Moments:
    """The running mean and variance, with half a pseudo-observation at either end of the range as the prior."""

    def __init__(self) -> None:
        self._n, self._sum, self._squares = 0, 0.0, 0.0

    def bet(self, means: Floats) -> Floats:
        """The aGRAPA bet on each mean: (mean so far - m) / (variance so far + (mean so far - m)²)."""
        gap = (0.5 + self._sum) / (1 + self._n) - means
        return gap / ((0.25 + self._squares) / (1 + self._n) + gap**2)

    def add(self, x: float) -> None:
        self._n, self._sum = self._n + 1, self._sum + x
        self._squares += (x - (0.5 + self._sum) / (1 + self._n)) ** 2


def sequence_bounds(values: Iterable[Value], low: float, high: float, confidence: float) -> tuple[float, float]:
    """The interval of the confidence sequence after the last of the values, all in [low, high]."""
    sequence = ConfidenceSequence(low, high, confidence=confidence)
    for value in values:
        sequence.add(value)
    return sequence.bounds


def shares(name: str, value: Value, low: float, span: float) -> tuple[float, float]:
    """The lowest and the highest share of the range that a value can be: equal, unless it is missing.

    Raises:
        DataError: The value is outside the range.
    """
    if value is None:
        return 0.0, 1.0
    lowest, highest = value if isinstance(value, tuple) else (value, value)
    for end in (lowest, highest):
        if not -1e-9 <= (end - low) / span <= 1 + 1e-9:
            raise DataError(f"{name}: {end} is not a number in [{low:g}, {low + span:g}]")
    return min(1.0, max(0.0, (lowest - low) / span)), min(1.0, max(0.0, (highest - low) / span))


def check_range(name: str, low: float, high: float) -> None:
    """Raise ConfigError unless low and high are finite and low is below high."""
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ConfigError(f"{name}: low and high must be finite and go up, not {low} and {high}")
