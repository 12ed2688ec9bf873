"""p-values of several tests, adjusted for looking at all of them.

Compare an adjusted value with the error rate as if it were the only one. Both functions keep the order of their input.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from evalstone.errors import DataError


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted so that the chance of any wrong rejection is at most the rate, however the tests depend on each other.

        p̃(i) = min(1, max over j <= i of (m - j + 1) · p(j)),   p(1) <= … <= p(m)

    Source: Holm 1979, Scandinavian Journal of Statistics 6(2). Raises DataError for a value outside [0, 1].
    """
    order = _ascending(p_values)
    m = len(order)
    scaled = ((m - rank) * p_values[place] for rank, place in enumerate(order))
    return _back(order, itertools.accumulate(scaled, max))


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted so that the expected share of wrong ones among the rejections is at most the rate.

        p̃(i) = min(1, min over j >= i of m / j · p(j)),   p(1) <= … <= p(m)

    Holds for independent and for positively dependent tests. Source: Benjamini and Hochberg 1995, JRSS B 57(1).
    Raises DataError for a value outside [0, 1].
    """
    order = _ascending(p_values)[::-1]
    m = len(order)
    scaled = (m / (m - rank) * p_values[place] for rank, place in enumerate(order))
    return _back(order, itertools.accumulate(scaled, min))


def _ascending(p_values: Sequence[float]) -> list[int]:
    for place, p in enumerate(p_values):
        if not 0 <= p <= 1:
            raise DataError(f"a p-value must be in [0, 1]: number {place} is {p}")
    return sorted(range(len(p_values)), key=lambda place: p_values[place])


def _back(order: Sequence[int], adjusted: itertools.accumulate[float]) -> tuple[float, ...]:
    placed = dict(zip(order, adjusted, strict=True))
    return tuple(min(1.0, placed[place]) for place in range(len(order)))
