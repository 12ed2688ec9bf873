"""Intervals for means.

Scores lie in a known range, mostly crowded at one end of it; there Student's interval is too short and reaches over the
end. With a finite range the interval is Wilson's, for means: the variance of the mean is taken to be
φ · m (1 - m) / n at the true mean m (in parts of the range), with φ from the data, and the interval holds every m with

    |mean - m| <= t · √(φ m (1 - m) / n),   φ = s² / (mean (1 - mean)),   t Student's quantile, n - 1 degrees of freedom

For values that are all 0 or 1 that is Wilson's interval but for t and n - 1. Without a finite range it is Student's,
mean ± t · s / √n. Samples that share a group: the variance of the mean is the cluster-robust CR2 (Bell and McCaffrey
2002, Survey Methodology 28(2)), with their degrees of freedom. What these intervals cover was simulated:
docs/statistics.md. Sources: Wilson 1927, JASA 22; Papke and Wooldridge 1996, Journal of Applied Econometrics 11(6).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from evalstone.errors import ConfigError, DataError

FEW = 30
FEW_GROUPS = 20
ROUNDING = 1e-20
ALIKE = 1e-12  # values this near to each other, in parts of their size, are equal but for rounding
WIDEST = 1e150


@dataclass(frozen=True)
class Interval:
    """A mean and the interval around it at a level of confidence. low and high are None below two values (groups).

    groups: how many, where samples hang together. method: "Wilson", "Student", "exact", "BCa" and so on, "" for none.
    caution: why to trust it less, or "".
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    level: float = 0.95
    groups: int | None = None
    method: str = ""
    caution: str = ""


@dataclass(frozen=True)
class Spread:
    """The variance of a mean, its degrees of freedom, and how many independent units it rests on."""

    variance: float
    freedom: float
    units: int


def mean_interval(
    values: Sequence[float],
    *,
    low: float = -math.inf,
    high: float = math.inf,
    level: float = 0.95,
    groups: Sequence[Hashable] | None = None,
) -> Interval | None:
    """The mean of values in [low, high] with its interval; None for no values.

    groups: one label a value; values of one group are not independent. One value, or one group, has no interval. When
    all values stand at one end of a finite range, nothing tells their spread; the interval is then exact: with n values
    (groups) at the high end, mean >= low + (high - low) · (a/2)^(1/n), a = 1 - level, for the probability of that is at
    most ((mean - low) / (high - low))^n; and likewise at the low end. Values that are all equal inside the range give
    no width, which says that none varied, not that the mean is certain.
    Raises DataError for a value that is no finite number in [low, high], values too far apart to be squared, or groups
    of another length; ConfigError for a level outside (0, 1) or a range that does not go up.
    """
    check_level(level)
    if not low < high:
        raise ConfigError(f"the range must go up: low is {low}, high is {high}")
    n = len(values)
    if groups is not None and len(groups) != n:
        raise DataError(f"groups must have one entry a value: {n} values, {len(groups)} groups")
    if n == 0:
        return None
    mean = min(max(mean_of(values), low), high)
    least, most = min(values), max(values)
    _check_values(least, most, low, high)
    count = None if groups is None else len(set(groups))
    units = n if count is None else count
    if units == 1:
        return Interval(mean, None, None, n, level, count, caution="one sample" if n == 1 else "all in one group")
    if most - least <= ALIKE * max(abs(least), abs(most)):
        return _equal(Interval(mean, mean, mean, n, level, count), low, high, units)
    estimate, spread = Interval(mean, None, None, n, level, count), plain_spread(values, mean)
    if groups is None:
        return bounded(estimate, spread, low, high)
    clustered = cluster_spread(values, mean, groups)
    if clustered.variance > ROUNDING * spread.variance:
        return bounded(estimate, clustered, low, high)
    return replace(bounded(estimate, spread, low, high), caution="the groups' sums are all alike: groups were left out")


def bounded(estimate: Interval, spread: Spread, low: float, high: float) -> Interval:
    """The estimate with its limits: Wilson's for a finite range, else Student's, cut to [low, high]."""
    quantile = t_quantile(0.5 + estimate.level / 2, spread.freedom)
    bottom, top = limits(estimate.mean, spread.variance, quantile, low, high)
    method = "Wilson" if math.isfinite(high - low) else "Student"
    caution = few(spread.units, estimate.groups is not None)
    return Interval(estimate.mean, bottom, top, estimate.n, estimate.level, estimate.groups, method, caution)


def limits(mean: float, variance: float, quantile: float, low: float, high: float) -> tuple[float, float]:
    """All m with |mean - m| <= quantile · √(variance of the mean, were m the true one); see the module."""
    span = high - low
    share = (mean - low) / span if math.isfinite(span) else 0.0
    if variance <= 0:
        return mean, mean
    if not 0 < share < 1:
        half = quantile * math.sqrt(variance)
        return max(low, mean - half), min(high, mean + half)
    # At a true share m the variance is m (1 - m) / size: a quadratic inequality in m.
    size = share * (1 - share) / (variance / span**2)
    pull = quantile**2 / size
    middle = (share + pull / 2) / (1 + pull)
    half = quantile / (1 + pull) * math.sqrt(share * (1 - share) / size + pull / (4 * size))
    return max(low, low + span * min(middle - half, share)), min(high, low + span * max(middle + half, share))


def exact_reach(units: int, error: float, span: float) -> float:
    """How far the mean can be from the end at which all units stand, at this one-sided error rate."""
    return span * -math.expm1(math.log(error) / units)


