"""Tests of paired values, and their null hypotheses.

mean test   the mean difference is 0, whatever the distribution of the differences (`bounded_mean`)
McNemar     gained and lost passes are equally likely; for pass/fail values, the mean difference is 0
Wilcoxon    differences are symmetric around 0; it rejects for a skewed distribution with a mean of 0
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalstone.errors import DataError
from evalstone.stats._arrays import Floats, Positions
from evalstone.stats.bounded_mean import SHARE, BoundedMean
from evalstone.stats.special import binomial_cdf

MAX_EXACT_WILCOXON = 100


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """The result of a test of no difference."""

    name: str
    """The name of the test, for reports."""
    p_value: float
    """The two-sided p-value."""
    statistic: float | None = None
    """The test statistic; None if the test has none to report."""
    exact: bool = False
    """Whether the p-value is computed from the exact null distribution."""


@dataclass(frozen=True, kw_only=True)
class McNemar:
    """The result of McNemar's test of pass/fail pairs."""

    gained: int
    """Pairs that failed in a and pass in b."""
    lost: int
    """Pairs that passed in a and fail in b."""
    p_value: float
    """The two-sided mid-p value."""


def mean_test(differences: BoundedMean, *, share: float = SHARE) -> PairedTest:
    """The test that the mean difference is 0. Its p-value agrees with `difference_interval`.

    share: That of `bounded_mean`.
    """
    return PairedTest(
        name="test of the mean difference",
        p_value=differences.two_sided_p(0.0, share=share),
        statistic=differences.mean,
    )


def wilcoxon(differences: Floats) -> PairedTest:
    """Wilcoxon's signed-rank test that differences are symmetric around 0: statistic = min(W+, W-).

    Zeros are dropped, and ties get their mean rank. p is 1 if all differences are 0. Up to 100 nonzero differences, the
    p-value is exact even with ties, unlike that of scipy.stats.wilcoxon: it is over all sign patterns, given the ranks.
    Beyond that, it is the normal approximation with variance Σ r² / 4.
    Source: Wilcoxon 1945, Biometrics 1(6).
    """
    nonzero = differences[differences != 0]
    if not nonzero.size:
        return PairedTest(name="Wilcoxon signed-rank test", p_value=1.0, statistic=0.0, exact=True)
    sizes: Floats = np.abs(nonzero)
    ranks = mid_ranks(np.round(sizes / float(sizes.max()), 12))  # ties despite rounding error: 0.4 - 0.1 and 0.3 - 0
    positive, total = float(ranks[nonzero > 0].sum()), float(ranks.sum())
    smaller = min(positive, total - positive)
    if nonzero.size <= MAX_EXACT_WILCOXON:
        p = min(1.0, 2 * _rank_sum_cdf(np.rint(2 * ranks).astype(np.intp), round(2 * smaller)))
        return PairedTest(name="Wilcoxon signed-rank test", p_value=p, statistic=smaller, exact=True)
    z = (smaller - total / 2) / math.sqrt(float(np.sum(ranks**2)) / 4)
    p = math.erfc(-z / math.sqrt(2))
    return PairedTest(name="Wilcoxon signed-rank test, normal approximation", p_value=p, statistic=smaller)


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
    """Ranks from 1; ties get their mean rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[places]


def mcnemar(gained: int, lost: int) -> McNemar:
    """McNemar's mid-p test of pass/fail pairs.

        p = min(1, 2 · (P(X < k) + P(X = k) / 2)),   X ~ Binomial(gained + lost, 1/2),   k = min(gained, lost)

    The exact test counts all of P(X = k), which makes it conservative: its error rate is far below 5%. The mid-p test
    is more powerful. For up to 300 pairs, its error rate at a nominal 5% is at most 5.1% if up to 80% of the pairs
    change, and up to 7.7% (16 pairs) if all of them do. Sources: McNemar 1947, Psychometrika 12(2);
    Fagerland, Lydersen and Laake 2013, BMC Medical Research Methodology 13:91.

    Raises:
        DataError: A count is negative.
    """
    if gained < 0 or lost < 0:
        raise DataError(f"counts must be 0 or more: gained {gained}, lost {lost}")
    n, k = gained + lost, min(gained, lost)
    return McNemar(gained=gained, lost=lost, p_value=min(1.0, binomial_cdf(k, n, 0.5) + binomial_cdf(k - 1, n, 0.5)))
