"""Means by slice of the data, and the slices that are worse than the rest, corrected for looking at many."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalstone.stats._arrays import Floats, Positions, codes, column, group_sums, same_length
from evalstone.stats.intervals import MIN_SAMPLES, Interval, Spread, bounded, equal, mean_interval
from evalstone.stats.multiple_testing import Correction, adjust_p_values

CANCELLED = 1e-9
"""The share of a sum below which its difference from a part of it is taken for rounding."""


@dataclass(frozen=True)
class Slice:
    """The samples that share a key: their mean with its interval, and their positions."""

    key: Hashable
    interval: Interval
    indexes: tuple[int, ...]


@dataclass(frozen=True)
class SliceFinding:
    """A slice compared with all other samples, in the unit of the scores."""

    field: str
    key: Hashable
    n: int
    """The number of samples in the slice."""
    interval: Interval
    """The slice's mean."""
    rest: float
    """The mean of all other samples."""
    difference: Interval
    """Slice - rest; its limits follow from those of both means (Zou and Donner 2008)."""
    shrunken: float
    """The slice's mean, shrunken toward the mean of all samples (empirical Bayes over the slices of the field): a
    better estimate of what a repetition would show."""
    p_value: float
    """One-sided, of "the slice is no worse than the rest"."""
    adjusted_p: float
    """The p-value corrected for all slices of all fields."""


def slice_by(
    values: Sequence[float],
    keys: Sequence[Hashable],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
) -> tuple[Slice, ...]:
    """One slice per key, in order of first appearance; a key of None is a slice of its own.

    Args:
        values: Scores in [0, scale].
        keys: One key per value.
        scale: The upper end of the range.
        confidence: Of the intervals, in (0, 1).
        groups: One cluster label per value.

    Raises:
        DataError: Lengths differ, or values are not finite numbers in [0, scale].
        ConfigError: confidence is outside (0, 1).
    """
    same_length(values=values, keys=keys, groups=groups)
    column("values", values, 0.0, scale)
    members: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        members.setdefault(key, []).append(place)
    slices: list[Slice] = []
    for key, places in members.items():
        inside = None if groups is None else [groups[place] for place in places]
        part = [values[place] for place in places]
        interval = mean_interval(part, low=0.0, high=scale, confidence=confidence, groups=inside)
        if interval is not None:
            slices.append(Slice(key, interval, tuple(places)))
    return tuple(slices)


def worst_slices(
    values: Sequence[float],
    fields: Mapping[str, Sequence[Hashable]],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    lower_is_better: bool = False,
    groups: Sequence[Hashable] | None = None,
    correction: Correction = "holm",
) -> tuple[SliceFinding, ...]:
    """Every slice with at least 5 samples (clusters) inside and outside, the smallest p-value first.

    The test is of the difference of means: by permutation (from the moments of its distribution), or for clustered
    samples Student's t over clusters.

    Args:
        values: Scores in [0, scale].
        fields: By field, one key per value.
        scale: The upper end of the range.
        confidence: Of the intervals, in (0, 1).
        lower_is_better: Whether a higher mean is worse.
        groups: One cluster label per value.
        correction: How p-values are adjusted over all slices of all fields.

    Raises:
        DataError: Lengths differ, or values are not finite numbers in [0, scale].
        ConfigError: confidence is outside (0, 1), or the correction is unknown.
    """
    same_length(values=values, groups=groups, **{f"field {name}": keys for name, keys in fields.items()})
    x = column("values", values, 0.0, scale)
    every = _All(x, scale, confidence, None if groups is None else codes(groups), -1.0 if lower_is_better else 1.0)
    findings: list[SliceFinding] = []
    for field, keys in fields.items():
        of_field: list[SliceFinding] = []
        for part in slice_by(values, keys, scale=scale, confidence=confidence, groups=groups):
            inside = _Part(every, np.array(part.indexes))
            if min(inside.units, inside.other_units) < MIN_SAMPLES:
                continue
            own, others, p = part.interval, inside.interval_of_others(), inside.p_worse()
            gap = _gap(own, others)
            of_field.append(SliceFinding(field, part.key, own.n, own, others.mean, gap, own.mean, p, p))
        findings.extend(_shrunken(of_field, x))
    adjusted = adjust_p_values([finding.p_value for finding in findings], correction)
    with_adjusted = (replace(f, adjusted_p=p) for f, p in zip(findings, adjusted, strict=True))
    return tuple(sorted(with_adjusted, key=lambda f: (f.p_value, -f.n)))


