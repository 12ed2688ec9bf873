"""Comparison of two runs over different samples: the difference of two independent means.

The limits of the difference are recovered from the limits of the two means (MOVER, Zou and Donner), which are those of
`bounded_mean`. With l and u the limits of each mean at the same error rate,

    low  = mean(b) - mean(a) - √((mean(b) - l(b))² + (u(a) - mean(a))²)
    high = mean(b) - mean(a) + √((u(b) - mean(b))² + (mean(a) - l(a))²)

The p-value is the error rate at which 0 is one of the limits, so it never contradicts the interval.

*Missing scores.* If scores are missing, those of bad answers may be missing more often, and the others say nothing
about them. The estimate is that of the scores at hand. The low limit has a's missing scores at their highest and b's at
their lowest, the high limit the reverse, and the p-value is that of the side on which the difference is. It is 1 if
missing scores can turn the sign. `partly_known` has the error rate of each side. (Manski 1990: bounds without
assumptions about what is missing.)
Source: Zou and Donner 2008, Statistics in Medicine 27(10).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import cast

from evalstone.stats._arrays import both_ends, column, differ, has_value, same_length, values_at
from evalstone.stats.bounded_mean import SHARE, BoundedMean
from evalstone.stats.intervals import MOVER, Ends, Interval, check_confidence, check_weights, ends_of, mover
from evalstone.stats.packed_scores import packed
from evalstone.stats.paired_tests import PairedTest
from evalstone.stats.partly_known import REFERENCE, PartlyKnown
from evalstone.stats.roots import root
from evalstone.stats.special import normal_tail
from evalstone.stats.weighted_mean import WeightedMean, effective_number
from evalstone.types import Note, note

SMALLEST_DEVIATE = 1e-6
LARGEST_DEVIATE = 8.0
"""As normal quantiles, the range in which p-values are computed: smaller p-values are reported as about 1e-15."""


@dataclass(frozen=True, kw_only=True)
class UnpairedComparison:
    """Scores a and b of different samples, in the unit of the scores."""

    n: int
    """The number of scores of a."""
    n_b: int
    """The number of scores of b."""
    mean_a: float
    mean_b: float
    difference: Interval
    """mean_b - mean_a with its interval (see the module docstring). With missing scores, the limits hold whatever these
    are."""
    test: PairedTest
    """The test that the means are equal. It agrees with `difference`."""
    lower_is_better: bool
    groups: int | None
    """The number of clusters in both runs together; None for independent samples."""
    notes: tuple[Note, ...]
    """Why to trust the comparison less."""
    missing: int = 0
    """The number of scores that are missing in a and b together."""

    @property
    def p_value(self) -> float:
        """The p-value of `test`. Adjust it (`multiple_testing`) if you make several comparisons."""
        return self.test.p_value


def compare_unpaired(
    a: Sequence[float | None],
    b: Sequence[float | None],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: tuple[Sequence[Hashable] | None, Sequence[Hashable] | None] = (None, None),
    weights: tuple[Sequence[float] | None, Sequence[float] | None] = (None, None),
    lower_is_better: bool = False,
    ends: tuple[Sequence[Ends] | None, Sequence[Ends] | None] = (None, None),
) -> UnpairedComparison | None:
    """Compare two runs' scores of different samples.

    Args:
        a: The baseline's scores, in [0, scale]; None is a missing one.
        b: The candidate's scores of other samples.
        scale: The upper end of the range.
        confidence: The confidence level of the interval, in (0, 1).
        groups: For a and for b, one cluster label per sample. None: all independent.
        weights: For a and for b, one sampling weight above 0 per sample, for estimates of population means. None: all
            equal.
        lower_is_better: Whether a lower score is better.
        ends: For a and for b, the lowest and the highest possible value of each score. None: a missing score may have
            any value.

    Returns:
        The comparison; None if a or b has no score.

    Raises:
        DataError: Lengths differ, a value is not a finite number in [0, scale], or a weight is not above 0.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    first = _RunMean.of("a", a, ends[0], groups[0], weights[0], scale=scale)
    second = _RunMean.of("b", b, ends[1], groups[1], weights[1], scale=scale)
    if first is None or second is None:
        return None
    lowest, highest = (first.highest, second.lowest), (first.lowest, second.highest)
    missing = first.missing + second.missing
    at_ends = (lowest[1].mean - lowest[0].mean, highest[1].mean - highest[0].mean)
    partly = PartlyKnown(0.0)
    if missing:
        outer = (_reach(*lowest, REFERENCE), _reach(highest[1], highest[0], REFERENCE))
        partly = PartlyKnown.of(at_ends[1] - at_ends[0], *outer)
    d, alpha = second.known.mean - first.known.mean, partly.error_rate(1 - confidence)
    share = partly.share
    low = at_ends[0] - _reach(*lowest, alpha, share)
    high = at_ends[1] + _reach(highest[1], highest[0], alpha, share)
    if missing and at_ends[0] <= 0 <= at_ends[1]:
        p_value = 1.0
    else:
        p_value = partly.p_value(difference_p_value(*(lowest if at_ends[0] > 0 else highest), share=share))
    clusters = None if groups == (None, None) else first.units + second.units
    known = (first.effective, second.effective)
    effective = None if known == (None, None) else (known[0] or first.n) + (known[1] or second.n)
    n = first.n + second.n
    interval = Interval(
        estimate=d, low=low, high=high, n=n, confidence=confidence, groups=clusters, method=MOVER, effective=effective
    )
    return UnpairedComparison(
        n=first.n,
        n_b=second.n,
        mean_a=first.known.mean,
        mean_b=second.known.mean,
        difference=interval,
        test=PairedTest(name="test of the difference of means", p_value=p_value, statistic=d),
        lower_is_better=lower_is_better,
        groups=clusters,
        notes=(note("single_unit_run", "caution"),) if min(first.units, second.units) == 1 else (),
        missing=missing,
    )


