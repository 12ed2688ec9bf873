"""Paired comparison of two or more runs over the same samples.

Differences are b - a, sample by sample: a is the baseline, b the candidate. The caller drops pairs with a missing value
and reports how many there are (see `missing_bounds`). The tests themselves are in `paired_tests`.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import Floats, Positions, codes, column, group_sums, same_length
from evalstone.stats.intervals import Interval, check_confidence, check_weights, mean_interval
from evalstone.stats.multiple_testing import Correction, adjust_p_values
from evalstone.stats.paired_tests import McNemar, PairedTest, friedman, mcnemar, mean_test, wilcoxon
from evalstone.stats.ratios import farthest
from evalstone.stats.special import beta_cdf
from evalstone.stats.weighted_mean import WeightedMean, unequal, weighted_average

MOST_INSIGNIFICANT = 4
"""With no more changed pass/fail pairs than this, no difference is significant at 0.05: the mid-p value of 4 gains is
(1/2)^4 > 0.05."""


@dataclass(frozen=True)
class Comparison:
    """Paired scores a and b of the same samples, in the unit of the scores."""

    n: int
    """The number of pairs."""
    mean_a: float
    mean_b: float
    difference: Interval
    """The mean of b - a with its interval (`difference_interval`)."""
    test: PairedTest
    """The test that the mean difference is 0; for independent pass/fail values, McNemar's mid-p test. It rejects at
    1 - confidence if and only if `difference` excludes 0."""
    wilcoxon: PairedTest | None
    """The signed-rank test that differences are symmetric around 0; for clustered samples, of the clusters' sums. None
    for weighted samples, because signed ranks are not about a weighted mean."""
    wins: int
    """Samples on which b is better than a."""
    ties: int
    """Samples on which a and b are equal."""
    losses: int
    """Samples on which b is worse than a."""
    mcnemar: McNemar | None
    """McNemar's test. None unless all values are 0 or `scale`, and samples are independent and equally weighted.
    `gained` counts the pairs in which b is better."""
    lower_is_better: bool
    groups: int | None
    """The number of clusters; None for independent samples."""
    caution: str
    """Why to trust the comparison less, or ""."""

    @property
    def p_value(self) -> float:
        """The p-value of `test`. Adjust it (`multiple_testing`) if you make several comparisons."""
        return self.test.p_value


@dataclass(frozen=True)
class Pair:
    """The comparison of two of several runs. adjusted_p: the p-value, corrected for the number of pairs."""

    a: str
    b: str
    comparison: Comparison
    adjusted_p: float


@dataclass(frozen=True)
class ManyComparison:
    """Several runs over the same samples."""

    n: int
    means: Mapping[str, float]
    """The mean score by run."""
    friedman: PairedTest | None
    """Friedman's test that all runs are interchangeable; None for two runs, or weighted samples."""
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
        confidence: The confidence level of the interval, in (0, 1).
        groups: One cluster label per sample; samples of one cluster may depend on each other. None: all independent.
        weights: One sampling weight above 0 per sample, for estimates of population means. None: all equal.
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
    weights = unequal(weights)
    before, after = column("a", a, 0.0, scale), column("b", b, 0.0, scale)
    d = differences(before, after)
    ups, downs = int(np.sum(d > 0)), int(np.sum(d < 0))
    wins, losses = (downs, ups) if lower_is_better else (ups, downs)
    units = d if groups is None else _cluster_changes(d, codes(groups))
    independent = groups is None and weights is None
    passes = independent and bool(np.all(np.isin(before, (0.0, scale))) and np.all(np.isin(after, (0.0, scale))))
    changed = mcnemar(wins, losses) if passes else None
    interval = difference_interval(d.tolist(), scale=scale, confidence=confidence, groups=groups, weights=weights)
    evidence = WeightedMean.of_units(d.tolist(), -scale, scale, groups=groups, weights=weights)
    if changed is not None:
        test = PairedTest("McNemar's test, mid-p", changed.p_value)
        interval = _consistent(interval, changed, scale)
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
        caution=_caution(d, changed) or ("" if ranks is None else _disagreement(test, ranks, n, 1 - confidence)),
    )


def difference_interval(
    differences: Sequence[float],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
) -> Interval:
    """The mean of paired differences with the interval of `mean_interval` over [-scale, scale].

    Args:
        differences: Numbers in [-scale, scale], at least one.
        scale: The largest possible difference.
        confidence: The confidence level, in (0, 1).
        groups: One cluster label per difference.
        weights: One sampling weight above 0 per difference.

    Returns:
        The interval, in [-scale, scale].

    Raises:
        DataError: There are no differences, one is outside [-scale, scale], or `groups` or `weights` differ in length.
        ConfigError: confidence is outside (0, 1).
    """
    same_length(differences=differences, groups=groups, weights=weights)
    d = column("differences", differences, -scale, scale).tolist()
    interval = mean_interval(d, low=-scale, high=scale, confidence=confidence, groups=groups, weights=weights)
    if interval is None:
        raise DataError("need at least one difference")
    return interval


