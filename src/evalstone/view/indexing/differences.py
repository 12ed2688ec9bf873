"""How runs differ from their baselines: computed once for each pair, and kept beside the indexes."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evalstone._core.file_format import installed_version
from evalstone._core.front_ends import COMMAND_LINE
from evalstone.errors import ConfigError, EvalstoneError
from evalstone.ledger.base import INDEXES
from evalstone.results.compare import compare
from evalstone.results.run import Run
from evalstone.stats.comparison import ComparisonVerdict
from evalstone.view.indexing.indexes import place_of
from evalstone.view.indexing.jobs import Building, Jobs
from evalstone.view.shelf import Card, Shelf

FILE = "differences.db"
_TABLE = """CREATE TABLE IF NOT EXISTS pairs (
    baseline TEXT NOT NULL, run TEXT NOT NULL, stamp TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (baseline, run)
)"""


@dataclass(frozen=True)
class Difference:
    """The difference of a scorer's mean from that of the baseline: the run minus the baseline."""

    estimate: float
    low: float | None
    high: float | None
    adjusted_p: float
    """The p-value, corrected for the number of scorers."""
    n: int
    """The number of samples that the two have in common."""
    verdict: ComparisonVerdict


@dataclass(frozen=True)
class Differences:
    """How a run differs from its baseline."""

    of: Mapping[str, Difference] = field(default_factory=dict[str, Difference])
    """By the signature of the scorer in the run."""
    refused: str = ""
    """Why the two can't be compared."""


class DifferenceStore:
    """The differences of the runs on a shelf from their baselines.

    Args:
        shelf: The shelf.
        folder: The folder that the indexes are in.
        jobs: What is being made.
    """

    def __init__(self, shelf: Shelf, folder: Path, jobs: Jobs) -> None:
        self.shelf, self.jobs = shelf, jobs
        self.file = folder / INDEXES / FILE
        self._unstored: dict[str, dict[str, tuple[str, str, str]]] = {}
        """By baseline and run, the rows that couldn't be written, such as on a full disk."""

    def of(self, baseline: Card, cards: Sequence[Card]) -> dict[str, Differences]:
        """The differences of runs that are known, by their IDs."""
        wanted = {place_of(card): card for card in cards}
        rows: list[tuple[str, str, str]] = []
        with suppress(sqlite3.Error):  # damaged, or nothing can be read: made again
            if self.file.is_file():
                with self._open() as connection:
                    query = "SELECT run, stamp, value FROM pairs WHERE baseline = ?"
                    rows = connection.execute(query, (place_of(baseline),)).fetchall()
        rows += self._unstored.get(place_of(baseline), {}).values()
        return {
            wanted[run].id: _differences(json.loads(value))
            for run, stamp, value in rows
            if run in wanted and stamp == _stamp(baseline, wanted[run])
        }

    def make(self, baseline: Card, cards: Sequence[Card]) -> Building | None:
        """Compute the differences of runs, in the background if it takes long: how far it is then, or None.

        Raises:
            EvalstoneError: The baseline can't be read.
        """

        def work(building: Building) -> None:
            first = self.shelf.read(baseline)
            for number, card in enumerate(cards):
                building.step("comparing", number, len(cards))
                self._keep(baseline, card, self._compared(first, card))

        return self.jobs.done(f"differences from {place_of(baseline)}", work)

    def _compared(self, baseline: Run, card: Card) -> Differences:
        try:
            comparison = compare(baseline, self.shelf.read(card))
        except ConfigError as error:
            return Differences(refused=error.text(COMMAND_LINE))
        except EvalstoneError as error:  # the run is damaged, or gone meanwhile
            return Differences(refused=str(error))
        return Differences(
            {
                line.info_b.signature: Difference(
                    line.difference.estimate,
                    line.difference.low,
                    line.difference.high,
                    line.adjusted_p_value,
                    line.difference.n,
                    line.verdict,
                )
                for line in comparison.scorers
            }
        )

    def _keep(self, baseline: Card, card: Card, found: Differences) -> None:
        first, row = place_of(baseline), (place_of(card), _stamp(baseline, card), json.dumps(asdict(found)))
        try:
            try:
                self._write(first, *row)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                self.file.unlink(missing_ok=True)  # damaged
                self._write(first, *row)
        except (sqlite3.Error, OSError):
            self._unstored.setdefault(first, {})[row[0]] = row

    def _write(self, *row: str) -> None:
        if not self.file.exists():
            os.close(os.open(self.file, os.O_CREAT | os.O_RDWR, 0o600))
        with self._open() as connection:
            connection.execute(_TABLE)
            connection.execute("INSERT OR REPLACE INTO pairs VALUES (?, ?, ?, ?)", row)

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.file, timeout=30, isolation_level=None)) as connection:
            yield connection


def _stamp(baseline: Card, card: Card) -> str:
    # Another version may compute another result.
    return json.dumps([installed_version(), baseline.id, baseline.stamp, card.id, card.stamp])


def _differences(data: Mapping[str, Any]) -> Differences:
    return Differences({name: Difference(**each) for name, each in data["of"].items()}, data["refused"])
