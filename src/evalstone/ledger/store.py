# ruff: noqa: S608 - statements are put together from our own names
"""The synchronous ledger: answers, records, runs and samples, on SQLite and PostgreSQL alike.

No secrets are written: a judge's identity contains no key, and its headers only as a hash. No row contains the
ledger's URL.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import starmap
from operator import attrgetter
from pathlib import Path
from typing import Any

from evalstone._core.front_ends import Setting
from evalstone._core.redaction import redacted
from evalstone.datasets.blocks import SampleBlock, block_rows
from evalstone.datasets.read_samples import ReadSamples
from evalstone.datasets.stored import record_line, sample_of
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
    existing,
    file_of,
    from_row,
    record_row,
    to_row,
)
from evalstone.ledger.database import Database
from evalstone.ledger.leases import Leases
from evalstone.ledger.postgresql import PostgreSQL
from evalstone.ledger.sqlite import SQLite
from evalstone.types import Record, Sample

FINISHED_CALLS = "Finished calls are in the ledger"
RECONNECT = 60.0
"""Seconds to wait for a server that has closed the connection, or has no free one."""
RECORDS_PER_READ = 2000
FIRST_PAUSE, MAX_PAUSE = 0.1, 5.0
"""Seconds between attempts to connect."""

_KEY = ", ".join(schema.answers.key)
_PAY = """
    UPDATE runs SET cost = cost + :cost, unpriced = unpriced + :unpriced, reserved = reserved + :reserved, payment = :id
    WHERE id = :run AND (payment IS NULL OR payment <> :id)