def _consistent(interval: Interval, changed: McNemar, scale: float) -> Interval:
    """The interval, adjusted so that it excludes 0 if and only if McNemar's test rejects.

    The mid-p test is more powerful than the test that the interval inverts, so the two can disagree in borderline
    cases. If the test rejects but the interval includes 0, the limit on the side of 0 becomes
    (share of pairs that changed) · (2 π - 1), where π is the test's own confidence limit of the probability that a
    change is a gain. If the test doesn't reject, the interval is extended to 0.
    """
    low, high = interval.low, interval.high
    if low is None or high is None:
        return interval
    alpha = (1 - interval.confidence) / 2
    if changed.p_value > 2 * alpha:
        low, high = min(low, 0.0), max(high, 0.0)
    elif interval.mean > 0 >= low:
        low = (2 * _lowest_share(changed, alpha) - 1) * (changed.gained + changed.lost) / interval.n * scale
    elif interval.mean < 0 <= high:
        high = -(2 * _lowest_share(changed, alpha) - 1) * (changed.gained + changed.lost) / interval.n * scale
    return replace(interval, low=low, high=high)


def _lowest_share(changed: McNemar, alpha: float) -> float:
    """The lower mid-p limit, at one-sided error rate alpha, of the probability of the more frequent kind of change.

    The mid-p test must reject a probability of 1/2 at this rate.
    """
    fewer, more = sorted((changed.gained, changed.lost))

    def rejected(share: float) -> bool:
        doubled = beta_cdf(share, more, fewer + 1) + (beta_cdf(share, more + 1, fewer) if fewer else 0.0)
        return doubled <= 2 * alpha

    return farthest(rejected, 0.5, 1.0)


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
    """Friedman's test over all runs, and all pairwise comparisons with corrected p-values.

    With clustered samples, Friedman's test uses the clusters' means.

    Args:
        runs: Scores by run, of the same samples in the same order; two runs or more.
        correction: How to adjust the p-values of the pairs for multiple testing.
        scale, confidence, groups, weights, lower_is_better: As for `compare_pairs`.

    Returns:
        The comparison; None for no samples.

    Raises:
        ConfigError: Fewer than two runs, or an unknown correction.
        DataError: As for `compare_pairs`.
    """
    if len(runs) < 2:
        raise ConfigError(f"need at least two runs, got {len(runs)}")
    n = same_length(**{f"run {name}": values for name, values in runs.items()}, groups=groups, weights=weights)
    if n == 0:
        return None
    check_weights(weights)
    weights = unequal(weights)
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
    """The positions of the samples that changed most, largest change first, without unchanged samples."""
    same_length(a=a, b=b)
    d = np.abs(differences(column("a", a), column("b", b)))
    order = np.argsort(-d, kind="stable")[:count]
    return tuple(int(place) for place in order if d[place] > 0)


def differences(a: Floats, b: Floats) -> Floats:
    """b - a, and 0 if they differ by rounding error only, as 0.1 + 0.2 and 0.3 do."""
    d = b - a
    return np.where(np.abs(d) <= 1e-12 * np.maximum(np.abs(a), np.abs(b)), 0.0, d)


def _cluster_changes(d: Floats, groups: Positions) -> Floats:
    """The sum of each cluster's differences, and 0 if they cancel up to rounding error."""
    sums = group_sums(d, groups)
    return np.where(np.abs(sums) <= 1e-12 * group_sums(np.abs(d), groups), 0.0, sums)


def _caution(d: Floats, passes: McNemar | None) -> str:
    changed = int(np.sum(d != 0))
    if d.size > MOST_INSIGNIFICANT and not changed:
        return f"none of {d.size} pairs changed: too few for a significant difference"
    if d.size > MOST_INSIGNIFICANT >= changed and passes is not None:
        return f"only {changed} of {d.size} pairs changed: too few for a significant difference"
    return ""


def _disagreement(test: PairedTest, ranks: PairedTest, n: int, alpha: float) -> str:
    """The caution if Wilcoxon's test rejects and the mean test doesn't, or ""."""
    if ranks.p_value > alpha or test.p_value <= alpha:
        return ""
    p = f"{ranks.p_value:.3f}" if ranks.p_value >= 0.001 else "below 0.001"
    return (
        f"most differences have the same sign (Wilcoxon p {p}), but with n = {n}, rare large differences in the other "
        "direction could outweigh them"
    )
