"""Large JSON Lines files: read twice from disk instead of once into memory.

The first pass checks every row, so that invalid rows are reported before any judge call. It also determines what the
second pass needs: the number of samples, their version, and repeated contents. It keeps eight bytes per sample.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import overload

from evalstone._core.display import excerpt
from evalstone.agents.messages import SampleNotes
from evalstone.datasets.columns import ColumnMapping
from evalstone.datasets.files import DataFile
from evalstone.datasets.json_rows import json_lines
from evalstone.datasets.rows import RowReader
from evalstone.errors import DataError
from evalstone.types import Sample

STREAMED_FROM = 64_000_000


@dataclass(frozen=True)
class SampleFile(Sequence[Sample]):
    """The samples of a file. Each iteration reads it again; indexing reads it from the start.

    Raises DataError if the file has changed.
    """

    file: DataFile
    mapping: ColumnMapping
    size: int
    """The number of samples."""
    repeated: frozenset[str]
    """The content hashes that occur more than once. The second sample with such a content and no id gets "-2" after the
    hash, as in memory."""
    state: tuple[int, int]

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Sample, ...]: ...
    def __getitem__(self, index: int | slice) -> Sample | tuple[Sample, ...]:
        places = range(self.size)[index]
        if isinstance(places, int):
            return next(itertools.islice(self, places, None))
        needed = set(places)
        samples = {place: sample for place, sample in enumerate(self) if place in needed}
        return tuple(samples[place] for place in places)

    def __iter__(self) -> Iterator[Sample]:
        if self.state != _state(self.file.path):
            raise DataError(f"{self.file.path.name} was changed while it was in use")
        reader = RowReader(self.mapping)
        seen: dict[str, int] = {}
        for place, row in json_lines(self.file.text()):
            sample = reader.read(row, place)
            if sample.id in self.repeated:
                number = seen[sample.id] = seen.get(sample.id, 0) + 1
                yield sample if number == 1 else replace(sample, id=f"{sample.id}-{number}")
            else:
                yield sample


def survey(file: DataFile, mapping: ColumnMapping | None) -> tuple[SampleFile, str, RowReader, tuple[str, ...]]:
    """Read a file once and check every row. Returns its samples, their version, the reader with the columns, and the
    notes on messages.

    Raises DataError for an invalid row, and for a duplicate id.
    """
    reader = RowReader(mapping)
    state = _state(file.path)
    version = hashlib.blake2b(digest_size=8)
    ids: set[int] = set()
    seen: dict[str, int] = {}
    count, notes = 0, SampleNotes()
    for place, row in json_lines(file.text()):
        sample = reader.read(row, place)
        notes.add(sample)
        count += 1
        key = hash(sample.id)
        if key in ids:
            if sample.id != sample.default_id:
                raise DataError(f"{place}: the id {excerpt(sample.id)} is already used by an earlier line")
            seen[sample.id] = seen.get(sample.id, 1) + 1
            sample = replace(sample, id=f"{sample.id}-{seen[sample.id]}")
        ids.add(key)
        version.update(_version_entry(sample))
    reader.columns.check()
    samples = SampleFile(file, dict(mapping or {}), count, frozenset(seen), state)
    return samples, version.hexdigest(), reader, notes.lines()


def version_of(samples: Iterable[Sample]) -> str:
    """A hash of the samples' ids and contents, in order: 16 hexadecimal digits."""
    version = hashlib.blake2b(digest_size=8)
    for sample in samples:
        version.update(_version_entry(sample))
    return version.hexdigest()


def _version_entry(sample: Sample) -> bytes:
    return f"{len(sample.id)}:{sample.id}:{sample.content_hash}".encode("utf-8", "backslashreplace")


def _state(path: Path) -> tuple[int, int]:
    """The size and modification time, which change when the file does."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns
