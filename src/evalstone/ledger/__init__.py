"""The durable store of judge answers and records. The synchronous ledger is `evalstone.ledger.store.Ledger`.

Importing this package imports no database driver: that happens when a ledger is opened.
"""

from evalstone.ledger.async_ledger import AsyncLedger
from evalstone.ledger.base import Claim, Key, RunRow, StoredAnswer

__all__ = ["AsyncLedger", "Claim", "Key", "RunRow", "StoredAnswer"]
