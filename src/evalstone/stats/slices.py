"""Means by slice of the data, and the slices that are worse than the rest, corrected for multiple testing.

A slice is tested by permutation: how often would a slice of this size, chosen at random, have a mean this low? With
clustered samples, deviations from the cluster mean are permuted within clusters, and cluster means between clusters.
The confidence interval of the difference from the other samples doesn't assume equal distributions.

Weighted samples can't be permuted, because permuting their scores separates scores from weights that may be related to
them. Their p-value is the error rate at which 0 is a limit of the difference.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalstone.stats._arrays import Floats, Mask, Positions, codes, column, group_sums, same_length
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.intervals import (
    MIN_SAMPLES,
    MOVER,
    Interval,
    check_confidence,
    check_weights,
    mean_interval,
    mover,
)
from evalstone.stats.multiple_testing import Correction, adjust_p_values
from evalstone.stats.tails import gamma_tails, t_cdf
from evalstone.stats.unpaired import difference_p_value
from evalstone.stats.weighted_mean import WeightedMean, unequal, weighted_average

FEW = 20
"""If the others are this many times as many as the slice, they add almost nothing to the error of the difference."""
BINS = 64
"""The number of bins for the values of the others, each represented by its mean."""


@dataclass(frozen=True)
class Slice:
    """The samples with a key: their mean with its interval, and their positions."""

    key: Hashable
    interval: Interval
    indexes: tuple[int, ...]
    confidence: float = 0.95
    """The confidence level of this interval alone. It is higher than `interval.confidence` if several intervals hold
    together."""


@dataclass(frozen=True, kw_only=True)
class SliceFinding:
    """A slice compared with all other samples, in the unit of the scores."""

    field: str
    """The field of the samples."""
    key: Hashable
    """The value that the slice's samples share."""
    n: int
    """The number of samples in the slice."""
    interval: Interval
    """The slice's mean."""
    rest: float
    """The mean of all other samples."""
    difference: Interval
    """slice - rest; its limits are recovered from those of both means (Zou and Donner 2008). It is conservative if
    clusters have samples inside and outside the slice."""
    shrunken: float
    """The slice's mean, shrunken toward the mean of all samples (empirical Bayes over the slices of the field): a
    better prediction of the slice's mean in a repetition."""
    p_value: float
    """The one-sided p-value of "the slice's scores are exchangeable with the others"; for weighted samples, of "the
    slice's mean isn't worse"."""
    adjusted_p_value: float
    """The p-value, corrected for all slices tested together."""


