"""The ledger as the engine uses it: reads and writes of one moment go to the file together, on one thread.

A caller's `await` ends when its row is committed. So an answer is durable before its score counts, and many answers
share one transaction.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evalstone.errors import LedgerError
from evalstone.ledger.rows import RunRow, StoredAnswer
from evalstone.types import Record

if TYPE_CHECKING:
    from evalstone.ledger.store import Ledger


@dataclass
class _Batch:
    """What is asked of the ledger until it is next free."""

    keys: dict[tuple[str, str], asyncio.Future[StoredAnswer | None]] = field(
        default_factory=lambda: dict[tuple[str, str], "asyncio.Future[StoredAnswer | None]"]()
    )
    answers: list[StoredAnswer] = field(default_factory=lambda: list[StoredAnswer]())
    records: list[tuple[str, Record]] = field(default_factory=lambda: list[tuple[str, Record]]())
    written: list[asyncio.Future[None]] = field(default_factory=lambda: list["asyncio.Future[None]"]())

    def __bool__(self) -> bool:
        return bool(self.keys or self.written)


class AsyncLedger:
    """A ledger for one run on one event loop. Open it with `async with AsyncLedger.open(url) as ledger`."""

    def __init__(self, url: str | Path) -> None:
        self._url = url
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="evalstone-ledger")
        self._batch = _Batch()
        self._working: asyncio.Task[None] | None = None
        self._ledger: Ledger | None = None

    async def __aenter__(self) -> AsyncLedger:
        loop = asyncio.get_running_loop()
        try:
            self._ledger = await loop.run_in_executor(self._thread, _opened, self._url)
        except BaseException:
            self._thread.shutdown(wait=False)
            raise
        return self

    async def __aexit__(self, *raised: object) -> None:
        while self._working is not None:
            await asyncio.wait([self._working])
        await asyncio.get_running_loop().run_in_executor(self._thread, self._open.close)
        self._thread.shutdown(wait=True)

    @property
    def _open(self) -> Ledger:
        if self._ledger is None:
            raise LedgerError("the ledger is not open")
        return self._ledger

    @property
    def path(self) -> str:
        """The file that the ledger lies in."""
        return self._open.path

    async def answer(self, question: str, judge: str) -> StoredAnswer | None:
        """The stored answer of a judge to a question, if there is one."""
        key = (question, judge)
        if key not in self._batch.keys:
            self._batch.keys[key] = asyncio.get_running_loop().create_future()
        waiting = self._batch.keys[key]
        self._work()
        return await waiting

    async def keep_answer(self, answer: StoredAnswer) -> None:
        """Write an answer; returns when it is durable."""
        self._batch.answers.append(answer)
        await self._written()

    async def keep_record(self, run: str, record: Record) -> None:
        """Write a record; returns when it is durable."""
        self._batch.records.append((run, record))
        await self._written()

    async def start_run(self, row: RunRow) -> None:
        """Enter a run before its first record."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._open.start_run, row)

    async def finish_run(self, run: str, finished: str, about: dict[str, object]) -> None:
        """Mark a run as ended."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._open.finish_run, run, finished, about)

    async def resumable(self, plan: str) -> tuple[RunRow, list[Record]] | None:
        """The last run of this plan that has not ended, with the records it has."""

        def look() -> tuple[RunRow, list[Record]] | None:
            row = self._open.unfinished(plan)
            return row and (row, self._open.records(row.id))

        return await asyncio.get_running_loop().run_in_executor(self._thread, look)

    async def _written(self) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._batch.written.append(waiting)
        self._work()
        await waiting

    def _work(self) -> None:
        if self._working is None:
            self._working = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._batch:
                batch, self._batch = self._batch, _Batch()
                work = loop.run_in_executor(self._thread, self._run, batch)
                await asyncio.wait([work])
                _settle(batch, work)
        finally:
            self._working = None

    def _run(self, batch: _Batch) -> dict[tuple[str, str], StoredAnswer]:
        if batch.answers or batch.records:
            self._open.write(batch.answers, batch.records)
        by_judge: dict[str, list[str]] = {}
        for question, judge in batch.keys:
            by_judge.setdefault(judge, []).append(question)
        found: dict[tuple[str, str], StoredAnswer] = {}
        for judge, questions in by_judge.items():
            found.update({(key, judge): answer for key, answer in self._open.answers(judge, questions).items()})
        return found


def _opened(url: str | Path) -> Ledger:
    from evalstone.ledger.store import Ledger  # noqa: PLC0415 - SQLAlchemy, which only a run with a ledger needs

    return Ledger(url)


def _settle(batch: _Batch, work: asyncio.Future[dict[tuple[str, str], StoredAnswer]]) -> None:
    """Give every caller of a batch what came of it; whatever error ended it reaches all of them."""
    error = work.exception()
    for waiting in batch.written:
        if not waiting.done():
            waiting.set_exception(error) if error else waiting.set_result(None)
    for key, waiting in batch.keys.items():
        if not waiting.done():
            waiting.set_exception(error) if error else waiting.set_result(work.result().get(key))
