"""What can be looked at: the runs of a ledger, and those in results folders. Nothing is written to the folders."""

from __future__ import annotations

import bisect
import gc
import threading
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from evalstone._core.file_format import RUN_FORMAT
from evalstone._core.files import is_folder
from evalstone._core.front_ends import Setting
from evalstone._core.json import storable
from evalstone.datasets.stored import RECORDS, SAMPLES, SUMMARY
from evalstone.errors import ConfigError, EvalstoneError, LedgerError
from evalstone.ledger import labels
from evalstone.ledger.base import RunRow, is_there, shown
from evalstone.ledger.datasets import DatasetVersion, dataset_versions
from evalstone.ledger.store import Ledger
from evalstone.results.endings import COMPLETE, ending_named
from evalstone.results.files import read_summary
from evalstone.results.run import Run
from evalstone.results.summary import ScorerInfo, scorer_titles
from evalstone.run.saved import read_run
from evalstone.types import RunMetadata, StoredScorer
from evalstone.view.drafts import DatasetFolder

NEW_AT_ONCE = 20
"""The number of new runs from which on all are read together."""
State: TypeAlias = Literal["complete", "running", "ended", "unfinished", "unreadable"]
"""Whether a run is complete, in progress, has ended early, was killed, or can't be read."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is known of a run without its records."""

    id: str
    started: str = ""
    state: State = "complete"
    metadata: RunMetadata | None = None
    """None if it can't be read."""
    cost: float | None = None
    """US dollars; None if a price is unknown."""
    records: int = 0
    """Of a run that isn't complete, the number of its records."""
    folder: str = ""
    """The results folder; "" if it is in the ledger."""
    stamp: str = ""
    """What identifies the state of its records."""
    problem: str = ""
    """Why it can't be read."""

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """The titles of its scorers by signature."""
        return {} if self.metadata is None else scorer_titles([*map(ScorerInfo.of, self.metadata.scorers)])

    @cached_property
    def by_title(self) -> Mapping[str, StoredScorer]:
        """Its scorers by title."""
        return {self.titles[each.signature]: each for each in (self.metadata.scorers if self.metadata else ())}

    @cached_property
    def words(self) -> str:
        """What a search looks for words in: the names of the run and of what was run, in lower case."""
        texts = [self.id, self.folder]
        if (run := self.metadata) is not None:
            texts += [run.name, run.dataset.name, run.judge.identity, *run.tags, *(info.name for info in run.scorers)]
            texts += [] if run.target is None else [run.target.identity]
        return "\n".join(texts).casefold()

    @property
    def n_missing(self) -> tuple[int, int]:
        """The numbers of results that were skipped and that failed."""
        scorers = self.metadata.scorers if self.metadata else ()
        return sum(each.n_skipped for each in scorers), sum(each.n_failed for each in scorers)

    @property
    def expected(self) -> int:
        """The number of records of the whole run."""
        if self.metadata is None:
            return 0
        trials = 1 if self.metadata.target is None else self.metadata.target.trials
        return self.metadata.dataset.samples * trials * len(self.metadata.scorers)


def _of_metadata(values: Callable[[RunMetadata], Iterable[str]]) -> Callable[[Card], Iterable[str]]:
    return lambda card: () if card.metadata is None else values(card.metadata)


OF_RUNS: Mapping[str, Callable[[Card], Iterable[str]]] = {
    "dataset": _of_metadata(lambda run: (run.dataset.name,)),
    "tag": _of_metadata(lambda run: run.tags),
    "judge": _of_metadata(lambda run: (run.judge.identity,)),
    "target": _of_metadata(lambda run: () if run.target is None else (run.target.identity,)),
    "scorer": lambda card: card.by_title,
    "state": lambda card: (card.state,),
}
"""What runs are of, and can be listed by."""


def dataset_of(card: Card) -> str:
    """The name of a run's dataset."""
    return card.metadata.dataset.name if card.metadata else ""


def by_dataset(cards: Iterable[Card]) -> dict[str, list[Card]]:
    """Runs by the names of their datasets."""
    groups: dict[str, list[Card]] = {}
    for card in cards:
        groups.setdefault(dataset_of(card), []).append(card)
    return groups


