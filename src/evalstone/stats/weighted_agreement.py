"""Agreement of verdicts and scores with labels of samples that are clustered, or drawn with unequal probability.

A sample's weight is the number of samples that it stands for: in a stratum of N samples of which n are labeled, N / n.
The measures are those of `classification`, with sums of weights in place of counts, so they estimate the measures of
all samples. Strata without a label are not part of them.

    sensitivity = Σ w over true positives / Σ w over positives, and so on

Rates are weighted means over the samples of their denominator, with the limits of `WeightedMean`. Unseen samples count
with the largest weight of all labels, also where the denominator has no sample as heavy. Kappa is a ratio of weighted
means (`ratio_limits`). Balanced accuracy combines the limits of sensitivity and specificity.

Samples of one cluster may depend on each other: the units of all limits are then clusters. Their errors among
positives and among negatives may be correlated, which balanced accuracy and AUROC include. With clusters, unseen units
are as heavy as the heaviest one seen.

Limits treat labels as drawn one by one, not by strata. That makes them somewhat too wide, never too narrow, because it
counts the differences between strata as chance.
Sources: Kish 1965, Survey Sampling; Begg and Greenes 1983, Biometrics 39(1), for rates of a test whose verification
depends on its result; Obuchowski 1997, Biometrics 53(2), for the variance of an AUROC of clusters.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import NormalDist

from evalstone.stats.classification import average, check_truths, f1_of, newcombe_limit
from evalstone.stats.intervals import GAFFKE, Interval, check_confidence, check_weights, mean_interval
from evalstone.stats.ratios import FIELLER, Parts, of_clusters, ratio_limits
from evalstone.stats.special import t_quantile
from evalstone.stats.weighted_mean import WeightedMean, effective_number, weighted_average


def weighted_share(
    inside: Sequence[bool],
    part: Sequence[bool],
    weights: Sequence[float] | None = None,
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Interval | None:
    """Σ w over samples that are in the whole and in the part / Σ w over samples in the whole, with its interval.

    Args:
        inside: Whether each sample is in the whole.
        part: Whether it is in the part.
        weights: Its weight, above 0. None: all equal.
        groups: Its cluster. None: all independent.
        confidence: The confidence level, in (0, 1).

    Returns:
        The share in [0, 1]; None if no sample is in the whole.

    Raises:
        DataError: A weight is not above 0.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    check_weights(weights)
    places = [place for place, x in enumerate(inside) if x]
    values = [float(part[place]) for place in places]
    own = None if weights is None else [weights[place] for place in places]
    if weights is None or own is None or groups is not None or not values:
        clusters = None if groups is None else [groups[place] for place in places]
        return mean_interval(values, low=0.0, high=1.0, confidence=confidence, groups=clusters, weights=own)
    found = WeightedMean.of_units(values, 0.0, 1.0, weights=own, heaviest=max(weights))
    low, high = found.interval(confidence)
    return Interval(
        estimate=found.mean,
        low=low,
        high=high,
        n=len(values),
        confidence=confidence,
        effective=effective_number(own),
        method=GAFFKE,
    )