class _All:
    """All samples, summed once, so that the work on a slice is in proportion to the slice.

    sign: -1 where lower is better.
    """

    def __init__(self, x: Floats, scale: float, confidence: float, groups: Positions | None, sign: float) -> None:
        self.x, self.scale, self.confidence, self.groups, self.sign = x, scale, confidence, groups, sign
        self.grand = min(max(float(x.mean()), float(x.min())), float(x.max())) if x.size else 0.0
        self.d: Floats = x - self.grand
        self.squares, self.cubes = float(np.sum(self.d**2)), float(np.sum(self.d**3))
        if groups is not None:
            self.sizes, self.sums = np.bincount(groups), group_sums(self.d, groups)
            # Clusters of one size count alike in CR2, so that sums by size are enough for those outside of a slice.
            self.size_of, self.class_of = np.unique(self.sizes, return_inverse=True)
            weights = (None, self.sums, self.sums**2)
            self.by_size = tuple(np.bincount(self.class_of, one).astype(np.float64) for one in weights)
            self.square_of_sums = float(np.sum(self.sums**2))


class _Part:
    """One slice of all samples, given by their places, and the other samples."""

    def __init__(self, every: _All, places: Positions) -> None:
        self._all, self._places, self._d = every, places, every.d[places]
        self._n, self._others = places.size, every.x.size - places.size
        self.units, self.other_units = self._n, self._others
        if every.groups is not None:
            self._clusters, position = np.unique(every.groups[places], return_inverse=True)
            self._sums, sizes = group_sums(self._d, position), np.bincount(position)
            self._left = every.sizes[self._clusters] - sizes
            self.units = self._clusters.size
            self.other_units = every.sizes.size - int(np.sum(self._left == 0))

    def interval_of_others(self) -> Interval:
        """`mean_interval` of all other samples."""
        every, n = self._all, self._others
        shift = -float(self._d.sum()) / n
        clusters = None if every.groups is None else self.other_units
        mean = Interval(every.grand + shift, None, None, n, every.confidence, clusters)
        if every.squares == 0:
            return equal(mean, 0.0, every.scale)
        squares = every.squares - float(np.sum(self._d**2)) - n * shift**2
        spread = Spread(squares / (n - 1) / n, n - 1, n) if every.groups is None else self._cluster_spread(shift)
        if min(squares, spread.variance * n**2) > CANCELLED * every.squares:
            return bounded(mean, spread, 0.0, every.scale)
        # What is left after the subtraction may be rounding only.
        outside = np.delete(np.arange(every.x.size), self._places)
        labels: list[int] | None = None if every.groups is None else every.groups[outside].tolist()
        others: list[float] = every.x[outside].tolist()
        return mean_interval(others, low=0.0, high=every.scale, confidence=every.confidence, groups=labels) or mean

    def _cluster_spread(self, shift: float) -> Spread:
        """`cluster_spread` of all other samples: sums over all clusters, corrected for those that the slice touches."""
        every, n, touched = self._all, self._others, self._clusters
        size, of = every.size_of, every.class_of
        counts, sums, squares = every.by_size
        inside = every.sums[touched]
        counts = counts - np.bincount(of[touched], minlength=size.size)
        sums = sums - np.bincount(of[touched], inside, size.size)
        squares = squares - np.bincount(of[touched], inside**2, size.size)
        left = self._left[self._left > 0]
        rest = (inside - self._sums)[self._left > 0] - left * shift
        # Only sizes that some untouched cluster has: a larger one may be as large as all others together.
        size, counts, sums, squares = (column[counts > 0] for column in (size, counts, sums, squares))
        untouched = squares - 2 * size * shift * sums + (size * shift) ** 2 * counts
        variance = float(np.sum(untouched / (1 - size / n)) + np.sum(rest**2 / (1 - left / n))) / n**2
        every_size, times = np.concatenate([size, left]), np.concatenate([counts, np.ones(left.size)])
        shares = every_size / n
        weights = shares**2 / (1 - shares)
        square, cross = np.sum(times * shares**2), np.sum(times * weights) ** 2 - np.sum(times * weights**2)
        return Spread(variance, max(1.0, float(1 / (square + cross))), self.other_units)

    def p_worse(self) -> float:
        """The one-sided p-value of "the slice is no worse than the rest"."""
        every, size, rest = self._all, self._n, self._others
        n = size + rest
        gap = every.sign * float(self._d.sum()) * (1 / size + 1 / rest)
        if every.groups is None:
            return _permutation_p(n, size, gap, (every.squares / n, every.sign * every.cubes / n))
        from scipy.special import stdtr  # noqa: PLC0415 - 0.15 s of import

        outside = every.sums[self._clusters] - self._sums
        terms = self._sums / size - outside / rest
        untouched = max(0.0, every.square_of_sums - float(np.sum(every.sums[self._clusters] ** 2))) / rest**2
        clusters = every.sizes.size
        variance = (float(np.sum(terms**2)) + untouched) * clusters / (clusters - 1)
        return float(stdtr(clusters - 2, gap / math.sqrt(variance))) if variance > 0 else 1.0


