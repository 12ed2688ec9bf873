"""What values in a known range say about the mean behind them: p-values and limits that hold for few and skewed values.

Good systems give nearly equal scores and a rare bad one that a small sample misses. The spread of such a sample says
nothing about what it misses; the range of the scores does. The p-value of "the true mean is at most m" is

    p = min(gaffke, max over q of (1 - q)^n · seen((m - q · low) / (1 - q)))

    seen(m) = P(weighted mean of the values and one more <= m), the one more being the smallest value of the sample
    gaffke  = the same at m, the one more being the low end of the range

with random weights that add up to 1, all such weights being equally likely. "Seen" is Gaffke's bound over the range of
the sample. The maximum asks: if a share q of all samples were at the low end of the range, how likely would n samples
have none of them, and the others a mean as high as this? The lower limit at error rate alpha is the m where the p-value
is alpha; upper limits mirror it. For values of 0 and 1 these are the exact binomial test and Clopper and Pearson's
limits; where all n values are v, the lower limit is low + (v - low) · alpha^(1/n); for many values both go to the
normal test.

With `share` s, seen = s · P(the smallest value added) + (1 - s) · P(the largest value added). 1 is exact, for
one-sided tests; 0.5 would be the mid-p value, whose 95 % intervals of pass rates cover as little as 91.8 %. `SHARE` is
the smallest share, in steps of 0.1, whose intervals cover 93.5 % or more for every pass rate and every n from 8 on.
`bench/coverage.py` has the simulations; that Gaffke's bound holds for all distributions was conjectured, not proven.

Clusters and weights: each independent unit (a cluster, or a weighted sample) has a mean x and a weight w, and
w · (x - m) replaces x - m. The added unit has the weight of the unit that a random part of all weight belongs to,
Σ w² / Σ w.

The probabilities are P(Σ e(i) · (x(i) - m) <= 0), e(i) independent and exponential, by Lugannani and Rice's saddlepoint
approximation: mostly within 1 %, for n from 8 on within 8 %, exact for values of two kinds. In pure Python.

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
from typing import Literal, TypeAlias

from evalstone.stats.roots import root
from evalstone.stats.special import beta_cdf, normal_tail

Side: TypeAlias = Literal[1, -1]
"""1: is the true mean above a number? -1: is it below?"""
EXACT = 1.0
SHARE = 0.7
"""The share (see the module) of two-sided intervals and tests."""
BINS = 512
"""More distinct values are put into so many bins of equal width, each at its own mean."""
WEIGHT_BINS = 32
LEAST_WEIGHT = 1e-30
"""As a share of the largest weight; less can't be told from it in any mean, and its square could be 0."""
NORMAL = NormalDist()
GOLDEN = (math.sqrt(5) - 1) / 2
CLOSE = 2e-5
"""How near the highest value of a function is looked for, as a part of where it is looked for."""
DIGITS = 12
_SMALL_ROOT = 1e-3


