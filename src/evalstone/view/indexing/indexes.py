"""The indexes of runs: where they are, and how they are made when a page needs one."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from evalstone._core.files import make_folder
from evalstone.ledger.base import INDEXES, file_of, index_file
from evalstone.view.indexing.build import build, head_of
from evalstone.view.indexing.index import Index, OutdatedIndex
from evalstone.view.indexing.jobs import Building, Jobs
from evalstone.view.shelf import Card, Shelf

ABANDONED = 600.0
"""Seconds without a change after which an index that is being made is that of a process that has ended."""


class Indexes:
    """The indexes of the runs on a shelf. They are files in a folder beside the ledger, or in a temporary one."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.folder = self._folder()
        self.jobs = Jobs()

    def open(self, card: Card) -> Index | Building:
        """The index of a run, or, if it isn't there in time, how far it is.

        Raises:
            EvalstoneError: The run can't be read, or the index can't be written.
        """
        if (index := self._usable(card)) is not None:
            return index
        building = self.jobs.done(card.id, lambda building: self._build(card, building))
        return Index(self._file(card)) if building is None else building

    def made(self, card: Card, building: Building) -> Index:
        """The index of a run, in the thread of a job that needs it. Errors as for `open`."""
        if (index := self._usable(card)) is None:
            self._build(card, building)
            index = Index(self._file(card))
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
            index = Index(file)
        except OutdatedIndex:
            return None
        if index.stamp == card.stamp or (card.state == "running" and self.jobs.is_recent(card.id)):
            return index
        index.close()
        return None

    def _build(self, card: Card, building: Building) -> None:
        run = self.shelf.read(card)
        build(run, self._file(card), card.stamp, head_of(run), building.progress)

    def _folder(self) -> Path:
        """Where the folder of indexes is, which can be written: beside the ledger, or in a temporary folder."""
        file = None if self.shelf.ledger is None else file_of(self.shelf.ledger)
        if file is not None and os.access(file.parent, os.W_OK):
            with suppress(OSError):
                make_folder(folder := file.parent / INDEXES)
                for draft in folder.glob("*.draft"):
                    if time.time() - draft.stat().st_mtime > ABANDONED:
                        draft.unlink()
                return file.parent
        folder = Path(tempfile.mkdtemp(prefix="evalstone-view-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        make_folder(folder / INDEXES)
        return folder


def place_of(card: Card) -> str:
    """What names the files that are made of a run: a run that is in several places has one for each."""
    return f"{card.folder}\n{card.id}" if card.folder else card.id
