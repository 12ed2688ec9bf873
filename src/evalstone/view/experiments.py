"""Experiments: the files that describe them, the runs of their cells, and the processes that were started for them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import join
from typing import Literal, TypeAlias

from evalstone._core.display import safe
from evalstone.errors import EvalstoneError
from evalstone.ledger.base import DEFAULT_LEDGER, file_of, shown
from evalstone.types import StoredCell
from evalstone.view.experiment_files import ExperimentFiles, ListedFile
from evalstone.view.launches import Launch, Launches
from evalstone.view.shelf import Card, Shelf

FOLDER = "experiments"
"""The folder beside the ledger for what was started."""
RECOUNT = 10.0
"""How many times as long as it took to count the failures of a run in progress they are used before they are counted
again."""
_Cells: TypeAlias = Mapping[str, Sequence[tuple[int, Card]]]
"""The runs of cells by name, the latest first, each after its place among all runs."""
CellState: TypeAlias = Literal["complete", "running", "ended", "unfinished", "unreadable", "waiting"]


class CannotStart(EvalstoneError):
    """An experiment can't be started now."""


@dataclass(frozen=True)
class Cell:
    """A cell of an experiment with its latest run."""

    stored: StoredCell
    card: Card | None
    """None if it hasn't run."""
    runs: int
    """The number of its runs."""
    data: str = ""
    """The name of its data."""
    planned: bool = True
    """Whether the file has it."""
    age: int = 0
    """The place of the run among all, the latest first."""

    def value(self, factor: str) -> str:
        """The value of a factor, as text; "" if the cell doesn't have it."""
        value = self.stored.factors.get(factor, "")
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Experiment:
    """An experiment: a file with the runs of its cells, or runs alone."""

    name: str
    file: ListedFile | None
    """None if no file is listed that describes it."""
    launch: Launch | None
    """The latest start of its file from a page; None if there was none."""
    cells: tuple[Cell, ...]
    """In the order of the file, then those that it doesn't have (any more), in the order in which they ran."""
    refusal: str = ""
    """Why it can't be started; "" if it can."""

    @cached_property
    def planned(self) -> tuple[Cell, ...]:
        """The cells of the file, or all of them without one."""
        return tuple(cell for cell in self.cells if cell.planned)

    @cached_property
    def n_complete(self) -> int:
        """The number of the first cells that are complete, as the command counts: each ran after the one before."""
        done = 0
        for cell in self.planned:
            is_next = not done or cell.age < self.planned[done - 1].age
            if cell.card is None or cell.card.state != "complete" or not is_next:
                return done
            done += 1
        return done

    @property
    def n_done(self) -> int:
        """The same, but 0 if all are and the latest start, which starts over, has run none of them yet."""
        last = self.planned[-1].card if self.planned else None
        return (
            0 if self.launch is not None and last is not None and self.launch.replaced == last.id else self.n_complete
        )

    @property
    def replaced(self) -> str:
        """The run of the last cell if a start starts over, because all cells are complete; "" otherwise."""
        last = self.planned[-1].card if self.planned else None
        return last.id if last is not None and self.n_complete == len(self.planned) else ""

    @property
    def is_complete(self) -> bool:
        """Whether all cells are complete."""
        return self.n_done == len(self.planned) > 0

    @property
    def is_alive(self) -> bool:
        """Whether a process that a page started runs."""
        return self.launch is not None and self.launch.is_alive

    @property
    def is_running(self) -> bool:
        """Whether any process works on it."""
        return self.is_alive or any(cell.card is not None and cell.card.state == "running" for cell in self.cells)

    @property
    def is_resumable(self) -> bool:
        """Whether the command goes on where it stopped."""
        if self.n_done == len(self.planned):
            return False
        following = self.planned[self.n_done].card
        return self.n_done > 0 or (following is not None and following.state in ("ended", "unfinished"))

    def state(self, cell: Cell) -> CellState:
        """The state of a cell. In a process that runs, cells that it hasn't come to yet are waiting."""
        if cell.card is None:
            return "waiting"
        if (
            cell.planned
            and cell.card.state == "complete"
            and self.is_alive
            and self._place[cell.stored.name] >= self.n_done
        ):
            return "waiting"
        return cell.card.state

    @cached_property
    def _place(self) -> Mapping[str, int]:
        """The places of the planned cells by name."""
        return {cell.stored.name: place for place, cell in enumerate(self.planned)}

    @cached_property
    def results(self) -> tuple[int, int | None]:
        """The number of results so far, and of all; None if it isn't known how many samples a cell has."""
        of_data = {cell.data: cell.card.expected for cell in self.cells if cell.card is not None}
        sizes = [cell.card.expected if cell.card is not None else of_data.get(cell.data) for cell in self.planned]
        known = [size for size in sizes if size is not None]
        done = sum(size or 0 for size in sizes[: self.n_done])
        following = self.planned[self.n_done].card if self.n_done < len(self.planned) else None
        if following is not None and following.state != "complete":
            done += following.records
        return done, sum(known) if len(known) == len(sizes) else None

    @property
    def cost(self) -> float | None:
        """The cost of the latest runs of its cells; None if a price is unknown."""
        costs = [cell.card.cost for cell in self.planned if cell.card is not None]
        return None if None in costs else sum(cost for cost in costs if cost is not None)


