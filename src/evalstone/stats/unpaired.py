"""Comparison of two runs over different samples: the difference of two independent means.

The limits of the difference are recovered from the limits of the two means (MOVER, Zou and Donner), which are those of
`bounded_mean`. With l and u the limits of each mean at the same error rate,

    low  = mean(b) - mean(a) - √((mean(b) - l(b))² + (u(a) - mean(a))²)
    high = mean(b) - mean(a) + √((u(b) - mean(b))² + (mean(a) - l(a))²)

The p-value is the error rate at which 0 is one of the limits, so it never contradicts the interval.
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
"""As normal quantiles, the range in which p-values are computed: smaller p-values are reported as about 1e-15."""


@dataclass(frozen=True)
class UnpairedComparison:
    """Scores a and b of different samples, in the unit of the scores."""

    n: int
    """The number of values of a."""
    n_b: int
    """The number of values of b."""
    mean_a: float
    mean_b: float
    difference: Interval
    """mean_b - mean_a with its interval (see the module docstring)."""
    test: PairedTest
    """The test that the means are equal. It agrees with `difference`."""
    lower_is_better: bool
    groups: int | None
    """The number of clusters in both runs together; None for independent samples."""
    caution: str
    """Why to trust the comparison less, or ""."""

    @property
    def p_value(self) -> float:
        """The p-value of `test`. Adjust it (`multiple_testing`) if you make several comparisons."""
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
        confidence: The confidence level of the interval, in (0, 1).
        groups: For a and for b, one cluster label per sample. None: all independent.
        weights: For a and for b, one sampling weight above 0 per sample, for estimates of population means. None: all
            equal.
        lower_is_better: Whether a lower score is better.

    Returns:
        The comparison; None if a or b is empty.

    Raises:
        DataError: Lengths differ, a value is not a finite number in [0, scale], or a weight is not above 0.
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
        evidence.append(WeightedMean.of_units(checked, 0.0, scale, groups=labels, weights=own))
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
    """The distance from larger - smaller, the difference of means, to its lower limit at one-sided error rate alpha."""
    above = smaller.limit(alpha, -1, share=SHARE) - smaller.mean
    return mover(larger.mean - larger.limit(alpha, 1, share=SHARE), above)


def difference_p_value(a: BoundedMean, b: BoundedMean) -> float:
    """The two-sided error rate at which one limit of the difference is 0."""
    smaller, larger = (a, b) if a.mean <= b.mean else (b, a)
    d = larger.mean - smaller.mean

    def lower_limit(deviate: float) -> float:
        return d - _reach(smaller, larger, normal_tail(deviate))

    start, end = lower_limit(SMALLEST_DEVIATE), lower_limit(LARGEST_DEVIATE)
    if start <= 0:
        return 1.0
    if end >= 0:
        return 2 * normal_tail(LARGEST_DEVIATE)
    guess = SMALLEST_DEVIATE + start * (LARGEST_DEVIATE - SMALLEST_DEVIATE) / (start - end)
    deviate = root(lower_limit, SMALLEST_DEVIATE, LARGEST_DEVIATE, guess, at_start=start, close=1e-6 * d)
    return min(1.0, 2 * normal_tail(deviate))
