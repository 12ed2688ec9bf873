"""Calibration: how well probabilities match outcomes, the best threshold, and recalibration of scores.

    ECE   = Σ over bins of (cases in the bin / all cases) · |mean probability - share of positives|
    Brier = mean of (probability - truth)²

Both are in [0, 1]; lower is better. Two mappings turn a score into the probability of a positive. Platt scaling fits a
logistic curve with two parameters and works with few cases. Isotonic regression fits any nondecreasing function and
needs a few hundred.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evalstone.errors import DataError, invalid
from evalstone.stats.classification import MEASURES, Confusion, MeasureName, check_truths
from evalstone.stats.intervals import Interval, check_confidence, mean_interval
from evalstone.stats.ratios import farthest
from evalstone.stats.special import t_quantile
from evalstone.types import TOLERANCE, reaches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BINS = 10
SIMULATED = 1000
MOST_TIMES = 64.0
RESAMPLES = 200
FEWEST_RESAMPLES = 20
MOST_DRAWN = 100_000
"""The largest number of cases to draw over all resamples; large datasets get fewer resamples."""


@dataclass(frozen=True, kw_only=True)
class Bin:
    """The cases whose probability is in [low, high); the last bin includes its upper end."""

    low: float
    """The lowest probability of the bin."""
    high: float
    """The upper end of the bin."""
    n: int
    """The number of cases."""
    probability: float
    """Their mean probability."""
    share: float
    """The share of positives among them."""
    interval: Interval | None
    """The share with its interval."""


def reliability(
    probabilities: Sequence[float],
    truths: Sequence[bool],
    *,
    bins: int = BINS,
    groups: Sequence[Hashable] | None = None,
) -> tuple[Bin, ...]:
    """The data of a reliability diagram: bins of equal width over [0, 1], without the empty ones.

    groups: One cluster label per case. None: all independent.

    Raises:
        DataError: The sequences differ in length, a probability is outside [0, 1], or bins is below 1.
    """
    _check_probabilities(probabilities, truths)
    if bins < 1:
        raise DataError(invalid("bins", "1 or more", bins))
    members: dict[int, list[tuple[float, bool, Hashable]]] = {}
    clusters: Sequence[Hashable] = range(len(truths)) if groups is None else groups
    for probability, truth, cluster in zip(probabilities, truths, clusters, strict=True):
        members.setdefault(_place(probability, bins), []).append((probability, truth, cluster))
    diagram: list[Bin] = []
    for place, cases in sorted(members.items()):
        n, positives = len(cases), sum(truth for _, truth, _ in cases)
        mean = math.fsum(probability for probability, _, _ in cases) / n
        of_bin = None if groups is None else [cluster for _, _, cluster in cases]
        interval = mean_interval([float(truth) for _, truth, _ in cases], low=0.0, high=1.0, groups=of_bin)
        diagram.append(
            Bin(
                low=place / bins, high=(place + 1) / bins, n=n, probability=mean, share=positives / n, interval=interval
            )
        )
    return tuple(diagram)


def _place(probability: float, bins: int) -> int:
    """The number of a probability's bin, from 0."""
    return min(int(probability * bins), bins - 1)


def _rows(probabilities: Sequence[float], bins: int) -> list[int]:
    """The place of each probability's bin in the diagram, which has no empty ones."""
    rows = {place: row for row, place in enumerate(sorted({_place(each, bins) for each in probabilities}))}
    return [rows[_place(each, bins)] for each in probabilities]


