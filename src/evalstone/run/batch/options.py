"""What a run is told about its provider's batch API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

WAITING = "waiting for "
"""How the reason begins for which a run ended that has to wait for batches; a budget's may stand before it."""


@dataclass(frozen=True)
class Batch:
    """How a run uses its provider's batch API.

    wait: stay until the batches are done, and go on; else the run ends when everything is submitted, and the same call
    later goes on. on_state: called, while waiting, with what the batches have come to, whenever that changes.
    """

    wait: bool = False
    on_state: Callable[[str], None] | None = None
