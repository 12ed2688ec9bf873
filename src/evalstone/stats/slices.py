"""Means by slice of the data, the worst slices after correction for looking at many, and drift of the judge."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evalstone.errors import ConfigError
from evalstone.stats._arrays import Floats, Mask, Places, codes, column, group_sums, same_length
from evalstone.stats.comparison import Comparison, compare_pairs
from evalstone.stats.intervals import ROUNDING, Interval, Spread, bounded, mean_interval
from evalstone.stats.multiple_testing import benjamini_hochberg, holm

LEAST = 5


@dataclass(frozen=True)
class Slice:
    """The samples that share a key: their mean with its interval, and their positions."""

    key: Hashable
    interval: Interval
    indexes: tuple[int, ...]


@dataclass(frozen=True)
class SliceFinding:
    """A slice against all other samples.

    field, key: which slice. interval: its mean. rest: the mean of all others. difference: mean - rest, its limits from
    those of both means (Zou and Donner 2008). shrunk: the slice's mean drawn towards the mean of all, by how little it
    says itself (empirical Bayes over the slices of the field): the better guess of what a repetition would show.
    p_value: one-sided, of "the slice is no worse than the rest"; adjusted: by Holm, discovered: by Benjamini and
    Hochberg, over all slices of all fields that were looked at.
    """

    field: str
    key: Hashable
    n: int
    interval: Interval
    rest: float
    difference: Interval
    shrunk: float
    p_value: float
    adjusted: float
    discovered: float


@dataclass(frozen=True)
class Drift:
    """The same anchors judged then and now.

    verdict: "drifted" when the test of the mean change rejects at 1 - level, "stable" when the interval of the mean
    change lies within ± tolerance, "drifted" too when both hold, else "unclear": too few anchors to say. moved: the
    share of anchors whose score changed. mean_change: mean |now - before|, which shows a judge that moves to and fro.
    largest_change: the largest |now - before|.
    """

    comparison: Comparison
    verdict: Literal["drifted", "stable", "unclear"]
    tolerance: float
    moved: float
    mean_change: float
    largest_change: float


def slice_by(
    values: Sequence[float],
    keys: Sequence[Hashable],
    *,
    scale: float = 1.0,
    level: float = 0.95,
    groups: Sequence[Hashable] | None = None,
) -> tuple[Slice, ...]:
    """One slice a key, in order of first appearance; a key of None is a slice of its own.

    Raises DataError for other lengths or values that are no finite numbers in [0, scale].
    """
    same_length(values=values, keys=keys, groups=groups)
    column("values", values, 0.0, scale)
    members: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        members.setdefault(key, []).append(place)
    found: list[Slice] = []
    for key, places in members.items():
        inside = None if groups is None else [groups[place] for place in places]
        interval = mean_interval([values[place] for place in places], low=0.0, high=scale, level=level, groups=inside)
        if interval is not None:
            found.append(Slice(key, interval, tuple(places)))
    return tuple(found)


def worst_slices(
    values: Sequence[float],
    fields: Mapping[str, Sequence[Hashable]],
    *,
    scale: float = 1.0,
    level: float = 0.95,
    lower_is_better: bool = False,
    groups: Sequence[Hashable] | None = None,
) -> tuple[SliceFinding, ...]:
    """Every slice of every field with at least 5 samples (groups) inside and outside, the smallest p-value first.

    The test is of the difference of means: by permutation (moments of its distribution), or where samples hang
    together Student's t over groups. Raises DataError for other lengths, or values that are no finite
    numbers in [0, scale].
    """
    same_length(values=values, groups=groups, **{f"field {name}": keys for name, keys in fields.items()})
    x = column("values", values, 0.0, scale)
    whole = _Whole(x, scale, level, None if groups is None else codes(groups), -1.0 if lower_is_better else 1.0)
    found: list[SliceFinding] = []
    for field, keys in fields.items():
        looked: list[SliceFinding] = []
        for part in slice_by(values, keys, scale=scale, level=level, groups=groups):
            inside = np.zeros(x.size, dtype=np.bool_)
            inside[list(part.indexes)] = True
            if min(whole.units(inside), whole.units(~inside)) >= LEAST:
                looked.append(_finding(field, part, whole.rest(inside), whole.worse(inside)))
        found.extend(_shrunk(looked, x))
    p_values = [finding.p_value for finding in found]
    both = zip(found, holm(p_values), benjamini_hochberg(p_values), strict=True)
    return tuple(sorted((replace(f, adjusted=p, discovered=q) for f, p, q in both), key=lambda f: (f.p_value, -f.n)))


def drift(
    before: Sequence[float],
    now: Sequence[float],
    *,
    scale: float = 1.0,
    level: float = 0.95,
    tolerance: float | None = None,
) -> Drift | None:
    """How the judge's scores of pinned anchors moved; None for no anchor. tolerance: None is 0.02 · scale.

    Judge the same outputs with the same questions again: whatever moves then is the judge. Raises DataError as
    compare_pairs does, ConfigError for a tolerance that is not above 0.
    """
    comparison = compare_pairs(before, now, scale=scale, level=level)
    if comparison is None:
        return None
    tolerance = 0.02 * scale if tolerance is None else tolerance
    if not tolerance > 0:
        raise ConfigError(f"tolerance must be above 0, not {tolerance}")
    change = np.abs(column("now", now, 0.0, scale) - column("before", before, 0.0, scale))
    low, high = comparison.difference.low, comparison.difference.high
    verdict: Literal["drifted", "stable", "unclear"] = "unclear"
    if comparison.p_value <= 1 - level:
        verdict = "drifted"
    elif low is not None and high is not None and -tolerance <= low and high <= tolerance:
        verdict = "stable"
    moved = 1 - comparison.ties / comparison.n
    return Drift(comparison, verdict, tolerance, moved, float(change.mean()), float(change.max()))


def _finding(field: str, part: Slice, outer: Interval, p_value: float) -> SliceFinding:
    """A slice before it is shrunk and its p-value adjusted."""
    inner = part.interval
    return SliceFinding(
        field=field,
        key=part.key,
        n=inner.n,
        interval=inner,
        rest=outer.mean,
        difference=_apart(inner, outer),
        shrunk=inner.mean,
        p_value=p_value,
        adjusted=p_value,
        discovered=p_value,
    )


class _Whole:
    """All samples, summed once, so that holding many small slices against the rest stays cheap.

    sign: -1 where lower is better.
    """

    def __init__(self, x: Floats, scale: float, level: float, groups: Places | None, sign: float) -> None:
        self._x, self._scale, self._level, self._groups, self._sign = x, scale, level, groups, sign
        self._grand = min(max(float(x.mean()), float(x.min())), float(x.max())) if x.size else 0.0
        self._d: Floats = x - self._grand
        self._squares, self._cubes = float(np.sum(self._d**2)), float(np.sum(self._d**3))

    def units(self, half: Mask) -> int:
        """How many samples, or groups, are in a half."""
        return int(np.count_nonzero(half)) if self._groups is None else int(np.unique(self._groups[half]).size)

    def rest(self, inside: Mask) -> Interval:
        """The mean of all other samples: `mean_interval`, from sums where samples are independent."""
        out, n = ~inside, self._x.size - int(np.count_nonzero(inside))
        within = self._d[inside]
        shift = -float(within.sum()) / n
        squares = self._squares - float(np.sum(within**2)) - n * shift**2
        if self._groups is None and squares > ROUNDING * n * self._scale**2:
            spread = Spread(squares / (n - 1) / n, n - 1, n)
            return bounded(Interval(self._grand + shift, None, None, n, self._level), spread, 0.0, self._scale)
        labels: list[int] | None = None if self._groups is None else self._groups[out].tolist()
        found = mean_interval(self._x[out].tolist(), low=0.0, high=self._scale, level=self._level, groups=labels)
        return found or Interval(self._grand, None, None, n, self._level)

    def worse(self, inside: Mask) -> float:
        """The one-sided p-value of "the slice is no worse than the rest"."""
        size, n = int(np.count_nonzero(inside)), self._x.size
        gap = self._sign * float(self._d[inside].sum()) * (1 / size + 1 / (n - size))
        if self._groups is None:
            return _permuted(n, size, gap, (self._squares / n, self._sign * self._cubes / n))
        from scipy.special import stdtr  # noqa: PLC0415 - 0.1 s of import

        terms = group_sums(self._d * np.where(inside, 1 / size, -1 / (n - size)), self._groups)
        variance = float(np.sum(terms**2)) * terms.size / (terms.size - 1)
        return float(stdtr(terms.size - 2, gap / math.sqrt(variance))) if variance > 0 else 1.0


def _permuted(n: int, size: int, gap: float, moments: tuple[float, float]) -> float:
    """P(mean of `size` of n values - mean of the others <= gap), by Pearson's type III curve.

    moments: the second and third about the mean. The curve has the mean, variance and skewness of the permutation
    distribution. Source: Mielke and Berry 2007, Permutation Methods, chapter 2.
    """
    from scipy.special import gammainc, gammaincc, ndtr  # noqa: PLC0415 - 0.1 s of import

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


def _apart(one: Interval, rest: Interval) -> Interval:
    """The difference of two independent means, its limits recovered from theirs."""
    gap = one.mean - rest.mean
    if one.low is None or one.high is None or rest.low is None or rest.high is None:
        return Interval(gap, None, None, one.n, one.level, one.groups)
    low = gap - math.hypot(one.mean - one.low, rest.high - rest.mean)
    high = gap + math.hypot(one.high - one.mean, rest.mean - rest.low)
    return Interval(gap, low, high, one.n, one.level, one.groups, "Zou-Donner", one.caution)


def _shrunk(findings: Sequence[SliceFinding], x: Floats) -> list[SliceFinding]:
    """Means drawn to the mean of all: weight between / (between + own), between by DerSimonian and Laird."""
    if not findings:
        return []
    spread = float(x.var(ddof=1))
    own = np.array([spread / f.n for f in findings])
    means = np.array([f.interval.mean for f in findings])
    grand = float(x.mean())
    if spread == 0:
        return [replace(f, shrunk=grand) for f in findings]
    weights = 1 / own
    center = float(np.sum(weights * means) / np.sum(weights))
    excess = float(np.sum(weights * (means - center) ** 2)) - (len(findings) - 1)
    room = float(np.sum(weights) - np.sum(weights**2) / np.sum(weights))
    between = max(0.0, excess / room) if room > 0 else 0.0
    drawn = grand + between / (between + own) * (means - grand)
    return [replace(f, shrunk=float(mean)) for f, mean in zip(findings, drawn, strict=True)]