def expected_calibration_error(
    probabilities: Sequence[float],
    truths: Sequence[bool],
    *,
    bins: int = BINS,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Interval | None:
    """Expected calibration error, in [0, 1]; lower is better. None without cases.

        ECE = Σ over bins of (cases in the bin / all cases) · |mean probability - share of positives|

    The estimate is biased upward if bins have few cases: perfect probabilities of n cases give about
    √(bins / n) / 3, not 0. The limits allow for this. They are from a parametric bootstrap in which each bin's error is
    k times the observed one. The limits are the smallest and the largest true ECE, over k, for which an estimate at
    least this high, or at most this low, occurs in more than (1 - confidence) / 4 of 1,000 simulated samples. It is a
    quarter instead of half because the signs of the errors are estimates too.
    Source of the estimate: Guo et al. 2017, with bins of equal width.

    With clusters, there are two such simulations, and the limits are the outer ones of both. In one, each bin has its
    number of cases divided by the design effect, one case or more: the variance that the clusters' sums of (truth -
    share of the bin) show / that of independent cases, 1 or more. If all cases of each bin have the same truth, it is
    the mean number of cases of a cluster. The other is a wild bootstrap: the shares of all bins are off by the
    clusters' sums times normal numbers, so that a cluster moves its bins together. A sum is divided by √(1 - the
    cluster's part of the bin), as in CR2, and multiplied by Student's quantile with clusters - 1 degrees of freedom
    over the normal one. A single cluster shows nothing: its limits are 0 and 1.

    Args:
        probabilities: Numbers in [0, 1].
        truths: Whether each case is positive.
        bins: The number of bins.
        groups: One cluster label per case; cases of one cluster may depend on each other. None: all independent.
        confidence: The confidence level, in (0, 1).

    Raises:
        DataError: As `reliability` does.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    diagram = reliability(probabilities, truths, bins=bins)
    n = sum(part.n for part in diagram)
    if not n:
        return None
    estimate = math.fsum(part.n * abs(part.probability - part.share) for part in diagram) / n
    alpha = (1 - confidence) / 4
    if groups is None:
        low, high = _error_limits(diagram, estimate, alpha)
    elif len(set(groups)) == 1:
        low, high = 0.0, 1.0
    else:
        places = _rows(probabilities, bins)
        effect = _design_effect(diagram, places, truths, groups)
        found = (
            _error_limits(diagram, estimate, alpha, effect),
            _wild_limits(diagram, estimate, alpha, places, truths, groups),
        )
        low, high = min(low for low, _ in found), max(high for _, high in found)
    return Interval(
        estimate=estimate,
        low=min(low, estimate),
        high=max(high, estimate),
        n=n,
        confidence=confidence,
        groups=None if groups is None else len(set(groups)),
        method="parametric bootstrap",
    )


def _design_effect(
    diagram: Sequence[Bin], places: Sequence[int], truths: Sequence[bool], groups: Sequence[Hashable]
) -> float:
    """The variance of the bins' shares with clusters / that with independent cases; the larger one of bin by bin and of
    all bins together. places: of each case's bin in the diagram."""
    of_bins: dict[tuple[Hashable, int], float] = {}
    of_clusters: dict[Hashable, float] = {}
    alone = 0.0
    for place, truth, group in zip(places, truths, groups, strict=True):
        off = truth - diagram[place].share
        of_bins[group, place] = of_bins.get((group, place), 0.0) + off
        of_clusters[group] = of_clusters.get(group, 0.0) + off
        alone += off * off
    if alone <= TOLERANCE:
        return len(truths) / len(of_clusters)
    own = max(math.fsum(each * each for each in sums.values()) for sums in (of_bins, of_clusters))
    return max(1.0, own / alone)


def _error_limits(diagram: Sequence[Bin], estimate: float, alpha: float, effect: float = 1.0) -> tuple[float, float]:
    """The limits if the cases of a bin are independent, and as many as there are, divided by the design effect."""
    import numpy as np  # noqa: PLC0415 - reading a calibration needs no numpy

    sizes = np.maximum(1, np.rint(np.array([part.n for part in diagram]) / effect)).astype(np.int64)

    def drawn(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.random.default_rng(0).binomial(sizes, shares, size=(SIMULATED, sizes.size)) / sizes

    return _searched(diagram, estimate, alpha, sizes, drawn)


def _wild_limits(
    diagram: Sequence[Bin],
    estimate: float,
    alpha: float,
    places: Sequence[int],
    truths: Sequence[bool],
    groups: Sequence[Hashable],
) -> tuple[float, float]:
    """The limits by a wild bootstrap over clusters, of which there are two or more."""
    import numpy as np  # noqa: PLC0415 - as above

    rows = {group: row for row, group in enumerate(dict.fromkeys(groups))}
    sums, cases = np.zeros((2, len(rows), len(diagram)))
    for place, truth, group in zip(places, truths, groups, strict=True):
        sums[rows[group], place] += truth - diagram[place].share
        cases[rows[group], place] += 1
    every = cases.sum(axis=0)
    part = cases / every
    scaled = sums / np.sqrt(np.where(part < 1, 1 - part, 1.0))  # the sum over a cluster with a bin of its own is 0
    wider = t_quantile(1 - alpha, len(rows) - 1) / NormalDist().inv_cdf(1 - alpha)
    weights = np.random.default_rng(0).normal(size=(SIMULATED, len(rows)))
    off: NDArray[np.float64] = wider * (weights @ scaled) / every

    def drawn(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(shares + off, 0, 1)

    return _searched(diagram, estimate, alpha, every, drawn)


def _searched(
    diagram: Sequence[Bin],
    estimate: float,
    alpha: float,
    sizes: NDArray[Any],
    drawn: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> tuple[float, float]:
    """The smallest and the largest error for which an estimate like this one isn't rare.

    sizes: the independent cases of each bin. drawn: simulated shares, by the true ones.
    """
    import numpy as np  # noqa: PLC0415 - as above

    every = np.array([part.n for part in diagram])
    n = int(every.sum())
    means = np.array([part.probability for part in diagram])
    # Half a case of smoothing, for bins whose cases are all positive or all negative, and for bins without an error.
    shares_seen = np.array([part.share for part in diagram])
    off = (sizes * shares_seen + 0.5) / (sizes + 1) - means
    off = np.where(np.abs(off) * (sizes + 1) < 0.5, np.where(means < 0.5, 0.5, -0.5) / (sizes + 1), off)

    def error(times: float) -> float:
        return float(every @ np.abs(np.clip(means + times * off, 0, 1) - means)) / n

    def simulated(times: float) -> NDArray[np.float64]:
        return np.abs(drawn(np.clip(means + times * off, 0, 1)) - means) @ every / n

    def reaches_estimate(times: float) -> bool:
        return float(np.mean(simulated(times) >= estimate - 1e-12)) > alpha

    def stays_at_estimate(times: float) -> bool:
        return float(np.mean(simulated(times) <= estimate + 1e-12)) > alpha

    low = 0.0
    if not reaches_estimate(0.0):
        low = error(MOST_TIMES - farthest(lambda less: reaches_estimate(MOST_TIMES - less), 0.0, MOST_TIMES))
    # With probabilities near 0 or 1, larger errors may be possible in the opposite direction only, so try both.
    return low, max(error(farthest(stays_at_estimate, 0.0, most)) for most in (MOST_TIMES, -MOST_TIMES))


def brier_score(probabilities: Sequence[float], truths: Sequence[bool]) -> float | None:
    """The Brier score: mean of (probability - truth)², in [0, 1]; lower is better. None without cases.

    Source: Brier 1950.

    Raises:
        DataError: The sequences differ in length, or a probability is outside [0, 1].
    """
    _check_probabilities(probabilities, truths)
    if not probabilities:
        return None
    return math.fsum((p - t) ** 2 for p, t in zip(probabilities, truths, strict=True)) / len(probabilities)


def _check_probabilities(probabilities: Sequence[float], truths: Sequence[bool]) -> None:
    check_truths("probability", probabilities, truths, "probabilities")
    for probability in probabilities:
        if not 0 <= probability <= 1:
            raise DataError(invalid("a probability", "in [0, 1]", probability))


def best_threshold(scores: Sequence[float], truths: Sequence[bool], measure: MeasureName) -> tuple[float, float] | None:
    """The threshold that maximizes a measure, and the maximum. Scores at or above the threshold count as yes.

    Candidates are the lowest score (every verdict is yes), the midpoints between neighboring scores, and the midpoint
    between the highest score and 1 (every verdict is no). Ties go to the threshold with the widest gap around it, then
    to the lowest. The maximum is optimistic, because the threshold was chosen on the same cases; see
    `counts_on_new_cases`.

    Args:
        scores: Numbers in [0, 1]. Scores that differ by rounding error only count as equal.
        truths: Whether each case is positive.
        measure: A name in MEASURES.

    Returns:
        (threshold, value of the measure); None if the measure is undefined at every threshold.
    """
    value_of = MEASURES[measure]
    best: tuple[float, float, float] | None = None
    for threshold, gap, counts in _cuts(sorted(zip(scores, truths, strict=True), key=lambda pair: pair[0])):
        value = value_of(counts)
        candidate = None if value is None else (value, gap, -threshold)
        if candidate is not None and (best is None or candidate > best):
            best = candidate
    return None if best is None else (-best[2], best[0])


def _cuts(by_score: Sequence[tuple[float, bool]]) -> Iterator[tuple[float, float, Confusion]]:
    """Each candidate threshold, the gap between the scores around it, and its confusion counts."""
    if not by_score:
        return
    positives = sum(bool(truth) for _, truth in by_score)
    negatives = len(by_score) - positives
    before = by_score[0][0]
    yield before, 0.0, Confusion(tp=positives, fp=negatives)
    missed = rejected = 0  # positives and negatives below the threshold
    for score, truth in [*by_score, (1.0, False)]:
        if score - before > TOLERANCE:
            counts = Confusion(positives - missed, negatives - rejected, missed, rejected)
            yield (before + score) / 2, score - before, counts
        before, missed, rejected = score, missed + bool(truth), rejected + (not truth)


def folds(
    truths: Sequence[bool], count: int, *, groups: Sequence[Hashable] | None = None, seed: int = 0
) -> tuple[tuple[int, ...], ...]:
    """Random folds for cross-validation: the positions of the cases in each fold.

    Without groups, folds are stratified. If a class has fewer than `count` cases, there are only as many folds as it
    has cases, so that each training set has both classes. If a class has fewer than two, there are none. With groups,
    the cases of one are in one fold, and folds have about the same size; there are none with a single group. The same
    arguments give the same folds.
    """
    draw = random.Random(seed)
    if groups is not None:
        members: dict[Hashable, list[int]] = {}
        for place, group in enumerate(groups):
            members.setdefault(group, []).append(place)
        clusters = list(members.values())
        draw.shuffle(clusters)
        filled: list[list[int]] = [[] for _ in range(min(count, len(clusters)))]
        for cluster in sorted(clusters, key=len, reverse=True):
            min(filled, key=len).extend(cluster)
        return tuple(tuple(sorted(part)) for part in filled) if len(filled) > 1 else ()
    classes = [[place for place, truth in enumerate(truths) if bool(truth) == label] for label in (True, False)]
    count = min(count, *map(len, classes))
    if count < 2:
        return ()
    for places in classes:
        draw.shuffle(places)
    dealt = classes[0] + classes[1]
    return tuple(tuple(sorted(dealt[start::count])) for start in range(count))


def cross_validated(
    fit: Fit, scores: Sequence[float], truths: Sequence[bool], parts: Sequence[Sequence[int]]
) -> list[float]:
    """Out-of-fold probabilities: each case's, by a mapping fitted to the other folds. parts: see `folds`."""
    probabilities = [math.nan] * len(scores)
    for part in parts:
        train = sorted(set(range(len(scores))) - set(part))
        mapping = fit([scores[i] for i in train], [truths[i] for i in train])
        for place in part:
            probabilities[place] = mapping(scores[place])
    return probabilities


def counts_on_new_cases(
    scores: Sequence[float],
    truths: Sequence[bool],
    measure: MeasureName,
    *,
    groups: Sequence[Hashable] | None = None,
) -> Confusion | None:
    """The confusion counts to expect on as many new cases, at the threshold that is best on these cases.

    Counts on the cases that the threshold was chosen on are optimistic. The optimism is estimated by the bootstrap: how
    much better the best threshold of a resample does on that resample than on all cases, on average over resamples
    (stratified by class; with groups, of whole groups). It is subtracted from sensitivity and specificity. Counts are
    integers; the total number of cases subtracted is rounded up. Source: Efron and Gong 1983, The American Statistician
    37(1).

    Args:
        scores: Numbers in [0, 1].
        truths: Whether each case is positive.
        measure: The measure that the threshold maximizes, a name in MEASURES.
        groups: One cluster label per case; cases of one cluster may depend on each other. None: all independent.

    Returns:
        The counts, deterministic. None with fewer than two positives or two negatives.
    """
    best = best_threshold(scores, truths, measure)
    classes = [[s for s, truth in zip(scores, truths, strict=True) if bool(truth) == label] for label in (True, False)]
    if best is None or min(map(len, classes)) < 2:
        return None
    resamples = min(RESAMPLES, max(FEWEST_RESAMPLES, MOST_DRAWN // len(scores)))
    optimism: list[list[float]] = [[], []]
    for drawn in _resamples(classes, resamples, _of_groups(scores, truths, groups)):
        labels = [True] * len(drawn[0]) + [False] * len(drawn[1])
        chosen = best_threshold([*drawn[0], *drawn[1]], labels, measure) if all(drawn) else None
        if chosen is None:
            continue
        for gains, resample, members in zip(optimism, drawn, classes, strict=True):
            gains.append(_share_at_or_above(resample, chosen[0]) - _share_at_or_above(members, chosen[0]))
    sizes = [len(members) for members in classes]
    yes = [round(size * _share_at_or_above(members, best[0])) for size, members in zip(sizes, classes, strict=True)]
    of_positives, of_negatives = (math.fsum(gains) / max(1, len(gains)) for gains in optimism)
    lost = _integers(sizes[0] * of_positives, -sizes[1] * of_negatives)
    tp, fp = (min(max(0, yes[0] - lost[0]), sizes[0]), min(max(0, yes[1] + lost[1]), sizes[1]))
    return Confusion(tp, fp, len(classes[0]) - tp, len(classes[1]) - fp)


def _of_groups(
    scores: Sequence[float], truths: Sequence[bool], groups: Sequence[Hashable] | None
) -> Sequence[Sequence[tuple[float, bool]]]:
    """The cases of each group; empty without groups."""
    members: dict[Hashable, list[tuple[float, bool]]] = {}
    for score, truth, group in zip(scores, truths, groups or (), strict=groups is not None):
        members.setdefault(group, []).append((score, truth))
    return [*members.values()]


def _resamples(
    classes: Sequence[Sequence[float]], count: int, clusters: Sequence[Sequence[tuple[float, bool]]]
) -> Iterator[Sequence[Sequence[float]]]:
    """The scores of the positives and of the negatives in each resample: of each class, or of whole clusters."""
    draw = random.Random(0)
    for _ in range(count):
        if clusters:
            cases = [case for cluster in draw.choices(clusters, k=len(clusters)) for case in cluster]
            yield [[score for score, truth in cases if truth == kind] for kind in (True, False)]
        else:
            yield [draw.choices(members, k=len(members)) for members in classes]


def _integers(a: float, b: float) -> tuple[int, int]:
    """Two numbers rounded to integers whose sum is a + b, rounded up (largest remainder method)."""
    parts = [math.floor(a), math.floor(b)]
    more = math.ceil(round(a + b, 9)) - sum(parts)
    first = 0 if a - parts[0] >= b - parts[1] else 1
    for place in (first, 1 - first)[:more]:
        parts[place] += 1
    return parts[0], parts[1]


def _share_at_or_above(scores: Sequence[float], threshold: float) -> float:
    """The share of scores that reach the threshold, up to rounding error."""
    return sum(reaches(score, threshold) for score in scores) / len(scores)


@dataclass(frozen=True)
class Platt:
    """A logistic curve: probability = 1 / (1 + exp(-(slope · score + intercept))).

    Raises:
        DataError: slope or intercept is not finite.
    """

    slope: float
    """The change of the log odds per unit of score / scale."""
    intercept: float
    """The log odds at a score of 0."""
    kind: Literal["platt"] = "platt"
    """Which mapping it is: "platt"."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and math.isfinite(self.intercept)):
            raise DataError(f"slope and intercept must be finite numbers, not {self.slope} and {self.intercept}")

    def __call__(self, score: float) -> float:
        x = self.slope * score + self.intercept
        return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


@dataclass(frozen=True)
class Isotonic:
    """A nondecreasing, piecewise linear function through corners (score, probability), constant beyond both ends.

    Raises:
        DataError: There are no corners, scores don't increase, probabilities decrease, a score is not finite, or a
            probability is outside [0, 1].
    """

    corners: tuple[tuple[float, float], ...]
    """Pairs of score / scale and probability, in rising order."""
    kind: Literal["isotonic"] = "isotonic"
    """Which mapping it is: "isotonic"."""

    def __post_init__(self) -> None:
        rising = all(x0 < x1 and y0 <= y1 for (x0, y0), (x1, y1) in pairwise(self.corners))
        if not (self.corners and rising and all(math.isfinite(x) and 0 <= y <= 1 for x, y in self.corners)):
            raise DataError(f"an isotonic mapping has rising corners of score and probability, not {self.corners}")

    def __call__(self, score: float) -> float:
        place = bisect_left(self.corners, score, key=lambda corner: corner[0])
        if place == 0 or place == len(self.corners):
            return self.corners[min(place, len(self.corners) - 1)][1]
        (x0, y0), (x1, y1) = self.corners[place - 1], self.corners[place]
        return min(max(y0 + (y1 - y0) * ((score - x0) / (x1 - x0)), y0), y1)


@dataclass(frozen=True)
class Scaled:
    """Temperature scaling around a threshold: 1 / (1 + exp(-(logit(p) - logit(threshold)) / temperature)).

    It is 0.5 at the threshold. Sources: Guo et al. 2017; with a threshold, Platt scaling of the log odds.

    Raises:
        DataError: The threshold is not between 0 and 1, or the temperature not above 0.
    """

    threshold: float = 0.5
    """The probability that is mapped to 0.5."""
    temperature: float = 1.0
    """Above 1 makes probabilities less certain, below 1 more."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1 or not 0 < self.temperature < math.inf:
            raise DataError(
                f"a threshold in (0, 1) and a temperature above 0, not {self.threshold}, {self.temperature}"
            )

    def __call__(self, probability: float) -> float:
        if self == Scaled():
            return probability
        x = (log_odds(probability) - log_odds(self.threshold)) / self.temperature
        return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


MOST_CERTAIN = 1e-9
"""The least distance of a probability from 0 and 1 in log odds."""
TEMPERATURES = (0.05, 20.0)
"""The range of fitted temperatures."""


def log_odds(probability: float) -> float:
    """log(p / (1 - p)), of a p that is at least 10⁻⁹ away from 0 and 1."""
    p = min(max(probability, MOST_CERTAIN), 1 - MOST_CERTAIN)
    return math.log(p / (1 - p))


def scaled(probabilities: Sequence[float], truths: Sequence[bool], threshold: float = 0.5) -> Scaled:
    """Temperature scaling around a threshold: the temperature of maximum likelihood, with Platt's targets.

    Raises:
        DataError: There are no cases, or the sequences differ in length.
    """
    _check_cases(probabilities, truths)
    import numpy as np  # noqa: PLC0415 - as in `platt`

    z = np.array([log_odds(p) for p in probabilities]) - log_odds(threshold)
    yes = np.asarray(truths, dtype=np.bool_)
    positives, negatives = int(yes.sum()), int((~yes).sum())
    targets = np.where(yes, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    low, high = 1 / TEMPERATURES[1], 1 / TEMPERATURES[0]  # of the slope: the slope of the loss rises with it
    for _ in range(40):
        middle = math.sqrt(low * high)
        rises = float(((1 + np.tanh(middle * z / 2)) / 2 - targets) @ z) > 0
        low, high = (low, middle) if rises else (middle, high)
    return Scaled(threshold, 1 / math.sqrt(low * high))


Recalibration: TypeAlias = Platt | Isotonic
Fit: TypeAlias = Callable[[Sequence[float], Sequence[bool]], Recalibration]


def platt(scores: Sequence[float], truths: Sequence[bool]) -> Platt:
    """Platt scaling: a logistic curve fitted by maximum likelihood with Platt's targets.

    With m positives and k negatives, the targets (m + 1) / (m + 2) and 1 / (k + 2) replace 1 and 0, so the curve stays
    finite if the scores separate the classes. Newton's method with step halving, starting at slope 0.
    Sources: Platt 1999; Lin, Lin and Weng 2007.

    Raises:
        DataError: There are no cases, or the sequences differ in length.
    """
    _check_cases(scores, truths)
    import numpy as np  # noqa: PLC0415 - reading a calibration needs no numpy

    x, yes = np.asarray(scores, dtype=np.float64), np.asarray(truths, dtype=np.bool_)
    positives, negatives = int(yes.sum()), int((~yes).sum())
    targets = np.where(yes, (positives + 1) / (positives + 2), 1 / (negatives + 2))

    def loss(slope: float, intercept: float) -> float:
        z = slope * x + intercept
        return float(np.sum(np.logaddexp(0.0, z) - targets * z))

    slope, intercept = 0.0, math.log((positives + 1) / (negatives + 1))
    now = loss(slope, intercept)
    for _ in range(100):
        p = (1 + np.tanh((slope * x + intercept) / 2)) / 2
        gradient, weights = p - targets, p * (1 - p)
        g0, g1 = float(gradient @ x), float(gradient.sum())
        # Regularized, because the Hessian is singular if all scores are equal.
        h00, h01, h11 = 1e-12 + float(weights @ x**2), float(weights @ x), 1e-12 + float(weights.sum())
        determinant = h00 * h11 - h01 * h01
        by_slope, by_intercept = (h11 * g0 - h01 * g1) / determinant, (h00 * g1 - h01 * g0) / determinant
        if abs(by_slope) <= 1e-12 * (1 + abs(slope)) and abs(by_intercept) <= 1e-12 * (1 + abs(intercept)):
            break
        step, after = 1.0, loss(slope - by_slope, intercept - by_intercept)
        while after >= now and step > 1e-10:
            step /= 2
            after = loss(slope - step * by_slope, intercept - step * by_intercept)
        if after >= now:
            break
        slope, intercept, now = slope - step * by_slope, intercept - step * by_intercept, after
    return Platt(slope, intercept)


def isotonic(scores: Sequence[float], truths: Sequence[bool]) -> Isotonic:
    """Isotonic regression: the nondecreasing step function of least squared error, its steps joined by straight lines.

    Cases with equal scores are pooled first; then pool adjacent violators. Sources: Ayer et al. 1955; Zadrozny and
    Elkan 2002.

    Raises:
        DataError: There are no cases, or the sequences differ in length.
    """
    _check_cases(scores, truths)
    import numpy as np  # noqa: PLC0415 - as in `platt`

    levels, places, counts = np.unique(np.asarray(scores, dtype=np.float64), return_inverse=True, return_counts=True)
    hits = np.bincount(places, weights=np.asarray(truths, dtype=np.float64))
    blocks: list[tuple[float, float, float, float]] = []
    for level, true, count in zip(levels.tolist(), hits.tolist(), counts.tolist(), strict=True):
        first, last, positives, cases = level, level, true, count
        while blocks and blocks[-1][2] * cases >= positives * blocks[-1][3]:  # its share isn't smaller
            first, _, before, others = blocks.pop()
            positives, cases = positives + before, cases + others
        blocks.append((first, last, positives, cases))
    return Isotonic(
        tuple((level, true / cases) for first, last, true, cases in blocks for level in dict.fromkeys((first, last)))
    )


def _check_cases(scores: Sequence[float], truths: Sequence[bool]) -> None:
    check_truths("score", scores, truths)
    if not scores:
        raise DataError("need at least one case to fit a mapping")
