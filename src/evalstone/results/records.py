"""A run's records: in memory while they are few, in a temporary file when they are many."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from typing import BinaryIO, overload

from evalstone.types import Record

MAX_IN_MEMORY = 20_000
_MISSING, _IN_MEMORY = -1, -2


class SpillingRecords(Sequence[Record]):
    """Records by cell number, of which there are `size`; cells without a record are left out when read.

    The first `in_memory` records stay as they are. Later ones are written to a temporary file that is deleted with this
    object, and come back with judge calls and evidence as plain data.
    """

    def __init__(self, size: int, *, in_memory: int = MAX_IN_MEMORY) -> None:
        self.size = size
        self._limit = in_memory
        self._records: dict[int, Record] = {}
        self._offsets = array("q", [_MISSING]) * size
        self._count = 0
        self._file: BinaryIO | None = None

    def put(self, cell: int, record: Record) -> None:
        """Store the record of a cell, once."""
        self._count += self._offsets[cell] == _MISSING
        if len(self._records) < self._limit:
            self._records[cell] = record
            self._offsets[cell] = _IN_MEMORY
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this object
        self._offsets[cell] = self._file.seek(0, 2)
        self._file.write(json.dumps(record.to_dict()).encode() + b"\n")

    def has(self, cell: int) -> bool:
        """Whether a cell has a record."""
        return self._offsets[cell] != _MISSING

    @property
    def complete(self) -> bool:
        """Whether every cell has a record."""
        return self._count == self.size

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        return (self._read(cell) for cell in self._cells())

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Record, ...]: ...
    def __getitem__(self, index: int | slice) -> Record | tuple[Record, ...]:
        cells = self._cells()
        if isinstance(index, slice):
            return tuple(self._read(cell) for cell in cells[index])
        return self._read(cells[index])

    def _cells(self) -> Sequence[int]:
        every = range(self.size)
        return every if self.complete else [cell for cell in every if self.has(cell)]

    def __reduce__(self) -> tuple[object, ...]:
        return (tuple, (list(self),))

    def _read(self, cell: int) -> Record:
        offset = self._offsets[cell]
        if offset == _IN_MEMORY or self._file is None:
            return self._records[cell]
        self._file.seek(offset)
        return Record.from_dict(json.loads(self._file.readline()))
