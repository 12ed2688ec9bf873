"""The durable store of answers and records."""

from evalstone.ledger.async_ledger import AsyncLedger
from evalstone.ledger.store import Ledger, RunRow, StoredAnswer

__all__ = ["AsyncLedger", "Ledger", "RunRow", "StoredAnswer"]
