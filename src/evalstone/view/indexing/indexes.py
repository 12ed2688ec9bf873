"""The indexes of runs: where they are, and how they are made when a page needs one."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
import weakref
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from evalstone._core.files import make_folder
from evalstone.ledger.base import INDEXES, file_of, index_file
from evalstone.view.indexing.build import build, head_of
from evalstone.view.indexing.index import Index, OutdatedIndex
from evalstone.view.shelf import Card, Shelf

PATIENCE = 1.0
"""Seconds that a request waits for an index."""
ABANDONED = 600.0
"""Seconds without a change after which an index that is being made is that of a process that has ended."""
REBUILD = 10.0
"""How many times as long as it took to make an index of a run in progress it is used before it is made again."""


@dataclass
class Building:
    """An index that is being made."""

    phase: str = "reading the results"
    done: int = 0
    total: int = 0
    future: Future[None] = field(default_factory=Future[None])

    def progress(self, done: int, total: int) -> None:
        """Called while the index is made."""
        self.phase, self.done, self.total = "indexing", done, total

    @property
    def percent(self) -> int | None:
        """How much of it is done; None while that isn't known."""
        return 100 * self.done // self.total if self.total else None


class Indexes:
    """The indexes of the runs on a shelf. They are files in a folder beside the ledger, or in a temporary one."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.folder = self._folder()
        self._building: dict[str, Building] = {}
        self._took: dict[str, tuple[float, float]] = {}
        """By run, when its index was made, and how long that took."""
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        """Held while an index is made: one at a time."""

    def open(self, card: Card) -> Index | Building:
        """The index of a run, or, if it isn't there in time, how far it is.

        Raises:
            EvalstoneError: The run can't be read, or the index can't be written.
        """
        file = index_file(self.folder, f"{card.folder}\n{card.id}" if card.folder else card.id)
        if (index := self._usable(card, file)) is not None:
            return index
        with self._lock:
            building = self._building.get(card.id)
            if building is None:
                building = self._building[card.id] = Building()
                # A daemon, so that Ctrl-C ends it too.
                threading.Thread(target=self._build, args=(card, file, building), daemon=True).start()
        if not wait([building.future], PATIENCE).done:
            return building
        # What went wrong is kept until somebody is told, or an index that can't be made would be begun again and again.
        self._forget(card, building)
        building.future.result()
        return Index(file)

    def _forget(self, card: Card, building: Building) -> None:
        with self._lock:
            if self._building.get(card.id) is building:
                del self._building[card.id]

    def _usable(self, card: Card, file: Path) -> Index | None:
        """The index, if it is that of the run as it is, or as it was a moment ago."""
        if not file.exists():
            return None
        try:
            index = Index(file)
        except OutdatedIndex:
            return None
        made, took = self._took.get(card.id, (0.0, 0.0))
        fresh = card.state == "running" and time.monotonic() - made < REBUILD * took
        if index.stamp == card.stamp or fresh:
            return index
        index.close()
        return None

    def _build(self, card: Card, file: Path, building: Building) -> None:
        """Make an index. What goes wrong is for who waits for it."""
        try:
            with self._turn:
                began = time.monotonic()
                run = self.shelf.read(card)
                build(run, file, card.stamp, head_of(run), building.progress)
                now = time.monotonic()
                self._took[card.id] = now, now - began
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            building.future.set_exception(error)
        else:
            building.future.set_result(None)
            self._forget(card, building)

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
