"""Whether probabilities mean what they say, which threshold to use, and how to turn scores into probabilities.

    ECE   = Σ over bins of (cases in it / all) · |mean probability - share of positives|      [0, 1], lower is better
    Brier = mean of (probability - truth)²                                                    [0, 1], lower is better

Two mappings from a score to the probability of a positive: Platt's logistic curve has two parameters and suits few
cases; isotonic regression takes any shape that never falls and needs some hundreds. Both are plain values.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from evalstone.errors import DataError
from evalstone.stats.classification import MEASURES, Confusion
from evalstone.stats.intervals import Interval, check_confidence, proportion_interval
from evalstone.stats.ratios import farthest
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
"""Fewer resamples are drawn of more cases than this in all."""


@dataclass(frozen=True)
class Bin:
    """The cases whose probability is in [low, high); the last bin includes its upper end."""

    low: float
    high: float
    n: int
    """The number of cases."""
    probability: float
    """Their mean probability."""
    share: float
    """The share of positives among them."""
    interval: Interval | None
    """The share with its interval."""


def reliability(probabilities: Sequence[float], truths: Sequence[bool], *, bins: int = BINS) -> tuple[Bin, ...]:
    """The reliability diagram as data: bins of equal width over [0, 1], empty ones left out.

    Raises:
        DataError: Sequences of different lengths, a probability outside [0, 1], or fewer than one bin.
    """
    _check_probabilities(probabilities, truths)
    if bins < 1:
        raise DataError(f"bins must be 1 or more, not {bins}")
    members: dict[int, list[tuple[float, bool]]] = {}
    for probability, truth in zip(probabilities, truths, strict=True):
        members.setdefault(min(int(probability * bins), bins - 1), []).append((probability, truth))
    diagram: list[Bin] = []
    for place, cases in sorted(members.items()):
        n, positives = len(cases), sum(truth for _, truth in cases)
        mean = math.fsum(probability for probability, _ in cases) / n
        interval = proportion_interval(positives, n)
        diagram.append(Bin(place / bins, (place + 1) / bins, n, mean, positives / n, interval))
    return tuple(diagram)


def expected_calibration_error(
    probabilities: Sequence[float], truths: Sequence[bool], *, bins: int = BINS, confidence: float = 0.95
) -> Interval | None:
    """ECE: how far probabilities are from the observed shares, in [0, 1]; lower is better. None without a case.

    It is biased upward where bins have few cases: perfect probabilities of n cases give about √(bins / n) / 3, not 0.
    Its limits are not: samples are simulated whose bins are off by k times what they are here. The limits are the
    smallest and the largest ECE, over k, with which an ECE as high, or as low, as this one comes up in more than
    (1 - confidence) / 4 of 1,000 samples; a quarter, not half, since the directions of the errors are estimates too.
    Source of the estimate: Guo et al. 2017, with bins of equal width.

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
    low, high = _error_limits(diagram, n, estimate, (1 - confidence) / 4)
    return Interval(estimate, min(low, estimate), high, n, confidence, method="parametric bootstrap")


def _error_limits(diagram: Sequence[Bin], n: int, estimate: float, alpha: float) -> tuple[float, float]:
    import numpy as np  # noqa: PLC0415 - reading a calibration needs no numpy

    sizes = np.array([part.n for part in diagram])
    means = np.array([part.probability for part in diagram])
    # Half a case keeps bins from being certain: those whose cases are all alike, and those without an error.
    off = np.array([(part.n * part.share + 0.5) / (part.n + 1) for part in diagram]) - means
    off = np.where(np.abs(off) * (sizes + 1) < 0.5, np.where(means < 0.5, 0.5, -0.5) / (sizes + 1), off)

    def error(times: float) -> float:
        return float(sizes @ np.abs(np.clip(means + times * off, 0, 1) - means)) / n

    def simulated(times: float) -> NDArray[np.float64]:
        shares = np.clip(means + times * off, 0, 1)
        drawn = np.random.default_rng(0).binomial(sizes, shares, size=(SIMULATED, sizes.size))
        return np.abs(drawn / sizes - means) @ sizes / n

    def so_high(times: float) -> bool:
        return float(np.mean(simulated(times) >= estimate - 1e-12)) > alpha

    def so_low(times: float) -> bool:
        return float(np.mean(simulated(times) <= estimate + 1e-12)) > alpha

    # Where probabilities are near 0 or 1, the error may have room in the other direction only.
    low = (
        0.0 if so_high(0.0) else error(MOST_TIMES - farthest(lambda less: so_high(MOST_TIMES - less), 0.0, MOST_TIMES))
    )
    return low, max(error(farthest(so_low, 0.0, most)) for most in (MOST_TIMES, -MOST_TIMES))


