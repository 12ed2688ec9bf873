"""The durable store of answers and records. The synchronous ledger is `evalstone.ledger.store.Ledger`."""

from evalstone.ledger.async_ledger import AsyncLedger
from evalstone.ledger.rows import RunRow, StoredAnswer

__all__ = ["AsyncLedger", "RunRow", "StoredAnswer"]
