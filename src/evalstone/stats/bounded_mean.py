"""Inference about the mean of a bounded variable: p-values and limits that are valid for small and skewed samples.

Good systems give nearly equal scores, and a rare bad one that a small sample may miss. The spread of such a sample says
nothing about unseen scores, but the range of the scores does. The p-value of "the true mean is at most m" is

    p = min(gaffke(m), max over q of (1 - q)^n · seen((m - q · low) / (1 - q)))

    seen(m)   = P(randomly weighted mean of the sample and its smallest value once more <= m)
    gaffke(m) = P(randomly weighted mean of the sample and the low end of the range <= m)

The random weights are uniform on the simplex: nonnegative, with a sum of 1. `seen` is Gaffke's bound over the range of
the sample instead of the whole range. The maximum is over the share q of the population at the low end of the range:
how likely is it that n samples contain none of these, and that the others have a mean this high? The lower limit at
error rate alpha is the m with a p-value of alpha. Upper limits mirror it. For values of 0 and 1, these are the exact
binomial test and the Clopper-Pearson limits. If all n values are v, the lower limit is
low + (v - low) · alpha^(1/n). For large n, both converge to the normal test.

With `share` s, seen = s · P(with the smallest value added) + (1 - s) · P(with the largest value added). s = 1 is the
exact test, used for one-sided tests. s = 0.5 would be mid-p, whose 95% intervals of pass rates cover as little as
91.8%. `SHARE` is the smallest share, in steps of 0.1, with a coverage of at least 93.5% for every pass rate and every
n >= 8. `bench/coverage.py` has the simulations. Gaffke's bound is conjectured, not proven, to hold for all
distributions.

Clusters and weighted values are the subject of `weighted_mean`.

All probabilities have the form P(Σ e(i) · (x(i) - m) <= 0) with independent exponential e(i). They are computed by the
Lugannani-Rice saddlepoint approximation: mostly within 1%, within 8% for n >= 8, and exact for two distinct values.
Pure Python.

Sources: Gaffke 2005, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable", Mathematical Methods of Statistics 14(4); Learned-Miller and Thomas 2020, arXiv:1905.06208; Lugannani and
Rice 1980, Advances in Applied Probability 12(2); Barndorff-Nielsen 1986, Biometrika 73(2).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Literal, TypeAlias, TypeVar

from evalstone.stats.packed_scores import PackedScores, smallest_and_largest
from evalstone.stats.roots import root
from evalstone.stats.special import beta_cdf, normal_tail

Value = TypeVar("Value", bound=Hashable)
Side: TypeAlias = Literal[1, -1]
"""1: is the true mean above a threshold? -1: is it below?"""
EXACT = 1.0
SHARE = 0.7
"""The share s (see the module docstring) of two-sided intervals and tests."""
BINS = 512
"""If there are more distinct values than this, they are grouped into this many bins of equal width, each represented by
its mean."""
NORMAL = NormalDist()
GOLDEN = (math.sqrt(5) - 1) / 2
CLOSE = 2e-5
"""The tolerance of `_maximum`, relative to the width of the search interval. It moves limits by up to about 1e-7 of the
range."""
DIGITS = 12
STEPS = 10.0**DIGITS
"""The number of equal steps of the range to which values are rounded."""
_SMALL_ROOT = 1e-3


@dataclass(frozen=True)
class BoundedMean:
    """Inference about the mean of independent values in [low, high]. Build it with `of`.

    All results but p-values are in the unit of the values.
    """

    low: float
    high: float
    mean: float
    units: float
    """The number of independent values or clusters. Not always an integer in power calculations."""
    points: tuple[tuple[float, float, float], ...]
    """(value, weight, number of units with both), in ascending order. Here, all weights are equal."""

    @classmethod
    def of(
        cls, values: Sequence[float], low: float, high: float, *, counts: Sequence[int] | None = None
    ) -> BoundedMean:
        """Build it from one or more independent values in [low, high]. counts: how often each occurs; None: once."""
        smallest, largest = smallest_and_largest(values)
        if counts is None and isinstance(values, PackedScores):
            from evalstone.stats.packed_points import points_of  # noqa: PLC0415 - numpy

            mean = min(max(values.total / len(values), smallest, low), largest, high)
            return cls(low, high, mean, len(values), points_of(values, low, high, steps=STEPS, bins=BINS))
        if counts is None:
            units, total, times = len(values), math.fsum(values), Counter(values)
        else:
            units, times = sum(counts), added_up(values, counts)
            total = math.fsum(x * k for x, k in times.items())
        mean = total / units
        exact = added_up(rounded([*times], low, high), times.values())
        points = _binned(exact, low, high) if len(exact) > BINS else ((x, 1.0, k) for x, k in exact.items())
        inside = min(max(mean, smallest, low), largest, high)
        return cls(low, high, inside, units, tuple(sorted(points)))

    def p_value(self, m: float, side: Side, *, share: float = EXACT) -> float:
        """The p-value of "the true mean is at most m" (side 1) or "at least m" (side -1).

        Args:
            m: A number in [low, high].
            side: 1 if a mean above m is evidence against the null hypothesis, -1 if a mean below m is.
            share: The share s (see the module docstring); 1 is exact.
        """
        return self._p_above(m, share) if side == 1 else self._mirrored._p_above(-m, share)

    def limit(self, alpha: float, side: Side, *, share: float = EXACT) -> float:
        """The one-sided lower (side 1) or upper (side -1) confidence limit at error rate alpha, in (0, 0.5)."""
        return self._limit_below(alpha, share) if side == 1 else -self._mirrored._limit_below(alpha, share)

    def two_sided_p(self, m: float, *, share: float = SHARE) -> float:
        """The two-sided p-value of "the true mean is m": twice the smaller of the one-sided ones."""
        return min(1.0, 2 * min(self.p_value(m, 1, share=share), self.p_value(m, -1, share=share)))

    def interval(self, confidence: float, *, share: float = SHARE) -> tuple[float, float]:
        """The confidence interval (low, high): all m with a two-sided p-value of at least 1 - confidence."""
        alpha = (1 - confidence) / 2
        return self.limit(alpha, 1, share=share), self.limit(alpha, -1, share=share)

    @cached_property
    def _mirrored(self) -> BoundedMean:
        points = tuple((-x, w, k) for x, w, k in reversed(self.points))
        return type(self)(-self.high, -self.low, -self.mean, self.units, points)

    def _p_above(self, m: float, share: float) -> float:
        """The p-value of "the true mean is at most m"."""
        low, smallest, largest = self.low, self.points[0][0], self.points[-1][0]
        exact, (m,) = m, rounded([m], low, self.high)  # so that a value equals m or clearly differs from it
        if m <= low:
            return float(self.mean <= exact)
        seen = self._seen(m, share)
        if m >= largest or (share == EXACT and smallest == low):
            return seen
        # Beyond this point, even a p-value of 1 for the others gives a product below `seen`.
        end = low + (m - low) * math.exp(min(700.0, -math.log(seen) / self.units)) if seen else math.inf
        highest = self._unseen(max(m, smallest), min(end, largest), share)
        with_unseen = math.exp(highest - self.units * (math.log(largest - low) - math.log(m - low)))
        return min(1.0, max(seen, with_unseen), self._tail(m, low))

    def _limit_below(self, alpha: float, share: float) -> float:
        """The m at which `_p_above` is alpha."""
        low, smallest, largest = self.low, self.points[0][0], self.points[-1][0]
        if largest <= low:
            return low
        if smallest == largest:
            return low + (largest - low) * alpha ** (1 / self.units)
        mean = min(max(self.mean, smallest), largest)
        seen = crossing(
            lambda m: self._seen(m, share), smallest, mean, alpha, mean + self._error * NORMAL.inv_cdf(alpha)
        )
        if share == EXACT and smallest == low:
            return seen
        # Beyond this point, even a p-value of 1 for the others gives a limit above `seen`.
        end = low + (seen - low) * math.exp(min(700.0, -math.log(alpha) / self.units))
        highest = self._unseen(seen, min(end, largest), share)
        limit = min(seen, low + (largest - low) * math.exp((math.log(alpha) - highest) / self.units))
        if self._tail(limit, low) >= alpha:
            return limit
        return crossing(lambda m: self._tail(m, low), low, mean, alpha, limit)

    def _unseen(self, start: float, end: float, share: float) -> float:
        """max log(((largest - low) / (base - low))^n · seen(base)), base = (m - q · low) / (1 - q) in [start, end]."""
        low, largest = self.low, self.points[-1][0]

        def height(base: float) -> float:
            seen = self._seen(base, share)
            part = (base - low) / (largest - low)
            return math.log(seen) - self.units * math.log(part) if seen else -1e6 * (2 - part)  # below all others

        return max(0.0, _maximum(height, start, end))  # 0 at the largest value

    @cached_property
    def _error(self) -> float:
        """An approximate standard error of the mean, used as the starting point of the search for limits."""
        total = math.fsum(k * w for _, w, k in self.points)
        span = self.high - self.low
        return span * math.sqrt(math.fsum(k * (w / total * (x - self.mean) / span) ** 2 for x, w, k in self.points))

    def _seen(self, m: float, share: float) -> float:
        smallest, largest = self.points[0][0], self.points[-1][0]
        return share * self._tail(m, smallest) + ((1 - share) * self._tail(m, largest) if share < 1 else 0.0)

    def _tail(self, m: float, added: float) -> float:
        """P(randomly weighted mean <= m), with one more unit of value `added`."""
        points = self.points
        smallest, largest = points[0][0], points[-1][0]
        if smallest == largest == added:
            return float(smallest <= m)
        if len(points) == 2 and added in (smallest, largest):
            below, above = points[0][2] + (added == smallest), points[1][2] + (added == largest)
            return beta_cdf((m - smallest) / (largest - smallest), above, below)
        if len(points) == 1 and added < smallest:
            return min(1.0, max(0.0, (m - added) / (smallest - added))) ** self.units
        return probability_below_zero([*((x - m, k) for x, _, k in points), (added - m, 1)])


def probability_below_zero(terms: Sequence[tuple[float, float]]) -> float:
    """P(Σ z · e <= 0) for independent exponential e, by the saddlepoint approximation. terms: (z, count) pairs."""
    smallest, largest = min(terms)[0], max(terms)[0]
    if largest <= 0 or smallest >= 0:
        return float(largest <= 0)
    scale = max(-smallest, largest)
    terms = [(z / scale, count) for z, count in terms if z]
    # The cumulant generating function K(s) = -Σ log(1 - s z) is convex between its poles: find its minimum.
    left, right = scale / smallest, scale / largest
    s = 0.0
    for _ in range(200):
        slope = curve = 0.0
        for z, count in terms:
            tilted = z / (1 - s * z)
            slope += count * tilted
            curve += count * tilted * tilted
        if slope > 0:
            right = s
        else:
            left = s
        step = -slope / curve
        at = s + step
        if not left < at < right:
            at = (s + (right if step > 0 else left)) / 2
        done = abs(at - s) <= 1e-6 * abs(at) + 1e-12  # Newton's method converges quadratically
        s = at
        if done:
            break
    height = curve = cube = 0.0
    for z, count in terms:
        tilted = z / (1 - s * z)
        height -= count * math.log1p(-s * z)
        curve += count * tilted * tilted
        cube += count * tilted**3
    deviate = math.copysign(math.sqrt(max(0.0, -2 * height)), s)
    if abs(deviate) < _SMALL_ROOT:  # here, the formula below would divide rounding errors by rounding errors
        deviate += 2 * cube / curve**1.5 / 6
    else:
        deviate += math.log(s * math.sqrt(curve) / deviate) / deviate
    return normal_tail(-deviate)


def _maximum(f: Callable[[float], float], start: float, end: float) -> float:
    """The maximum of a unimodal function, by parabolic interpolation and golden sections (Brent 1973, chapter 5)."""
    if not start < end:
        return f(start)
    at_start, close = f(start), CLOSE * (end - start)
    if f(start + close) <= at_start:
        return at_start
    left, right = start, end
    best = second = third = end - GOLDEN * (end - start)
    at_best = at_second = at_third = f(best)
    step = before = 0.0
    for _ in range(40):
        if max(best - left, right - best) <= 2 * close:
            break
        r = (best - second) * (at_best - at_third)
        t = (best - third) * (at_best - at_second)
        p, q = (best - third) * t - (best - second) * r, 2 * (t - r)
        longest, before = before, step
        if q and abs(p / q) < abs(longest) / 2 and left < best - p / q < right:
            step = -p / q
            if min(best + step - left, right - best - step) < close:
                step = math.copysign(close, (left + right) / 2 - best)
        else:
            before = (right if best < (left + right) / 2 else left) - best
            step = (1 - GOLDEN) * before
        x = best + (step if abs(step) > close else math.copysign(close, step))
        at_x = f(x)
        if at_x >= at_best:
            left, right = (best, right) if x > best else (left, best)
            second, third, best = best, second, x
            at_second, at_third, at_best = at_best, at_second, at_x
        else:
            left, right = (left, x) if x > best else (x, right)
            if at_x >= at_second or second == best:
                second, third, at_second, at_third = x, second, at_x, at_second
            elif at_x >= at_third or third in (best, second):
                third, at_third = x, at_x
    return max(at_start, at_best)


def crossing(p_value: Callable[[float], float], end: float, mean: float, alpha: float, guess: float) -> float:
    """The m at which a p-value that increases from the end of the range to the mean is alpha.

    guess: Where to start; the search is fastest if the root is near.
    """
    target = NORMAL.inv_cdf(alpha)

    def height(m: float) -> float:
        """The normal quantile of p, which is nearly linear in m, less that of alpha."""
        p = p_value(m)
        return (NORMAL.inv_cdf(p) if 1e-300 < p < 1 - 1e-16 else math.copysign(40.0, p - 0.5)) - target

    above = height(mean)
    return mean if above <= 0 else root(height, mean, end, guess, at_start=above, close=1e-5)


def added_up(values: Iterable[Value], counts: Iterable[int]) -> Counter[Value]:
    """How often each value occurs, if each of these occurs as often as its count says."""
    totals = Counter[Value]()
    for value, count in zip(values, counts, strict=True):
        totals[value] += count
    return totals


def rounded(values: Sequence[float], low: float, high: float) -> list[float]:
    """Values without rounding error: 0.1 + 0.2 becomes 0.3, and values within 1e-13 of an end are moved to it."""
    span = high - low
    known = {x: low + round((x - low) / span * STEPS) / STEPS * span for x in set(values)}
    return [low if known[x] <= low else high if known[x] >= high else known[x] for x in values]


def _binned(counts: Counter[float], low: float, high: float) -> Iterable[tuple[float, float, int]]:
    """(mean, 1, count) of bins of equal width; values at an end of the range keep their own bin."""
    smallest = min(counts)
    width = (max(counts) - smallest) / BINS
    bins: dict[int, list[float]] = {}
    for value, count in sorted(counts.items()):  # whatever their order, as sums are rounded
        key = -1 if value == low else BINS + 1 if value == high else int((value - smallest) / width)
        totals = bins.setdefault(key, [0.0, 0])
        totals[0] += value * count
        totals[1] += count
    for total, count in bins.values():
        yield total / count, 1.0, int(count)
