"""The local engine: works the table of samples and scorers off on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from evalstone.errors import AnswerPending, BudgetExceeded, ConfigError
from evalstone.ledger import AsyncLedger, RunRow
from evalstone.results.judge_stats import Judging
from evalstone.results.records import SpillingRecords
from evalstone.results.run import Run
from evalstone.results.summary import ScorerInfo, SummaryBuilder
from evalstone.run.apply import apply
from evalstone.run.batch.options import Batch
from evalstone.run.budget import Budget, Stop
from evalstone.run.plan import Plan
from evalstone.run.session import Asker
from evalstone.scorers import Scorer
from evalstone.types import Failed, Record, Sample

if TYPE_CHECKING:
    from evalstone.judges.providers.batch import BatchApi
    from evalstone.run.batch.rounds import Rounds

Cell = tuple[int, Sample, Scorer]
OnRecord = Callable[[Record], None]


async def execute(
    plan: Plan,
    *,
    ledger: str | Path | None = None,
    concurrency: int = 32,
    fresh: bool = False,
    budget: float | None = None,
    batch: bool | Batch = False,
    stop: Stop | None = None,
    on_record: OnRecord | None = None,
) -> Run:
    """Work a plan off and return the run.

    ledger: where answers and records are kept; None keeps nothing. An unfinished run of the same plan is taken up: its
    scores and skips stand, its failures are tried again. concurrency: judge calls under way at once, at most. fresh:
    ask again what the ledger has. budget: US dollars that the run may pay, those included that it paid before it was
    stopped; when the next question does not fit, the run ends with what it has, and samples are taken in a
    random order so that this is a fair part of them. batch: ask through the provider's batch API; the run ends where it
    would have to wait, unless it is told to. stop: ends the run from outside. on_record: called with each record once
    it is durable. Raises ConfigError, LedgerError, JudgeUnavailable and BatchError; what was recorded by then stays in the
    ledger.
    """
    _check(concurrency, ledger, batch)
    api = _batch_api(plan, ledger=ledger, fresh=fresh) if batch else None
    plan.check(asking=api is None)
    async with contextlib.AsyncExitStack() as stack:
        book = await stack.enter_async_context(AsyncLedger(ledger)) if ledger is not None else None
        await stack.enter_async_context(plan.judge.opened())
        purse = None if budget is None else Budget(budget, plan.judge)
        rounds = None
        if api is not None and book is not None:
            await stack.enter_async_context(api.opened())
            rounds = _rounds(api, book, batch, budget)
            asker: Asker = rounds.asker
        else:
            asker = Asker(plan.judge, ledger=book, concurrency=concurrency, fresh=fresh, budget=purse)
        stack.push_async_callback(asker.close)
        execution = _Execution(plan, asker, book, stop or Stop(), on_record)
        execution.rounds, execution.purse = rounds, purse
        shuffled = budget is not None or (stop is not None and stop.shuffled)
        return await execution.run(workers=2 * concurrency, fresh=fresh, shuffled=shuffled)


def _check(concurrency: object, ledger: object, batch: object) -> None:
    """Raise ConfigError for an argument that is not what it should be."""
    if not isinstance(concurrency, int) or isinstance(concurrency, bool) or concurrency < 1:
        raise ConfigError(f"concurrency must be a whole number, 1 or more, not {concurrency!r}")
    if ledger is not None and not isinstance(ledger, str | Path):
        raise ConfigError(f"a ledger is a path, a URL or None, not {type(ledger).__name__}: {ledger!r}")
    if not isinstance(batch, bool | Batch):
        raise ConfigError(f"batch is true, false or a Batch, not {type(batch).__name__}: {batch!r}")


def _batch_api(plan: Plan, *, ledger: str | Path | None, fresh: bool) -> BatchApi:
    from evalstone.run.batch.rounds import batch_api_for  # noqa: PLC0415 - SQLAlchemy and aiohttp, for batches alone

    return batch_api_for(plan.judge, ledger=ledger, fresh=fresh)


def _rounds(api: BatchApi, book: AsyncLedger, batch: bool | Batch, budget: float | None) -> Rounds:
    from evalstone.run.batch.collecting import BatchAsker  # noqa: PLC0415
    from evalstone.run.batch.rounds import Rounds  # noqa: PLC0415

    settings = batch if isinstance(batch, Batch) else Batch()
    return Rounds(BatchAsker(api, book, budget=budget), settings)


class _Execution:
    """One execution of a plan, under way."""

    def __init__(
        self,
        plan: Plan,
        asker: Asker,
        book: AsyncLedger | None,
        stop: Stop,
        on_record: OnRecord | None,
    ) -> None:
        self.plan, self.asker, self.book, self.stop, self.on_record = plan, asker, book, stop, on_record
        self.done = SpillingRecords(plan.size)
        self.rounds: Rounds | None = None
        self.purse: Budget | None = None
        self.tallies = {s.signature: SummaryBuilder(ScorerInfo.of(s)) for s in plan.scorers}
        self.judging = Judging() if plan.judge.members else None
        self.id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self.started = datetime.now(UTC).isoformat(timespec="seconds")

    async def run(self, *, workers: int, fresh: bool, shuffled: bool) -> Run:
        """Work off what is open. There are more workers than calls at once: one that waits for another's answer does
        not leave a call's place empty."""
        began = time.perf_counter()
        resumed = await self._take_up(fresh)
        before = Counter(self.plan.judge.met())
        count = min(workers, self.plan.size)
        if self.rounds is not None:
            await self.rounds.begin(self.id, self.done)
        again = True
        while again:
            cells = self._open_cells(shuffled)
            if self.rounds is not None:
                cells = await self.rounds.begun(cells)
            await self._all([asyncio.ensure_future(self._worker(cells)) for _ in range(count)])
            again = self.rounds is not None and await self.rounds.proceed(self.stop)
        if self.rounds is not None:
            await self.rounds.end(self.stop, complete=self.done.complete)
        run = self._result(time.perf_counter() - began, resumed, Counter(self.plan.judge.met()) - before)
        if self.book is not None and run.complete:
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

    async def _take_up(self, fresh: bool) -> int:
        """Find the unfinished run of this plan, or enter a new one; the number of records that stand."""
        if self.book is None:
            return 0
        row = None if fresh else await self.book.take_up(self.plan.fingerprint)
        if row is None:
            about = self._result(0.0, 0, {}).metadata()
            await self.book.start_run(RunRow(self.id, self.plan.fingerprint, self.started, None, about))
            return 0
        self.id, self.started = row.id, row.started
        if self.purse is not None:
            self.purse.goes_on(datetime.fromisoformat(row.started).timestamp())
        # A hash for each cell, for samples may have long ids and there may be a million of them.
        places = {hash((sample.id, scorer.signature)): index for index, sample, scorer in self._cells()}
        async for record in self.book.records(row.id):
            self.asker.went_before(record)
            index = places.get(hash((record.sample, record.scorer)))
            if index is not None and not isinstance(record.outcome, Failed):
                self._note(index, record)
        return len(self.done)

    def _note(self, index: int, record: Record) -> None:
        self.done.put(index, record)
        self.tallies[record.scorer].add(record)
        if self.judging is not None:
            self.judging.add(record)
        if self.on_record is not None:
            self.on_record(record)

    def _cells(self) -> Iterator[Cell]:
        index = 0
        for sample in self.plan.dataset:
            for scorer in self.plan.scorers:
                yield index, sample, scorer
                index += 1

    def _open_cells(self, shuffled: bool) -> Iterator[Cell]:
        cells = (cell for cell in self._cells() if not self.done.has(cell[0]))
        if not shuffled:
            return cells
        by_sample = [list(group) for _, group in itertools.groupby(self._cells(), key=lambda cell: cell[1])]
        shuffled_cells = itertools.chain.from_iterable(by_sample[place] for place in self.plan.random_order())
        return (cell for cell in shuffled_cells if not self.done.has(cell[0]))

    async def _worker(self, cells: Iterator[Cell]) -> None:
        for index, sample, scorer in cells:
            if self.stop.requested:
                return
            try:
                record = await apply(scorer, sample, self.asker)
            except AnswerPending:
                continue
            except BudgetExceeded as error:
                self.stop.request(str(error))
                return
            if self.rounds is not None:
                record = self.rounds.asker.charge(record)
            if self.book is not None:
                await self.book.keep_record(self.id, record)
            self._note(index, record)
            # Code scorers and the lexical judge never wait; other tasks of the loop must come to their turn.
            await asyncio.sleep(0)

    def _result(self, seconds: float, resumed: int, met: Mapping[str, int]) -> Run:
        summary = tuple(tally.summary() for tally in self.tallies.values())
        if corrections := sum(line.corrections for line in summary):
            met = {**met, "replies asked for again": corrections}
        return Run(
            id=self.id,
            dataset_name=self.plan.dataset.name,
            version=self.plan.dataset.version,
            samples=len(self.plan.dataset),
            judge=self.asker.identity if any(s.questions for s in self.plan.scorers) else "none",
            judge_note=self.plan.judge.note if any(s.questions for s in self.plan.scorers) else "",
            scorers=tuple(ScorerInfo.of(scorer) for scorer in self.plan.scorers),
            records=self.done,
            summary=summary,
            started=self.started,
            seconds=seconds,
            resumed=resumed,
            stop_reason="" if self.done.complete else self.stop.reason,
            warnings=met,
            judge_stats={} if self.judging is None else self.judging.told(),
            dataset=self.plan.dataset.samples,
            batches=() if self.rounds is None else self.rounds.open,
        )
