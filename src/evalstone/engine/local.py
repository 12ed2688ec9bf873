"""The local engine: works the table of samples and scorers off on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from evalstone.engine.apply import apply
from evalstone.engine.asking import Asker
from evalstone.engine.plan import Plan
from evalstone.engine.run import Run
from evalstone.engine.summary import ScorerCard
from evalstone.errors import UsageError
from evalstone.ledger import AsyncLedger, RunRow
from evalstone.scorers import Scorer
from evalstone.types import Failed, Record, Sample

Cell = tuple[int, Sample, Scorer]
OnRecord = Callable[[Record], None]


async def execute(
    plan: Plan,
    *,
    ledger: str | Path | None = None,
    concurrency: int = 32,
    fresh: bool = False,
    on_record: OnRecord | None = None,
) -> Run:
    """Work a plan off and return the run.

    ledger: where answers and records are kept; None keeps nothing. An unfinished run of the same plan is taken up: its
    scores and skips stand, its failures are tried again. concurrency: judge calls under way at once, at most. fresh:
    ask again what the ledger has. on_record: called with each record once it is durable. Raises UsageError and
    LedgerError; what was recorded by then stays in the ledger.
    """
    if concurrency < 1:
        raise UsageError(f"concurrency must be 1 or more, not {concurrency}")
    plan.check()
    async with contextlib.AsyncExitStack() as stack:
        book = await stack.enter_async_context(AsyncLedger(ledger)) if ledger is not None else None
        await stack.enter_async_context(plan.judge.opened())
        asker = Asker(plan.judge, ledger=book, concurrency=concurrency, fresh=fresh)
        stack.push_async_callback(asker.close)
        return await _Execution(plan, asker, book, concurrency, on_record, fresh).run()


class _Execution:
    """One execution of a plan, under way."""

    def __init__(
        self,
        plan: Plan,
        asker: Asker,
        book: AsyncLedger | None,
        concurrency: int,
        on_record: OnRecord | None,
        fresh: bool,
    ) -> None:
        self.plan, self.asker, self.book, self.on_record, self.fresh = plan, asker, book, on_record, fresh
        # Twice as many cells as calls: a cell that waits for another's answer does not leave a call's place empty.
        self.workers = min(2 * concurrency, plan.size)
        self.done: list[Record | None] = [None] * plan.size
        self.id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self.started = datetime.now(UTC).isoformat(timespec="seconds")

    async def run(self) -> Run:
        began = time.perf_counter()
        resumed = await self._take_up()
        cells = self._open_cells()
        await self._all([asyncio.ensure_future(self._worker(cells)) for _ in range(self.workers)])
        run = self._result(time.perf_counter() - began, resumed)
        if self.book is not None:
            await self.book.finish_run(self.id, datetime.now(UTC).isoformat(timespec="seconds"), run.to_dict())
        return run

    async def _all(self, workers: list[asyncio.Future[None]]) -> None:
        """Wait for all workers; the first error, or being cancelled, ends them all and is raised as it is."""
        try:
            await asyncio.gather(*workers)
        except BaseException:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            raise

    async def _take_up(self) -> int:
        """Find the unfinished run of this plan, or enter a new one; the number of records that stand."""
        if self.book is None:
            return 0
        found = None if self.fresh else await self.book.resumable(self.plan.fingerprint)
        if found is None:
            about = self._result(0.0, 0).about()
            await self.book.start_run(RunRow(self.id, self.plan.fingerprint, self.started, None, about))
            return 0
        row, records = found
        self.id, self.started = row.id, row.started
        standing = {(r.sample, r.scorer): r for r in records if not isinstance(r.outcome, Failed)}
        for index, sample, scorer in self._cells():
            self.done[index] = standing.get((sample.id, scorer.signature))
        kept = [record for record in self.done if record is not None]
        for record in kept:
            if self.on_record is not None:
                self.on_record(record)
        return len(kept)

    def _cells(self) -> Iterator[Cell]:
        index = 0
        for sample in self.plan.dataset.samples:
            for scorer in self.plan.scorers:
                yield index, sample, scorer
                index += 1

    def _open_cells(self) -> Iterator[Cell]:
        return (cell for cell in self._cells() if self.done[cell[0]] is None)

    async def _worker(self, cells: Iterator[Cell]) -> None:
        for index, sample, scorer in cells:
            record = await apply(scorer, sample, self.asker)
            if self.book is not None:
                await self.book.keep_record(self.id, record)
            self.done[index] = record
            if self.on_record is not None:
                self.on_record(record)
            # Code scorers and the embedded judge never wait; other tasks of the loop must come to their turn.
            await asyncio.sleep(0)

    def _result(self, seconds: float, resumed: int) -> Run:
        return Run(
            id=self.id,
            dataset=self.plan.dataset.name,
            version=self.plan.dataset.version,
            samples=len(self.plan.dataset.samples),
            judge=self.asker.identity if any(s.asks for s in self.plan.scorers) else "none",
            note=self.plan.judge.note,
            cards=tuple(ScorerCard.of(scorer) for scorer in self.plan.scorers),
            records=tuple(record for record in self.done if record is not None),
            started=self.started,
            seconds=seconds,
            resumed=resumed,
        )
