"""Paired comparison of two or more runs over the same samples.

Differences are b - a, sample by sample: a is the baseline, b the candidate.

*Missing scores.* If scores are missing, those of bad answers may be missing more often, and the pairs that are left say
nothing about the others. The estimate is that of the pairs at hand. The test and the limits hold whatever the missing
scores are: a pair counts with its lowest possible difference in the test that b is higher and in the lower limit, and
with its highest possible one on the other side. `partly_known` has the error rate of each side. Source: Manski 1990,
American Economic Review 80(2).

*A largest change.* The test allows for rare changes by the whole scale that no pair shows. For small samples, that
costs most of its power. Where such changes are impossible, declare the largest possible one: `max_change`. The tests
themselves are in `paired_tests`.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import Floats, Mask, column, same_length
from evalstone.stats.betting import BettingMean
from evalstone.stats.bounded_mean import EXACT
from evalstone.stats.intervals import (
    GAFFKE,
    Ends,
    Interval,
    check_confidence,
    check_reach,
    check_weights,
    ends_of,
    exceeds,
    heavy,
    mean_interval,
    single,
)
from evalstone.stats.multiple_testing import Correction, adjust_p_values
from evalstone.stats.paired_tests import McNemar, PairedTest, mcnemar, mean_test
from evalstone.stats.partly_known import PartlyKnown
from evalstone.stats.ratios import farthest
from evalstone.stats.special import beta_cdf
from evalstone.stats.weighted_mean import WeightedMean, effective_number, unequal, weighted_average
from evalstone.types import Note, note

T = TypeVar("T")
ComparisonVerdict: TypeAlias = Literal["better", "worse", "equivalent", "inconclusive"]
STOPPED_TEST, SEQUENCE = "betting, valid at any stopping time", "confidence sequence"
"""The test and the limits of runs whose number of samples depends on their scores."""
MOST_INSIGNIFICANT = 4
"""With no more changed pass/fail pairs than this, no difference is significant at 0.05: the mid-p value of 4 gains is
(1/2)^4 > 0.05."""


@dataclass(frozen=True, kw_only=True)
class PairedComparison:
    """Paired scores a and b of the same samples, in the unit of the scores."""

    n: int
    """The number of pairs with both scores."""
    mean_a: float
    """The baseline's mean over these pairs."""
    mean_b: float
    """The other run's mean over these pairs."""
    difference: Interval
    """The mean of b - a over these pairs, with its interval (`difference_interval`). With missing scores, the limits
    hold whatever the missing scores are, and contain this mean."""
    test: PairedTest
    """The test that the mean difference is 0; for independent pass/fail values, McNemar's mid-p test. It rejects at
    1 - confidence if and only if `difference` excludes 0."""
    wins: int
    """Samples on which b is better than a."""
    ties: int
    """Samples on which a and b are equal."""
    losses: int
    """Samples on which b is worse than a."""
    mcnemar: McNemar | None
    """McNemar's test of the pairs with both scores. None unless all values, and the ends of missing ones, are 0 or
    `scale`, samples are independent and equally weighted, and no smaller largest change is declared. `gained` counts
    the pairs in which b is better."""
    lower_is_better: bool
    """Whether a lower score is a win."""
    groups: int | None
    """The number of clusters; None for independent samples."""
    notes: tuple[Note, ...]
    """Why to trust the comparison less."""
    missing: int = 0
    """The number of pairs of which a score is missing, at least in part."""
    equivalence: PairedTest | None = None
    """The test that the mean difference is beyond ± margin; None without a margin. If it rejects at 1 - confidence, the
    runs are equivalent."""
    max_change: float | None = None
    """The largest possible change of a sample, as declared; None for the whole scale."""
    margin: float | None = None
    """The margin of the test of equivalence."""

    @property
    def p_value(self) -> float:
        """The p-value of `test`. Adjust it (`multiple_testing`) if you make several comparisons."""
        return self.test.p_value


@dataclass(frozen=True)
class Pair:
    """The comparison of two of several runs."""

    a: str
    """The one run."""
    b: str
    """The other run."""
    comparison: PairedComparison
    """Their scores of the samples with a score in all runs."""
    adjusted_p: float
    """The p-value of their difference, corrected for the number of pairs."""


