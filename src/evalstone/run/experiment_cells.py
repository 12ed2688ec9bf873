"""Which cell of an experiment a run is: known to whoever starts it, and stored with it."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from contextvars import ContextVar

from evalstone.types import StoredCell

_CELL: ContextVar[StoredCell | None] = ContextVar("cell", default=None)


@contextlib.contextmanager
def in_experiment(cell: StoredCell) -> Generator[None]:
    """Runs that are started in this block are stored as this cell."""
    token = _CELL.set(cell)
    try:
        yield
    finally:
        _CELL.reset(token)


def current_cell() -> StoredCell | None:
    """The cell that a run that is started now is; None outside of experiments."""
    return _CELL.get()
