"""Plans of sample sizes from pilot runs.

The population that a plan expects comes from the pilot. For pass/fail pairs, it is the share of pairs that change,
gained + lost, with gained - lost set to the difference to detect. For scores, it is the pilot's differences, shifted so
that their mean is the difference to detect.

A plan counts the pilot's missing scores as a comparison does (`power`), for the direction in which they take more.

bench/coverage_plan.py simulates the coverage of the range of required sample sizes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evalstone.stats._arrays import Floats, Positions, both_ends, column, filled, has_value, same_length, values_at
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.intervals import Ends
from evalstone.stats.packed_scores import packed
from evalstone.stats.power import (
    MAX_SAMPLES,
    Changes,
    PartlyMissing,
    Population,
    Shifts,
    detectable_difference,
    samples_needed,
    smallest,
)
from evalstone.stats.typical_sample import Points, classes_of
from evalstone.stats.weighted_mean import WeightedMean, weighted_average
from evalstone.types import Note, note

SMALL_PILOT = 20
RANGE = 0.8


@dataclass(frozen=True, kw_only=True)
class SampleSizePlan:
    """The sample size required to detect a difference, estimated from a pilot run of n samples."""

    n: int
    """The number of pilot samples with a score (with both, of two runs)."""
    mean: float
    """The mean of the pilot's differences, or of its scores if there is one pilot run."""
    deviation: float
    """The standard deviation of the differences."""
    difference: float
    """The difference to detect."""
    needed: int | None
    """The required number of samples. It is `needed_high` if the difference is larger than the changes of the pilot can
    add up to (`Pilot.most`). None if as many missing scores as the pilot's can hide the difference from any number."""
    needed_low: int | None
    """The required number at the lower end of the 80% confidence interval of the differences' mean square."""
    needed_high: int | None
    """The required number at the upper end."""
    detectable: float | None
    """The minimum detectable difference: the smallest one that the pilot itself would have detected with this power;
    None if not even the largest possible one."""
    power: float
    """The probability of detecting the difference."""
    confidence: float
    """The confidence level of the comparison."""
    test: str
    """The test that the plan is for."""
    groups: int | None
    """The required number of clusters of the pilot's mean cluster size; None for independent samples."""
    notes: tuple[Note, ...]
    """Why to trust the plan less."""