def _permutation_p(n: int, size: int, gap: float, moments: tuple[float, float]) -> float:
    """P(mean of `size` of n values - mean of the others <= gap), by Pearson's type III distribution.

    moments: the second and third about the mean. The type III distribution has the mean, variance and skewness of the
    permutation distribution. Source: Mielke and Berry 2007, Permutation Methods, chapter 2.
    """
    from scipy.special import gammainc, gammaincc, ndtr  # noqa: PLC0415 - 0.15 s of import

    second, third = moments
    if second == 0:
        return 1.0
    z = gap / math.sqrt(second * n * n / ((n - 1) * size * (n - size)))
    rest = n - size
    skew = third / (second * math.sqrt(second)) * (rest - size) / (n - 2) * math.sqrt((n - 1) / (size * rest))
    if abs(skew) < 1e-4:
        return float(ndtr(z))
    shape = 4 / skew**2
    place = max(0.0, shape + (z if skew > 0 else -z) * math.sqrt(shape))
    return float(gammainc(shape, place) if skew > 0 else gammaincc(shape, place))


def _gap(own: Interval, rest: Interval) -> Interval:
    """The difference of two independent means, its limits recovered from theirs."""
    gap = Interval(own.mean - rest.mean, None, None, own.n, own.confidence, own.groups)
    if own.low is None or own.high is None or rest.low is None or rest.high is None:
        return gap
    low = gap.mean - math.hypot(own.mean - own.low, rest.high - rest.mean)
    high = gap.mean + math.hypot(own.high - own.mean, rest.mean - rest.low)
    return replace(gap, low=low, high=high, method="Zou-Donner", caution=own.caution)


def _shrunken(findings: Sequence[SliceFinding], x: Floats) -> list[SliceFinding]:
    """Means shrunken to the mean of all: weight between / (between + own), between by DerSimonian and Laird."""
    if not findings:
        return []
    spread, grand = float(x.var(ddof=1)), float(x.mean())
    if spread == 0:
        return [replace(f, shrunken=grand) for f in findings]
    own = np.array([spread / f.n for f in findings])
    means = np.array([f.interval.mean for f in findings])
    weights = 1 / own
    center = float(np.sum(weights * means) / np.sum(weights))
    excess = float(np.sum(weights * (means - center) ** 2)) - (len(findings) - 1)
    divisor = float(np.sum(weights) - np.sum(weights**2) / np.sum(weights))
    between = max(0.0, excess / divisor) if divisor > 0 else 0.0
    shrunken = grand + between / (between + own) * (means - grand)
    return [replace(f, shrunken=float(mean)) for f, mean in zip(findings, shrunken, strict=True)]