def brier_score(probabilities: Sequence[float], truths: Sequence[bool]) -> float | None:
    """The mean squared error of probabilities, in [0, 1]; lower is better. None without a case. Source: Brier 1950.

    Raises:
        DataError: Sequences of different lengths, or a probability outside [0, 1].
    """
    _check_probabilities(probabilities, truths)
    if not probabilities:
        return None
    return math.fsum((p - t) ** 2 for p, t in zip(probabilities, truths, strict=True)) / len(probabilities)


def _check_probabilities(probabilities: Sequence[float], truths: Sequence[bool]) -> None:
    if len(probabilities) != len(truths):
        raise DataError(f"one truth per probability: {len(probabilities)} probabilities, {len(truths)} truths")
    for probability in probabilities:
        if not 0 <= probability <= 1:
            raise DataError(f"a probability must be in [0, 1], not {probability}")


def best_threshold(scores: Sequence[float], truths: Sequence[bool], measure: str) -> tuple[float, float] | None:
    """The threshold that maximizes a measure when scores at or above it count as yes, and the maximum.

    Candidates are the lowest score, which says yes to all; the midpoints between neighboring scores; and the midpoint
    between the highest score and 1, which says no to all. Of equals, the one with the widest gap around it wins, then
    the lowest. The maximum was chosen on these very cases and is optimistic: see `counts_on_new_cases`.

    Args:
        scores: Numbers in [0, 1]; scores that differ by rounding only are one.
        truths: Whether each case is positive.
        measure: A name in MEASURES.

    Returns:
        (threshold, value of the measure); None where the measure is undefined at every threshold.
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
    """Each threshold between the sorted cases, the gap around it, and the counts of its verdicts."""
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


def folds(truths: Sequence[bool], count: int, *, seed: int = 0) -> tuple[tuple[int, ...], ...]:
    """Stratified folds for cross-validation: the positions of the cases in each, at random.

    Fewer than `count` folds where a class has fewer cases than that, so that each training part has both classes; none
    where a class has fewer than two. The same call gives the same folds.
    """
    draw = random.Random(seed)
    classes = [[place for place, truth in enumerate(truths) if bool(truth) == kind] for kind in (True, False)]
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
    """For each case, the probability by a mapping fitted to the other folds; parts: as `folds` gives them."""
    probabilities = [math.nan] * len(scores)
    for part in parts:
        train = sorted(set(range(len(scores))) - set(part))
        mapping = fit([scores[i] for i in train], [truths[i] for i in train])
        for place in part:
            probabilities[place] = mapping(scores[place])
    return probabilities


def counts_on_new_cases(scores: Sequence[float], truths: Sequence[bool], measure: str) -> Confusion | None:
    """The counts to expect of as many new cases, judged by the threshold that is best on these.

    The counts on these cases are optimistic, by as much as a threshold that is best on a resample does better on that
    resample than on all cases: the mean of this over resamples (of positives and of negatives) is taken off sensitivity
    and specificity. Counts are whole numbers: of both classes together, the cases taken off are rounded up. Source:
    Efron and Gong 1983, The American Statistician 37(1).

    Args:
        scores: Numbers in [0, 1].
        truths: Whether each case is positive.
        measure: A name in MEASURES: what the threshold maximizes.

    Returns:
        The counts; the same for the same cases. None with fewer than two positives or negatives.
    """
    best = best_threshold(scores, truths, measure)
    classes = [[s for s, truth in zip(scores, truths, strict=True) if bool(truth) == kind] for kind in (True, False)]
    if best is None or min(map(len, classes)) < 2:
        return None
    draw = random.Random(0)
    resamples = min(RESAMPLES, max(FEWEST_RESAMPLES, MOST_DRAWN // len(scores)))
    marks = [True] * len(classes[0]) + [False] * len(classes[1])
    optimism: list[list[float]] = [[], []]
    for _ in range(resamples):
        drawn = [draw.choices(members, k=len(members)) for members in classes]
        chosen = best_threshold(drawn[0] + drawn[1], marks, measure)
        if chosen is None:
            continue
        for kind, (seen, members) in enumerate(zip(drawn, classes, strict=True)):
            optimism[kind].append(_reached(seen, chosen[0]) - _reached(members, chosen[0]))
    sizes = [len(members) for members in classes]
    yes = [round(size * _reached(members, best[0])) for size, members in zip(sizes, classes, strict=True)]
    gains = [math.fsum(found) / max(1, len(found)) for found in optimism]
    lost = _whole(sizes[0] * gains[0], -sizes[1] * gains[1])
    tp, fp = (min(max(0, yes[0] - lost[0]), sizes[0]), min(max(0, yes[1] + lost[1]), sizes[1]))
    return Confusion(tp, fp, len(classes[0]) - tp, len(classes[1]) - fp)


def _whole(one: float, other: float) -> tuple[int, int]:
    """Two numbers as whole ones whose sum is that of the numbers, rounded up."""
    parts = [math.floor(one), math.floor(other)]
    more = math.ceil(round(one + other, 9)) - sum(parts)
    first = 0 if one - parts[0] >= other - parts[1] else 1
    for place in (first, 1 - first)[:more]:
        parts[place] += 1
    return parts[0], parts[1]


def _reached(scores: Sequence[float], threshold: float) -> float:
    """The share of scores that reach a threshold."""
    return sum(reaches(score, threshold) for score in scores) / len(scores)


@dataclass(frozen=True)
class Platt:
    """probability = 1 / (1 + exp(-(slope · score + intercept))). Raises DataError for numbers that are not finite."""

    slope: float
    intercept: float
    kind: Literal["platt"] = "platt"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and math.isfinite(self.intercept)):
            raise DataError(f"slope and intercept must be finite numbers, not {self.slope} and {self.intercept}")

    def __call__(self, score: float) -> float:
        x = self.slope * score + self.intercept
        return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


@dataclass(frozen=True)
class Isotonic:
    """Straight lines between corners (score, probability) that never fall; constant beyond the first and last.

    Raises:
        DataError: There is no corner, scores don't rise, probabilities fall, or a number is out of range.
    """

    corners: tuple[tuple[float, float], ...]
    kind: Literal["isotonic"] = "isotonic"

    def __post_init__(self) -> None:
        rising = all(x0 < x1 and y0 <= y1 for (x0, y0), (x1, y1) in pairwise(self.corners))
        if not (self.corners and rising and all(math.isfinite(x) and 0 <= y <= 1 for x, y in self.corners)):
            raise DataError(f"an isotonic mapping has rising corners of score and probability, not {self.corners}")

    def __call__(self, score: float) -> float:
        at = bisect_left(self.corners, score, key=lambda corner: corner[0])
        if at == 0 or at == len(self.corners):
            return self.corners[min(at, len(self.corners) - 1)][1]
        (x0, y0), (x1, y1) = self.corners[at - 1], self.corners[at]
        return min(max(y0 + (y1 - y0) * ((score - x0) / (x1 - x0)), y0), y1)


Recalibration: TypeAlias = Platt | Isotonic
Fit: TypeAlias = Callable[[Sequence[float], Sequence[bool]], Recalibration]


def platt(scores: Sequence[float], truths: Sequence[bool]) -> Platt:
    """Platt scaling: the maximum likelihood logistic curve with Platt's targets.

    The targets (m + 1) / (m + 2) and 1 / (k + 2) replace 1 and 0, for m positives and k negatives, so that the curve
    stays finite when the scores separate the two. Newton's method with step halving, from slope 0.
    Sources: Platt 1999; Lin, Lin and Weng 2007.

    Raises:
        DataError: No case, or sequences of different lengths.
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
        # A little on the diagonal keeps the matrix regular where all scores are equal.
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
    """Isotonic regression: the rising steps of least squared error, joined by straight lines.

    Neighbors that fall are pooled; cases with the same score are pooled first. Sources: Ayer et al. 1955; Zadrozny and
    Elkan 2002.

    Raises:
        DataError: No case, or sequences of different lengths.
    """
    _check_cases(scores, truths)
    import numpy as np  # noqa: PLC0415 - as in `platt`
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - 0.3 s of import

    levels, places, counts = np.unique(np.asarray(scores, dtype=np.float64), return_inverse=True, return_counts=True)
    shares = np.bincount(places, weights=np.asarray(truths, dtype=np.float64)) / counts
    fitted = isotonic_regression(shares, weights=counts)
    corners: list[tuple[float, float]] = []
    for first, end in pairwise(fitted.blocks.tolist()):
        corners += [(float(levels[at]), float(fitted.x[at])) for at in dict.fromkeys((first, end - 1))]
    return Isotonic(tuple(corners))


def _check_cases(scores: Sequence[float], truths: Sequence[bool]) -> None:
    if len(scores) != len(truths):
        raise DataError(f"one truth per score: {len(scores)} scores, {len(truths)} truths")
    if not scores:
        raise DataError("a mapping can't be learned from no cases")