@dataclass(frozen=True)
class Pilot:
    """The differences of a pilot, or the scores of one pilot run that stand for those of two independent runs."""

    n: int
    """The number of samples with a score (with both, of two runs)."""
    samples: int
    """The number of samples, with those that lack a score."""
    units: int
    """The number of independent samples or clusters."""
    mean: float
    squares: Floats
    """Those of the units. Their mean is the variance per unit; for pass/fail pairs, scale² times the share that
    changes."""
    counts: Positions
    """How many units have each of the squares."""
    largest: float
    """The largest possible square."""
    points: Points
    """Deviations from the mean."""
    scale: float
    deviation: float
    """The standard deviation of the differences of samples."""
    pass_fail: bool
    """Whether McNemar's test is used."""
    clustered: bool
    most: float
    """The largest mean difference that the samples that changed can add up to, scale times their share; infinity for
    one run's scores. A larger difference needs changes of which the pilot says nothing."""
    missing: int
    """The number of samples of which a score is missing, at least in part."""
    lost: float
    gap: float
    """See `PartlyMissing`."""

    @classmethod
    def of(
        cls,
        values: Sequence[float | None],
        *,
        scale: float = 1.0,
        paired: bool = True,
        pass_fail: bool = False,
        groups: Sequence[Hashable] | None = None,
        ends: Sequence[Ends] | None = None,
    ) -> Pilot | None:
        """Build it from values; None for fewer than two samples (clusters) with a value.

        Args:
            values: The paired differences of two pilot runs, in [-scale, scale], or the scores of one pilot run, in
                [0, scale]. None is a missing one. With one run, the scores of the two planned runs are assumed to be
                independent, each with the variance of these scores.
            scale: The upper end of the range of scores.
            paired: Whether `values` are differences.
            pass_fail: Whether all scores are 0 or `scale`; McNemar's test is then used, unless there are groups.
            groups: One cluster label per value; clusters are then the units.
            ends: The lowest and the highest possible value of each sample. None: a missing one may have any value.

        Raises:
            DataError: A value is not a finite number in its range, or `groups` or `ends` differ in length.
        """
        samples = same_length(values=values, groups=groups, ends=ends)
        low = -scale if paired else 0.0
        present = has_value(values)
        known = column("values", values_at(values, present), low, scale)
        n = known.size
        units = samples if groups is None else len(set(groups))
        if n < 2 or units < 2:
            return None
        mean = weighted_average(None, packed(known))
        deviation = float(known.std(ddof=1)) if known.max() > known.min() else 0.0
        changed = int(np.count_nonzero(known))
        if ends is None and n == samples:
            lowest = highest = known
        elif ends is None:
            del known  # of millions of samples, each column takes much memory
            lowest, highest = (column("ends", filled(values, end), low, scale) for end in (low, scale))
        else:
            del known
            lowest, highest = (column("ends", packed(end), low, scale) for end in both_ends(ends))
        missing = int(np.count_nonzero(lowest != highest))
        pairs = pass_fail and groups is None
        lost = gap = 0.0
        if missing:
            mean_at_ends = mean
            lost, gap = n / samples * mean - float(lowest.mean()), float((highest - lowest).mean())
            if not paired:
                lost = gap
            elif gap > 2 * lost:  # missing scores take more from a loss than from a gain
                lowest, highest, lost, mean_at_ends = -highest, -lowest, gap - lost, -mean_at_ends
            if paired and not pairs:  # as if the others had a mean of 0
                np.subtract(lowest, mean_at_ends, out=lowest, where=present)
                np.clip(lowest, -scale, scale, out=lowest)
        # The difference of two independent scores has the sum of their variances.
        ends_at_hand = (lowest,) if paired else (lowest, highest)
        del highest
        kinds = [_Kinds.of(WeightedMean.of_units(packed(x), low, scale, groups=groups)) for x in ends_at_hand]
        widest, factor = max(kinds, key=lambda kind: kind.variance), units / (units - 1)
        if widest.variance:
            factor *= math.fsum(kind.variance for kind in kinds) / widest.variance
        counts = widest.counts
        if pairs and paired:
            (squares, counts), largest = np.unique(lowest, return_counts=True), scale**2
            squares = squares**2
        else:
            reach = float(widest.weights.max()) * (scale + abs(float(lowest.mean())) * paired)
            more = gap**2 if pairs else 0.0
            squares, largest = factor * widest.squares + more, factor * reach**2 + more
        points = classes_of(
            math.sqrt(len(kinds)) * np.concatenate([(-1) ** end * kind.deviations for end, kind in enumerate(kinds)]),
            np.concatenate([kind.weights for kind in kinds]),
            np.concatenate([kind.shares for kind in kinds]) / len(kinds),
        )
        return cls(
            n=n,
            samples=samples,
            units=units,
            mean=mean,
            squares=squares,
            counts=counts,
            largest=largest,
            points=points,
            scale=scale,
            deviation=math.sqrt(len(kinds)) * deviation,
            pass_fail=pairs,
            clustered=groups is not None,
            most=scale * changed / n if paired else math.inf,
            missing=missing,
            lost=lost,
            gap=gap,
        )

    @property
    def mean_square(self) -> float:
        """The mean of the squares of all units."""
        return _mean(self.squares, self.counts)

    def population(self, square: float | None = None, *, difference: float = 0.0) -> Population:
        """The expected differences, rescaled to this mean square. None: the pilot's own.

        A smaller mean square shrinks the differences. A larger one adds differences as large as the scale. If the
        difference to detect is larger than `most`, the pilot's changes are expected to stay, and as many samples as the
        difference needs are expected to change by the whole scale besides: no smaller changes add more to the square.
        """
        observed = self.mean_square
        square = observed if square is None else square
        if difference > self.most:
            square += difference * self.scale
        expected = self._with_square(square, observed)
        return PartlyMissing(expected, self.n / self.samples, self.lost, self.gap) if self.missing else expected

    def _with_square(self, square: float, observed: float) -> Changes | Shifts:
        if self.pass_fail:
            return Changes(min(1.0, square / self.scale**2), self.scale)
        if square <= observed:
            factor = math.sqrt(square / observed) if observed else 1.0
            return Shifts(tuple((factor * x, w, share) for x, w, share in self.points), self.scale)
        most_added = self.scale**2 - observed
        added = min(1.0, (square - observed) / most_added) if most_added > 0 else 1.0
        kept = tuple((x, w, share * (1 - added)) for x, w, share in self.points)
        return Shifts((*kept, (-self.scale, 1.0, added / 2), (self.scale, 1.0, added / 2)), self.scale)

    def notes(self, difference: float) -> Iterator[Note]:
        """Why to trust a plan for this difference less: few changes, no variance or few samples, and missing scores."""
        if difference > self.most:
            yield note("few_pilot_changes", "caution", changed=self.most / self.scale, difference=difference)
        elif self.deviation == 0:
            yield note("constant_pilot", "caution")
        elif (known := self.units if self.clustered else self.n) < SMALL_PILOT:
            yield note("small_pilot", "caution", n=known)
        if self.missing:
            hidden = self.lost * self.samples / self.n
            yield note("missing_in_pilot", "caution", missing=self.missing, of=self.samples, hidden=hidden)

    def limits(self) -> tuple[float, float]:
        """The 80% confidence interval of the mean square."""
        squares = np.clip(self.squares, 0, self.largest).tolist()
        return BoundedMean.of(squares, 0.0, self.largest, counts=self.counts.tolist()).interval(RANGE)

    def detectable(self, *, power: float = 0.8, confidence: float = 0.95) -> float | None:
        """The minimum detectable difference with as many units as the pilot has (`detectable_difference`)."""
        known = detectable_difference(self.population(), self.units, power=power, confidence=confidence)
        if known is None or known <= self.most:
            return known
        return smallest(
            lambda x: self.population(difference=x).enough(self.units, x, power, 1 - confidence), self.most, self.scale
        )