def slice_by(
    values: Sequence[float],
    keys: Sequence[Hashable],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    together: int = 1,
) -> tuple[Slice, ...]:
    """One slice per key, in order of first appearance. None is a key like any other.

    Args:
        values: Scores in [0, scale].
        keys: One key per value.
        scale: The upper end of the range.
        confidence: The confidence level of the intervals, in (0, 1).
        groups: One cluster label per value.
        weights: One sampling weight above 0 per value, for weighted means. None: all equal.
        together: The number of slices whose intervals hold together with a probability of at least `confidence`
            (Bonferroni): the interval of a slice that is picked as the worst of so many holds too.

    Raises:
        DataError: Lengths differ, values are not finite numbers in [0, scale], or a weight is not above 0.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    own = 1 - (1 - confidence) / together
    same_length(values=values, keys=keys, groups=groups, weights=weights)
    column("values", values, 0.0, scale)
    members: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        members.setdefault(key, []).append(place)
    known: dict[tuple[float, ...], Interval | None] = {}
    slices: list[Slice] = []
    for key, places in members.items():
        part = [values[place] for place in places]
        if groups is not None or weights is not None:
            of_group = groups and [groups[place] for place in places]
            of_weight = weights and [weights[place] for place in places]
            interval = mean_interval(part, low=0.0, high=scale, confidence=own, groups=of_group, weights=of_weight)
        else:
            cache_key = tuple(sorted(part))
            if cache_key not in known:
                known[cache_key] = mean_interval(part, low=0.0, high=scale, confidence=own)
            interval = known[cache_key]
        if interval is not None:
            slices.append(Slice(key, replace(interval, confidence=confidence), tuple(places), own))
    return tuple(slices)


def worst_slices(
    values: Sequence[float],
    slices: Mapping[str, Sequence[Slice]],
    *,
    scale: float = 1.0,
    lower_is_better: bool = False,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    correction: Correction = "holm",
) -> tuple[SliceFinding, ...]:
    """All slices with at least 5 samples (clusters) inside and outside, the smallest p-value first.

    The p-value is that of a permutation test, computed from the first three moments of the sum of the slice's scores
    under permutation. If the slice's deviations vary more between clusters than permutations within clusters explain,
    their empirical variance is used.

    Args:
        values: Scores in [0, scale].
        slices: The slices of the same values (`slice_by`), by field.
        scale: The upper end of the range.
        lower_is_better: Whether a higher mean is worse.
        groups: One cluster label per value.
        weights: One sampling weight above 0 per value, as for `slice_by`.
        correction: The correction of p-values for multiple testing, over all slices of all fields.

    Raises:
        DataError: Lengths differ, values are not finite numbers in [0, scale], or a weight is not above 0.
        ConfigError: correction is unknown.
    """
    same_length(values=values, groups=groups, weights=weights)
    check_weights(weights)
    x = column("values", values, 0.0, scale)
    clusters = None if groups is None else codes(groups)
    weights = unequal(weights)
    if weights is None:
        population = _Unweighted(x, scale, clusters)
    else:
        population = _Weighted(x, scale, clusters, np.asarray(weights, dtype=np.float64) / max(weights))
    findings: list[SliceFinding] = []
    for field, parts in slices.items():
        of_field: list[SliceFinding] = []
        variances: list[float] = []
        for part in parts:
            places, own = np.array(part.indexes), part.interval
            inside, outside = population.units(places)
            if min(inside, outside) < MIN_SAMPLES:
                continue
            others = population.others(places, replace(own, confidence=part.confidence))
            p = population.p_value(places, 1 if lower_is_better else -1)
            difference = _difference(own, others)
            of_field.append(
                SliceFinding(
                    field=field,
                    key=part.key,
                    n=own.n,
                    interval=own,
                    rest=others.estimate,
                    difference=difference,
                    shrunken=own.estimate,
                    p_value=p,
                    adjusted_p_value=p,
                )
            )
            variances.append(population.mean_variance(places))
        findings.extend(_shrunken(of_field, variances, population.grand))
    adjusted = adjust_p_values([finding.p_value for finding in findings], correction)
    with_adjusted = (replace(f, adjusted_p_value=p) for f, p in zip(findings, adjusted, strict=True))
    return tuple(sorted(with_adjusted, key=lambda f: (f.p_value, -f.n)))


class _Unweighted:
    """All samples, with precomputed sums, so that the work per slice is proportional to its size."""

    def __init__(self, x: Floats, scale: float, groups: Positions | None) -> None:
        self.x, self.scale = x, scale
        self.weights: Floats = np.ones(x.size)
        # Independent samples are treated as a single cluster: all of them are permuted.
        self.clustered = groups is not None
        self.groups: Positions = np.zeros(x.size, dtype=np.intp) if groups is None else groups
        self.grand = min(max(float(x.mean()), float(x.min())), float(x.max())) if x.size else 0.0
        self.d = self._rounded(x - self.grand)
        self.sizes = np.bincount(self.groups).astype(np.float64)
        sums = group_sums(self.d, self.groups) if self.clustered else np.zeros(self.sizes.size)
        self.sums = self._rounded(sums)
        self.within = self._rounded(self.d - (self.sums / self.sizes)[self.groups])
        self.squares, self.cubes = (group_sums(self.within**k, self.groups) / self.sizes for k in (2, 3))
        self.between = tuple(float(np.sum(self.sums**k)) for k in (2, 3))
        self.known: dict[float, tuple[float, float]] = {}

    def _rounded(self, x: Floats) -> Floats:
        """The differences, with those that are rounding error only set to 0."""
        return np.where(np.abs(x) <= 1e-12 * self.scale, 0.0, x)

    @functools.cached_property
    def components(self) -> tuple[float, float]:
        """The variances between and within clusters, by analysis of variance. Independent samples are clusters of 1.

        The analysis of variance ignores sampling weights; the variance of independent samples doesn't.
        """
        n, clusters = self.x.size, self.sizes.size
        if not self.clustered or clusters == n:
            return self.variance(), 0.0
        within = float(np.sum(self.within**2)) / (n - clusters)
        between = float(np.sum(self.sums**2 / self.sizes)) / (clusters - 1)
        size = (n - float(np.sum(self.sizes**2)) / n) / (clusters - 1)
        return max(0.0, (between - within) / size), within

    def variance(self) -> float:
        """The variance of the values."""
        return float(self.x.var(ddof=1))

    def mean_variance(self, places: Positions) -> float:
        """The variance of a slice's mean, from the variance components of all samples."""
        between, within = self.components
        weights = self.weights[places]
        of_clusters = np.bincount(self.groups[places], weights) if self.clustered else weights
        total = float(np.sum(weights)) ** 2
        return (between * float(np.sum(of_clusters**2)) + within * float(np.sum(weights**2))) / total

    def units(self, places: Positions) -> tuple[int, int]:
        """The number of independent samples or clusters in a slice, and outside it."""
        if not self.clustered:
            return places.size, self.x.size - places.size
        touched, counts = np.unique(self.groups[places], return_counts=True)
        return touched.size, self.sizes.size - int(np.sum(self.sizes[touched] == counts))

    def others(self, places: Positions, own: Interval) -> Interval:
        """The mean of the samples outside a slice, with limits if the slice has limits.

        If the others are many times as many as the slice, their limits are those of all samples, with the distances
        scaled by N / n (N samples in all, n others): the standard error of the others' mean is at most N / n times that
        of the overall mean.
        """
        n, confidence = self.x.size - places.size, own.confidence
        mean = min(max(self.grand - float(self.d[places].sum()) / n, 0.0), self.scale)
        if own.low is None:
            return Interval(estimate=mean, low=None, high=None, n=n, confidence=confidence)
        inside, outside = self.units(places)
        if outside < FEW * inside:
            left: Mask = np.ones(self.x.size, dtype=np.bool_)
            left[places] = False
            groups = np.unique(self.groups[left], return_inverse=True)[1] if self.clustered else None
            low, high = _evidence(self.x[left], self.scale, groups).interval(confidence)
            return Interval(estimate=mean, low=min(low, mean), high=max(high, mean), n=n, confidence=confidence)
        if confidence not in self.known:
            low, high = _evidence(self.x, self.scale, self.groups if self.clustered else None).interval(confidence)
            self.known[confidence] = self.grand - low, high - self.grand
        below, above = (self.x.size / n * reach for reach in self.known[confidence])
        return Interval(
            estimate=mean, low=max(0.0, mean - below), high=min(self.scale, mean + above), n=n, confidence=confidence
        )

    def p_value(self, places: Positions, side: int) -> float:
        """The one-sided p-value of "the slice is exchangeable with the others". side: 1 if high scores are worse."""
        touched, position = np.unique(self.groups[places], return_inverse=True)
        n, k = self.sizes[touched], np.bincount(position).astype(np.float64)
        less_1, less_2 = np.maximum(n - 1, 1), np.maximum(n - 2, 1)
        second = k * (n - k) / less_1 * self.squares[touched]
        third = float(np.sum(k * (n - k) * (n - 2 * k) / (less_1 * less_2) * self.cubes[touched]))
        variance, freedom, clusters = float(np.sum(second)), math.inf, self.sizes.size
        if self.clustered:
            parts = int(np.sum(second > 0))
            robust = float(np.sum(group_sums(self.within[places], position) ** 2))
            if parts > 1 and robust > variance:
                variance, freedom = robust, parts - 1
            # A share of each cluster is in the slice; these shares are permuted among the clusters.
            share = k / n
            mean, untouched = float(np.sum(share)) / clusters, clusters - touched.size
            square, cube = (float(np.sum((share - mean) ** power)) + untouched * (-mean) ** power for power in (2, 3))
            variance += self.between[0] * square / (clusters - 1)
            third += self.between[1] * cube * clusters / ((clusters - 1) * (clusters - 2))
        return _tail(-side * float(self.d[places].sum()), variance, -side * third, freedom)


