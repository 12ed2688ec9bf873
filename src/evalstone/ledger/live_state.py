"""Whether the live scores of a stream have changed, and since which hour."""

from __future__ import annotations

from typing import NamedTuple

from evalstone._core.json import storable
from evalstone.ledger.store import Ledger


class LiveState(NamedTuple):
    """What changes whenever the scores of a stream do: rows come at the end, go at the beginning, and are pending until
    they are finished."""

    first: int
    """The position of the first live score of the ledger."""
    last: int
    last_id: str
    """The ID of the row at the last position."""
    pending: int
    seen: int
    """The number of submissions, once for each scorer."""


def live_state(ledger: Ledger, stream: str) -> LiveState:
    """The state of a stream, in a moment."""
    of = {"stream": storable(stream)}
    # With a condition on `submitted`, the index of pending rows is used, which has few.
    pending = "SELECT count(*) FROM live_scores WHERE stream = :stream AND state = 'pending' AND submitted >= 0"
    with ledger.transaction(snapshot=True) as database:
        first = database.scalar("SELECT min(position) FROM live_scores")
        last = database.execute("SELECT position, id FROM live_scores ORDER BY position DESC LIMIT 1").fetchone()
        seen = database.scalar("SELECT sum(seen) FROM live_counts WHERE stream = :stream", of)
        position, id = last or (0, "")
        return LiveState(int(first or 0), position, id, int(database.scalar(pending, of)), int(seen or 0))


def follows(ledger: Ledger, state: LiveState, before: LiveState) -> bool:
    """Whether a state is that of the same rows, and others behind them. It isn't if rows were deleted, or if the ledger
    was replaced by another one."""
    if state.first != before.first or state.last < before.last:
        return False
    with ledger.transaction() as database:
        id = database.scalar("SELECT id FROM live_scores WHERE position = :last", {"last": before.last})
    return (id or "") == before.last_id


def first_new_hour(ledger: Ledger, stream: str, last: int) -> int | None:
    """The first hour of the rows behind a position; None without any."""
    query = "SELECT min(hour) FROM live_scores WHERE position > :last AND stream = :stream"
    with ledger.transaction() as database:
        found = database.scalar(query, {"last": last, "stream": storable(stream)})
    return None if found is None else int(found)
