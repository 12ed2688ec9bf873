"""Validation: sequences of numbers as numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from evalstone.errors import ConfigError, DataError, Problem, invalid
from evalstone.stats.intervals import Ends
from evalstone.stats.packed_scores import PackedEnds, PackedScores

Floats: TypeAlias = NDArray[np.float64]
Positions: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]
_T = TypeVar("_T")


def column(name: str, values: Sequence[float], low: float = -np.inf, high: float = np.inf) -> Floats:
    """Values as an array, which may be theirs. Values outside [low, high] by no more than rounding error are clipped.

    Raises:
        DataError: A value is not a finite number in [low, high]; the message names the first one.
        ConfigError: low is not below high, as with a scale of 0.
    """
    if not low < high:
        raise ConfigError(f"{name}: low must be below high, not {low:g} and {high:g}; is the scale right?")
    array = _numbers(name, values)
    if array.size and np.isfinite(ends := (array.min(), array.max())).all() and low <= ends[0] and ends[1] <= high:
        return array
    slack = 1e-9 * (high - low) if math.isfinite(high - low) else 0.0  # a share of claims can round to just above 1
    wrong = ~np.isfinite(array) | (array < low - slack) | (array > high + slack)
    if wrong.any():
        place = int(np.argmax(wrong))
        kind = "a finite number" if np.isinf(high - low) else f"a number in [{low:g}, {high:g}]"
        raise DataError(_wrong(name, place, values[place], f"{values[place]}", kind))
    return np.clip(array, low, high)


def _numbers(name: str, values: Sequence[object]) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = None
    if array is None or array.ndim != 1:
        wrong = ((i, x) for i, x in enumerate(values) if isinstance(x, str) or not (x is None or np.isscalar(x)))
        place, value = next(wrong, (0, values))
        raise DataError(_wrong(name, place, value, f"{value!r:.60}", "a number"))
    return array


def _wrong(name: str, place: int, value: object, shown: str, allowed: str) -> Problem:
    text = f"{name}: value {place} is {shown}, not {allowed}"
    return invalid(f"{name}[{place}]", allowed, value).worded(text)


def same_length(**columns: Sequence[object] | None) -> int:
    """The common length of all columns; None columns are ignored. Raises DataError with the lengths if they differ."""
    lengths = {name: len(values) for name, values in columns.items() if values is not None}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise DataError(f"one entry per sample is needed in each: {counts}")
    return next(iter(lengths.values()))


def codes(labels: Sequence[Hashable]) -> Positions:
    """Labels as integers from 0, in order of first appearance."""
    known: dict[Hashable, int] = {}
    return np.fromiter((known.setdefault(label, len(known)) for label in labels), dtype=np.intp, count=len(labels))


def has_value(values: Sequence[float | None]) -> Mask:
    """Which values aren't None."""
    if isinstance(values, PackedScores):
        return values.has_value
    return np.fromiter((value is not None for value in values), dtype=np.bool_, count=len(values))


def values_at(values: Sequence[_T | None], chosen: Mask) -> Sequence[_T]:
    """The chosen values, of which none is None."""
    if chosen.all():
        return cast("Sequence[_T]", values)
    if isinstance(values, PackedScores):
        return cast("Sequence[_T]", PackedScores(values.array[chosen]))
    return [cast("_T", value) for value, is_chosen in zip(values, chosen.tolist(), strict=True) if is_chosen]


def at(values: Sequence[_T], places: Positions) -> list[_T]:
    """The values at these places."""
    return [values[place] for place in places.tolist()]


def filled(values: Sequence[float | None], instead: float) -> Sequence[float]:
    """The values, with this number for missing ones."""
    if isinstance(values, PackedScores):
        return cast("Sequence[float]", np.where(values.has_value, values.array, instead))
    return [instead if value is None else value for value in values]


def both_ends(ends: Sequence[Ends]) -> Iterator[Floats]:
    """The lowest values, and then the highest ones, so that who takes them needn't have both in memory."""
    if isinstance(ends, PackedEnds):
        return map(ends.side, (0, 1))
    return iter(np.array(ends, dtype=np.float64).reshape(-1, 2).T)


def differ(ends: Sequence[Ends]) -> Mask:
    """Whose lowest and highest value differ."""
    if not isinstance(ends, PackedEnds):
        lowest, highest = both_ends(ends)
        return lowest != highest
    found = np.zeros(len(ends), np.bool_)
    found[ends.places] = ends.ends[:, 0] != ends.ends[:, 1]
    return found


def ends_at(ends: Sequence[Ends], places: Positions) -> tuple[Floats, Floats]:
    """The lowest values at some places, ascending, and the highest ones."""
    if isinstance(ends, PackedEnds):
        lowest, highest = ends.at(places).T
    else:
        lowest, highest = (side[places] for side in both_ends(ends))
    return lowest, highest


def group_sums(values: Floats, groups: Positions) -> Floats:
    """The sum of the values of each group."""
    return np.bincount(groups, weights=values).astype(np.float64)
