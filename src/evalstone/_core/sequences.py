"""Sequences that read their items when they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq
from typing import TypeVar, cast

T_co = TypeVar("T_co", covariant=True)


class StoredSequence(Sequence[T_co]):
    """A sequence that isn't all in memory. It equals every sequence of equal items, and is pickled as a tuple."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        others = cast("Sequence[object]", other)
        return len(self) == len(others) and all(map(eq, self, others))

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __reduce__(self) -> tuple[object, ...]:
        return (tuple, (list(self),))
