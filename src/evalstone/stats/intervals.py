"""Confidence intervals for means and proportions, in pure Python.

Scores are bounded and often skewed toward one end of their range. A t interval then under-covers, and can extend beyond
the range. With a finite range, `mean_interval` uses `bounded_mean`, which keeps its coverage for small and skewed
samples and has a positive width even if all values are equal. Without a finite range, it is a t interval,
mean ± t · s / √n. With clustered samples, the variance is then the cluster-robust CR2 with its degrees of freedom (Bell
and McCaffrey 2002, Survey Methodology 28(2)). docs/evidence.md has the simulated coverage.

Every run imports this module, so it doesn't import numpy, which takes 0.1 s.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal, SupportsFloat, TypeAlias, cast

from evalstone._core.front_ends import Setting, Wording
from evalstone.errors import ConfigError, DataError, Problem, invalid
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.packed_scores import exact_total, smallest_and_largest
from evalstone.stats.special import t_quantile
from evalstone.stats.weighted_mean import WeightedMean, effective_number, weighted_average
from evalstone.types import Note, note

GAFFKE = "Gaffke"
MOVER = "Zou-Donner"
"""The method of intervals for sums and differences of estimates: squared distances to the limits are added (MOVER)."""
SMALL_SAMPLE = 30
FEW_CLUSTERS = 20
MOST_HEAVY = 4
MIN_SAMPLES = 5
"""Slices with fewer samples (clusters) than this aren't tested."""
ROUNDING = 1e-20
RELATIVE_ROUNDING = 1e-12
MAX_SPAN = 1e150


Ends: TypeAlias = tuple[float, float]
"""The lowest and the highest possible value of a score."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A point estimate and its confidence interval, in the unit of the values."""

    estimate: float
    """The estimate: a mean, a proportion or another statistic."""
    low: float | None
    """The lower limit; None if there is no interval."""
    high: float | None
    """The upper limit; None if `low` is None."""
    n: int
    """The number of values."""
    confidence: float = 0.95
    """The confidence level, in (0, 1)."""
    groups: int | None = None
    """The number of clusters; None for independent values."""
    method: str = ""
    """How the limits were computed, such as "Gaffke" or "Student"; "" without limits."""
    notes: tuple[Note, ...] = ()
    """Why to trust the interval less, or why there is none."""
    effective: float | None = None
    """Kish's effective sample size of weighted values, (Σ w)² / Σ w²; None for equal weights."""


@dataclass(frozen=True)
class Spread:
    """The variance of a mean and its degrees of freedom."""

    variance: float
    freedom: float


def mean_interval(
    values: Sequence[float],
    *,
    low: float = -math.inf,
    high: float = math.inf,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
) -> Interval | None:
    """The mean of values with its two-sided confidence interval (see the module docstring).

    Args:
        values: Numbers in [low, high].
        low: The lower end of the range; -inf for none.
        high: The upper end of the range; inf for none.
        confidence: The confidence level, in (0, 1).
        groups: One cluster label per value; values of one cluster may depend on each other. None: all independent.
        weights: One sampling weight above 0 per value, for an estimate of the population mean (`weighted_mean`). Needs
            a finite range. None: all equal.

    Returns:
        The interval, within [low, high]; None for no values. Without a finite range, there are no limits for a single
        value or cluster, or if all values are equal.

    Raises:
        DataError: A value is not a finite number in [low, high], a weight is not above 0, values are so far apart that
            their squares overflow, or `groups` or `weights` differ in length from `values`.
        ConfigError: confidence is outside (0, 1), low is not below high, or weights come without a finite range.
    """
    check_confidence(confidence)
    if not low < high:
        raise ConfigError(f"low must be below high: low is {low}, high is {high}")
    bounded = math.isfinite(high - low)
    n = len(values)
    for name, column in (("groups", groups), ("weights", weights)):
        if column is not None and len(column) != n:
            raise DataError(f"{name} must have one entry per value: {n} values, {len(column)} {name}")
    if weights is not None and not bounded:
        raise ConfigError("weights need a finite range: set low and high")
    if n == 0:
        return None
    check_weights(weights)
    mean = min(max(mean_of(values), low), high)
    smallest, largest = smallest_and_largest(values)
    slack = RELATIVE_ROUNDING * max(abs(low), abs(high)) if bounded else 0.0
    if smallest < low - slack or largest > high + slack:
        raise DataError(f"values from {smallest} to {largest} are not all in [{low:g}, {high:g}]")
    clusters = None if groups is None else len(set(groups))
    if bounded:
        evidence = WeightedMean.of_units(values, low, high, groups=groups, weights=weights)
        lower, upper = evidence.interval(confidence)
        notes = single(n) if evidence.units == 1 else heavy(evidence, groups is not None)
        effective = effective_number(weights)
        return Interval(
            estimate=evidence.mean,
            low=lower,
            high=upper,
            n=n,
            confidence=confidence,
            groups=clusters,
            method=GAFFKE,
            notes=notes,
            effective=effective,
        )
    if largest - smallest > MAX_SPAN:
        raise DataError(f"values from {smallest} to {largest} are too far apart for floating point")
    return _student(
        values, Interval(estimate=mean, low=None, high=None, n=n, confidence=confidence, groups=clusters), groups
    )