def weighted_measures(
    verdicts: Sequence[bool],
    truths: Sequence[bool],
    weights: Sequence[float] | None = None,
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> dict[str, Interval | None]:
    """Every measure of MEASURES for all samples that the labeled ones stand for, with its interval; None if undefined.

    Args:
        verdicts: The verdict of each labeled sample.
        truths: Its label.
        weights: Its weight, above 0. None: all equal.
        groups: Its cluster. None: all independent.
        confidence: The confidence level, in (0, 1).

    Raises:
        DataError: The sequences differ in length, or a weight is not above 0.
        ConfigError: confidence is outside (0, 1).
    """
    check_truths("verdict", verdicts, truths)
    check_truths("weight", truths if weights is None else weights, truths)
    right = [verdict == truth for verdict, truth in zip(verdicts, truths, strict=True)]
    wrong_or_yes = [verdict or truth for verdict, truth in zip(verdicts, truths, strict=True)]

    def share(inside: Sequence[bool]) -> Interval | None:
        return weighted_share(inside, right, weights, groups=groups, confidence=confidence)

    sensitivity, specificity = share(truths), share([not truth for truth in truths])
    together = 0.0 if groups is None else _correlation(right, truths, weights, groups)
    return {
        "balanced_accuracy": average(sensitivity, specificity, together),
        "accuracy": share([True] * len(right)),
        "f1": f1_of(share(wrong_or_yes)),
        "kappa": _kappa(verdicts, truths, weights, groups, confidence),
        "sensitivity": sensitivity,
        "specificity": specificity,
        "precision": share(verdicts),
    }


def _correlation(
    right: Sequence[bool], truths: Sequence[bool], weights: Sequence[float] | None, groups: Sequence[Hashable]
) -> float:
    """The correlation of sensitivity and specificity, 0 or more: that of the clusters' sums of deviations. 1 if it
    can't be estimated, and a cluster has both positives and negatives."""
    w = [1.0] * len(truths) if weights is None else weights
    means = {
        kind: weighted_average(*zip(*of_kind, strict=True))
        for kind in (False, True)
        if (of_kind := [(w, float(y)) for w, y, truth in zip(w, right, truths, strict=True) if truth == kind])
    }
    sums: dict[Hashable, list[float]] = {}
    kinds: dict[Hashable, set[bool]] = {}
    for group, weight, y, truth in zip(groups, w, right, truths, strict=True):
        sums.setdefault(group, [0.0, 0.0])[truth] += weight * (y - means[truth])
        kinds.setdefault(group, set()).add(truth)
    if all(len(each) < 2 for each in kinds.values()):
        return 0.0
    squares = [math.fsum(own[kind] ** 2 for own in sums.values()) for kind in (0, 1)]
    if not all(squares):
        return 1.0
    return min(1.0, max(0.0, math.fsum(a * b for a, b in sums.values()) / math.sqrt(squares[0] * squares[1])))


def _kappa(
    verdicts: Sequence[bool],
    truths: Sequence[bool],
    weights: Sequence[float] | None,
    groups: Sequence[Hashable] | None,
    confidence: float,
) -> Interval | None:
    """Cohen's kappa. The expected disagreement is linearized, as in `cohen_kappa`."""
    n = len(truths)
    if not n:
        return None
    says_yes = weighted_average(weights, [float(verdict) for verdict in verdicts])
    is_yes = weighted_average(weights, [float(truth) for truth in truths])
    chance = says_yes * (1 - is_yes) + is_yes * (1 - says_yes)
    if chance < 1e-12:
        return None

    def parts(verdict: bool, truth: bool, weight: float) -> Parts:
        to_truths = 1 - is_yes if verdict else is_yes
        to_verdicts = 1 - says_yes if truth else says_yes
        return weight * (verdict != truth), weight * (to_truths + to_verdicts - chance)

    w = [1.0] * n if weights is None else weights
    heaviest = max(w)
    units = of_clusters(
        [parts(*each) for each in zip(verdicts, truths, [x / heaviest for x in w], strict=True)], groups
    )
    disagreement = math.fsum(d for d, _ in units) / math.fsum(e for _, e in units)
    clusters = None if groups is None else len(units)
    found = Interval(estimate=1 - disagreement, low=None, high=None, n=n, confidence=confidence, groups=clusters)
    if len(units) < 2:
        return found
    possible = [parts(verdict, truth, 1.0) for verdict in (False, True) for truth in (False, True)]
    low, high = ratio_limits(units, possible, low=0.0, high=max(2.0, disagreement), confidence=confidence)
    return replace(found, low=1 - high, high=1 - low, effective=effective_number(weights), method=FIELLER)


def weighted_auroc(
    scores: Sequence[float],
    truths: Sequence[bool],
    weights: Sequence[float] | None = None,
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Interval | None:
    """The area under the ROC curve of all samples that the labeled ones stand for, with its interval.

        AUROC = Σ w(+) w(-) [higher + tied / 2] / (Σ w(+) · Σ w(-)),   over pairs of a positive and a negative

    The limits are the widest of the three of `auroc`, with weights: the means over positives and over negatives are
    weighted, and Newcombe's method has the effective numbers (Σ w)² / Σ w² of positives and negatives. With clusters,
    these are divided by the design effect: the variance of the area from the clusters' sums / that of independent
    cases, 1 or more, and the mean number of cases of a cluster if no case errs. The normal quantile is then Student's,
    with clusters - 1 degrees of freedom. A single cluster shows nothing: its limits are 0 and 1.

    Args:
        scores: One score per case, in any unit; higher means more likely positive.
        truths: Whether each case is positive.
        weights: Its weight, above 0. None: all equal.
        groups: Its cluster. None: all independent.
        confidence: The confidence level, in (0, 1).

    Returns:
        The area in [0, 1]; 0.5 is chance, higher is better. None without a positive or a negative.

    Raises:
        DataError: The sequences differ in length, or a weight is not above 0.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    check_truths("score", scores, truths)
    check_truths("weight", truths if weights is None else weights, truths)
    check_weights(weights)
    given, weights = weights, [1.0] * len(truths) if weights is None else weights
    total = {kind: math.fsum(w for w, truth in zip(weights, truths, strict=True) if truth == kind) for kind in (0, 1)}
    if not total[0] or not total[1]:
        return None
    seen = {0: 0.0, 1: 0.0}
    shares: dict[int, list[float]] = {0: [], 1: []}  # of a negative, the positives above it; of a positive, below
    heavy: dict[int, list[float]] = {0: [], 1: []}
    clusters: dict[int, list[Hashable]] = {0: [], 1: []}
    own: Sequence[Hashable] = range(len(truths)) if groups is None else groups
    cases = sorted(zip(scores, truths, weights, own, strict=True), key=lambda case: case[0])
    for _, tied in groupby(cases, key=lambda case: case[0]):
        listed = [(int(truth), weight, cluster) for _, truth, weight, cluster in tied]
        here = {kind: math.fsum(weight for truth, weight, _ in listed if truth == kind) for kind in (0, 1)}
        for truth, weight, cluster in listed:
            below = (seen[1 - truth] + here[1 - truth] / 2) / total[1 - truth]
            shares[truth].append(min(1.0, below if truth else 1 - below))
            heavy[truth].append(weight)
            clusters[truth].append(cluster)
        seen = {kind: seen[kind] + here[kind] for kind in (0, 1)}
    area = min(1.0, weighted_average(heavy[1], shares[1]))
    numbers = {kind: effective_number(heavy[kind]) or float(len(heavy[kind])) for kind in (0, 1)}
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    variance = math.fsum(_variance(shares[kind], heavy[kind], area) for kind in (0, 1))
    found = Interval(
        estimate=area,
        low=0.0,
        high=1.0,
        n=len(truths),
        confidence=confidence,
        groups=None if groups is None else len(set(groups)),
        effective=effective_number(given),
        method=f"Newcombe, {GAFFKE}",
    )
    if found.groups == 1:
        return found
    if found.groups is not None:
        effect = _design_effect(shares, heavy, clusters, area, variance)
        numbers, variance = {kind: number / effect for kind, number in numbers.items()}, variance * effect
        z = t_quantile(0.5 + confidence / 2, found.groups - 1)
    observed = variance / (area * (1 - area)) if 0 < area < 1 else 0.0
    low, high = (newcombe_limit(area, end, z, numbers[1], numbers[0], observed) for end in (0.0, 1.0))
    for kind in (0, 1):
        units = clusters[kind] if groups is not None else None
        heaviest = max(weights) if units is None else 0.0
        mean = WeightedMean.of_units(shares[kind], 0.0, 1.0, groups=units, weights=heavy[kind], heaviest=heaviest)
        lower, upper = mean.interval(confidence)
        low, high = min(low, lower), max(high, upper)
    return replace(found, low=low, high=high)


def _design_effect(
    shares: dict[int, list[float]],
    weights: dict[int, list[float]],
    clusters: dict[int, list[Hashable]],
    area: float,
    variance: float,
) -> float:
    """The variance of an AUROC of clusters / that of independent cases, 1 or more.

    shares, weights, clusters: of the cases of each kind. variance: that of independent cases.
    """
    sums: dict[Hashable, float] = {}
    for kind in (0, 1):
        total = math.fsum(weights[kind])
        for share, weight, cluster in zip(shares[kind], weights[kind], clusters[kind], strict=True):
            sums[cluster] = sums.get(cluster, 0.0) + weight * (share - area) / total
    if variance <= 0:
        return (len(shares[0]) + len(shares[1])) / len(sums)
    own = math.fsum(each**2 for each in sums.values()) * len(sums) / (len(sums) - 1)
    return max(1.0, own / variance)


def _variance(shares: Sequence[float], weights: Sequence[float], mean: float) -> float:
    """The variance of a weighted mean: Σ (w (x - mean))² / (Σ w)² · n / (n - 1); 0 for a single share."""
    n = len(shares)
    if n < 2:
        return 0.0
    total = math.fsum(weights)
    squares = math.fsum((w / total * (x - mean)) ** 2 for x, w in zip(shares, weights, strict=True))
    return squares * n / (n - 1)
