"""Columns of numbers as arrays, checked: what every function here takes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from evalstone.errors import ConfigError, DataError

Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]


def column(name: str, values: Sequence[float], low: float = -np.inf, high: float = np.inf) -> Floats:
    """Values as an array; DataError names the first one that is not a finite number in [low, high].

    Raises ConfigError for a range that does not go up, as a scale of 0 makes.
    """
    if not low < high:
        raise ConfigError(f"{name}: the range must go up, not from {low:g} to {high:g}; is the scale right?")
    array = _numbers(name, values)
    slack = 1e-9 * max(1.0, min(abs(low), abs(high)))  # a share of claims may miss 1 by rounding
    wrong = ~np.isfinite(array) | (array < low - slack) | (array > high + slack)
    if wrong.any():
        place = int(np.argmax(wrong))
        wanted = "a finite number" if np.isinf(high - low) else f"a number in [{low:g}, {high:g}]"
        raise DataError(f"{name}: value {place} is {values[place]}; {wanted} is wanted")
    return np.clip(array, low, high)


def _numbers(name: str, values: Sequence[object]) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = None
    if array is None or array.ndim != 1:
        wrong = ((i, x) for i, x in enumerate(values) if isinstance(x, str) or not (x is None or np.isscalar(x)))
        place, came = next(wrong, (0, values))
        raise DataError(f"{name}: value {place} is {came!r:.60}; a number is wanted")
    return array


def same_length(**columns: Sequence[object] | None) -> int:
    """The length that all columns share (None is left out); DataError names those that differ."""
    lengths = {name: len(values) for name, values in columns.items() if values is not None}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise DataError(f"one entry a sample is wanted in each: {told}")
    return next(iter(lengths.values()))


def codes(labels: Sequence[Hashable]) -> Places:
    """Labels as numbers from 0, in order of first appearance."""
    known: dict[Hashable, int] = {}
    return np.fromiter((known.setdefault(label, len(known)) for label in labels), dtype=np.intp, count=len(labels))


def group_sums(values: Floats, groups: Places) -> Floats:
    """The sum of the values of each group."""
    return np.bincount(groups, weights=values).astype(np.float64)
