"""A stream of live scores in the hours of a query, with its filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evalstone._core.display import shortlist
from evalstone.ledger.live import streams
from evalstone.ledger.live_ranking import Ranking
from evalstone.ledger.store import Ledger
from evalstone.live.accounting import Coverage
from evalstone.results.summary import ScorerInfo, scorer_titles
from evalstone.view.addresses import live_address, with_query
from evalstone.view.indexing.tables import choice
from evalstone.view.live_figures import Figures, Readings, scorers_of
from evalstone.view.live_query import LiveQuery
from evalstone.view.responses import NotThere
from evalstone.view.shelf import Card


@dataclass(frozen=True)
class Stream:
    """What is known of a stream."""

    name: str
    query: LiveQuery
    infos: Mapping[str, ScorerInfo]
    """Its scorers by signature."""
    coverage: Coverage
    every: Figures
    """Without the filters for a scorer, a source and an entity."""
    figures: Figures
    signatures: frozenset[str] | None
    """Those of the scorer that is chosen; None for all."""
    entities: frozenset[str] | None
    """Those with the name that is chosen; None for all."""

    @classmethod
    def of(cls, ledger: Ledger, known: Readings, cards: Sequence[Card], name: str, query: LiveQuery) -> Stream:
        """What a ledger has of a stream.

        cards: runs, which may say more of its scorers.

        Raises:
            NotThere: There is no such stream.
        """
        whole = known.of(ledger, name)
        if not whole.counted and not whole.tallies:
            has = f"It has {shortlist(there)}." if (there := streams(ledger)) else "Nothing was scored live yet."
            raise NotThere(f"There is no stream {name} in {ledger.location}. {has}")
        times = (None if time is None else time.timestamp() for time in (query.start, query.end))
        reading = known.of(ledger, name, *times)
        # A scorer has the same title in every period, and a score its page, whatever period its list had.
        infos = scorers_of(whole.scales, cards)
        every = figures = reading.figures
        signatures = entities = None
        if query.scorer:
            titles = scorer_titles([*infos.values()])
            signatures = frozenset(each for each, title in titles.items() if choice(title) == choice(query.scorer))
        if query.entity:
            entities = frozenset(each for each in every.entities if choice(each) == choice(query.entity))
        if query.scorer or query.source or query.entity:
            figures = Figures.of(reading.tallies, signatures=signatures, source=query.source, entities=entities)
        return cls(name, query, infos, reading.coverage, every, figures, signatures, entities)

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """The titles of its scorers by signature."""
        return scorer_titles([*self.infos.values()])

    def address(self, suffix: str = "", **changes: Any) -> str:
        """The address of the page with other values in its query, from the beginning of the list."""
        return with_query(f"{live_address(self.name)}{suffix}", self.query.pairs(**{"after": "", **changes}))

    def ranking(self) -> Ranking:
        """The list of scores that the query asks for."""
        query = self.query
        return Ranking(
            stream=self.name,
            state=None if query.show in ("worst", "latest") else query.show,
            signatures=self.signatures,
            source=query.source or None,
            entities=self.entities,
            since=None if query.start is None else query.start.timestamp(),
            until=None if query.end is None else query.end.timestamp(),
            worst_first=query.show == "worst",
            lower_is_better=[signature for signature, info in self.infos.items() if info.lower_is_better],
        )