@dataclass(frozen=True)
class BoundedMean:
    """Independent values in [low, high] and what they say about the mean they come from.

    Build it with `of`. Everything is in the unit of the values.
    """

    low: float
    high: float
    mean: float
    """The weighted mean of the units."""
    units: float
    """How many independent values or clusters there are; in plans, not always a whole number."""
    points: tuple[tuple[float, float, float], ...]
    """Value, weight, and how many units have both; ascending."""
    _typical: float
    """The weight of the unit that a random part of all weight belongs to: Σ w² / Σ w."""

    @classmethod
    def of(
        cls,
        values: Sequence[float],
        low: float,
        high: float,
        *,
        groups: Sequence[Hashable] | None = None,
        weights: Sequence[float] | None = None,
    ) -> BoundedMean:
        """The evidence of values, at least one, all in [low, high].

        Args:
            values: Numbers in [low, high].
            low: The lower end of the range.
            high: The upper end.
            groups: One cluster label per value; values of one cluster may depend on each other.
            weights: One weight above 0 per value, which says nothing of the value, such as a number of items; None for
                equal weights. `weighted_mean` is for weights that go along with values.
        """
        if weights is not None:
            heaviest = max(weights)
            weights = [max(weight / heaviest, LEAST_WEIGHT) for weight in weights]
        if groups is not None:
            values, weights = _cluster_means(values, weights, groups)
        rounded = _rounded(values, low, high)
        if weights is None or min(weights) == max(weights):
            mean = math.fsum(values) / len(values)
            counts = Counter(rounded)
            points = _binned(counts, low, high) if len(counts) > BINS else ((x, 1.0, k) for x, k in counts.items())
            typical = 1.0
        else:
            total = math.fsum(weights)
            mean = math.fsum(w * x for w, x in zip(weights, values, strict=True)) / total
            typical = math.fsum(w * w for w in weights) / total
            points = _weighted_points(rounded, weights)
        inside = min(max(mean, min(values), low), max(values), high)
        return cls(low, high, inside, len(values), tuple(sorted(points)), typical)

    def p_value(self, m: float, side: Side, *, share: float = EXACT) -> float:
        """The p-value of "the true mean is at most m" (side 1) or "at least m" (side -1).

        Args:
            m: A number in [low, high].
            side: 1: small where the values lie above m; -1: where they lie below.
            share: See the module; 1 is exact.
        """
        return self._p_above(m, share) if side == 1 else self._mirrored._p_above(-m, share)

    def limit(self, alpha: float, side: Side, *, share: float = EXACT) -> float:
        """What the true mean is above (side 1) or below (side -1), at a one-sided error rate of alpha in (0, 0.5)."""
        return self._limit_below(alpha, share) if side == 1 else -self._mirrored._limit_below(alpha, share)

    def two_sided_p(self, m: float, *, share: float = SHARE) -> float:
        """The two-sided p-value of "the true mean is m": twice the smaller of the one-sided ones."""
        return min(1.0, 2 * min(self.p_value(m, 1, share=share), self.p_value(m, -1, share=share)))

    def interval(self, confidence: float, *, share: float = SHARE) -> tuple[float, float]:
        """The limits of all m whose two-sided p-value is at least 1 - confidence."""
        alpha = (1 - confidence) / 2
        return self.limit(alpha, 1, share=share), self.limit(alpha, -1, share=share)

    @cached_property
    def _mirrored(self) -> BoundedMean:
        points = tuple((-x, w, k) for x, w, k in reversed(self.points))
        return BoundedMean(-self.high, -self.low, -self.mean, self.units, points, self._typical)

    def _p_above(self, m: float, share: float) -> float:
        """The p-value of "the true mean is at most m"."""
        low, smallest, largest = self.low, self.points[0][0], self.points[-1][0]
        given, (m,) = m, _rounded([m], low, self.high)  # so that a value is m, or clearly not
        if m <= low:
            return float(self.mean <= given)
        seen = self._seen(m, share)
        if m >= largest or (share == EXACT and smallest == low):
            return seen
        # Beyond this end, the p-value is below what was seen even where that of the others is 1.
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
        # Beyond this end, the limit is above the one found even where the p-value of the others is 1.
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
        """About the standard error of the mean, where the search for limits starts."""
        total = math.fsum(k * w for _, w, k in self.points)
        span = self.high - self.low
        return span * math.sqrt(math.fsum(k * (w / total * (x - self.mean) / span) ** 2 for x, w, k in self.points))

    def _seen(self, m: float, share: float) -> float:
        smallest, largest = self.points[0][0], self.points[-1][0]
        return share * self._tail(m, smallest) + ((1 - share) * self._tail(m, largest) if share < 1 else 0.0)

    def _tail(self, m: float, added: float) -> float:
        """P(randomly weighted mean <= m), with one more unit of this value."""
        points = self.points
        smallest, largest = points[0][0], points[-1][0]
        if smallest == largest == added:
            return float(smallest <= m)
        alike = points[0][1] == points[-1][1] == self._typical
        if len(points) == 2 and alike and added in (smallest, largest):
            below, above = points[0][2] + (added == smallest), points[1][2] + (added == largest)
            return beta_cdf((m - smallest) / (largest - smallest), above, below)
        if len(points) == 1 and alike and added < smallest:
            return min(1.0, max(0.0, (m - added) / (smallest - added))) ** self.units
        return probability_below_zero([*((w * (x - m), k) for x, w, k in points), (self._typical * (added - m), 1)])


