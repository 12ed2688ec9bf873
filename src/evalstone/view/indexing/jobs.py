"""What a page needs and takes long to make: it is made in a thread, once, while pages say how far it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

PATIENCE = 1.0
"""Seconds that a request waits."""
REBUILD = 10.0
"""How many times as long as the processor time that it took to make something of a run in progress it is used before it
is made again."""


@dataclass
class Building:
    """Something that is being made."""

    phase: str = "reading the results"
    done: int = 0
    total: int = 0
    future: Future[None] = field(default_factory=Future[None])

    def progress(self, done: int, total: int) -> None:
        """Called while the index of a run is made."""
        self.step("indexing", done, total)

    def step(self, phase: str, done: int, total: int) -> None:
        """Say how far it is."""
        self.phase, self.done, self.total = phase, done, total

    @property
    def percent(self) -> int | None:
        """How much of it is done; None while that isn't known."""
        return 100 * self.done // self.total if self.total else None


class Jobs:
    """What is being made, by name."""

    def __init__(self) -> None:
        self._building: dict[str, Building] = {}
        self._took: dict[str, tuple[float, float]] = {}
        """When each was made, and how much processor time that took."""
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        """Held while something is made: one at a time."""

    def done(self, name: str, make: Callable[[Building], None]) -> Building | None:
        """Make something, if it isn't being made. None if it is there in time, otherwise how far it is.

        Raises:
            EvalstoneError: It can't be made.
        """
        with self._lock:
            building = self._building.get(name)
            if building is None:
                building = self._building[name] = Building()
                # A daemon, so that Ctrl-C ends it too.
                threading.Thread(target=self._make, args=(name, make, building), daemon=True).start()
        return self._waited(name, building)

    def under_way(self, name: str) -> Building | None:
        """How far something is that is being made; None if nothing is.

        Raises:
            EvalstoneError: It can't be made.
        """
        with self._lock:
            building = self._building.get(name)
        return None if building is None else self._waited(name, building)

    def _waited(self, name: str, building: Building) -> Building | None:
        if not wait([building.future], PATIENCE).done:
            return building
        # What went wrong is kept until somebody is told, or what can't be made would be begun again and again.
        self._forget(name, building)
        building.future.result()
        return None

    def is_recent(self, name: str, times: float | None = None) -> bool:
        """Whether something was made so recently that it isn't made again for what is new.

        times: how many times as long as it took to make it; by default `REBUILD`.
        """
        made, took = self._took.get(name, (0.0, 0.0))
        return time.monotonic() - made < (REBUILD if times is None else times) * took

    def _forget(self, name: str, building: Building) -> None:
        with self._lock:
            if self._building.get(name) is building:
                del self._building[name]

    def _make(self, name: str, make: Callable[[Building], None], building: Building) -> None:
        """Make something. What goes wrong is for who waits for it."""
        try:
            with self._turn:
                # Not by the clock, by which everything takes long on a busy machine.
                began = time.thread_time()
                make(building)
                self._took[name] = time.monotonic(), time.thread_time() - began
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            building.future.set_exception(error)
        else:
            building.future.set_result(None)
            self._forget(name, building)
