"""Sums that don't depend on the order of what is added, and that can be added up in parts."""

from __future__ import annotations

import math
from collections.abc import Iterable


class ExactSum:
    """A sum of finite numbers without rounding. Its `value` is what `math.fsum` returns for all of them.

    It holds the sum as a few numbers whose bits don't overlap (Shewchuk 1997, "Adaptive precision floating-point
    arithmetic and fast robust geometric predicates", Discrete & Computational Geometry 18).

    Args:
        parts: The `parts` of another sum, to go on with it; or any numbers.
    """

    def __init__(self, parts: Iterable[float] = ()) -> None:
        self.parts: list[float] = []
        """The numbers that add up to the sum."""
        for part in parts:
            self.add(part)

    def add(self, number: float) -> None:
        """Add a number."""
        kept = 0
        for part in self.parts:
            high, low = (number, part) if abs(number) >= abs(part) else (part, number)
            number = high + low
            if rest := low - (number - high):
                self.parts[kept] = rest
                kept += 1
        self.parts[kept:] = [number] if number else []

    def merge(self, other: ExactSum) -> None:
        """Add what another sum has."""
        for part in other.parts:
            self.add(part)

    @property
    def value(self) -> float:
        """The sum, correctly rounded; 0 without numbers."""
        return math.fsum(self.parts)


def added(total: ExactSum | None, cost: float | None) -> ExactSum | None:
    """A cost with another one; None if one of them is unknown."""
    if total is None or cost is None:
        return None
    total.add(cost)
    return total
