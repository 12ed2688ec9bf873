"""Intervals for proportions: Wilson's, also for clustered samples, and Clopper and Pearson's one-sided limits."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist

from evalstone.errors import DataError
from evalstone.stats.intervals import Interval, check_level, few, mean_interval


def wilson_interval(successes: float, n: float, level: float = 0.95) -> Interval | None:
    """Wilson's interval for a proportion of n independent samples; None when n is 0. Interval.mean is the proportion.

        (p + z²/2n ± z √(p (1 - p) / n + z²/4n²)) / (1 + z²/n)

    n may be an effective number that is not whole; Interval.n is rounded down. Source: Wilson 1927, JASA 22.
    Raises DataError unless 0 <= successes <= n, ConfigError for a level outside (0, 1).
    """
    check_level(level)
    if not 0 <= successes <= n or not math.isfinite(n):
        raise DataError(f"successes must be from 0 to n: {successes} of {n}")
    if n == 0:
        return None
    p, z = successes / n, NormalDist().inv_cdf(0.5 + level / 2)
    pull = z * z / n
    middle, half = (p + pull / 2) / (1 + pull), z / (1 + pull) * math.sqrt(p * (1 - p) / n + pull / (4 * n))
    # Rounding must not shut out the proportion itself where it is 0 or 1.
    low, high = max(0.0, min(middle - half, p)), min(1.0, max(middle + half, p))
    return Interval(p, low, high, int(n), level, method="Wilson", caution=few(int(n), grouped=False))


def rate_interval(
    passed: Sequence[bool], *, level: float = 0.95, groups: Sequence[Hashable] | None = None
) -> Interval | None:
    """The pass rate with Wilson's interval; None for no sample.

    With groups n is divided by the design effect, variance (CR2) over p (1 - p) / n, and z is Student's quantile: the
    interval that `mean_interval` gives. A rate of 0 or 1 then counts every group as one sample.
    """
    if groups is None:
        return wilson_interval(sum(passed), len(passed), level)
    return mean_interval([float(p) for p in passed], low=0.0, high=1.0, level=level, groups=groups)


def lower_limit(successes: int, n: int, level: float = 0.95) -> float:
    """Clopper and Pearson's one-sided lower limit: the true proportion is above it with at least this confidence.

        the p at which P(X >= successes) = 1 - level, X binomial; 0 without a success

    Source: Clopper and Pearson 1934, Biometrika 26. Raises DataError unless 0 <= successes <= n.
    """
    check_level(level)
    _check_counts(successes, n)
    if successes == 0:
        return 0.0
    from scipy.special import betaincinv  # noqa: PLC0415 - 0.1 s of import

    return float(betaincinv(successes, n - successes + 1, 1 - level))


def upper_limit(successes: int, n: int, level: float = 0.95) -> float:
    """Clopper and Pearson's one-sided upper limit: the true proportion is below it with at least this confidence."""
    check_level(level)
    _check_counts(successes, n)
    return 1 - lower_limit(n - successes, n, level)


def _check_counts(successes: int, n: int) -> None:
    if not 0 <= successes <= n:
        raise DataError(f"successes must be from 0 to n: {successes} of {n}")
