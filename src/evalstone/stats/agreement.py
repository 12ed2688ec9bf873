"""Chance-corrected agreement between raters. A rating that is None or NaN is missing.

    kappa, alpha = 1 - D / E        at most 1; 0 is chance, below 0 is worse than chance

D is the observed disagreement: the mean distance between two raters' ratings of a unit. For nominal ratings, that is
the share of pairs that differ. E is the disagreement expected by chance. The coefficients differ in their model of
chance. Cohen's kappa uses each rater's own distribution of ratings, Krippendorff's alpha the pooled one. A coefficient
is None where it is undefined: if no unit is rated twice, or if all ratings are the same.

Confidence limits come from `ratio_limits` and assume independent units, or independent clusters (`of_clusters`). E is
linearized: to first order, it is the mean of one contribution per unit. Units that were not observed are represented by
all pairs of categories, so the interval has a positive width even if all raters agree. docs/evidence.md has the
simulated coverage.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, combinations_with_replacement, product
from typing import Literal, TypeAlias, TypeVar, cast, get_args

from evalstone.errors import ConfigError, DataError, invalid, unknown
from evalstone.stats.intervals import Interval, check_confidence, single
from evalstone.stats.ratios import FIELLER, Parts, of_clusters, ratio_limits

R = TypeVar("R", bound=Hashable)
MeasurementLevel: TypeAlias = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[MeasurementLevel, ...] = get_args(MeasurementLevel)
Weights: TypeAlias = Literal["linear", "quadratic"]
"""The distance between two ratings a and b: |a - b| or (a - b)²."""
WEIGHTS: tuple[Weights, ...] = get_args(Weights)
MOST_CATEGORIES = 12
"""With more categories than this, unobserved units are built from a subset of them."""


def cohen_kappa(
    first: Sequence[Hashable | None],
    second: Sequence[Hashable | None],
    *,
    weights: Weights | None = None,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Interval | None:
    """Cohen's kappa between two raters of the same units, with its interval; weighted kappa for ordinal ratings.

        kappa = 1 - D / E,   D = mean of distance(a, b) over units
        E = Σ over pairs of categories of (share in first) · (share in second) · distance

    The distance is 1 for different categories and 0 for equal ones; with weights, |a - b| (linear) or (a - b)²
    (quadratic). Units that a rater didn't rate are left out.
    Sources: Cohen 1960; Cohen 1968, Psychological Bulletin 70(4).

    Args:
        first: One rater's rating of each unit.
        second: The other rater's ratings, in the same order.
        weights: "linear" or "quadratic" for ordinal ratings, which must be numbers; None for categories.
        groups: One cluster label per unit; units of one cluster may depend on each other. None: all independent.
        confidence: The confidence level, in (0, 1).

    Returns:
        Kappa in [-1, 1]; without limits for a single unit. None for no units that both rated, or if both raters gave
        every unit the same category.

    Raises:
        DataError: Lengths differ, or weighted ratings are not numbers.
        ConfigError: weights is unknown, or confidence is outside (0, 1).
    """
    if weights is not None and weights not in WEIGHTS:
        raise ConfigError(unknown("weights", weights, WEIGHTS))
    if len(first) != len(second):
        raise DataError(f"two raters rate the same units; one has {len(first)} ratings, the other {len(second)}")
    places = [place for place, pair in enumerate(zip(first, second, strict=True)) if not any(map(_missing, pair))]
    if not places:
        return None
    first, second = ([ratings[place] for place in places] for ratings in (first, second))
    if weights is not None:
        first, second = ([_number(x, "weighted") for x in ratings] for ratings in (first, second))
    to_first, to_second = _mean_distance(first, weights), _mean_distance(second, weights)
    chance = math.fsum(to_second(x) for x in first) / len(first)

    def parts(a: Hashable, b: Hashable) -> Parts:
        return _distance(a, b, weights), to_second(a) + to_first(b) - chance

    categories = _thinned({*first, *second})
    units = [parts(a, b) for a, b in zip(first, second, strict=True)]
    possible = (parts(*pair) for pair in product(categories, repeat=2))
    return _beyond_chance(units, possible, chance, confidence, _of_places(groups, places))


def _of_places(groups: Sequence[Hashable] | None, places: Sequence[int]) -> Sequence[Hashable] | None:
    return None if groups is None else [groups[place] for place in places]


def _distance(a: Hashable, b: Hashable, weights: Weights | None) -> float:
    if weights is None:
        return float(a != b)
    distance = abs(cast("float", a) - cast("float", b))
    return distance if weights == "linear" else distance * distance


def _mean_distance(ratings: Sequence[Hashable], weights: Weights | None) -> Callable[[Hashable], float]:
    """A function that returns the mean distance from a rating to all of these ratings."""
    n, counts = len(ratings), Counter(ratings)
    if weights is None:
        return lambda rating: 1 - counts[rating] / n
    levels = sorted(cast("Mapping[float, int]", counts))
    mean = math.fsum(level * counts[level] for level in levels) / n
    if weights == "quadratic":
        spread = math.fsum(counts[level] * (level - mean) ** 2 for level in levels) / n
        return lambda rating: (cast("float", rating) - mean) ** 2 + spread
    below = [0, *accumulate(counts[level] for level in levels)]
    sums = [0.0, *accumulate(counts[level] * level for level in levels)]

    def linear(rating: Hashable) -> float:
        x = cast("float", rating)
        at = bisect_right(levels, x)
        return (x * (2 * below[at] - n) - 2 * sums[at] + sums[-1]) / n

    return linear


def _thinned(categories: Iterable[Hashable]) -> list[Hashable]:
    """The categories, or an evenly spaced subset if there are many; of numbers, from the lowest to the highest."""
    values = list(categories)
    if len(values) <= MOST_CATEGORIES:
        return values
    if all(isinstance(value, int | float) for value in values):
        values.sort(key=lambda value: cast("float", value))
    last = MOST_CATEGORIES - 1
    return [values[place * (len(values) - 1) // last] for place in range(MOST_CATEGORIES)]


def _beyond_chance(
    units: Sequence[Parts],
    possible: Iterable[Parts],
    chance: float,
    confidence: float,
    groups: Sequence[Hashable] | None,
) -> Interval | None:
    """1 - D / E with its limits, from each unit's contributions to D and E; None if E is 0."""
    check_confidence(confidence)
    if chance < 1e-12:
        return None
    n = len(units)
    observed = math.fsum(d for d, _ in units) / n
    coefficient = 1 - observed / chance
    clusters = None if groups is None else len(set(groups))
    found = Interval(estimate=coefficient, low=None, high=None, n=n, confidence=confidence, groups=clusters)
    independent = of_clusters(units, groups)
    if len(independent) < 2:
        return replace(found, notes=single(n))
    highest = max(2.0, observed / chance)
    low, high = ratio_limits(independent, possible, low=0.0, high=highest, confidence=confidence)
    return replace(found, low=1 - high, high=1 - low, method=FIELLER)


