"""The synchronous ledger: answers, records, runs, samples and leases, on SQLite and PostgreSQL alike.

No secrets are written: a judge's identity contains no key, and its headers only as a hash. No row contains the
ledger's URL.

A lease records which process is asking a question or working on a run, so that processes on one ledger share the work.
It is a row that expires unless its owner renews it. If the owner is gone, the lease expires; on the same machine, it is
dropped at once, because the process is known to be dead. The lease of a run has the run's id as its question, and no
judge.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import secrets
import threading
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import starmap
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa
import sqlalchemy.exc

from evalstone._core.redaction import redacted
from evalstone._core.validation import read_data
from evalstone.datasets.stored import sample_of
from evalstone.errors import ConfigError, LedgerConnectionError, LedgerError
from evalstone.ledger import base, schema
from evalstone.ledger.base import (
    INVALID_ROW,
    Applied,
    Key,
    Operations,
    Payment,
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
from evalstone.types import Record, RunMetadata, Sample

LEASE_SECONDS = 30.0
"""Seconds until a lease expires without renewal."""
FINISHED_CALLS = "Finished calls are in the ledger"
RECONNECT = 60.0
"""Seconds to wait for a server that has closed the connection, or has no free one."""
FIRST_PAUSE, MAX_PAUSE = 0.1, 5.0
"""Seconds between attempts to connect."""
SAMPLES_PER_READ = 1000

_STORED = schema.items.join(schema.samples, schema.items.c.sample == schema.samples.c.hash)
_RUNS = sa.select(schema.runs).order_by(schema.runs.c.position.desc())
_abandoned: set[str] = set()
"""Closed owners of this process that could not release their leases, for example on a full disk."""


class Ledger:
    """An open ledger. Synchronous; runs use `AsyncLedger`.

    Args:
        url: A path, `sqlite:///path/to/file.db`, or `postgresql://user@host/database`. Missing files and folders are
            created. In a text, `$NAME` and `${NAME}` are environment variables, `$$` is a dollar sign.
        prepare: Whether to create missing tables, and refuse another schema version.

    Raises:
        ConfigError: The URL is invalid, or the database isn't a ledger, or has another schema version.
        LedgerError: The ledger is damaged, locked or unreachable.
    """

    def __init__(self, url: str | Path, *, prepare: bool = True) -> None:
        path = file_of(url)
        self.dialect = schema.PostgreSQL(str(base.resolved(url))) if path is None else schema.SQLite(path)
        self.location = self.dialect.location
        """The ledger's file, or its URL without a password."""
        self.owner = f"{_machine()} {os.getpid()} {secrets.token_hex(4)}"
        """The owner of this ledger's leases."""
        self.lease_seconds = LEASE_SECONDS
        self._run: Key | None = None
        """The lease of the run that this ledger works on."""
        self._written = self._repeats = False
        deadline = time.monotonic() + RECONNECT
        while not self._open(deadline, prepare=prepare):
            time.sleep(FIRST_PAUSE)

    def _open(self, deadline: float, *, prepare: bool) -> bool:
        """Connect and prepare. Returns False if the connection was lost immediately and there is time to try again."""
        try:
            self.connection = self._connect(deadline)
            try:
                if prepare:
                    self._prepare(time.monotonic() + base.WAIT)
            except LedgerConnectionError:
                self.close()
                if time.monotonic() > deadline:
                    raise
                return False
            except BaseException:
                self.close()
                raise
        except sqlalchemy.exc.DBAPIError as error:
            raise self.dialect.explain(error, written=False) from None
        return True

    def _connect(self, deadline: float) -> sa.Connection:
        """A connection. It waits for a server that has no free connection or is starting."""
        pause = FIRST_PAUSE
        while True:
            try:
                return self.dialect.engine.connect()
            except sqlalchemy.exc.DBAPIError as error:
                if not self.dialect.may_pass(error) or time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE)

    def reconnect(self, lost: LedgerConnectionError, leased: Collection[Key], given_up: threading.Event) -> None:
        """Reconnect after the server closed the connection, with increasing waits, and reacquire the leases.

        Operations in flight may have been committed or not. Repeating them is harmless, because leases that this owner
        already has count as acquired.

        Args:
            lost: The error to raise after `RECONNECT` seconds.
            leased: The questions that are being asked.
            given_up: An event that ends the waiting.

        Raises:
            LedgerError: There is no connection, or another process has taken over the run meanwhile.
        """
        deadline, pause, self._repeats = time.monotonic() + RECONNECT, FIRST_PAUSE, True
        while True:
            self.close()
            if given_up.wait(pause) or time.monotonic() > deadline:
                message = "" if given_up.is_set() else f" and could not be restored in {RECONNECT:g} seconds"
                text = str(lost).replace(" was lost", f" was lost{message}", 1)
                raise LedgerError(f"{text}. {FINISHED_CALLS}") from None
            pause = min(2 * pause, MAX_PAUSE)
            try:
                self.connection = self.dialect.engine.connect()
                with self.transaction(writing=True) as connection:
                    connection.exec_driver_sql(
                        self.dialect.sql.renew, {"owner": self.owner, "seconds": self.lease_seconds}
                    )
                    needed = {*leased, self._run} - {None}
                    held = self._acquire(connection, cast("set[Key]", needed)) if needed else set[Key]()
            except (LedgerConnectionError, sqlalchemy.exc.DBAPIError) as error:
                if isinstance(error, LedgerConnectionError):
                    continue
                explained = self.dialect.explain(error, written=False)
                if isinstance(explained, LedgerConnectionError):
                    continue
                raise explained from None
            if self._run is not None and self._run not in held:
                message = (
                    f"another process went on with run {self._run.question} while the connection to the ledger was lost"
                )
                raise LedgerError(f"{message}. {FINISHED_CALLS}")
            return

    def _prepare(self, deadline: float) -> None:
        """Create the tables in an empty database, and configure it. It waits until the deadline at most."""
        with self.transaction() as connection:
            exists = self.version(connection)
        self.dialect.configure(connection, deadline)
        if not exists:
            self.dialect.set_busy_timeout(connection, deadline - time.monotonic())
            with self.transaction(writing=True):
                if self.dialect.lock_schema:
                    connection.exec_driver_sql(self.dialect.lock_schema)
                if not self.version(connection):  # unless another process has created them meanwhile
                    schema.metadata.create_all(connection, checkfirst=False)
                    connection.execute(sa.insert(schema.ledger_version).values(version_num=schema.SCHEMA_VERSION))
        self.dialect.set_busy_timeout(connection, base.WAIT)
        self.dialect.remember_files()

    def version(self, connection: sa.Connection, *, exact: bool = True) -> str:
        """The schema version; "" for an empty database.

        Raises:
            ConfigError: The database isn't a ledger; if `exact`, also for another version.
        """
        columns = set(map(tuple, connection.exec_driver_sql(self.dialect.columns)))
        if not columns:
            return ""
        if ("ledger_version", "version_num") not in columns:
            tables = _listed({table for table, _ in columns})
            raise ConfigError(
                f"{self.location} is not an evalstone ledger: it is a database with the tables {tables}. "
                "Name another ledger with --ledger"
            )
        version = str(connection.scalar(sa.select(schema.ledger_version.c.version_num)) or "unknown")
        differs = ""
        if version == schema.SCHEMA_VERSION and columns != schema.ALL_COLUMNS:
            ours = {(table, column) for table, column in columns if table in schema.metadata.tables}
            if differs := _listed({f"{table}.{column}" for table, column in ours ^ schema.ALL_COLUMNS}):
                differs = f", but it differs in {differs}"
        if differs or (exact and version != schema.SCHEMA_VERSION):
            newer = version.isdecimal() and int(version) > int(schema.SCHEMA_VERSION)
            problem = f"{self.location} was made by another version of evalstone (schema {version}{differs})"
            advice = f"{'Update evalstone, or name' if newer else 'Name'} another ledger with --ledger"
            raise ConfigError(f"{problem}; this version reads schema {schema.SCHEMA_VERSION}. {advice}")
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
        """A transaction. Database errors become LedgerError, or ConfigError if it is the wrong database.

        A writing transaction waits for other writers before it reads, so its reads remain valid.
        """
        self.dialect.check_files()
        if self.connection.closed:  # by `reconnect`, which gave up
            raise LedgerConnectionError(f"the connection to the ledger {self.location} was lost")
        try:
            with self.connection.begin():
                if self.dialect.single_writer:
                    self.connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
                yield self.connection
        except sqlalchemy.exc.DBAPIError as error:
            raise self.dialect.explain(error, written=self._written) from None
        self._written = self._written or writing

    def insert_missing(self, connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> int:
        """Within a transaction: insert the rows whose keys are new, and return how many were."""
        if not rows:
            return 0
        options = {"preserve_rowcount": True}
        statement = self.dialect.sql.insert[table]
        return connection.exec_driver_sql(statement, list(rows), execution_options=options).rowcount

    def answers(self, judge: str, questions: Sequence[str], *, repeat_index: int = 0) -> dict[str, StoredAnswer]:
        """A judge's stored answers, by fingerprint of the question."""
        stored = self.answers_to([Key(question, judge, repeat_index) for question in questions])
        return {key.question: answer for key, answer in stored.items()}

    def answers_to(self, keys: Collection[Key]) -> dict[Key, StoredAnswer]:
        """The stored answers of these keys."""
        with self.transaction() as connection:
            return self._look_up(connection, keys)

    def write(self, answers: Iterable[StoredAnswer] = (), records: Iterable[tuple[str, Record]] = ()) -> None:
        """Write answers, and records with the id of their run, in one transaction. Existing rows are replaced."""
        self.apply(Operations(list(answers), [(run, record, None) for run, record in records]))

    def apply(self, operations: Operations) -> Applied:
        """Perform reads and writes. The writes are atomic, and durable when this returns."""
        applied = Applied()
        sql, claims = self.dialect.sql, operations.claims
        changes = operations.answers or operations.records or operations.released or operations.payment
        writing = bool(changes or operations.renew or operations.drop_expired)
        with self.transaction(writing=writing) as connection:
            if operations.payment is not None:
                # First, because `prune` locks the runs before anything else.
                self.pay(connection, operations.payment)
            if operations.renew:
                connection.exec_driver_sql(sql.renew, {"owner": self.owner, "seconds": self.lease_seconds})
            if operations.drop_expired:
                self.drop_expired(connection)
            if operations.answers:
                # All processes lock rows in the same order, so there are no deadlocks.
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

    def pay(self, connection: sa.Connection, payment: Payment) -> None:
        """Within a transaction: add a payment to the cost of its run, unless it is the last one that was added."""
        connection.exec_driver_sql(self.dialect.sql.pay, vars(payment))

    def _look_up(self, connection: sa.Connection, keys: Collection[Key]) -> dict[Key, StoredAnswer]:
        stored: dict[Key, StoredAnswer] = {}
        if keys:
            for row in connection.exec_driver_sql(self.dialect.sql.look_up, {"keys": json.dumps(list(keys))}):
                with self.reading(f"the answer to {row.question}"):
                    answer = from_row(StoredAnswer, row)
                stored[answer.key] = answer
        return stored

    def _acquire(self, connection: sa.Connection, keys: Collection[Key]) -> set[Key]:
        """Acquire the leases that no owner holds, and return their keys. This owner must not hold any of `keys`."""
        # All processes lock rows in the same order, so there are no deadlocks.
        values = {"keys": json.dumps(sorted(keys)), "owner": self.owner, "seconds": self.lease_seconds}
        options = {"preserve_rowcount": True}
        count = connection.exec_driver_sql(self.dialect.sql.acquire, values, execution_options=options).rowcount
        if count == len(keys) or (count == 0 and not self._repeats):
            return set(keys) if count else set()
        leases = schema.leases.c
        query = sa.select(leases.question, leases.judge, leases.repeat_index).where(leases.owner == self.owner)
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
            # Other ledgers of this process know that this one is closed. Other processes wait for the leases to expire.
            _abandoned.add(self.owner)
            raise

    def start_run(self, row: RunRow) -> None:
        """Add a run and its dataset version, and lease the run. Call it before the run's first record."""
        dataset = dataset_row(row)
        with self.transaction(writing=True) as connection:
            columns = {**to_row(row), "dataset": dataset and dataset["version"], "payment": None}
            self.insert_missing(connection, schema.runs, [columns])
            if dataset:
                connection.exec_driver_sql(self.dialect.sql.insert[schema.datasets], dataset)
            self._acquire(connection, [Key(row.id, "")])
        self._run = Key(row.id, "")

    def finish_run(self, run: str, finished: str | None, metadata: Mapping[str, Any]) -> None:
        """Store the results of a run that has ended. finished: The time of completion; None if it ended early."""
        query = sa.update(schema.runs).where(schema.runs.c.id == run)
        with self.transaction(writing=True) as connection:
            connection.execute(query.values(finished=finished, metadata=redacted(json.dumps(metadata))))
            self._release(connection, [Key(run, "")])
        self._run = None
        # A run whose results were deleted isn't complete.
        self.dialect.check_files(last=True)
        try:
            self.dialect.read_back(run)
        except sqlalchemy.exc.DBAPIError as error:
            raise self.dialect.explain(error, written=True) from None

    def resume(self, plan: str) -> RunRow | None:
        """The last unfinished run of this plan, leased; None if there is none, or another process works on it."""
        query = _RUNS.where(schema.runs.c.plan == plan, schema.runs.c.finished.is_(None)).limit(1)
        with self.transaction(writing=True) as connection:
            row = connection.execute(query).first()
            if row is None:
                return None
            self.drop_expired(connection)
            acquired = self._acquire(connection, [Key(row.id, "")])
        self._run = next(iter(acquired), None)
        return self._run_of(row) if acquired else None

    def unfinished(self, plan: str) -> str | None:
        """The id of the run that `resume` would return; None if another process is working on it."""
        runs = schema.runs.c
        query = sa.select(runs.id).where(runs.plan == plan, runs.finished.is_(None)).order_by(runs.position.desc())
        with self.transaction() as connection:
            return connection.scalar(query.limit(1))

    def run(self, run: str) -> RunRow | None:
        """The run with this id; "last" is the most recently started run."""
        return next(iter(self.runs(1, None if run == "last" else run)), None)

    def runs(self, limit: int | None = None, run: str | None = None) -> list[RunRow]:
        """All runs, most recent first: at most `limit`, and only the one with this id if it is set."""
        query = _RUNS if run is None else _RUNS.where(schema.runs.c.id == run)
        with self.transaction() as connection:
            rows = connection.execute(query.limit(limit)).all()
        return [self._run_of(row) for row in rows]

    def _run_of(self, row: sa.Row[Any]) -> RunRow:
        with self.reading(f"run {row.id}"):
            run = from_row(RunRow, row)
            read_data(RunMetadata, run.metadata)
            return run

    @contextmanager
    def reading(self, what: str) -> Generator[None]:
        """A context for reading a row. Raises LedgerError, naming `what`, if the row is invalid."""
        try:
            yield
        except INVALID_ROW as error:
            message = f"{what} in the ledger {self.location} is damaged ({type(error).__name__}: {error})"
            raise LedgerError(f"{message}. To check the ledger, run `evalstone ledger verify`") from None

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
        with self.reading(f"a record of run {run}"):
            return [(at, Record.from_dict(json.loads(body))) for at, body in rows]

    def samples(self, dataset: str) -> int:
        """The number of stored samples of a dataset version."""
        query = sa.select(sa.func.count()).select_from(_STORED).where(schema.items.c.dataset == dataset)
        with self.transaction() as connection:
            return connection.scalar(query) or 0

    def write_samples(self, dataset: str, first: int, samples: Iterable[Sample]) -> None:
        """Write samples of a dataset version, from position `first` on, in one transaction. Existing rows are kept."""
        bodies, items = sample_rows(dataset, first, samples)
        with self.transaction(writing=True) as connection:
            self.insert_missing(connection, schema.samples, bodies)
            self.insert_missing(connection, schema.items, items)

    def samples_after(self, dataset: str, place: int, limit: int) -> list[tuple[int, Sample]]:
        """The samples of a dataset version after a position, each with its own position."""
        items = schema.items.c
        query = sa.select(items.place, schema.samples.c.body).select_from(_STORED).order_by(items.place).limit(limit)
        with self.transaction() as connection:
            rows = connection.execute(query.where(items.dataset == dataset, items.place > place)).all()
        with self.reading(f"a sample of dataset {dataset}"):
            return [(at, sample_of(json.loads(body))) for at, body in rows]

    def records_in_order(self, run: RunRow) -> list[Record]:
        """The records of a run by sample as in the dataset (as written if it is not stored), trial and scorer."""
        items, records = schema.items.c, self.records(run.id)
        scorers = {scorer["signature"]: place for place, scorer in enumerate(run.metadata["scorers"])}
        query = sa.select(items.id).where(items.dataset == run.metadata["dataset"]["version"]).order_by(items.place)
        with self.transaction() as connection:
            places = {id: place for place, id in enumerate(connection.scalars(query))}
        for record in records:
            places.setdefault(storable(record.sample), len(places))

        def place(record: Record) -> tuple[int, int, int]:
            return places[storable(record.sample)], record.trial or 0, scorers.get(record.scorer, -1)

        return sorted(records, key=place)

    def compact(self) -> None:
        """Return the space of deleted rows to the file system."""
        try:
            self.dialect.compact(self.connection)
        except sqlalchemy.exc.DBAPIError as error:
            raise self.dialect.explain(error, written=self._written) from None


@dataclass(frozen=True)
class LedgerSamples(Iterable[Sample]):
    """The samples of a dataset version in a ledger. Each iteration reads them again, a few at a time.

    Iterating raises LedgerError if the ledger can't be read.
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
    """An identifier of the process ID namespace: the machine, its boot, and the container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node().replace(" ", "-") or "unnamed"


def _is_dead(owner: str) -> bool:
    """Whether an owner is closed, or a dead process of this machine. False if that can't be determined."""
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
