"""Limits that a run shares with other processes on the same ledger."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext

from evalstone.ledger import AsyncLedger
from evalstone.ledger.shared_limits import LedgerLimits
from evalstone.models.shared_limits import LimitSharing


def shared_limits(ledger: AsyncLedger | None, scope: str = "") -> AbstractAsyncContextManager[LimitSharing | None]:
    """The limits that processes share by this ledger, if it is on a server; None otherwise.

    scope: as for `LimitSharing`.
    """
    if ledger is None or ledger.store.database.single_writer:
        return nullcontext()
    return LimitSharing(LedgerLimits(ledger), ledger.store.leases.owner, scope)