@dataclass(frozen=True)
class Listing:
    """Evaluations. A run that is in several places is listed once."""

    cards: Sequence[Card]
    """The latest first."""
    counts: Mapping[str, Counter[str]]
    """What they are of, as `OF_RUNS` names it, with the numbers of runs."""
    ids: Collection[str]

    @cached_property
    def by_dataset(self) -> Mapping[str, Sequence[Card]]:
        """The runs by the names of their datasets."""
        return by_dataset(self.cards)

    @classmethod
    def of(cls, cards: Iterable[Card]) -> Listing:
        """The evaluations among runs."""
        by_id: dict[str, Card] = {}
        for card in cards:
            by_id.setdefault(card.id, card)
        listed = [card for card in by_id.values() if card.metadata is None or card.metadata.kind == "evaluation"]
        listed.sort(key=lambda card: card.started, reverse=True)
        counts = {name: Counter(value for card in listed for value in of(card)) for name, of in OF_RUNS.items()}
        return cls(listed, counts, by_id.keys())

    def joined(self, cards: Iterable[Card]) -> Listing:
        """With others, which takes no longer than those need."""
        more = Listing.of(card for card in cards if card.id not in self.ids)
        if not more.cards:
            return self
        joined = [*self.cards]
        for card in more.cards:
            at = bisect.bisect_right(joined, "", key=lambda each, new=card: "" if each.started >= new.started else "x")
            joined.insert(at, card)
        counts = {name: of + more.counts[name] for name, of in self.counts.items()}
        return Listing(joined, counts, {*self.ids, *more.ids})


class ReadOnly(EvalstoneError):
    """Nothing can be written."""


class Shelf:
    """The runs of a ledger and of results folders.

    Args:
        ledger: The path or URL of the ledger; None to leave it out.
        folders: Results folders, and folders that contain some.
        read_only: Whether nothing may be written to the ledger either.
        datasets: The folder that edited datasets are saved in; "" if none may be saved.

    Raises:
        ConfigError: `datasets` can't be used.
    """

    def __init__(
        self, ledger: str | None, folders: Sequence[str] = (), *, read_only: bool = False, datasets: str = ""
    ) -> None:
        self.ledger, self.folders, self.read_only = ledger, tuple(folders), read_only
        self.datasets = DatasetFolder(datasets) if datasets else None
        """Where edited datasets are saved; None if nowhere."""
        self._finished: dict[str, Card] = {}
        """The cards of finished runs in the ledger, which don't change any more."""
        self._listed: tuple[Sequence[tuple[str, str]], Listing] = (), Listing.of(())
        """The finished runs that were listed last: their IDs and times of completion, and their cards."""
        self._lock = threading.Lock()

    @property
    def places(self) -> tuple[str, ...]:
        """The ledger and the folders, as they are shown."""
        return (*(() if self.ledger is None else (shown(self.ledger),)), *self.folders)

    def listing(self) -> Listing:
        """The evaluations.

        Raises:
            EvalstoneError: The ledger can't be read.
        """
        finished, others = self._of_ledger()
        return finished.joined([*others, *self._of_folders()])

    def cards(self) -> Sequence[Card]:
        """The evaluations, latest first. Errors as for `listing`."""
        return self.listing().cards

    def card(self, run: str) -> Card | None:
        """The card of a run of any kind; None if there is none. Errors as for `cards`."""
        found = None
        if self.ledger is not None:
            with self.reading() as ledger:
                found = _card_in(ledger, storable(run))
        return found or next((card for card in self._of_folders() if card.id == run), None)

    def read(self, card: Card) -> Run:
        """The run of a card.

        Raises:
            EvalstoneError: It can't be read, or is gone.
        """
        return read_run(Path(card.folder) if card.folder else card.id, ledger=self.ledger)

    @property
    def refusal(self) -> str:
        """Why nothing can be written; "" if it can."""
        if self.ledger is None:
            return "There is no ledger to write to. Start evalstone view with --ledger."
        if self.read_only:
            return "These pages only show: evalstone view was started with --read-only."
        if not self._may_write:
            return f"The ledger {shown(self.ledger)} can only be read."
        return ""

    @property
    def edit_refusal(self) -> str:
        """Why no dataset can be edited; "" if it can."""
        if refusal := self.refusal:
            return refusal
        if self.datasets is None:
            return "To edit datasets, start evalstone view with --datasets FOLDER: they are saved there."
        return self.datasets.refusal

    @property
    def _may_write(self) -> bool:
        with self.reading() as ledger, ledger.transaction() as database:
            return database.may_write()

    @contextmanager
    def reading(self) -> Generator[Ledger]:
        """The ledger, for reading.

        Raises:
            EvalstoneError: There is none, or it can't be read.
        """
        if self.ledger is None:
            raise ConfigError("there is no ledger; name one with ", Setting("ledger", ...))
        if not is_there(self.ledger):
            raise ConfigError(f"the ledger {shown(self.ledger)} is gone")
        with Ledger(self.ledger, read_only=True) as ledger:
            yield ledger

    @contextmanager
    def writing(self) -> Generator[Ledger]:
        """The ledger, for writing.

        Raises:
            ReadOnly: Nothing can be written.
            EvalstoneError: It can't be read.
        """
        if refusal := self.refusal:
            raise ReadOnly(refusal)
        with Ledger(self.ledger or "") as ledger:
            yield ledger

    def pins(self) -> Mapping[str, str]:
        """The ID of the run that is the baseline of each dataset, by the dataset's name."""
        if self.ledger is None:
            return {}
        with self.reading() as ledger:
            return labels.pins(ledger)

    def dataset_versions(self) -> list[DatasetVersion]:
        """The versions of datasets whose samples are in the ledger, or were, latest first."""
        if self.ledger is None:
            return []
        with self.reading() as ledger:
            return dataset_versions(ledger)

    def _of_ledger(self) -> tuple[Listing, list[Card]]:
        """The finished runs in the ledger, and the others."""
        if self.ledger is None:
            return Listing.of(()), []
        with self._lock, self.reading() as ledger:
            states = ledger.run_states()
            ended = [(run, finished) for run, finished in states if finished is not None]
            others = [run for run, finished in states if finished is None] if len(ended) < len(states) else []
            if self._listed[0] != ended:
                are_many = sum(run not in self._finished for run, _ in ended) > NEW_AT_ONCE
                with _keeping_all() if are_many else nullcontext():
                    read = self._read_finished(ledger, ended, together=are_many)
                    self._listed = ended, Listing.of(read)
            return self._listed[1], [card for run in others if (card := _card_in(ledger, run)) is not None]

    def _read_finished(self, ledger: Ledger, ended: Sequence[tuple[str, str]], *, together: bool) -> Iterator[Card]:
        rows: Mapping[str, RunRow] = {}
        if together:
            with suppress(LedgerError):  # if one is damaged, each is read by itself
                rows = {row.id: row for row in ledger.runs()}
        known = self._finished
        self._finished = {}
        for run, finished in ended:
            card = known.get(run)
            if card is None or card.stamp != finished:
                card = _card_in(ledger, run, rows.get(run))
            if card is not None:
                yield card
                if card.state == "complete":
                    self._finished[run] = card

    def _of_folders(self) -> Iterator[Card]:
        for name in self.folders:
            folder = Path(name)
            if not is_folder(folder):
                yield Card(id=name, state="unreadable", folder=name, problem=f"the folder {name} is gone")
                continue
            files = sorted({*folder.glob(SUMMARY), *folder.glob(f"*/{SUMMARY}")})
            if not files and any(folder.glob(RECORDS)):
                yield Card(
                    id=name,
                    state="unreadable",
                    folder=name,
                    problem=f"{name} has no {SUMMARY}; a run may be writing it",
                )
            for file in files:
                yield _readable(lambda file=file: _card_of(file.parent), str(file.parent), str(file.parent))


