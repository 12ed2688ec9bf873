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
from evalstone.stats.intervals import GAFFKE, Interval, check_confidence, check_weights, single
from evalstone.stats.multiple_testing import Correction, adjust_p_values
from evalstone.stats.paired_tests import McNemar, PairedTest, friedman, mcnemar, mean_test, wilcoxon
from evalstone.stats.ratios import farthest
from evalstone.stats.special import beta_cdf
from evalstone.stats.weighted_mean import WeightedMean, effective_number, weighted_average

MOST_INSIGNIFICANT = 4
"""So many changed pass/fail values can't be significant at 0.05: (1/2)^4 > 0.05."""


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
    """That the mean difference is 0; McNemar's mid-p test for independent pass/fail values. `difference` excludes 0
    where it rejects at 1 - confidence, and holds 0 where it doesn't."""
    wilcoxon: PairedTest | None
    """The signed-rank test that differences are symmetric around 0; for clustered samples, of the clusters' sums. None
    for weighted samples: signed ranks say nothing of a weighted mean."""
    wins: int
    """Samples on which b is better than a."""
    ties: int
    """Samples on which both are equal."""
    losses: int
    """Samples on which b is worse than a."""
    mcnemar: McNemar | None
    """McNemar's test; None unless all values are 0 or `scale`, and samples independent and equally weighted. Gained: b
    is better."""
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
    """Friedman's test that all runs are alike; None for two runs, or weighted samples."""
    pairs: tuple[Pair, ...]
    """Every pair of runs."""


