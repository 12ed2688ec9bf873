"""A list of texts that spills to a temporary file when it outgrows memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import overload

from evalstone._core.sequences import StoredSequence
from evalstone._core.temporary import TemporaryData

IN_MEMORY = 1 << 20
"""The number of characters from which on texts are written to the file."""
_OVERHEAD = 60
"""What a text takes besides its characters."""


class SpilledTexts(StoredSequence[str]):
    """Texts, of which the last ones are in memory. Those before them are in a temporary file, which is deleted with
    this object. They are best read in their order.

    what: What the texts are, for errors.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._last: list[str] = []
        """Those that are in memory."""
        self._room = IN_MEMORY
        self._ends = array("Q", [0])
        """Where the texts in the file end, after a 0."""
        self._file: TemporaryData | None = None

    def append(self, text: str) -> None:
        """Add a text. Raises WriteError if the disk is full."""
        self._last.append(text)
        self._room -= len(text) + _OVERHEAD
        if self._room < 0:
            self._spill()

    def extend(self, texts: Sequence[str]) -> None:
        """Add texts, as by `append`."""
        self._last += texts
        self._room -= sum(map(len, texts)) + _OVERHEAD * len(texts)
        if self._room < 0:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = TemporaryData(self._what)
        end, ends, last = self._ends[-1], array("Q"), self._last
        together = "".join(last)
        data = together.encode()
        for size in map(len, last if len(data) == len(together) else map(str.encode, last)):
            end += size
            ends.append(end)
        self._file.append(data)
        self._ends += ends
        self._last, self._room = [], IN_MEMORY

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
        if place >= written or self._file is None:
            return self._last[place - written]
        start = self._ends[place]
        return self._file.part(start, self._ends[place + 1] - start).decode()

    def __iter__(self) -> Iterator[str]:
        return map(self.at, range(len(self)))

    def __len__(self) -> int:
        return len(self._ends) - 1 + len(self._last)
