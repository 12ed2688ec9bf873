"""The index of a run in progress: what is new is added to it.

A case is added with its first record, and taken out and added again with the next ones. The sums over all cases are
kept in memory, so a file belongs to this process. When the run has ended, its index is made from all of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from evalstone.errors import ConfigError, StorageError
from evalstone.ledger.base import RunRow
from evalstone.ledger.store import RECORDS_PER_READ, Ledger
from evalstone.results.run import Run
from evalstone.results.spilling import SpillingRecords
from evalstone.results.summary import ScorerSummary, SummaryBuilder
from evalstone.run.saved import CaseSamples, samples_of_run, with_cost
from evalstone.types import Failed, Record, Sample
from evalstone.view.indexing.build import Progress, Writer, head_of, indexes_of
from evalstone.view.indexing.index import OutdatedIndex
from evalstone.view.shelf import Card, Shelf


class Growing:
    """The index of a run in progress.

    Args:
        file: Where it goes; nothing is there.
        shelf: The shelf that the run is on.
        card: The run.

    Raises:
        EvalstoneError: The run can't be read.
        StorageError: The file can't be made.
    """

    def __init__(self, file: Path, shelf: Shelf, card: Card) -> None:
        self.file, self._shelf, self._id = file, shelf, card.id
        self.stamp = ""
        """The state of the run that the index is of; "" before it is there."""
        run = self._run((), [])[1]
        self._keeps, self._builders = (
            bool(run.keeps_reasoning),
            {each.signature: SummaryBuilder(each) for each in run.scorers},
        )
        self._records = SpillingRecords([*self._builders], run.n_samples * run.trials)
        self._samples = CaseSamples(run.dataset_version, run.target)
        self._position = 0
        """The place of the last record, in the order of writing."""
        self._failed: dict[int, str] = {}
        """The records of failures that were there first: if the run was resumed, they are made again."""
        try:
            file.parent.mkdir(mode=0o700, exist_ok=True)
            file.touch(0o600)
            self._connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            for setting in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-64000"):
                self._connection.execute(f"PRAGMA {setting}")
            self._connection.execute("BEGIN")
            cases = self._records.size // len(run.scorers)
            self._writer = Writer(self._connection, run, cases)
        except (sqlite3.Error, OSError) as error:
            raise StorageError(f"the index {file} can't be written: {error}") from None

    def close(self) -> None:
        """Close and delete the file."""
        self._connection.close()
        for suffix in ("", "-wal", "-shm"):
            with suppress(PermissionError):  # on Windows, while a page reads it; it is then deleted as abandoned
                self.file.with_name(self.file.name + suffix).unlink(missing_ok=True)

    def update(self, card: Card, progress: Progress) -> None:
        """Add what is new. It can't be used any more after an error.

        Args:
            card: The run as it is.
            progress: Called now and then with the number of records so far, and of all.

        Raises:
            OutdatedIndex: Records have changed that were added before.
            EvalstoneError: The run can't be read.
            StorageError: The disk is full.
        """
        try:
            if self.stamp:
                self._connection.execute("BEGIN")
            with self._shelf.reading() as ledger:
                while rows := ledger.records_since(self._id, self._position, RECORDS_PER_READ):
                    self._add(ledger, rows)
                    progress(len(self._records), card.records)
                held, there = len(self._records), ledger.progress(self._id)[0]
                failed = ledger.record_bodies(self._id, self._failed)
                if not card.records <= held <= there or failed != self._failed:
                    raise OutdatedIndex(f"results of run {self._id} have changed")
            row, run = self._run([each.summary() for each in self._builders.values()], self._records)
            if bool(run.keeps_reasoning) != self._keeps:
                raise OutdatedIndex(f"what is scored in run {self._id} has changed")
            self._writer.describe(card.stamp, head_of(with_cost(run, row)))
            if not self.stamp:
                for statement in indexes_of(len(run.scorers)):
                    self._connection.execute(statement)
            self._connection.execute("COMMIT")
            if not self.stamp:
                # From now on, pages read it while it is written.
                self._connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.Error as error:
            raise StorageError(f"the index {self.file} can't be written: {error}") from None
        self.stamp = card.stamp

    def _add(self, ledger: Ledger, rows: Sequence[tuple[int, int, str, Record]]) -> None:
        """Add records."""
        of = len(self._builders)
        by_case: dict[int, list[tuple[int, str, Record]]] = {}
        for position, cell, line, record in rows:
            by_case.setdefault(cell // of, []).append((cell, line, record))
            self._position = position
        cases = sorted(by_case)
        samples = self._samples.read(ledger, cases)
        for case in cases:
            cells = range(case * of, (case + 1) * of)
            before = [self._records.at(cell) for cell in cells if self._records.has(cell)]
            for cell, line, record in by_case[case]:
                if self._records.has(cell):
                    raise OutdatedIndex(f"a result of run {self._id} was written twice")
                self._records.put(cell, record, line)
                self._builders[record.signature].add(record)
                if not self.stamp and isinstance(record.outcome, Failed):
                    self._failed[cell] = line
            self._index(case + 1, samples.get(case), before, [cell for cell in cells if self._records.has(cell)])
        self._writer.flush()

    def _index(self, place: int, sample: Sample | None, before: Sequence[Record], cells: Sequence[int]) -> None:
        records, lines = [*map(self._records.at, cells)], [*map(self._records.text_at, cells)]
        if before:
            self._writer.extend(place, sample, before, records, lines)
        else:
            self._writer.add(place, sample, records, lines)

    def _run(self, summary: Sequence[ScorerSummary], records: Sequence[Record]) -> tuple[RunRow, Run]:
        """The row of the run, and the run with these records."""
        with self._shelf.reading() as ledger:
            row = ledger.run(self._id)
            if row is None:
                raise ConfigError(f"the run {self._id} is gone")
            run = Run.from_dict(row.metadata, records, tuple(summary) if summary else None)
            if ledger.samples(run.dataset_version) != run.n_samples:
                return row, run
        return row, replace(run, samples=samples_of_run(run, self._shelf.ledger or ""))