@dataclass(frozen=True)
class ManyComparison:
    """Several runs over the same samples."""

    n: int
    """The number of samples with a score in all runs."""
    means: Mapping[str, float]
    """The mean score by run, over these samples."""
    pairs: tuple[Pair, ...]
    """Every pair of runs."""
    ranks: Mapping[str, tuple[int, int]]
    """The best and the worst possible rank of each run, 1 for the best: with a probability of at least `confidence`,
    all true ranks are in these ranges. A run's best rank is 1 + the number of runs that are significantly better, its
    worst one is the number of runs less those that are significantly worse."""


def compare_pairs(
    a: Sequence[float | None],
    b: Sequence[float | None],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    lower_is_better: bool = False,
    ends: tuple[Sequence[Ends], Sequence[Ends]] | None = None,
    max_change: float | None = None,
    margin: float | None = None,
    stopped: bool = False,
) -> PairedComparison | None:
    """Compare two runs' scores of the same samples.

    Args:
        a: The baseline's scores, in [0, scale]; None is a missing one.
        b: The candidate's scores of the same samples in the same order.
        scale: The upper end of the range.
        confidence: The confidence level of the interval, in (0, 1).
        groups: One cluster label per sample; samples of one cluster may depend on each other. None: all independent.
        weights: One sampling weight above 0 per sample, for estimates of population means. None: all equal.
        lower_is_better: Whether a lower score is a win.
        ends: For a and for b, the lowest and the highest possible value of each score, such as that of a mean over
            trials of which some have no score. None: a missing score may have any value.
        max_change: The largest possible |b - a| of a sample, in (0, scale]. None: the scale.
        margin: Two runs whose means differ by less than this, in (0, scale], are equivalent. None: no such test.
        stopped: Whether the number of samples depends on their scores. They must then be in the order in which they
            were drawn, and tests and limits are those of `betting`, which are valid at any stopping time.

    Returns:
        The comparison; None for no pair with both scores.

    Raises:
        DataError: Lengths differ, a value is not a finite number in [0, scale], or a sample changes by more than
            max_change.
        ConfigError: confidence is outside (0, 1), max_change or margin is outside (0, scale], or the scores of a
            stopped run have groups or weights.
    """
    check_confidence(confidence)
    for name, value in (("max_change", max_change), ("margin", margin)):
        check_reach(name, value, scale)
    same_length(a=a, b=b, groups=groups, weights=weights)
    if stopped and (groups is not None or weights is not None):
        raise ConfigError("scores of a stopped run can't have groups or weights")
    known = _known(a, b)
    n = int(known.sum())
    if n == 0:
        return None
    check_weights(weights)
    weights = unequal(weights)
    before, after = (column(name, _some(x, known), 0.0, scale) for name, x in (("a", a), ("b", b)))
    own_weights = None if weights is None else _some(weights, known)
    d = differences(before, after)
    reach = scale if max_change is None else max_change
    _check_changes(d, known, reach)
    ups, downs = int(np.sum(d > 0)), int(np.sum(d < 0))
    wins, losses = (downs, ups) if lower_is_better else (ups, downs)
    either_end = _lowest_and_highest(a, b, d, known, ends, scale, reach)
    # A pass that is missing in part, as one of several trials, is neither 0 nor the scale at its ends.
    whole = all(np.all(np.isin(x, (0.0, scale))) for x in (before, after, *map(np.abs, either_end)))
    passes = whole and groups is None and weights is None and reach == scale and not stopped
    changed = mcnemar(wins, losses) if passes else None
    inference = (
        _StoppedMeanDifference(either_end, reach, confidence)
        if stopped
        else _MeanDifference(either_end, reach, confidence, groups, weights, passes)
    )
    return PairedComparison(
        n=n,
        mean_a=weighted_average(own_weights, before.tolist()),
        mean_b=weighted_average(own_weights, after.tolist()),
        difference=inference.interval(weighted_average(own_weights, d.tolist()), n, groups and _some(groups, known)),
        test=inference.test,
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
        mcnemar=changed,
        lower_is_better=lower_is_better,
        groups=None if groups is None else len(set(_some(groups, known))),
        notes=_few_changes(d, changed) or inference.notes,
        missing=inference.missing,
        equivalence=None if margin is None else inference.equivalence(margin),
        max_change=max_change,
        margin=margin,
    )


