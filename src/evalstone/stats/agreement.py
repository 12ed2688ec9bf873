"""Agreement of raters beyond chance. Ratings are a row per unit and a column per rater; None is a missing rating.

    kappa, AC1, alpha = (observed - expected) / (1 - expected)          at most 1, 0 is chance, below 0 is worse

They differ in their model of chance: Cohen's kappa uses each rater's own distribution, Fleiss' kappa and Krippendorff's
alpha that of all raters together, and Gwet's AC1 the share of units that are hard to rate, so that it doesn't drop when
nearly all ratings are the same. All are None where undefined: nothing is rated twice, or all ratings are the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from statistics import NormalDist
from typing import Literal, TypeAlias, TypeVar, get_args

from evalstone.errors import ConfigError, DataError, unknown
from evalstone.stats.intervals import Interval

R = TypeVar("R", bound=Hashable)
Level: TypeAlias = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = get_args(Level)


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable], *, confidence: float = 0.95) -> Interval | None:
    """Cohen's kappa of two raters of the same units, with its large-sample interval.

    expected = Σ over categories of (share in first) · (share in second). The interval is kappa ± z s with the s of
    Fleiss, Cohen and Everitt (1969), cut to [-1, 1]. Source: Cohen 1960.

    Args:
        first: One rater's rating of each unit.
        second: The other's, in the same order.
        confidence: The confidence level, in (0, 1).

    Returns:
        Kappa in [-1, 1]; without limits below two units and where s is 0, as for full agreement. None for no units, and
        if both raters always gave the same category.

    Raises:
        DataError: Sequences of different lengths.
    """
    if len(first) != len(second):
        raise DataError(f"two raters rate the same units; one has {len(first)} ratings, the other {len(second)}")
    n = len(first)
    cells = {cell: count / n for cell, count in Counter(zip(first, second, strict=True)).items()}
    rows = {category: count / n for category, count in Counter(first).items()}
    columns = {category: count / n for category, count in Counter(second).items()}
    expected = math.fsum(share * columns.get(category, 0.0) for category, share in rows.items())
    if n == 0 or 1 - expected < 1e-12:
        return None
    observed = math.fsum(share for (one, other), share in cells.items() if one == other)
    kappa = (observed - expected) / (1 - expected)
    variance = _kappa_variance(cells, rows, columns, kappa, expected) / n
    if n < 2 or variance < 1e-15:
        return Interval(kappa, None, None, n, confidence)
    half = NormalDist().inv_cdf(0.5 + confidence / 2) * math.sqrt(variance)
    return Interval(kappa, max(-1.0, kappa - half), min(1.0, kappa + half), n, confidence)


def _kappa_variance(
    cells: Mapping[tuple[Hashable, Hashable], float],
    rows: Mapping[Hashable, float],
    columns: Mapping[Hashable, float],
    kappa: float,
    expected: float,
) -> float:
    """n times the variance of kappa."""
    terms: list[float] = []
    for (row, column), share in cells.items():
        if row == column:
            terms.append(share * (1 - (rows[row] + columns[column]) * (1 - kappa)) ** 2)
        else:
            terms.append((1 - kappa) ** 2 * share * (columns.get(row, 0.0) + rows.get(column, 0.0)) ** 2)
    return (math.fsum(terms) - (kappa - expected * (1 - kappa)) ** 2) / (1 - expected) ** 2


def fleiss_kappa(ratings: Sequence[Sequence[Hashable | None]]) -> float | None:
    """Fleiss' kappa of two or more raters, in [-1, 1]; units may have different raters.

    observed = mean over units of the share of agreeing pairs; expected = Σ (share of a category in all ratings)².
    None for no units, and if all ratings are one category. Source: Fleiss 1971.

    Raises:
        DataError: Units have different numbers of ratings, or fewer than two: leave such units out, or use
            Krippendorff's alpha.
    """
    counts = [Counter(rating for rating in row if rating is not None) for row in ratings]
    sizes = {row.total() for row in counts}
    if len(sizes) > 1 or (sizes and min(sizes) < 2):
        came = " and ".join(map(str, sorted(sizes)))
        raise DataError(f"Fleiss' kappa needs the same number of ratings, two or more, of each unit, not {came}")
    if not counts:
        return None
    observed = math.fsum(_agreeing(row) for row in counts) / len(counts)
    together = sum(counts, Counter[Hashable]())
    expected = math.fsum((count / together.total()) ** 2 for count in together.values())
    return None if len(together) < 2 else (observed - expected) / (1 - expected)


def gwet_ac1(ratings: Sequence[Sequence[Hashable | None]], *, categories: int | None = None) -> float | None:
    """Gwet's AC1 of two or more raters, at most 1. Missing ratings are allowed.

    observed = mean share of agreeing pairs, over units with two ratings or more; expected = Σ p (1 - p) / (q - 1), p
    the mean share of a category over units with a rating, q the number of categories (those that occur, unless
    `categories` is more). None if no unit has two ratings, and if q is below 2. Source: Gwet 2008.
    """
    counts = [row for row in (Counter(r for r in row if r is not None) for row in ratings) if row]
    pairable = [row for row in counts if row.total() >= 2]
    categories_used = {category for row in counts for category in row}
    q = max(len(categories_used), categories or 0)
    if not pairable or q < 2:
        return None
    observed = math.fsum(_agreeing(row) for row in pairable) / len(pairable)
    shares = [math.fsum(row[category] / row.total() for row in counts) / len(counts) for category in categories_used]
    expected = math.fsum(share * (1 - share) for share in shares) / (q - 1)
    return (observed - expected) / (1 - expected)


def _agreeing(row: Counter[Hashable]) -> float:
    """The share of the pairs of ratings of one unit that agree; it has two ratings or more."""
    size = row.total()
    return sum(count * (count - 1) for count in row.values()) / (size * (size - 1))


def krippendorff_alpha(ratings: Sequence[Sequence[R | None]], *, level: Level = "nominal") -> float | None:
    """Krippendorff's alpha of any number of raters, at most 1. Missing ratings are allowed.

        alpha = 1 - (n - 1) Σ o(c, k) d(c, k) / Σ n(c) n(k) d(c, k),    over pairs of values c, k

    o: how often c and k occur in one unit, each unit's pairs weighted by 1 / (its ratings - 1). n(c): the ratings c in
    units with two ratings or more; n: all of these. d by level of measurement: "nominal" 1 for c ≠ k; "interval"
    (c - k)²; "ordinal" (n(c) / 2 + all between + n(k) / 2)². None if no unit has two ratings, and if all ratings are
    equal. Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".

    Raises:
        ConfigError: An unknown level of measurement.
        DataError: Ordinal or interval ratings that are not numbers.
    """
    if level not in LEVELS:
        raise ConfigError(unknown("level of measurement", level, LEVELS))
    units = [[rating for rating in row if rating is not None] for row in ratings]
    units = [row for row in units if len(row) >= 2]
    totals = Counter(rating for row in units for rating in row)
    if len(totals) < 2:
        return None
    places = None if level == "nominal" else _places(totals, level)
    observed = math.fsum(2 * _apart(Counter(row), places) / (len(row) - 1) for row in units)
    return 1 - (totals.total() - 1) * observed / (2 * _apart(totals, places))


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


def _number(value: object, level: Level) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{level} ratings must be finite numbers, not {value!r}")
    return float(value)
