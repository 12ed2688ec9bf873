"""Which runs the first page lists: filters, order and columns, as they are in its address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args

from evalstone.errors import ConfigError, unknown
from evalstone.view.indexing.tables import choice
from evalstone.view.query import SCORE, Query
from evalstone.view.shelf import OF_RUNS, Card, Listing, State

ORDERS: Mapping[str, str] = {
    "started": "time",
    "name": "name",
    "failed": "failures",
    "cost": "cost",
    "seconds": "duration",
}
"""What runs are ordered by, besides the means of scorers, which are `score:TITLE`; after a minus sign from high to low,
or, of means, the worst first."""
USUAL = "-started"


@dataclass(frozen=True, kw_only=True)
class RunsQuery(Query):
    """Filters, order and place of a list of runs.

    Raises:
        ConfigError: A value makes no sense.
    """

    q: str = ""
    """Words that are in the names of a run, its dataset, target, judge, scorers and tags."""
    dataset: str = ""
    tag: str = ""
    judge: str = ""
    target: str = ""
    scorer: str = ""
    """The title of a scorer that runs have."""
    state: str = ""
    sort: str = USUAL
    column: tuple[str, ...] = ()
    """The titles of the scorers that are shown; without any, the first ones."""
    before: str = ""
    """The ID of the run after which the list goes on."""

    def __post_init__(self) -> None:
        if self.state and self.state not in get_args(State):
            raise ConfigError(unknown("state", self.state, get_args(State)))
        if self.order not in ORDERS and not self.order.startswith(SCORE):
            raise ConfigError(unknown("order", self.order, [*ORDERS, f"{SCORE}TITLE"]))

    @property
    def order(self) -> str:
        """What the runs are ordered by."""
        return self.sort.removeprefix("-")

    @property
    def descending(self) -> bool:
        """Whether the order is from high to low, or the worst means first."""
        return self.sort.startswith("-")

    @property
    def is_filtered(self) -> bool:
        """Whether any run may be left out."""
        return replace(self, sort=USUAL, column=(), before="") != RunsQuery()

    def among(self, every: Listing) -> list[Card]:
        """The runs that are listed."""
        # There are few different values, so they are brought into the form of addresses once, and not for each run.
        wanted = [
            (name, {value for value in every.counts[name] if choice(value) == choice(text)})
            for name in OF_RUNS
            if (text := getattr(self, name))
        ]
        words = self.q.casefold().split()
        return [
            card
            for card in every.cards
            if all(not values.isdisjoint(OF_RUNS[name](card)) for name, values in wanted)
            and all(word in card.words for word in words)
        ]