@contextmanager
def _keeping_all() -> Generator[None]:
    """A context for reading many runs. All that is made is kept, and nothing in it refers to itself. So no garbage is
    looked for: not meanwhile, which takes as long as reading, nor later among it, which takes as long as a page."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def _card_in(ledger: Ledger, run: str, row: RunRow | None = None) -> Card | None:
    """The card of a run in the ledger; None if it is gone. row: its row, if it was read."""

    def read() -> Card | None:
        found = row or (ledger.run(run) if run != "last" else None)
        return None if found is None else _card_of_row(ledger, found)

    return _readable(read, run)


def _card_of_row(ledger: Ledger, row: RunRow) -> Card:
    RUN_FORMAT.check(row.metadata, f"run {row.id}")
    metadata = row.described
    if row.finished is not None:
        return Card(id=row.id, started=row.started, metadata=metadata, cost=row.paid, stamp=row.finished)
    records, running = ledger.progress(row.id)
    state: State = "running" if running else "ended" if metadata.stop_reason else "unfinished"
    stamp = f"{records} {state} {metadata.seconds}"
    return Card(
        id=row.id,
        started=row.started,
        state=state,
        metadata=metadata,
        cost=row.paid,
        records=records,
        stamp=stamp,
    )


def _card_of(folder: Path) -> Card:
    data = read_summary(folder)
    metadata = RunMetadata.of(data, str(folder / SUMMARY))
    cost: Any = data.get("cost") if metadata.paid is None else metadata.paid.total
    files = (folder / name for name in (SUMMARY, RECORDS, SAMPLES))
    stamp = " ".join(
        f"{status.st_mtime_ns}:{status.st_size}" for file in files if (status := _status(file)) is not None
    )
    complete = not metadata.stop_reason and ending_named(metadata.ending) is COMPLETE
    return Card(
        id=metadata.id,
        started=metadata.started,
        state="complete" if complete else "ended",
        metadata=metadata,
        cost=cost if isinstance(cost, int | float) else None,
        folder=str(folder),
        stamp=stamp,
    )


def _status(file: Path) -> Any:
    try:
        return file.stat()
    except OSError:
        return None


def _readable(read: Callable[[], Card | None], name: str, folder: str = "") -> Any:
    """What is read; a card that says why it can't be, for what is wrong with this run alone."""
    try:
        return read()
    except EvalstoneError as error:
        return Card(id=name, state="unreadable", folder=folder, problem=str(error))
