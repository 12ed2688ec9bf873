"""The runner: scores the samples concurrently and stores every record."""

from __future__ import annotations

import asyncio
import itertools
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from evalstone._core import sync
from evalstone._core.observe import observer
from evalstone._core.phases import phase
from evalstone._core.run_ids import run_id
from evalstone.datasets.blocks import SpooledSamples
from evalstone.datasets.stored import record_line
from evalstone.errors import (
    AnswerPending,
    BudgetExceeded,
    EvalstoneError,
    LedgerError,
    RunStopped,
    StorageError,
    described,
)
from evalstone.judges.aligned import how_asked
from evalstone.ledger import AsyncLedger, RunRow
from evalstone.results.drawn import with_sequences
from evalstone.results.endings import COMPLETE, DECIDED, ending_of
from evalstone.results.run import Run
from evalstone.run.admission import Admission
from evalstone.run.budget import Budget, StopSignal
from evalstone.run.collected import Collected
from evalstone.run.experiment_cells import current_cell
from evalstone.run.notifier import Notifier, SampleResult
from evalstone.run.plan import Plan
from evalstone.run.problems import named_judges
from evalstone.run.scoring import record_of, score_sample
from evalstone.run.session import Session
from evalstone.run.workers import finish
from evalstone.scorers import Scorer
from evalstone.types import Failed, Record, Sample, total_cost

if TYPE_CHECKING:
    from evalstone.run.batch.runner import BatchRunner
    from evalstone.run.target_session import TargetSession

T = TypeVar("T")
Cell = tuple[int, Sample, Scorer]
BLOCK = 256
"""The maximum number of records that a worker stores together."""
_ITEMS_AT_A_TIME = 10_000


class _Scored(NamedTuple):
    """A record before it is stored. line: its `record_line`; None if it isn't needed."""

    place: int
    sample: Sample
    record: Record
    line: str | None


