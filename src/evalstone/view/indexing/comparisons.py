"""The comparisons of runs: where they are, and how they are made when a page needs one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from evalstone._core.file_format import installed_version
from evalstone._core.json import content_hash
from evalstone.ledger.base import comparison_file
from evalstone.view.indexing.compare_build import build, build_slices
from evalstone.view.indexing.compared import Compared
from evalstone.view.indexing.index import OutdatedIndex
from evalstone.view.indexing.indexes import Indexes, place_of
from evalstone.view.indexing.jobs import Building
from evalstone.view.shelf import Card


class Comparisons:
    """The comparisons of the runs on a shelf. They are files beside the indexes."""

    def __init__(self, indexes: Indexes) -> None:
        self.indexes = indexes

    def open(self, cards: Sequence[Card], *, anyway: bool, by: str = "") -> Compared | Building:
        """The comparison of runs with the first one, or, if it isn't there in time, how far it is.

        Args:
            cards: The runs.
            anyway: Whether mismatches are allowed.
            by: An entry of the metadata; "" for the comparison over all samples.

        Raises:
            EvalstoneError: A run can't be read, or the comparison can't be written.
        """
        kind = ("x" if anyway else "") + (content_hash(by)[:10] if by else "")
        file = comparison_file(self.indexes.folder, [*map(place_of, cards)], kind)
        # Another version may compute another result.
        stamp = json.dumps([installed_version(), by, *((card.id, card.stamp) for card in cards)])
        jobs = self.indexes.jobs
        recent = any(card.state == "running" for card in cards) and jobs.is_recent(file.name)
        found = self._usable(cards, file, stamp, recent=recent, with_indexes=not by)
        if found is not None:
            return found

        def make(building: Building) -> None:
            with ExitStack() as stack:
                opened = [stack.enter_context(self.indexes.made(card, building)) for card in cards]
                building.step("comparing", 1, 4)
                runs = [self.indexes.shelf.read(card) for card in cards]
                building.step("comparing", 2, 4)
                if by:
                    build_slices(runs, file, stamp, anyway=anyway, by=by)
                else:
                    build(runs, opened, file, stamp, anyway=anyway)

        building = jobs.done(file.name, make)
        if building is not None:
            return building
        made = self._usable(cards, file, stamp, recent=True, with_indexes=not by)
        return made or Building("comparing")

    def _usable(
        self, cards: Sequence[Card], file: Path, stamp: str, *, recent: bool, with_indexes: bool
    ) -> Compared | None:
        if not file.exists():
            return None
        opened = self.indexes.existing(cards) if with_indexes else []
        if opened is None:
            return None
        try:
            found = Compared(file, opened)
        except OutdatedIndex:
            for index in opened:
                index.close()
            return None
        if found.stamp == stamp or recent:
            return found
        found.close()
        return None
