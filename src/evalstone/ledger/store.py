"""The synchronous ledger: answers, records, runs, samples and leases, on SQLite and PostgreSQL alike.

Nothing secret is written: a judge's identity contains no key and its headers as a hash, and no row the ledger's URL.

A lease says which process is asking a question or working on a run, so processes on one ledger share the work. It is a
row that expires unless its owner renews it. When the owner is gone the lease expires, or is dropped at once if its
process is known to be dead, which is possible on the same machine. The lease of a run has the run's id in place of a
question, and no judge.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import secrets
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import starmap
from operator import attrgetter
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import sqlalchemy.exc

from evalstone._core.redaction import redacted
from evalstone.datasets.stored import sample_of
from evalstone.errors import LedgerError
from evalstone.ledger import base, schema
from evalstone.ledger.base import (
    Applied,
    Key,
    Operations,
    RunRow,
    StoredAnswer,
    dataset_row,
    file_of,
    from_row,
    record_row,
    sample_rows,
    storable,
    to_row,
)
from evalstone.types import Record, Sample

LEASE_SECONDS = 30.0
"""How long a lease lasts without renewal."""
SAMPLES_PER_READ = 1000

_STORED = schema.items.join(schema.samples, schema.items.c.sample == schema.samples.c.hash)
_RUNS = sa.select(schema.runs).order_by(schema.runs.c.position.desc())
_abandoned: set[str] = set()
"""Closed owners of this process that could not release their leases, for example on a full disk."""


class Ledger:
    """An open ledger. Synchronous; runs use `AsyncLedger`.

    Args:
        url: A path, `sqlite:///path/to/file.db`, or `postgresql://user@host/database`. Missing files and folders are
            created.
        prepare: Whether to create missing tables, and refuse another schema version.

    Raises:
        ConfigError: The URL is neither of these.
        LedgerError: It can't be opened, is not a ledger, or is one of another schema version.
    """

    def __init__(self, url: str | Path, *, prepare: bool = True) -> None:
        path = file_of(url)
        self.dialect = schema.PostgreSQL(str(url)) if path is None else schema.SQLite(path)
        self.location = self.dialect.location
        """The ledger's file, or its URL without a password."""
        self.owner = f"{_machine()} {os.getpid()} {secrets.token_hex(4)}"
        """The owner of this ledger's leases."""
        self.lease_seconds = LEASE_SECONDS
        try:
            self.connection = self.dialect.engine.connect()
            try:
                if prepare:
                    self._prepare(time.monotonic() + base.WAIT)
            except BaseException:
                self.close()
                raise
        except sqlalchemy.exc.DBAPIError as error:
            raise self.dialect.explain(error) from None

    def _prepare(self, deadline: float) -> None:
        """Create the tables in an empty database, and configure it. All waiting ends at the deadline."""
        with self.transaction() as connection:
            exists = self.version(connection)
        self.dialect.configure(connection, deadline)
        if not exists:
            self.dialect.set_busy_timeout(connection, deadline - time.monotonic())
            with self.transaction(writing=True):
                if self.dialect.lock_schema:
                    connection.exec_driver_sql(self.dialect.lock_schema)
                if not self.version(connection):  # no other process has created them meanwhile
                    schema.metadata.create_all(connection, checkfirst=False)
                    connection.execute(sa.insert(schema.ledger_version).values(version_num=schema.SCHEMA_VERSION))
        self.dialect.set_busy_timeout(connection, base.WAIT)

    def version(self, connection: sa.Connection, *, exact: bool = True) -> str:
        """The schema version; "" for an empty database.

        Raises:
            LedgerError: The database is not a ledger or, if `exact`, one of another version.
        """
        found = set(map(tuple, connection.exec_driver_sql(self.dialect.columns)))
        if not found:
            return ""
        if ("ledger_version", "version_num") not in found:
            tables = _listed({table for table, _ in found})
            raise LedgerError(
                f"{self.location} is not an evalstone ledger: it is a database with the tables {tables}. "
                "Name another ledger with --ledger"
            )
        version = str(connection.scalar(sa.select(schema.ledger_version.c.version_num)) or "unknown")
        differs = ""
        if version == schema.SCHEMA_VERSION and found != schema.ALL_COLUMNS:
            ours = {(table, column) for table, column in found if table in schema.metadata.tables}
            if differs := _listed({f"{table}.{column}" for table, column in ours ^ schema.ALL_COLUMNS}):
                differs = f", but it differs in {differs}"
        if differs or (exact and version != schema.SCHEMA_VERSION):
            newer = version.isdecimal() and int(version) > int(schema.SCHEMA_VERSION)
            made = f"{self.location} was made by another version of evalstone (schema {version}{differs})"
            advice = f"{'Update evalstone, or name' if newer else 'Name'} another ledger with --ledger"
            raise LedgerError(f"{made}; this version reads schema {schema.SCHEMA_VERSION}. {advice}")
        return version

    def close(self) -> None:
        """Close the ledger. It can't be used afterwards."""
        self.connection.close()
        self.dialect.engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @contextmanager
    def transaction(self, *, writing: bool = False) -> Generator[sa.Connection]:
        """A transaction. Database errors are raised as LedgerError.

        A writing one waits for other writers before it reads, so what it reads stays true.
        """
        try:
            with self.connection.begin():
                if self.dialect.single_writer:
                    self.connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
                yield self.connection
        except sqlalchemy.exc.DBAPIError as error:
            raise self.dialect.explain(error) from None

    def insert_missing(self, connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> int:
        """Within a transaction: insert the rows whose keys are new, and return how many were."""
        if not rows:
            return 0
        options = {"preserve_rowcount": True}
        statement = self.dialect.sql.insert[table]
        return connection.exec_driver_sql(statement, list(rows), execution_options=options).rowcount

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
        sql, claims = self.dialect.sql, operations.claims
        changes = operations.answers or operations.records or operations.released
        writing = bool(changes or operations.renew or operations.drop_expired)
        with self.transaction(writing=writing) as connection:
            if operations.renew:
                connection.exec_driver_sql(sql.renew, {"owner": self.owner, "seconds": self.lease_seconds})
            if operations.drop_expired:
                self.drop_expired(connection)
            if operations.answers:
                # Every process uses the same order, so no two of them wait for each other.
                rows = list(map(to_row, sorted(operations.answers, key=attrgetter("key"))))
                connection.exec_driver_sql(sql.upsert_answer, rows)
            if operations.records:
                connection.exec_driver_sql(sql.upsert_record, list(starmap(record_row, operations.records)))
            self._release(connection, operations.released)
            applied.answers = self._look_up(connection, operations.lookups | claims)
            missing = claims - applied.answers.keys()
            if missing and writing and self.dialect.single_writer:
                applied.leased = self._acquire(connection, missing)
                return applied
        if missing:
            with self.transaction(writing=True) as connection:
                applied.leased = self._acquire(connection, missing)
                # Another process may have answered between the lookup and the lease.
                applied.answers.update(late := self._look_up(connection, applied.leased))
                self._release(connection, late)
                applied.leased -= late.keys()
        return applied

    def _look_up(self, connection: sa.Connection, keys: Collection[Key]) -> dict[Key, StoredAnswer]:
        found: dict[Key, StoredAnswer] = {}
        if keys:
            for row in connection.exec_driver_sql(self.dialect.sql.look_up, {"keys": json.dumps(list(keys))}):
                answer = from_row(StoredAnswer, row)
                found[answer.key] = answer
        return found

    def _acquire(self, connection: sa.Connection, keys: Collection[Key]) -> set[Key]:
        """Acquire the leases that nobody holds, and return their keys. keys: none that this owner already holds."""
        # Every process uses the same order, so no two of them wait for each other.
        values = {"keys": json.dumps(sorted(keys)), "owner": self.owner, "seconds": self.lease_seconds}
        options = {"preserve_rowcount": True}
        count = connection.exec_driver_sql(self.dialect.sql.acquire, values, execution_options=options).rowcount
        if count in (0, len(keys)):
            return set(keys) if count else set()
        held = schema.leases.c
        query = sa.select(held.question, held.judge, held.repeat_index).where(held.owner == self.owner)
        return {Key(*row) for row in connection.execute(query)} & set(keys)

    def _release(self, connection: sa.Connection, keys: Collection[Key]) -> None:
        if keys:
            values = {"keys": json.dumps(list(keys)), "owner": self.owner}
            connection.exec_driver_sql(self.dialect.sql.release, values)

    def drop_expired(self, connection: sa.Connection) -> None:
        """Within a transaction: delete expired leases, and those of dead processes."""
        owner = schema.leases.c.owner
        if dead := [each for each in connection.scalars(sa.select(owner).distinct()) if _is_dead(each)]:
            connection.execute(sa.delete(schema.leases).where(owner.in_(dead)))
        connection.exec_driver_sql(self.dialect.sql.drop_expired)

    def release_leases(self) -> None:
        """Release all of this ledger's leases."""
        try:
            with self.transaction(writing=True) as connection:
                connection.execute(sa.delete(schema.leases).where(schema.leases.c.owner == self.owner))
        except LedgerError:
            # Others in this process know now that it is closed. Other processes wait for the leases to expire.
            _abandoned.add(self.owner)
            raise

    def start_run(self, row: RunRow) -> None:
        """Add a run and its dataset version, and lease the run. Call it before the run's first record."""
        dataset = dataset_row(row)
        with self.transaction(writing=True) as connection:
            connection.execute(sa.insert(schema.runs), to_row(row) | {"dataset": dataset and dataset["version"]})
            if dataset:
                connection.exec_driver_sql(self.dialect.sql.insert[schema.datasets], dataset)
            self._acquire(connection, [Key(row.id, "")])

    def finish_run(self, run: str, finished: str | None, metadata: Mapping[str, Any]) -> None:
        """Keep the results of a run that has ended. finished: when it was completed; None if it ended early."""
        query = sa.update(schema.runs).where(schema.runs.c.id == run)
        with self.transaction(writing=True) as connection:
            connection.execute(query.values(finished=finished, metadata=redacted(json.dumps(metadata))))
            self._release(connection, [Key(run, "")])

    def resume(self, plan: str) -> RunRow | None:
        """The last unfinished run of this plan, leased; None if there is none, or another process works on it."""
        query = _RUNS.where(schema.runs.c.plan == plan, schema.runs.c.finished.is_(None)).limit(1)
        with self.transaction(writing=True) as connection:
            row = connection.execute(query).first()
            if row is None:
                return None
            self.drop_expired(connection)
            return from_row(RunRow, row) if self._acquire(connection, [Key(row.id, "")]) else None

    def run(self, run: str) -> RunRow | None:
        """The run with this id; "last" is the run that was started last."""
        return next(iter(self.runs(1, None if run == "last" else run)), None)

    def runs(self, limit: int | None = None, run: str | None = None) -> list[RunRow]:
        """All runs, or the last `limit` runs, last run first; only those with this id, if one is given."""
        query = _RUNS if run is None else _RUNS.where(schema.runs.c.id == run)
        with self.transaction() as connection:
            return [from_row(RunRow, row) for row in connection.execute(query.limit(limit))]

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

    def samples(self, dataset: str) -> int:
        """How many samples of a dataset version are stored."""
        query = sa.select(sa.func.count()).select_from(_STORED).where(schema.items.c.dataset == dataset)
        with self.transaction() as connection:
            return connection.scalar(query) or 0

    def write_samples(self, dataset: str, first: int, samples: Iterable[Sample]) -> None:
        """Write samples of a dataset version, from the place `first` on, in one transaction. Existing rows stay."""
        bodies, items = sample_rows(dataset, first, samples)
        with self.transaction(writing=True) as connection:
            self.insert_missing(connection, schema.samples, bodies)
            self.insert_missing(connection, schema.items, items)

    def samples_after(self, dataset: str, place: int, limit: int) -> list[tuple[int, Sample]]:
        """Samples of a dataset version after a place, each with its own place."""
        items = schema.items.c
        query = sa.select(items.place, schema.samples.c.body).select_from(_STORED).order_by(items.place).limit(limit)
        with self.transaction() as connection:
            rows = connection.execute(query.where(items.dataset == dataset, items.place > place)).all()
        return [(at, sample_of(json.loads(body))) for at, body in rows]

    def records_in_order(self, run: RunRow) -> list[Record]:
        """The records of a run in the order of its dataset and scorers; as written where samples are not stored."""
        items, records = schema.items.c, self.records(run.id)
        scorers = {scorer["signature"]: place for place, scorer in enumerate(run.metadata["scorers"])}
        query = sa.select(items.id).where(items.dataset == run.metadata["dataset"]["version"]).order_by(items.place)
        with self.transaction() as connection:
            places = {id: place for place, id in enumerate(connection.scalars(query))}
        for record in records:
            places.setdefault(storable(record.sample), len(places))
        return sorted(records, key=lambda record: (places[storable(record.sample)], scorers.get(record.scorer, -1)))

    def compact(self) -> None:
        """Return the space of deleted rows to the file system."""
        try:
            self.dialect.compact(self.connection)
        except sqlalchemy.exc.DBAPIError as error:
            raise self.dialect.explain(error) from None


@dataclass(frozen=True)
class LedgerSamples(Iterable[Sample]):
    """The samples of a dataset version in a ledger, read anew for each iteration, a few at a time.

    Iterating raises LedgerError when the ledger can't be read.
    """

    url: str = field(repr=False)
    dataset: str

    def __iter__(self) -> Iterator[Sample]:
        place = -1
        with Ledger(self.url) as ledger:
            while some := ledger.samples_after(self.dataset, place, SAMPLES_PER_READ):
                for place, sample in some:  # noqa: B007 - the last place is where the next part begins
                    yield sample


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


@functools.cache
def _machine() -> str:
    """Where a process number means the same process: the machine since it booted, and the container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node().replace(" ", "-") or "unnamed"


def _is_dead(owner: str) -> bool:
    """Whether an owner is closed, or a process of this machine that is gone. False where that can't be known."""
    if owner in _abandoned:
        return True
    machine, _, rest = owner.partition(" ")
    pid = rest.partition(" ")[0]
    if os.name != "posix" or machine != _machine() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False