def cluster_spread(values: Sequence[float], mean: float, groups: Sequence[Hashable]) -> Spread:
    """CR2 for a mean: Σ e²(g) / (1 - n(g)/n) / n², e(g) the sum of a group's residuals; at least two groups.

    Degrees of freedom by Satterthwaite under independence; groups of equal size have one less than there are groups.
    """
    sums: dict[Hashable, float] = {}
    for value, group in zip(values, groups, strict=True):
        sums[group] = sums.get(group, 0.0) + (value - mean)
    n = len(values)
    sizes = Counter(groups)
    variance = math.fsum(total**2 / (1 - sizes[group] / n) for group, total in sums.items()) / n**2
    weights = [size**2 / (1 - size / n) / n**2 for size in sizes.values()]
    square = math.fsum((size / n) ** 2 for size in sizes.values())
    cross = math.fsum(weights) ** 2 - math.fsum(weight**2 for weight in weights)
    return Spread(variance, max(1.0, 1 / (square + cross)), len(sizes))


def mean_of(values: Sequence[float]) -> float:
    """The mean, never outside of the values by rounding. Raises DataError for a value that is no finite number."""
    try:
        total = math.fsum(values)
    except (OverflowError, ValueError, TypeError):  # inf and -inf among them, a sum beyond all floats, None
        total = math.nan
    if not math.isfinite(total):
        found = next(((i, x) for i, x in enumerate(values) if not _is_finite(x)), None)
        told = "their sum is beyond floating point" if found is None else f"value {found[0]} is {found[1]!r:.60}"
        raise DataError(f"finite numbers are wanted: {told}")
    return min(max(total / len(values), min(values)), max(values))


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except TypeError:
        return False


def _check_values(least: float, most: float, low: float, high: float) -> None:
    slack = ALIKE * max(abs(low), abs(high)) if math.isfinite(high - low) else 0.0
    if least < low - slack or most > high + slack:
        raise DataError(f"values from {least} to {most} are not all in [{low:g}, {high:g}]")
    if most - least > WIDEST:
        raise DataError(f"values from {least} to {most} are too far apart for floating point")


def check_level(level: float) -> None:
    """Raise ConfigError for a level of confidence outside (0, 1)."""
    if not 0 < level < 1:
        raise ConfigError(f"level must be between 0 and 1, as 0.95 is, not {level}")


def few(units: int, grouped: bool) -> str:
    """What to say of a small number of independent samples or groups; "" from 30 (20 groups) on."""
    if grouped and units < FEW_GROUPS:
        return f"only {units} groups: the interval is a guide"
    if not grouped and units < FEW:
        return f"only {units} samples: the interval is a guide, what is rare was not seen"
    return ""


def t_quantile(probability: float, freedom: float) -> float:
    """The quantile of Student's t distribution, also for degrees of freedom that are no whole number."""
    whole = round(freedom)
    if abs(freedom - whole) <= 1e-9 * freedom:
        return student_t_quantile(probability, whole)
    from scipy.special import stdtrit  # noqa: PLC0415 - 0.1 s, which only clustered samples need

    return float(stdtrit(freedom, probability))


def _equal(estimate: Interval, low: float, high: float, units: int) -> Interval:
    mean, n, level = estimate.mean, estimate.n, estimate.level
    span = high - low
    end = low if mean - low <= ALIKE * span else high if high - mean <= ALIKE * span else mean
    if not math.isfinite(span) or end not in (low, high):
        caution = f"all {n} values are equal: they do not tell how much others vary"
        return Interval(mean, mean, mean, n, level, estimate.groups, "", caution)
    reach = exact_reach(units, (1 - level) / 2, span)
    bottom, top = max(low, end - reach), min(high, end + reach)
    mean = min(max(mean, bottom), top)
    return Interval(mean, bottom, top, n, level, estimate.groups, "exact", few(units, estimate.groups is not None))


def plain_spread(values: Sequence[float], mean: float) -> Spread:
    """s² / n for independent values."""
    n = len(values)
    return Spread(math.fsum((x - mean) ** 2 for x in values) / (n - 1) / n, n - 1, n)


def student_t_quantile(probability: float, freedom: int) -> float:
    """The quantile of Student's t distribution, exact for 1 and 2 degrees of freedom, else by Hill (1970).

    Relative error under 1e-5 for probabilities of 0.9 to 0.9995.
    Source: G. W. Hill, Algorithm 396, Communications of the ACM 13(10).
    """
    if not 0 < probability < 1 or freedom < 1:
        raise ValueError(f"probability must be in (0, 1) and freedom at least 1, not {probability} and {freedom}")
    if probability < 0.5:
        return -student_t_quantile(1 - probability, freedom)
    tail = 2 * (1 - probability)
    if freedom == 1:
        return 1 / math.tan(tail * math.pi / 2)
    if freedom == 2:
        return math.sqrt(2 / (tail * (2 - tail)) - 2)
    a = 1 / (freedom - 0.5)
    b = 48 / (a * a)
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * freedom
    y = (d * tail) ** (2 / freedom)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(tail / 2)
        y = x * x
        if freedom < 5:
            c += 0.3 * (freedom - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        series = 1 / (((freedom + 6) / (freedom * y) - 0.089 * d - 0.822) * (freedom + 2) * 3) + 0.5 / (freedom + 4)
        y = (series * y - 1) * (freedom + 1) / (freedom + 2) + 1 / y
    return math.sqrt(freedom * y)
