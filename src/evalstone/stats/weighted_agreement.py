"""Agreement of verdicts and scores with labels of samples that were drawn with unequal probability.

A sample's weight is the number of samples that it stands for: in a stratum of N samples of which n are labeled, N / n.
The measures are those of `classification`, with sums of weights in place of counts, so they estimate the measures of
all samples. Strata without a label are not part of them.

    sensitivity = Σ w over true positives / Σ w over positives, and so on

Rates are weighted means over the samples of their denominator, with the limits of `WeightedMean`. Unseen samples count
with the largest weight of all labels, also where the denominator has no sample as heavy. Kappa is a ratio of weighted
means (`ratio_limits`). Balanced accuracy combines the limits of sensitivity and specificity.

Limits treat labels as drawn one by one, not by strata. That makes them somewhat too wide, never too narrow, because it
counts the differences between strata as chance.
Sources: Kish 1965, Survey Sampling; Begg and Greenes 1983, Biometrics 39(1), for rates of a test whose verification
depends on its result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from statistics import NormalDist

from evalstone.stats.classification import average, check_truths, f1_of, newcombe_limit
from evalstone.stats.intervals import GAFFKE, Interval, check_confidence, check_weights
from evalstone.stats.ratios import FIELLER, Parts, ratio_limits
from evalstone.stats.weighted_mean import WeightedMean, effective_number, weighted_average


def weighted_share(
    inside: Sequence[bool], part: Sequence[bool], weights: Sequence[float], *, confidence: float = 0.95
) -> Interval | None:
    """Σ w over samples that are in the whole and in the part / Σ w over samples in the whole, with its interval.

    Args:
        inside: Whether each sample is in the whole.
        part: Whether it is in the part.
        weights: Its weight, above 0.
        confidence: The confidence level, in (0, 1).

    Returns:
        The share in [0, 1]; None if no sample is in the whole.

    Raises:
        DataError: A weight is not above 0.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    check_weights(weights)
    known = [(float(y), w) for x, y, w in zip(inside, part, weights, strict=True) if x]
    if not known:
        return None
    values, of = zip(*known, strict=True)
    return _mean(values, of, max(weights), confidence)


def _mean(values: Sequence[float], weights: Sequence[float], heaviest: float, confidence: float) -> Interval:
    found = WeightedMean.of_units(values, 0.0, 1.0, weights=weights, heaviest=heaviest)
    low, high = found.interval(confidence)
    return Interval(
        estimate=found.mean,
        low=low,
        high=high,
        n=len(values),
        confidence=confidence,
        effective=effective_number(weights),
        method=GAFFKE,
    )


def weighted_measures(
    verdicts: Sequence[bool], truths: Sequence[bool], weights: Sequence[float], *, confidence: float = 0.95
) -> dict[str, Interval | None]:
    """Every measure of MEASURES for all samples that the labeled ones stand for, with its interval; None if undefined.

    Args:
        verdicts: The verdict of each labeled sample.
        truths: Its label.
        weights: Its weight, above 0.
        confidence: The confidence level, in (0, 1).

    Raises:
        DataError: The sequences differ in length, or a weight is not above 0.
        ConfigError: confidence is outside (0, 1).
    """
    check_truths("verdict", verdicts, truths)
    check_truths("weight", weights, truths)
    right = [verdict == truth for verdict, truth in zip(verdicts, truths, strict=True)]
    wrong_or_yes = [verdict or truth for verdict, truth in zip(verdicts, truths, strict=True)]

    def share(inside: Sequence[bool]) -> Interval | None:
        return weighted_share(inside, right, weights, confidence=confidence)

    sensitivity, specificity = share(truths), share([not truth for truth in truths])
    return {
        "balanced_accuracy": average(sensitivity, specificity),
        "accuracy": share([True] * len(right)),
        "f1": f1_of(share(wrong_or_yes)),
        "kappa": _kappa(verdicts, truths, weights, confidence),
        "sensitivity": sensitivity,
        "specificity": specificity,
        "precision": share(verdicts),
    }


