"""Classification measures of yes/no verdicts (from the confusion counts), and the AUROC of scores.

    sensitivity = tp / (tp + fn)        specificity = tn / (tn + fp)        precision = tp / (tp + fp)
    accuracy    = (tp + tn) / n         balanced accuracy = (sensitivity + specificity) / 2
    F1          = 2 tp / (2 tp + fp + fn)
    kappa       = (accuracy - expected) / (1 - expected), expected from the margins (Cohen 1960)

All are in [0, 1], except kappa, which is in [-1, 1]; higher is better. A measure with a denominator of 0 is None.

`measure_intervals` computes confidence intervals. Proportions use `proportion_interval`. So does F1, a monotonic
function of the proportion tp / (tp + fp + fn). Balanced accuracy combines the limits of sensitivity and specificity by
the method of Zou and Donner (2008, Statistics in Medicine 27(10)). Kappa uses `cohen_kappa`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import NormalDist
from typing import Final, Literal, TypeAlias

from evalstone._core.display import count
from evalstone.errors import DataError
from evalstone.stats.agreement import cohen_kappa
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.intervals import GAFFKE, MOVER, Interval, check_confidence, mover, proportion_interval


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix: counts of verdicts by truth."""

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
        """Count (verdict, truth) pairs."""
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
        """The share of yes verdicts that are correct; None without a yes verdict."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def accuracy(self) -> float | None:
        """The share of verdicts that are correct; None without pairs."""
        return _ratio(self.tp + self.tn, self.n)

    @property
    def balanced_accuracy(self) -> float | None:
        """The mean of sensitivity and specificity; 0.5 is chance. None if either is None."""
        if self.sensitivity is None or self.specificity is None:
            return None
        return (self.sensitivity + self.specificity) / 2

    @property
    def f1(self) -> float | None:
        """The harmonic mean of precision and sensitivity; None if no verdict and no truth is yes."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa, chance-corrected accuracy; None without pairs, or if all verdicts and truths are the same."""
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

MeasureName: TypeAlias = Literal[
    "balanced_accuracy", "accuracy", "f1", "kappa", "sensitivity", "specificity", "precision"
]
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
    """Every measure of MEASURES with its confidence interval; None if undefined.

    Raises:
        ConfigError: confidence is outside (0, 1).
    """
    tp, fp, fn, tn = counts.tp, counts.fp, counts.fn, counts.tn
    sensitivity = proportion_interval(tp, counts.positives, confidence)
    specificity = proportion_interval(tn, counts.negatives, confidence)
    verdicts = [True] * (tp + fp) + [False] * (fn + tn)
    truths = [True] * tp + [False] * fp + [True] * fn + [False] * tn
    return {
        "balanced_accuracy": average(sensitivity, specificity),
        "accuracy": proportion_interval(tp + tn, counts.n, confidence),
        "f1": f1_of(proportion_interval(tp, tp + fp + fn, confidence)),
        "kappa": cohen_kappa(verdicts, truths, confidence=confidence),
        "sensitivity": sensitivity,
        "specificity": specificity,
        "precision": proportion_interval(tp, tp + fp, confidence),
    }


def average(a: Interval | None, b: Interval | None, correlation: float = 0.0) -> Interval | None:
    """The mean of two proportions with this correlation, with MOVER limits."""
    if a is None or b is None:
        return None
    mean = (a.estimate + b.estimate) / 2
    down = mover(*(part.estimate - part.low for part in (a, b) if part.low is not None), correlation=correlation) / 2
    up = mover(*(part.high - part.estimate for part in (a, b) if part.high is not None), correlation=correlation) / 2
    return Interval(estimate=mean, low=mean - down, high=mean + up, n=a.n + b.n, confidence=a.confidence, method=MOVER)


def f1_of(share: Interval | None) -> Interval | None:
    """F1 from tp / (tp + fp + fn)."""
    if share is None or share.low is None or share.high is None:
        return None
    estimate, low, high = (2 * x / (1 + x) for x in (share.estimate, share.low, share.high))
    return replace(share, estimate=estimate, low=low, high=high)


def check_truths(name: str, values: Sequence[float], truths: Sequence[bool], plural: str = "") -> None:
    """Raise DataError unless there is one truth per value."""
    if len(values) != len(truths):
        counts = f"{count(len(values), name, plural)} and {count(len(truths), 'truth')}"
        raise DataError(f"need one truth per {name}: got {counts}")


