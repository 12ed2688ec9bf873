"""The synchronous ledger: reads and writes answers, records and runs, on SQLite and PostgreSQL alike.

Nothing secret is written: a judge's identity contains no key and no header, and no row contains the ledger's URL.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import sqlalchemy.exc

from evalstone.errors import LedgerBusyError, LedgerError
from evalstone.ledger import schema
from evalstone.ledger.dialects import dialect_of, execute_rows, transaction
from evalstone.ledger.leases import Leases, run_key
from evalstone.ledger.rows import (
    Applied,
    Key,
    Operations,
    RunRow,
    StoredAnswer,
    dataset_of,
    from_row,
    record_row,
    to_row,
)
from evalstone.types import Record

_RUNS = sa.select(schema.runs).order_by(schema.runs.c.position.desc())


class Ledger:
    """An open ledger. Synchronous; runs use `AsyncLedger`.

    Args:
        url: A path, `sqlite:///path/to/file.db`, or `postgresql://user@host/database`. Missing files, folders and
            tables are created.

    Raises:
        ConfigError: The URL is neither of these.
        LedgerError: It can't be opened, is not a ledger, or is one of another schema version.
    """

    def __init__(self, url: str | Path) -> None:
        self.dialect = dialect_of(url)
        self.engine = self.dialect.engine()
        with self._explained():
            self.connection = self.engine.connect()
            try:
                schema.prepare(self.connection, self.dialect)
            except BaseException:
                self.close()
                raise
        self.leases = Leases(self.dialect)
        self._upsert_answer = self.dialect.text(schema.UPSERT_ANSWER)
        self._upsert_record = self.dialect.text(schema.UPSERT_RECORD)
        self._lookup = self.dialect.text(self.dialect.lookup)

    @property
    def location(self) -> str:
        """The ledger's file, or its URL without a password."""
        return self.dialect.location

    def close(self) -> None:
        """Close the ledger. It can't be used afterwards."""
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
            raise kind(self.dialect.explain(error)) from None

    @contextmanager
    def transaction(self, *, writing: bool = False) -> Generator[sa.Connection]:
        """A transaction. Database errors are raised as LedgerError."""
        with self._explained(), transaction(self.connection, writing=writing) as connection:
            yield connection

    def insert_missing(self, connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> int:
        """Within a transaction: insert the rows whose keys are new, and return how many were."""
        if not rows:
            return 0
        statement = self.dialect.insert(table).on_conflict_do_nothing()
        return connection.execute(statement, rows, execution_options={"preserve_rowcount": True}).rowcount

    def answers(self, judge: str, questions: Sequence[str], *, repeat_index: int = 0) -> dict[str, StoredAnswer]:
        """A judge's stored answers, by fingerprint of the question."""
        with self.transaction() as connection:
            found = self._look_up(connection, [Key(question, judge, repeat_index) for question in questions])
        return {key.question: answer for key, answer in found.items()}

    def write(self, answers: Iterable[StoredAnswer] = (), records: Iterable[tuple[str, Record]] = ()) -> None:
        """Write answers, and records with the id of their run, in one transaction. Existing rows are replaced."""
        self.apply(Operations(list(answers), list(records)))

    def apply(self, operations: Operations) -> Applied:
        """Perform reads and writes. The writes are atomic, and durable when this returns."""
        applied = Applied()
        writing = bool(operations.answers or operations.records or operations.released or operations.drop_expired)
        missing: set[Key] = set()
        if writing or operations.lookups or operations.claims:
            with self.transaction(writing=writing) as connection:
                if operations.drop_expired:
                    self.leases.drop_expired(connection)
                if operations.answers:
                    # Every process uses the same order, so no two of them wait for each other.
                    now = time.time()
                    answers = sorted(operations.answers, key=attrgetter("key"))
                    rows = [{**to_row(answer), "written": now} for answer in answers]
                    execute_rows(connection, self._upsert_answer, rows)
                if operations.records:
                    rows = [record_row(run, record) for run, record in operations.records]
                    execute_rows(connection, self._upsert_record, rows)
                self.leases.release(connection, operations.released)
                applied.answers = self._look_up(connection, operations.lookups | operations.claims)
                missing = operations.claims - applied.answers.keys()
                if missing and writing and self.dialect.single_writer:
                    applied.leased = self.leases.acquire(connection, missing)
                    return applied
        if missing:
            with self.transaction(writing=True) as connection:
                applied.leased = self.leases.acquire(connection, missing)
                # Another process may have answered between the lookup and the lease.
                applied.answers.update(late := self._look_up(connection, applied.leased))
                self.leases.release(connection, late)
                applied.leased -= late.keys()
        return applied

    def _look_up(self, connection: sa.Connection, keys: Iterable[Key]) -> dict[Key, StoredAnswer]:
        found: dict[Key, StoredAnswer] = {}
        if keys := list(keys):
            for row in connection.exec_driver_sql(self._lookup, {"keys": json.dumps(keys)}):
                answer = from_row(StoredAnswer, row)
                found[answer.key] = answer
        return found

    def start_run(self, row: RunRow) -> None:
        """Add a run and its dataset version, and lease the run. Call it before the run's first record."""
        dataset = dataset_of(row)
        with self.transaction(writing=True) as connection:
            connection.execute(sa.insert(schema.runs), to_row(row))
            self.insert_missing(connection, schema.datasets, [to_row(dataset)] if dataset else [])
            self.leases.acquire(connection, [run_key(row.id)])

    def finish_run(self, run: str, finished: str, metadata: Mapping[str, Any]) -> None:
        """Mark a run as complete."""
        query = sa.update(schema.runs).where(schema.runs.c.id == run)
        with self.transaction(writing=True) as connection:
            connection.execute(query.values(finished=finished, metadata=json.dumps(metadata)))
            self.leases.release(connection, [run_key(run)])

    def resume(self, plan: str) -> RunRow | None:
        """The last unfinished run of this plan, leased; None if there is none, or another process works on it."""
        row = self._run(schema.runs.c.plan == plan, schema.runs.c.finished.is_(None))
        if row is None:
            return None
        with self.transaction(writing=True) as connection:
            self.leases.drop_expired(connection)
            return row if self.leases.acquire(connection, [run_key(row.id)]) else None

    def run(self, run: str) -> RunRow | None:
        """The run with this id; "last" is the run that was started last."""
        return self._run() if run == "last" else self._run(schema.runs.c.id == run)

    def _run(self, *conditions: Any) -> RunRow | None:
        with self.transaction() as connection:
            row = connection.execute(_RUNS.where(*conditions).limit(1)).first()
        return None if row is None else from_row(RunRow, row)

    def runs(self, limit: int | None = None) -> list[RunRow]:
        """All runs, or the last `limit` runs, last run first."""
        with self.transaction() as connection:
            return [from_row(RunRow, row) for row in connection.execute(_RUNS.limit(limit))]

    def records(self, run: str) -> list[Record]:
        """The records of a run, in the order in which they were first written."""
        return [record for _, record in self.records_after(run, None)]

    def records_after(self, run: str, position: int | None, limit: int | None = None) -> list[tuple[int, Record]]:
        """Records of a run first written after a position (None: from the start), each with its own position."""
        table = schema.records
        query = sa.select(table.c.position, table.c.body).where(table.c.run == run).order_by(table.c.position)
        if position is not None:
            query = query.where(table.c.position > position)
        with self.transaction() as connection:
            rows = connection.execute(query.limit(limit)).all()
        return [(at, Record.from_dict(json.loads(body))) for at, body in rows]

    def compact(self) -> None:
        """Return the space of deleted rows to the file system."""
        with self._explained():
            self.dialect.compact(self.connection)

    def renew_leases(self) -> None:
        """Extend this ledger's leases."""
        with self.transaction(writing=True) as connection:
            self.leases.renew(connection)

    def release_leases(self) -> None:
        """Release all of this ledger's leases."""
        try:
            with self.transaction(writing=True) as connection:
                connection.execute(sa.delete(schema.leases).where(schema.leases.c.owner == self.leases.owner))
        except LedgerError:
            self.leases.abandon()
            raise