def _some(values: Sequence[T | None], chosen: Mask) -> Sequence[T]:
    if chosen.all():
        return cast("Sequence[T]", values)
    return [cast("T", value) for value, is_chosen in zip(values, chosen.tolist(), strict=True) if is_chosen]


def _chosen(values: Sequence[T], chosen: Sequence[bool]) -> list[T]:
    return list(itertools.compress(values, chosen))


def _check_changes(d: Floats, known: Mask, reach: float) -> None:
    """Raise DataError, with its position, for a difference beyond the largest possible one."""
    largest = float(np.max(np.abs(d), initial=0.0))
    if exceeds(largest, reach):
        first = next(place for place, change in enumerate(d.tolist()) if exceeds(change, reach))
        place = np.flatnonzero(known)[first]
        raise DataError(f"max_change is {reach:g}, but sample {place} changes by {abs(d[first]):g}")


def _lowest_and_highest(
    a: Sequence[float | None],
    b: Sequence[float | None],
    d: Floats,
    known: Mask,
    ends: tuple[Sequence[Ends], Sequence[Ends]] | None,
    scale: float,
    reach: float,
) -> tuple[Floats, Floats]:
    """The lowest and the highest possible difference of each pair."""
    if ends is None and known.all():
        return d, d
    own = ends or tuple([ends_of(x, scale) for x in values] for values in (a, b))
    (low_a, high_a), (low_b, high_b) = (np.array(pairs, dtype=np.float64).reshape(-1, 2).T for pairs in own)
    lowest, highest = (np.clip(differences(x, y), -reach, reach) for x, y in ((high_a, low_b), (low_a, high_b)))
    whole = known & (low_a == high_a) & (low_b == high_b)
    lowest[whole] = highest[whole] = d[whole[known]]
    return lowest, highest


def possible_differences(
    a: Sequence[float | None],
    b: Sequence[float | None],
    ends: tuple[Sequence[Ends], Sequence[Ends]] | None = None,
    *,
    scale: float,
    reach: float,
) -> tuple[list[float | None], list[Ends] | None]:
    """The difference of each pair, None without both scores, and its lowest and highest possible value; None instead of
    these if no score is missing.

    reach: The largest possible difference. The other arguments and errors are those of `compare_pairs`.
    """
    same_length(a=a, b=b)
    known = _known(a, b)
    before, after = (column(name, _some(x, known), 0.0, scale) for name, x in (("a", a), ("b", b)))
    d = differences(before, after)
    _check_changes(d, known, reach)
    if ends is None and known.all():
        return d.tolist(), None
    at_hand = iter(d.tolist())
    lowest, highest = (end.tolist() for end in _lowest_and_highest(a, b, d, known, ends, scale, reach))
    return [next(at_hand) if is_known else None for is_known in known.tolist()], list(zip(lowest, highest, strict=True))


def _known(a: Sequence[float | None], b: Sequence[float | None]) -> Mask:
    """Which pairs have both scores."""
    return np.array([x is not None and y is not None for x, y in zip(a, b, strict=True)], dtype=np.bool_)