"""
_LOOK_UP = f"SELECT {schema.answers.names} FROM keys(:keys) AS wanted JOIN answers USING ({_KEY})"
_RUNS = f"SELECT {schema.runs.names} FROM runs"
_RUN_STATES = "SELECT id, finished FROM runs ORDER BY position DESC"
_LAST_UNFINISHED = "WHERE plan = :plan AND finished IS NULL ORDER BY position DESC LIMIT 1"
_SAMPLES = "FROM items JOIN blocks ON items.block = blocks.hash WHERE items.dataset = :dataset"


class Ledger:
    """An open ledger. Synchronous; runs use `AsyncLedger`.

    Args:
        url: A path, `sqlite:///path/to/file.db`, or `postgresql://user@host/database`. Missing files and folders are
            created. In a text, `$NAME` and `${NAME}` are environment variables, `$$` is a dollar sign.
        prepare: Whether to create missing tables, and refuse another schema version.
        read_only: Whether nothing is created or changed. A file that can't be written, in a folder that can't, is read
            too.

    Raises:
        ConfigError: The URL is invalid, or the database isn't a ledger, or has another schema version.
        LedgerError: The ledger is damaged, locked or unreachable.
    """

    def __init__(self, url: str | Path, *, prepare: bool = True, read_only: bool = False) -> None:
        path = file_of(url)
        self.database: Database = (
            PostgreSQL(str(base.resolved(url)), read_only=read_only)
            if path is None
            else SQLite(path, read_only=read_only)
        )
        self.location = self.database.location
        """The ledger's file, or its URL without a password."""
        self.leases = Leases(self.database)
        deadline = time.monotonic() + RECONNECT
        while not self._open(deadline, prepare=prepare):
            time.sleep(FIRST_PAUSE)

    def _open(self, deadline: float, *, prepare: bool) -> bool:
        """Connect and prepare. Returns False if the connection was lost immediately and there is time to try again."""
        try:
            self._connect(deadline)
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
        except self.database.error as error:
            raise self.database.explain(error, written=False) from None
        return True

    def _connect(self, deadline: float) -> None:
        """Connect. Waits for a server that has no free connection or is starting."""
        pause = FIRST_PAUSE
        while True:
            try:
                return self.database.connect()
            except self.database.error as error:
                if not self.database.may_pass(error) or time.monotonic() + pause > deadline:
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
        deadline, pause, self.leases.repeats = time.monotonic() + RECONNECT, FIRST_PAUSE, True
        while True:
            self.close()
            if given_up.wait(pause) or time.monotonic() > deadline:
                message = "" if given_up.is_set() else f" and could not be restored in {RECONNECT:g} seconds"
                text = str(lost).replace(" was lost", f" was lost{message}", 1)
                raise LedgerError(f"{text}. {FINISHED_CALLS}") from None
            pause = min(2 * pause, MAX_PAUSE)
            try:
                self.database.connect()
                with self.transaction(writing=True):
                    lost_run = self.leases.renew(leased)
            except (LedgerConnectionError, *self.database.error) as error:
                if isinstance(error, LedgerConnectionError):
                    continue
                explained = self.database.explain(error, written=False)
                if isinstance(explained, LedgerConnectionError):
                    continue
                raise explained from None
            if lost_run:
                raise self._taken_over("the connection to the ledger was lost")
            return

    def _taken_over(self, cause: str) -> LedgerError:
        return LedgerError(f"another process went on with run {self.leases.run} while {cause}. {FINISHED_CALLS}")

    def _prepare(self, deadline: float) -> None:
        """Create the tables in an empty database, and configure it. It waits until the deadline at most."""
        database = self.database
        with self.transaction():
            exists = self.version()
        if database.read_only:
            if not exists:
                raise ConfigError(f"{self.location} is an empty database; name a ledger with ", Setting("ledger", ...))
            return
        database.configure(deadline)
        if not exists:
            database.wait_for(deadline - time.monotonic())
            with self.transaction(writing=True):
                if database.lock_schema:
                    database.execute(database.lock_schema)
                if not self.version():  # unless another process has created them meanwhile
                    database.create()
                    database.execute(schema.ledger_version.insert, {"version_num": schema.SCHEMA_VERSION})
        database.wait_for(base.WAIT)
        database.remember_files()

    def version(self, *, exact: bool = True) -> str:
        """Within a transaction: the schema version; "" for an empty database.

        Raises:
            ConfigError: The database isn't a ledger; if `exact`, also for another version.
        """
        columns = self.database.columns()
        if not columns:
            return ""
        if ("ledger_version", "version_num") not in columns:
            tables = _listed({table for table, _ in columns})
            raise ConfigError(
                f"{self.location} is not an evalstone ledger: it is a database with the tables {tables}. "
                "Name another ledger with ",
                Setting("ledger", ...),
            )
        version = str(self.database.scalar("SELECT version_num FROM ledger_version") or "unknown")
        differs = ""
        if version == schema.SCHEMA_VERSION and columns != schema.ALL_COLUMNS:
            names = {table.name for table in schema.TABLES}
            ours = {(table, column) for table, column in columns if table in names}
            if differs := _listed({f"{table}.{column}" for table, column in ours ^ schema.ALL_COLUMNS}):
                differs = f", but it differs in {differs}"
        if differs or (exact and version != schema.SCHEMA_VERSION):
            newer = version.isdecimal() and int(version) > int(schema.SCHEMA_VERSION)
            problem = f"{self.location} was made by another version of evalstone (schema {version}{differs})"
            reads = f"this version reads schema {schema.SCHEMA_VERSION}"
            advice = f"{'Update evalstone, or name' if newer else 'Name'} another ledger with "
            raise ConfigError(f"{problem}; {reads}. {advice}", Setting("ledger", ...))
        return version

    def close(self) -> None:
        """Close the ledger. It can't be used afterwards."""
        self.database.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def transaction(self, *, writing: bool = False, snapshot: bool = False) -> AbstractContextManager[Database]:
        """A transaction: `Database.transaction`."""
        return self.database.transaction(writing=writing, snapshot=snapshot)

    def answers(self, judge: str, questions: Sequence[str], *, repeat_index: int = 0) -> dict[str, StoredAnswer]:
        """A judge's stored answers, by fingerprint of the question."""
        stored = self.answers_to([Key(question, judge, repeat_index) for question in questions])
        return {key.question: answer for key, answer in stored.items()}

    def answers_to(self, keys: Collection[Key]) -> dict[Key, StoredAnswer]:
        """The stored answers of these keys."""
        with self.transaction():
            return self._look_up(keys)

    def write(self, answers: Iterable[StoredAnswer] = (), records: Iterable[tuple[str, int, Record]] = ()) -> None:
        """Write answers, and records with their run and cell, in one transaction. Existing rows are replaced."""
        rows = [(run, cell, record.signature, record_line(record)) for run, cell, record in records]
        self.apply(Operations(list(answers), rows))

    def apply(self, operations: Operations) -> Applied:
        """Perform reads and writes. The writes are atomic, and durable when this returns."""
        applied, lost_run = Applied(), False
        claims, database, leases = operations.claims, self.database, self.leases
        released = () if leases.alone else operations.released
        changes = operations.answers or operations.records or released or operations.payment
        writing = bool(changes or operations.renew or operations.drop_expired)
        with self.transaction(writing=writing):
            if operations.payment is not None:
                # First, because `prune` locks the runs before anything else.
                self.pay(operations.payment)
            if operations.renew:
                lost_run = leases.renew()
            if operations.drop_expired:
                leases.drop_expired()
            if operations.answers:
                # All processes lock rows in the same order, so there are no deadlocks.
                rows = list(map(to_row, sorted(operations.answers, key=attrgetter("key"))))
                database.execute_many(schema.answers.upsert, rows)
            if operations.records:
                database.execute_many(schema.records.upsert, list(starmap(record_row, operations.records)))
            leases.release(released)
            applied.answers = self._look_up(operations.lookups | claims)
            missing = claims - applied.answers.keys()
            if missing and writing and database.single_writer and not leases.alone:
                applied.leased, missing = leases.acquire(missing), set[Key]()
        if lost_run:  # what was written stays
            raise self._taken_over("this one was suspended or blocked")
        if leases.alone:
            applied.leased = leases.acquire_in_memory(missing, operations.released)
        elif missing:
            with self.transaction(writing=True):
                applied.leased = leases.acquire(missing)
                # Another process may have answered between the lookup and the lease.
                applied.answers.update(late := self._look_up(applied.leased))
                leases.release(late)
                applied.leased -= late.keys()
        return applied

    def pay(self, payment: Payment) -> None:
        """Within a transaction: add a payment to the cost of its run, unless it is the last one that was added."""
        self.database.execute(_PAY, vars(payment))

    def _look_up(self, keys: Collection[Key]) -> dict[Key, StoredAnswer]:
        stored: dict[Key, StoredAnswer] = {}
        if keys:
            for values in self.database.execute(_LOOK_UP, {"keys": json.dumps(list(keys))}):
                row = schema.answers.row(values)
                with self.reading(f"the answer to {row['question']}"):
                    answer = from_row(StoredAnswer, row)
                stored[answer.key] = answer
        return stored

    def start_run(self, row: RunRow) -> None:
        """Add a run and its dataset version, and lease the run. Call it before the run's first record."""
        dataset = dataset_row(row)
        with self.transaction(writing=True) as database:
            columns = {**to_row(row), "dataset": dataset and dataset["version"], "payment": None}
            database.execute(schema.runs.insert, columns)
            if dataset:
                database.execute(schema.datasets.insert, dataset)
            self.leases.acquire_run(row.id)
        self.leases.run = row.id

    def finish_run(self, run: str, finished: str | None, metadata: Mapping[str, Any]) -> None:
        """Store the results of a run that has ended. finished: The time of completion; None if it ended early."""
        values = {"run": run, "finished": finished, "metadata": redacted(json.dumps(metadata))}
        with self.transaction(writing=True) as database:
            database.execute("UPDATE runs SET finished = :finished, metadata = :metadata WHERE id = :run", values)
            self.leases.release_run(run)
        self.leases.run = None
        # A run whose results were deleted isn't complete.
        self.database.check_files(last=True)
        try:
            self.database.read_back(run)
        except self.database.error as error:
            raise self.database.explain(error, written=True) from None

    def resume(self, plan: str) -> RunRow | None:
        """The last unfinished run of this plan, leased; None if there is none, or another process works on it."""
        with self.transaction(writing=True) as database:
            found = database.execute(f"{_RUNS} {_LAST_UNFINISHED}", {"plan": plan}).fetchone()
            if found is None:
                return None
            row = schema.runs.row(found)
            self.leases.drop_expired()
            acquired = self.leases.acquire_run(row["id"])
        self.leases.run = row["id"] if acquired else None
        return self._run_of(row) if acquired else None

    def unfinished(self, plan: str) -> str | None:
        """The id of the run that `resume` would return, unless another process is working on it; None without one."""
        with self.transaction() as database:
            return database.scalar(f"SELECT id FROM runs {_LAST_UNFINISHED}", {"plan": plan})

    def run(self, run: str) -> RunRow | None:
        """The run with this id; "last" is the most recently started run."""
        return next(iter(self.runs(1, None if run == "last" else run)), None)

    def runs(self, limit: int | None = None, run: str | None = None) -> list[RunRow]:
        """All runs, most recent first: at most `limit`, and only the one with this id if it is set."""
        only = "" if run is None else " WHERE id = :run"
        most = "" if limit is None else " LIMIT :limit"
        with self.transaction() as database:
            rows = database.execute(
                f"{_RUNS}{only} ORDER BY position DESC{most}", {"run": run, "limit": limit}
            ).fetchall()
        return [self._run_of(schema.runs.row(row)) for row in rows]

    def run_states(self) -> list[tuple[str, str | None]]:
        """The IDs of all runs, most recent first, each with the time of its completion, or None."""
        with self.transaction() as database:
            return [(run, finished) for run, finished in database.execute(_RUN_STATES)]

    def progress(self, run: str) -> tuple[int, bool]:
        """The number of a run's records, and whether a process works on it."""
        with self.transaction() as database:
            number = database.scalar("SELECT count(*) FROM records WHERE run = :run", {"run": run})
            return number, self.leases.has_worker(run)

    def n_failed(self, run: str) -> int:
        """The number of a run's records that failed."""
        with self.transaction() as database:
            # In a text of a record, quotation marks are escaped.
            like = {"run": run, "failed": '%, "outcome": "failed", "value": null, %'}
            return database.scalar("SELECT count(*) FROM records WHERE run = :run AND body LIKE :failed", like)

    def _run_of(self, row: Mapping[str, Any]) -> RunRow:
        with self.reading(f"run {row['id']}"):
            run = from_row(RunRow, row)
            _ = run.described
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
        """The records of a run, by sample as in the dataset, trial and scorer."""
        return [record for _, record in self.record_lines(run)]

    def record_lines(self, run: str) -> Iterator[tuple[str, Record]]:
        """The records of a run, by sample as in the dataset, trial and scorer, each after its `record_line`. They are
        read a few at a time, so those of a run in progress are of several moments."""
        query = "SELECT cell, body FROM records WHERE run = :run AND cell > :cell ORDER BY cell LIMIT :limit"
        cell = -1
        while True:
            with self.transaction() as database:
                rows = database.execute(query, {"run": run, "cell": cell, "limit": RECORDS_PER_READ}).fetchall()
            for _, body in rows:
                with self.reading(f"a record of run {run}"):
                    record = Record.from_dict(json.loads(body))
                yield body, record
            if len(rows) < RECORDS_PER_READ:
                return
            cell = rows[-1][0]

    def records_after(self, run: str, cell: int = -1, limit: int | None = None) -> list[tuple[int, Record]]:
        """Records of a run after a cell, in order, each with its own cell."""
        query = "SELECT cell, body FROM records WHERE run = :run AND cell > :cell ORDER BY cell"
        most = "" if limit is None else " LIMIT :limit"
        with self.transaction() as database:
            rows = database.execute(query + most, {"run": run, "cell": cell, "limit": limit}).fetchall()
        with self.reading(f"a record of run {run}"):
            return [(at, Record.from_dict(json.loads(body))) for at, body in rows]

    def records_since(self, run: str, position: int, limit: int) -> list[tuple[int, int, str, Record]]:
        """Records of a run that were written after a position, in the order of writing, each after its position, its
        cell and its `record_line`. A record that replaced another one has that one's position."""
        # Without an index by run, which would be read from its beginning.
        query = """
            SELECT position, cell, body FROM records WHERE position > :position AND run || '' = :run
            ORDER BY position LIMIT :limit
        """
        with self.transaction() as database:
            rows = database.execute(query, {"run": run, "position": position, "limit": limit}).fetchall()
        with self.reading(f"a record of run {run}"):
            return [(at, cell, body, Record.from_dict(json.loads(body))) for at, cell, body in rows]

    def record_bodies(self, run: str, cells: Collection[int]) -> dict[int, str]:
        """The records in these cells of a run, as JSON."""
        query = "SELECT cell, body FROM records WHERE run = :run AND cell IN ({})"
        found: dict[int, str] = {}
        with self.transaction() as database:
            for some in base.chunks(sorted(cells), RECORDS_PER_READ):
                rows = database.execute(query.format(", ".join(map(str, map(int, some)))), {"run": run})
                found.update((cell, body) for cell, body in rows)
        return found

    def samples(self, dataset: str) -> int:
        """The number of stored samples of a dataset version."""
        with self.transaction() as database:
            return database.scalar(f"SELECT coalesce(sum(blocks.samples), 0) {_SAMPLES}", {"dataset": dataset})

    def write_blocks(self, dataset: str, blocks: Collection[SampleBlock]) -> None:
        """Write blocks of a dataset version's samples in one transaction. Existing rows are kept."""
        # All processes lock rows in the same order, so there are no deadlocks.
        rows = {block.hash: block.row for block in sorted(blocks, key=attrgetter("hash"))}
        places = [{"dataset": dataset, "place": block.place, "block": block.hash} for block in blocks]
        with self.transaction(writing=True) as database:
            database.insert_missing(schema.blocks, list(rows.values()))
            database.insert_missing(schema.items, places)

    def samples_after(self, dataset: str, place: int = -1) -> tuple[int, list[Sample]]:
        """The samples of the first block of a dataset version after a place, and the block's own place. There are no
        samples after the last block."""
        query = f"SELECT items.place, blocks.body {_SAMPLES} AND items.place > :place ORDER BY items.place LIMIT 1"
        with self.transaction() as database:
            row = database.execute(query, {"dataset": dataset, "place": place}).fetchone()
        if row is None:
            return place, []
        with self.reading(f"a sample of dataset {dataset}"):
            return row[0], list(map(sample_of, block_rows(row[1])))

    def samples_around(self, dataset: str, place: int) -> tuple[int, list[Sample]]:
        """The samples of the block of a dataset version that has the sample at a place, and the place of the first of
        them; none if the sample isn't stored."""
        query = (
            f"SELECT items.place, blocks.body {_SAMPLES} AND items.place <= :place ORDER BY items.place DESC LIMIT 1"
        )
        with self.transaction() as database:
            row = database.execute(query, {"dataset": dataset, "place": place}).fetchone()
        if row is None:
            return place, []
        with self.reading(f"a sample of dataset {dataset}"):
            return row[0], list(map(sample_of, block_rows(row[1])))

    def compact(self) -> None:
        """Return the space of deleted rows to the file system."""
        try:
            self.database.compact()
        except self.database.error as error:
            raise self.database.explain(error, written=True) from None


@dataclass(frozen=True)
class LedgerSamples(ReadSamples):
    """The samples of a dataset version in a ledger, which are read a block at a time.

    Reading raises ConfigError if the ledger is gone, and LedgerError if it can't be read.
    """

    url: str = field(repr=False)
    dataset: str

    def __len__(self) -> int:
        with Ledger(existing(self.url), read_only=True) as ledger:
            return ledger.samples(self.dataset)

    def read(self) -> Iterator[Sample]:
        with Ledger(existing(self.url), read_only=True) as ledger:
            place, samples = ledger.samples_after(self.dataset)
            while samples:
                yield from samples
                place, samples = ledger.samples_after(self.dataset, place)


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
