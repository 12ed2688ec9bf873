"""The runner: scores the samples concurrently and stores every record."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from evalstone._core import sync
from evalstone._core.declarations import NAME, check_argument
from evalstone._core.files import spare_files
from evalstone._core.front_ends import Setting
from evalstone._core.garbage import rare_collections
from evalstone._core.observe import observer
from evalstone._core.phases import phase
from evalstone._core.sizes import Concurrency
from evalstone.agents.reasoning import answered, has_reasoning
from evalstone.datasets.blocks import SpooledSamples
from evalstone.datasets.stored import record_line
from evalstone.errors import (
    AnswerPending,
    BudgetExceeded,
    ConfigError,
    EvalstoneError,
    LedgerError,
    RunStopped,
    StorageError,
    described,
)
from evalstone.judges.base import Judge
from evalstone.ledger import AsyncLedger, RunRow
from evalstone.models.limits import counting_warnings, shared_limiter, stopping
from evalstone.results.drawn import with_sequences
from evalstone.results.endings import COMPLETE, DECIDED, ending_of
from evalstone.results.run import Run
from evalstone.results.spilling import SpillingRecords
from evalstone.results.summary import WITHOUT, JudgeStats, ScorerSummary, SummaryBuilder
from evalstone.run.admission import Admission
from evalstone.run.budget import Budget, StopSignal
from evalstone.run.experiment_cells import current_cell
from evalstone.run.notifier import Notifier, OnRecord, OnSample, SampleResult
from evalstone.run.plan import BatchOptions, Plan, scorer_info
from evalstone.run.scoring import record_of, score_sample
from evalstone.run.session import Session
from evalstone.run.sharing import shared_limits
from evalstone.run.told import named_judges, problems
from evalstone.scorers import Scorer
from evalstone.types import Drawn, Failed, Note, Record, Sample, total_cost

if TYPE_CHECKING:
    from evalstone.run.batch.runner import BatchRunner
    from evalstone.run.target_session import TargetSession

T = TypeVar("T")
Cell = tuple[int, Sample, Scorer]
BLOCK = 256
"""The maximum number of records that a worker stores together."""
HOLD = 0.05
"""The seconds for which a record that cost nothing waits for others to be stored with."""

_ITEMS_AT_A_TIME = 10_000
LAST_CALLS = 60.0
"""The maximum number of seconds that a run that an error ended waits for its calls in flight."""


async def execute(
    plan: Plan,
    *,
    ledger: str | Path | None = None,
    concurrency: int = 32,
    cache: bool = True,
    resume: bool = True,
    budget: float | Budget | None = None,
    batch: bool | BatchOptions = False,
    stop: StopSignal | None = None,
    on_record: OnRecord | None = None,
    on_sample: OnSample | None = None,
    progress: Callable[[Record], None] | None = None,
    name: str = "",
    tags: tuple[str, ...] = (),
) -> Run:
    """Run a plan and return its results. Arguments and errors are those of `evalstone.aevaluate`.

    The process's limit on open files lowers the concurrency, because each call has a connection.
    An interrupted run of the same plan is resumed: scores and skips are kept, failures are retried, and its cost counts
    against the budget. With `resume=False`, a new run starts and its target answers again. Under a budget, samples are
    processed in random order, so the scored subset is representative. A `Budget` may be shared with other runs.
    `progress` is called with each record on the event loop.
    """
    _check(concurrency, ledger, batch)
    check_names(name, tags)
    concurrency = slots(plan, concurrency)
    if plan.target is not None and batch:
        raise ConfigError(
            Setting("batch"), " can't be used with a target; write its run to a folder, then score its samples.jsonl"
        )
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(rare_collections(min(concurrency, plan.size)))
        batches = _batches(plan, ledger=ledger, cache=cache, budget=budget, batch=batch) if batch else None
        plan.check(asking=batches is None)
        stop = stop or StopSignal()
        stack.enter_context(stopping(lambda: stop.requested))
        store = await stack.enter_async_context(AsyncLedger(ledger)) if ledger is not None else None
        limits = await stack.enter_async_context(shared_limits(store))
        for judge in (*plan.judges, *(() if plan.user is None else plan.user.judges)):
            await stack.enter_async_context(judge.opened())
        limit = Budget.of(budget, *plan.priced_judges)
        if batches is not None and store is not None:
            await batches.open(stack, store)
            session: Session = batches.session
        else:
            options: dict[str, Any] = {"concurrency": concurrency, "cache": cache, "budget": limit}
            session = Session(plan.judge, ledger=store, stop=stop, limits=limits, **options)
        session.keep_reasoning = plan.keep_reasoning
        stack.push_async_callback(session.close)
        runner = _Runner(plan, session, store, stop, cache=cache)
        runner.notifier, runner.progress = Notifier(on_record, on_sample), progress
        runner.batches, runner.budget = batches, limit
        if limit is not None and batches is None:
            runner.admission = Admission(limit, runner.ends, runner.answer_cost)
        runner.name, runner.tags = name, tags
        if plan.target is not None:
            await stack.enter_async_context(shared_limiter(plan.target.identity, plan.target.limits))
            await stack.enter_async_context(plan.target.opened())
            stack.push_async_callback(runner.close_answers)
        shuffled = budget is not None or stop.shuffled
        immediate = plan.target is None and all(scorer.is_immediate for scorer in plan.scorers)
        if immediate and not (shuffled or runner.notifier.is_used):
            runner.hold = HOLD
        runner.warnings = stack.enter_context(counting_warnings())
        return await runner.run(workers=2 * concurrency, resume=cache and resume, shuffled=shuffled)


def slots(plan: Plan, concurrency: int) -> int:
    """The concurrency that the process's limit on open files allows. A target gets half of the files."""
    return spare_files(concurrency, 1 if plan.target is None else 2)


