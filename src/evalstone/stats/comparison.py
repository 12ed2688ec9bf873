"""Two runs over the same samples, and more than two.

Differences are b - a, sample by sample: a is the baseline, b the candidate. A pair in which either is missing must be
left out by the caller (and counted: see `bounds`). The tests themselves are in `paired_tests`.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import Floats, Places, codes, column, group_sums, same_length
from evalstone.stats.intervals import (
    Interval,
    Spread,
    bounded,
    check_level,
    cluster_spread,
    exact_reach,
    few,
    plain_spread,
)
from evalstone.stats.multiple_testing import holm
from evalstone.stats.paired_tests import McNemar, PairedTest, friedman, mcnemar, sign_flips, signed_ranks

__all__ = [
    "Comparison",
    "ManyComparison",
    "McNemar",
    "Pair",
    "PairedTest",
    "biggest_changes",
    "compare_many",
    "compare_pairs",
    "difference_interval",
    "differences",
    "mcnemar",
]


@dataclass(frozen=True)
class Comparison:
    """Paired values a and b of the same samples.

    difference: mean of b - a with its interval (`difference_interval`). test: of the mean difference, by sign flips
    (`sign_flips`); with groups, whole groups are flipped. wilcoxon: the signed rank test, with groups of their sums.
    dz: mean difference / standard deviation of the differences (Cohen 1988), None when they do not vary. wins, ties,
    losses: samples on which b is better than, equal to, worse than a. superiority: (wins + ties / 2) / n, the chance
    that b is better on a sample. mcnemar: only where all values are 0 or `scale` and no groups are given; gained are
    those that b lifts to the better end. caution: what a reader must know before trusting it, or "".
    """

    n: int
    mean_a: float
    mean_b: float
    difference: Interval
    test: PairedTest
    wilcoxon: PairedTest
    dz: float | None
    wins: int
    ties: int
    losses: int
    superiority: float
    mcnemar: McNemar | None
    lower_is_better: bool
    groups: int | None
    caution: str

    @property
    def gain(self) -> float:
        """The mean difference with its sign turned so that above 0 b is better."""
        return -self.difference.mean if self.lower_is_better else self.difference.mean

    @property
    def p_value(self) -> float:
        """The p-value of `test`, to be adjusted (`multiple`) when several comparisons are looked at."""
        return self.test.p_value


@dataclass(frozen=True)
class Pair:
    """Two of several runs, compared; adjusted: the p-value after Holm over all pairs."""

    a: str
    b: str
    comparison: Comparison
    adjusted: float


@dataclass(frozen=True)
class ManyComparison:
    """Several runs over the same samples: Friedman's test that all are alike (None below three), and every pair."""

    n: int
    means: Mapping[str, float]
    friedman: PairedTest | None
    pairs: tuple[Pair, ...]


def compare_pairs(
    a: Sequence[float],
    b: Sequence[float],
    *,
    scale: float = 1.0,
    level: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    lower_is_better: bool = False,
) -> Comparison | None:
    """Compare values in [0, scale] of the same samples; None for no pair. groups: samples of one group hang together.

    Raises DataError when lengths differ or a value is not a finite number in [0, scale].
    """
    n = same_length(a=a, b=b, groups=groups)
    if n == 0:
        check_level(level)
        return None
    before, after = column("a", a, 0.0, scale), column("b", b, 0.0, scale)
    d = differences(before, after)
    ups, downs = int(np.sum(d > 0)), int(np.sum(d < 0))
    wins, losses = (downs, ups) if lower_is_better else (ups, downs)
    units = d if groups is None else _group_changes(d, codes(groups))
    passes = groups is None and bool(np.all(np.isin(before, (0.0, scale))) and np.all(np.isin(after, (0.0, scale))))
    return Comparison(
        n=n,
        mean_a=float(before.mean()),
        mean_b=float(after.mean()),
        difference=difference_interval(d.tolist(), scale=scale, level=level, groups=groups),
        test=sign_flips(units),
        wilcoxon=signed_ranks(units),
        dz=_standardized(d, scale),
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
        superiority=(wins + (n - wins - losses) / 2) / n,
        mcnemar=mcnemar(wins, losses) if passes else None,
        lower_is_better=lower_is_better,
        groups=None if groups is None else len(units),
        caution=_caution(d, units, groups is not None),
    )