class _Weighted(_Unweighted):
    """The same for samples with unequal weights."""

    def __init__(self, x: Floats, scale: float, groups: Positions | None, weights: Floats) -> None:
        super().__init__(x, scale, groups)
        self.weights = weights
        self.grand = weighted_average(weights.tolist(), x.tolist())

    def variance(self) -> float:
        return weighted_average(self.weights.tolist(), ((self.x - self.grand) ** 2).tolist())

    def evidence(self, chosen: Mask) -> BoundedMean:
        """Inference about the weighted mean of these samples."""
        groups = self.groups[chosen].tolist() if self.clustered else None
        values, weights = self.x[chosen].tolist(), self.weights[chosen].tolist()
        return WeightedMean.of_units(values, 0.0, self.scale, groups=groups, weights=weights)

    def both(self, places: Positions) -> tuple[BoundedMean, BoundedMean]:
        """Inference about the weighted means of a slice and of the others."""
        inside: Mask = np.zeros(self.x.size, dtype=np.bool_)
        inside[places] = True
        return self.evidence(inside), self.evidence(~inside)

    def others(self, places: Positions, own: Interval) -> Interval:
        rest = self.both(places)[1]
        low, high = rest.interval(own.confidence)
        return Interval(estimate=rest.mean, low=low, high=high, n=self.x.size - places.size, confidence=own.confidence)

    def p_value(self, places: Positions, side: int) -> float:
        """The one-sided error rate at which 0 is a limit of the difference; 1 if the slice's mean isn't worse."""
        own, rest = self.both(places)
        return difference_p_value(own, rest) / 2 if side * (own.mean - rest.mean) > 0 else 1.0


