"""What the pages read and write: the runs on a shelf with their indexes, and the ledger."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evalstone.errors import EvalstoneError
from evalstone.judge_quality.labeling import Sheet
from evalstone.ledger.live import streams
from evalstone.ledger.store import Ledger
from evalstone.scorers.base import Scorer
from evalstone.view.calibrations import Calibrations
from evalstone.view.experiments import Experiments
from evalstone.view.indexing.comparison import StoredComparison
from evalstone.view.indexing.comparisons import Comparisons
from evalstone.view.indexing.dataset_differences import DatasetDifference, DatasetDifferences
from evalstone.view.indexing.index import Index
from evalstone.view.indexing.indexes import Indexes
from evalstone.view.indexing.jobs import Building
from evalstone.view.indexing.places import DatasetPlaces, Places
from evalstone.view.live_drift import Watches
from evalstone.view.live_figures import Readings
from evalstone.view.names import name_of
from evalstone.view.responses import NotThere, page
from evalstone.view.shelf import Card, Shelf

if TYPE_CHECKING:
    from starlette.responses import Response

MOST_SHEETS = 4
"""The number of scorers whose scores are kept for labeling."""


class Library:
    """The runs on a shelf, their indexes, the calibrations of their judges, and what is known of live scores."""

    def __init__(self, shelf: Shelf, own: Sequence[Scorer] = (), experiments: Experiments | None = None) -> None:
        self.own = {scorer.signature: scorer for scorer in own}
        """Scorers whose code is run to show their prompts, by signature."""
        self.experiments = Experiments(shelf) if experiments is None else experiments
        self.shelf, self.indexes, self.calibrations = shelf, Indexes(shelf), Calibrations(shelf)
        self.comparisons = Comparisons(self.indexes)
        self.dataset_differences = DatasetDifferences(shelf, self.indexes.folder, self.indexes.jobs)
        self.dataset_places = DatasetPlaces(shelf, self.indexes.jobs)
        self.readings, self.watches = Readings(), Watches(shelf, self.indexes.jobs)
        self.saved: dict[str, str] = {}
        """The addresses of the versions that datasets were saved as last, by the names of the datasets."""
        self.token = secrets.token_urlsafe(24)
        """What the forms of this process have."""
        self._sheets: dict[str, Sheet] = {}
        """The scores that were asked for last."""
        self._lock = threading.Lock()

    @property
    def form_token(self) -> str:
        """What a form has to have; "" if nothing can be written, so that there is no form."""
        return "" if self.shelf.refusal else self.token

    @property
    def edit_token(self) -> str:
        """What a form that edits a dataset has to have; "" if none can be edited, so that there is no form."""
        return "" if self.shelf.edit_refusal else self.token

    def card(self, run: str) -> Card:
        """What is known of a run.

        Raises:
            NotThere: There is none with this ID.
            EvalstoneError: It can't be read.
        """
        card = self.shelf.card(run)
        if card is None:
            raise NotThere(f"There is no run {run} in {', '.join(self.shelf.places) or 'the ledger'}.")
        if card.problem:
            raise EvalstoneError(card.problem)
        return card

    @contextmanager
    def live_ledger(self) -> Generator[Ledger]:
        """The ledger with live scores, for reading.

        Raises:
            NotThere: There is none.
            EvalstoneError: It can't be read.
        """
        if self.shelf.ledger is None:
            raise NotThere("Live scores are in a ledger, and there is none. Start evalstone view with --ledger.")
        with self.shelf.reading() as ledger:
            yield ledger

    def has_live_scores(self) -> bool:
        """Whether the ledger has a stream. Raises EvalstoneError if it can't be read."""
        if self.shelf.ledger is None:
            return False
        with self.shelf.reading() as ledger:
            return bool(streams(ledger))

    def sheet(self, card: Card, scorer: str) -> Sheet:
        """The scores of a run's scorer for labeling, by its title.

        Raises:
            EvalstoneError: They can't be read, or aren't scores to label.
        """
        state = f"{card.id} {card.stamp} {scorer}"
        with self._lock:
            sheet = self._sheets.pop(state, None) or Sheet.of(self.shelf.read(card), scorer)
            self._sheets[state] = sheet
            while len(self._sheets) > MOST_SHEETS:
                del self._sheets[next(iter(self._sheets))]
        return sheet

    def index(self, card: Card) -> Index | Response:
        """The index of a run, or, while it is made, a page that says how far it is and then loads itself again."""
        opened = self.indexes.open(card)
        return opened if isinstance(opened, Index) else _in_progress(opened, name_of(card))

    def comparison(self, cards: Sequence[Card], *, anyway: bool, by: str = "") -> StoredComparison | Response:
        """A comparison of runs as for `Comparisons.open`, or, while it is made, a page as for an index."""
        opened = self.comparisons.open(cards, anyway=anyway, by=by)
        return (
            opened if isinstance(opened, StoredComparison) else _in_progress(opened, " and ".join(map(name_of, cards)))
        )

    def dataset_difference(self, name: str, old: str, new: str) -> DatasetDifference | Response:
        """The difference of two versions of a dataset with this name, or, while it is made, a page as for an index."""
        opened = self.dataset_differences.open(old, new)
        return opened if isinstance(opened, DatasetDifference) else _in_progress(opened, f"two versions of {name}")

    def places(self, name: str, version: str) -> Places | Response:
        """The places of the samples of a version, "" for none, or, while they are found, a page as for an index."""
        opened = self.dataset_places.of(version) if version else Places()
        return opened if isinstance(opened, Places) else _in_progress(opened, name)


def _in_progress(building: Building, name: str) -> Response:
    what = "Comparing" if building.phase == "comparing" else f"{building.phase.capitalize()} of"
    return progress_page(building, name, f"{what} {name}: this is done once.")


def progress_page(building: Building, title: str, text: str) -> Response:
    """A page that says how far something is, and then loads itself again."""
    return page(
        "message.html",
        status=202,
        headers={"refresh": "1"},
        title=title,
        text=text,
        progress=building.percent or 0,
    )
