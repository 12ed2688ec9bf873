"""Comparison of two runs over different samples: the difference of two independent means.

The limits of the difference follow from those of both means (Zou and Donner's method, or MOVER), which are those of
`bounded_mean`. With l and u the limits of the means at one error rate,

    low  = mean(b) - mean(a) - √((mean(b) - l(b))² + (u(a) - mean(a))²)
    high = mean(b) - mean(a) + √((u(b) - mean(b))² + (mean(a) - l(a))²)

The p-value is the error rate at which 0 is one of the limits, so that it never contradicts the interval.
Source: Zou and Donner 2008, Statistics in Medicine 27(10).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from evalstone.stats._arrays import column, same_length
from evalstone.stats.bounded_mean import SHARE, BoundedMean
from evalstone.stats.intervals import MOVER, Interval, check_confidence, check_weights, mover
from evalstone.stats.paired_tests import PairedTest
from evalstone.stats.roots import root
from evalstone.stats.special import normal_tail
from evalstone.stats.weighted_mean import WeightedMean, effective_number

SMALLEST_DEVIATE = 1e-6
LARGEST_DEVIATE = 8.0
"""p-values below 1e-15 are that."""


@dataclass(frozen=True)
class UnpairedComparison:
    """Values a and b of different samples, in the unit of the scores."""

    n: int
    """The number of values of a."""
    n_b: int
    """The number of values of b."""
    mean_a: float
    mean_b: float
    difference: Interval
    """mean_b - mean_a with its interval (see the module)."""
    test: PairedTest
    """That both means are equal; agrees with `difference`."""
    lower_is_better: bool
    groups: int | None
    """The number of clusters of both together; None for independent samples."""
    caution: str
    """What a reader must know before trusting the comparison, or ""."""

    @property
    def p_value(self) -> float:
        """The p-value of `test`; adjust it (`multiple_testing`) where several comparisons are made."""
        return self.test.p_value


def compare_unpaired(
    a: Sequence[float],
    b: Sequence[float],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: tuple[Sequence[Hashable] | None, Sequence[Hashable] | None] = (None, None),
    weights: tuple[Sequence[float] | None, Sequence[float] | None] = (None, None),
    lower_is_better: bool = False,
) -> UnpairedComparison | None:
    """Compare two runs' scores of different samples.

    Args:
        a: The baseline's scores, in [0, scale].
        b: The candidate's scores of other samples.
        scale: The upper end of the range.
        confidence: Of the interval, in (0, 1).
        groups: For a and for b, one cluster label per sample, or None: all independent.
        weights: For a and for b, one weight above 0 per sample, for the mean of the population that they weight to, or
            None: all equal.
        lower_is_better: Whether a lower score is better.

    Returns:
        The comparison; None if a or b is empty.

    Raises:
        DataError: Lengths differ, a value is not a finite number in [0, scale], or a weight not above 0.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    evidence: list[BoundedMean] = []
    for name, values, labels, own in zip("ab", (a, b), groups, weights, strict=True):
        same_length(**{name: values, "groups": labels, "weights": own})
        check_weights(own)
        checked: list[float] = column(name, values, 0.0, scale).tolist()
        if not checked:
            return None
        evidence.append(WeightedMean.of(checked, 0.0, scale, groups=labels, weights=own))
    first, second = evidence
    d, alpha = second.mean - first.mean, (1 - confidence) / 2
    low, high = d - _reach(first, second, alpha), d + _reach(second, first, alpha)
    counts = [len(values if labels is None else set(labels)) for values, labels in zip((a, b), groups, strict=True)]
    clusters = None if groups == (None, None) else sum(counts)
    known = [effective_number(own) for own in weights]
    effective = None if known == [None, None] else (known[0] or len(a)) + (known[1] or len(b))
    interval = Interval(d, low, high, len(a) + len(b), confidence, clusters, MOVER, effective=effective)
    test = PairedTest("test of the difference of means", difference_p_value(first, second), d)
    caution = "one of the runs has a single sample or cluster" if min(counts) == 1 else ""
    return UnpairedComparison(
        len(a), len(b), first.mean, second.mean, interval, test, lower_is_better, clusters, caution
    )


def _reach(smaller: BoundedMean, larger: BoundedMean, alpha: float) -> float:
    """How far below the difference of two means, larger - smaller, the true one can be at a one-sided error rate."""
    above = smaller.limit(alpha, -1, share=SHARE) - smaller.mean
    return mover(larger.mean - larger.limit(alpha, 1, share=SHARE), above)


def difference_p_value(a: BoundedMean, b: BoundedMean) -> float:
    """The two-sided error rate at which one limit of the difference is 0."""
    smaller, larger = (a, b) if a.mean <= b.mean else (b, a)
    d = larger.mean - smaller.mean

    def short(deviate: float) -> float:
        return d - _reach(smaller, larger, normal_tail(deviate))

    most, least = short(SMALLEST_DEVIATE), short(LARGEST_DEVIATE)
    if most <= 0:
        return 1.0
    if least >= 0:
        return 2 * normal_tail(LARGEST_DEVIATE)
    guess = SMALLEST_DEVIATE + most * (LARGEST_DEVIATE - SMALLEST_DEVIATE) / (most - least)
    return min(
        1.0, 2 * normal_tail(root(short, SMALLEST_DEVIATE, LARGEST_DEVIATE, guess, at_start=most, close=1e-6 * d))
    )
