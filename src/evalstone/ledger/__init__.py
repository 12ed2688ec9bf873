"""The durable store of answers and records. The synchronous ledger is `evalstone.ledger.store.Ledger`."""

from evalstone.ledger.async_ledger import AsyncLedger
from evalstone.ledger.rows import Claim, DatasetRow, Key, RunRow, StoredAnswer

__all__ = ["AsyncLedger", "Claim", "DatasetRow", "Key", "RunRow", "StoredAnswer"]