@dataclass(frozen=True)
class _RunMean:
    """The mean of one run."""

    n: int
    """The number of scores."""
    missing: int
    units: int
    """The number of samples or clusters with a score."""
    effective: float | None
    """The effective number of samples with a score; None without weights."""
    known: BoundedMean
    """The mean of the scores."""
    lowest: BoundedMean
    """The mean with missing scores at their lowest."""
    highest: BoundedMean

    @classmethod
    def of(
        cls,
        name: str,
        values: Sequence[float | None],
        ends: Sequence[Ends] | None,
        groups: Sequence[Hashable] | None,
        weights: Sequence[float] | None,
        *,
        scale: float,
    ) -> _RunMean | None:
        """None without a score."""
        same_length(**{name: values, "groups": groups, "weights": weights, "ends": ends})
        check_weights(weights)
        scored = has_value(values)
        scores = packed(column(name, values_at(values, scored), 0.0, scale))
        if not scores:
            return None
        known_groups = None if groups is None else values_at(groups, scored)
        known_weights = None if weights is None else values_at(weights, scored)

        def mean(
            of: Sequence[float], groups: Sequence[Hashable] | None, weights: Sequence[float] | None
        ) -> BoundedMean:
            return WeightedMean.of_units(of, 0.0, scale, groups=groups, weights=weights)

        known, n = mean(scores, known_groups, known_weights), len(scores)
        del scores  # which may be large, too
        if ends is None:
            ends = [ends_of(value, scale) for value in values]
        lowest = highest = known
        missing = int(differ(ends).sum())
        if missing:
            lowest, highest = (
                mean(packed(column("ends", cast("Sequence[float]", side), 0.0, scale)), groups, weights)
                for side in both_ends(ends)
            )
        return cls(
            n=n,
            missing=missing,
            units=n if known_groups is None else len(set(known_groups)),
            effective=effective_number(known_weights),
            known=known,
            lowest=lowest,
            highest=highest,
        )


def _reach(smaller: BoundedMean, larger: BoundedMean, alpha: float, share: float = SHARE) -> float:
    """The distance from larger - smaller, the difference of means, to its lower limit at one-sided error rate alpha."""
    above = smaller.limit(alpha, -1, share=share) - smaller.mean
    return mover(larger.mean - larger.limit(alpha, 1, share=share), above)


def difference_p_value(a: BoundedMean, b: BoundedMean, *, share: float = SHARE) -> float:
    """The two-sided error rate at which one limit of the difference is 0. share: That of `bounded_mean`."""
    smaller, larger = (a, b) if a.mean <= b.mean else (b, a)
    d = larger.mean - smaller.mean

    def lower_limit(deviate: float) -> float:
        return d - _reach(smaller, larger, normal_tail(deviate), share)

    start, end = lower_limit(SMALLEST_DEVIATE), lower_limit(LARGEST_DEVIATE)
    if start <= 0:
        return 1.0
    if end >= 0:
        return 2 * normal_tail(LARGEST_DEVIATE)
    guess = SMALLEST_DEVIATE + start * (LARGEST_DEVIATE - SMALLEST_DEVIATE) / (start - end)
    deviate = root(lower_limit, SMALLEST_DEVIATE, LARGEST_DEVIATE, guess, at_start=start, close=1e-6 * d)
    return min(1.0, 2 * normal_tail(deviate))
