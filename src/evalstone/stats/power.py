"""Power analysis: required sample sizes and minimum detectable differences, for the tests that evalstone uses.

Pass/fail pairs: the exact power of the mid-p McNemar test, over all numbers of changed pairs D and all their splits:

    power = Σ over D of P(D) · P(L <= k(D)),   D ~ Binomial(n, gained + lost),   L ~ Binomial(D, lost / (gained + lost))
    k(D) = the largest k with a p-value of at most 1 - confidence

Scores: with probability `power`, the mean of n units (samples or clusters) is above c, where
c = mean - z(power) · deviation / √n. The most likely sample of n units with mean c is the population, exponentially
tilted to mean c. n is large enough if the test (`BoundedMean`) of this typical sample rejects.

The population comes from a pilot run. For pass/fail pairs, it is the share of pairs that change, gained + lost, with
gained - lost set to the difference to detect. For scores, it is the pilot's differences, shifted so that their mean is
the difference to detect.

A comparison counts missing scores with the lowest possible difference in the test of a gain (`comparison`), and a plan
counts those of the pilot in the same way, for the direction in which they take more. If a share k of the samples have
both scores, a difference between these leaves k · difference - lost between all. `partly_known` has the error rate.

bench/coverage_plan.py simulates the power at the planned n, and the coverage of the range of
required sample sizes.

Source of the tilting: Gibbs conditioning, Dembo and Zeitouni 1998, Large Deviations Techniques and Applications, 7.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from evalstone.errors import ConfigError, invalid
from evalstone.stats._arrays import Floats, Positions, column, same_length
from evalstone.stats.bounded_mean import EXACT, BoundedMean, Side
from evalstone.stats.intervals import Ends, check_confidence
from evalstone.stats.partly_known import REFERENCE, PartlyKnown
from evalstone.stats.weighted_mean import WeightedMean, weighted_average
from evalstone.types import Note, note

MAX_SAMPLES = 1_000_000_000
PRACTICAL = 10_000
PRACTICAL_TIMES = 100
"""If more units than this are needed, and more than this many times the current ones, a mean is too close to the
threshold to decide."""
NORMAL_FROM = 1_000_000
"""With more changed pairs than this, the power is that of the normal approximation, within 0.001."""
SMALL_PILOT = 20
RANGE = 0.8
POINTS = 32
"""A population of more distinct values is grouped into this many classes, which are narrow at both ends: equal steps of
the normal quantile of the rank, up to ± REACH."""
REACH = 4.0
PRECISION = 0.002
NORMAL = NormalDist()
Points: TypeAlias = tuple[tuple[float, float, float], ...]
"""(value, weight, share of units) of each kind of unit."""


@dataclass(frozen=True)
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
    confidence: float
    test: str
    """The test that the plan is for."""
    groups: int | None
    """The required number of clusters of the pilot's mean cluster size; None for independent samples."""
    notes: tuple[Note, ...]
    """Why to trust the plan less."""


@dataclass(frozen=True)
class Changes:
    """Independent pass/fail pairs with scores of 0 or `scale`, of which `share` change. Test: mid-p McNemar."""

    share: float
    scale: float = 1.0

    def enough(self, n: int, difference: float, power: float, alpha: float, gap: float = 0.0) -> bool:
        """Whether n pairs have this power. If the difference needs more changes than `share`, all changes are gains.

        gap: The distance of the two ends of a mean difference that missing scores leave known in part.
        """
        net = difference / self.scale
        share = max(self.share, net)
        partly = _partly_known(gap, self.scale * math.sqrt(max(0.0, share - net**2)), n)
        return mcnemar_power(n, (share + net) / 2, (share - net) / 2, 2 * partly.error_rate(alpha)) >= power


@dataclass(frozen=True)
class Shifts:
    """Differences in [-scale, scale], as deviations from their mean. Test: the two-sided one of `BoundedMean`."""

    points: Points
    scale: float = 1.0

    def enough(self, n: int, difference: float, power: float, alpha: float, gap: float = 0.0) -> bool:
        """Whether n units have this power for a mean difference in either direction. gap: As for `Changes`."""
        mirrored = tuple((-x, w, share) for x, w, share in self.points)
        return all(self._shows(points, n, difference, power, alpha, gap) for points in (self.points, mirrored))

    def _shows(self, points: Points, n: int, difference: float, power: float, alpha: float, gap: float) -> bool:
        moved = _moved(points, difference, self.scale)
        mean, deviation = _moments(moved)
        edge = mean - NORMAL.inv_cdf(power) * deviation / math.sqrt(n)
        sample = _typical_sample(moved, edge, n, -self.scale, self.scale)
        partly = _partly_known(gap, deviation, n)
        return sample is not None and partly.p_value(sample.two_sided_p(0.0, share=partly.share)) <= alpha


