"""Agreement of raters beyond chance. Ratings are a row per unit and a column per rater; None is a missing rating.

    kappa, AC1, alpha = 1 - D / E        at most 1, 0 is chance, below 0 is worse

D is the mean distance of two raters' ratings of a unit (for nominal ratings, the share of pairs that differ) and E the
distance expected by chance. They differ in their model of chance: Cohen's kappa uses each rater's own distribution,
Fleiss' kappa and Krippendorff's alpha that of all raters together, and Gwet's AC1 the share of units that are hard to
rate, so that it doesn't drop when nearly all ratings are the same. All are None where undefined: nothing is rated
twice, or all ratings are the same.

Each comes with limits (`ratio_limits`), for independent units. E is the mean over units of what each adds to it, to
first order; the units that might have been seen are those of every two categories. The limits have a width even where
all raters agree. docs/statistics.md has the simulated coverage.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import accumulate, combinations_with_replacement, product
from typing import Literal, TypeAlias, TypeVar, cast, get_args

from evalstone.errors import ConfigError, DataError, unknown
from evalstone.stats.intervals import Interval, check_confidence, single
from evalstone.stats.ratios import FIELLER, Parts, ratio_limits

R = TypeVar("R", bound=Hashable)
Level: TypeAlias = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = get_args(Level)
Weights: TypeAlias = Literal["linear", "quadratic"]
"""How the distance of two ratings a and b counts: |a - b| or (a - b)²."""
WEIGHTS: tuple[Weights, ...] = get_args(Weights)
MOST_CATEGORIES = 12
"""Of more categories, some stand for all when units that were not seen are imagined."""


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    weights: Weights | None = None,
    confidence: float = 0.95,
) -> Interval | None:
    """Cohen's kappa of two raters of the same units, with its interval; weighted for ratings that are numbers.

        E = Σ over pairs of categories of (share in first) · (share in second) · distance

    distance: 1 for categories that differ; with weights, |a - b| (linear) or (a - b)² (quadratic).
    Sources: Cohen 1960; Cohen 1968, Psychological Bulletin 70(4).

    Args:
        first: One rater's rating of each unit.
        second: The other's, in the same order.
        weights: "linear" or "quadratic" for ordinal ratings, which must be numbers; None for categories.
        confidence: The confidence level, in (0, 1).

    Returns:
        Kappa in [-1, 1]; without limits for a single unit. None for no units, and if both raters always gave the same
        category.

    Raises:
        DataError: Sequences of different lengths, or weighted ratings that are not numbers.
        ConfigError: Unknown weights, or confidence is outside (0, 1).
    """
    if weights is not None and weights not in WEIGHTS:
        raise ConfigError(unknown("weights", weights, WEIGHTS))
    if len(first) != len(second):
        raise DataError(f"two raters rate the same units; one has {len(first)} ratings, the other {len(second)}")
    if not first:
        return None
    if weights is not None:
        first, second = ([_number(x, "weighted") for x in ratings] for ratings in (first, second))
    to_first, to_second = _mean_distance(first, weights), _mean_distance(second, weights)
    chance = math.fsum(to_second(x) for x in first) / len(first)

    def parts(one: Hashable, other: Hashable) -> Parts:
        return _distance(one, other, weights), to_second(one) + to_first(other) - chance

    categories = _some({*first, *second})
    units = [parts(one, other) for one, other in zip(first, second, strict=True)]
    return _beyond_chance(units, (parts(*pair) for pair in product(categories, repeat=2)), chance, confidence)


def _distance(one: Hashable, other: Hashable, weights: Weights | None) -> float:
    if weights is None:
        return float(one != other)
    apart = abs(cast("float", one) - cast("float", other))
    return apart if weights == "linear" else apart * apart


def _mean_distance(ratings: Sequence[Hashable], weights: Weights | None) -> Callable[[Hashable], float]:
    """The mean distance from a rating to these, as a function."""
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


def _some(categories: Iterable[Hashable]) -> list[Hashable]:
    """Categories, or some of many: numbers from the lowest to the highest."""
    found = list(categories)
    if len(found) <= MOST_CATEGORIES:
        return found
    if all(isinstance(one, int | float) for one in found):
        found.sort(key=lambda one: cast("float", one))
    last = MOST_CATEGORIES - 1
    return [found[place * (len(found) - 1) // last] for place in range(MOST_CATEGORIES)]


def _beyond_chance(
    units: Sequence[Parts],
    possible: Iterable[Parts],
    chance: float,
    confidence: float,
    sizes: Sequence[float] | None = None,
) -> Interval | None:
    """1 - D / E with its limits, from what each unit adds to D and to E; None where E is 0. sizes: of the units."""
    check_confidence(confidence)
    if chance < 1e-12:
        return None
    n = len(units)
    total = n if sizes is None else math.fsum(sizes)
    seen = math.fsum(size * d for size, (d, _) in zip(sizes or [1.0] * n, units, strict=True)) / total
    coefficient = 1 - seen / chance
    if n < 2:
        return Interval(coefficient, None, None, n, confidence, caution=single(n))
    most = max(2.0, seen / chance)
    least, most = ratio_limits(units, possible, low=0.0, high=most, confidence=confidence, weights=sizes)
    return Interval(coefficient, 1 - most, 1 - least, n, confidence, method=FIELLER)


def fleiss_kappa(ratings: Sequence[Sequence[Hashable | None]], *, confidence: float = 0.95) -> Interval | None:
    """Fleiss' kappa of two or more raters, in [-1, 1], with its interval; units may have different raters.

    D = mean over units of the share of differing pairs; E = 1 - Σ (share of a category in all ratings)².
    None for no units, and if all ratings are one category. Source: Fleiss 1971.

    Raises:
        DataError: Units have different numbers of ratings, or fewer than two: leave such units out, or use
            Krippendorff's alpha.
        ConfigError: confidence is outside (0, 1).
    """
    counts = [Counter(rating for rating in row if rating is not None) for row in ratings]
    sizes = {row.total() for row in counts}
    if len(sizes) > 1 or (sizes and min(sizes) < 2):
        came = " and ".join(map(str, sorted(sizes)))
        raise DataError(f"Fleiss' kappa needs the same number of ratings, two or more, of each unit, not {came}")
    if not counts:
        return None
    together = sum(counts, Counter[Hashable]())
    n, raters = together.total(), sizes.pop()
    chance = 1 - math.fsum((count / n) ** 2 for count in together.values())

    def parts(row: Counter[Hashable]) -> Parts:
        away = math.fsum(count * (1 - together[rating] / n) for rating, count in row.items()) / raters
        return _differing(row), 2 * away - chance

    return _beyond_chance([parts(row) for row in counts], map(parts, _split(together, raters)), chance, confidence)


def _split(categories: Iterable[R], raters: int) -> list[Counter[R]]:
    """The units that all raters give one category, and those on which they are split over two."""
    pairs = combinations_with_replacement(cast("list[R]", _some(categories)), 2)
    half = raters // 2
    return [Counter([one] * half + [other] * (raters - half)) for one, other in pairs]


def gwet_ac1(
    ratings: Sequence[Sequence[Hashable | None]], *, categories: int | None = None, confidence: float = 0.95
) -> Interval | None:
    """Gwet's AC1 of two or more raters, in [-1, 1], with its interval. Missing ratings are allowed.

    D = mean share of differing pairs, over units with two ratings or more; E = 1 - Σ p (1 - p) / (q - 1), p the mean
    share of a category over units with a rating, q the number of categories (those that occur, unless `categories` is
    more). None if no unit has two ratings, and if q is below 2. Source: Gwet 2008.

    Raises:
        ConfigError: confidence is outside (0, 1).
    """
    counts = [row for row in (Counter(r for r in row if r is not None) for row in ratings) if row]
    pairable = sum(row.total() >= 2 for row in counts)
    used = {category for row in counts for category in row}
    q = max(len(used), categories or 0)
    if not pairable or q < 2:
        return None
    shares = {c: math.fsum(row[c] / row.total() for row in counts) / len(counts) for c in used}
    chance = 1 - math.fsum(share * (1 - share) for share in shares.values()) / (q - 1)
    more = len(counts) / pairable

    def parts(row: Counter[Hashable]) -> Parts:
        size = row.total()
        bend = math.fsum((1 - 2 * share) * (row[c] / size - share) for c, share in shares.items()) / (q - 1)
        return (more * _differing(row) if size >= 2 else 0.0), chance - bend

    possible = _split(used, max(row.total() for row in counts))
    seen = [parts(row) for row in counts]
    found = [*map(parts, possible), (more, chance)]  # a category that did not occur may be given by one rater
    return _beyond_chance(seen, found, chance, confidence)


def _differing(row: Counter[Hashable]) -> float:
    """The share of the pairs of ratings of one unit that differ; it has two ratings or more."""
    size = row.total()
    return 1 - sum(count * (count - 1) for count in row.values()) / (size * (size - 1))


def krippendorff_alpha(
    ratings: Sequence[Sequence[R | None]], *, level: Level = "nominal", confidence: float = 0.95
) -> Interval | None:
    """Krippendorff's alpha of any number of raters, at most 1, with its interval. Missing ratings are allowed.

        alpha = 1 - (n - 1) Σ o(c, k) d(c, k) / Σ n(c) n(k) d(c, k),    over pairs of values c, k

    o: how often c and k occur in one unit, each unit's pairs weighted by 1 / (its ratings - 1). n(c): the ratings c in
    units with two ratings or more; n: all of these. d by level of measurement: "nominal" 1 for c ≠ k; "interval"
    (c - k)²; "ordinal" (n(c) / 2 + all between + n(k) / 2)². None if no unit has two ratings, and if all ratings are
    equal. Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".

    Raises:
        ConfigError: An unknown level of measurement, or confidence is outside (0, 1).
        DataError: Ordinal or interval ratings that are not numbers.
    """
    if level not in LEVELS:
        raise ConfigError(unknown("level of measurement", level, LEVELS))
    counts = [Counter(rating for rating in row if rating is not None) for row in ratings]
    counts = [row for row in counts if row.total() >= 2]
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
        away = math.fsum(count * distances[rating] for rating, count in row.items()) / size
        return 2 * _apart(row, places) / (size * (size - 1)), 2 * away - chance

    sizes = [row.total() for row in counts]
    possible = map(parts, _split(totals, max(sizes)))
    return _beyond_chance([parts(row) for row in counts], possible, chance, confidence, sizes)


def _apart(counts: Counter[R], places: Mapping[R, float] | None) -> float:
    """The distances of all pairs of ratings, added up: Σ n(c) n(k) d(c, k) over c before k.

    With places, d is the squared distance between two, and the sum is that around their mean, times n.
    """
    n = counts.total()
    if places is None:
        return (n * n - sum(count * count for count in counts.values())) / 2
    mean = math.fsum(count * places[value] for value, count in counts.items()) / n
    return n * math.fsum(count * (places[value] - mean) ** 2 for value, count in counts.items())


def _places(totals: Mapping[R, int], level: Level) -> dict[R, float]:
    """The position of each value: an interval at its number, an ordinal at the middle of its ranks."""
    numbers = {value: _number(value, level) for value in totals}
    if level == "interval":
        return numbers
    places: dict[R, float] = {}
    below = 0
    for value in sorted(totals, key=numbers.__getitem__):
        places[value] = below + totals[value] / 2
        below += totals[value]
    return places


def _number(value: object, level: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{level} ratings must be finite numbers, not {value!r}")
    return float(value)
