"""Large JSON Lines files: read twice from the disk instead of once into memory.

The first reading checks every row, so that a broken one is told before anything is asked, and learns what the second
needs: how many samples there are, their version, and which contents come more than once. It keeps eight bytes a sample.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import overload

from evalstone.datasets.decoding import decoded
from evalstone.datasets.formats import Rows, json_lines
from evalstone.datasets.rows import RowReader
from evalstone.datasets.wording import escaped, excerpt
from evalstone.errors import DataError
from evalstone.types import Sample

STREAMED_FROM = 64_000_000
STREAMED = (".jsonl", ".ndjson")


def line_rows(path: Path, *, zipped: bool) -> Rows:
    """The rows of a JSON Lines file with their places, a line at a time."""
    with gzip.open(path, "rb") if zipped else path.open("rb") as lines:
        number = 0
        try:
            for number, line in enumerate(lines, start=1):
                yield from json_lines(decoded(line), number)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"after line {number}: {escaped(error)}") from None


@dataclass(frozen=True)
class SampleFile(Sequence[Sample]):
    """The samples of a file, read anew each time they are iterated over, and from its beginning for each index.

    size: how many there are. repeated: the content hashes that come more than once; a second sample of such content,
    without an id of its own, gets "-2" behind the hash, as in memory. Raises DataError when the file was changed.
    """

    path: Path
    zipped: bool
    mapping: Mapping[str, str]
    size: int
    repeated: frozenset[str]
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
        wanted = set(places)
        found = {place: sample for place, sample in enumerate(self) if place in wanted}
        return tuple(found[place] for place in places)

    def __iter__(self) -> Iterator[Sample]:
        if self.state != _state(self.path):
            raise DataError(f"{self.path.name} was changed while it was in use")
        reader = RowReader(self.mapping)
        seen: dict[str, int] = {}
        for place, row in line_rows(self.path, zipped=self.zipped):
            sample = reader.read(row, place)
            if sample.id in self.repeated:
                number = seen[sample.id] = seen.get(sample.id, 0) + 1
                yield sample if number == 1 else replace(sample, id=f"{sample.id}-{number}")
            else:
                yield sample


@dataclass
class Survey:
    """What the first reading of a file found."""

    samples: SampleFile
    version: str
    reader: RowReader


def survey(path: Path, mapping: Mapping[str, str] | None, *, zipped: bool) -> Survey:
    """Read a file once, and check every row. Raises DataError for a row that cannot be read, and for an id twice."""
    reader = RowReader(mapping)
    state = _state(path)
    version = hashlib.blake2b(digest_size=8)
    ids: set[int] = set()
    seen: dict[str, int] = {}
    count = 0
    for place, row in line_rows(path, zipped=zipped):
        sample = reader.read(row, place)
        count += 1
        key = hash(sample.id)
        if key in ids:
            if sample.id != sample.content_hash[:16]:
                raise DataError(f"{place}: the id {excerpt(sample.id)} is taken by an earlier line")
            seen[sample.id] = seen.get(sample.id, 1) + 1
            sample = replace(sample, id=f"{sample.id}-{seen[sample.id]}")
        ids.add(key)
        version.update(version_entry(sample))
    reader.columns.check()
    samples = SampleFile(path, zipped, dict(mapping or {}), count, frozenset(seen), state)
    return Survey(samples, version.hexdigest(), reader)


def version_entry(sample: Sample) -> bytes:
    """What one sample adds to the version of its data set."""
    return f"{len(sample.id)}:{sample.id}:{sample.content_hash}".encode("utf-8", "backslashreplace")


def version_of(samples: Iterable[Sample]) -> str:
    """The hash of the samples' ids and contents in their order: 16 hexadecimal digits."""
    made = hashlib.blake2b(digest_size=8)
    for sample in samples:
        made.update(version_entry(sample))
    return made.hexdigest()


def _state(path: Path) -> tuple[int, int]:
    """What changes when a file is changed."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns
