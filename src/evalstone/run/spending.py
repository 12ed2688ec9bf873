"""What a run pays: every call to a judge or target counts, whether or not it ends up in a record."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from evalstone.ledger.base import Key, StoredAnswer
from evalstone.run.budget import Budget
from evalstone.types import Paid, Record, total_cost


class Spending:
    """US dollars that one run has paid, in this call of it and before it was interrupted.

    Args:
        budget: What the run may cost; everything that counts here counts against it.
    """

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = budget
        self.this_call: float | None = 0.0
        self.before: float | None = 0.0
        self._since = math.inf
        self._recorded: set[Key] = set()

    def pay(self, cost: float | None) -> None:
        """Count a call; None if its price is unknown."""
        self.this_call = total_cost((self.this_call, cost))

    def resume(self, started: float, paid: Paid | None) -> None:
        """Continue a run that was interrupted.

        What it has paid by then is the sum of the last call that ended by itself, if there is one, and of the records
        and answers that were written since.

        Args:
            started: When it began, in seconds since 1970.
            paid: The sum of the last call that ended by itself.
        """
        self._since = started
        # Without a sum, or where a price is unknown, records and answers say as much as is known.
        if paid is not None and paid.total is not None and paid.records is not None:
            self._since = datetime.fromisoformat(paid.until).timestamp()
            self._count(paid.total - paid.records)

    def restore_record(self, record: Record) -> None:
        """Count the cost of a record that was written before the run was interrupted."""
        self._count(record.cost)
        calls = (leaf for call in record.steps for leaf in call.leaves())
        # One that failed has no answer in the ledger; a later one of this key was paid for by itself.
        paid = (call for call in calls if not call.cached and call.answer is not None)
        self._recorded.update(Key(call.fingerprint, call.judge, call.repeat_index) for call in paid)

    def has_counted(self, written: float) -> bool:
        """Whether the sum of the last call that ended by itself has what an answer cost that was written then."""
        return math.isfinite(self._since) and written < self._since

    def restore_answer(self, answer: StoredAnswer) -> None:
        """Count the cost of a stored answer that this run paid for before it was killed, and that is in none of its
        records.

        At worst this counts an answer that another run paid for in the meantime.
        """
        if answer.written >= self._since and answer.key not in self._recorded:
            self._recorded.add(answer.key)
            self._count(answer.cost)

    def _count(self, cost: float | None) -> None:
        self.before = total_cost((self.before, cost))
        if self._budget is not None:
            self._budget.settle(0.0, cost)

    def paid(self, records: float | None) -> Paid:
        """The sum so far. records: US dollars of it that are in records."""
        total = None if records is None else total_cost((self.before, self.this_call))
        return Paid(
            total=total,
            this_call=None if records is None else self.this_call,
            records=records,
            until=datetime.now(UTC).isoformat(),
        )