def check_names(name: object, tags: Iterable[object]) -> None:
    """Raise ConfigError for a name or a tag that is no line of visible text. An empty name is none."""
    for setting, texts in (("name", () if name == "" else (name,)), ("tags", tags)):
        for text in texts:
            check_argument(setting, text, Annotated[str, NAME])


def _check(concurrency: object, ledger: object, batch: object) -> None:
    """Raise ConfigError for an argument of the wrong type or out of range."""
    check_argument("concurrency", concurrency, Concurrency)
    if ledger is not None and not isinstance(ledger, str | Path):
        raise ConfigError(f"a ledger is a path, a URL or None, not {type(ledger).__name__}: {ledger!r}")
    if not isinstance(batch, bool | BatchOptions):
        raise ConfigError(f"batch is true, false or BatchOptions, not {type(batch).__name__}: {batch!r}")


def _batches(
    plan: Plan, *, ledger: str | Path | None, cache: bool, budget: float | Budget | None, batch: bool | BatchOptions
) -> BatchRunner:
    from evalstone.run.batch.runner import BatchRunner  # noqa: PLC0415 - aiohttp, for batches alone

    if isinstance(budget, Budget):
        raise ConfigError("a batch can't share its budget with other runs; give it as a number")
    if ledger is None:
        raise ConfigError("batch needs a ledger: it is where a batch is remembered until its answers come")
    if not cache:
        raise ConfigError(
            "batch reads its answers from the ledger; it cannot be combined with ", Setting("cache", False)
        )
    if own := next((scorer for scorer in plan.scorers if scorer.judges), None):
        raise ConfigError(f"batch asks the run's judge; {own.name} has a judge of its own")
    if again := next((scorer for scorer in plan.scorers if scorer.asks_again), None):
        raise ConfigError(f"batch asks each question once; {again.name} asks it several times, so run it without batch")
    return BatchRunner(plan.judge, batch if isinstance(batch, BatchOptions) else BatchOptions(), budget)


class _Scored(NamedTuple):
    """A record before it is stored. line: its `record_line`; None if it isn't needed."""

    place: int
    sample: Sample
    record: Record
    line: str | None


