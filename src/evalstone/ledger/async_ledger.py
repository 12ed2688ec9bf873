"""The asyncio ledger: concurrent reads and writes are grouped into transactions.

An `await` returns when its row is committed, so an answer is durable before its score counts. Operations that may block
run on one worker thread, in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from evalstone._core.sync import Worker, cancel_all
from evalstone.datasets.blocks import sample_blocks
from evalstone.datasets.stored import record_line
from evalstone.errors import LedgerBusyError, LedgerConnectionError, LedgerError
from evalstone.ledger import base
from evalstone.ledger.base import Applied, Claim, Key, Operations, Payment, StoredAnswer, chunks
from evalstone.types import Record, Sample

if TYPE_CHECKING:
    from evalstone.ledger.store import Ledger

T = TypeVar("T")
P = ParamSpec("P")

MIN_PAUSE, MAX_PAUSE = 0.02, 0.5
"""Seconds between polls of a question that another process is asking."""
DROP_INTERVAL = 1.0
"""Seconds between attempts to drop expired leases while waiting."""
MEET_INTERVAL = 0.1
"""Seconds between looks for others on the ledger while this one is alone."""
RECORDS_PER_READ = 2000
BLOCKS_PER_WRITE = 8
SLOW = 0.005
"""If a transaction takes longer than this on average (in seconds), all of them run on the worker thread."""
LARGE = 1_000_000
"""Characters of answers above which a transaction runs on the worker thread."""


class _Waiting(NamedTuple):
    """A caller waiting for the next transaction."""

    future: asyncio.Future[Any]
    key: Key | None
    """The question; None for a caller that only waits for the commit."""
    claims: bool
    """Whether the caller wants to ask the question, if there is no answer."""


class AsyncLedger:
    """A ledger for one run on one event loop: `async with AsyncLedger(url) as ledger`.

    Args:
        url: A path, `sqlite:///path/to/file.db`, or `postgresql://user@host/database`.
    """

    def __init__(self, url: str | Path) -> None:
        self.store: Ledger
        """The synchronous ledger, once it is open. `work` runs its methods."""
        self._url = url
        self._worker = Worker("evalstone-ledger")
        self._renewal: asyncio.TimerHandle
        self._operations, self._waiting = Operations(), list[_Waiting]()
        self._since: float | None = None
        """The time when the first pending operation was added; None if there are none."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._leased: set[Key] = set()
        self._error: LedgerError | None = None
        self._broken = asyncio.Event()
        """Set when the first error is stored in `_error`."""
        self._given_up = threading.Event()
        """Set to stop waiting for a lost server."""
        self._joining: asyncio.Future[None] | None = None
        """The first claim waits for it, and all that come meanwhile."""
        self._joined = False
        self._closed = threading.Event()
        self._last_drop = 0.0
        self._lock = threading.Lock()
        """Held while the ledger is in use."""
        self._average = 0.0

    async def __aenter__(self) -> AsyncLedger:
        opening = self._worker.submit(_open, self._url)
        try:
            self.store = await asyncio.wrap_future(opening)
        except BaseException:
            self._worker.submit(lambda: opening.result().close())  # if it is opened after all
            self._worker.close()
            raise
        self._renewal = asyncio.get_running_loop().call_later(self.store.leases.seconds / 3, self._renew)
        return self

    async def _join(self) -> None:
        """Learn whether others are on the ledger, and wait until all of them know of this one."""
        if self.store.database.single_writer:
            await self.work(self.store.leases.join)
            # A thread, because the loop may be blocked while others wait.
            threading.Thread(target=self._meet, name="evalstone-ledger-meet", daemon=True).start()
            while await self.work(self.store.leases.is_awaited):  # noqa: ASYNC110 - it is another process that is waited for
                await asyncio.sleep(MIN_PAUSE)
        self._joined = True

    def _meet(self) -> None:
        """Look for others until there are some."""
        alone = True
        while alone and not self._closed.wait(MEET_INTERVAL):
            # A ledger that is locked is tried again. Of any other problem, whoever reads or writes next is told.
            with self._lock, contextlib.suppress(LedgerError):
                alone = not self._closed.is_set() and self.store.leases.meet()

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, LedgerError):
            self._error = error
        if error is not None:
            self._given_up.set()
        self._renewal.cancel()
        try:
            if self._joining is not None:
                await cancel_all([self._joining])
            await self._idle.wait()
            # Leases that can't be released now expire.
            with contextlib.suppress(LedgerError):
                await self.work(self.store.leases.release_all)
        finally:
            closing = self._worker.submit(self._close)
            self._worker.close()
            # If the caller is canceled here, the thread still closes the ledger.
            await asyncio.shield(asyncio.wrap_future(closing))

    def _close(self) -> None:
        with self._lock:
            self._closed.set()
            self.store.close()

    def check(self) -> None:
        """Raise the error of an earlier failed write, so no question is asked whose answer could not be stored."""
        if self._error is not None:
            raise self._error

    async def ends_with(self, work: asyncio.Future[T]) -> T:
        """The result of a future. Raises LedgerError as soon as the ledger is known to be broken, and doesn't wait for
        answers that can't be stored."""
        broken = asyncio.ensure_future(self._broken.wait())
        try:
            await asyncio.wait((work, broken), return_when=asyncio.FIRST_COMPLETED)
        finally:
            broken.cancel()
        if not work.done():
            self.check()
        return await work

    async def work(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function of the synchronous ledger on the worker thread."""
        return await asyncio.wrap_future(self._worker.submit(self._wait_for, time.monotonic(), work, *args, **kwargs))

    async def answer(self, question: str, judge: str, repeat_index: int = 0) -> StoredAnswer | None:
        """A judge's stored answer to a question, if there is one."""
        return await self._scheduled(Key(question, judge, repeat_index))

    async def answer_or_claim(self, question: str, judge: str, repeat_index: int = 0) -> StoredAnswer | Claim:
        """The stored answer, or a claim: the exclusive right to ask the question.

        Waits while another caller, in any process on any machine, has a claim. Returns its answer, or a claim if that
        caller gives up or is gone. A claim must end in `keep_answer` or `release`.
        """
        key, pause = Key(question, judge, repeat_index), MIN_PAUSE
        if not self._joined:
            if (stored := await self.answer(*key)) is not None:
                return stored
            # Only who asks a question joins: that is a write, which others notice.
            if self._joining is None:
                self._joining = asyncio.ensure_future(self._join())
            await asyncio.shield(self._joining)
        while True:
            future = self._scheduled(key, claims=True)
            try:
                result: StoredAnswer | Claim | None = await future
            except asyncio.CancelledError:
                acquired = future.done() and not future.cancelled() and not future.exception()
                if acquired and isinstance(future.result(), Claim):
                    self.release(*key)  # acquired in the moment in which the caller was canceled
                raise
            if result is not None:
                return result
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, MAX_PAUSE)
            if time.monotonic() - self._last_drop > DROP_INTERVAL:
                self._operations.drop_expired, self._last_drop = True, time.monotonic()

    def release(self, question: str, judge: str, repeat_index: int = 0) -> None:
        """Give up a claim without an answer. Does nothing for a question that is not claimed, or is answered."""
        if self._give_up(Key(question, judge, repeat_index)):
            self._schedule()

    def _give_up(self, key: Key) -> bool:
        held = key in self._leased
        if held:
            self._leased.discard(key)
            self._operations.released.append(key)
        return held

    async def keep_answer(self, answer: StoredAnswer) -> None:
        """Store an answer, which ends a claim to its question. Returns when it is durable."""
        self._operations.answers.append(answer)
        self._give_up(answer.key)
        await self._scheduled()

    def pay(self, run: str, cost: float | None, reserved: float = 0.0) -> None:
        """Add the cost of a call to that of its run, in the transaction that stores what is stored next, or in one of
        its own. The arguments are those of `Payment.add`."""
        if cost == 0:
            return
        if self._operations.payment is None:
            self._operations.payment = Payment(run)
        self._operations.payment.add(cost, reserved)
        self._schedule()

    async def keep_payments(self) -> None:
        """Return when what was paid so far is durable. Storing an answer does that, too."""
        if self._operations.payment is not None:
            await self._scheduled()

    async def keep_records(self, run: str, records: Iterable[tuple[int, Record, str | None]]) -> None:
        """Store records. Returns when they are durable.

        records: Each with its cell, which is the number of its sample, trial and scorer in the run, and its line
            (`record_line`; None if unknown).
        """
        self._operations.records.extend(
            (run, cell, record.signature, record_line(record) if line is None else line)
            for cell, record, line in records
        )
        await self._scheduled()

    async def keep_samples(self, dataset: str, samples: Sequence[Sample]) -> None:
        """Store the samples of a dataset version, unless all of them are there. Returns when they are durable.

        Each transaction writes a part, so that many samples keep no other process waiting.
        """
        if await self.work(self.store.samples, dataset) == len(samples):
            return
        parts = chunks(sample_blocks(samples), BLOCKS_PER_WRITE)
        while part := await asyncio.wrap_future(self._worker.submit(next, parts, ())):
            await self.work(self.store.write_blocks, dataset, part)

    async def records(self, run: str) -> AsyncIterator[tuple[int, Record]]:
        """The records of a run in order, each with its cell. Reads a few thousand at a time."""
        cell = -1
        while some := await self.work(self.store.records_after, run, cell, RECORDS_PER_READ):
            for cell, record in some:
                yield cell, record

    def _wait_for(self, since: float, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function on the worker thread. It may wait for other processes for up to `base.WAIT` seconds.

        The time counts from the call. After an error, nothing waits any more. If the connection to a server is lost,
        the function is repeated on a new connection, so it must be idempotent.
        """
        with self._lock:
            store = self.store
            while True:
                remaining = 0.0 if self._error else since + base.WAIT - time.monotonic()
                store.database.wait_for(remaining)
                try:
                    return work(*args, **kwargs)
                except LedgerConnectionError as error:
                    if self._error:  # it says more: that the connection could not be restored
                        raise self._error from None
                    store.reconnect(error, set(self._leased), self._given_up)
                finally:
                    store.database.wait_for(0)

    def _renew(self) -> None:
        """Renew the leases, and check that the ledger's files are still in place."""
        self._operations.renew = True
        self._schedule()
        self._renewal = asyncio.get_running_loop().call_later(self.store.leases.seconds / 3, self._renew)

    # Callbacks instead of tasks from here on: a task takes extra loop iterations, which delay every caller.
    def _scheduled(self, key: Key | None = None, *, claims: bool = False) -> asyncio.Future[Any]:
        """A future resolved by the next transaction: with the answer to a question or a claim, or with None."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(future, key, claims))
        self._schedule()
        return future

    def _schedule(self) -> None:
        """Apply the pending operations in the next transaction."""
        if self._since is None:
            self._since = time.monotonic()
        if self._idle.is_set():
            self._idle.clear()
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """Apply the pending operations: on this thread if a few rows of a local file take less than a thread switch.

        They run on the worker thread if the ledger is in use, another process is writing, or the file has proved slow.
        """
        if self._since is None:
            self._idle.set()
            return
        since, operations, waiting = self._since, self._operations, self._waiting
        self._since, self._operations, self._waiting = None, Operations(), []
        for _, key, claims in waiting:
            if key is not None:
                (operations.claims if claims and key not in self._leased else operations.lookups).add(key)
        applied: Future[Applied] = Future()
        size = sum(len(answer.reply) for answer in operations.answers)
        inline = self.store.database.single_writer and self._average <= SLOW and size <= LARGE
        if inline and self._lock.acquire(blocking=False):
            started = time.perf_counter()
            try:
                applied.set_result(self.store.apply(operations))
            except LedgerBusyError:
                pass  # nothing was written: the worker thread waits for the other process
            except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
                applied.set_exception(error)
            finally:
                self._average += (min(time.perf_counter() - started, 4 * SLOW) - self._average) / 10
                self._lock.release()
        if applied.done():
            self._resolve(waiting, applied)
            return
        self._average *= 0.95  # what was slow for a moment, such as during a checkpoint, is tried again
        loop = asyncio.get_running_loop()
        # The callback must not refer to the future, which keeps it: both would be garbage that only a search finds.
        self._worker.submit(self._wait_for, since, self.store.apply, operations).add_done_callback(
            lambda applied: loop.is_closed() or loop.call_soon_threadsafe(self._resolve, waiting, applied)
        )

    def _resolve(self, waiting: list[_Waiting], applying: Future[Applied]) -> None:
        """Resolve the future of every caller, and continue. An error is raised in all of them."""
        asyncio.get_running_loop().call_soon(self._begin)
        if error := applying.exception():
            waits = [future for future, *_ in waiting if not future.done()]
            for future in waits:
                future.set_exception(error)
            # If a renewal comes too late, a lost lease costs at most a question asked twice.
            if isinstance(error, LedgerError) and (waits or not isinstance(error, LedgerBusyError)):
                self._error = error
                self._broken.set()
            return
        applied = applying.result()
        self._leased |= applied.leased
        for future, key, claims in waiting:
            if future.done():
                continue
            if key is None:
                future.set_result(None)
            elif claims and key in applied.leased:
                applied.leased.discard(key)
                future.set_result(Claim(key))
            else:
                future.set_result(applied.answers.get(key))
        for key in applied.leased:  # every caller was canceled meanwhile
            self.release(*key)


def _open(url: str | Path) -> Ledger:
    from evalstone.ledger.store import Ledger  # noqa: PLC0415 - only a run with a ledger needs it

    ledger = Ledger(url)
    ledger.database.wait_for(0)
    return ledger
