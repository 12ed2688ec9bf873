"""The ledger as the engine uses it: reads and writes of one moment go to the database together.

A caller's `await` ends when its row is committed. So an answer is durable before its score counts, and many answers
share one transaction. What may take long is done on a thread, one piece after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evalstone.errors import LedgerBusyError, LedgerError
from evalstone.ledger.rows import Claim, Key, RunRow, StoredAnswer
from evalstone.ledger.worker import Worker, done_here
from evalstone.types import Record

if TYPE_CHECKING:
    from evalstone.ledger.store import Done, Ledger

T = TypeVar("T")

Look = asyncio.Future["StoredAnswer | None"]
Want = asyncio.Future["StoredAnswer | Claim | None"]

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
BURY_EVERY = 1.0
READ_AT_ONCE = 2000
SLOW = 0.005
"""Seconds for a turn, on average, from which on the loop is not held up for it."""


@dataclass
class _Batch:
    """What is asked of the ledger until it is next free."""

    looked: dict[Key, list[Look]] = field(default_factory=dict[Key, list[Look]])
    wanted: dict[Key, list[Want]] = field(default_factory=dict[Key, list[Want]])
    answers: list[StoredAnswer] = field(default_factory=list[StoredAnswer])
    records: list[tuple[str, Record]] = field(default_factory=list[tuple[str, Record]])
    freed: list[Key] = field(default_factory=list[Key])
    written: list[asyncio.Future[None]] = field(default_factory=list["asyncio.Future[None]"])
    bury: bool = False

    def __bool__(self) -> bool:
        return bool(self.looked or self.wanted or self.written or self.freed)

    def waiting(self) -> Iterator[asyncio.Future[Any]]:
        """Everyone who waits for something of this batch."""
        yield from self.written
        yield from chain.from_iterable(self.looked.values())
        yield from chain.from_iterable(self.wanted.values())


class AsyncLedger:
    """A ledger for one run on one event loop. Open it with `async with AsyncLedger(url) as ledger`."""

    def __init__(self, url: str | Path) -> None:
        self._url = url
        self._thread = Worker("evalstone-ledger")
        self._batch = _Batch()
        self._idle = asyncio.Event()
        self._idle.set()
        self._renewing: asyncio.Task[None] | None = None
        self._ledger: Ledger | None = None
        self._held: set[Key] = set()
        self._broken: LedgerError | None = None
        self._buried = 0.0
        self._using = threading.Lock()
        self._here = False
        self._pace = 0.0

    async def __aenter__(self) -> AsyncLedger:
        opening = self._thread.submit(_opened, self._url)
        try:
            self._ledger = await asyncio.wrap_future(opening)
            if self._ledger.dialect.single_writer:
                self._ledger.wait_for_others(0)
                self._here = True
        except BaseException:
            self._thread.submit(_close_late, opening)
            self._thread.close()
            raise
        return self

    async def __aexit__(self, *raised: object) -> None:
        try:
            await self._idle.wait()
            if self._renewing is not None:
                self._renewing.cancel()
                await asyncio.wait([self._renewing])
                # What cannot be given back now runs out by itself.
                with contextlib.suppress(LedgerError):
                    await self._threaded(self._open.free_leases)
        finally:
            closing = self._thread.submit(self._open.close)
            self._thread.close()
            # Whoever loses patience here leaves a thread that still closes the ledger.
            await asyncio.shield(asyncio.wrap_future(closing))

    async def _threaded(self, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._thread.submit(self._patiently, work))

    def _patiently(self, work: Callable[[], T]) -> T:
        """On the thread: do a piece of work, and wait for other processes as long as need be."""
        with self._using:
            if not self._here:
                return work()
            self._open.wait_for_others()
            try:
                return work()
            finally:
                self._open.wait_for_others(0)

    @property
    def _open(self) -> Ledger:
        if self._ledger is None:
            raise LedgerError("the ledger is not open")
        return self._ledger

    async def work(self, work: Callable[[Ledger], T]) -> T:
        """What a piece of work with the ledger, on its thread, gives."""
        return await self._threaded(lambda: work(self._open))

    @property
    def place(self) -> str:
        """Where the ledger lies, for people: its file, or its URL without a password."""
        return self._open.place

    def check(self) -> None:
        """Raise the error that ended an earlier write, so that nothing is asked whose answer could not be kept."""
        if self._broken is not None:
            raise self._broken

    async def answer(self, question: str, judge: str, number: int = 0) -> StoredAnswer | None:
        """The stored answer of a judge to a question, if there is one."""
        waiting: Look = asyncio.get_running_loop().create_future()
        self._batch.looked.setdefault(Key(question, judge, number), []).append(waiting)
        self._work()
        return await waiting

    async def answer_or_claim(self, question: str, judge: str, number: int = 0) -> StoredAnswer | Claim:
        """The stored answer, or the right to ask for it.

        Waits while another holds that right, in this process or another, on this machine or another; when that one
        answers, its answer is returned, and when it gives up or is gone, the right. A claim must end in `keep_answer`
        or in `release`.
        """
        key, pause = Key(question, judge, number), FIRST_PAUSE
        while (found := await self._want(key)) is None:
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, LONGEST_PAUSE)
            if time.monotonic() - self._buried > BURY_EVERY:
                self._batch.bury, self._buried = True, time.monotonic()
        return found

    async def claim(self, question: str, judge: str, number: int = 0) -> bool:
        """Whether the question is now the caller's to ask. False: it is answered, or another is asking it."""
        return isinstance(await self._want(Key(question, judge, number)), Claim)

    def release(self, question: str, judge: str, number: int = 0) -> None:
        """Give a claim back without an answer. Does nothing for a question that is not claimed, or was answered."""
        key = Key(question, judge, number)
        if key in self._held:
            self._held.discard(key)
            self._batch.freed.append(key)
            self._work()

    async def keep_answer(self, answer: StoredAnswer) -> None:
        """Write an answer; returns when it is durable. A claim to its question has ended then."""
        self._batch.answers.append(answer)
        if answer.key in self._held:
            self._held.discard(answer.key)
            self._batch.freed.append(answer.key)
        await self._written()

    async def keep_record(self, run: str, record: Record) -> None:
        """Write a record; returns when it is durable."""
        self._batch.records.append((run, record))
        await self._written()

    async def start_run(self, row: RunRow) -> None:
        """Enter a run before its first record. While this ledger is open nobody else takes it up."""
        self._renew()
        await self._threaded(lambda: self._open.start_run(row))

    async def finish_run(self, run: str, finished: str, about: dict[str, object]) -> None:
        """Mark a run as ended."""
        await self._threaded(lambda: self._open.finish_run(run, finished, about))

    async def take_up(self, plan: str) -> RunRow | None:
        """The last run of this plan that has not ended, from now on this ledger's to work on; None when there is none,
        or when another process is working on it."""
        self._renew()
        return await self._threaded(lambda: self._open.take_up(plan))

    async def records(self, run: str) -> AsyncIterator[Record]:
        """The records of a run, in the order in which they were first written; some thousands at a time are held."""
        position: int | None = None
        while True:
            some = await self._threaded(functools.partial(self._open.records_after, run, position, READ_AT_ONCE))
            for _, record in some:
                yield record
            if not some:
                return
            position = some[-1][0]

    async def _want(self, key: Key) -> StoredAnswer | Claim | None:
        waiting: Want = asyncio.get_running_loop().create_future()
        self._batch.wanted.setdefault(key, []).append(waiting)
        self._renew()
        self._work()
        try:
            return await waiting
        except asyncio.CancelledError:
            won = waiting.done() and not waiting.cancelled() and not waiting.exception()
            if won and isinstance(waiting.result(), Claim):
                self.release(*key)  # it was got in the moment in which the caller was stopped
            raise

    async def _written(self) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._batch.written.append(waiting)
        self._work()
        await waiting

    def _renew(self) -> None:
        if self._renewing is None:
            self._renewing = asyncio.get_running_loop().create_task(self._keep_renewing())

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(self._open.leases.seconds / 3)
            # The next answer that is written will say it; a lease that is lost costs at most a question asked twice.
            with contextlib.suppress(LedgerError):
                await self._threaded(self._open.renew_leases)

    # From here to `_settle` it is calls and no task: every hop that a task would add is a turn of the loop, which all
    # who wait for the ledger would wait for as well.
    def _work(self) -> None:
        if self._idle.is_set():
            self._idle.clear()
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """Do what is asked for by now, if anything is, or give it to the thread."""
        if not self._batch:
            self._idle.set()
            return
        batch, self._batch = self._batch, _Batch()
        loop = asyncio.get_running_loop()
        if (done := self._done_here(batch)) is not None:
            self._settle(batch, done)
            loop.call_soon(self._begin)
            return
        turn = functools.partial(self._run, batch, self._held.copy())
        work = self._thread.submit(self._patiently, turn)
        work.add_done_callback(lambda done: loop.is_closed() or loop.call_soon_threadsafe(self._end, batch, done))

    def _end(self, batch: _Batch, work: Future[Done]) -> None:
        self._settle(batch, work)
        self._begin()

    def _done_here(self, batch: _Batch) -> Future[Done] | None:
        """What came of a batch, done on the spot: a few rows of a local file take a third of a millisecond, and the way
        to the thread and back costs as much again and holds the loop up. None, with nothing done, where the ledger is
        in use or another process writes, or turned out to be slow: then it is the thread's to wait."""
        if not self._here or self._pace > SLOW or not self._using.acquire(blocking=False):
            return None
        try:
            started = time.perf_counter()
            done = done_here(functools.partial(self._run, batch, self._held.copy()))
            self._pace += (time.perf_counter() - started - self._pace) / 10
        finally:
            self._using.release()
        return None if isinstance(done.exception(), LedgerBusyError) else done

    def _run(self, batch: _Batch, held: set[Key]) -> Done:
        from evalstone.ledger.store import Turn  # noqa: PLC0415 - SQLAlchemy, which is loaded by then

        wanted = batch.wanted.keys() - held
        looked = batch.looked.keys() | (batch.wanted.keys() & held)
        return self._open.turn(Turn(batch.answers, batch.records, batch.freed, looked, wanted, batch.bury))

    def _settle(self, batch: _Batch, work: Future[Done]) -> None:
        """Give every caller of a batch what came of it; whatever error ended it reaches all of them."""
        if error := work.exception():
            if isinstance(error, LedgerError):
                self._broken = error
            for waiting in batch.waiting():
                if not waiting.done():
                    waiting.set_exception(error)
            return
        done = work.result()
        for waiting in batch.written:
            _tell(waiting, None)
        for key, looks in batch.looked.items():
            for waiting in looks:
                _tell(waiting, done.found.get(key))
        for key, wants in batch.wanted.items():
            claim = Claim(key) if key in done.taken else None
            if claim:
                self._held.add(key)
            for waiting in wants:
                if _tell(waiting, done.found.get(key) or claim):
                    claim = None
            if claim:  # all who wanted it were stopped meanwhile
                self.release(*key)


def _tell(waiting: asyncio.Future[T], value: T) -> bool:
    if waiting.done():
        return False
    waiting.set_result(value)
    return True


def _close_late(opening: Future[Ledger]) -> None:
    """Close a ledger that was opened for someone who was stopped meanwhile."""
    if not opening.cancelled() and not opening.exception():
        opening.result().close()


def _opened(url: str | Path) -> Ledger:
    from evalstone.ledger.store import Ledger  # noqa: PLC0415 - SQLAlchemy, which only a run with a ledger needs

    return Ledger(url)