class Experiments:
    """The experiments that pages show.

    Args:
        shelf: The runs.
        files: The files; None if there are none.
        refusal: Why no experiment can be started; "" if any can.
    """

    def __init__(self, shelf: Shelf, files: ExperimentFiles | None = None, refusal: str = "") -> None:
        self.shelf, self.files, self._refusal = shelf, files, refusal
        cwd = files.folder if files is not None and files.folder is not None else Path()
        beside = _folder_of(shelf.ledger)
        self.launches = None if beside is None else Launches(beside / FOLDER, cwd)
        self._failed: dict[str, tuple[float, float, int]] = {}

    def all(self) -> list[Experiment]:
        """All experiments: those with a file by its path, then those that have only runs, latest first.

        Raises:
            EvalstoneError: The runs can't be read.
        """
        cards = self.shelf.cards()
        cells = _cells(cards)
        files = [] if self.files is None else self.files.listed()
        launches = [] if self.launches is None else self.launches.all()
        found = [self._experiment(file.name, file, cells.get(file.name, {})) for file in files]
        known = {launch.key for each in found if (launch := each.launch) is not None}
        found += [
            Experiment(launch.experiment, None, launch, _alone(cells.get(launch.experiment, {})))
            for launch in launches
            if launch.key not in known and (launch.is_alive or launch.experiment not in {each.name for each in found})
        ]
        names = {each.name for each in found}
        return found + [Experiment(name, None, None, _alone(of)) for name, of in cells.items() if name not in names]

    def named(self, name: str) -> list[Experiment]:
        """The experiments of this name: one for each file, or the runs alone. Errors as for `all`."""
        return [each for each in self.all() if each.name == name or (each.launch and each.launch.experiment == name)]

    def start(self, path: str, seen: str) -> str:
        """Start an experiment, unless it runs or was started since; returns its name.

        Args:
            path: Its file, as it is listed.
            seen: When it was started last, as far as whoever starts it knows.

        Raises:
            CannotStart: It can't be started.
            EvalstoneError: The runs can't be read, or there can be no process.
        """
        file = None if self.files is None else self.files.file(path)
        if file is None or self.launches is None:
            raise CannotStart(f"There is no file {safe(path)} of an experiment that these pages may start.")
        found = self._experiment(file.name, file, _cells(self.shelf.cards()).get(file.name, {}))
        if found.is_alive:
            return found.name
        if found.refusal:
            raise CannotStart(found.refusal)
        self.launches.start(
            file.path,
            found.name,
            self.arguments(file),
            command=self.command(file),
            seen=seen,
            replaced=found.replaced,
        )
        return found.name

    def stop(self, key: str, started: str, *, again: bool) -> None:
        """Ask a process to end, as `Launches.stop` does.

        Raises:
            CannotStart: These pages start and stop nothing.
            EvalstoneError: The process can't be asked.
        """
        if self._refusal or self.launches is None:
            raise CannotStart(self._refusal or "There is no ledger, so nothing was started here.")
        self.launches.stop(key, started, again=again)

    def arguments(self, file: ListedFile) -> list[str]:
        """Those of the command that runs it."""
        path = f"./{file.path}" if file.path.startswith("-") else file.path
        own = file.says is not None and file.says.ledger is not None
        ledger = None if own or self.shelf.ledger == DEFAULT_LEDGER else self.shelf.ledger
        return ["run", path, *([] if ledger is None else ["--ledger", ledger])]

    def command(self, file: ListedFile) -> str:
        """The command that runs it, to be read."""
        path, *options = self.arguments(file)[1:]
        return join(
            ["evalstone", "run", path, *(shown(word) if word == self.shelf.ledger else word for word in options)]
        )

    def output(self, launch: Launch) -> str:
        """The last lines of what a command printed."""
        return "" if self.launches is None else self.launches.output(launch)

    def failures(self, card: Card) -> int:
        """The number of results of a run that failed, so far."""
        if card.state == "complete" or card.folder:
            return card.n_missing[1]
        counted, took, number = self._failed.get(card.id, (0.0, 0.0, 0))
        now = time.monotonic()
        if not counted or now - counted > RECOUNT * took:
            with self.shelf.reading() as ledger:
                number = ledger.n_failed(card.id)
            self._failed[card.id] = now, time.monotonic() - now, number
        return number

    def _experiment(self, name: str, file: ListedFile, cells: _Cells) -> Experiment:
        launch = None if self.launches is None else self.launches.of(file.path)
        if file.says is None:
            return Experiment(name, file, launch, _alone(cells), f"{file.path} can't be started: {file.problem}")
        planned = [
            Cell(
                StoredCell(experiment=name, name=cell.name, factors=cell.factors),
                runs[0][1] if (runs := cells.get(cell.name, ())) else None,
                len(runs),
                cell.data,
                age=runs[0][0] if runs else 0,
            )
            for cell in file.says.cells
        ]
        names = {cell.name for cell in file.says.cells}
        others = _alone({cell: runs for cell, runs in cells.items() if cell not in names}, planned=False)
        found = Experiment(name, file, launch, (*planned, *others))
        return Experiment(name, file, launch, found.cells, self._refused(file.says.ledger, found))

    def _refused(self, ledger: str | None, found: Experiment) -> str:
        """Why an experiment can't be started; "" if it can."""
        if refusal := self.shelf.refusal or self._refusal:
            return refusal
        if ledger is not None and not _is_same(ledger, self.shelf.ledger or ""):
            return f"Its ledger is {shown(ledger)}, which these pages don't show. Start evalstone view with --ledger."
        if found.is_running and not found.is_alive:
            return "It runs in a process that wasn't started here."
        return ""


