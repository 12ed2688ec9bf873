"""The drift of live scores as `evalstone live drift` finds it, found in the background and kept while it is true."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from evalstone.errors import EvalstoneError
from evalstone.ledger.live_state import LiveState, live_state
from evalstone.live.score_drift import LiveDrift, drift
from evalstone.view.indexing.jobs import Building, Jobs
from evalstone.view.shelf import Card, Shelf

MOST_WATCHES = 20
"""The number of watches whose results are kept."""
Looked = tuple[LiveDrift | EvalstoneError, datetime]
"""What a watch found, or why it can't, and when it looked."""


class Watches:
    """What watches of live scores found.

    Args:
        shelf: The ledger and the runs that are baselines.
        jobs: Where they are looked for.
    """

    def __init__(self, shelf: Shelf, jobs: Jobs) -> None:
        self._shelf, self._jobs = shelf, jobs
        self._found: dict[str, tuple[LiveState, Looked]] = {}
        self._lock = threading.Lock()

    def of(self, stream: str, card: Card, since: datetime | None) -> Looked | Building:
        """What the watch of a stream against a run found, or how far it is. What it found a moment ago stays while
        scores are added all the time.

        Raises:
            EvalstoneError: The ledger can't be read.
        """
        name = f"drift {stream} {card.id} {card.stamp} {since}"
        with self._shelf.reading() as ledger:
            state = live_state(ledger, stream)
        with self._lock:
            known = self._found.get(name)
        if known is not None and (known[0] == state or self._jobs.is_recent(name)):
            return known[1]

        def look(_: Building) -> None:
            result: LiveDrift | EvalstoneError
            try:
                result = drift(self._shelf.read(card), stream=stream, since=since, ledger=self._shelf.ledger)
            except EvalstoneError as error:
                result = error
            with self._lock:
                self._found.pop(name, None)
                self._found[name] = state, (result, datetime.now(UTC))
                while len(self._found) > MOST_WATCHES:
                    del self._found[next(iter(self._found))]

        building = self._jobs.done(name, look)
        with self._lock:
            found = self._found.get(name)
        # What was found before is shown while it is looked for again.
        return found[1] if found is not None else building or Building()


def baselines(cards: Sequence[Card], signatures: Mapping[str, object]) -> list[Card]:
    """The complete runs that have a scorer of a stream, which scores can be watched against."""
    return [
        card
        for card in cards
        if card.state == "complete" and card.metadata is not None and not signatures.keys().isdisjoint(card.titles)
    ]
