"""The ledger on an event loop: concurrent reads and writes are grouped into one transaction.

An `await` returns when its row is committed, so an answer is durable before its score counts, and many answers share a
transaction. Operations that may block run on one worker thread, in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from evalstone.errors import LedgerBusyError, LedgerError
from evalstone.ledger.rows import Applied, Claim, Key, Operations, RunRow, StoredAnswer
from evalstone.types import Record

if TYPE_CHECKING:
    from evalstone.ledger.store import Ledger

T = TypeVar("T")
P = ParamSpec("P")

MIN_PAUSE, MAX_PAUSE = 0.02, 0.5
"""Seconds between two looks at a question that another process is asking."""
DROP_INTERVAL = 1.0
"""Seconds between two attempts to drop expired leases while waiting."""
RECORDS_PER_READ = 2000
SLOW = 0.005
"""Average seconds for a transaction above which all of them go to the worker thread."""


class Worker:
    """A daemon thread that runs functions in order.

    A ThreadPoolExecutor refuses work once the main thread has ended, while a run on another thread may still be under
    way and would wait forever for its answers to be stored. A Worker lives as long as its owner.
    """

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=_work_off, args=(self._queue,), name=name, daemon=True)
        self._started = False
        # Ends the thread if the worker is dropped without being closed.
        weakref.finalize(self, self._queue.put, None).atexit = False

    def submit(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function after those submitted before. A future that is cancelled before its turn is skipped."""
        if not self._started:
            self._started = True
            self._thread.start()
        future: Future[T] = Future()
        self._queue.put((future, functools.partial(work, *args, **kwargs)))
        return future

    def close(self) -> None:
        """End the thread once everything submitted is done; doesn't wait for that."""
        self._queue.put(None)


def _work_off(queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]) -> None:
    while (item := queue.get()) is not None:
        future, work = item
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
                future.set_exception(error)
        del item, future, work  # don't keep its arguments alive until the next function arrives


@dataclass
class _Pending:
    """Operations that wait for the next transaction, and the futures of their callers."""

    operations: Operations = field(default_factory=Operations)
    lookups: dict[Key, list[asyncio.Future[StoredAnswer | None]]] = field(default_factory=dict[Key, Any])
    claims: dict[Key, list[asyncio.Future[StoredAnswer | Claim | None]]] = field(default_factory=dict[Key, Any])
    writes: list[asyncio.Future[None]] = field(default_factory=list["asyncio.Future[None]"])

    def futures(self) -> Iterator[asyncio.Future[Any]]:
        return chain(self.writes, *self.lookups.values(), *self.claims.values())


