"""Paired comparison of two runs over the same samples.

Differences are b - a, sample by sample: a is the baseline, b the candidate. `comparison_of_many` compares more runs.

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

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from evalstone.errors import ConfigError
from evalstone.stats._arrays import Floats, column, same_length, values_at
from evalstone.stats.intervals import Ends, Interval, check_confidence, check_reach, check_weights
from evalstone.stats.mean_difference import MeanDifference, StoppedMeanDifference
from evalstone.stats.packed_scores import packed
from evalstone.stats.paired_differences import (
    check_changes,
    differences,
    known_differences,
    known_pairs,
    lowest_and_highest,
)
from evalstone.stats.paired_tests import McNemar, PairedTest, mcnemar
from evalstone.stats.smallest import smallest_places
from evalstone.stats.weighted_mean import unequal, weighted_average
from evalstone.types import Note, note

ComparisonVerdict: TypeAlias = Literal["better", "worse", "equivalent", "inconclusive"]
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
    known = known_pairs(a, b)
    n = int(known.sum())
    if n == 0:
        return None
    check_weights(weights)
    weights = unequal(weights)
    own_weights = None if weights is None else values_at(weights, known)
    means, whole = list[float](), True
    for name, x in (("a", a), ("b", b)):
        values = column(name, values_at(x, known), 0.0, scale)
        means.append(weighted_average(own_weights, packed(values)))
        whole = whole and _are_passes(values, scale)
        del values  # of millions of pairs, each column takes much memory
    d = known_differences(a, b, known, scale)
    reach = scale if max_change is None else max_change
    check_changes(d, known, reach)
    ups, downs = int(np.sum(d > 0)), int(np.sum(d < 0))
    wins, losses = (downs, ups) if lower_is_better else (ups, downs)
    either_end = lowest_and_highest(a, b, d, known, ends, scale, reach)
    # A pass that is missing in part, as one of several trials, is neither 0 nor the scale at its ends.
    whole = whole and all(bool(np.isin(x, (-scale, 0.0, scale)).all()) for x in either_end)
    passes = whole and groups is None and weights is None and reach == scale and not stopped
    changed = mcnemar(wins, losses) if passes else None
    mean, few_changed = weighted_average(own_weights, packed(d)), _few_changes(d, changed)
    del d
    inference = (
        StoppedMeanDifference(either_end, reach, confidence)
        if stopped
        else MeanDifference(either_end, reach, confidence, groups, weights, passes)
    )
    return PairedComparison(
        n=n,
        mean_a=means[0],
        mean_b=means[1],
        difference=inference.interval(mean, n, groups and values_at(groups, known)),
        test=inference.test,
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
        mcnemar=changed,
        lower_is_better=lower_is_better,
        groups=None if groups is None else len(set(values_at(groups, known))),
        notes=few_changed or inference.notes,
        missing=inference.missing,
        equivalence=None if margin is None else inference.equivalence(margin),
        max_change=max_change,
        margin=margin,
    )


def _are_passes(values: Floats, scale: float) -> bool:
    return bool(np.isin(values, (0.0, scale)).all())


def biggest_changes(a: Sequence[float | None], b: Sequence[float | None], count: int = 10) -> tuple[int, ...]:
    """The positions of the samples that changed most, largest change first, without unchanged samples and those that
    lack a score (None)."""
    same_length(a=a, b=b)
    d = differences(np.asarray(a, np.float64), np.asarray(b, np.float64))
    np.negative(np.abs(d, out=d), out=d)
    return tuple(int(place) for place in smallest_places(d, count) if d[place] < 0)


def _few_changes(d: Floats, passes: McNemar | None) -> tuple[Note, ...]:
    """The caution that too few pairs changed for any difference to be significant, if it is so."""
    changed = int(np.sum(d != 0))
    if d.size > MOST_INSIGNIFICANT >= changed and (passes is not None or not changed):
        return (note("few_changed", "caution", changed=changed, pairs=d.size),)
    return ()