class _MeanDifference:
    """Inference about the mean difference, with missing differences at their lowest and at their highest."""

    def __init__(
        self,
        ends: tuple[Floats, Floats],
        reach: float,
        confidence: float,
        groups: Sequence[Hashable] | None,
        weights: Sequence[float] | None,
        passes: bool,
    ) -> None:
        self.reach, self.confidence = reach, confidence
        self.missing = int(np.sum(ends[0] != ends[1]))
        self.options: Any = {"groups": groups, "weights": weights}
        self.ends = ends if self.missing else ends[:1] * 2
        self.lowest, self.highest = (
            WeightedMean.of_units(d.tolist(), -reach, reach, **self.options) for d in self.ends
        )
        self.partly = PartlyKnown.between(self.lowest, self.highest) if self.missing else PartlyKnown(0.0)
        # A missing pass/fail score is a pass or a failure too.
        self.changed = [mcnemar(int(np.sum(d > 0)), int(np.sum(d < 0))) for d in self.ends] if passes else None

    @property
    def test(self) -> PairedTest:
        """The test that the mean difference is 0, whatever the missing differences are."""
        side = 0 if self.lowest.mean > 0 or not self.missing else 1
        test = mean_test((self.lowest, self.highest)[side], share=self.partly.share)
        if self.changed is not None:
            test = PairedTest(name="McNemar's test, mid-p", p_value=self.changed[side].p_value)
        if not self.missing:
            return test
        undecided = self.lowest.mean <= 0 <= self.highest.mean
        return replace(test, p_value=1.0 if undecided else self.partly.p_value(test.p_value))

    def interval(self, mean: float, n: int, groups: Sequence[Hashable] | None) -> Interval:
        """The mean of the pairs at hand, with limits that hold whatever the missing differences are."""
        level = 1 - 2 * self.partly.error_rate(1 - self.confidence)
        low, high = (
            Interval(estimate=end.mean, low=below, high=above, n=len(self.ends[0]), confidence=level)
            for end in (self.lowest, self.highest)
            for below, above in (end.interval(level, share=self.partly.share),)
        )
        if self.changed is not None:
            low, high = (
                _consistent(interval, changed, self.reach)
                for interval, changed in zip((low, high), self.changed, strict=True)
            )
        return Interval(
            estimate=mean,
            # Missing pairs can pull the mean of all beyond that of the pairs at hand.
            low=None if low.low is None else min(low.low, mean),
            high=None if high.high is None else max(high.high, mean),
            n=n,
            confidence=self.confidence,
            groups=None if groups is None else len(set(groups)),
            method=GAFFKE,
            notes=self.notes,
            effective=effective_number(self.options["weights"]),
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """That there is a single pair or cluster, or that few have most of the weight."""
        if self.lowest.units == 1:
            return single(len(self.ends[0]))
        return heavy(self.lowest, self.options["groups"] is not None)

    def equivalence(self, margin: float) -> PairedTest:
        """Two one-sided tests. Source: Schuirmann 1987, Journal of Pharmacokinetics and Biopharmaceutics 15(6)."""
        p = max(
            self.lowest.p_value(max(-margin, -self.reach), 1, share=EXACT),
            self.highest.p_value(min(margin, self.reach), -1, share=EXACT),
        )
        return PairedTest(name="two one-sided tests of the mean difference", p_value=p)


class _StoppedMeanDifference:
    """`_MeanDifference` for pairs whose number depends on their scores, in the order in which they were drawn."""

    notes = (note("stopped_comparison", "caution"),)

    def __init__(self, ends: tuple[Floats, Floats], reach: float, confidence: float) -> None:
        self.reach, self.confidence = reach, confidence
        self.missing = int(np.sum(ends[0] != ends[1]))
        self.lowest, self.highest = (BettingMean.of(d.tolist(), -reach, reach) for d in ends)

    @property
    def _p_values(self) -> tuple[float, float]:
        """The p-values of "the mean difference is at most 0" and of "at least 0"."""
        return self.lowest.p_value(0.0, 1), self.highest.p_value(0.0, -1)

    @property
    def test(self) -> PairedTest:
        """The test that the mean difference is 0, whatever the missing differences are."""
        return PairedTest(name=STOPPED_TEST, p_value=min(1.0, 2 * min(self._p_values)))

    def interval(self, mean: float, n: int, groups: Sequence[Hashable] | None) -> Interval:
        """The mean of the pairs at hand, with the confidence sequence after the last one."""
        alpha = (1 - self.confidence) / 2
        low, high = self.lowest.limit(alpha, 1), self.highest.limit(alpha, -1)
        p_low, p_high = self._p_values
        # The limits are on a grid, so that either may be a step beyond 0 on the wrong side of it.
        low = max(low, 0.0) if p_low <= alpha else min(low, 0.0)
        high = min(high, 0.0) if p_high <= alpha else max(high, 0.0)
        low, high = min(low, mean), max(high, mean)
        return Interval(
            estimate=mean, low=low, high=high, n=n, confidence=self.confidence, groups=None, method=SEQUENCE
        )

    def equivalence(self, margin: float) -> PairedTest:
        """Two one-sided tests."""
        p = max(self.lowest.p_value(max(-margin, -self.reach), 1), self.highest.p_value(min(margin, self.reach), -1))
        return PairedTest(name=f"two one-sided tests, {STOPPED_TEST}", p_value=p)


def possible_difference(a: float | None, b: float | None, *, scale: float, reach: float) -> Ends:
    """The lowest and the highest possible b - a of a sample. They differ if a score is missing (None).

    Args:
        a: The baseline's score, in [0, scale].
        b: The candidate's score.
        scale: The upper end of the range of scores.
        reach: The largest possible |b - a|.

    Raises:
        DataError: A score is outside [0, scale], or they differ by more than `reach`.
    """
    (low_a, high_a), (low_b, high_b) = (ends_of(x, scale) for x in (a, b))
    for name, value in (("a", a), ("b", b)):
        if value is not None and not 0 <= value <= scale:
            raise DataError(f"{name}: {value} is not a number in [0, {scale:g}]")
    lowest, highest = differences(np.array([high_a, low_a]), np.array([low_b, high_b])).tolist()
    if a is not None and b is not None and exceeds(lowest, reach):
        raise DataError(f"max_change is {reach:g}, but a sample changes by {abs(lowest):.4g}, from {a:.4g} to {b:.4g}")
    return max(-reach, min(reach, lowest)), max(-reach, min(reach, highest))


def difference_interval(
    differences: Sequence[float],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
) -> Interval:
    """The mean of paired differences with the interval of `mean_interval` over [-scale, scale].

    Args:
        differences: Numbers in [-scale, scale], at least one.
        scale: The largest possible difference.
        confidence: The confidence level, in (0, 1).
        groups: One cluster label per difference.
        weights: One sampling weight above 0 per difference.

    Returns:
        The interval, in [-scale, scale].

    Raises:
        DataError: There are no differences, one is outside [-scale, scale], or `groups` or `weights` differ in length.
        ConfigError: confidence is outside (0, 1).
    """
    same_length(differences=differences, groups=groups, weights=weights)
    d = column("differences", differences, -scale, scale).tolist()
    interval = mean_interval(d, low=-scale, high=scale, confidence=confidence, groups=groups, weights=weights)
    if interval is None:
        raise DataError("need at least one difference")
    return interval


def _consistent(interval: Interval, changed: McNemar, scale: float) -> Interval:
    """The interval, adjusted so that it excludes 0 if and only if McNemar's test rejects.

    The mid-p test is more powerful than the test that the interval inverts, so the two can disagree in borderline
    cases. If the test rejects but the interval includes 0, the limit on the side of 0 becomes
    (share of pairs that changed) · (2 π - 1), where π is the test's own confidence limit of the probability that a
    change is a gain. If the test doesn't reject, the interval is extended to 0.
    """
    low, high = interval.low, interval.high
    if low is None or high is None:
        return interval
    alpha = (1 - interval.confidence) / 2
    if changed.p_value > 2 * alpha:
        low, high = min(low, 0.0), max(high, 0.0)
    elif interval.estimate > 0 >= low:
        low = (2 * _lowest_share(changed, alpha) - 1) * (changed.gained + changed.lost) / interval.n * scale
    elif interval.estimate < 0 <= high:
        high = -(2 * _lowest_share(changed, alpha) - 1) * (changed.gained + changed.lost) / interval.n * scale
    return replace(interval, low=low, high=high)


def _lowest_share(changed: McNemar, alpha: float) -> float:
    """The lower mid-p limit, at one-sided error rate alpha, of the probability of the more frequent kind of change.

    The mid-p test must reject a probability of 1/2 at this rate.
    """
    fewer, more = sorted((changed.gained, changed.lost))

    def rejected(share: float) -> bool:
        doubled = beta_cdf(share, more, fewer + 1) + (beta_cdf(share, more + 1, fewer) if fewer else 0.0)
        return doubled <= 2 * alpha

    return farthest(rejected, 0.5, 1.0)


def compare_many(
    runs: Mapping[str, Sequence[float | None]],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    lower_is_better: bool = False,
    ends: Mapping[str, Sequence[Ends]] | None = None,
    undefined: Mapping[str, Sequence[bool]] | None = None,
    max_change: float | None = None,
    correction: Correction = "holm",
) -> ManyComparison | None:
    """All pairwise comparisons of runs, with corrected p-values, and the ranks that they leave possible.

    Args:
        runs: Scores by run, of the same samples in the same order; two runs or more. None is a missing one.
        ends: By run, the lowest and the highest possible values, as for `compare_pairs`.
        undefined: By run, whether a score is undefined, not missing. A sample is left out of the comparison of two runs
            in which its score is undefined.
        max_change: The largest possible difference of a sample between the first run and another, in (0, scale]. Two
            other runs may differ by twice as much.
        correction: How to adjust the p-values of the pairs for multiple testing.
        scale, confidence, groups, weights, lower_is_better: As for `compare_pairs`.

    Returns:
        The comparison; None for no sample with a score in all runs.

    Raises:
        ConfigError: Fewer than two runs, or an unknown correction.
        DataError: As for `compare_pairs`.
    """
    if len(runs) < 2:
        raise ConfigError(f"need at least two runs, got {len(runs)}")
    same_length(**{f"run {name}": values for name, values in runs.items()}, groups=groups, weights=weights)
    check_weights(weights)
    weights = unequal(weights)
    known: Mask = np.array([None not in row for row in zip(*runs.values(), strict=True)], dtype=np.bool_)
    n = int(known.sum())
    if n == 0:
        return None
    table = [column(name, _some(values, known), 0.0, scale).tolist() for name, values in runs.items()]
    own_weights = None if weights is None else _some(weights, known)
    pairs: list[tuple[str, str, PairedComparison]] = []
    first = next(iter(runs))
    for a, b in itertools.combinations(runs, 2):
        counted = [True] * known.size
        if undefined is not None:
            counted = [not (x and y) for x, y in zip(undefined[a], undefined[b], strict=True)]
        reach = max_change if max_change is None or a == first else min(2 * max_change, scale)
        pair = compare_pairs(
            _chosen(runs[a], counted),
            _chosen(runs[b], counted),
            scale=scale,
            confidence=confidence,
            groups=groups and _chosen(groups, counted),
            weights=weights and _chosen(weights, counted),
            lower_is_better=lower_is_better,
            ends=(_chosen(ends[a], counted), _chosen(ends[b], counted)) if ends else None,
            max_change=reach,
        )
        if pair is not None:
            pairs.append((a, b, pair))
    adjusted = adjust_p_values([pair.p_value for _, _, pair in pairs], correction)
    compared = tuple(Pair(*item, p) for item, p in zip(pairs, adjusted, strict=True))
    return ManyComparison(
        n=n,
        means={name: weighted_average(own_weights, values) for name, values in zip(runs, table, strict=True)},
        pairs=compared,
        ranks=_ranks(list(runs), compared, confidence),
    )


def _ranks(runs: Sequence[str], pairs: Sequence[Pair], confidence: float) -> dict[str, tuple[int, int]]:
    """The best and the worst rank of each run that the significant pairs leave possible."""
    better, worse = dict.fromkeys(runs, 0), dict.fromkeys(runs, 0)
    for pair in pairs:
        difference = pair.comparison.difference.estimate * (-1 if pair.comparison.lower_is_better else 1)
        if pair.adjusted_p <= 1 - confidence and difference:
            winner, loser = (pair.b, pair.a) if difference > 0 else (pair.a, pair.b)
            better[loser] += 1
            worse[winner] += 1
    return {run: (1 + better[run], len(runs) - worse[run]) for run in runs}


def biggest_changes(a: Sequence[float], b: Sequence[float], count: int = 10) -> tuple[int, ...]:
    """The positions of the samples that changed most, largest change first, without unchanged samples."""
    same_length(a=a, b=b)
    d = np.abs(differences(column("a", a), column("b", b)))
    order = np.argsort(-d, kind="stable")[:count]
    return tuple(int(place) for place in order if d[place] > 0)


def differences(a: Floats, b: Floats) -> Floats:
    """b - a, and 0 if they differ by rounding error only, as 0.1 + 0.2 and 0.3 do."""
    d = b - a
    return np.where(np.abs(d) <= 1e-12 * np.maximum(np.abs(a), np.abs(b)), 0.0, d)


def _few_changes(d: Floats, passes: McNemar | None) -> tuple[Note, ...]:
    """The caution that too few pairs changed for any difference to be significant, if it is so."""
    changed = int(np.sum(d != 0))
    if d.size > MOST_INSIGNIFICANT >= changed and (passes is not None or not changed):
        return (note("few_changed", "caution", changed=changed, pairs=d.size),)
    return ()