def _kappa(
    verdicts: Sequence[bool], truths: Sequence[bool], weights: Sequence[float], confidence: float
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

    heaviest = max(weights)
    units = [parts(*each) for each in zip(verdicts, truths, [w / heaviest for w in weights], strict=True)]
    disagreement = math.fsum(d for d, _ in units) / math.fsum(e for _, e in units)
    found = Interval(estimate=1 - disagreement, low=None, high=None, n=n, confidence=confidence)
    if n < 2:
        return found
    possible = [parts(verdict, truth, 1.0) for verdict in (False, True) for truth in (False, True)]
    low, high = ratio_limits(units, possible, low=0.0, high=max(2.0, disagreement), confidence=confidence)
    return replace(found, low=1 - high, high=1 - low, effective=effective_number(weights), method=FIELLER)


def weighted_auroc(
    scores: Sequence[float], truths: Sequence[bool], weights: Sequence[float], *, confidence: float = 0.95
) -> Interval | None:
    """The area under the ROC curve of all samples that the labeled ones stand for, with its interval.

        AUROC = Σ w(+) w(-) [higher + tied / 2] / (Σ w(+) · Σ w(-)),   over pairs of a positive and a negative

    The limits are the widest of the three of `auroc`, with weights: the means over positives and over negatives are
    weighted, and Newcombe's method has the effective numbers (Σ w)² / Σ w² of positives and negatives.

    Args:
        scores: One score per case, in any unit; higher means more likely positive.
        truths: Whether each case is positive.
        weights: Its weight, above 0.
        confidence: The confidence level, in (0, 1).

    Returns:
        The area in [0, 1]; 0.5 is chance, higher is better. None without a positive or a negative.

    Raises:
        DataError: The sequences differ in length, or a weight is not above 0.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    check_truths("score", scores, truths)
    check_truths("weight", weights, truths)
    check_weights(weights)
    total = {kind: math.fsum(w for w, truth in zip(weights, truths, strict=True) if truth == kind) for kind in (0, 1)}
    if not total[0] or not total[1]:
        return None
    seen = {0: 0.0, 1: 0.0}
    shares: dict[int, list[float]] = {0: [], 1: []}  # of a negative, the positives above it; of a positive, below
    heavy: dict[int, list[float]] = {0: [], 1: []}
    cases = sorted(zip(scores, truths, weights, strict=True), key=lambda case: case[0])
    for _, tied in groupby(cases, key=lambda case: case[0]):
        group = [(int(truth), weight) for _, truth, weight in tied]
        here = {kind: math.fsum(weight for truth, weight in group if truth == kind) for kind in (0, 1)}
        for truth, weight in group:
            below = (seen[1 - truth] + here[1 - truth] / 2) / total[1 - truth]
            shares[truth].append(min(1.0, below if truth else 1 - below))
            heavy[truth].append(weight)
        seen = {kind: seen[kind] + here[kind] for kind in (0, 1)}
    area = min(1.0, weighted_average(heavy[1], shares[1]))
    numbers = {kind: effective_number(heavy[kind]) or float(len(heavy[kind])) for kind in (0, 1)}
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    observed = 0.0
    if 0 < area < 1:
        variance = math.fsum(_variance(shares[kind], heavy[kind], area) for kind in (0, 1))
        observed = variance / (area * (1 - area))
    low, high = (newcombe_limit(area, end, z, numbers[1], numbers[0], observed) for end in (0.0, 1.0))
    for kind in (0, 1):
        mean = WeightedMean.of_units(shares[kind], 0.0, 1.0, weights=heavy[kind], heaviest=max(weights))
        lower, upper = mean.interval(confidence)
        low, high = min(low, lower), max(high, upper)
    return Interval(
        estimate=area,
        low=low,
        high=high,
        n=len(truths),
        confidence=confidence,
        effective=effective_number(weights),
        method=f"Newcombe, {GAFFKE}",
    )


def _variance(shares: Sequence[float], weights: Sequence[float], mean: float) -> float:
    """The variance of a weighted mean: Σ (w (x - mean))² / (Σ w)² · n / (n - 1); 0 for a single share."""
    n = len(shares)
    if n < 2:
        return 0.0
    total = math.fsum(weights)
    squares = math.fsum((w / total * (x - mean)) ** 2 for x, w in zip(shares, weights, strict=True))
    return squares * n / (n - 1)
