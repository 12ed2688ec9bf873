"""The cost of a run. Every call to a judge or target counts, even if it ends up in no record."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from evalstone.ledger.base import Key, StoredAnswer
from evalstone.run.budget import Budget
from evalstone.types import Paid, Record, total_cost


class Spending:
    """The US dollars that a run has paid, in this invocation and before it was interrupted.

    Args:
        budget: The budget of the run. Restored cost is deducted from it.
    """

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = budget
        self.this_call: float | None = 0.0
        self.before: float | None = 0.0
        self._since = math.inf
        self._recorded: set[Key] = set()

    def pay(self, cost: float | None) -> None:
        """Count the cost of a call; None if its price is unknown."""
        self.this_call = total_cost((self.this_call, cost))

    def resume(self, started: float, paid: Paid | None) -> None:
        """Restore the cost of an interrupted run.

        This is the stored total of the last invocation that was not killed, plus the cost of the records and answers
        stored since.

        Args:
            started: When the run began, in seconds since 1970.
            paid: The stored total, if there is one.
        """
        self._since = started
        # Without a total, or if a price is unknown, only records and answers count.
        if paid is not None and paid.total is not None and paid.records is not None:
            self._since = datetime.fromisoformat(paid.until).timestamp()
            self._count(paid.total - paid.records)

    def restore_record(self, record: Record) -> None:
        """Count the cost of a record that was written before the run was interrupted."""
        self._count(record.cost)
        calls = (leaf for call in record.steps for leaf in call.leaves())
        # A failed call has no answer in the ledger. A later answer with the same key has its own cost.
        paid = (call for call in calls if not call.cached and call.answer is not None)
        self._recorded.update(Key(call.fingerprint, call.judge, call.repeat_index) for call in paid)

    def has_counted(self, written: float) -> bool:
        """Whether the stored total includes an answer that was written at this time."""
        return math.isfinite(self._since) and written < self._since

    def restore_answer(self, answer: StoredAnswer) -> None:
        """Count the cost of a stored answer that this run paid for before it was killed, unless a record includes it.

        An answer that another run stored in the meantime is counted, too.
        """
        if answer.written >= self._since and answer.key not in self._recorded:
            self._recorded.add(answer.key)
            self._count(answer.cost)

    def _count(self, cost: float | None) -> None:
        self.before = total_cost((self.before, cost))
        if self._budget is not None:
            self._budget.settle(0.0, cost)

    def paid(self, records: float | None) -> Paid:
        """The total so far. records: the part of it that is in records, in US dollars."""
        total = None if records is None else total_cost((self.before, self.this_call))
        return Paid(
            total=total,
            this_call=None if records is None else self.this_call,
            records=records,
            until=datetime.now(UTC).isoformat(),
        )
