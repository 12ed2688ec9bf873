"""The limits that processes share by a ledger on a server: `models.shared_limits` with its rows.

Times are those of the server's clock. A time that it tells is placed on this process's monotonic clock as late as it
may be, so nothing starts too early; by how much that may be too late, `Slice.late` allows for.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalstone.ledger.async_ledger import AsyncLedger
from evalstone.models.shared_limits import LATE, SHARE_SECONDS, Grant, Others, Report, Slice, State, slots_for

if TYPE_CHECKING:
    from evalstone.ledger.store import Ledger

_ADD = """
    INSERT INTO shared_limits (name, booked, closed_until, cut, cut_by, seen) VALUES (:name, 0, 0, 0, 0, epoch())
    ON CONFLICT DO NOTHING
"""
_BOOK = """
    UPDATE shared_limits SET seen = epoch(),
        booked = greatest(CASE WHEN booked = :mark THEN booked - :rest ELSE booked END, epoch()) + :seconds
    WHERE name = :name RETURNING booked, CAST(epoch() AS DOUBLE PRECISION)
"""
_GIVE_BACK = "UPDATE shared_limits SET booked = booked - :rest WHERE name = :name AND booked = :mark"
_TELL = """
    UPDATE shared_limits SET seen = epoch(), closed_until = greatest(closed_until, epoch() + :closed_for),
        cut_by = CASE WHEN :cut AND cut <= epoch() - :cut_ago THEN epoch() - :cut_ago ELSE cut_by END,
        cut = CASE WHEN :cut AND cut <= epoch() - :cut_ago THEN epoch() ELSE cut END
    WHERE name = :name
"""
_LOCK = "SELECT name FROM shared_limits WHERE name = :name FOR UPDATE"
_OTHERS = """
    SELECT coalesce(sum(slots), 0), coalesce(max(CASE WHEN waiting THEN 1 ELSE 0 END), 0), count(*),
        coalesce(sum(CASE WHEN member < :member THEN 1 ELSE 0 END), 0)
    FROM limit_shares
    WHERE name = :name AND member <> :member AND expires > epoch() AND (slots > 0 OR waiting)
"""
_SHARE = """
    INSERT INTO limit_shares (name, member, slots, waiting, amount, used, expires)
    VALUES (:name, :member, :slots, :waiting, :amount, :used, epoch() + :seconds)
    ON CONFLICT (name, member) DO UPDATE SET slots = excluded.slots, waiting = excluded.waiting,
        amount = excluded.amount, used = excluded.used, expires = excluded.expires
"""
_STATES = """
    SELECT name, CAST(epoch() AS DOUBLE PRECISION), closed_until, cut, cut_by FROM shared_limits
    WHERE name IN texts(:names)
"""
_AMOUNTS = """
    SELECT coalesce(sum(amount), 0), coalesce(sum(CASE WHEN expires > epoch() THEN used ELSE amount END), 0),
        coalesce(sum(CASE WHEN expires > epoch() AND amount > used THEN 1 ELSE 0 END), 0),
        coalesce(sum(CASE WHEN expires > epoch() THEN 0 ELSE amount - used END), 0)
    FROM limit_shares WHERE name = :name AND member <> :member
"""
_LEAVE = """
    DELETE FROM limit_shares WHERE (name, member) IN (
        SELECT name, member FROM limit_shares
        WHERE amount = 0 AND (member IN texts(:members) OR expires < epoch() - :seconds) FOR UPDATE SKIP LOCKED
    )
