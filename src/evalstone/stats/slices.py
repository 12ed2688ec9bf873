"""Means by slice of the data, the worst slices after correction for looking at many, and drift of the judge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evalstone.errors import UsageError
from evalstone.stats.columns import Floats, Mask, Places, codes, column, group_sums, same_length
from evalstone.stats.comparison import Comparison, compare_pairs
from evalstone.stats.intervals import Interval, mean_interval
from evalstone.stats.multiple import benjamini_hochberg, holm

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
    same_length(values=values, groups=groups, **fields)
    x = column("values", values, 0.0, scale)
    units = np.arange(x.size) if groups is None else codes(groups)
    found: list[SliceFinding] = []
    for field, keys in fields.items():
        looked: list[SliceFinding] = []
        for key in (key for key, count in Counter(keys).items() if count >= LEAST):
            half = [k == key for k in keys]
            inside = np.array(half, dtype=np.bool_)
            if min(np.unique(units[inside]).size, np.unique(units[~inside]).size) >= LEAST:
                worse = _worse(x, inside, None if groups is None else units, lower_is_better)
                parts = {
                    part.key: part.interval for part in slice_by(values, half, scale=scale, level=level, groups=groups)
                }
                looked.append(_finding(field, key, parts[True], parts[False], worse))
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
    compare_pairs does, UsageError for a tolerance that is not above 0.
    """
    comparison = compare_pairs(before, now, scale=scale, level=level)
    if comparison is None:
        return None
    tolerance = 0.02 * scale if tolerance is None else tolerance
    if not tolerance > 0:
        raise UsageError(f"tolerance must be above 0, not {tolerance}")
    change = np.abs(column("now", now, 0.0, scale) - column("before", before, 0.0, scale))
    low, high = comparison.difference.low, comparison.difference.high
    verdict: Literal["drifted", "stable", "unclear"] = "unclear"
    if comparison.p_value <= 1 - level:
        verdict = "drifted"
    elif low is not None and high is not None and -tolerance <= low and high <= tolerance:
        verdict = "stable"
    moved = 1 - comparison.ties / comparison.n
    return Drift(comparison, verdict, tolerance, moved, float(change.mean()), float(change.max()))


def _finding(field: str, key: Hashable, inner: Interval, outer: Interval, p_value: float) -> SliceFinding:
    """A slice before it is shrunk and its p-value adjusted."""
    return SliceFinding(
        field=field,
        key=key,
        n=inner.n,
        interval=inner,
        rest=outer.mean,
        difference=_apart(inner, outer),
        shrunk=inner.mean,
        p_value=p_value,
        adjusted=p_value,
        discovered=p_value,
    )


def _worse(x: Floats, inside: Mask, units: Places | None, lower_is_better: bool) -> float:
    """The one-sided p-value of "the slice is no worse than the rest"."""
    gap = float(x[inside].mean() - x[~inside].mean())
    sign = -1.0 if lower_is_better else 1.0
    if units is None:
        return _permuted(sign * x, int(inside.sum()), sign * gap)
    from scipy.special import stdtr  # noqa: PLC0415 - 0.1 s of import

    size, n = int(inside.sum()), x.size
    terms = group_sums((x - x.mean()) * np.where(inside, 1 / size, -1 / (n - size)), units)
    variance = float(np.sum(terms**2)) * terms.size / (terms.size - 1)
    return float(stdtr(terms.size - 2, sign * gap / math.sqrt(variance))) if variance > 0 else 1.0


def _permuted(x: Floats, size: int, gap: float) -> float:
    """P(mean of `size` values drawn from x - mean of the others <= gap), by Pearson's type III curve.

    The curve has the mean, variance and skewness of the permutation distribution. Source: Mielke and Berry 2007,
    Permutation Methods, chapter 2.
    """
    from scipy.special import gammainc, gammaincc, ndtr  # noqa: PLC0415 - 0.1 s of import

    n = x.size
    d: Floats = x - float(x.mean())
    second, third = float(np.mean(d**2)), float(np.mean(d**3))
    if second == 0:
        return 1.0
    z = gap / math.sqrt(second * n * n / ((n - 1) * size * (n - size)))
    rest = n - size
    skew = third / (second * math.sqrt(second)) * (rest - size) / (n - 2) * math.sqrt((n - 1) / (size * rest))
    if abs(skew) < 1e-4:
        return float(ndtr(z))
    shape = 4 / skew**2
    place = max(0.0, shape + (z if skew > 0 else -z) * math.sqrt(shape))
    if skew > 0:
        return float(gammainc(shape, place))
    return float(gammaincc(shape, place))


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
