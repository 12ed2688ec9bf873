"""Comparison of two or more runs over the same samples.

Differences are b - a, sample by sample: a is the baseline, b the candidate. The caller leaves out pairs in which either
value is missing, and counts them (see `missing_bounds`). The tests themselves are in `paired_tests`.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import Floats, Positions, codes, column, group_sums, same_length
from evalstone.stats.intervals import (
    Interval,
    Spread,
    bounded,
    check_confidence,
    cluster_spread,
    exact_reach,
    plain_spread,
    single,
    small,
)
from evalstone.stats.multiple_testing import Correction, adjust_p_values
from evalstone.stats.paired_tests import McNemar, PairedTest, friedman, mcnemar, permutation_test, wilcoxon


@dataclass(frozen=True)
class Comparison:
    """Paired values a and b of the same samples, in the unit of the scores."""

    n: int
    """The number of pairs."""
    mean_a: float
    mean_b: float
    difference: Interval
    """The mean of b - a with its interval (`difference_interval`)."""
    test: PairedTest
    """The paired permutation test of the mean difference; for clustered samples, signs of whole clusters change."""
    wilcoxon: PairedTest
    """The signed-rank test; for clustered samples, of the clusters' sums."""
    cohen_dz: float | None
    """Mean difference / standard deviation of the differences (Cohen 1988); None if they don't vary."""
    wins: int
    """Samples on which b is better than a."""
    ties: int
    """Samples on which both are equal."""
    losses: int
    """Samples on which b is worse than a."""
    prob_superiority: float
    """(wins + ties / 2) / n: the chance that b is better on a sample, in [0, 1]; 0.5 is no difference."""
    mcnemar: McNemar | None
    """McNemar's test; None unless all values are 0 or `scale` and samples are independent. Gained: b is better."""
    lower_is_better: bool
    groups: int | None
    """The number of clusters; None for independent samples."""
    caution: str
    """What a reader must know before trusting the comparison, or ""."""

    @property
    def p_value(self) -> float:
        """The p-value of `test`; adjust it (`multiple_testing`) where several comparisons are made."""
        return self.test.p_value


@dataclass(frozen=True)
class Pair:
    """Two of several runs, compared; adjusted_p: the p-value corrected for all pairs."""

    a: str
    b: str
    comparison: Comparison
    adjusted_p: float


@dataclass(frozen=True)
class ManyComparison:
    """Several runs over the same samples."""

    n: int
    means: Mapping[str, float]
    """By run."""
    friedman: PairedTest | None
    """Friedman's test that all runs are alike; None for two runs."""
    pairs: tuple[Pair, ...]
    """Every pair of runs."""


def compare_pairs(
    a: Sequence[float],
    b: Sequence[float],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    lower_is_better: bool = False,
) -> Comparison | None:
    """Compare two runs' scores of the same samples.

    Args:
        a: The baseline's scores, in [0, scale].
        b: The candidate's scores of the same samples in the same order.
        scale: The upper end of the range.
        confidence: Of the interval, in (0, 1).
        groups: One cluster label per sample; samples of one cluster may depend on each other. None: all independent.
        lower_is_better: Whether a lower score is a win.

    Returns:
        The comparison; None for no pairs.

    Raises:
        DataError: Lengths differ, or a value is not a finite number in [0, scale].
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    n = same_length(a=a, b=b, groups=groups)
    if n == 0:
        return None
    before, after = column("a", a, 0.0, scale), column("b", b, 0.0, scale)
    d = differences(before, after)
    ups, downs = int(np.sum(d > 0)), int(np.sum(d < 0))
    wins, losses = (downs, ups) if lower_is_better else (ups, downs)
    units = d if groups is None else _cluster_changes(d, codes(groups))
    passes = groups is None and bool(np.all(np.isin(before, (0.0, scale))) and np.all(np.isin(after, (0.0, scale))))
    deviation = float(d.std(ddof=1)) if n > 1 else 0.0
    return Comparison(
        n=n,
        mean_a=float(before.mean()),
        mean_b=float(after.mean()),
        difference=difference_interval(d.tolist(), scale=scale, confidence=confidence, groups=groups),
        test=permutation_test(units),
        wilcoxon=wilcoxon(units),
        cohen_dz=float(d.mean()) / deviation if deviation > 1e-12 * scale else None,
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
        prob_superiority=(wins + (n - wins - losses) / 2) / n,
        mcnemar=mcnemar(wins, losses) if passes else None,
        lower_is_better=lower_is_better,
        groups=None if groups is None else len(units),
        caution=_caution(d, units, groups is not None),
    )


def difference_interval(
    differences: Sequence[float],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
) -> Interval:
    """The mean of paired differences with Student's interval over two more pairs, +w and -w.

    w is the root mean square of the nonzero differences. Student's own interval is too short where few samples change;
    for pass/fail values this is Bonett and Price's. If none of n changed, the interval is the exact reach of
    `mean_interval` in both directions: scale · (1 - (a/2)^(1/n)), a = 1 - confidence. `Interval.mean` is the plain
    mean. For clustered samples the variance is CR2, the two pairs being clusters of their own.
    Source: Bonett and Price 2012, Journal of Educational and Behavioral Statistics 37(4).

    Args:
        differences: Numbers in [-scale, scale], at least one.
        scale: The largest possible difference.
        confidence: The confidence level, in (0, 1).
        groups: One cluster label per difference.

    Returns:
        The interval, in [-scale, scale]; without limits for one pair or cluster.

    Raises:
        DataError: There are no differences, one is outside [-scale, scale], or `groups` has another length.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    if not same_length(differences=differences, groups=groups):
        raise DataError("at least one difference is needed, not 0")
    d = column("differences", differences, -scale, scale)
    n, mean = d.size, float(d.mean())
    clusters = None if groups is None else len(set(groups))
    units = n if clusters is None else clusters
    estimate = Interval(mean, None, None, n, confidence, clusters)
    if units == 1:
        return replace(estimate, caution=single(n))
    caution = small(units, clusters is not None)
    if not d.any():
        reach = exact_reach(units, (1 - confidence) / 2, scale)
        return replace(estimate, low=-reach, high=reach, method="exact", caution=caution)
    center, spread = difference_spread(d, groups)
    limits = bounded(replace(estimate, mean=center), spread, -np.inf, np.inf)
    low = max(-scale, min(limits.low if limits.low is not None else mean, mean))
    high = min(scale, max(limits.high if limits.high is not None else mean, mean))
    return replace(estimate, low=low, high=high, method="Student", caution=caution)