class Runner:
    """The execution of a plan."""

    def __init__(
        self, plan: Plan, session: Session, ledger: AsyncLedger | None, stop: StopSignal, *, cache: bool
    ) -> None:
        self.plan, self.session, self.ledger, self.stop, self.cache = plan, session, ledger, stop, cache
        self.answers: TargetSession | None = None
        self.notifier = Notifier()
        self.progress: Callable[[Record], None] | None = None
        self.collected = Collected(plan)
        self.batches: BatchRunner | None = None
        self.budget: Budget | None = None
        self.admission: Admission | None = None
        self.name, self.tags, self.cell = "", tuple[str, ...](), current_cell()
        self.warnings: Mapping[str, int] = {}
        self._keeping: set[asyncio.Task[Any] | None] = set()
        """Workers that are storing a record. They aren't canceled when another worker fails."""
        self.hold = 0.0
        self._ended = False
        self.failed: dict[int, Record] = {}
        """Failures of an interrupted run that have not been retried."""
        self.code = tuple[str, ...]()
        self.id = run_id(datetime.now(UTC), secrets.token_hex())
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.resumed_at = ""

    async def run(self, *, workers: int, resume: bool, shuffled: bool) -> Run:
        """Score the open cells. There are more workers than slots for calls, so a worker that waits for a shared call
        leaves no slot empty."""
        began = time.perf_counter()
        resumed = await self._resume() if resume else await self._start()
        try:
            with observer().run(self.id, self.plan) as observed:
                observed.result(run := await self._score(workers, began, resumed, shuffled=shuffled))
            return run
        except (Exception, asyncio.CancelledError) as error:
            self.stop.request(_reason(error), ending_of(error))
            # Calls that end while the result is stored would be missing in what the run paid.
            await self.close_answers()
            await self.session.close()
            self._add_failures()
            await self.collected.count_reasoning(self.answers, resumed=bool(resumed))
            run = self._result(time.perf_counter() - began, resumed, error=error)
            try:
                if not isinstance(error, StorageError):
                    await self._keep_result(run, finished=False)
            except StorageError as problem:
                error.add_note(f"what the run paid could not be stored: {problem}")
            if isinstance(error, EvalstoneError):
                error.run = run
            raise

    async def _keep_result(self, run: Run, *, finished: bool) -> None:
        if self.ledger is not None:
            when = datetime.now(UTC).isoformat(timespec="seconds") if finished else None
            await self.ledger.work(self.ledger.store.finish_run, self.id, when, run.to_dict())

    async def _score(self, workers: int, began: float, resumed: int, *, shuffled: bool) -> Run:
        if self.ledger is not None:
            with phase("storing the samples"):
                await self.ledger.keep_samples(self.plan.dataset.version, self.plan.dataset.samples)
        count = min(workers, self.plan.size)
        if self.batches is not None:
            await self.batches.begin(self.id, self.collected.records)
        again = True
        while again:
            cells = await self._open_cells(shuffled)
            if self.batches is not None:
                cells = await self.batches.affordable(cells)
            tasks = [asyncio.ensure_future(self._work(cells)) for _ in range(count)]
            await finish(tasks, self.session, self._on_error, self._keeping)
            again = self.batches is not None and await self.batches.proceed(self.stop)
        if self.batches is not None:
            await self.batches.end(self.stop, complete=self.collected.records.complete)
        await self._keep_failures()
        await self.notifier.done()
        await self.collected.find_cautions(self.answers)
        await self.collected.count_reasoning(self.answers, resumed=bool(resumed))
        run = self._result(time.perf_counter() - began, resumed)
        await self._keep_result(run, finished=run.complete)
        return run

    async def _start(self) -> int:
        """Start a new run and store it in the ledger."""
        self.session.calls.spending.run = self.id
        self.answers = self._answers()
        if self.ledger is not None:
            metadata = self._result(0.0, 0).metadata()
            await self.ledger.work(
                self.ledger.store.start_run, RunRow(self.id, self.plan.fingerprint, self.started, None, metadata)
            )
        return 0

    async def _resume(self) -> int:
        """Resume the interrupted run of this plan, or start a new one. Returns the number of records that are kept."""
        row = None if self.ledger is None else await self.ledger.work(self.ledger.store.resume, self.plan.fingerprint)
        if self.ledger is None or row is None:
            return await self._start()
        self.resumed_at, self.id, self.started = self.started, row.id, row.started
        self.code = self.plan.code_files
        self.session.calls.spending.resume(row)
        self.answers = self._answers()
        scorers = self.collected.scorers
        async for index, record in self.ledger.records(row.id):
            self.session.restore(record)
            if self.admission is not None:
                self.admission.learn(record)
            if index >= self.plan.size or record.signature != scorers[index % len(scorers)].signature:
                continue  # a row that was changed by hand
            if isinstance(record.outcome, Failed):
                self.failed[index] = record
            else:
                self._add(index, record)
            if self.notifier.full:
                await self.notifier.done()
        await self.notifier.done()
        if self.answers is not None:
            cases = enumerate(self.plan.cases())
            await self.answers.restore((place, sample) for place, sample in cases if not self.collected.open_in(place))
        cases = enumerate(self.plan.cases() if self.notifier.on_sample is not None else ())
        async for place, sample in self._stoppable(cases):
            self._finish(place, sample)
            if self.notifier.full:
                await self.notifier.done()
        await self.notifier.done()
        return len(self.collected.records)

    async def _keep_failures(self) -> None:
        """Keep the failures of an interrupted run that were not retried."""
        self._add_failures()
        places = {index // len(self.collected.scorers) for index in self.failed}
        cases = [(place, sample) for place, sample in enumerate(self.plan.cases()) if place in places] if places else []
        if (answers := self.answers) is not None:
            left = ((place, sample) for place, sample in cases if not answers.samples.has(place))
            await answers.restore(left, failed=True)
        for place, sample in cases:
            self._finish(place, sample)

    def _add_failures(self) -> None:
        for index, record in self.failed.items():
            if not self.collected.records.has(index):
                self._add(index, record)

    def _answers(self) -> TargetSession | None:
        """The target's answers; None without a target."""
        if self.plan.target is None:
            return None
        from evalstone.run.target_session import TargetSession  # noqa: PLC0415 - only with a target

        return TargetSession(
            self.plan.target,
            self.id,
            user=self.plan.user,
            session=self.session,
            trials=self.plan.trials,
            size=len(self.plan.dataset) * self.plan.trials,
            replaced=self.plan.cases_for_target.replaced,
            stop=self.stop,
        )

    async def close_answers(self) -> None:
        """Cancel the target's calls in flight."""
        if self.answers is not None:
            await self.answers.close()

    def _add(self, index: int, record: Record, line: str | None = None) -> None:
        """Add a record to the results. line: its `record_line`, if it is known."""
        self.collected.add(index, record, line)
        if self.progress is not None:
            self.progress(record)
        self.notifier.add_record(record)

    def _finish(self, place: int, sample: Sample) -> None:
        """Call `on_sample` once a sample and trial has all of its records."""
        if self.notifier.on_sample is None or self.collected.open_in(place):
            return
        shown = sample if self.answers is None else self.answers.samples.at(place)
        self.notifier.add_sample(SampleResult(sample=shown, records=self.collected.records_of(place)))

    def _cells(self) -> Iterator[Cell]:
        index = 0
        for sample in self.plan.cases():
            for scorer in self.plan.scorers:
                yield index, sample, scorer
                index += 1

    def _drawn_cells(self) -> Iterator[Cell]:
        """All cells, with the samples in random order."""
        order, samples = self.plan.random_order(), self.plan.dataset.samples
        drawn = samples.at(order) if isinstance(samples, SpooledSamples) else map(samples.__getitem__, order)
        cells = (itertools.product(self.plan.cases([sample]), self.plan.scorers) for sample in drawn)
        size = self.plan.trials * len(self.collected.scorers)
        return (
            (index, case, scorer)
            for place, of_sample in zip(order, cells, strict=True)
            for index, (case, scorer) in enumerate(of_sample, start=place * size)
        )

    async def _open_cells(self, shuffled: bool) -> Iterator[Cell]:
        if not shuffled:
            cells = self._cells()
        elif isinstance(self.plan.dataset.samples, SpooledSamples):
            cells = await sync.call_at_once(self._drawn_cells)
        else:
            cells = self._drawn_cells()
        # The stop is checked here, too, because a resumed run may skip millions of cells before the next open one.
        return (cell for cell in cells if not self.collected.records.has(cell[0]) or self.stop.requested)

    async def _stoppable(self, items: Iterable[T]) -> AsyncIterator[T]:
        """The items of a loop that may be long, such as all cells, which a cancellation or a stop of the run ends.

        Raises RunStopped.
        """
        for number, item in enumerate(items, start=1):
            yield item
            if number % _ITEMS_AT_A_TIME == 0:
                await asyncio.sleep(0)
                if self.stop.requested:
                    raise RunStopped(self.stop.reason)

    async def _work(self, cells: Iterator[Cell]) -> None:
        block: list[_Scored] = []
        due = math.inf
        try:
            for index, sample, scorer in cells:
                if self.ends():
                    break
                try:
                    record = await self._affordable(index, sample, scorer)
                except (AnswerPending, RunStopped):
                    continue
                except BudgetExceeded as error:
                    self.session.stop = None  # finish the samples in progress as far as the budget allows
                    self.stop.request(str(error), ending_of(error))
                    break
                if self.batches is not None:
                    record = self.batches.session.charge(record)
                if (failed := self.failed.pop(index, None)) is not None:
                    # Keep the cost of the earlier attempt.
                    record = replace(record, calls=(*(call for call in failed.calls if call.cost != 0), *record.calls))
                now = time.monotonic()
                due = due if block else now + self.hold
                block.append(_Scored(index, sample, record, None if self.ledger is None else record_line(record)))
                if len(block) == BLOCK or now >= due:
                    await self._keep(block)
        except Exception:
            await self._keep(block)
            raise
        await self._keep(block)

    async def _keep(self, block: list[_Scored]) -> None:
        """Store records and add them to the results. The block is then empty."""
        worker = asyncio.current_task()
        self._keeping.add(worker)
        scored, block[:] = tuple(block), ()
        if self.ledger is not None and scored:
            try:
                await self.ledger.keep_records(self.id, [(each.place, each.record, each.line) for each in scored])
            except (LedgerError, asyncio.CancelledError):  # if this was canceled, they are stored nevertheless
                for each in scored:
                    self._add(each.place, each.record, each.line)  # it has been paid for
                raise
        for each in scored:
            self._add(each.place, each.record, each.line)
            self._finish(each.place // len(self.collected.scorers), each.sample)
        await self.notifier.done()
        self._keeping.discard(worker)
        for each in scored:
            self.session.check(each.record)
        # Code scorers and the lexical judge never yield to other tasks.
        await asyncio.sleep(0)

    def ends(self) -> bool:
        """Whether the run ends, so that no more samples are begun."""
        return self.stop.requested or self._ended

    def answer_cost(self) -> float:
        """The highest cost of a target's answer so far, in US dollars."""
        return 0.0 if self.answers is None else self.answers.highest_cost

    async def _affordable(self, index: int, sample: Sample, scorer: Scorer) -> Record:
        """The record, once the budget covers it. Raises RunStopped if the run ends first."""
        if self.admission is None:
            return await self._record(index, sample, scorer)
        async with self.admission.begun(scorer.signature):
            if self.ends():
                raise RunStopped(self.stop.reason)
            record = await self._record(index, sample, scorer)
            self.admission.learn(record)
            return record

    async def _record(self, index: int, sample: Sample, scorer: Scorer) -> Record:
        problem = None
        if self.answers is not None:
            place = index // len(self.collected.scorers)
            sample, problem, *_ = await self.answers.get(place, sample, self.collected.open_in(place))
        if problem is None:
            self.collected.look_at(sample)
            return await score_sample(scorer, sample, self.session, self.plan.titles[scorer.signature])
        with observer().score(scorer, sample) as observed:
            observed.result(record := record_of(scorer, sample, problem, self.plan.titles[scorer.signature]))
        return record

    def _on_error(self, error: BaseException) -> str:
        """End the run because of what ended its workers; returns the reason."""
        self._ended = True
        if isinstance(error, Exception) and not isinstance(error, StorageError):
            self.stop.request(_reason(error), ending_of(error))
        return self.stop.reason

    def _result(self, seconds: float, resumed: int, *, error: Exception | asyncio.CancelledError | None = None) -> Run:
        collected = self.collected
        summary = collected.summary()
        judges, judge_note = named_judges(
            [judge.identity for judge in self.plan.asked_judges],
            {judge.identity: judge.note for judge in self.plan.judges},
            summary,
        )
        stop_reason, ending = self.stop.reason, self.stop.ending
        if error is not None and ending is DECIDED:
            stop_reason, ending = _reason(error), ending_of(error)
        if not stop_reason or (error is None and self.collected.records.complete and not self.failed):
            stop_reason, ending = "", COMPLETE
        drawn = collected.drawn() if ending is DECIDED else None
        return Run(
            id=self.id,
            kind=self.plan.kind,
            dataset_name=self.plan.dataset.name,
            dataset_version=self.plan.dataset.version,
            n_samples=len(self.plan.dataset),
            judge=judges,
            judge_note=judge_note,
            cautions=collected.cautions,
            scorers=collected.scorers,
            records=collected.records,
            summary=summary if drawn is None else with_sequences(summary, collected.records.columns, drawn),
            started=self.started,
            seconds=seconds,
            resumed=resumed,
            resumed_at=self.resumed_at,
            code=self.code,
            stop_reason=stop_reason,
            ending=ending,
            warnings=collected.warnings(self.warnings, summary),
            judge_stats=collected.judge_stats(),
            samples=self.plan.dataset.samples if self.answers is None else self.answers.samples,
            target=None if self.answers is None else self.answers.summary(),
            paid=self.session.calls.spending.paid(total_cost(line.cost for line in summary)),
            batches=() if self.batches is None else self.batches.open_names,
            name=self.name,
            tags=self.tags,
            drawn=drawn,
            cell=self.cell,
            asking=how_asked(self.plan.asked_judges, self.session.limits_of),
        )


def _reason(error: Exception | asyncio.CancelledError) -> str:
    """Why a run ended that this error ended."""
    if isinstance(error, asyncio.CancelledError):
        return "canceled"
    return str(error) if isinstance(error, EvalstoneError) else described(error)