def _tail(total: float, variance: float, third: float, freedom: float) -> float:
    """P(sum <= total), by the Pearson type III distribution with mean 0 and these second and third moments.

    The result is at least the normal or Student's t probability, because the type III distribution has bounded support
    on the side of its short tail. Source: Mielke and Berry 2007, Permutation Methods, chapter 2.
    """
    if variance <= 0:
        return 1.0
    z = total / math.sqrt(variance)
    skew = third / (variance * math.sqrt(variance))
    normal = t_cdf(z, freedom)
    if abs(skew) < 1e-4:
        return normal
    shape = 4 / skew**2
    place = max(0.0, shape + (z if skew > 0 else -z) * math.sqrt(shape))
    return max(normal, gamma_tails(shape, place)[0 if skew > 0 else 1])


def _evidence(x: Floats, scale: float, groups: Positions | None) -> BoundedMean:
    """Inference about the mean of values, binned."""
    if groups is None:
        return BoundedMean.of(_coarse(x, scale), 0.0, scale)
    sizes = np.bincount(groups)
    return WeightedMean.of_units(_coarse(group_sums(x, groups) / sizes, scale), 0.0, scale, weights=sizes.tolist())


def _coarse(x: Floats, scale: float) -> list[float]:
    """Values, replaced by the mean of their bin if there are many; values at an end of the range are kept."""
    inside = np.clip(x, 0.0, scale)
    if np.unique(inside).size > BINS:
        smallest, largest = float(inside.min()), float(inside.max())
        bins = np.ceil((inside - smallest) / (largest - smallest) * BINS).astype(np.intp)
        bins = np.where(inside <= 0, 0, np.where(inside >= scale, BINS + 2, bins + 1))
        sums, counts = np.bincount(bins, inside), np.bincount(bins)
        inside = np.clip(sums / np.maximum(counts, 1), 0.0, scale)[bins]
    values: list[float] = inside.tolist()
    return values


def _difference(own: Interval, rest: Interval) -> Interval:
    """The difference of two independent means, with limits recovered from theirs (MOVER)."""
    difference = Interval(
        estimate=own.estimate - rest.estimate,
        low=None,
        high=None,
        n=own.n,
        confidence=own.confidence,
        groups=own.groups,
    )
    if own.low is None or own.high is None or rest.low is None or rest.high is None:
        return difference
    low = difference.estimate - mover(own.estimate - own.low, rest.high - rest.estimate)
    high = difference.estimate + mover(own.high - own.estimate, rest.estimate - rest.low)
    return replace(difference, low=low, high=high, method=MOVER, notes=own.notes)


def _shrunken(findings: Sequence[SliceFinding], variances: Sequence[float], grand: float) -> list[SliceFinding]:
    """Findings with means shrunken toward the grand mean, by the factor between / (between + own).

    between: the variance between slices, by DerSimonian and Laird. own: the variance of a slice's mean.
    """
    own: Floats = np.array(variances, dtype=np.float64)
    if not findings or not np.all(own > 0):  # without variance, all means are equal
        return [replace(f, shrunken=grand) for f in findings]
    means = np.array([f.interval.estimate for f in findings])
    weights = 1 / own
    center = float(np.sum(weights * means) / np.sum(weights))
    excess = float(np.sum(weights * (means - center) ** 2)) - (len(findings) - 1)
    divisor = float(np.sum(weights) - np.sum(weights**2) / np.sum(weights))
    between = max(0.0, excess / divisor) if divisor > 0 else 0.0
    shrunken = grand + between / (between + own) * (means - grand)
    return [replace(f, shrunken=float(mean)) for f, mean in zip(findings, shrunken, strict=True)]