@dataclass(frozen=True)
class PartlyMissing:
    """Differences of which some are missing, and count with their lowest value."""

    lowest: Changes | Shifts
    """All differences, missing ones at their lowest. If it is `Shifts`, the others have a mean of 0."""
    kept: float
    """The share of samples with both scores."""
    lost: float
    """What missing scores take from kept · difference, at most."""
    gap: float
    """The distance of the mean difference with missing ones at their highest from that with them at their lowest."""

    @property
    def scale(self) -> float:
        """That of the differences."""
        return self.lowest.scale

    def enough(self, n: int, difference: float, power: float, alpha: float) -> bool:
        """Whether n units have this power for a mean difference of those with both scores."""
        left = self.kept * difference - self.lost
        return left > 0 and self._at(difference).enough(n, left, power, alpha, self.gap)

    def _at(self, difference: float) -> Changes | Shifts:
        """All differences, those without a missing score moved by the difference: the distance of the others grows."""
        if isinstance(self.lowest, Changes):
            return self.lowest
        variance = _moments(self.lowest.points)[1] ** 2
        grown = variance + self.kept * ((1 - self.kept) * difference**2 + 2 * self.lost * difference)
        factor = math.sqrt(grown / variance) if variance else 1.0
        return replace(self.lowest, points=tuple((factor * x, w, share) for x, w, share in self.lowest.points))


Population: TypeAlias = Changes | Shifts | PartlyMissing


def samples_needed(population: Population, difference: float, *, power: float = 0.8, confidence: float = 0.95) -> int:
    """The smallest number of units, 2 or more, with at least this power to detect a true difference.

    Args:
        population: The distribution of the differences between the two runs.
        difference: The true difference, in (0, scale].
        power: The probability of detecting it, in (1 - confidence, 1).
        confidence: The confidence level of the test, in (0, 1).

    Raises:
        ConfigError: An argument is outside its range, or more than 10⁹ samples would be needed.
    """
    _check(power, confidence)
    if not 0 < difference <= population.scale:
        raise ConfigError(invalid("difference", f"above 0 and at most {population.scale:g}", difference))
    needed = _first(lambda n: population.enough(n, difference, power, 1 - confidence), 2, MAX_SAMPLES)
    if needed is None:
        raise ConfigError(f"a difference of {difference:g} would need more than {MAX_SAMPLES:,} samples")
    return needed


def detectable_difference(
    population: Population, n: int, *, power: float = 0.8, confidence: float = 0.95
) -> float | None:
    """The minimum detectable difference: the smallest true difference that n units detect with this power.

    None if n units can't detect even the largest possible difference. Arguments and errors as for `samples_needed`.
    """
    _check(power, confidence)
    if n < 2:
        return None
    return _smallest(lambda x: population.enough(n, x, power, 1 - confidence), 0.0, population.scale)


