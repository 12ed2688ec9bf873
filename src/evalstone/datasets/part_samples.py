"""The samples of parts of data files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from evalstone._core.display import named
from evalstone._core.storage import Location
from evalstone.agents.formats.records import is_telemetry
from evalstone.datasets.parts import Part
from evalstone.datasets.read_samples import ReadSamples
from evalstone.datasets.reading import AS_FOUND, Reading
from evalstone.datasets.rows import RowReader
from evalstone.errors import ConfigError, DataError
from evalstone.types import Sample


def reader_of(part: Part, how: Reading = AS_FOUND) -> RowReader:
    """A reader of the part's rows."""
    return how.reader(text_cells=part.file.text_cells)


def read_part(part: Part, reader: RowReader, *, numbered: bool = False) -> Iterator[tuple[str, Sample]]:
    """The samples of a part with the positions of their rows. IDs aren't made unique. numbered: As for `Part.rows`.

    Raises DataError, with the file and the row, for an invalid row.
    """
    name = named(str(part.file.location))
    for place, row in part.rows(numbered=numbered):
        if not part.file.cells and is_telemetry(row):
            raise DataError(f"{name}: has traces, whose spans may be anywhere in it; make a dataset of it first")
        try:
            yield place, reader.read(row, place)
        except DataError as error:
            raise DataError(f"{name}: ", error) from None


@dataclass(frozen=True, kw_only=True)
class Block:
    """Samples that one process scores: those of a part of the source."""

    number: int
    """The number of the block, from 0."""
    part: Part
    first: int
    """The number of its first sample in the dataset, from 0."""
    samples: int
    renamed: Mapping[int, str]
    """By the number of a sample in the block, its ID, if an earlier one of the dataset has its default ID."""

    def read(self, how: Reading = AS_FOUND) -> Iterator[Sample]:
        """The samples.

        Raises:
            ConfigError: The file isn't what it was when the block was made.
            DataError: A row is invalid.
        """
        self.check_source()
        number = -1
        for number, (_, sample) in enumerate(read_part(self.part, reader_of(self.part, how))):
            yield replace(sample, id=self.renamed[number]) if number in self.renamed else sample
        self.check_source()
        if number + 1 != self.samples:
            raise changed_since(self.part.file.location)

    def check_source(self) -> None:
        """Raise ConfigError if the file isn't what it was when the block was made."""
        check_unchanged(self.part.file.location)


def check_unchanged(location: Location) -> None:
    """Raise ConfigError if a file isn't what it was when it was listed."""
    if (found := location.found()) is None:
        raise ConfigError(f"{named(str(location))}, which has the samples of the run, isn't there")
    if (found.size, found.changed) != (location.size, location.changed):
        raise changed_since(location)


def changed_since(location: Location) -> ConfigError:
    """The error for a file that isn't what it was when blocks were made of it."""
    return ConfigError(
        f"{named(str(location))} has changed since the run was planned; score it with another results folder"
    )


@dataclass(frozen=True)
class BlockSamples(ReadSamples):
    """The samples of blocks, read from their files. Errors are those of `Block.read`."""

    blocks: tuple[Block, ...]
    how: Reading = AS_FOUND

    def read(self) -> Iterator[Sample]:
        for block in self.blocks:
            yield from block.read(self.how)

    def __len__(self) -> int:
        return sum(block.samples for block in self.blocks)
