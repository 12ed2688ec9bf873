"""Yes/no verdicts and scores against the truth: the confusion counts, what is computed from them, and the AUROC.

    sensitivity = tp / (tp + fn)        specificity = tn / (tn + fp)        precision = tp / (tp + fp)
    accuracy    = (tp + tn) / n         balanced accuracy = (sensitivity + specificity) / 2
    F1          = 2 tp / (2 tp + fp + fn)
    kappa       = (accuracy - expected) / (1 - expected), expected from the margins (Cohen 1960)

All are in [0, 1] but kappa, which is in [-1, 1]; higher is better. A measure with a denominator of 0 is None.

`measure_intervals` gives them with their limits. Shares have those of `proportion_interval`; so has F1, which goes up
with the share tp / (tp + fp + fn). Those of the balanced accuracy are combined from those of its two parts by the
method of Zou and Donner (2008, Statistics in Medicine 27(10)); kappa is that of `cohen_kappa`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import NormalDist
from typing import Final

from evalstone.errors import DataError
from evalstone.stats.agreement import cohen_kappa
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.intervals import GAFFKE, MOVER, Interval, check_confidence, mover, proportion_interval


@dataclass(frozen=True)
class Confusion:
    """The counts of verdicts by truth."""

    tp: int = 0
    """Verdict yes, truth yes."""
    fp: int = 0
    """Verdict yes, truth no."""
    fn: int = 0
    """Verdict no, truth yes."""
    tn: int = 0
    """Verdict no, truth no."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> Confusion:
        """The counts of pairs of a verdict and the truth."""
        counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
        for verdict, truth in pairs:
            counts[bool(verdict), bool(truth)] += 1
        return cls(counts[True, True], counts[True, False], counts[False, True], counts[False, False])

    @property
    def n(self) -> int:
        """The number of pairs."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def positives(self) -> int:
        """The number of pairs whose truth is yes."""
        return self.tp + self.fn

    @property
    def negatives(self) -> int:
        """The number of pairs whose truth is no."""
        return self.fp + self.tn

    @property
    def sensitivity(self) -> float | None:
        """The true positive rate (recall); None without positives."""
        return _ratio(self.tp, self.positives)

    @property
    def specificity(self) -> float | None:
        """The true negative rate; None without negatives."""
        return _ratio(self.tn, self.negatives)

    @property
    def precision(self) -> float | None:
        """The share of yes verdicts that are true; None without a yes verdict."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def accuracy(self) -> float | None:
        """The share of verdicts that are right; None without pairs."""
        return _ratio(self.tp + self.tn, self.n)

    @property
    def balanced_accuracy(self) -> float | None:
        """The mean of sensitivity and specificity; 0.5 is chance. None where either is."""
        if self.sensitivity is None or self.specificity is None:
            return None
        return (self.sensitivity + self.specificity) / 2

    @property
    def f1(self) -> float | None:
        """The harmonic mean of precision and sensitivity; None without any yes."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa: accuracy beyond chance; None where verdict and truth are both constant and equal."""
        n = self.n
        if not n:
            return None
        chance = (self.tp + self.fp) * self.positives + (self.fn + self.tn) * self.negatives
        if chance == n * n:
            return None
        return (n * (self.tp + self.tn) - chance) / (n * n - chance)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


Measure = Callable[[Confusion], "float | None"]

MEASURES: Final[Mapping[str, Measure]] = {
    "balanced_accuracy": lambda c: c.balanced_accuracy,
    "accuracy": lambda c: c.accuracy,
    "f1": lambda c: c.f1,
    "kappa": lambda c: c.kappa,
    "sensitivity": lambda c: c.sensitivity,
    "specificity": lambda c: c.specificity,
    "precision": lambda c: c.precision,
}
"""The measures by name."""


def measure_intervals(counts: Confusion, *, confidence: float = 0.95) -> dict[str, Interval | None]:
    """Every measure of MEASURES with its confidence interval; None where undefined.

    Raises:
        ConfigError: confidence is outside (0, 1).
    """
    tp, fp, fn, tn = counts.tp, counts.fp, counts.fn, counts.tn
    sensitivity = proportion_interval(tp, counts.positives, confidence)
    specificity = proportion_interval(tn, counts.negatives, confidence)
    verdicts = [True] * (tp + fp) + [False] * (fn + tn)
    truths = [True] * tp + [False] * fp + [True] * fn + [False] * tn
    return {
        "balanced_accuracy": _middle(sensitivity, specificity),
        "accuracy": proportion_interval(tp + tn, counts.n, confidence),
        "f1": _f1(proportion_interval(tp, tp + fp + fn, confidence)),
        "kappa": cohen_kappa(verdicts, truths, confidence=confidence),
        "sensitivity": sensitivity,
        "specificity": specificity,
        "precision": proportion_interval(tp, tp + fp, confidence),
    }


def _middle(one: Interval | None, other: Interval | None) -> Interval | None:
    """The mean of two independent proportions."""
    if one is None or other is None:
        return None
    middle = (one.mean + other.mean) / 2
    down = mover(*(part.mean - part.low for part in (one, other) if part.low is not None)) / 2
    up = mover(*(part.high - part.mean for part in (one, other) if part.high is not None)) / 2
    return Interval(middle, middle - down, middle + up, one.n + other.n, one.confidence, method=MOVER)


def _f1(share: Interval | None) -> Interval | None:
    """F1 from tp / (tp + fp + fn)."""
    if share is None or share.low is None or share.high is None:
        return None
    mean, low, high = (2 * x / (1 + x) for x in (share.mean, share.low, share.high))
    return replace(share, mean=mean, low=low, high=high)


def auroc(scores: Sequence[float], truths: Sequence[bool], *, confidence: float = 0.95) -> Interval | None:
    """The area under the ROC curve: the chance that a positive case has a higher score than a negative one.

        AUROC = (pairs where the positive is higher + ties / 2) / all pairs of a positive and a negative

    The area is the mean over positives of the share of negatives below each, and the mean over negatives of the share
    of positives above each. Its limits are the farthest of three pairs: those of both means (`mean_interval`), which
    allow for rare cases that are wrong by a lot and were not seen, and Newcombe's, of all areas A with
    |estimate - A| <= z √V(A). Cases count as independent. With m positives, k negatives and N = (m + k) / 2,

        V(A) = A (1 - A) · max(f(A), seen)
        f(A) = (1 + (N - 1) (1 - A) / (2 - A) + (N - 1) A / (1 + A)) / (m k)
        seen = (s²(+) / m + s²(-) / k) / (estimate · (1 - estimate))

    f is right for scores with exponential distributions; s²(+) and s²(-) are the variances of both kinds of shares
    (DeLong, DeLong and Clarke-Pearson 1988).

    Sources: Hanley and McNeil 1982; Newcombe 2006, method 5.

    Args:
        scores: One score per case, in any unit; higher means more likely positive.
        truths: Whether each case is positive.
        confidence: The confidence level, in (0, 1).

    Returns:
        The area in [0, 1] with its interval; 0.5 is chance, higher is better. None without a positive or a negative.

    Raises:
        DataError: Sequences of different lengths, or a score that is not a number.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    if len(scores) != len(truths):
        raise DataError(f"one truth per score: {len(scores)} scores, {len(truths)} truths")
    for place, score in enumerate(scores):
        if math.isnan(score):
            raise DataError(f"scores must be numbers: score {place} is nan")
    positives = sum(map(bool, truths))
    negatives = len(truths) - positives
    if not positives or not negatives:
        return None
    below, above = 0, positives
    wins: list[tuple[int, int]] = []  # twice the negatives below a positive, and how many positives have so many
    losses: list[tuple[int, int]] = []  # twice the positives above a negative
    for _, tied in groupby(sorted(zip(scores, truths, strict=True), key=lambda pair: pair[0]), key=lambda p: p[0]):
        group = [bool(truth) for _, truth in tied]
        yes, no = sum(group), len(group) - sum(group)
        above -= yes
        wins.append((2 * below + no, yes))
        losses.append((2 * above + yes, no))
        below += no
    area = sum(one * count for one, count in wins) / (2 * positives * negatives)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    seen = 0.0
    if 0 < area < 1:
        variance = (
            _variance(wins, positives, negatives) / positives + _variance(losses, negatives, positives) / negatives
        )
        seen = variance / (area * (1 - area))
    low, high = (_auroc_limit(area, end, z, positives, negatives, seen) for end in (0.0, 1.0))
    for twice, others in ((wins, negatives), (losses, positives)):
        shares = [one / (2 * others) for one, count in twice for _ in range(count)]
        least, most = BoundedMean.of(shares, 0.0, 1.0).interval(confidence)
        low, high = min(low, least), max(high, most)
    return Interval(area, low, high, len(truths), confidence, method=f"Newcombe, {GAFFKE}")


def _variance(twice: Sequence[tuple[int, int]], n: int, others: int) -> float:
    """The variance of n shares of the others, given as twice a number and how many have it; 0 for a single one."""
    if n < 2:
        return 0.0
    total = sum(one * count for one, count in twice)
    return (n * sum(one * one * count for one, count in twice) - total * total) / (4 * n * (n - 1) * others * others)


def _auroc_limit(area: float, end: float, z: float, positives: int, negatives: int, seen: float) -> float:
    """The area farthest toward `end` that is within z standard errors of the estimate, by bisection."""
    near, far = area, end
    more = (positives + negatives) / 2 - 1
    for _ in range(60):
        middle = (near + far) / 2
        spread = (1 + more * (1 - middle) / (2 - middle) + more * middle / (1 + middle)) / (positives * negatives)
        variance = middle * (1 - middle) * max(spread, seen)
        if abs(area - middle) <= z * math.sqrt(variance):
            near = middle
        else:
            far = middle
    return near
