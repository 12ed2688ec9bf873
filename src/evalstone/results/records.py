"""A run's records: in memory while they are few, in a temporary file when they are many."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from typing import BinaryIO, overload

from evalstone.types import Record

KEPT = 20_000
ABSENT, HELD = -1, -2


class SpillingRecords(Sequence[Record]):
    """Records by the place of their cell, of which there are `size`; absent places are passed over when read.

    The first `kept` records stay as they were made. Later ones are written to a temporary file that goes with the log,
    and come back with steps and evidence as plain data.
    """

    def __init__(self, size: int, *, kept: int = KEPT) -> None:
        self.size = size
        self._kept = kept
        self._held: dict[int, Record] = {}
        self._offsets = array("q", [ABSENT]) * size
        self._count = 0
        self._file: BinaryIO | None = None

    def put(self, place: int, record: Record) -> None:
        """Put a record in its place, once."""
        self._count += self._offsets[place] == ABSENT
        if len(self._held) < self._kept:
            self._held[place] = record
            self._offsets[place] = HELD
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the log, and goes with it
        self._offsets[place] = self._file.seek(0, 2)
        self._file.write(json.dumps(record.to_dict()).encode() + b"\n")

    def has(self, place: int) -> bool:
        """Whether there is a record in a place."""
        return self._offsets[place] != ABSENT

    @property
    def complete(self) -> bool:
        """Whether every place has its record."""
        return self._count == self.size

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        return (self._at(place) for place in range(self.size) if self._offsets[place] != ABSENT)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Record, ...]: ...
    def __getitem__(self, index: int | slice) -> Record | tuple[Record, ...]:
        if self._count == self.size:
            places: Sequence[int] = range(self.size)
        else:
            places = [place for place in range(self.size) if self._offsets[place] != ABSENT]
        if isinstance(index, slice):
            return tuple(self._at(place) for place in places[index])
        return self._at(places[index])

    def __reduce__(self) -> tuple[object, ...]:
        return (tuple, (list(self),))

    def _at(self, place: int) -> Record:
        offset = self._offsets[place]
        if offset == HELD or self._file is None:
            return self._held[place]
        self._file.seek(offset)
        return Record.from_dict(json.loads(self._file.readline()))