def mcnemar_power(n: int, gained: float, lost: float, alpha: float = 0.05) -> float:
    """The power of the mid-p McNemar test of n pairs: its probability of rejecting with more gained than lost.

    Args:
        n: The number of pairs.
        gained: The share of pairs that change to pass.
        lost: The share of pairs that change to fail.
        alpha: The two-sided error rate.

    Returns:
        The power, in [0, 1].

    Raises:
        ConfigError: A share is below 0, or their sum is above 1.
    """
    from scipy.special import betainc, gammaln, xlog1py, xlogy  # noqa: PLC0415 - 0.15 s of import

    share = gained + lost
    if not (gained >= 0 and lost >= 0 and share <= 1 + 1e-12):
        raise ConfigError(f"shares must be 0 or more, with a sum of at most 1: gained {gained}, lost {lost}")
    if share == 0:
        return 0.0
    share = min(share, 1.0)
    if n * share > NORMAL_FROM:
        net = gained - lost
        gap = n * net + NORMAL.inv_cdf(alpha / 2) * math.sqrt(n * share)
        return NORMAL.cdf(gap / math.sqrt(n * (share - net**2))) if share > net**2 else 1.0
    reach = 8 * math.sqrt(n * share * (1 - share)) + 8
    changed = np.arange(max(1, math.floor(n * share - reach)), min(n, math.ceil(n * share + reach)) + 1, dtype=float)
    chance = np.exp(
        gammaln(n + 1)
        - gammaln(changed + 1)
        - gammaln(n - changed + 1)
        + xlogy(changed, share)
        + xlog1py(n - changed, -share)
    )

    def at_most(k: Floats, rate: float) -> Floats:
        """P(Binomial(changed, rate) <= k), by number of changed pairs."""
        probability = betainc(changed - np.maximum(k, 0), np.maximum(k, 0) + 1, 1 - rate)
        return np.where(k < 0, 0.0, probability)

    edge = np.full(changed.size, -1.0)
    near = np.floor((changed + NORMAL.inv_cdf(alpha / 2) * np.sqrt(changed)) / 2)
    below = at_most(near - 3, 0.5)
    for k in (near - 2, near - 1, near, near + 1, near + 2):
        at_k = at_most(k, 0.5)
        edge = np.where((k >= 0) & (2 * k < changed) & (below + at_k <= alpha), k, edge)
        below = at_k
    return float(chance @ at_most(edge, lost / share))


