"""Lists that spill to a temporary file when they outgrow memory."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

from evalstone._core.json import value_of
from evalstone._core.sequences import StoredSequence
from evalstone._core.temporary import ReadAhead, TemporaryData
from evalstone.datasets.stored import record_line
from evalstone.results.columns import Columns
from evalstone.results.stored_records import StoredRecords
from evalstone.types import Record

MAX_IN_MEMORY = 20_000
_T = TypeVar("_T")
_MISSING, _IN_MEMORY = -1, -2
_AT_ONCE = 256
"""The number of values that are written together."""


class SpillingList(StoredSequence[_T]):
    """Values in numbered cells. Reading skips cells without a value.

    The first `in_memory` values are kept in memory. Later ones are written to a temporary file, which is deleted with
    this object.

    Args:
        size: The number of cells.
        write: Converts a value to text.
        read: Converts the text back to a value.
        in_memory: The number of values kept in memory.
    """

    def __init__(
        self,
        size: int,
        write: Callable[[_T], str],
        read: Callable[[bytes], _T],
        *,
        in_memory: int = MAX_IN_MEMORY,
    ) -> None:
        self.size = size
        self._write, self._parse = write, read
        self._limit = in_memory
        self._values: dict[int, _T] = {}
        self._offsets, self._lengths = array("q", [_MISSING]) * size, array("I", [0]) * size
        self._count = 0
        self._unwritten: dict[int, bytes] = {}
        """Texts of values that are in memory until they are written to the file."""
        self._file: TemporaryData | None = None
        self._written: ReadAhead | None = None
        """What is in the file."""
        self._cells_with_values = array("q")

    def put(self, cell: int, value: _T, text: str | None = None) -> None:
        """Store a cell's value, once. Raises WriteError if the disk is full; the value is then still in memory.

        text: The value as text, if it is known.
        """
        self._put(cell, value, text)

    def append(self, value: _T, text: str | None = None) -> None:
        """Add a cell with this value, as by `put`."""
        self.size += 1
        self._offsets.append(_MISSING)
        self._lengths.append(0)
        self._put(self.size - 1, value, text)

    def _put(self, cell: int, value: _T, text: str | None) -> None:
        self._count += not self.has(cell)
        self._values[cell], self._offsets[cell] = value, _IN_MEMORY
        if len(self._values) <= self._limit:
            return
        self._unwritten[cell] = (self._write(value) if text is None else text).encode()
        if len(self._unwritten) >= min(_AT_ONCE, self._limit):
            self._spill()

    def _spill(self) -> None:
        """Write the values that wait for it to the file. They stay in memory unless all of them fit."""
        if self._file is None:
            self._file = TemporaryData("results")
            self._written = ReadAhead(self._file.read)
        offset = self._file.append(b"".join(self._unwritten.values()))
        for cell, text in self._unwritten.items():
            self._offsets[cell], self._lengths[cell] = offset, len(text)
            offset += len(text)
            del self._values[cell]
        self._unwritten = {}

    def at(self, cell: int) -> _T:
        """The value of a cell that has one."""
        text = self._text_at(cell)
        return self._values[cell] if text is None else self._parse(text)

    def text_at(self, cell: int, /) -> str:
        """The value of a cell that has one, as text."""
        text = self._text_at(cell)
        return self._write(self._values[cell]) if text is None else text.decode()

    def _text_at(self, cell: int) -> bytes | None:
        """The text of a cell in the file; None if its value is in memory."""
        offset = self._offsets[cell]
        if offset == _IN_MEMORY or self._written is None:
            return None
        return self._written.part(offset, self._lengths[cell])

    def texts(self) -> Iterator[str]:
        """The values as texts, in order."""
        return map(self.text_at, self._cells())

    def has(self, cell: int) -> bool:
        """Whether a cell has a value."""
        return self._offsets[cell] != _MISSING

    @property
    def complete(self) -> bool:
        """Whether every cell has a value."""
        return self._count == self.size

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_T, ...]: ...
    def __getitem__(self, index: int | slice) -> _T | tuple[_T, ...]:
        cells = self._cells()
        return tuple(map(self.at, cells[index])) if isinstance(index, slice) else self.at(cells[index])

    def __iter__(self) -> Iterator[_T]:
        return map(self.at, self._cells())

    def _cells(self) -> Sequence[int]:
        every = range(self.size)
        if self.complete:
            return every
        if len(self._cells_with_values) != self._count:
            self._cells_with_values = array("q", filter(self.has, every))
        return self._cells_with_values


class SpillingRecords(SpillingList[Record], StoredRecords):
    """The records of a run by cell: the scorers of the first sample and trial, then those of the second, and so on.

    Args:
        scorers: The signatures of the scorers.
        cases: The number of samples and trials; 0 to append records.
        in_memory: The number of records kept in memory.
    """

    def __init__(self, scorers: Sequence[str], cases: int = 0, *, in_memory: int = MAX_IN_MEMORY) -> None:
        super().__init__(len(scorers) * cases, record_line, _record_of, in_memory=in_memory)
        self._columns = Columns(scorers, cases)

    @property
    def columns(self) -> Columns:
        """The scores of the records so far."""
        return self._columns

    def put(self, cell: int, value: Record, text: str | None = None) -> None:
        """Store a record, as by `SpillingList.put`. text: its `record_line`, if it is known."""
        self._columns.put(cell, value)
        super().put(cell, value, text)

    def append(self, value: Record, text: str | None = None) -> None:
        """Add a record after the others, as by `put`."""
        self._columns.append(value)
        super().append(value, text)


def _record_of(text: bytes) -> Record:
    return Record.from_dict(value_of(text.decode()))
