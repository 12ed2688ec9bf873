"""The ledger, opened: what is read from its tables and written to them, on SQLite and PostgreSQL alike.

Nothing secret is written: a judge's identity holds no key and no header, and no row holds the ledger's own URL.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import sqlalchemy.exc

from evalstone.errors import LedgerBusyError, LedgerError
from evalstone.ledger import tables
from evalstone.ledger.dialects import WAIT, dialect_of, transaction
from evalstone.ledger.leases import Leases, new_owner, run_key
from evalstone.ledger.row_codec import answer_of, answer_row, dataset_of, dataset_row, record_row, run_of, run_row
from evalstone.ledger.rows import DatasetRow, Key, RunRow, StoredAnswer
from evalstone.ledger.schema import prepare
from evalstone.ledger.statements import MOST, Statements, execute_all, looking
from evalstone.types import Record


@dataclass
class Turn:
    """What is to be done in one go. freed: leases to give back; looked: answers to look up; wanted: answers to look up
    and, where there is none, leases to take; bury: first take away the leases of those who are gone."""

    answers: list[StoredAnswer] = field(default_factory=list[StoredAnswer])
    records: list[tuple[str, Record]] = field(default_factory=list[tuple[str, Record]])
    freed: list[Key] = field(default_factory=list[Key])
    looked: set[Key] = field(default_factory=set[Key])
    wanted: set[Key] = field(default_factory=set[Key])
    bury: bool = False


@dataclass
class Done:
    """What came of a turn: the answers that are there, and the leases that were got."""

    found: dict[Key, StoredAnswer] = field(default_factory=dict[Key, StoredAnswer])
    taken: set[Key] = field(default_factory=set[Key])


class Ledger:
    """A ledger, opened. Synchronous; the engine goes through AsyncLedger.

    url: a path, `sqlite:///path/to/file.db`, or `postgresql://user@host/database`. Makes the file, its folder and the
    tables where they are not; migrates an older layout, a large one only with `migrate`. Raises ConfigError for a URL of
    another kind, and LedgerError for what cannot be opened, is no ledger, is too large to be migrated in passing, or is
    of a newer version.
    """

    def __init__(self, url: str | Path, *, migrate: bool = False) -> None:
        self.dialect = dialect_of(url)
        self.engine = self.dialect.engine()
        with self._explained():
            self.connection = self.engine.connect()
            try:
                prepare(self.connection, self.dialect, migrate=migrate)
            except BaseException:
                self.close()
                raise
        self._statements = Statements(self.dialect, self.engine)
        self.leases = Leases(self.dialect, self._statements, new_owner())

    @property
    def place(self) -> str:
        """Where the ledger lies, for people: its file, or its URL without a password."""
        return self.dialect.place

    def close(self) -> None:
        """Close the ledger. It cannot be used afterwards."""
        self.connection.close()
        self.engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except sqlalchemy.exc.DBAPIError as error:
            kind = LedgerBusyError if self.dialect.is_busy(error) else LedgerError
            raise kind(self.dialect.explained(error)) from None

    @contextmanager
    def transaction(self, *, writing: bool = False) -> Generator[sa.Connection]:
        """A transaction of this ledger; errors of the database come out as LedgerError."""
        with self._explained(), transaction(self.connection, writing=writing) as connection:
            yield connection

    def add(self, connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> int:
        """Within a transaction: insert those rows that are not there yet; how many."""
        if not rows:
            return 0
        statement = self.dialect.insert(table).on_conflict_do_nothing()
        return connection.execute(statement, rows, execution_options={"preserve_rowcount": True}).rowcount

    def answers(self, judge: str, questions: Sequence[str], *, number: int = 0) -> dict[str, StoredAnswer]:
        """A judge's stored answers to some questions, by question fingerprint."""
        with self.transaction() as connection:
            found = self._look(connection, [Key(question, judge, number) for question in questions])
        return {key.question: answer for key, answer in found.items()}

    def write(self, answers: Iterable[StoredAnswer] = (), records: Iterable[tuple[str, Record]] = ()) -> None:
        """Write answers, and records with the id of their run, in one transaction; what is there is replaced."""
        self.turn(Turn(list(answers), list(records)))

    def turn(self, turn: Turn) -> Done:
        """Do what a turn asks for. What it writes is durable when this returns, and written all or not at all."""
        done = Done()
        writing = bool(turn.answers or turn.records or turn.freed or turn.bury)
        missing: set[Key] = set()
        if writing or turn.looked or turn.wanted:
            with self.transaction(writing=writing) as connection:
                self._write(connection, turn)
                done.found = self._look(connection, turn.looked | turn.wanted)
                missing = turn.wanted - done.found.keys()
                if missing and writing and self.dialect.single_writer:
                    done.taken = self.leases.take(connection, missing)
                    return done
        if missing:
            with self.transaction(writing=True) as connection:
                done.taken = self.leases.take(connection, missing)
                # Another may have answered between the look and the lease.
                done.found.update(late := self._look(connection, done.taken))
                self.leases.free(connection, late)
                done.taken -= late.keys()
        return done

    def _write(self, connection: sa.Connection, turn: Turn) -> None:
        if turn.bury:
            self.leases.bury(connection)
        if turn.answers:
            rows = [answer_row(answer) for answer in sorted(turn.answers, key=_key)]
            execute_all(connection, self._statements.put_answer, rows)
        if turn.records:
            kept = [record_row(run, record) for run, record in turn.records]
            execute_all(connection, self._statements.put_record, kept)
        self.leases.free(connection, turn.freed)

    def _look(self, connection: sa.Connection, keys: Iterable[Key]) -> dict[Key, StoredAnswer]:
        """The answers that are there, by key."""
        by_judge: dict[tuple[str, int], list[str]] = {}
        for question, judge, number in keys:
            by_judge.setdefault((judge, number), []).append(question)
        found: dict[Key, StoredAnswer] = {}
        for (judge, number), questions in by_judge.items():
            for start in range(0, len(questions), MOST):
                chosen = looking(judge, number, questions[start : start + MOST])
                for row in connection.exec_driver_sql(self._statements.look(len(chosen) - 2), chosen):
                    answer = answer_of(row)
                    found[answer.key] = answer
        return found

    def start_run(self, row: RunRow) -> None:
        """Enter a run before its first record, with its data set version, and lease it."""
        dataset = dataset_of(row)
        with self.transaction(writing=True) as connection:
            connection.execute(sa.insert(tables.runs), run_row(row))
            self.add(connection, tables.datasets, [dataset_row(dataset)] if dataset else [])
            self.leases.take(connection, [run_key(row.id)])

    def finish_run(self, run: str, finished: str, about: Mapping[str, Any]) -> None:
        """Mark a run as ended."""
        row = run_row(RunRow(run, "", "", finished, about))
        query = sa.update(tables.runs).where(tables.runs.c.id == run)
        with self.transaction(writing=True) as connection:
            connection.execute(query.values(finished=finished, about=row["about"]))
            self.leases.free(connection, [run_key(run)])

    def take_up(self, plan: str) -> RunRow | None:
        """The last run of this plan that has not ended, leased; None when there is none, or another works on it."""
        row = self.unfinished(plan)
        if row is None:
            return None
        with self.transaction(writing=True) as connection:
            self.leases.bury(connection)
            return row if self.leases.take(connection, [run_key(row.id)]) else None

    def unfinished(self, plan: str) -> RunRow | None:
        """The last run of this plan that has not ended."""
        return self._run(tables.runs.c.plan == plan, tables.runs.c.finished.is_(None))

    def run(self, run: str) -> RunRow | None:
        """The run of this id; "last" is the one started last."""
        return self._run() if run == "last" else self._run(tables.runs.c.id == run)

    def _run(self, *conditions: Any) -> RunRow | None:
        with self.transaction() as connection:
            row = connection.execute(_RUNS.where(*conditions).limit(1)).first()
        return None if row is None else run_of(row)

    def runs(self, most: int | None = None) -> list[RunRow]:
        """All runs, the last one first, or so many of them."""
        with self.transaction() as connection:
            return [run_of(row) for row in connection.execute(_RUNS.limit(most))]

    def datasets(self) -> list[DatasetRow]:
        """All data set versions that runs were made on, in the order in which they came."""
        query = sa.select(tables.datasets).order_by(tables.datasets.c.first_seen, tables.datasets.c.version)
        with self.transaction() as connection:
            return [DatasetRow(*row) for row in connection.execute(query)]

    def records(self, run: str) -> list[Record]:
        """The records of a run, in the order in which they were first written."""
        return [record for _, record in self.records_after(run, None)]

    def records_after(self, run: str, position: int | None, most: int | None = None) -> list[tuple[int, Record]]:
        """So many records of a run that were first written after a position, None for the beginning; each with its own
        position."""
        table = tables.records
        query = sa.select(table.c.position, table.c.body).where(table.c.run == run).order_by(table.c.position)
        if position is not None:
            query = query.where(table.c.position > position)
        with self.transaction() as connection:
            rows = connection.execute(query.limit(most)).all()
        return [(at, Record.from_dict(json.loads(body))) for at, body in rows]

    def wait_for_others(self, seconds: float = WAIT) -> None:
        """How long to wait for another process that writes, from now on, before LedgerBusyError is raised."""
        self.dialect.wait_for_others(self.connection, seconds)

    def compact(self) -> None:
        """Give the room of deleted rows back to the disk."""
        with self._explained():
            self.dialect.compact(self.connection)

    def renew_leases(self) -> None:
        """Put the end of this ledger's leases off."""
        with self.transaction(writing=True) as connection:
            self.leases.renew(connection)

    def free_leases(self) -> None:
        """Give all of this ledger's leases back."""
        try:
            with self.transaction(writing=True) as connection:
                self.leases.free_all(connection)
        except LedgerError:
            self.leases.abandon()
            raise


_RUNS = sa.select(tables.runs).order_by(tables.runs.c.position.desc())


def _key(answer: StoredAnswer) -> Key:
    return answer.key
