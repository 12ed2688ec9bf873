"""How well a score ranks: the probability that a positive case has a higher one than a negative case.

AUROC = (pairs where the positive is higher + ties / 2) / all pairs of a positive and a negative
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from statistics import NormalDist

from evalstone.errors import DataError
from evalstone.stats.intervals import Interval

_STEPS = 60


def auroc(scores: Sequence[float], truths: Sequence[bool], *, level: float = 0.95) -> Interval | None:
    """The area under the ROC curve, in [0, 1], with its interval; 0.5 is chance, higher is better.

    None where there is no positive or no negative. The interval is Newcombe's: the areas A for which the one found is
    within z √V(A), so that it stays in [0, 1] and has a width also where every pair is in order. It takes the cases as
    independent. With m positives, k negatives and N = (m + k) / 2,

        V(A) = A (1 - A) (1 + (N - 1) (1 - A) / (2 - A) + (N - 1) A / (1 + A)) / (m k)

    Raises DataError for sequences of different lengths. Source: Hanley and McNeil 1982; Newcombe 2006, method 5.
    """
    if len(scores) != len(truths):
        raise DataError(f"there is one truth for each score; there are {len(scores)} scores, {len(truths)} truths")
    positives = sum(map(bool, truths))
    negatives = len(truths) - positives
    if not positives or not negatives:
        return None
    below, twice = 0, 0
    for _, tied in groupby(sorted(zip(scores, truths, strict=True), key=lambda pair: pair[0]), key=lambda p: p[0]):
        group = [truth for _, truth in tied]
        mine = sum(map(bool, group))
        twice += mine * (2 * below + len(group) - mine)
        below += len(group) - mine
    area = twice / (2 * positives * negatives)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    low = _limit(area, 0.0, z, positives, negatives)
    return Interval(area, low, _limit(area, 1.0, z, positives, negatives), len(scores), level)


def _limit(area: float, end: float, z: float, positives: int, negatives: int) -> float:
    """The area farthest towards `end` for which the one found is within z standard errors, by bisection."""
    near, far = area, end
    for _ in range(_STEPS):
        middle = (near + far) / 2
        if abs(area - middle) <= z * math.sqrt(_variance(middle, positives, negatives)):
            near = middle
        else:
            far = middle
    return near


def _variance(area: float, positives: int, negatives: int) -> float:
    more = (positives + negatives) / 2 - 1
    spread = 1 + more * (1 - area) / (2 - area) + more * area / (1 + area)
    return area * (1 - area) * spread / (positives * negatives)
