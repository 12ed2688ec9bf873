"""How many samples show a difference, and what difference a number of samples can show, by the test that is used.

Pass/fail pairs: the exact power of the mid-p McNemar test, over all numbers of changed pairs D and all ways they split:

    power = Σ P(D) · P(lost <= k(D)),   D binomial(n, gained + lost),   lost binomial(D, lost / (gained + lost)),
    k(D) the largest k whose p-value is at most 1 - confidence

Scores: n units (samples, or clusters) of a population have a mean that is above c with the wanted power,
c = mean - z(power) · deviation / √n. The most likely n units of mean c are the population, tilted exponentially to the
mean c. n is enough if the test (`BoundedMean`) of such units rejects.

A pilot run gives the population: for pass/fail pairs the share that changes, gained + lost, with gained - lost being
the difference to show; for scores the differences of the pilot, moved so that their mean is the difference to show.
bench/coverage_plan.py simulates the power at the planned n, and how often the range of samples needed holds the truth.

Source of the tilting: Gibbs conditioning, Dembo and Zeitouni 1998, Large Deviations Techniques and Applications, 7.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from evalstone.errors import ConfigError
from evalstone.stats._arrays import Floats, column, same_length
from evalstone.stats.bounded_mean import EXACT, SHARE, BoundedMean, Side
from evalstone.stats.intervals import check_confidence

MAX_SAMPLES = 1_000_000_000
PRACTICAL = 1_000_000
"""More further samples than this are no answer to "how many more?"."""
NORMAL_FROM = 1_000_000
"""With more changed pairs McNemar's test is the normal one but for 0.001."""
SMALL_PILOT = 20
RANGE = 0.8
POINTS = 32
"""A population of more distinct values is put into so many classes, narrow at both ends: equal steps of the normal
quantile of their rank, up to REACH."""
REACH = 4.0
PRECISION = 0.002
NORMAL = NormalDist()
Points: TypeAlias = tuple[tuple[float, float, float], ...]
"""Value, weight and share of each kind of unit."""


@dataclass(frozen=True)
class SampleSizePlan:
    """The samples needed to show a difference, from a pilot run of n samples."""

    n: int
    mean: float
    """Of the pilot's differences; of its scores for one pilot run."""
    deviation: float
    """The standard deviation of the differences."""
    difference: float
    """The difference to show."""
    needed: int
    """The samples needed."""
    needed_low: int
    """The same for the lower end of the 80% interval of the differences' mean square, because a pilot is uncertain."""
    needed_high: int
    """The same for the upper end."""
    detectable: float | None
    """The minimum detectable difference: the smallest one that the pilot itself would have shown with this power; None
    where the scale allows none."""
    power: float
    confidence: float
    test: str
    """The test that is planned for."""
    groups: int | None
    """The clusters needed, each with as many samples as in the pilot on average; None for independent samples."""
    caution: str
    """Why to trust the plan less, or ""."""


@dataclass(frozen=True)
class Changes:
    """Independent pass/fail pairs, worth 0 or `scale`, of which this share changes; the mid-p McNemar test."""

    share: float
    scale: float = 1.0

    def enough(self, n: int, difference: float, power: float, alpha: float) -> bool:
        """Whether n pairs show the difference with this power; if it takes more changes than `share`, all are gains."""
        net = difference / self.scale
        share = max(self.share, net)
        return mcnemar_power(n, (share + net) / 2, (share - net) / 2, alpha) >= power


@dataclass(frozen=True)
class Shifts:
    """Differences in [-scale, scale] as their distances from their mean; the two-sided test of `BoundedMean`."""

    points: Points
    scale: float = 1.0

    def enough(self, n: int, difference: float, power: float, alpha: float) -> bool:
        """Whether n units show a mean difference with this power, up and down."""
        mirrored = tuple((-x, w, share) for x, w, share in self.points)
        return all(self._shows(points, n, difference, power, alpha) for points in (self.points, mirrored))

    def _shows(self, points: Points, n: int, difference: float, power: float, alpha: float) -> bool:
        moved = _moved(points, difference, self.scale)
        mean, deviation = _moments(moved)
        edge = mean - NORMAL.inv_cdf(power) * deviation / math.sqrt(n)
        sample = _typical_sample(moved, edge, n, -self.scale, self.scale)
        return sample is not None and sample.p_value(0.0, 1, share=SHARE) <= alpha / 2