def probability_below_zero(terms: Sequence[tuple[float, float]]) -> float:
    """P(Σ z · e <= 0), e independent exponentials, by the saddlepoint approximation; terms: z and its count."""
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
        done = abs(at - s) <= 1e-6 * abs(at) + 1e-12  # the error of the next s is about the square of this
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
    if abs(deviate) < _SMALL_ROOT:  # where the next line divides rounding by rounding
        deviate += 2 * cube / curve**1.5 / 6
    else:
        deviate += math.log(s * math.sqrt(curve) / deviate) / deviate
    return normal_tail(-deviate)


def _maximum(f: Callable[[float], float], start: float, end: float) -> float:
    """The highest value of a function with one peak, by parabolas and golden sections (Brent 1973, chapter 5)."""
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
        one = (best - second) * (at_best - at_third)
        two = (best - third) * (at_best - at_second)
        up, down = (best - third) * two - (best - second) * one, 2 * (two - one)
        longest, before = before, step
        if down and abs(up / down) < abs(longest) / 2 and left < best - up / down < right:
            step = -up / down
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
    """Where the p-value, which goes up from the end of the range to the mean, is alpha; near the guess, best."""
    goal = NORMAL.inv_cdf(alpha)

    def height(m: float) -> float:
        """The normal quantile of p is nearly a straight line."""
        p = p_value(m)
        return (NORMAL.inv_cdf(p) if 1e-300 < p < 1 - 1e-16 else math.copysign(40.0, p - 0.5)) - goal

    above = height(mean)
    return mean if above <= 0 else root(height, mean, end, guess, at_start=above, close=1e-5)


def _cluster_means(
    values: Sequence[float], weights: Sequence[float] | None, groups: Sequence[Hashable]
) -> tuple[list[float], list[float]]:
    """The weighted mean and the total weight of each cluster."""
    sums: dict[Hashable, list[float]] = {}
    for place, (value, group) in enumerate(zip(values, groups, strict=True)):
        weight = 1.0 if weights is None else weights[place]
        both = sums.setdefault(group, [0.0, 0.0])
        both[0] += weight * value
        both[1] += weight
    return [total / weight for total, weight in sums.values()], [weight for _, weight in sums.values()]


def _rounded(values: Sequence[float], low: float, high: float) -> list[float]:
    """Values without what is only rounding: 0.1 + 0.2 is 0.3, and what misses an end of the range by 1e-13 is there."""
    span = high - low
    known = {x: low + round((x - low) / span, DIGITS) * span for x in set(values)}
    return [low if known[x] <= low else high if known[x] >= high else known[x] for x in values]


def _binned(counts: Counter[float], low: float, high: float) -> Iterable[tuple[float, float, int]]:
    """Values put into bins; those at an end of the range stay there."""
    smallest = min(counts)
    width = (max(counts) - smallest) / BINS
    bins: dict[int, list[float]] = {}
    for value, count in counts.items():
        key = -1 if value == low else BINS + 1 if value == high else int((value - smallest) / width)
        both = bins.setdefault(key, [0.0, 0])
        both[0] += value * count
        both[1] += count
    for total, count in bins.values():
        yield total / count, 1.0, int(count)


def _weighted_points(values: Sequence[float], weights: Sequence[float]) -> Iterable[tuple[float, float, int]]:
    counts = Counter(zip(values, weights, strict=True))
    if len(counts) <= BINS:
        return ((x, w, k) for (x, w), k in counts.items())
    smallest, largest = min(values), max(values)
    width, heaviest = (largest - smallest) / BINS or 1.0, max(weights)
    bins: dict[tuple[int, int], list[float]] = {}
    for (value, weight), count in counts.items():
        key = (int((value - smallest) / width), int(weight / heaviest * WEIGHT_BINS))
        three = bins.setdefault(key, [0.0, 0.0, 0])
        three[0] += value * weight * count
        three[1] += weight * count
        three[2] += count
    return ((total / weight, weight / count, int(count)) for total, weight, count in bins.values())
