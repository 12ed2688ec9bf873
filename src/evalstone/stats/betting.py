"""What values say about their mean at every number of them at once, by betting: they may be looked at after each one.

Two bettors bet on each possible mean m, one against "the mean is at most m", one against "at least". A capital of 1 is
multiplied by 1 ± λ · (x - m) with each value, x and m as shares of the range, λ >= 0 chosen from the values before. If
the hypothesis is true, the capital ever reaches 1 / alpha with a chance of at most alpha (Ville's inequality), so that
1 / the largest capital is a p-value whenever one stops. λ is the bet that grows the capital fastest if mean and
variance stay what they were so far (aGRAPA), at most 3/4 of what could ruin the bettor. Values must come in an order
unrelated to them: shuffle them. A missing value may lie anywhere in the range; the bettor against "at most" gets it as
the lowest, the one against "at least" as the highest.
Source: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", JRSS B 86(1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import Floats
from evalstone.stats.bounded_mean import DIGITS, Side
from evalstone.stats.intervals import check_confidence

MAX_BET = 0.75
GRID = 1000
FINER = 100
"""Limits are looked for on a grid of a thousandth of the range, and in a hundredth of its steps."""


class ConfidenceSequence:
    """An interval for the mean of values in [low, high] that holds at every number of samples at once.

    It holds the means on a grid of a thousandth of the range that no bettor has ruled out, and one step at either end.

    Raises:
        ConfigError: The range is empty, or confidence is outside (0, 1).
    """

    def __init__(self, low: float = 0.0, high: float = 1.0, *, confidence: float = 0.95) -> None:
        check_confidence(confidence)
        check_range("the range", low, high)
        self._low, self._span = low, high - low
        self._means = np.linspace(0, 1, GRID + 1)[1:-1]
        self._bettors = Bettors(self._means)
        self._limit = math.log(2 / (1 - confidence))
        self._from, self._to = 0.0, 1.0

    def add(self, value: float | None) -> None:
        """Add one value; None for a missing one. Raises DataError outside the range."""
        self._bettors.add(*shares("value", value, self._low, self._span))
        over, under = self._bettors.best
        possible = np.flatnonzero((over < self._limit) & (under < self._limit))
        if possible.size:
            self._from = max(self._from, float(self._means[possible[0]]) - 1 / GRID)
            self._to = min(self._to, float(self._means[possible[-1]]) + 1 / GRID)

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval so far; it only ever shrinks."""
        return self._low + self._span * self._from, self._low + self._span * self._to


@dataclass(frozen=True)
class BettingMean:
    """Values in [low, high], in the order in which they were drawn, and what they say about the mean they come from.

    P-values and limits hold also where the number of values depends on the values. Build it with `of`.
    """

    low: float
    high: float
    mean: float
    _shares: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float], low: float, high: float) -> BettingMean:
        """The evidence of values, at least one, all in [low, high]."""
        return cls(low, high, math.fsum(values) / len(values), tuple((x - low) / (high - low) for x in values))

    def p_value(self, m: float, side: Side) -> float:
        """The p-value of "the true mean is at most m" (side 1) or "at least m" (side -1), m in [low, high]."""
        share = round((m - self.low) / (self.high - self.low), DIGITS)
        if not 0 < share < 1:  # at an end, all values are there, or the mean is not
            at_end = self.mean <= m if side == 1 else self.mean >= m
            return float(at_end or share not in (0, 1) or (share == 0) != (side == 1))
        return float(self._p_values(np.array([share]), side)[0])

    def limit(self, alpha: float, side: Side) -> float:
        """What the true mean is above (side 1) or below (side -1), at a one-sided error rate of alpha in (0, 1)."""
        beyond, step = 0.0, 1.0
        for parts in (GRID, FINER):
            grid = beyond + step * np.arange(1, parts) / parts  # as shares, from the end of the range on
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
    """The logarithms of the capitals of the bettors against each of some means in (0, 1), now and at their best."""

    def __init__(self, means: Floats) -> None:
        self._means = means
        self._capital = (np.zeros(means.size), np.zeros(means.size))
        self.best = (np.zeros(means.size), np.zeros(means.size))
        """Against "the mean is at most m", and against "at least"."""
        self._lowest, self._highest = _Moments(), _Moments()

    def add(self, lowest: float, highest: float) -> None:
        """Add a share of the range; of a missing value, the lowest and the highest that it may be."""
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
    """Mean and variance so far. Half a value at either end of the range stands for what is unknown at first."""

    def __init__(self) -> None:
        self._n, self._sum, self._squares = 0, 0.0, 0.0

    def bet(self, means: Floats) -> Floats:
        gap = (0.5 + self._sum) / (1 + self._n) - means
        return gap / ((0.25 + self._squares) / (1 + self._n) + gap**2)

    def add(self, x: float) -> None:
        self._n, self._sum = self._n + 1, self._sum + x
        self._squares += (x - (0.5 + self._sum) / (1 + self._n)) ** 2


def sequence_bounds(values: Iterable[float], low: float, high: float, confidence: float) -> tuple[float, float]:
    """The confidence sequence of values in [low, high] after the last of them."""
    sequence = ConfidenceSequence(low, high, confidence=confidence)
    for value in values:
        sequence.add(value)
    return sequence.bounds


def shares(name: str, value: float | None, low: float, span: float) -> tuple[float, float]:
    """A value as a share of the range, twice; of a missing one, the lowest and the highest. Raises DataError."""
    if value is None:
        return 0.0, 1.0
    share = (value - low) / span
    if not -1e-9 <= share <= 1 + 1e-9:
        raise DataError(f"{name}: {value} is not a number in [{low:g}, {low + span:g}]")
    share = min(1.0, max(0.0, share))
    return share, share


def check_range(name: str, low: float, high: float) -> None:
    """Raise ConfigError for a range that is empty or has no end."""
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ConfigError(f"{name}: low and high must be finite and go up, not {low} and {high}")