Population: TypeAlias = Changes | Shifts


def samples_needed(population: Population, difference: float, *, power: float = 0.8, confidence: float = 0.95) -> int:
    """The fewest units, 2 or more, that show a true difference with at least this power.

    Args:
        population: What the differences between the two runs are like.
        difference: The true difference, in (0, scale].
        power: In (1 - confidence, 1).
        confidence: Of the test, in (0, 1).

    Raises:
        ConfigError: An argument is outside its range, or more than 10⁹ samples would be needed.
    """
    _check(power, confidence)
    if not 0 < difference <= population.scale:
        raise ConfigError(f"difference must be above 0 and at most {population.scale:g}, not {difference}")
    found = _first(lambda n: population.enough(n, difference, power, 1 - confidence), 2, MAX_SAMPLES)
    if found is None:
        raise ConfigError(f"a difference of {difference:g} would need more than {MAX_SAMPLES:,} samples")
    return found


def detectable_difference(
    population: Population, n: int, *, power: float = 0.8, confidence: float = 0.95
) -> float | None:
    """The minimum detectable difference: the smallest true one that n units show with this power.

    None where the scale allows none. Arguments and errors are those of `samples_needed`.
    """
    _check(power, confidence)
    low, high = 0.0, population.scale
    if n < 2 or not population.enough(n, high, power, 1 - confidence):
        return None
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if population.enough(n, middle, power, 1 - confidence) else (middle, high)
    return high


def mcnemar_power(n: int, gained: float, lost: float, alpha: float = 0.05) -> float:
    """The chance that the mid-p McNemar test of n pairs shows that more are gained than lost, in [0, 1].

    Args:
        n: The number of pairs.
        gained: The share of pairs that change to pass.
        lost: The share that change to fail.
        alpha: The two-sided error rate.

    Raises:
        ConfigError: The shares are below 0 or above 1 together.
    """
    from scipy.special import betainc, gammaln, xlog1py, xlogy  # noqa: PLC0415 - 0.15 s of import

    share = gained + lost
    if not (gained >= 0 and lost >= 0 and share <= 1 + 1e-12):
        raise ConfigError(f"shares must be 0 or more and 1 at most together: gained {gained}, lost {lost}")
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
        inside = betainc(changed - np.maximum(k, 0), np.maximum(k, 0) + 1, 1 - rate)
        return np.where(k < 0, 0.0, inside)

    edge = np.full(changed.size, -1.0)
    near = np.floor((changed + NORMAL.inv_cdf(alpha / 2) * np.sqrt(changed)) / 2)
    below = at_most(near - 3, 0.5)
    for k in (near - 2, near - 1, near, near + 1, near + 2):
        there = at_most(k, 0.5)
        edge = np.where((k >= 0) & (2 * k < changed) & (below + there <= alpha), k, edge)
        below = there
    shown = at_most(edge, lost / share)
    return float(chance @ shown)