def compare_pairs(
    a: Sequence[float],
    b: Sequence[float],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    lower_is_better: bool = False,
) -> Comparison | None:
    """Compare two runs' scores of the same samples.

    Args:
        a: The baseline's scores, in [0, scale].
        b: The candidate's scores of the same samples in the same order.
        scale: The upper end of the range.
        confidence: Of the interval, in (0, 1).
        groups: One cluster label per sample; samples of one cluster may depend on each other. None: all independent.
        weights: One weight above 0 per sample, for the means of the population that they weight to. None: all equal.
        lower_is_better: Whether a lower score is a win.

    Returns:
        The comparison; None for no pairs.

    Raises:
        DataError: Lengths differ, or a value is not a finite number in [0, scale].
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    n = same_length(a=a, b=b, groups=groups, weights=weights)
    if n == 0:
        return None
    check_weights(weights)
    if weights is not None and min(weights) == max(weights):
        weights = None
    before, after = column("a", a, 0.0, scale), column("b", b, 0.0, scale)
    d = differences(before, after)
    ups, downs = int(np.sum(d > 0)), int(np.sum(d < 0))
    wins, losses = (downs, ups) if lower_is_better else (ups, downs)
    units = d if groups is None else _cluster_changes(d, codes(groups))
    independent = groups is None and weights is None
    passes = independent and bool(np.all(np.isin(before, (0.0, scale))) and np.all(np.isin(after, (0.0, scale))))
    changed = mcnemar(wins, losses) if passes else None
    interval = difference_interval(d.tolist(), scale=scale, confidence=confidence, groups=groups, weights=weights)
    evidence = WeightedMean.of(d.tolist(), -scale, scale, groups=groups, weights=weights)
    if changed is not None:
        test = PairedTest("McNemar's test, mid-p", changed.p_value)
        interval = _agreeing(interval, changed, scale)
    else:
        test = mean_test(evidence)
    ranks = wilcoxon(units) if weights is None else None
    return Comparison(
        n=n,
        mean_a=weighted_average(weights, before.tolist()),
        mean_b=weighted_average(weights, after.tolist()),
        difference=interval,
        test=test,
        wilcoxon=ranks,
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
        mcnemar=changed,
        lower_is_better=lower_is_better,
        groups=None if groups is None else len(units),
        caution=_caution(d, changed) or ("" if ranks is None else _leaning(test, ranks, n, 1 - confidence)),
    )


def difference_interval(
    differences: Sequence[float],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
) -> Interval:
    """The mean of paired differences with the interval of `bounded_mean` over [-scale, scale].

    Args:
        differences: Numbers in [-scale, scale], at least one.
        scale: The largest possible difference.
        confidence: The confidence level, in (0, 1).
        groups: One cluster label per difference.
        weights: One weight above 0 per difference.

    Returns:
        The interval, in [-scale, scale].

    Raises:
        DataError: There are no differences, one is outside [-scale, scale], or `groups` or `weights` have another
            length.
        ConfigError: confidence is outside (0, 1).
    """
    if not same_length(differences=differences, groups=groups, weights=weights):
        raise DataError("at least one difference is needed, not 0")
    check_confidence(confidence)
    check_weights(weights)
    d = column("differences", differences, -scale, scale).tolist()
    evidence = WeightedMean.of(d, -scale, scale, groups=groups, weights=weights)
    low, high = evidence.interval(confidence)
    caution = single(len(d)) if evidence.units == 1 else ""
    clusters = None if groups is None else len(set(groups))
    effective = effective_number(weights)
    return Interval(evidence.mean, low, high, len(d), confidence, clusters, GAFFKE, caution, effective)


def _agreeing(interval: Interval, changed: McNemar, scale: float) -> Interval:
    """The interval with 0 out of it where the test of no difference rejects, and in it where it doesn't.

    McNemar's mid-p test finds more than the test that the limits invert: near the edge they would disagree. Where the
    test rejects, a limit beyond 0 becomes the share of pairs that changed times (2 π - 1), π being the test's own limit
    of how likely a change is a gain.
    """
    low, high = interval.low, interval.high
    if low is None or high is None:
        return interval
    alpha = (1 - interval.confidence) / 2
    if changed.p_value > 2 * alpha:
        low, high = min(low, 0.0), max(high, 0.0)
    elif interval.mean > 0 >= low:
        low = (2 * _least_share(changed, alpha) - 1) * (changed.gained + changed.lost) / interval.n * scale
    elif interval.mean < 0 <= high:
        high = -(2 * _least_share(changed, alpha) - 1) * (changed.gained + changed.lost) / interval.n * scale
    return replace(interval, low=low, high=high)


def _least_share(changed: McNemar, alpha: float) -> float:
    """How likely the more frequent change is at least, where the mid-p test rejects 1/2 at this one-sided rate."""
    fewer, more = sorted((changed.gained, changed.lost))

    def short(share: float) -> float:
        return beta_cdf(share, more, fewer + 1) + (beta_cdf(share, more + 1, fewer) if fewer else 0.0) - 2 * alpha

    return farthest(lambda share: short(share) <= 0, 0.5, 1.0)


def compare_many(
    runs: Mapping[str, Sequence[float]],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    lower_is_better: bool = False,
    correction: Correction = "holm",
) -> ManyComparison | None:
    """Friedman's test over all runs, and every pair of runs with corrected p-values.

    For clustered samples Friedman's test is over the clusters' means.

    Args:
        runs: Scores by run, of the same samples in the same order; two runs or more.
        correction: How the p-values of the pairs are adjusted for multiple testing.
        scale, confidence, groups, weights, lower_is_better: As for `compare_pairs`.

    Returns:
        The comparison; None for no samples.

    Raises:
        ConfigError: Fewer than two runs, or an unknown correction.
        DataError: As `compare_pairs` does.
    """
    if len(runs) < 2:
        raise ConfigError(f"two runs or more are needed, not {len(runs)}")
    n = same_length(**{f"run {name}": values for name, values in runs.items()}, groups=groups, weights=weights)
    if n == 0:
        return None
    check_weights(weights)
    if weights is not None and min(weights) == max(weights):
        weights = None
    table = np.stack([column(name, values, 0.0, scale) for name, values in runs.items()], axis=1)
    blocks = table
    if groups is not None:
        labels = codes(groups)
        blocks = np.stack([group_sums(c, labels) / np.bincount(labels) for c in table.T], axis=1)
    pairs: list[tuple[str, str, Comparison]] = []
    for a, b in itertools.combinations(runs, 2):
        pair = compare_pairs(
            runs[a],
            runs[b],
            scale=scale,
            confidence=confidence,
            groups=groups,
            weights=weights,
            lower_is_better=lower_is_better,
        )
        if pair is not None:
            pairs.append((a, b, pair))
    adjusted = adjust_p_values([pair.p_value for _, _, pair in pairs], correction)
    return ManyComparison(
        n=n,
        means={name: weighted_average(weights, values) for name, values in zip(runs, table.T.tolist(), strict=True)},
        friedman=friedman(blocks) if len(runs) > 2 and weights is None else None,
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


def _caution(d: Floats, passes: McNemar | None) -> str:
    changed = int(np.sum(d != 0))
    if d.size > MOST_INSIGNIFICANT and not changed:
        return f"none of {d.size} pairs changed: too few for a significant difference"
    if d.size > MOST_INSIGNIFICANT >= changed and passes is not None:
        return f"only {changed} of {d.size} pairs changed: too few for a significant difference"
    return ""


def _leaning(test: PairedTest, ranks: PairedTest, n: int, alpha: float) -> str:
    if ranks.p_value > alpha or test.p_value <= alpha:
        return ""
    p = f"{ranks.p_value:.3f}" if ranks.p_value >= 0.001 else "below 0.001"
    return (
        f"most differences lean one way (Wilcoxon p {p}), but with n = {n} rare large ones the other way could "
        "outweigh them"
    )
