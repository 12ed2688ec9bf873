"""The durable store of judge answers and records. The synchronous ledger is `evalstone.ledger.store.Ledger`.

Importing this package imports no database driver: that happens when a ledger is opened.
"""

from evalstone.ledger.async_ledger import AsyncLedger as AsyncLedger
from evalstone.ledger.base import Claim as Claim
from evalstone.ledger.base import Key as Key
from evalstone.ledger.base import RunRow as RunRow
from evalstone.ledger.base import StoredAnswer as StoredAnswer
