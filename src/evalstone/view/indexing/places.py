"""Where the samples of a version of a dataset are: found once, and kept while the pages are served."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from evalstone._core.json import storable, value_of
from evalstone.datasets.stored import content_of
from evalstone.ledger.datasets import StoredLines, placed_blocks
from evalstone.ledger.store import Ledger
from evalstone.view.indexing.jobs import Building, Jobs
from evalstone.view.shelf import Shelf

MOST_KEPT = 4
"""The number of versions whose places are kept."""


@dataclass(frozen=True)
class Places:
    """The places of the samples of a version."""

    ids: Mapping[str, int] = field(default_factory=dict[str, int])
    """By ID, as `storable`."""
    contents: Mapping[int, int] = field(default_factory=dict[int, int])
    """By the hash of what `content_of` returns, which equals in this process only."""


class DatasetPlaces:
    """The places of versions in the ledger of a shelf."""

    def __init__(self, shelf: Shelf, jobs: Jobs) -> None:
        self.shelf, self.jobs = shelf, jobs
        self._kept: dict[str, Places] = {}
        self._lock = threading.Lock()

    def of(self, version: str) -> Places | Building:
        """The places of a version, or, if they aren't known in time, how far it is.

        Raises:
            EvalstoneError: They can't be read.
        """
        if (found := self._known(version)) is not None:
            return found

        def make(building: Building) -> None:
            with self.shelf.reading() as ledger:
                places = _read(ledger, version, building)
            with self._lock:
                self._kept[version] = places
                while len(self._kept) > MOST_KEPT:
                    del self._kept[next(iter(self._kept))]

        building = self.jobs.done(f"places of {version}", make)
        return building or self._known(version) or Building("reading the samples")

    def _known(self, version: str) -> Places | None:
        with self._lock:
            found = self._kept.pop(version, None)
            if found is not None:
                self._kept[version] = found
            return found


def _read(ledger: Ledger, version: str, building: Building) -> Places:
    ids, contents = dict[str, int](), dict[int, int]()
    blocks, lines = placed_blocks(ledger, version), StoredLines(ledger, version)
    total = sum(block.samples for block in blocks)
    for block in blocks:
        for place, line in enumerate(lines.of_block(block.place), start=block.place):
            id = value_of(line)["id"]
            ids[storable(id)] = place
            contents.setdefault(hash(content_of(line, id)), place)
        building.step("reading the samples", block.place + block.samples, total + 1)
    return Places(ids, contents)