def _cells(cards: Sequence[Card]) -> Mapping[str, _Cells]:
    """The runs of the cells of experiments, by names; the latest experiments and runs first."""
    found: dict[str, dict[str, list[tuple[int, Card]]]] = {}
    for age, card in enumerate(cards):
        if card.metadata is not None and (cell := card.metadata.cell) is not None:
            found.setdefault(cell.experiment, {}).setdefault(cell.name, []).append((age, card))
    return found


def _alone(cells: _Cells, *, planned: bool = True) -> tuple[Cell, ...]:
    """Cells of which no file is known, in the order in which they ran."""
    found = [
        Cell(cell, runs[0][1], len(runs), run.dataset.name, planned, runs[0][0])
        for runs in cells.values()
        if (run := runs[0][1].metadata) is not None and (cell := run.cell) is not None
    ]
    return tuple(found[::-1])


def _folder_of(ledger: str | None) -> Path | None:
    if ledger is None:
        return None
    file = file_of(ledger) or file_of(DEFAULT_LEDGER)  # for one on a server, the folder of the usual one
    return None if file is None else file.parent


def _is_same(one: str, other: str) -> bool:
    files = file_of(one), file_of(other)
    if files[0] is None or files[1] is None:
        return one == other
    return os.path.realpath(files[0]) == os.path.realpath(files[1])
