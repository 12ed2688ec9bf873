"""Samples in compressed blocks, as the ledger stores them, and as those of a large dataset wait in a temporary file."""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
import operator
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast, overload

from evalstone._core.temporary import TemporaryData
from evalstone.datasets.stored import sample_line, sample_of
from evalstone.errors import DataError
from evalstone.types import Sample

_FEWEST_IN_BLOCK, _MORE_IN_BLOCK = 64, 256
"""The least number of samples in a block, and how many more it has on average."""
_BLOCK_SIZE = 2**18
"""Characters after which a block ends anyway."""


@dataclass(frozen=True)
class SampleBlock:
    """Consecutive samples of a dataset as compressed JSON Lines."""

    place: int
    """The number of its first sample in the dataset."""
    size: int
    """The number of its samples."""
    hash: str
    """The hash of its text."""
    body: bytes
    """Its compressed text."""

    @classmethod
    def of(cls, place: int, lines: Sequence[str]) -> SampleBlock:
        """The block of samples as lines (see `sample_line`)."""
        text = "".join(f"{line}\n" for line in lines).encode()
        return cls(place, len(lines), hashlib.blake2b(text, digest_size=16).hexdigest(), zlib.compress(text, level=1))

    @property
    def lines(self) -> list[str]:
        """The lines of its samples. Raises DataError for a damaged block."""
        return _lines(self.body)

    @property
    def row(self) -> dict[str, Any]:
        """Its row in the ledger's `blocks`."""
        return {"hash": self.hash, "samples": self.size, "body": self.body}


def sample_blocks(samples: Iterable[Sample]) -> Iterator[SampleBlock]:
    """The samples of a dataset in blocks.

    A block ends where a sample's own text says so, by a checksum. So a dataset with a few more, fewer or other samples
    has the same blocks elsewhere, and these are stored once.
    """
    return samples.blocks() if isinstance(samples, SpooledSamples) else line_blocks(map(sample_line, samples))


def line_blocks(of: Iterable[str]) -> Iterator[SampleBlock]:
    """Blocks as by `sample_blocks` of samples as lines (see `sample_line`)."""
    lines, place, size = list[str](), 0, 0
    for line in of:
        lines.append(line)
        size += len(line)
        ends = len(lines) >= _FEWEST_IN_BLOCK and zlib.crc32(line.encode()) % _MORE_IN_BLOCK == 0
        if ends or size >= _BLOCK_SIZE:
            yield SampleBlock.of(place, lines)
            lines, place, size = [], place + len(lines), 0
    if lines:
        yield SampleBlock.of(place, lines)


def block_rows(body: bytes) -> list[Any]:
    """The samples in the body of a block as parsed JSON. Raises DataError for a damaged one."""
    return json.loads(f"[{','.join(_lines(body))}]")


def _lines(body: bytes) -> list[str]:
    try:
        return zlib.decompress(body).decode().split("\n")[:-1]
    except zlib.error as error:
        raise DataError(f"a block of samples can't be read: {error}") from None


class _BlockFile:
    """Blocks in a temporary file. Raises WriteError as `TemporaryData` does."""

    def __init__(self, blocks: Iterable[SampleBlock]) -> None:
        self.places = array("Q")
        """The number of the first sample of each block."""
        self._data = TemporaryData("samples")
        self._sizes, self._hashes, self._offsets = array("Q"), list[str](), array("Q")
        for block in blocks:
            self._offsets.append(self._data.append(block.body))
            self.places.append(block.place)
            self._sizes.append(block.size)
            self._hashes.append(block.hash)
        self.size = self.places[-1] + self._sizes[-1]

    def block(self, number: int) -> SampleBlock:
        """A block by its number."""
        start = self._offsets[number]
        end = self._offsets[number + 1] if number + 1 < len(self._offsets) else self._data.size
        body = self._data.read(start, end - start)
        return SampleBlock(self.places[number], self._sizes[number], self._hashes[number], body)


class SpooledSamples(Sequence[Sample]):
    """The samples of a large dataset. They are in a temporary file, which is deleted with them, a third of their size.

    Each iteration reads them again, a block at a time. They equal the same samples in a tuple. Raises WriteError if the
    disk is full.
    """

    def __init__(self, file: _BlockFile, size: int) -> None:
        self._file, self._size = file, size
        self._last: tuple[int, list[Any]] = (-1, [])
        """The number and the parsed samples of the block that was indexed last."""

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> SpooledSamples:
        """At least one sample, written into a new file."""
        return cls.of_lines(map(sample_line, samples))

    @classmethod
    def of_lines(cls, lines: Iterable[str]) -> SpooledSamples:
        """At least one sample as a line (see `sample_line`), written into a new file."""
        file = _BlockFile(line_blocks(lines))
        return cls(file, file.size)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | Sequence[Sample]:
        chosen = range(self._size)[index]
        if isinstance(chosen, int):
            number = bisect.bisect_right(self._file.places, chosen) - 1
            last, rows = self._last  # read once: another thread may set it meanwhile
            if last != number:
                rows = block_rows(self._file.block(number).body)
                self._last = number, rows
            return sample_of(rows[chosen - self._file.places[number]])
        if chosen and chosen == range(len(chosen)):
            return SpooledSamples(self._file, len(chosen))
        return tuple(self[place] for place in chosen)

    def __iter__(self) -> Iterator[Sample]:
        rows = itertools.chain.from_iterable(block_rows(block.body) for block in self.blocks())
        return map(sample_of, rows)

    def at(self, places: Iterable[int]) -> Iterator[Sample]:
        """The samples at these places, in any order. Meanwhile, all lines are in another temporary file, uncompressed:
        a block is too much to read for one of them."""
        data, starts = TemporaryData("samples"), array("Q", [0])
        for block in self.blocks():
            text = zlib.decompress(block.body)
            data.append(text)
            sizes = (len(line) + 1 for line in text.split(b"\n")[:-1])
            starts.extend(itertools.accumulate(sizes, initial=starts.pop()))
        texts = (data.read(starts[place], starts[place + 1] - starts[place]) for place in places)
        return (sample_of(json.loads(text)) for text in texts)

    def blocks(self) -> Iterator[SampleBlock]:
        """The samples in blocks."""
        for number, place in enumerate(self._file.places):
            if place >= self._size:
                return
            block = self._file.block(number)
            whole = place + block.size <= self._size
            yield block if whole else SampleBlock.of(place, block.lines[: self._size - place])

    def lines(self) -> Iterator[str]:
        """The samples as lines (see `sample_line`)."""
        return itertools.chain.from_iterable(block.lines for block in self.blocks())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SpooledSamples | tuple):
            return NotImplemented
        others = cast("Sequence[object]", other)
        return len(self) == len(others) and all(map(operator.eq, self, others))

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it would need all samples

    def __reduce__(self) -> tuple[object, ...]:
        return (tuple, (list(self),))
