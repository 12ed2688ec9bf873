"""Texts in one piece of memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload


class PackedTexts(Sequence[str]):
    """Many short texts, in 12 bytes each besides their characters: a quarter of what they take as objects.

    Args:
        size: The number of texts to set later, "" until then.
    """

    def __init__(self, size: int = 0) -> None:
        self._data = bytearray()
        self._starts, self._lengths = array("Q", [0]) * size, array("I", [0]) * size

    def append(self, text: str) -> None:
        """Add a text after the others."""
        data = text.encode("utf-8", "surrogatepass")
        self._starts.append(len(self._data))
        self._lengths.append(len(data))
        self._data += data

    def __setitem__(self, place: int, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        self._starts[place], self._lengths[place] = len(self._data), len(data)
        self._data += data

    def at(self, places: Iterable[int]) -> PackedTexts:
        """The texts at these places, in the same memory."""
        some = PackedTexts()
        some._data = self._data
        starts, lengths = self._starts, self._lengths
        for place in places:
            some._starts.append(starts[place])
            some._lengths.append(lengths[place])
        return some

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        start = self._starts[place]
        return self._data[start : start + self._lengths[place]].decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        data = self._data
        for start, length in zip(self._starts, self._lengths, strict=True):
            yield data[start : start + length].decode("utf-8", "surrogatepass")

    def __len__(self) -> int:
        return len(self._starts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PackedTexts):
            return NotImplemented
        if (self._data, self._starts) == (other._data, other._starts):
            return self._lengths == other._lengths
        return len(self) == len(other) and all(ours == theirs for ours, theirs in zip(self, other, strict=True))

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it can change
