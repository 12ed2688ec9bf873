"""The comparisons of runs: where they are, and how they are made when a page needs one."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

from evalstone._core.file_format import installed_version
from evalstone._core.json import content_hash
from evalstone.errors import EvalstoneError, StorageError
from evalstone.ledger.base import comparison_file
from evalstone.results.run import Run
from evalstone.results.slices import slice_keys
from evalstone.view.indexing.comparison import StoredComparison
from evalstone.view.indexing.comparison_build import build, compared, compared_before, drifted, sliced, write_head
from evalstone.view.indexing.differences import Differences
from evalstone.view.indexing.index import OutdatedIndex
from evalstone.view.indexing.indexes import Indexes, place_of
from evalstone.view.indexing.jobs import Building
from evalstone.view.shelf import Card

SPARE = 5.0
"""Seconds after which no run is compared that can wait."""
Kind: TypeAlias = Literal["", "drift"]
"""What differs: two runs, or a judge's scores of the same outputs in two runs."""


class Comparisons:
    """The comparisons of the runs on a shelf. They are files beside the indexes."""

    def __init__(self, indexes: Indexes) -> None:
        self.indexes = indexes
        self._differences: dict[str, tuple[str, Differences]] = {}
        """By the name of the file, with the state of both runs: also those that couldn't be written."""

    def open(self, cards: Sequence[Card], *, anyway: bool, by: str = "") -> StoredComparison | Building:
        """The comparison of runs with the first one, or, if it isn't there in time, how far it is.

        Args:
            cards: The runs.
            anyway: Whether mismatches are allowed.
            by: An entry of the metadata by whose values samples are compared as well.

        Raises:
            EvalstoneError: A run can't be read, or the comparison can't be written.
        """
        kind = "x" if anyway else ""
        whole = self._file(cards, kind), _stamp(cards)
        of_slices = (self._file(cards, kind + content_hash(by)[:10]), _stamp(cards, by)) if by else None
        jobs, name = self.indexes.jobs, (of_slices or whole)[0].name
        running = any(card.state == "running" for card in cards)

        def usable(*, recent: bool) -> StoredComparison | None:
            found = self._usable(cards, *whole, recent=recent)
            if found is not None and of_slices is not None and not found.head["refused"]:
                found.slices = _head(*of_slices, recent=recent)
                if found.slices is None:
                    found.close()
                    return None
            return found

        def make(building: Building) -> None:
            if of_slices is not None and (known := self._usable(cards, *whole, recent=False)) is not None:
                with known:
                    building.step("comparing", 1, 2)
                    if not known.head["refused"]:
                        write_head(sliced(known.pairs, by, lambda: known.keys(by) or read_keys()), *of_slices)
                return
            with ExitStack() as stack:
                runs = [self.indexes.shelf.read(card) for card in cards]
                both = zip(cards, runs, strict=True)
                opened = [stack.enter_context(self.indexes.made(card, run, building)) for card, run in both]
                building.step("comparing", 2, 4)
                # A run in progress has more records than when it was compared.
                head = None if running else _head(*whole)
                if head is not None and not head["refused"]:
                    comparison = compared_before(runs, head)
                else:
                    comparison = compared(runs, anyway=anyway)
                build(comparison, runs, opened, *whole)
                if of_slices is not None and not comparison.head["refused"]:
                    write_head(sliced(comparison.pairs, by, lambda: slice_keys(runs[0], by)), *of_slices)

        def read_keys() -> Mapping[str, str]:
            return slice_keys(self.indexes.shelf.read(cards[0]), by)

        if (found := usable(recent=running and jobs.is_recent(name))) is not None:
            return found
        building = jobs.done(name, make)
        return building or usable(recent=True) or Building("comparing")

    def differences(self, first: Card, cards: Sequence[Card], of: Kind = "") -> dict[str, Differences]:
        """How runs differ from the first one, by their IDs, as far as that is known."""
        found: dict[str, Differences] = {}
        for card in cards:
            file, stamp = self._file([first, card], of), _stamp([first, card])
            known = self._differences.get(file.name)
            if (known is None or known[0] != stamp) and file.is_file():
                with suppress(OutdatedIndex), StoredComparison(file) as stored:
                    known = self._differences[file.name] = stored.stamp, Differences.in_head(stored.head)
            if known is not None and known[0] == stamp:
                found[card.id] = known[1]
        return found

    def compute(
        self, first: Card, cards: Sequence[Card], of: Kind = "", *, others: Sequence[Card] = ()
    ) -> Building | None:
        """Find out how runs differ from the first one, in the background if it takes long: how far it is then, or None.
        What can't be compared or read says so in its differences.

        Args:
            first: The first run.
            cards: The runs that are needed.
            of: What differs.
            others: Runs that can wait: as many of them as there is time for, so that nothing else waits long.
        """

        def work(building: Building) -> None:
            run: Run | None = None
            end = time.monotonic() + SPARE
            for number, card in enumerate([*cards, *others]):
                if number >= len(cards) and time.monotonic() > end:
                    break
                building.step("comparing", number, len(cards) + len(others))
                file, stamp = self._file([first, card], of), _stamp([first, card])
                try:
                    run = self.indexes.shelf.read(first) if run is None else run
                    other = self.indexes.shelf.read(card)
                    head = drifted(run, other) if of == "drift" else compared([run, other], anyway=False).head
                except EvalstoneError as error:  # a run is damaged, or gone meanwhile
                    self._differences[file.name] = stamp, Differences(refused=str(error))
                    continue
                self._differences[file.name] = stamp, Differences.in_head(head)
                with suppress(StorageError):  # such as on a full disk
                    write_head(head, file, stamp)

        return self.indexes.jobs.done(f"{of or 'differences'} from {place_of(first)}", work)

    def _file(self, cards: Sequence[Card], kind: str) -> Path:
        return comparison_file(self.indexes.folder, [*map(place_of, cards)], kind)

    def _usable(self, cards: Sequence[Card], file: Path, stamp: str, *, recent: bool) -> StoredComparison | None:
        """A stored comparison of the runs as they are, or, if `recent`, as they were a moment ago, with its samples."""
        if not file.exists():
            return None
        with ExitStack() as stack:
            try:
                found = stack.enter_context(StoredComparison(file))
            except OutdatedIndex:
                return None
            if found.stamp != stamp and not recent:
                return None
            if not found.head["refused"]:
                opened = self.indexes.existing(cards)
                if opened is None or not found.take(opened):
                    return None
            stack.pop_all()
            return found


def _head(file: Path, stamp: str, *, recent: bool = False) -> Mapping[str, Any] | None:
    """The head of a stored comparison of runs as they are, or, if `recent`, as they were a moment ago."""
    if file.is_file():
        with suppress(OutdatedIndex), StoredComparison(file) as stored:
            if stored.stamp == stamp or recent:
                return stored.head
    return None


def _stamp(cards: Sequence[Card], by: str = "") -> str:
    # Another version may compute another result.
    return json.dumps([installed_version(), by, *((card.id, card.stamp) for card in cards)])
