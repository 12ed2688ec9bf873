"""The indexes of runs: where they are, and how they are made when a page needs one."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from evalstone._core.files import make_folder
from evalstone.ledger.base import INDEXES, file_of, index_file
from evalstone.results.run import Run
from evalstone.view.indexing.build import build, head_of
from evalstone.view.indexing.growing import Growing
from evalstone.view.indexing.index import Index, OutdatedIndex
from evalstone.view.indexing.jobs import Building, Jobs
from evalstone.view.indexing.opening import open_index
from evalstone.view.shelf import Card, Shelf

PAUSE = 3.0
"""How many times as long as the processor time that it took to add what is new of a run in progress nothing is added
after that."""
MOST_GROWING = 2
"""The number of runs in progress whose indexes are kept."""
GROWING = ".growing"
ABANDONED = 600.0
"""Seconds without a change after which an index that is being made is that of a process that has ended."""


class Indexes:
    """The indexes of the runs on a shelf. They are files in a folder beside the ledger, or in a temporary one."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.folder = self._folder()
        self.jobs = Jobs()
        self._growing: dict[str, Growing] = {}
        """The indexes of runs in progress, those that were asked for last at the end."""
        weakref.finalize(self, _close, self._growing)

    def open(self, card: Card) -> Index | Building:
        """The index of a run, or, if it isn't there in time, how far it is.

        Raises:
            EvalstoneError: The run can't be read, or the index can't be written.
        """
        if card.state == "running" and not card.folder:
            return self._of_running(card)
        if (ended := self._growing.pop(card.id, None)) is not None:
            ended.close()
        if (index := self._usable(card)) is not None:
            return index
        building = self.jobs.done(card.id, lambda building: self._build(card, self.shelf.read(card), building))
        return open_index(self._file(card)) if building is None else building

    def _of_running(self, card: Card) -> Index | Building:
        """The index of a run in progress, as it is or as it was a moment ago."""
        name, known, building = f"{card.id} growing", self._growing.get(card.id), None
        if known is None or (known.stamp != card.stamp and not self.jobs.is_recent(name, PAUSE)):
            building = self.jobs.done(name, lambda building: self._grow(card, building))
            known = self._growing.get(card.id)
        if known is not None and known.stamp:
            with suppress(OutdatedIndex):
                return open_index(known.file)
            self._growing.pop(card.id, None)  # another request may have been here
        return building or Building()

    def _grow(self, card: Card, building: Building) -> None:
        """Add what is new to the index of a run in progress."""
        growing = self._growing.pop(card.id, None)
        try:
            if growing is not None:
                with suppress(OutdatedIndex):
                    growing.update(card, building.progress)
                    self._growing[card.id] = growing
                    return
                growing.close()
            file = self._file(card)
            growing = Growing(file.with_name(f"{file.name}.{secrets.token_hex(8)}{GROWING}"), self.shelf, card)
            growing.update(card, building.progress)
            self._growing[card.id] = growing
        except BaseException:
            if growing is not None:
                growing.close()
            raise
        while len(self._growing) > MOST_GROWING:
            self._growing.pop(next(iter(self._growing))).close()

    def made(self, card: Card, run: Run, building: Building) -> Index:
        """The index of a run that was read, in the thread of a job that needs it. Errors as for `open`."""
        if (index := self._usable(card)) is None:
            self._build(card, run, building)
            index = open_index(self._file(card))
        return index

    def existing(self, cards: Sequence[Card]) -> list[Index] | None:
        """The indexes of runs; None if any of them has to be made."""
        opened: list[Index] = []
        for card in cards:
            if (index := self._usable(card)) is None:
                for other in opened:
                    other.close()
                return None
            opened.append(index)
        return opened

    def _file(self, card: Card) -> Path:
        return index_file(self.folder, place_of(card))

    def _usable(self, card: Card) -> Index | None:
        """The index, if it is that of the run as it is, or as it was a moment ago."""
        file = self._file(card)
        if not file.exists():
            return None
        try:
            index = open_index(file)
        except OutdatedIndex:
            return None
        if index.stamp == card.stamp or (card.state == "running" and self.jobs.is_recent(card.id)):
            return index
        index.close()
        return None

    def _build(self, card: Card, run: Run, building: Building) -> None:
        build(run, self._file(card), card.stamp, head_of(run), building.progress)

    def _folder(self) -> Path:
        """Where the folder of indexes is, which can be written: beside the ledger, or in a temporary folder."""
        file = None if self.shelf.ledger is None else file_of(self.shelf.ledger)
        if file is not None and os.access(file.parent, os.W_OK):
            with suppress(OSError):
                make_folder(folder := file.parent / INDEXES)
                for draft in (*folder.glob("*.draft"), *folder.glob(f"*{GROWING}*")):
                    if time.time() - draft.stat().st_mtime > ABANDONED:
                        draft.unlink()
                return file.parent
        folder = Path(tempfile.mkdtemp(prefix="evalstone-view-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        make_folder(folder / INDEXES)
        return folder


def _close(growing: dict[str, Growing]) -> None:
    for each in growing.values():
        each.close()


def place_of(card: Card) -> str:
    """What names the files that are made of a run: a run that is in several places has one for each."""
    return f"{card.folder}\n{card.id}" if card.folder else card.id
