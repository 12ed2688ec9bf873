"""Whether probabilities mean what they say, and how to make scores mean it. Pure functions.

ECE   = Σ over bins of (cases in it / all) * |mean probability - share of positives|      [0, 1], lower is better
Brier = mean of (probability - truth)²                                                    [0, 1], lower is better
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from evalstone.errors import DataError
from evalstone.stats.classification import MEASURES, Confusion
from evalstone.stats.intervals import Interval
from evalstone.stats.proportions import wilson_interval
from evalstone.stats.recalibration import Recalibration

BINS = 10
ROUNDING = 1e-9
Fit = Callable[[Sequence[float], Sequence[bool]], Recalibration]


@dataclass(frozen=True)
class Bin:
    """The cases whose probability lies in [low, high): how many, their mean probability, and the share of positives
    with Wilson's interval. The last bin holds its upper end as well."""

    low: float
    high: float
    n: int
    probability: float
    share: float
    interval: Interval | None


def reliability(probabilities: Sequence[float], truths: Sequence[bool], *, bins: int = BINS) -> tuple[Bin, ...]:
    """The reliability diagram as data: bins of equal width over [0, 1], those without a case left out.

    Raises DataError for sequences of different lengths, a probability outside [0, 1], and fewer than one bin.
    """
    _check(probabilities, truths)
    if bins < 1:
        raise DataError(f"bins must be 1 or more, not {bins}")
    held: dict[int, list[tuple[float, bool]]] = {}
    for probability, truth in zip(probabilities, truths, strict=True):
        held.setdefault(min(int(probability * bins), bins - 1), []).append((probability, truth))
    found: list[Bin] = []
    for place, cases in sorted(held.items()):
        n, positives = len(cases), sum(truth for _, truth in cases)
        mean = math.fsum(probability for probability, _ in cases) / n
        share = wilson_interval(positives, n)
        found.append(Bin(place / bins, (place + 1) / bins, n, mean, positives / n, share))
    return tuple(found)


def expected_calibration_error(
    probabilities: Sequence[float], truths: Sequence[bool], *, bins: int = BINS
) -> float | None:
    """How far probabilities are from the shares that come true, in [0, 1]; 0 is best. None without a case.

    It leans upwards where bins hold few cases: perfect probabilities of n cases give about √(bins / n) / 3, not 0.
    Raises DataError as `reliability` does. Source: Guo et al. 2017, with bins of equal width.
    """
    found = reliability(probabilities, truths, bins=bins)
    if not found:
        return None
    n = sum(one.n for one in found)
    return math.fsum(one.n * abs(one.probability - one.share) for one in found) / n


def brier_score(probabilities: Sequence[float], truths: Sequence[bool]) -> float | None:
    """The mean squared distance of probabilities from what came true, in [0, 1]; 0 is best. None without a case.

    Raises DataError for sequences of different lengths and a probability outside [0, 1]. Source: Brier 1950.
    """
    _check(probabilities, truths)
    if not probabilities:
        return None
    return math.fsum((p - t) ** 2 for p, t in zip(probabilities, truths, strict=True)) / len(probabilities)


def _check(probabilities: Sequence[float], truths: Sequence[bool]) -> None:
    if len(probabilities) != len(truths):
        told = f"there are {len(probabilities)} probabilities, {len(truths)} truths"
        raise DataError(f"there is one truth for each probability; {told}")
    for probability in probabilities:
        if not 0 <= probability <= 1:
            raise DataError(f"a probability must be in [0, 1], not {probability}")


def best_threshold(scores: Sequence[float], truths: Sequence[bool], measure: str) -> tuple[float, float] | None:
    """The threshold from which on a score counts as yes that maximises a measure of MEASURES, and the maximum.

    Scores lie in [0, 1]; those that only rounding tells apart are one. Candidates are the lowest score, which says yes
    to all, the middles between neighbouring scores, and that between the highest one and 1, which says no to all. Of
    equals the one with the widest gap around it is taken, then the lowest. None where the measure is undefined at each
    of them. The maximum is that of the cases it was chosen on, so it flatters: see `cross_validated_threshold`.
    """
    function = MEASURES[measure]
    best: tuple[float, float, float] | None = None
    for threshold, gap, counts in _cuts(sorted(zip(scores, truths, strict=True), key=lambda pair: pair[0])):
        value = function(counts)
        found = None if value is None else (value, gap, -threshold)
        if found is not None and (best is None or found > best):
            best = found
    return None if best is None else (-best[2], best[0])


def _cuts(by_score: Sequence[tuple[float, bool]]) -> Iterator[tuple[float, float, Confusion]]:
    """Each threshold that parts the sorted cases, the gap around it, and the counts of its verdicts."""
    if not by_score:
        return
    positives = sum(map(bool, (truth for _, truth in by_score)))
    negatives = len(by_score) - positives
    before = by_score[0][0]
    yield before, 0.0, Confusion(tp=positives, fp=negatives)
    missed = rejected = 0  # positives and negatives below the threshold
    for score, truth in [*by_score, (1.0, False)]:
        if score - before > ROUNDING:
            counts = Confusion(positives - missed, negatives - rejected, missed, rejected)
            yield (before + score) / 2, score - before, counts
        before, missed, rejected = score, missed + bool(truth), rejected + (not truth)


def folds(truths: Sequence[bool], count: int, *, seed: int = 0) -> tuple[tuple[int, ...], ...]:
    """The places of the cases in `count` folds of about equal size and about equal shares of positives, at random.

    Fewer folds where a class has fewer cases than that, so that each training part has both; none where a class has
    fewer than two. The same call gives the same folds.
    """
    draw = random.Random(seed)
    classes = [[place for place, truth in enumerate(truths) if bool(truth) == wanted] for wanted in (True, False)]
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
    """For each case the probability by a mapping that was fitted to the other folds."""
    probabilities = [math.nan] * len(scores)
    for part in parts:
        train = sorted(set(range(len(scores))) - set(part))
        mapping = fit([scores[i] for i in train], [truths[i] for i in train])
        for place in part:
            probabilities[place] = mapping(scores[place])
    return probabilities


def cross_validated_threshold(
    scores: Sequence[float], truths: Sequence[bool], measure: str, parts: Sequence[Sequence[int]]
) -> float | None:
    """What a measure comes to when each fold is judged by the threshold that is best on the others; None if undefined.

    The counts of all folds are put together first.
    """
    verdicts: list[tuple[bool, bool]] = []
    for part in parts:
        train = sorted(set(range(len(scores))) - set(part))
        found = best_threshold([scores[i] for i in train], [truths[i] for i in train], measure)
        if found is None:
            return None
        verdicts += [(scores[place] >= found[0], truths[place]) for place in part]
    return MEASURES[measure](Confusion.of(verdicts))
