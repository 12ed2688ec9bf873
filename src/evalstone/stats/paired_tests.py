"""Tests of no difference between paired values: permutation test, Student's t, Wilcoxon, McNemar, and Friedman.

The permutation and Wilcoxon tests ask how often random signs of the differences give a sum at least as far from 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalstone.errors import DataError
from evalstone.stats._arrays import Floats, Positions
from evalstone.stats.special import binomial_cdf

MAX_EXACT_PERMUTATION = 20
MAX_EXACT_WILCOXON = 100
MAX_SAMPLED = 10_000
PERMUTATIONS = 9999
CHUNK = 2_000_000


@dataclass(frozen=True)
class PairedTest:
    """A test of no difference."""

    name: str
    """The name of the test, for reports."""
    p_value: float
    """Two-sided."""
    statistic: float | None = None
    exact: bool = False


@dataclass(frozen=True)
class McNemar:
    """McNemar's test of pass/fail pairs."""

    gained: int
    """Pairs that failed in a and pass in b."""
    lost: int
    """Pairs that passed in a and fail in b."""
    p_value: float
    """Exact, two-sided."""


def permutation_test(differences: Floats, *, seed: int = 0) -> PairedTest:
    """The paired permutation test of the mean difference: if signs were random, how often is |Σ ±d| at least |Σ d|?

    Exact, over all 2^m sign patterns of the m nonzero differences, if m <= 20 or all have the same size (pass/fail).
    Otherwise 9,999 random patterns, p = (hits + 1) / (9,999 + 1), where the 1 counts the observed pattern. Above 10,000
    nonzero differences Student's t test, which agrees there. p is 1 if all differences are 0.

    Args:
        differences: One per pair, in any unit.
        seed: Of the random patterns; the same seed gives the same p-value.
    """
    nonzero = differences[differences != 0]
    total = abs(float(nonzero.sum()))
    if nonzero.size and np.ptp(np.abs(nonzero)) <= 1e-12 * abs(nonzero[0]):
        ups = int(np.sum(nonzero > 0))
        p = mcnemar(ups, nonzero.size - ups).p_value
        return PairedTest("paired permutation test", p, total, exact=True)
    # Sums of the same terms in another order are equal but for rounding.
    edge = total - 1e-12 * float(np.abs(nonzero).sum())
    if nonzero.size <= MAX_EXACT_PERMUTATION:
        sums = np.zeros(1)
        for d in nonzero:
            sums = np.concatenate((sums + d, sums - d))
        return PairedTest("paired permutation test", float(np.mean(np.abs(sums) >= edge)), total, exact=True)
    if nonzero.size > MAX_SAMPLED:
        return paired_t(differences)
    source = np.random.default_rng(seed)
    hits, left = 0, PERMUTATIONS
    while left:
        rows = min(left, max(1, CHUNK // nonzero.size))
        signs = source.integers(0, 2, size=(rows, nonzero.size), dtype=np.int8) * np.int8(2) - np.int8(1)
        hits += int(np.sum(np.abs(signs @ nonzero) >= edge))
        left -= rows
    name = f"paired permutation test, {PERMUTATIONS:,} permutations"
    return PairedTest(name, (hits + 1) / (PERMUTATIONS + 1), total)


def paired_t(differences: Floats) -> PairedTest:
    """Student's t test that the mean difference is 0; p is 1 for fewer than two differences or if all are 0."""
    if differences.size < 2 or not np.ptp(differences):
        return PairedTest("paired t test", 0.0 if differences.size > 1 and differences[0] else 1.0)
    from scipy.stats import ttest_1samp  # noqa: PLC0415 - 0.5 s of import, which only very large samples need

    result = ttest_1samp(differences, 0.0)
    return PairedTest("paired t test", float(result.pvalue), float(result.statistic))


def wilcoxon(differences: Floats) -> PairedTest:
    """Wilcoxon's signed-rank test: zeros are dropped, ties share their mean rank, statistic = min(W+, W-).

    Exact for up to 100 nonzero differences, with ties too (over all sign patterns, given the ranks), which
    scipy.stats.wilcoxon isn't. Above, the normal approximation with variance Σ r² / 4. p is 1 if all differences are 0.
    Source: Wilcoxon 1945, Biometrics 1(6).
    """
    nonzero = differences[differences != 0]
    if not nonzero.size:
        return PairedTest("Wilcoxon signed-rank test", 1.0, 0.0, exact=True)
    sizes: Floats = np.abs(nonzero)
    ranks = mid_ranks(np.round(sizes / float(sizes.max()), 12))  # 0.4 - 0.1 and 0.3 - 0 are ties
    positive, total = float(ranks[nonzero > 0].sum()), float(ranks.sum())
    smaller = min(positive, total - positive)
    if nonzero.size <= MAX_EXACT_WILCOXON:
        p = min(1.0, 2 * _rank_sum_cdf(np.rint(2 * ranks).astype(np.intp), round(2 * smaller)))
        return PairedTest("Wilcoxon signed-rank test", p, smaller, exact=True)
    z = (smaller - total / 2) / math.sqrt(float(np.sum(ranks**2)) / 4)
    p = math.erfc(-z / math.sqrt(2))
    return PairedTest("Wilcoxon signed-rank test, normal approximation", p, smaller)


def _rank_sum_cdf(doubled: Positions, limit: int) -> float:
    """P(the sum of the doubled ranks with positive sign <= limit), each sign a fair coin."""
    chance = np.zeros(limit + 1)
    chance[0] = 1.0
    for rank in doubled:
        shifted = np.zeros_like(chance)
        shifted[rank:] = chance[: max(0, limit + 1 - rank)]
        chance = (chance + shifted) / 2
    return float(chance.sum())


def mid_ranks(values: Floats) -> Floats:
    """Ranks from 1; ties share their mean rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[places]


def mcnemar(gained: int, lost: int) -> McNemar:
    """McNemar's exact test: p = min(1, 2 · P(X <= min(gained, lost))), X binomial of gained + lost and 1/2.

    Source: McNemar 1947, Psychometrika 12(2).

    Raises:
        DataError: A count is negative.
    """
    if gained < 0 or lost < 0:
        raise DataError(f"counts must be 0 or more: gained {gained}, lost {lost}")
    return McNemar(gained, lost, min(1.0, 2 * binomial_cdf(min(gained, lost), gained + lost, 0.5)))


def friedman(table: Floats) -> PairedTest:
    """Friedman's test that all runs are alike: χ², corrected for ties, with one degree of freedom less than runs.

    p is 1 if every sample has the same value in all runs. Source: Friedman 1937, JASA 32; ties as in Conover 1999,
    Practical Nonparametric Statistics.

    Args:
        table: A row per sample, a column per run; three columns or more.
    """
    largest = float(np.abs(table).max())
    rounded: Floats = np.round(table / largest, 12) if largest > 0 else table
    if not np.ptp(rounded, axis=1).any():
        return PairedTest("Friedman test", 1.0, 0.0)
    from scipy.stats import friedmanchisquare  # noqa: PLC0415 - 0.5 s of import, for three runs or more

    result = friedmanchisquare(*rounded.T)
    return PairedTest("Friedman test", float(result.pvalue), float(result.statistic))