class AsyncLedger:
    """A ledger for one run on one event loop: `async with AsyncLedger(url) as ledger`.

    Args:
        url: A path, `sqlite:///path/to/file.db`, or `postgresql://user@host/database`.
    """

    def __init__(self, url: str | Path) -> None:
        self._url = url
        self._worker = Worker("evalstone-ledger")
        self._pending = _Pending()
        self._idle = asyncio.Event()
        self._idle.set()
        self._changed = False
        self._renewal: asyncio.Task[None] | None = None
        self._opened: Ledger | None = None
        self._leased: set[Key] = set()
        self._error: LedgerError | None = None
        self._last_drop = 0.0
        self._lock = threading.Lock()
        self._inline = False
        self._average = 0.0

    async def __aenter__(self) -> AsyncLedger:
        opening = self._worker.submit(_open, self._url)
        try:
            self._opened = await asyncio.wrap_future(opening)
            if self._opened.dialect.single_writer:
                self._opened.dialect.set_busy_timeout(self._opened.connection, 0)
                self._inline = True
            self._renewal = asyncio.get_running_loop().create_task(self._keep_renewing())
        except BaseException:
            self._worker.submit(_close_late, opening)
            self._worker.close()
            raise
        return self

    async def __aexit__(self, *raised: object) -> None:
        try:
            await self._idle.wait()
            if self._renewal is not None:
                self._renewal.cancel()
                await asyncio.wait([self._renewal])
                # Leases that can't be released now expire.
                with contextlib.suppress(LedgerError):
                    await self._call(self._ledger.release_leases)
        finally:
            closing = self._worker.submit(self._ledger.close)
            self._worker.close()
            # If the caller is cancelled here, the thread still closes the ledger.
            await asyncio.shield(asyncio.wrap_future(closing))

    @property
    def _ledger(self) -> Ledger:
        if self._opened is None:
            raise LedgerError("the ledger is not open")
        return self._opened

    def check(self) -> None:
        """Raise the error of an earlier failed write, so no question is asked whose answer could not be stored."""
        if self._error is not None:
            raise self._error

    async def work(self, work: Callable[[Ledger], T]) -> T:
        """Run a function of the synchronous ledger on the worker thread."""
        return await self._call(work, self._ledger)

    async def answer(self, question: str, judge: str, repeat_index: int = 0) -> StoredAnswer | None:
        """A judge's stored answer to a question, if there is one."""
        return await self._enqueue(self._pending.lookups.setdefault(Key(question, judge, repeat_index), []))

    async def answer_or_claim(self, question: str, judge: str, repeat_index: int = 0) -> StoredAnswer | Claim:
        """The stored answer, or the right to ask the question.

        Waits while another caller has that right, in any process on any machine. When that caller answers, returns its
        answer; when it gives up or is gone, returns the right. A claim must end in `keep_answer` or `release`.
        """
        key, pause = Key(question, judge, repeat_index), MIN_PAUSE
        while True:
            future: asyncio.Future[StoredAnswer | Claim | None]
            future = self._enqueue(self._pending.claims.setdefault(key, []))
            try:
                found = await future
            except asyncio.CancelledError:
                acquired = future.done() and not future.cancelled() and not future.exception()
                if acquired and isinstance(future.result(), Claim):
                    self.release(*key)  # acquired in the moment in which the caller was cancelled
                raise
            if found is not None:
                return found
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, MAX_PAUSE)
            if time.monotonic() - self._last_drop > DROP_INTERVAL:
                self._pending.operations.drop_expired, self._last_drop = True, time.monotonic()

    def release(self, question: str, judge: str, repeat_index: int = 0) -> None:
        """Give up a claim without an answer. Does nothing for a question that is not claimed, or is answered."""
        key = Key(question, judge, repeat_index)
        if key in self._leased:
            self._leased.discard(key)
            self._pending.operations.released.append(key)
            self._schedule()

    async def keep_answer(self, answer: StoredAnswer) -> None:
        """Store an answer, which ends a claim to its question. Returns when it is durable."""
        operations = self._pending.operations
        operations.answers.append(answer)
        if answer.key in self._leased:
            self._leased.discard(answer.key)
            operations.released.append(answer.key)
        await self._enqueue(self._pending.writes)

    async def keep_record(self, run: str, record: Record) -> None:
        """Store a record. Returns when it is durable."""
        self._pending.operations.records.append((run, record))
        await self._enqueue(self._pending.writes)

    async def start_run(self, row: RunRow) -> None:
        """Add a run before its first record. Nobody else resumes it while this ledger is open."""
        await self._call(self._ledger.start_run, row)

    async def finish_run(self, run: str, finished: str, metadata: dict[str, object]) -> None:
        """Mark a run as complete."""
        await self._call(self._ledger.finish_run, run, finished, metadata)

    async def resume(self, plan: str) -> RunRow | None:
        """The last unfinished run of this plan, which is now this ledger's to work on.

        None if there is none, or another process is working on it.
        """
        return await self._call(self._ledger.resume, plan)

    async def records(self, run: str) -> AsyncIterator[Record]:
        """The records of a run, in the order in which they were first written. Reads a few thousand at a time."""
        position: int | None = None
        while True:
            some = await self._call(self._ledger.records_after, run, position, RECORDS_PER_READ)
            for _, record in some:
                yield record
            if not some:
                return
            position = some[-1][0]

    async def _call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wrap_future(self._worker.submit(self._blocking, work, *args, **kwargs))

    def _blocking(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """On the worker thread: run a function, and wait for other processes as long as necessary."""
        with self._lock:
            if not self._inline:
                return work(*args, **kwargs)
            ledger = self._ledger
            ledger.dialect.set_busy_timeout(ledger.connection)
            try:
                return work(*args, **kwargs)
            finally:
                ledger.dialect.set_busy_timeout(ledger.connection, 0)

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(self._ledger.leases.seconds / 3)
            # The next write reports the error; a lost lease costs at most a question asked twice.
            with contextlib.suppress(LedgerError):
                await self._call(self._ledger.renew_leases)

    # From here on there are callbacks and no tasks: a task adds turns of the loop, and every caller waits for them.
    def _enqueue(self, waiting: list[asyncio.Future[T]]) -> asyncio.Future[T]:
        """A future that the next transaction resolves, among those that wait for the same."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        waiting.append(future)
        self._schedule()
        return future

    def _schedule(self) -> None:
        self._changed = True
        if self._idle.is_set():
            self._idle.clear()
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """Apply what is pending: here, if a few rows of a local file take less time than a thread switch.

        On the worker thread if the ledger is in use, another process is writing, or the file proved to be slow.
        """
        if not self._changed:
            self._idle.set()
            return
        self._changed = False
        pending, self._pending = self._pending, _Pending()
        operations = pending.operations
        operations.claims = pending.claims.keys() - self._leased
        operations.lookups = pending.lookups.keys() | (pending.claims.keys() & self._leased)
        loop = asyncio.get_running_loop()
        applied: Future[Applied] = Future()
        if self._inline and self._average <= SLOW and self._lock.acquire(blocking=False):
            started = time.perf_counter()
            try:
                applied.set_result(self._ledger.apply(operations))
            except LedgerBusyError:
                pass  # nothing was done: the worker thread waits for the other process
            except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
                applied.set_exception(error)
            finally:
                self._average += (time.perf_counter() - started - self._average) / 10
                self._lock.release()
        if applied.done():
            self._resolve(pending, applied)
            loop.call_soon(self._begin)
            return
        applied = self._worker.submit(self._blocking, self._ledger.apply, operations)
        applied.add_done_callback(lambda done: loop.is_closed() or loop.call_soon_threadsafe(self._end, pending, done))

    def _end(self, pending: _Pending, applied: Future[Applied]) -> None:
        self._resolve(pending, applied)
        self._begin()

    def _resolve(self, pending: _Pending, applying: Future[Applied]) -> None:
        """Give every caller its result. An error reaches all of them."""
        if error := applying.exception():
            if isinstance(error, LedgerError):
                self._error = error
            for future in pending.futures():
                if not future.done():
                    future.set_exception(error)
            return
        applied = applying.result()
        for future in pending.writes:
            if not future.done():
                future.set_result(None)
        for key, futures in pending.lookups.items():
            for future in futures:
                if not future.done():
                    future.set_result(applied.answers.get(key))
        for key, futures in pending.claims.items():
            claim = Claim(key) if key in applied.leased else None
            if claim:
                self._leased.add(key)
            for future in futures:
                if not future.done():
                    future.set_result(applied.answers.get(key) or claim)
                    claim = None
            if claim:  # every caller was cancelled meanwhile
                self.release(*key)


def _open(url: str | Path) -> Ledger:
    from evalstone.ledger.store import Ledger  # noqa: PLC0415 - SQLAlchemy, which only a run with a ledger needs

    return Ledger(url)


def _close_late(opening: Future[Ledger]) -> None:
    """Close a ledger whose caller was cancelled while it was opened."""
    if not opening.cancelled() and not opening.exception():
        opening.result().close()
