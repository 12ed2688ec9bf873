"""How often Python looks for garbage while a run is going on, and what happens to memory that is free."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

YOUNG_OBJECTS = 10_000
"""The number of new objects after which Python looks for garbage, instead of 700 (or 2,000, from Python 3.13 on)."""
OBJECTS_OF_A_CALL = 250
"""As many more for each call that may be in flight. Its objects, about 220, stay until the answer comes. Python would
walk through those of all calls again and again, although a call leaves no garbage behind."""

MANY = 1_000_000
"""The number of records from which on freed memory is given back."""

_lock = threading.Lock()
_runs = 0
_before = _ours = 0
"""The threshold before the first run, and that of the runs; 0 if they haven't set it."""


@contextmanager
def rare_collections(calls: int = 0) -> Generator[None]:
    """Inside this context, Python looks for garbage less often, in the whole process.

    A threshold that is higher or is set meanwhile stays, and so does 0, which turns the search off. Several runs may go
    on at the same time; the last one restores the threshold.

    calls: the maximum number of calls in flight.
    """
    global _runs, _before, _ours
    threshold = YOUNG_OBJECTS + OBJECTS_OF_A_CALL * calls
    with _lock:
        _runs += 1
        young, *older = gc.get_threshold()
        if 0 < young < threshold:
            if young != _ours:
                _before = young
            _ours = threshold
            gc.set_threshold(threshold, *older)
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if not _runs:
                young, *older = gc.get_threshold()
                if _ours and young == _ours:
                    gc.set_threshold(_before, *older)
                _ours = 0


def give_back(records: int) -> None:
    """After work on many records, give freed memory back to the system, where its C library can be told to: it keeps
    what was freed below what is still used, which is up to a fifth of what the records take.

    records: Their number. Nothing is done for few.
    """
    if records < MANY:
        return
    import ctypes  # noqa: PLC0415 - only for large runs

    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # another C library than that of GNU
        return
