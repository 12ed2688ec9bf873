"""The versions of datasets, and their samples in the order of the dataset."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from evalstone._core.json import storable
from evalstone._core.redaction import redacted
from evalstone.datasets.blocks import SampleBlock, sample_blocks
from evalstone.errors import LedgerError
from evalstone.ledger import schema
from evalstone.ledger.async_ledger import BLOCKS_PER_WRITE
from evalstone.ledger.base import chunks
from evalstone.ledger.store import Ledger
from evalstone.types import Sample

_ITEMS = "FROM items JOIN blocks ON items.block = blocks.hash WHERE items.dataset = :dataset"
_MOST_BLOCKS = 16
"""The number of blocks that are kept for samples that are read one by one."""


class DatasetVersion(NamedTuple):
    """A version of a dataset."""

    version: str
    name: str
    """The name under which it was seen first."""
    first_seen: str
    samples: int


def dataset_versions(ledger: Ledger) -> list[DatasetVersion]:
    """All versions of all datasets, latest first."""
    query = "SELECT version, name, first_seen, samples FROM datasets ORDER BY first_seen DESC, version"
    with ledger.transaction() as database:
        return [DatasetVersion(*row) for row in database.execute(query).fetchall()]


def write_version(ledger: Ledger, name: str, version: str, samples: Sequence[Sample]) -> None:
    """Store a version that no run has yet. `evalstone ledger prune` deletes it like one whose runs are gone.

    The version is listed when all of its samples are there.
    """
    for part in chunks(sample_blocks(samples), BLOCKS_PER_WRITE):
        ledger.write_blocks(version, part)
    seen = datetime.now(UTC).isoformat(timespec="seconds")
    row = {"version": version, "name": storable(redacted(name)), "first_seen": seen, "samples": len(samples)}
    with ledger.transaction(writing=True) as database:
        database.execute(schema.datasets.insert, row)


class PlacedBlock(NamedTuple):
    """A block of a version without its samples."""

    place: int
    """The number of its first sample in the dataset, from 0."""
    hash: str
    samples: int


def placed_blocks(ledger: Ledger, version: str) -> list[PlacedBlock]:
    """The blocks of a version, in the order of the dataset."""
    query = f"SELECT items.place, items.block, blocks.samples {_ITEMS} ORDER BY items.place"
    with ledger.transaction() as database:
        return [PlacedBlock(*row) for row in database.execute(query, {"dataset": version}).fetchall()]


@dataclass
class StoredLines:
    """The samples of a version as lines (see `sample_line`), a block at a time.

    Methods raise LedgerError for a damaged block.
    """

    ledger: Ledger
    version: str
    _kept: OrderedDict[int, Sequence[str]] = field(default_factory=OrderedDict[int, Sequence[str]])
    """The lines of the blocks that were read last, by the place of their first sample."""

    def every(self) -> Iterator[str]:
        """All lines, in the order of the dataset."""
        for block in placed_blocks(self.ledger, self.version):
            yield from self.of_block(block.place)

    def of_block(self, place: int) -> Sequence[str]:
        """The lines of the block whose first sample has this place."""
        found = self._block(f"{_ITEMS} AND items.place = :place", place)
        if found is None:
            raise LedgerError(f"samples of dataset {self.version} are gone from the ledger {self.ledger.location}")
        with self.ledger.reading(f"a sample of dataset {self.version}"):
            return found.lines

    def at(self, place: int) -> str | None:
        """The line of a sample by its place; None if it isn't there."""
        first = next((at for at, lines in self._kept.items() if at <= place < at + len(lines)), None)
        if first is None:
            block = self._block(f"{_ITEMS} AND items.place <= :place ORDER BY items.place DESC LIMIT 1", place)
            if block is None:
                return None
            first = block.place
            with self.ledger.reading(f"a sample of dataset {self.version}"):
                self._kept[first] = block.lines
            while len(self._kept) > _MOST_BLOCKS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(first)
        lines = self._kept[first]
        return lines[place - first] if place - first < len(lines) else None

    def _block(self, condition: str, place: int) -> SampleBlock | None:
        query = f"SELECT items.place, blocks.samples, blocks.hash, blocks.body {condition}"
        with self.ledger.transaction() as database:
            row = database.execute(query, {"dataset": self.version, "place": place}).fetchone()
        with self.ledger.reading(f"a sample of dataset {self.version}"):
            return None if row is None else SampleBlock(row[0], row[1], row[2], bytes(row[3]))