def auroc(scores: Sequence[float], truths: Sequence[bool], *, confidence: float = 0.95) -> Interval | None:
    """The area under the ROC curve: the probability that a positive case has a higher score than a negative one.

        AUROC = (pairs in which the positive is higher + ties / 2) / all pairs of a positive and a negative

    Confidence limits assume independent cases. They are the widest of three intervals. AUROC is a mean over positives,
    of the share of negatives below each, and a mean over negatives, of the share of positives above each. The first two
    are the intervals of these means (`mean_interval`), which allow for rare, badly wrong cases that were not observed.
    The third is Newcombe's: all areas A with |estimate - A| <= z √V(A). With m positives, k negatives and
    N = (m + k) / 2,

        V(A)     = A (1 - A) · max(f(A), observed)
        f(A)     = (1 + (N - 1) (1 - A) / (2 - A) + (N - 1) A / (1 + A)) / (m k)
        observed = (s²(+) / m + s²(-) / k) / (estimate · (1 - estimate))

    f is exact for exponentially distributed scores. s²(+) and s²(-) are the sample variances of the shares over
    positives and over negatives (DeLong, DeLong and Clarke-Pearson 1988).

    Sources: Hanley and McNeil 1982; Newcombe 2006, method 5.

    Args:
        scores: One score per case, in any unit; higher means more likely positive.
        truths: Whether each case is positive.
        confidence: The confidence level, in (0, 1).

    Returns:
        The area in [0, 1] with its interval; 0.5 is chance, higher is better. None without a positive or a negative.

    Raises:
        DataError: The sequences differ in length, or a score is NaN.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    check_truths("score", scores, truths)
    for place, score in enumerate(scores):
        if math.isnan(score):
            raise DataError(f"scores must be numbers: score {place} is nan")
    positives = sum(map(bool, truths))
    negatives = len(truths) - positives
    if not positives or not negatives:
        return None
    below, above = 0, positives
    wins: list[tuple[int, int]] = []  # (2 · negatives below a positive, positives with this number)
    losses: list[tuple[int, int]] = []  # (2 · positives above a negative, negatives with this number)
    for _, tied in groupby(sorted(zip(scores, truths, strict=True), key=lambda pair: pair[0]), key=lambda p: p[0]):
        group = [bool(truth) for _, truth in tied]
        yes, no = sum(group), len(group) - sum(group)
        above -= yes
        wins.append((2 * below + no, yes))
        losses.append((2 * above + yes, no))
        below += no
    area = sum(twice * number for twice, number in wins) / (2 * positives * negatives)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    observed = 0.0
    if 0 < area < 1:
        variance = (
            _variance(wins, positives, negatives) / positives + _variance(losses, negatives, positives) / negatives
        )
        observed = variance / (area * (1 - area))
    low, high = (newcombe_limit(area, end, z, positives, negatives, observed) for end in (0.0, 1.0))
    for counts, others in ((wins, negatives), (losses, positives)):
        shares = [twice / (2 * others) for twice, number in counts for _ in range(number)]
        lower, upper = BoundedMean.of(shares, 0.0, 1.0).interval(confidence)
        low, high = min(low, lower), max(high, upper)
    return Interval(
        estimate=area, low=low, high=high, n=len(truths), confidence=confidence, method=f"Newcombe, {GAFFKE}"
    )


def _variance(counts: Sequence[tuple[int, int]], n: int, others: int) -> float:
    """The sample variance of n shares twice / (2 · others), given as (twice, number of shares) pairs; 0 for n = 1."""
    if n < 2:
        return 0.0
    total = sum(twice * number for twice, number in counts)
    squares = sum(twice * twice * number for twice, number in counts)
    return (n * squares - total * total) / (4 * n * (n - 1) * others * others)


def newcombe_limit(area: float, end: float, z: float, positives: float, negatives: float, observed: float) -> float:
    """The area farthest toward `end` that is within z of its standard errors from the estimate, by bisection."""
    near, far = area, end
    more = (positives + negatives) / 2 - 1
    for _ in range(60):
        middle = (near + far) / 2
        spread = (1 + more * (1 - middle) / (2 - middle) + more * middle / (1 + middle)) / (positives * negatives)
        variance = middle * (1 - middle) * max(spread, observed)
        if abs(area - middle) <= z * math.sqrt(variance):
            near = middle
        else:
            far = middle
    return near
