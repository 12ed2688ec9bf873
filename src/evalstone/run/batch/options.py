"""How a run uses its provider's batch API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

WAITING = "waiting for "
"""How the stop reason begins of a run that has to wait for batches; a spent budget may stand before it."""


@dataclass(frozen=True)
class BatchOptions:
    """How a run uses its provider's batch API."""

    wait: bool = False
    """Wait until the batches are done, and continue. Otherwise the run ends when everything is submitted, and the same
    call continues it later."""
    on_state: Callable[[str], None] | None = None
    """Called while waiting with the state of the batches, whenever it changes."""