def _split(categories: Iterable[R], raters: int) -> list[Counter[R]]:
    """Units with unanimous ratings, and units whose raters are split evenly between two categories."""
    pairs = combinations_with_replacement(cast("list[R]", _thinned(categories)), 2)
    half = raters // 2
    return [Counter([a] * half + [b] * (raters - half)) for a, b in pairs]


def krippendorff_alpha(
    ratings: Sequence[Sequence[R | None]],
    *,
    level: MeasurementLevel = "nominal",
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Interval | None:
    """Krippendorff's alpha between any number of raters, at most 1, with its interval. Missing ratings are allowed.

        alpha = 1 - (n - 1) Σ o(c, k) d(c, k) / Σ n(c) n(k) d(c, k),    over pairs of values c, k

    o(c, k) counts the pairs of ratings c and k within units; the pairs of a unit with m ratings have the weight
    1 / (m - 1). n(c) is the number of ratings c in units with two ratings or more, and n their total. The distance d
    depends on the level of measurement:

        nominal    1 if c ≠ k
        ordinal    (n(c) / 2 + Σ n(g) over all g between c and k + n(k) / 2)²
        interval   (c - k)²

    None if no unit has two ratings, or if all ratings are the same. groups: One cluster label per unit; units of one
    cluster may depend on each other. None: all independent.
    Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".

    Raises:
        ConfigError: level is unknown, or confidence is outside (0, 1).
        DataError: Ordinal or interval ratings are not numbers.
    """
    if level not in LEVELS:
        raise ConfigError(unknown("level of measurement", level, LEVELS))
    counts = [Counter(cast("R", rating) for rating in row if not _missing(rating)) for row in ratings]
    rated = [place for place, row in enumerate(counts) if row.total() >= 2]
    counts = [counts[place] for place in rated]
    totals = sum(counts, Counter[R]())
    if len(totals) < 2:
        return None
    places = None if level == "nominal" else _places(totals, level)
    n = totals.total()
    to_all = _mean_distance(
        list(totals.elements()) if places is None else [places[rating] for rating in totals.elements()],
        None if places is None else "quadratic",
    )
    distances = {rating: to_all(rating if places is None else places[rating]) * n / (n - 1) for rating in totals}
    chance = math.fsum(count * distances[rating] for rating, count in totals.items()) / n

    def parts(row: Counter[R]) -> Parts:
        size = row.total()
        weight = size * len(counts) / n
        away = math.fsum(count * distances[rating] for rating, count in row.items()) / size
        return weight * 2 * _apart(row, places) / (size * (size - 1)), weight * (2 * away - chance)

    possible = map(parts, _split(totals, max(row.total() for row in counts)))
    return _beyond_chance([parts(row) for row in counts], possible, chance, confidence, _of_places(groups, rated))


def _apart(counts: Counter[R], places: Mapping[R, float] | None) -> float:
    """The sum of distances over all pairs of ratings: Σ n(c) n(k) d(c, k) over c < k.

    places: The position of each value; d is then the squared difference of positions, and the sum is n times the sum of
    squares around the mean. None: nominal ratings.
    """
    n = counts.total()
    if places is None:
        return (n * n - sum(count * count for count in counts.values())) / 2
    mean = math.fsum(count * places[value] for value, count in counts.items()) / n
    return n * math.fsum(count * (places[value] - mean) ** 2 for value, count in counts.items())


def _places(totals: Mapping[R, int], level: MeasurementLevel) -> dict[R, float]:
    """The position of each value: for interval ratings the number itself, for ordinal ones the middle of its ranks."""
    numbers = {value: _number(value, level) for value in totals}
    if level == "interval":
        return numbers
    places: dict[R, float] = {}
    below = 0
    for value in sorted(totals, key=numbers.__getitem__):
        places[value] = below + totals[value] / 2
        below += totals[value]
    return places


def _missing(rating: object) -> bool:
    return rating is None or (isinstance(rating, float) and math.isnan(rating))


def _number(value: object, level: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(invalid(f"{level} ratings", "finite numbers", value))
    return float(value)