def plan_sample_size(
    pilot: Pilot | None, difference: float, *, power: float = 0.8, confidence: float = 0.95
) -> SampleSizePlan | None:
    """The sample size plan for a pilot; None without a pilot. Arguments and errors as for `samples_needed`.

    If the pilot's missing scores can hide the difference from any number of samples, there is no error: none is needed.
    """
    if pilot is None:
        return None
    size = pilot.samples / pilot.units
    least, most = pilot.limits()
    needed, low, high = (
        _needed(population, difference, power=power, confidence=confidence)
        for population in (
            pilot.population(difference=difference),
            pilot.population(least),
            pilot.population(most, difference=difference),
        )
    )
    if difference > pilot.most:
        needed = high  # few changes say little about how many there will be

    def in_samples(units: float) -> int | None:
        return None if math.isinf(units) else math.ceil(units * size)

    return SampleSizePlan(
        n=pilot.n,
        mean=pilot.mean,
        deviation=pilot.deviation,
        difference=difference,
        needed=in_samples(needed),
        needed_low=in_samples(min(low, needed)),
        needed_high=in_samples(max(high, needed)),
        detectable=pilot.detectable(power=power, confidence=confidence),
        power=power,
        confidence=confidence,
        test="mid-p McNemar test" if pilot.pass_fail else "test of the mean difference",
        groups=int(needed) if pilot.clustered and math.isfinite(needed) else None,
        notes=tuple(pilot.notes(difference)),
    )


def _needed(population: Population, difference: float, *, power: float, confidence: float) -> float:
    """As `samples_needed`, but infinite if missing scores can hide the difference from any number of units."""
    if isinstance(population, PartlyMissing) and not population.enough(MAX_SAMPLES, difference, power, 1 - confidence):
        return math.inf
    return samples_needed(population, difference, power=power, confidence=confidence)


@dataclass(frozen=True)
class _Kinds:
    """The kinds of units of a pilot."""

    deviations: Floats
    """From the mean."""
    weights: Floats
    """Their mean over all units is 1."""
    counts: Positions

    @classmethod
    def of(cls, evidence: BoundedMean) -> _Kinds:
        values, weights, counts = np.array(evidence.points).T
        mass = float(weights @ counts) / float(counts.sum())
        return cls(values - evidence.mean, weights / mass, counts.astype(np.intp))

    @property
    def shares(self) -> Floats:
        return self.counts / self.counts.sum()

    @property
    def squares(self) -> Floats:
        """Those of the units, without their counts."""
        return (self.weights * self.deviations) ** 2

    @property
    def variance(self) -> float:
        """Per unit."""
        return _mean(self.squares, self.counts)


def _mean(values: Floats, counts: Positions) -> float:
    """The mean of values that occur as often as their counts say."""
    return math.fsum((values * counts).tolist()) / int(counts.sum())