def _student(values: Sequence[float], estimate: Interval, groups: Sequence[Hashable] | None) -> Interval:
    """The estimate with the limits of a t interval, if there are any."""
    units = estimate.n if estimate.groups is None else estimate.groups
    if units == 1:
        return replace(estimate, notes=single(estimate.n))
    if max(values) - min(values) <= RELATIVE_ROUNDING * max(abs(min(values)), abs(max(values))):
        return replace(estimate, notes=(note("all_equal", "caution", n=estimate.n),))
    spread, notes = _plain_spread(values, estimate.estimate), small(units, groups is not None)
    if groups is not None:
        clustered = cluster_spread(values, estimate.estimate, groups)
        if clustered.variance > ROUNDING * spread.variance:
            spread = clustered
        else:
            notes = (note("equal_clusters", "caution", clusters=units),)
    half = t_quantile(0.5 + estimate.confidence / 2, spread.freedom) * math.sqrt(spread.variance)
    return replace(estimate, low=estimate.estimate - half, high=estimate.estimate + half, method="Student", notes=notes)


def _plain_spread(values: Sequence[float], mean: float) -> Spread:
    """The variance of the mean of independent values, s² / n, with n - 1 degrees of freedom."""
    n = len(values)
    return Spread(math.fsum((x - mean) ** 2 for x in values) / (n - 1) / n, n - 1)


def cluster_spread(values: Sequence[float], mean: float, groups: Sequence[Hashable]) -> Spread:
    """The CR2 variance of a mean over at least two clusters, and its degrees of freedom.

        Σ over clusters of e(g)² / (1 - n(g) / n) / n²,   e(g) the sum of the residuals of cluster g

    Degrees of freedom are Satterthwaite's under independence; for clusters of equal size, the number of clusters - 1.
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
    return Spread(variance, max(1.0, 1 / (square + cross)))


def mean_of(values: Sequence[float]) -> float:
    """The mean, clamped to the range of the values. Raises DataError if a value is not a finite number."""
    try:
        total = exact_total(values)
    except (OverflowError, ValueError, TypeError):  # the sum overflows, inf and -inf, None
        total = math.nan
    if math.isfinite(total):
        smallest, largest = smallest_and_largest(values)
        return min(max(total / len(values), smallest), largest)
    for place, value in enumerate(cast("Sequence[object]", values)):
        if not (isinstance(value, SupportsFloat) and math.isfinite(value)):
            raise DataError(_not_finite("values", place, value))
    raise DataError("values must be finite numbers: their sum is beyond floating point")


def _not_finite(name: Literal["values", "weights"], place: int, value: object) -> Problem:
    allowed = "finite numbers" if name == "values" else "finite numbers above 0"
    text = f"{name} must be {allowed}: {name.removesuffix('s')} {place} is {value!r:.60}"
    return invalid(f"{name}[{place}]", allowed, value).worded(text)


def check_number(name: Wording, value: object) -> None:
    """Raise ConfigError unless a setting is a real number; bools are not accepted."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ConfigError(invalid(name, "a number", value))


def check_weights(weights: Sequence[float] | None) -> None:
    """Raise DataError with its position if a weight is not a finite number above 0."""
    for place, weight in enumerate(weights or ()):
        if not (math.isfinite(weight) and weight > 0):
            raise DataError(_not_finite("weights", place, weight))


def check_confidence(confidence: float) -> None:
    """Raise ConfigError for a confidence level outside (0, 1)."""
    check_number(name := Setting("confidence"), confidence)
    if not 0 < confidence < 1:
        raise ConfigError(invalid(name, "between 0 and 1, such as 0.95", confidence))


def ends_of(value: float | None, scale: float) -> Ends:
    """The ends of a score in [0, scale]; None is a missing one, which may have any value."""
    return (0.0, scale) if value is None else (value, value)


def check_reach(name: Wording, value: float | None, scale: float) -> None:
    """Raise ConfigError unless a largest change or a margin is None or in (0, scale]."""
    if value is not None and not 0 < value <= scale:
        raise ConfigError(invalid(name, f"above 0 and at most {scale:g}", value, f"{value:g}"))