def more_units(evidence: BoundedMean, threshold: float, side: Side, alpha: float, *, power: float = 0.8) -> int | None:
    """The number of further units needed to show that the mean is above (1) or below (-1) a threshold.

    The current units are kept, and the new ones follow their empirical distribution, as if the estimate were the true
    value. The test is the one-sided, exact one of `BoundedMean`.

    Args:
        evidence: The current units.
        threshold: The threshold to compare the mean with.
        side: 1 to show that the mean is above the threshold, -1 to show that it is below.
        alpha: The one-sided error rate of the next test, in (0, 0.5).
        power: The probability that the test rejects, in (0, 1).

    Returns:
        1 or more. None if the mean isn't on that side of the threshold, or is too close to it: if neither 10,000 more
        units nor a hundred times as many as now are enough.
    """
    if side * (evidence.mean - threshold) <= 0:
        return None
    points = tuple((x, w, float(count)) for x, w, count in evidence.points)
    mean, deviation = _moments(points)
    quantile = side * NORMAL.inv_cdf(power)

    def enough(more: int) -> bool:
        units = evidence.units + more
        edge = mean - quantile * deviation * math.sqrt(more) / units
        sample = _typical_sample(points, edge, units, evidence.low, evidence.high)
        return sample is not None and sample.p_value(threshold, side, share=EXACT) <= alpha

    return _first(enough, 1, max(PRACTICAL, PRACTICAL_TIMES * math.ceil(evidence.units)))


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
    """One per unit. Their mean is the variance per unit; for pass/fail pairs, scale² times the share that changes."""
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
        known = column("values", [x for x in values if x is not None], low, scale)
        n = known.size
        units = samples if groups is None else len(set(groups))
        if n < 2 or units < 2:
            return None
        if ends is None and n == samples:
            lowest = highest = known
        else:
            of_ends = [(low, scale) if x is None else (x, x) for x in values] if ends is None else ends
            lowest, highest = (column("ends", [pair[side] for pair in of_ends], low, scale) for side in (0, 1))
        missing = int(np.count_nonzero(lowest != highest))
        mean = weighted_average(None, known.tolist())
        pairs = pass_fail and groups is None
        lost = gap = 0.0
        if missing:
            mean_at_ends, has_value = mean, np.array([x is not None for x in values])
            lost, gap = n / samples * mean - float(lowest.mean()), float((highest - lowest).mean())
            if not paired:
                lost = gap
            elif gap > 2 * lost:  # missing scores take more from a loss than from a gain
                lowest, highest, lost, mean_at_ends = -highest, -lowest, gap - lost, -mean_at_ends
            if paired and not pairs:  # as if the others had a mean of 0
                lowest = np.clip(lowest - mean_at_ends * has_value, -scale, scale)
        # The difference of two independent scores has the sum of their variances.
        kinds = [
            _Kinds.of(WeightedMean.of_units(x.tolist(), low, scale, groups=groups))
            for x in ((lowest,) if paired else (lowest, highest))
        ]
        widest, factor = max(kinds, key=lambda kind: kind.variance), units / (units - 1)
        if widest.variance:
            factor *= math.fsum(kind.variance for kind in kinds) / widest.variance
        if pairs and paired:
            squares, largest = lowest**2, scale**2
        else:
            reach = float(widest.weights.max()) * (scale + abs(float(lowest.mean())) * paired)
            more = gap**2 if pairs else 0.0
            squares, largest = factor * widest.squares + more, factor * reach**2 + more
        points = _classes(
            math.sqrt(len(kinds)) * np.concatenate([(-1) ** end * kind.deviations for end, kind in enumerate(kinds)]),
            np.concatenate([kind.weights for kind in kinds]),
            np.concatenate([kind.shares for kind in kinds]) / len(kinds),
        )
        deviation = math.sqrt(len(kinds)) * float(known.std(ddof=1)) if known.max() > known.min() else 0.0
        return cls(
            n=n,
            samples=samples,
            units=units,
            mean=mean,
            squares=squares,
            largest=largest,
            points=points,
            scale=scale,
            deviation=deviation,
            pass_fail=pairs,
            clustered=groups is not None,
            most=scale * int(np.count_nonzero(known)) / n if paired else math.inf,
            missing=missing,
            lost=lost,
            gap=gap,
        )

    def population(self, square: float | None = None, *, difference: float = 0.0) -> Population:
        """The expected differences, rescaled to this mean square. None: the pilot's own.

        A smaller mean square shrinks the differences. A larger one adds differences as large as the scale. If the
        difference to detect is larger than `most`, the pilot's changes are expected to stay, and as many samples as the
        difference needs are expected to change by the whole scale besides: no smaller changes add more to the square.
        """
        observed = float(self.squares.mean())
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
        room = self.scale**2 - observed
        added = min(1.0, (square - observed) / room) if room > 0 else 1.0
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
        return BoundedMean.of(np.clip(self.squares, 0, self.largest).tolist(), 0.0, self.largest).interval(RANGE)

    def detectable(self, *, power: float = 0.8, confidence: float = 0.95) -> float | None:
        """The minimum detectable difference with as many units as the pilot has (`detectable_difference`)."""
        known = detectable_difference(self.population(), self.units, power=power, confidence=confidence)
        if known is None or known <= self.most:
            return known
        return _smallest(
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
    smallest, largest = pilot.limits()
    needed, low, high = (
        _needed(population, difference, power=power, confidence=confidence)
        for population in (
            pilot.population(difference=difference),
            pilot.population(smallest),
            pilot.population(largest, difference=difference),
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


def _partly_known(gap: float, deviation: float, n: int) -> PartlyKnown:
    """How far the ends of a mean of n units with this standard deviation are apart."""
    return PartlyKnown.of(gap, -NORMAL.inv_cdf(REFERENCE) * deviation / math.sqrt(n))


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
        """One per unit."""
        return np.repeat((self.weights * self.deviations) ** 2, self.counts)

    @property
    def variance(self) -> float:
        """Per unit."""
        return float(self.squares.mean())


def _classes(values: Floats, weights: Floats, shares: Floats) -> Points:
    """At most `POINTS` kinds of units, with the same mean and variance."""
    if values.size > POINTS:
        order = np.argsort(values, kind="stable")
        values, weights, shares = values[order], weights[order], shares[order]
        ranks = ((np.cumsum(shares) - shares / 2) / shares.sum()).tolist()
        quantiles = np.array([NORMAL.inv_cdf(rank) for rank in ranks])
        place = np.clip((quantiles / REACH + 1) * POINTS / 2, 0, POINTS - 1).astype(int)
        total: Floats = np.bincount(place, shares, POINTS).astype(np.float64)
        used = total > 0
        mass = np.bincount(place, shares * weights, POINTS)[used]
        means = np.bincount(place, shares * weights * values, POINTS)[used] / mass
        before = float(shares @ (weights * values) ** 2)
        values, weights, shares = means, mass / total[used], total[used]
        after = float(shares @ (weights * values) ** 2)
        values = values * math.sqrt(before / after) if after else values
    return tuple(zip(values.tolist(), weights.tolist(), shares.tolist(), strict=True))


def _moved(points: Points, mean: float, scale: float) -> Points:
    """Points shifted to a mean and clipped to the range; the shift makes up for the clipping."""
    shift, moved = mean, points
    for _ in range(50):
        moved = tuple((min(scale, max(-scale, x + shift)), w, share) for x, w, share in points)
        error = mean - _moments(moved)[0]
        if abs(error) <= 1e-9 * scale:
            break
        shift += error
    return moved


def _moments(points: Points) -> tuple[float, float]:
    """The weighted mean, and the standard deviation per unit: √(units · variance of the mean)."""
    total = math.fsum(share for _, _, share in points)
    mass = math.fsum(w * share for _, w, share in points)
    mean = math.fsum(w * share * x for x, w, share in points) / mass
    square = math.fsum(share * (w * (x - mean)) ** 2 for x, w, share in points)
    return mean, math.sqrt(square * total) / mass


def _typical_sample(points: Points, mean: float, units: float, low: float, high: float) -> BoundedMean | None:
    """The most likely sample of this many units with this mean; None if no sample has this mean."""
    points = tuple(point for point in points if point[2] > 0)
    values = [x for x, _, _ in points]
    smallest, largest = min(values), max(values)
    total = math.fsum(share for _, _, share in points)
    if smallest == largest:
        counts = [(x, w, share * units / total) for x, w, share in points]
    elif not smallest < mean < largest:
        return None
    else:
        pulls: Floats = np.array([w * (x - mean) for x, w, _ in points])
        base: Floats = np.array([share for *_, share in points])
        tilt = _tilt(pulls, base)
        tilted = base * np.exp(tilt * pulls - float((tilt * pulls).max()))
        tilted *= units / float(tilted.sum())
        counts = [(x, w, count) for (x, w, _), count in zip(points, tilted.tolist(), strict=True) if count > 0]
    sums: dict[tuple[float, float], float] = {}
    for x, w, count in counts:
        sums[x, w] = sums.get((x, w), 0.0) + count
    counts = _with_whole_ends([(x, w, count) for (x, w), count in sorted(sums.items())])
    counts = _with_whole_ends(counts[::-1])
    kind = BoundedMean if len({w for _, w, _ in counts}) == 1 else WeightedMean
    return kind(low, high, mean, units, tuple(sorted(counts)))


def _tilt(pulls: Floats, base: Floats) -> float:
    """The t at which Σ base · e^(t · pull) · pull is 0: the minimum of a convex function, by Newton's method."""
    left, right, t = -math.inf, math.inf, 0.0
    scale = float(np.abs(pulls).max())
    for _ in range(200):
        tilted = base * np.exp(t * pulls - float((t * pulls).max()))
        tilted /= tilted.sum()
        slope = float(tilted @ pulls)
        if slope > 0:
            right = t
        else:
            left = t
        if abs(slope) <= 1e-10 * scale:
            break
        step = -slope / max(float(tilted @ (pulls - slope) ** 2), 1e-12 * scale**2)
        step = max(-10 / scale, min(10 / scale, step))
        t += step
        if not left < t < right:
            t = (left + right) / 2 if math.isfinite(left + right) else t
    return t


def _with_whole_ends(counts: Sequence[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Units by value, the first ones merged so that half of all samples contain one: log(2) expected units."""
    total = mass = pull = 0.0
    for place, (x, w, count) in enumerate(counts):
        total, mass, pull = total + count, mass + w * count, pull + w * count * x
        if total >= math.log(2):
            return [(pull / mass, mass / total, total), *counts[place + 1 :]]
    return list(counts)


def _smallest(enough: Callable[[float], bool], low: float, high: float) -> float | None:
    """The smallest difference above low that is large enough, within 0.2%; None if not even the highest is."""
    if not enough(high):
        return None
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _first(enough: Callable[[int], bool], start: int, most: int) -> int | None:
    """The smallest number in [start, most] that is enough, within 0.2%; None if there is none."""
    low, high = start - 1, start
    while not enough(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > max(1.0, PRECISION * low):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _check(power: float, confidence: float) -> None:
    check_confidence(confidence)
    if not 1 - confidence < power < 1:
        raise ConfigError(invalid("power", "above 1 - confidence and below 1, such as 0.8", power))
