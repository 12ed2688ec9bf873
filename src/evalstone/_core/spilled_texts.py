"""A list of texts that spills to a temporary file when it outgrows memory."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import overload

from evalstone._core.sequences import StoredSequence
from evalstone._core.temporary import ReadAhead, TemporaryData

IN_MEMORY = 1 << 20
"""The number of characters from which on texts are written to the file."""
_LISTS = 16
"""How many lists of one file may have so many."""
_OVERHEAD = 60
"""What a text takes besides its characters."""


class SpillFile:
    """A temporary file for texts, which is made when the first ones outgrow memory. Lists that share it need one open
    file and the memory of a few, however many they are.

    what: What the texts are, for errors.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._data: TemporaryData | None = None
        self.lists = 0
        """How many lists share it."""

    @property
    def limit(self) -> int:
        """How many characters of each list may be in memory."""
        return IN_MEMORY if self.lists <= _LISTS else max(_LISTS * IN_MEMORY // self.lists, IN_MEMORY >> 5)

    def append(self, data: bytes) -> int:
        """Write bytes, and return their place. Raises WriteError if the disk is full."""
        if self._data is None:
            self._data = TemporaryData(self._what)
        return self._data.append(data)

    def read(self, place: int, size: int) -> bytes:
        """At most `size` bytes from a place on."""
        return b"" if self._data is None else self._data.read(place, size)


class SpilledTexts(StoredSequence[str]):
    """Texts, of which the last ones are in memory. Those before them are in a temporary file, which is deleted with
    this object and those that share it. They are best read in their order.

    what: What the texts are, for errors.
    file: The file, if it is shared.
    """

    def __init__(self, what: str, file: SpillFile | None = None) -> None:
        self._file = SpillFile(what) if file is None else file
        self._file.lists += 1
        self._last: list[str] = []
        """Those that are in memory."""
        self._left = self._file.limit
        self._ends = array("Q", [0])
        """Where the texts that were written end among their bytes, after a 0."""
        self._pieces, self._places = array("Q"), array("Q")
        """Where each piece of these bytes starts that is in one piece in the file, and its place there."""
        self._written = ReadAhead(self._file.read)

    def append(self, text: str) -> None:
        """Add a text. Raises WriteError if the disk is full."""
        self._last.append(text)
        self._left -= len(text) + _OVERHEAD
        if self._left < 0:
            self._spill()

    def extend(self, texts: Sequence[str]) -> None:
        """Add texts, as by `append`."""
        self._last += texts
        self._left -= sum(map(len, texts)) + _OVERHEAD * len(texts)
        if self._left < 0:
            self._spill()

    def _spill(self) -> None:
        before = end = self._ends[-1]
        ends, last = array("Q"), self._last
        together = "".join(last)
        data = together.encode()
        for size in map(len, last if len(data) == len(together) else map(str.encode, last)):
            end += size
            ends.append(end)
        place = self._file.append(data)
        if not self._pieces or place != self._places[-1] + before - self._pieces[-1]:
            self._pieces.append(before)
            self._places.append(place)
        self._ends += ends
        self._last, self._left = [], self._file.limit

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        chosen = range(len(self))[index]
        return self.at(chosen) if isinstance(chosen, int) else tuple(map(self.at, chosen))

    def at(self, place: int) -> str:
        """The text at a place, counted from the first one."""
        written = len(self._ends) - 1
        if place >= written:
            return self._last[place - written]
        start = self._ends[place]
        piece = bisect_right(self._pieces, start) - 1
        at = self._places[piece] + start - self._pieces[piece]
        return self._written.part(at, self._ends[place + 1] - start).decode()

    def __iter__(self) -> Iterator[str]:
        return map(self.at, range(len(self)))

    def __len__(self) -> int:
        return len(self._ends) - 1 + len(self._last)
