"""The cost of a run. Every call to a judge or target counts, even if it ends up in no record."""

from __future__ import annotations

from evalstone.ledger import AsyncLedger, RunRow, StoredAnswer
from evalstone.run.budget import Budget
from evalstone.types import Paid, total_cost


class Spending:
    """The US dollars that a run has paid, in this invocation and before it was interrupted.

    The sum is a column of the run in the ledger. It grows in the transaction that stores the answer that was paid for,
    or in one of its own if a call gave no answer.

    Args:
        budget: The budget of the run. What the run paid before it was interrupted is deducted from it.
        ledger: Where the sum is stored.
    """

    def __init__(self, budget: Budget | None = None, ledger: AsyncLedger | None = None) -> None:
        self._budget, self._ledger = budget, ledger
        self.run = ""
        """The ID of the run; "" for calls that belong to none."""
        self.this_call: float | None = 0.0
        self.before: float | None = 0.0

    def pay(self, cost: float | None, reserved: float = 0.0) -> None:
        """Count the cost of a call; None if its price is unknown. reserved: what the budget counts in that case."""
        self.this_call = total_cost((self.this_call, cost))
        if self._ledger is not None and self.run:
            self._ledger.pay(self.run, cost, reserved)

    def resume(self, row: RunRow) -> None:
        """Restore the cost of an interrupted run."""
        self.run, self.before = row.id, row.paid
        if self._budget is not None:
            self._budget.settle(0.0, row.cost + row.reserved)

    def has_paid_for(self, stored: StoredAnswer) -> bool:
        """Whether this run paid for an answer in the ledger, before it was interrupted or in this invocation."""
        return bool(self.run) and stored.run == self.run

    def paid(self, records: float | None) -> Paid:
        """The total so far. records: the part of it that is in records, in US dollars."""
        total = None if records is None else total_cost((self.before, self.this_call))
        return Paid(total=total, this_call=None if records is None else self.this_call, records=records)
