"""Millions of scores in 8 bytes each, for arithmetic without an object for each.

The results are those of a list of the same scores, to the last bit: sums are exact, and rounded once. `LARGE` is the
number of scores from which on they are packed; fewer need no numpy, which takes longer to import than to count them.
"""

from __future__ import annotations

import importlib
import math
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from evalstone.stats._arrays import Floats, Mask, Positions
    from evalstone.stats.intervals import Ends

LARGE = 20_000
_AT_ONCE = 65_536


class PackedScores(Sequence["float | None"]):
    """Scores in one piece of memory, in which NaN stands for a missing one (None).

    Args:
        values: Numbers as 8 bytes of this machine: an `array`, or an array of numpy.
    """

    def __init__(self, values: Any) -> None:
        np: Any = importlib.import_module("numpy")
        self.array: Floats = np.asarray(values, np.float64)

    @cached_property
    def has_value(self) -> Mask:
        """Which scores aren't missing."""
        np: Any = importlib.import_module("numpy")
        return ~np.isnan(self.array)

    @cached_property
    def known(self) -> PackedScores:
        """The scores that aren't missing."""
        return self if self.has_value.all() else PackedScores(self.array[self.has_value])

    @cached_property
    def total(self) -> float:
        """The sum, correctly rounded, of scores of which none is missing."""
        return _exact_total(self.array) if self.all_finite else math.nan

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest score, of which none is missing."""
        return float(self.array.min()), float(self.array.max())

    @property
    def all_finite(self) -> bool:
        """Whether each score is a finite number. If some are missing, it is not."""
        return all(map(math.isfinite, self.ends))

    def at(self, rows: Sequence[int]) -> PackedScores:
        """The scores in these rows."""
        index = index_of(rows)
        some = self.array[index]
        return PackedScores(some.copy() if isinstance(index, slice) else some)

    def replaced(self, function: Callable[[Floats], Any]) -> PackedScores:
        """What a function of an array returns for them, as numbers; missing scores stay missing."""
        np: Any = importlib.import_module("numpy")
        return PackedScores(np.where(self.has_value, function(self.array), np.nan))

    @overload
    def __getitem__(self, row: int) -> float | None: ...
    @overload
    def __getitem__(self, row: slice) -> PackedScores: ...
    def __getitem__(self, row: int | slice) -> float | PackedScores | None:
        if isinstance(row, slice):
            return PackedScores(self.array[row])
        value = float(self.array[row])
        return None if math.isnan(value) else value

    def __iter__(self) -> Iterator[float | None]:
        for start in range(0, len(self), _AT_ONCE):
            some = self.array[start : start + _AT_ONCE].tolist()
            yield from (None if value != value else value for value in some)

    def __len__(self) -> int:
        return len(self.array)

    def __contains__(self, value: object) -> bool:
        if value is None:
            return not self.has_value.all()
        return bool((self.array == value).any())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedScores):
            np: Any = importlib.import_module("numpy")
            return bool(np.array_equal(self.array, other.array, equal_nan=True))
        return NotImplemented if not isinstance(other, list | tuple | array) else [*self] == [*other]

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.array if dtype is None else self.array.astype(dtype, copy=bool(copy))


class PackedEnds(Sequence["Ends"]):
    """The lowest and the highest possible value of each of many scores.

    Args:
        values: The scores, which are both ends of all others.
        places: The places of those whose ends are given, ascending.
        ends: The ends of each of these.
    """

    def __init__(self, values: Floats, places: Sequence[int] | Positions, ends: Sequence[Ends] | Floats) -> None:
        np: Any = importlib.import_module("numpy")
        self.values, self.places = values, np.asarray(places, np.int64)
        self.ends = np.asarray(ends, np.float64).reshape(-1, 2)

    def side(self, number: int) -> Floats:
        """The lowest values (0) or the highest ones (1)."""
        column = self.values.copy()
        column[self.places] = self.ends[:, number]
        return column

    def at(self, places: Any) -> Any:
        """The ends at some places, as an array of numpy with two columns."""
        np: Any = importlib.import_module("numpy")
        found = np.repeat(self.values[places][:, None], 2, axis=1)
        if self.places.size:
            among = np.minimum(np.searchsorted(self.places, places), self.places.size - 1)
            given = self.places[among] == places
            found[given] = self.ends[among[given]]
        return found

    @overload
    def __getitem__(self, row: int) -> Ends: ...
    @overload
    def __getitem__(self, row: slice) -> list[Ends]: ...
    def __getitem__(self, row: int | slice) -> Ends | list[Ends]:
        if isinstance(row, slice):
            np: Any = importlib.import_module("numpy")
            return [(low, high) for low, high in self.at(np.arange(*row.indices(len(self)))).tolist()]
        return self[row : row + 1][0] if row >= 0 else self[row + len(self)]

    def __iter__(self) -> Iterator[Ends]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self[start : start + _AT_ONCE]

    def __len__(self) -> int:
        return len(self.values)


def packed(values: Floats) -> Sequence[float]:
    """Numbers of numpy as a sequence: as a list, if there are few."""
    return values.tolist() if values.size < LARGE else PackedScores(values)  # pyright: ignore[reportReturnType]


def open_ends(ends: Sequence[Ends]) -> int:
    """How many ends differ."""
    if isinstance(ends, PackedEnds):
        return int((ends.ends[:, 0] != ends.ends[:, 1]).sum())
    return sum(low != high for low, high in ends)


def index_of(rows: Sequence[int]) -> Any:
    """Rows as what numpy takes for them."""
    np: Any = importlib.import_module("numpy")
    if isinstance(rows, range):
        return slice(rows.start, rows.stop, rows.step) if rows.step > 0 else np.arange(rows.start, rows.stop, rows.step)
    return np.asarray(rows, np.int64)


def smallest_and_largest(values: Sequence[float]) -> tuple[float, float]:
    """The smallest and the largest of one number or more."""
    return values.ends if isinstance(values, PackedScores) else (min(values), max(values))


def exact_total(values: Sequence[float]) -> float:
    """The sum of numbers, correctly rounded."""
    return values.total if isinstance(values, PackedScores) else math.fsum(values)


def only_has(values: Iterable[float | None], those: Sequence[float]) -> bool:
    """Whether every value that isn't missing is one of those."""
    if not isinstance(values, PackedScores):
        return {*values} <= {None, *those}
    np: Any = importlib.import_module("numpy")
    return bool((np.isin(values.array, those) | ~values.has_value).all())


def ends_only_have(ends: Sequence[Ends], those: Sequence[float]) -> bool:
    """Whether every lowest and highest value is one of those. Missing scores have ends."""
    if not isinstance(ends, PackedEnds):
        return {end for both in ends for end in both} <= {*those}
    np: Any = importlib.import_module("numpy")
    return only_has(PackedScores(ends.values), those) and bool(np.isin(ends.ends, those).all())


def varies(values: Sequence[float | None]) -> bool:
    """Whether two values that aren't missing differ."""
    if not isinstance(values, PackedScores):
        return len({*values} - {None}) > 1
    known = values.known
    return len(known) > 1 and known.ends[0] < known.ends[1]


def _exact_total(values: Floats) -> float:
    """What `math.fsum` returns for finite numbers.

    Each number is cut at one power of two, which is chosen so that the upper parts of so many numbers add up without
    rounding, in whatever order; what is below it is cut again until nothing is left. `fsum` rounds the sum of these
    sums. Source: Rump, Ogita and Oishi 2008, "Accurate floating-point summation", SIAM Journal on Scientific
    Computing 31(1).
    """
    np: Any = importlib.import_module("numpy")
    sums, parts = list[float](), np.empty((2, min(len(values), _AT_ONCE)))
    for start in range(0, len(values), _AT_ONCE):
        rest = values[start : start + _AT_ONCE]
        upper, below = parts[:, : len(rest)]
        while largest := max(-float(rest.min()), float(rest.max())):
            # The parts are at most 2^p and multiples of 2^(p - 36), so that the sum of 2^16 of them has 52 bits.
            power = math.frexp(largest)[1] + _AT_ONCE.bit_length()
            if power >= sys.float_info.max_exp:
                sums += rest.tolist()
                break
            cut = math.ldexp(1.0, power)
            np.subtract(np.add(rest, cut, out=upper), cut, out=upper)
            sums.append(float(upper.sum()))
            rest = np.subtract(rest, upper, out=below)
    return math.fsum(sums)