def difference_spread(d: Floats, groups: Sequence[Hashable] | None) -> tuple[float, Spread]:
    """The center and spread of differences with the two extra pairs; at least one difference must not be 0."""
    w = float(np.sqrt(np.mean(d[d != 0] ** 2)))
    extended = [*d.tolist(), w, -w]
    center = float(np.mean(extended))
    if groups is None:
        return center, plain_spread(extended, center)
    labels = [*((0, group) for group in groups), (1, 0), (1, 1)]
    return center, cluster_spread(extended, center, labels)


def compare_many(
    runs: Mapping[str, Sequence[float]],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    lower_is_better: bool = False,
    correction: Correction = "holm",
) -> ManyComparison | None:
    """Friedman's test over all runs, and every pair of runs with corrected p-values.

    For clustered samples Friedman's test is over the clusters' means.

    Args:
        runs: Scores by run, of the same samples in the same order; two runs or more.
        correction: How the p-values of the pairs are adjusted for multiple testing.
        scale, confidence, groups, lower_is_better: As for `compare_pairs`.

    Returns:
        The comparison; None for no samples.

    Raises:
        ConfigError: Fewer than two runs, or an unknown correction.
        DataError: As `compare_pairs` does.
    """
    if len(runs) < 2:
        raise ConfigError(f"two runs or more are needed, not {len(runs)}")
    n = same_length(**{f"run {name}": values for name, values in runs.items()}, groups=groups)
    if n == 0:
        return None
    table = np.stack([column(name, values, 0.0, scale) for name, values in runs.items()], axis=1)
    blocks = table
    if groups is not None:
        labels = codes(groups)
        blocks = np.stack([group_sums(c, labels) / np.bincount(labels) for c in table.T], axis=1)
    pairs: list[tuple[str, str, Comparison]] = []
    for a, b in itertools.combinations(runs, 2):
        pair = compare_pairs(
            runs[a], runs[b], scale=scale, confidence=confidence, groups=groups, lower_is_better=lower_is_better
        )
        if pair is not None:
            pairs.append((a, b, pair))
    adjusted = adjust_p_values([pair.p_value for _, _, pair in pairs], correction)
    return ManyComparison(
        n=n,
        means=dict(zip(runs, table.mean(axis=0).tolist(), strict=True)),
        friedman=friedman(blocks) if len(runs) > 2 else None,
        pairs=tuple(Pair(*item, p) for item, p in zip(pairs, adjusted, strict=True)),
    )


def biggest_changes(a: Sequence[float], b: Sequence[float], count: int = 10) -> tuple[int, ...]:
    """The positions of the samples that changed most, largest change first; unchanged samples are left out."""
    same_length(a=a, b=b)
    d = np.abs(differences(column("a", a), column("b", b)))
    order = np.argsort(-d, kind="stable")[:count]
    return tuple(int(place) for place in order if d[place] > 0)


def differences(a: Floats, b: Floats) -> Floats:
    """b - a, and 0 where they differ by rounding only: 0.1 + 0.2 is no worse than 0.3."""
    d = b - a
    return np.where(np.abs(d) <= 1e-12 * np.maximum(np.abs(a), np.abs(b)), 0.0, d)


def _cluster_changes(d: Floats, groups: Positions) -> Floats:
    """The sum of each cluster's differences, 0 where they cancel but for rounding."""
    sums = group_sums(d, groups)
    return np.where(np.abs(sums) <= 1e-12 * group_sums(np.abs(d), groups), 0.0, sums)


def _caution(d: Floats, units: Floats, clustered: bool) -> str:
    changed = int(np.sum(d != 0))
    cautions = [small(units.size, clustered)]
    if changed < 6 and d.size > 5:  # 2 / 2^5 > 0.05: five changes can never be significant at 0.05
        some = f"only {changed}" if changed else "none"
        cautions.append(f"{some} of {d.size} samples changed: too few for a significant difference")
    return "; ".join(filter(None, cautions))
