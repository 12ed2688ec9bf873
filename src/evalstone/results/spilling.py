"""Lists that spill to a temporary file when they outgrow memory."""

from __future__ import annotations

import json
import os
import tempfile
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from io import FileIO
from typing import TypeVar, overload

from evalstone._core.redaction import redacted
from evalstone.errors import WriteError
from evalstone.types import Record

MAX_IN_MEMORY = 20_000
_T = TypeVar("_T")
_MISSING, _IN_MEMORY = -1, -2
_LENGTH = 8
"""The size of the length prefix of each value in the temporary file, in bytes."""


class SpillingList(Sequence[_T]):
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
        self._offsets = array("q", [_MISSING]) * size
        self._count = 0
        self._file: FileIO | None = None

    def put(self, cell: int, value: _T) -> None:
        """Store a cell's value, once. Raises WriteError if the disk is full; the value is then still in memory."""
        self._count += not self.has(cell)
        self._values[cell], self._offsets[cell] = value, _IN_MEMORY
        if len(self._values) <= self._limit:
            return
        try:
            self._offsets[cell] = self._append(self._write(value).encode())
        except OSError as error:
            message = f"can't write results to a temporary file in {tempfile.gettempdir()}: {error.strerror or error}"
            raise WriteError(f"{message}. To use another folder, set TMPDIR") from None
        del self._values[cell]

    def _append(self, text: bytes) -> int:
        """Append a value with its length prefix to the file, and return its offset.

        Writes are unbuffered, so that a full disk is an error of the value that doesn't fit, not of later reads.
        """
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it lives as long as this object
            weakref.finalize(self, self._file.close)
        offset = self._file.seek(0, os.SEEK_END)
        data = len(text).to_bytes(_LENGTH) + text
        while data:
            data = data[self._file.write(data) or 0 :]
        return offset

    def at(self, cell: int) -> _T:
        """The value of a cell that has one."""
        offset = self._offsets[cell]
        if offset == _IN_MEMORY or self._file is None:
            return self._values[cell]
        self._file.seek(offset)
        size = int.from_bytes(self._file.read(_LENGTH) or b"")
        return self._parse(self._file.read(size) or b"")

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

    def __reduce__(self) -> tuple[object, ...]:
        return (tuple, (list(self),))

    def _cells(self) -> Sequence[int]:
        every = range(self.size)
        return every if self.complete else [cell for cell in every if self.has(cell)]


class SpillingRecords(SpillingList[Record]):
    """The records of a run by cell number."""

    def __init__(self, size: int, *, in_memory: int = MAX_IN_MEMORY) -> None:
        super().__init__(size, _record_text, _record_of, in_memory=in_memory)


def _record_text(record: Record) -> str:
    return redacted(json.dumps(record.to_dict()))


def _record_of(text: bytes) -> Record:
    return Record.from_dict(json.loads(text))
