"""How often Python looks for garbage while a run is going on."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

YOUNG_OBJECTS = 10_000
"""The number of new objects after which Python looks for garbage, instead of 700 (or 2,000, from Python 3.13 on). Those
are the objects of a few calls: with thousands in flight, it walks through all of theirs again and again."""


_lock = threading.Lock()
_runs = 0
_before = 0


@contextmanager
def rare_collections() -> Generator[None]:
    """Inside this context, Python looks for garbage less often, in the whole process.

    A threshold that is higher or is set meanwhile stays, and so does 0, which turns the search off. Several runs may go
    on at the same time; the last one restores the threshold.
    """
    global _runs, _before
    with _lock:
        _runs += 1
        young, *older = gc.get_threshold()
        if 0 < young < YOUNG_OBJECTS:
            _before = young
            gc.set_threshold(YOUNG_OBJECTS, *older)
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            young, *older = gc.get_threshold()
            if not _runs and _before and young == YOUNG_OBJECTS:
                gc.set_threshold(_before, *older)
                _before = 0