class _Runner:
    """The execution of a plan."""

    def __init__(
        self, plan: Plan, session: Session, ledger: AsyncLedger | None, stop: StopSignal, *, cache: bool
    ) -> None:
        self.plan, self.session, self.ledger, self.stop, self.cache = plan, session, ledger, stop, cache
        self.answers: TargetSession | None = None
        self.notifier = Notifier()
        self.progress: Callable[[Record], None] | None = None
        self.records = SpillingRecords([scorer.signature for scorer in plan.scorers], len(plan.dataset) * plan.trials)
        self.batches: BatchRunner | None = None
        self.budget: Budget | None = None
        self.admission: Admission | None = None
        self.scorers = tuple(scorer_info(scorer) for scorer in plan.scorers)
        self.summaries = {info.signature: SummaryBuilder(info) for info in self.scorers}
        self.judge_stats = JudgeStats() if any(judge.members for judge in plan.judges) else None
        self.name, self.tags, self.cell = "", tuple[str, ...](), current_cell()
        self.warnings: Mapping[str, int] = {}
        self._keeping: set[asyncio.Task[Any] | None] = set()
        """Workers that are storing a record. They aren't canceled when another worker fails."""
        self.hold = 0.0
        self._ended = False
        self._cautions: tuple[Note, ...] = ()
        self._has_reasoning, self._reasoned = False, 0
        self.failed: dict[int, Record] = {}
        """Failures of an interrupted run that have not been retried."""
        self.code = tuple[str, ...]()
        self.id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
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
            await self._count_reasoning(resumed)
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
            await self.batches.begin(self.id, self.records)
        again = True
        while again:
            cells = await self._open_cells(shuffled)
            if self.batches is not None:
                cells = await self.batches.affordable(cells)
            await self._all([asyncio.ensure_future(self._work(cells)) for _ in range(count)])
            again = self.batches is not None and await self.batches.proceed(self.stop)
        if self.batches is not None:
            await self.batches.end(self.stop, complete=self.records.complete)
        await self._keep_failures()
        await self.notifier.done()
        asked = {
            identity.partition(WITHOUT)[0] for builder in self.summaries.values() for identity in builder.counts.judges
        }
        judges = [judge for judge in self.plan.judges if judge.identity in asked]
        if any(type(judge).cautions is not Judge.cautions for judge in judges):  # else, no thread is needed
            self._cautions = await sync.call_at_once(self._cautions_of, judges)
        await self._count_reasoning(resumed)
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
        async for index, record in self.ledger.records(row.id):
            self.session.restore(record)
            if self.admission is not None:
                self.admission.learn(record)
            if index >= self.plan.size or record.signature != self.scorers[index % len(self.scorers)].signature:
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
            await self.answers.restore((place, sample) for place, sample in cases if not self._open_in(place))
        cases = enumerate(self.plan.cases() if self.notifier.on_sample is not None else ())
        async for place, sample in self._stoppable(cases):
            self._finish(place, sample)
            if self.notifier.full:
                await self.notifier.done()
        await self.notifier.done()
        return len(self.records)

    async def _keep_failures(self) -> None:
        """Keep the failures of an interrupted run that were not retried."""
        self._add_failures()
        places = {index // len(self.scorers) for index in self.failed}
        cases = [(place, sample) for place, sample in enumerate(self.plan.cases()) if place in places] if places else []
        if (answers := self.answers) is not None:
            left = ((place, sample) for place, sample in cases if not answers.samples.has(place))
            await answers.restore(left, failed=True)
        for place, sample in cases:
            self._finish(place, sample)

    def _add_failures(self) -> None:
        for index, record in self.failed.items():
            if not self.records.has(index):
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
            stop=self.stop,
        )

    async def close_answers(self) -> None:
        """Cancel the target's calls in flight."""
        if self.answers is not None:
            await self.answers.close()

    def _open_in(self, place: int) -> int:
        """The number of scorers without a record of a sample and trial. place: its number in the plan."""
        scorers = len(self.scorers)
        return sum(not self.records.has(index) for index in range(place * scorers, (place + 1) * scorers))

    def _cautions_of(self, judges: Iterable[Judge]) -> tuple[Note, ...]:
        """The judges' notes on the scored samples."""
        keep = self.plan.keep_reasoning
        found = (judge.cautions(s if keep else answered(s) for s in self._scored()) for judge in judges)
        return tuple(dict.fromkeys(itertools.chain.from_iterable(found)))

    async def _count_reasoning(self, resumed: int) -> None:
        """Count the scored outputs that begin with reasoning, if this process has seen one, or not all of them."""
        if self._has_reasoning or resumed:
            self._reasoned = await sync.call_at_once(lambda: sum(map(has_reasoning, self._scored())))

    def _scored(self) -> Iterator[Sample]:
        """The samples with at least one record, with the target's answers."""
        for place, sample in enumerate(self.plan.cases()):
            if self._open_in(place) == len(self.scorers):
                continue
            if self.answers is None:
                yield sample
            elif self.answers.samples.has(place):
                yield self.answers.samples.at(place)

    def _add(self, index: int, record: Record, line: str | None = None) -> None:
        """Add a record to the results. line: its `record_line`, if it is known."""
        self.summaries[record.signature].add(record)
        if self.judge_stats is not None:
            self.judge_stats.add(record)
        self.records.put(index, record, line)
        if self.progress is not None:
            self.progress(record)
        self.notifier.add_record(record)

    def _finish(self, place: int, sample: Sample) -> None:
        """Call `on_sample` once a sample and trial has all of its records."""
        if self.notifier.on_sample is None or self._open_in(place):
            return
        scorers = len(self.scorers)
        cells = range(place * scorers, (place + 1) * scorers)
        records = {record.scorer: record for record in map(self.records.at, cells)}
        shown = sample if self.answers is None else self.answers.samples.at(place)
        self.notifier.add_sample(SampleResult(sample=shown, records=records))

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
        size = self.plan.trials * len(self.scorers)
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
        return (cell for cell in cells if not self.records.has(cell[0]) or self.stop.requested)

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
            self._finish(each.place // len(self.scorers), each.sample)
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
            place = index // len(self.scorers)
            sample, problem, *_ = await self.answers.get(place, sample, self._open_in(place))
        if problem is None:
            self._has_reasoning = self._has_reasoning or has_reasoning(sample)
            return await score_sample(scorer, sample, self.session, self.plan.titles[scorer.signature])
        with observer().score(scorer, sample) as observed:
            observed.result(record := record_of(scorer, sample, problem, self.plan.titles[scorer.signature]))
        return record

    async def _all(self, workers: list[asyncio.Task[None]]) -> None:
        """Wait for all workers. The first error, or a cancellation, ends them all and is raised.

        After an error, no more calls are made, and those in flight are awaited, because they will be paid for. After a
        cancellation they are canceled, as after a StorageError, because their answers can't be stored.
        """
        everything = asyncio.gather(*workers)
        everything.add_done_callback(lambda done: done.cancelled() or done.exception())  # also if it isn't awaited
        try:
            await (everything if self.ledger is None else self.ledger.ends_with(everything))
        except BaseException as error:
            self._ended = True
            try:
                if isinstance(error, Exception) and not isinstance(error, StorageError):
                    self.stop.request(_reason(error), ending_of(error))
                    self.session.end(self.stop.reason)
                    await asyncio.wait(workers, timeout=LAST_CALLS)
            finally:
                for worker in workers:
                    if worker not in self._keeping or isinstance(error, asyncio.CancelledError):
                        worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
            raise

    def _result(self, seconds: float, resumed: int, *, error: Exception | asyncio.CancelledError | None = None) -> Run:
        summary = tuple(builder.summary() for builder in self.summaries.values())
        judges, judge_note = named_judges(
            [judge.identity for judge in self.plan.asked_judges],
            {judge.identity: judge.note for judge in self.plan.judges},
            summary,
        )
        stop_reason, ending = self.stop.reason, self.stop.ending
        if error is not None and ending is DECIDED:
            stop_reason, ending = _reason(error), ending_of(error)
        if not stop_reason or (error is None and self.records.complete and not self.failed):
            stop_reason, ending = "", COMPLETE
        drawn = self._drawn() if ending is DECIDED else None
        return Run(
            id=self.id,
            kind=self.plan.kind,
            dataset_name=self.plan.dataset.name,
            dataset_version=self.plan.dataset.version,
            n_samples=len(self.plan.dataset),
            judge=judges,
            judge_note=judge_note,
            cautions=self._cautions,
            scorers=self.scorers,
            records=self.records,
            summary=summary if drawn is None else with_sequences(summary, self.records.columns, drawn),
            started=self.started,
            seconds=seconds,
            resumed=resumed,
            resumed_at=self.resumed_at,
            code=self.code,
            stop_reason=stop_reason,
            ending=ending,
            warnings=self._warnings(summary),
            judge_stats={} if self.judge_stats is None else self.judge_stats.to_dict(),
            samples=self.plan.dataset.samples if self.answers is None else self.answers.samples,
            target=None if self.answers is None else self.answers.summary(),
            paid=self.session.calls.spending.paid(total_cost(line.cost for line in summary)),
            batches=() if self.batches is None else self.batches.open_names,
            name=self.name,
            tags=self.tags,
            drawn=drawn,
            cell=self.cell,
        )

    def _warnings(self, summary: Sequence[ScorerSummary]) -> dict[str, int]:
        """The problems of the run, with their counts."""
        dropped: dict[tuple[str, str, int], int] = {}  # scorers share the calls whose items were dropped
        for builder in self.summaries.values():
            dropped.update(builder.counts.dropped)
        reasoned, keep = self._reasoned, self.plan.keep_reasoning
        return problems(self.warnings, summary, sum(dropped.values()), reasoned, keep_reasoning=keep)

    def _drawn(self) -> Drawn:
        """The random order, and the number of samples that each scorer has scored in it without a gap."""
        tested: dict[str, int] = {}
        order = self.plan.random_order()
        for place, info in enumerate(self.scorers):
            scored = (self.records.has(sample * len(self.scorers) + place) for sample in order)
            tested[info.signature] = sum(1 for _ in itertools.takewhile(bool, scored))
        return Drawn(seed=self.plan.fingerprint, tested=tested)


def _reason(error: Exception | asyncio.CancelledError) -> str:
    """Why a run ended that this error ended."""
    if isinstance(error, asyncio.CancelledError):
        return "canceled"
    return str(error) if isinstance(error, EvalstoneError) else described(error)
