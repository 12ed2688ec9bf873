"""Tests of no difference between paired values: sign flips, Wilcoxon's signed ranks, McNemar, and Friedman for several.

They take differences, and ask how often signs drawn by chance would give a sum at least as far from 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalstone.errors import DataError
from evalstone.stats._arrays import Floats

EXACT_FLIPS = 20
EXACT_RANKS = 100
DRAWS = 9999
MOST_DRAWN = 10_000
CHUNK = 2_000_000


@dataclass(frozen=True)
class PairedTest:
    """A test of no difference: its name as a report prints it, its two-sided p-value, and what it counted."""

    name: str
    p_value: float
    statistic: float | None = None
    exact: bool = False


@dataclass(frozen=True)
class McNemar:
    """Pass/fail pairs that changed: gained failed in a and pass in b, lost the other way; exact two-sided p-value."""

    gained: int
    lost: int
    p_value: float


def sign_flips(differences: Floats, *, seed: int = 0) -> PairedTest:
    """The permutation test of the mean difference: were signs arbitrary, how often is |Σ ±d| at least |Σ d|?

    Exact, over all 2^m sign patterns of the m differences that are not 0, up to m = 20 and whenever all have one size
    (pass/fail). Else 9,999 patterns drawn with the seed, p = (hits + 1) / (draws + 1); above 10,000 differences
    Student's t, which is the same there. p is 1 when none differ.
    """
    moved = differences[differences != 0]
    if moved.size and np.ptp(np.abs(moved)) <= 1e-12 * abs(moved[0]):
        ups = int(np.sum(moved > 0))
        p = mcnemar(ups, moved.size - ups).p_value
        return PairedTest("sign flips", p, abs(float(moved.sum())), exact=True)
    total = abs(float(moved.sum()))
    # Sums of the same terms in another order are equal but for rounding.
    edge = total - 1e-12 * float(np.abs(moved).sum())
    if moved.size <= EXACT_FLIPS:
        sums = np.zeros(1)
        for d in moved:
            sums = np.concatenate((sums + d, sums - d))
        return PairedTest("sign flips", float(np.mean(np.abs(sums) >= edge)), total, exact=True)
    if moved.size > MOST_DRAWN:
        return student(differences)
    source = np.random.default_rng(seed)
    hits, left = 0, DRAWS
    while left:
        rows = min(left, max(1, CHUNK // moved.size))
        signs = source.integers(0, 2, size=(rows, moved.size), dtype=np.int8) * np.int8(2) - np.int8(1)
        hits += int(np.sum(np.abs(signs @ moved) >= edge))
        left -= rows
    return PairedTest(f"sign flips, {DRAWS:,} drawn", (hits + 1) / (DRAWS + 1), total)


def student(differences: Floats) -> PairedTest:
    """Student's t test that the mean difference is 0; p is 1 when there are fewer than two or all are 0."""
    from scipy.special import stdtr  # noqa: PLC0415 - 0.1 s of import

    n, mean = differences.size, float(differences.mean()) if differences.size else 0.0
    error = float(differences.std(ddof=1)) / math.sqrt(n) if n > 1 else 0.0
    if error == 0:
        return PairedTest("Student's t", 1.0 if mean == 0 or n < 2 else 0.0, None)
    t = mean / error
    return PairedTest("Student's t", float(2 * stdtr(n - 1, -abs(t))), t)


def signed_ranks(differences: Floats) -> PairedTest:
    """Wilcoxon's signed rank test: zeros are left out, ties share their mean rank, statistic = min(W+, W-).

    Exact up to 100 differences, ties included (the distribution over all sign patterns, given the ranks); above, the
    normal approximation with the variance Σ r² / 4. p is 1 when none differ. Source: Wilcoxon 1945, Biometrics 1(6).
    """
    moved = differences[differences != 0]
    if not moved.size:
        return PairedTest("Wilcoxon signed ranks", 1.0, 0.0, exact=True)
    sizes: Floats = np.abs(moved)
    shares: Floats = np.round(sizes / float(sizes.max()), 12)  # 0.4 - 0.1 and 0.3 - 0 are ties
    ranks = mid_ranks(shares)
    above, whole = float(ranks[moved > 0].sum()), float(ranks.sum())
    smaller = min(above, whole - above)
    if moved.size <= EXACT_RANKS:
        p = min(1.0, 2 * _rank_sum_below(np.rint(2 * ranks).astype(np.intp), round(2 * smaller)))
        return PairedTest("Wilcoxon signed ranks", p, smaller, exact=True)
    z = (smaller - whole / 2) / math.sqrt(float(np.sum(ranks**2)) / 4)
    return PairedTest("Wilcoxon signed ranks, normal approximation", math.erfc(-z / math.sqrt(2)), smaller)


def mid_ranks(values: Floats) -> Floats:
    """Ranks from 1, ties at the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[places]


def mcnemar(gained: int, lost: int) -> McNemar:
    """McNemar's exact test: p = min(1, 2 · P(X <= min(gained, lost))), X binomial of gained + lost and 1/2.

    Source: McNemar 1947, Psychometrika 12(2). Raises DataError for a negative count.
    """
    if gained < 0 or lost < 0:
        raise DataError(f"counts must be 0 or more: gained {gained}, lost {lost}")
    from scipy.special import bdtr  # noqa: PLC0415 - 0.1 s of import

    changed = gained + lost
    p = min(1.0, 2 * float(bdtr(min(gained, lost), changed, 0.5))) if changed else 1.0
    return McNemar(gained, lost, p)


def friedman(table: Floats) -> PairedTest:
    """Friedman's test that all columns (runs) are alike, rows being samples; statistic χ², corrected for ties.

    p from χ² with one degree of freedom less than columns. p is 1 when every row is all ties.
    Source: Friedman 1937, JASA 32; ties as in Conover 1999, Practical Nonparametric Statistics.
    """
    from scipy.special import gammaincc  # noqa: PLC0415 - 0.1 s of import

    n, k = int(table.shape[0]), int(table.shape[1])
    most = float(np.abs(table).max())
    rounded = np.round(table / most, 12) if most > 0 else table
    one, other = rounded[:, :, None], rounded[:, None, :]
    ranks: Floats = np.greater(one, other).sum(axis=2) + (np.equal(one, other).sum(axis=2) + 1) / 2.0
    totals: Floats = ranks.sum(axis=0)
    spread = float(np.sum(ranks**2)) - n * k * (k + 1) ** 2 / 4
    if spread <= 1e-9:
        return PairedTest("Friedman", 1.0, 0.0)
    between = float(np.sum((totals - n * (k + 1) / 2) ** 2))
    chi = (k - 1) * between / spread
    return PairedTest("Friedman", float(gammaincc((k - 1) / 2, chi / 2)), chi)


def _rank_sum_below(doubled: np.ndarray[tuple[int, ...], np.dtype[np.intp]], limit: int) -> float:
    """P(the sum of the doubled ranks with positive sign <= limit), each sign a fair coin."""
    chance = np.zeros(limit + 1)
    chance[0] = 1.0
    for rank in doubled:
        moved = np.zeros_like(chance)
        moved[rank:] = chance[: max(0, limit + 1 - rank)]
        chance = (chance + moved) / 2
    return float(chance.sum())
