"""Texts in one piece of memory."""

from __future__ import annotations

import importlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

_FACTOR = 0x9E3779B97F4A7C15
"""An odd number with bits everywhere, so that each byte of a text changes all of its hash."""


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

    @classmethod
    def of_buffers(cls, data: bytes, starts: bytes, lengths: bytes) -> PackedTexts:
        """Texts from their UTF-8 and, for each, its place in that and its bytes: as 8 and 4 bytes of this machine."""
        texts = cls()
        texts._data += data
        texts._starts.frombytes(starts)
        texts._lengths.frombytes(lengths)
        return texts

    def extend(self, others: Sequence[str]) -> None:
        """Add texts after these."""
        if not isinstance(others, PackedTexts):
            for text in others:
                self.append(text)
            return
        shift = len(self._data)
        self._data += others._data
        self._starts.extend(others._starts if not shift else array("Q", [shift + start for start in others._starts]))
        self._lengths += others._lengths

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

    def has_repeats(self, numbers: array[int] | None = None) -> bool:
        """Whether a text occurs twice, with the same number if they have numbers. It may be wrong if it says yes: only
        hashes are compared."""
        np: Any = importlib.import_module("numpy")  # few callers need it

        data = np.frombuffer(self._data, np.uint8)
        starts, lengths = np.frombuffer(self._starts, np.uint64), np.frombuffer(self._lengths, np.uint32)
        hashes = np.zeros(len(self), np.uint64)
        with np.errstate(over="ignore"):
            for place in range(int(lengths.max(initial=0))):  # one byte of every text that is long enough
                rows = np.flatnonzero(lengths > place) if place >= lengths.min() else slice(None)
                hashes[rows] = (hashes[rows] + data[starts[rows] + np.uint64(place)]) * _FACTOR
                hashes[rows] ^= hashes[rows] >> np.uint64(29)
            hashes = hashes * _FACTOR + lengths
            if numbers:
                hashes = hashes * _FACTOR + np.frombuffer(numbers, np.int64).astype(np.uint64)
        hashes.sort()
        return bool((hashes[1:] == hashes[:-1]).any())

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