def difference_interval(
    differences: Sequence[float],
    *,
    scale: float = 1.0,
    level: float = 0.95,
    groups: Sequence[Hashable] | None = None,
) -> Interval:
    """The mean of paired differences in [-scale, scale] with Student's interval over two pairs more, +w and -w.

    w is the root mean square of the differences that are not 0. Where few samples change, Student's own interval is
    too short; for pass/fail this is Bonett and Price's. When none of n changed, the exact reach of `mean_interval`
    to either side: scale · (1 - (a/2)^(1/n)). Interval.mean is the plain mean. With groups, CR2; the two pairs are
    groups of their own. Source: Bonett and Price 2012, Journal of Educational and Behavioral Statistics 37(4).
    Raises DataError for no differences, for one outside [-scale, scale] and for groups of another length.
    """
    check_level(level)
    if not same_length(differences=differences, groups=groups):
        raise DataError("one difference or more is wanted, not 0")
    d = column("differences", differences, -scale, scale)
    n, mean = d.size, float(d.mean())
    count = None if groups is None else len(set(groups))
    units = n if count is None else count
    if units == 1:
        return Interval(mean, None, None, n, level, count, caution="one sample" if n == 1 else "all in one group")
    if not d.any():
        reach = exact_reach(units, (1 - level) / 2, scale)
        return Interval(0.0, -reach, reach, n, level, count, "exact", few(units, count is not None))
    middle, spread = difference_spread(d, groups)
    found = bounded(Interval(middle, None, None, n, level, count), spread, -np.inf, np.inf)
    low = max(-scale, min(found.low if found.low is not None else mean, mean))
    high = min(scale, max(found.high if found.high is not None else mean, mean))
    return Interval(mean, low, high, n, level, count, "Student", few(units, count is not None))


def difference_spread(d: Floats, groups: Sequence[Hashable] | None) -> tuple[float, Spread]:
    """The center and spread of differences with the two pairs more; at least one difference must not be 0."""
    w = float(np.sqrt(np.mean(d[d != 0] ** 2)))
    more = [*d.tolist(), w, -w]
    middle = float(np.mean(more))
    if groups is None:
        return middle, plain_spread(more, middle)
    labels = [*((0, group) for group in groups), (1, 0), (1, 1)]
    return middle, cluster_spread(more, middle, labels)


def compare_many(
    runs: Mapping[str, Sequence[float]],
    *,
    scale: float = 1.0,
    level: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    lower_is_better: bool = False,
) -> ManyComparison | None:
    """Friedman's test over all runs and every pair of them, p-values adjusted by Holm; None for no sample.

    With groups Friedman's test is over the groups' means. Raises ConfigError below two runs, DataError as compare_pairs.
    """
    if len(runs) < 2:
        raise ConfigError(f"two runs or more are wanted, not {len(runs)}")
    n = same_length(**{f"run {name}": values for name, values in runs.items()}, groups=groups)
    if n == 0:
        return None
    table = np.stack([column(name, values, 0.0, scale) for name, values in runs.items()], axis=1)
    blocks = table
    if groups is not None:
        labels = codes(groups)
        blocks = np.stack([group_sums(c, labels) / np.bincount(labels) for c in table.T], axis=1)
    found: list[tuple[str, str, Comparison]] = []
    for a, b in itertools.combinations(runs, 2):
        pair = compare_pairs(runs[a], runs[b], scale=scale, level=level, groups=groups, lower_is_better=lower_is_better)
        if pair is not None:
            found.append((a, b, pair))
    adjusted = holm([pair.p_value for _, _, pair in found])
    return ManyComparison(
        n=n,
        means=dict(zip(runs, table.mean(axis=0).tolist(), strict=True)),
        friedman=friedman(blocks) if len(runs) > 2 else None,
        pairs=tuple(Pair(*item, p) for item, p in zip(found, adjusted, strict=True)),
    )


def biggest_changes(a: Sequence[float], b: Sequence[float], count: int = 10) -> tuple[int, ...]:
    """The positions of the samples that changed most, most first; samples that did not change are left out."""
    same_length(a=a, b=b)
    d = np.abs(differences(column("a", a), column("b", b)))
    order = np.argsort(-d, kind="stable")[:count]
    return tuple(int(place) for place in order if d[place] > 0)


def differences(a: Floats, b: Floats) -> Floats:
    """b - a, with 0 where they differ by rounding only: 0.1 + 0.2 is no worse than 0.3."""
    d = b - a
    return np.where(np.abs(d) <= 1e-12 * np.maximum(np.abs(a), np.abs(b)), 0.0, d)


def _group_changes(d: Floats, groups: Places) -> Floats:
    """The sum of each group's differences, 0 where they cancel but for rounding."""
    sums = group_sums(d, groups)
    return np.where(np.abs(sums) <= 1e-12 * group_sums(np.abs(d), groups), 0.0, sums)


def _standardized(d: Floats, scale: float) -> float | None:
    deviation = float(d.std(ddof=1)) if d.size > 1 else 0.0
    return float(d.mean()) / deviation if deviation > 1e-12 * scale else None


def _caution(d: Floats, units: Floats, grouped: bool) -> str:
    changed = int(np.sum(d != 0))
    told = few(units.size, grouped)
    if changed < 6 and d.size > 5:  # 2 / 2^5 > 0.05: five changes can never be significant at 0.05
        scarce = f"only {changed} of {d.size} samples changed: too few to tell a difference from chance"
        return f"{told}; {scarce}" if told else scarce
    return told