def more_units(evidence: BoundedMean, threshold: float, side: Side, alpha: float, *, power: float = 0.8) -> int | None:
    """How many more units would show, with this power, that the mean is above (1) or below (-1) the threshold.

    The units so far are kept; the new ones are drawn from the same values in the same shares, as if the estimate were
    the truth. The test is the one-sided one of `BoundedMean` at share 1.

    Args:
        evidence: The units so far.
        threshold: What the mean is compared with.
        side: 1 or -1.
        alpha: The one-sided error rate of the test to come, in (0, 0.5).
        power: In (0, 1).

    Returns:
        1 or more; None if the mean isn't on that side of the threshold, or if a million would not do.
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

    return _first(enough, 1, PRACTICAL)


@dataclass(frozen=True)
class Pilot:
    """A pilot run's differences, or its scores taken for those of two independent runs."""

    n: int
    units: int
    """Independent samples or clusters."""
    mean: float
    squares: Floats
    """One per unit; their mean is the share that changes for pass/fail pairs, else the variance per unit."""
    largest: float
    """The largest possible square."""
    points: Points
    """Distances from the mean."""
    scale: float
    deviation: float
    """The standard deviation of the differences of samples."""
    pass_fail: bool
    """Whether McNemar's test is used."""
    clustered: bool

    @classmethod
    def of(
        cls,
        values: Sequence[float],
        *,
        scale: float = 1.0,
        paired: bool = True,
        pass_fail: bool = False,
        groups: Sequence[Hashable] | None = None,
    ) -> Pilot | None:
        """The pilot; None below two samples (clusters).

        Args:
            values: The paired differences of two pilot runs, in [-scale, scale]. Or one run's scores, in [0, scale]:
                the scores of the two runs to come are then taken to be independent, with the spread of these.
            scale: The upper end of the scores' range.
            paired: Whether `values` are differences.
            pass_fail: Whether all scores are 0 or `scale`, so that McNemar's test is used unless there are groups.
            groups: One cluster label per value; clusters are then what is counted.

        Raises:
            DataError: A value is not a finite number in the range, or `groups` has another length.
        """
        n = same_length(values=values, groups=groups)
        low, factor = (-scale, 1.0) if paired else (0.0, 2.0)  # the difference of two scores has twice their variance
        x = column("values", values, low, scale)
        if n < 2:
            return None
        evidence = BoundedMean.of(x.tolist(), low, scale, groups=groups)
        units = n if groups is None else len(set(groups))
        if units < 2:
            return None
        points = np.array(evidence.points)
        weights = points[:, 1] * units / float(points[:, 1] @ points[:, 2])
        away: Floats = points[:, 0] - evidence.mean
        squares = np.repeat(factor * units / (units - 1) * (weights * away) ** 2, points[:, 2].astype(int))
        largest = factor * units / (units - 1) * (float(weights.max()) * (scale + abs(evidence.mean) * paired)) ** 2
        pairs = pass_fail and groups is None
        if pairs and paired:
            squares, largest = x**2, scale**2
        shares = points[:, 2] / units
        if not paired:
            away = math.sqrt(2) * np.concatenate((away, -away))
            weights, shares = np.tile(weights, 2), np.tile(shares / 2, 2)
        deviation = math.sqrt(factor) * float(x.std(ddof=1)) if x.max() > x.min() else 0.0
        kinds = _classes(away, weights, shares)
        clustered = groups is not None
        return cls(n, units, evidence.mean, squares, largest, kinds, scale, deviation, pairs, clustered)

    def population(self, square: float | None = None) -> Population:
        """The differences to expect, with another mean square where one is given.

        A smaller one shrinks the differences; a larger one adds differences as large as the scale.
        """
        seen = float(self.squares.mean())
        square = seen if square is None else square
        if self.pass_fail:
            return Changes(min(1.0, square / self.scale**2), self.scale)
        if square <= seen:
            factor = math.sqrt(square / seen) if seen else 1.0
            return Shifts(tuple((factor * x, w, share) for x, w, share in self.points), self.scale)
        added = min(1.0, (square - seen) / (self.scale**2 - seen)) if seen < self.scale**2 else 1.0
        kept = tuple((x, w, share * (1 - added)) for x, w, share in self.points)
        return Shifts((*kept, (-self.scale, 1.0, added / 2), (self.scale, 1.0, added / 2)), self.scale)

    def limits(self) -> tuple[float, float]:
        """The 80% interval of the mean square."""
        return BoundedMean.of(np.clip(self.squares, 0, self.largest).tolist(), 0.0, self.largest).interval(RANGE)

    def detectable(self, *, power: float = 0.8, confidence: float = 0.95) -> float | None:
        """`detectable_difference` for as many units as the pilot has."""
        return detectable_difference(self.population(), self.units, power=power, confidence=confidence)