def exceeds(change: float, reach: float) -> bool:
    """Whether a change is larger than the largest possible one, beyond rounding error."""
    return abs(change) > reach * (1 + 1e-9)


def mover(*reaches: float, correlation: float = 0.0) -> float:
    """The distance from a sum of estimates to its confidence limit, given those of each estimate (MOVER).

        √(x² + y² + 2 · correlation · x · y)

    Args:
        reaches: The distance from each estimate to its limit, 0 or more: of two estimates, or any number of independent
            ones.
        correlation: The correlation between two estimates; 0 for independent ones.

    Source: Zou and Donner 2008, Statistics in Medicine 27(10).
    """
    return math.sqrt(math.fsum(x * x for x in reaches) + 2 * correlation * (math.prod(reaches) if correlation else 0.0))


def small(units: int, clustered: bool) -> tuple[Note, ...]:
    """The caution for fewer than 30 independent samples or 20 clusters, if there are fewer."""
    if clustered and units < FEW_CLUSTERS:
        return (note("few_clusters", "caution", clusters=units),)
    if not clustered and units < SMALL_SAMPLE:
        return (note("small_sample", "caution", n=units),)
    return ()


def heavy(evidence: BoundedMean, clustered: bool) -> tuple[Note, ...]:
    """The caution that at most 4 units, and at most a fifth of all, carry half of the weight, if they do."""
    if not isinstance(evidence, WeightedMean):
        return ()
    few, units = round(evidence.heaviest_half), round(evidence.units)
    if few > MOST_HEAVY or 5 * few > units:
        return ()
    return (note("heavy_units", "caution", heaviest=few, of=units, noun="cluster" if clustered else "sample"),)


def single(n: int) -> tuple[Note]:
    """The caution for a single value or a single cluster."""
    return (note("single_unit", "caution", noun="sample" if n == 1 else "cluster"),)


def proportion_interval(successes: int, n: int, confidence: float = 0.95) -> Interval | None:
    """A proportion of n independent samples, with its confidence interval by `mean_interval`.

    Args:
        successes: The number of successes.
        n: The number of samples.
        confidence: The confidence level, in (0, 1).

    Returns:
        successes / n, as `Interval.estimate`, with limits in [0, 1]; None if n is 0.

    Raises:
        DataError: successes is not in [0, n].
        ConfigError: confidence is outside (0, 1).
    """
    if not 0 <= successes <= n:
        raise DataError(f"successes must be from 0 to n: {successes} of {n}")
    return mean_interval([1.0] * successes + [0.0] * (n - successes), low=0.0, high=1.0, confidence=confidence)


def missing_bounds(
    values: Sequence[float],
    missing: int,
    low: float = 0.0,
    high: float = 1.0,
    *,
    weights: tuple[Sequence[float], Sequence[float]] | None = None,
) -> tuple[float, float] | None:
    """Worst-case bounds of the mean: all missing values at the low end of the range, and all at the high end.

        (Σ x + k · low) / (n + k),   (Σ x + k · high) / (n + k),   k missing, n scored

    This is not a confidence interval: it is about the samples at hand, and holds whatever the missing values are.
    Source: Manski 1990, "Nonparametric bounds on treatment effects", American Economic Review 80(2).

    Args:
        values: The scored values, in [low, high].
        missing: The number of missing values (skipped and failed samples).
        low: The lower end of the range.
        high: The upper end of the range.
        weights: The weights of the values and those of the missing values, each above 0. None: all equal.

    Returns:
        The bounds (lower, upper); None if there are neither values nor missing ones.

    Raises:
        DataError: missing is negative, low is not below high, a value is outside the range, a weight is not above 0, or
            the numbers of weights differ from those of the values.
    """
    if not missing >= 0:
        raise DataError(invalid("missing", "0 or more", missing))
    if not low < high:
        raise DataError(f"low must be below high: low is {low}, high is {high}")
    if not values:
        return (low, high) if missing else None
    mean, (smallest, largest) = mean_of(values), smallest_and_largest(values)
    if smallest < low or largest > high:
        raise DataError(f"values from {smallest} to {largest} are not all in [{low}, {high}]")
    share = missing / (len(values) + missing)
    if weights is not None:
        all_weights = [*weights[0], *weights[1]]
        check_weights(all_weights)
        if (len(weights[0]), len(weights[1])) != (len(values), missing):
            raise DataError(f"weights must have one entry per value: {len(values)} values and {missing} missing ones")
        mean = weighted_average(weights[0], values)
        share = weighted_average(all_weights, [0.0] * len(values) + [1.0] * missing)
    return (mean + share * (low - mean), mean + share * (high - mean)) if missing else (mean, mean)