"""
_TINY = 1e-9


class LedgerLimits:
    """The rows of shared limits in a ledger on a server: a `Store`."""

    def __init__(self, ledger: AsyncLedger) -> None:
        self._ledger = ledger

    async def book(self, name: str, seconds: float, rest: float, mark: float) -> Slice:
        """As `Store.book`."""
        return await self._ledger.work(_book, self._ledger.store, name, seconds, rest, mark)

    async def exchange(self, reports: Sequence[Report]) -> Sequence[State]:
        """As `Store.exchange`."""
        return await self._ledger.work(_exchange, self._ledger.store, reports)

    async def grant(
        self, name: str, member: str, *, cap: float, used: float, held: float, needed: float, more: float
    ) -> Grant:
        """As `Store.grant`."""
        return await self._ledger.work(
            _grant, self._ledger.store, name, member, cap=cap, used=used, held=held, needed=needed, more=more
        )

    async def give_back(self, name: str, rest: float, mark: float) -> None:
        """As `Store.give_back`."""
        await self._ledger.work(_give_back, self._ledger.store, name, rest, mark)

    async def leave(self, members: Sequence[str]) -> None:
        """As `Store.leave`."""
        await self._ledger.work(_leave, self._ledger.store, members)


def _book(ledger: Ledger, name: str, seconds: float, rest: float, mark: float) -> Slice:
    values = {"name": name, "seconds": seconds, "rest": rest, "mark": mark}
    with ledger.transaction(writing=True) as database:
        asked = time.monotonic()
        row = database.execute(_BOOK, values).fetchone()
        if row is None:
            database.execute(_ADD, {"name": name})
            asked = time.monotonic()
            row = database.execute(_BOOK, values).fetchone()
        told = time.monotonic()
    end, now = row
    start = told + (end - now) - seconds
    late = LATE - min(told - asked, LATE / 2)
    return Slice(start, start + seconds, late=late, mark=end, ahead=start - told)


def _give_back(ledger: Ledger, name: str, rest: float, mark: float) -> None:
    with ledger.transaction(writing=True) as database:
        database.execute(_GIVE_BACK, {"name": name, "rest": rest, "mark": mark})


def _exchange(ledger: Ledger, reports: Sequence[Report]) -> list[State]:
    slots: dict[str, int] = {}
    names = sorted({report.name for report in reports})
    telling = [report for report in reports if report.closed_until or report.cut_by is not None]
    sharing = [report for report in reports if report.ceiling is not None]
    with ledger.transaction(writing=bool(telling or sharing)) as database:
        # All processes lock rows in the same order, so there are no deadlocks.
        for name in sorted({report.name for report in (*telling, *sharing)}):
            database.execute(_ADD, {"name": name})
            database.execute(_LOCK, {"name": name})
        for report in telling:
            now = time.monotonic()
            cut_ago = 0.0 if report.cut_by is None else now - report.cut_by
            values = {"closed_for": max(0.0, report.closed_until - now), "cut_ago": cut_ago}
            database.execute(_TELL, {"name": report.name, "cut": report.cut_by is not None, **values})
        for report in sharing:
            slots[report.member] = _slots(ledger, report)
        rows = {row[0]: row[1:] for row in database.execute(_STATES, {"names": json.dumps(names)})}
        told = time.monotonic()
    states: list[State] = []
    for report in reports:
        now, closed_until, cut, cut_by = rows.get(report.name, (0.0, 0.0, 0.0, 0.0))
        closed = told + closed_until - now if closed_until > now else 0.0
        states.append(State(slots.get(report.member, 0), closed, cut, told + cut_by - now))
    return states


def _slots(ledger: Ledger, report: Report) -> int:
    database, whose = ledger.database, {"name": report.name, "member": report.member}
    taken, waiting, active, before = map(int, database.execute(_OTHERS, whose).fetchone())
    others = Others(taken, bool(waiting), active, before)
    slots = slots_for(report.ceiling or 0, report.held, report.before, report.wanted, others)
    held = max(slots, report.held)
    values = {"slots": held, "waiting": slots < report.wanted, "amount": 0.0, "used": 0.0, "seconds": SHARE_SECONDS}
    database.execute(_SHARE, {**whose, **values})
    return slots


def _grant(
    ledger: Ledger, name: str, member: str, *, cap: float, used: float, held: float, needed: float, more: float
) -> Grant:
    whose = {"name": name, "member": member}
    with ledger.transaction(writing=True) as database:
        database.execute(_ADD, {"name": name})
        database.execute(_LOCK, {"name": name})
        others, certain, active, lost = database.execute(_AMOUNTS, whose).fetchone()
        rest = cap - others
        amount = held
        if needed <= rest + _TINY:
            # No more than half of an equal part, so that the others find something, too.
            amount = needed + max(0.0, min(more, (rest - needed) / (2 * (1 + int(active)))))
        values = {"slots": 0, "waiting": False, "amount": amount, "used": used, "seconds": SHARE_SECONDS}
        database.execute(_SHARE, {**whose, **values})
        database.execute("UPDATE shared_limits SET seen = epoch() WHERE name = :name", whose)
    hopeless = needed - held + used > cap - certain + _TINY
    return Grant(amount, total=others + amount, hopeless=hopeless, lost=lost)


def _leave(ledger: Ledger, members: Sequence[str]) -> None:
    with ledger.transaction(writing=True) as database:
        database.execute(_LEAVE, {"members": json.dumps(members), "seconds": SHARE_SECONDS})