def plan_sample_size(
    pilot: Pilot | None, difference: float, *, power: float = 0.8, confidence: float = 0.95
) -> SampleSizePlan | None:
    """A plan from a pilot; None without one. Arguments and errors: `samples_needed`."""
    if pilot is None:
        return None
    size = pilot.n / pilot.units
    needed, low, high = (
        samples_needed(population, difference, power=power, confidence=confidence)
        for population in (pilot.population(), *map(pilot.population, pilot.limits()))
    )
    caution = ""
    if pilot.deviation == 0:
        caution = "the pilot's values don't vary: plan for the upper end of the range"
    elif pilot.units < SMALL_PILOT:
        caution = f"small pilot (n = {pilot.units}): its standard deviation is uncertain"
    return SampleSizePlan(
        n=pilot.n,
        mean=pilot.mean,
        deviation=pilot.deviation,
        difference=difference,
        needed=math.ceil(needed * size),
        needed_low=math.ceil(min(low, needed) * size),
        needed_high=math.ceil(max(high, needed) * size),
        detectable=pilot.detectable(power=power, confidence=confidence),
        power=power,
        confidence=confidence,
        test="mid-p McNemar test" if pilot.pass_fail else "test of the mean difference",
        groups=needed if pilot.clustered else None,
        caution=caution,
    )


def _classes(values: Floats, weights: Floats, shares: Floats) -> Points:
    """At most `POINTS` kinds of units with the same mean and variance."""
    if values.size > POINTS:
        order = np.argsort(values, kind="stable")
        values, weights, shares = values[order], weights[order], shares[order]
        middles = ((np.cumsum(shares) - shares / 2) / shares.sum()).tolist()
        depths = np.array([NORMAL.inv_cdf(middle) for middle in middles])
        place = np.clip((depths / REACH + 1) * POINTS / 2, 0, POINTS - 1).astype(int)
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
    """Points moved to another mean; those that the range cuts off make the others move farther."""
    shift, missing = mean, math.inf
    moved = points
    for _ in range(50):
        moved = tuple((min(scale, max(-scale, x + shift)), w, share) for x, w, share in points)
        missing = mean - _moments(moved)[0]
        if abs(missing) <= 1e-9 * scale:
            break
        shift += missing
    return moved


def _moments(points: Points) -> tuple[float, float]:
    """The weighted mean, and the deviation of a unit: √(units · variance of the mean)."""
    total = math.fsum(share for _, _, share in points)
    mass = math.fsum(w * share for _, w, share in points)
    mean = math.fsum(w * share * x for x, w, share in points) / mass
    square = math.fsum(share * (w * (x - mean)) ** 2 for x, w, share in points)
    return mean, math.sqrt(square * total) / mass


def _typical_sample(points: Points, mean: float, units: float, low: float, high: float) -> BoundedMean | None:
    """The most likely sample of so many units with this mean; None if no sample has it."""
    values = [x for x, _, share in points if share > 0]
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
        made = base * np.exp(tilt * pulls - float((tilt * pulls).max()))
        made *= units / float(made.sum())
        counts = [(x, w, count) for (x, w, _), count in zip(points, made.tolist(), strict=True) if count > 0]
    sums: dict[tuple[float, float], float] = {}
    for x, w, count in counts:
        sums[x, w] = sums.get((x, w), 0.0) + count
    counts = _with_whole_ends([(x, w, count) for (x, w), count in sorted(sums.items())])
    counts = _with_whole_ends(counts[::-1])
    mass = math.fsum(w * count for _, w, count in counts)
    typical = math.fsum(w * w * count for _, w, count in counts) / mass
    return BoundedMean(low, high, mean, units, tuple(sorted(counts)), typical)


def _tilt(pulls: Floats, base: Floats) -> float:
    """The t at which Σ base · e^(t · pull) · pull is 0: the minimum of a convex function, by Newton's steps."""
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
    """Units, by value, of which the first ones that more than half of all samples lack are taken together."""
    total = mass = pull = 0.0
    for place, (x, w, count) in enumerate(counts):
        total, mass, pull = total + count, mass + w * count, pull + w * count * x
        if total >= math.log(2):
            return [(pull / mass, mass / total, total), *counts[place + 1 :]]
    return list(counts)


def _first(enough: Callable[[int], bool], start: int, most: int) -> int | None:
    """The smallest number from start to most that is enough, within 0.2%; None if there is none."""
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
        raise ConfigError(f"power must be above 1 - confidence and below 1, such as 0.8, not {power}")
