"""Means by slice of the data, and the slices that are worse than the rest, corrected for looking at many."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalstone.stats._arrays import Floats, Mask, Positions, codes, column, group_sums, same_length
from evalstone.stats.intervals import ROUNDING, Interval, Spread, bounded, mean_interval
from evalstone.stats.multiple_testing import Correction, adjust_p_values

MIN_SAMPLES = 5


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
    rest = _Rest(x, scale, confidence, None if groups is None else codes(groups), -1.0 if lower_is_better else 1.0)
    findings: list[SliceFinding] = []
    for field, keys in fields.items():
        of_field: list[SliceFinding] = []
        for part in slice_by(values, keys, scale=scale, confidence=confidence, groups=groups):
            inside = np.zeros(x.size, dtype=np.bool_)
            inside[list(part.indexes)] = True
            if min(rest.units(inside), rest.units(~inside)) < MIN_SAMPLES:
                continue
            own, others, p = part.interval, rest.interval(inside), rest.p_worse(inside)
            gap = _gap(own, others)
            of_field.append(SliceFinding(field, part.key, own.n, own, others.mean, gap, own.mean, p, p))
        findings.extend(_shrunken(of_field, x))
    adjusted = adjust_p_values([finding.p_value for finding in findings], correction)
    with_adjusted = (replace(f, adjusted_p=p) for f, p in zip(findings, adjusted, strict=True))
    return tuple(sorted(with_adjusted, key=lambda f: (f.p_value, -f.n)))


class _Rest:
    """All samples, summed once, so that comparing many small slices with the rest stays cheap.

    sign: -1 where lower is better.
    """

    def __init__(self, x: Floats, scale: float, confidence: float, groups: Positions | None, sign: float) -> None:
        self._x, self._scale, self._confidence, self._groups, self._sign = x, scale, confidence, groups, sign
        self._grand = min(max(float(x.mean()), float(x.min())), float(x.max())) if x.size else 0.0
        self._d: Floats = x - self._grand
        self._squares, self._cubes = float(np.sum(self._d**2)), float(np.sum(self._d**3))

    def units(self, part: Mask) -> int:
        """The number of samples, or clusters, in a part."""
        return int(np.count_nonzero(part)) if self._groups is None else int(np.unique(self._groups[part]).size)

    def interval(self, inside: Mask) -> Interval:
        """The mean of all other samples: `mean_interval`, from the sums where samples are independent."""
        outside, n = ~inside, self._x.size - int(np.count_nonzero(inside))
        within = self._d[inside]
        shift = -float(within.sum()) / n
        squares = self._squares - float(np.sum(within**2)) - n * shift**2
        mean = Interval(self._grand + shift, None, None, n, self._confidence)
        if self._groups is None and squares > ROUNDING * n * self._scale**2:
            return bounded(mean, Spread(squares / (n - 1) / n, n - 1, n), 0.0, self._scale)
        labels: list[int] | None = None if self._groups is None else self._groups[outside].tolist()
        others: list[float] = self._x[outside].tolist()
        return mean_interval(others, low=0.0, high=self._scale, confidence=self._confidence, groups=labels) or mean

    def p_worse(self, inside: Mask) -> float:
        """The one-sided p-value of "the slice is no worse than the rest"."""
        size, n = int(np.count_nonzero(inside)), self._x.size
        gap = self._sign * float(self._d[inside].sum()) * (1 / size + 1 / (n - size))
        if self._groups is None:
            return _permutation_p(n, size, gap, (self._squares / n, self._sign * self._cubes / n))
        from scipy.special import stdtr  # noqa: PLC0415 - 0.15 s of import

        terms = group_sums(self._d * np.where(inside, 1 / size, -1 / (n - size)), self._groups)
        variance = float(np.sum(terms**2)) * terms.size / (terms.size - 1)
        return float(stdtr(terms.size - 2, gap / math.sqrt(variance))) if variance > 0 else 1.0


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
