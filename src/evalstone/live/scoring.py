"""Live scoring: submissions are written to the ledger, then scored, then their outcomes are written.

An error of one sample is a failed row. An error of the ledger ends the worker: the application starts another one and
sends unacknowledged frames again, whose rows are written once.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evalstone._core import sync
from evalstone._core.display import money
from evalstone.agents.reasoning import has_reasoning
from evalstone.errors import (
    ConfigError,
    JudgeError,
    JudgeRefused,
    JudgeUnavailable,
    LedgerError,
    LedgerValueError,
    RunAborted,
    described,
    error_text,
)
from evalstone.judges import Judge
from evalstone.ledger import AsyncLedger, Key, live
from evalstone.ledger.base import sample_hash
from evalstone.ledger.live import LiveCounts, LiveScore
from evalstone.live.frames import (
    LONGEST_NAME,
    READ_FAILED,
    USER_ERRORS,
    Content,
    Frame,
    HourCounts,
    Reply,
    Settings,
    Submitted,
    restored,
)
from evalstone.live.samples import sample_from, submitted_trace
from evalstone.live.sender import OncePerKind
from evalstone.questions.answers import JudgeAnswer
from evalstone.report.notes import sentence_of
from evalstone.results.run_notes import reasoning_note
from evalstone.results.summary import scorer_titles
from evalstone.run.budget import Budget
from evalstone.run.opening import open_session
from evalstone.run.plan import scorer_info
from evalstone.run.scoring import score_sample
from evalstone.run.session import QuestionCall, Session
from evalstone.types import Asking, Failed, Record, Sample, trace_metadata

MAX_UNFINISHED, MAX_UNFINISHED_BYTES = 256, 64_000_000
"""The most samples that the worker has accepted and not finished, and their size in bytes, which the last frame may
exceed. More are accepted only when the application ends."""
CLAIM_EVERY, MISSING_EVERY = 10.0, 1.0
"""Seconds between two searches for rows of dead workers. The second applies while there may be more rows than the last
search took over, and while another worker has rows of this application."""
RENEWED = 300.0
"""Seconds after which a new session replaces the old one, with closed circuit breakers."""
FIRST_PAUSE, MAX_PAUSE = 5.0, 300.0
"""Seconds until a judge that failed is asked again."""
DAY = 86_400
SPENT_EVERY = 1.0
"""Seconds for which the amount that the stream has spent is cached."""
MAX_WORKERS = 5
"""A sample fails if this many workers died while scoring it, because it may be the cause."""
INVALID = "the submission is not a sample: "
_ENDING = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""What ends an event loop or a coroutine. In a worker, which no signal reaches, user code raised it."""
_TRACE_ID = re.compile("[0-9a-f]{32}")


@dataclass
class Job:
    """A sample with its rows that are to be scored."""

    sample: Sample | None
    rows: list[LiveScore]
    problem: str = ""
    """Why it is not scored."""
    size: int = 0
    """Bytes of what was submitted."""
    frame: int | None = 0
    """The number of its frame. For a sample that was taken over: 0 if this application submitted it, None if another
    one did."""
    taken_over: bool = False


class Scoring:
    """Accepts frames and scores their samples: `async with Scoring(settings) as scoring`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._scorers = {scorer.signature: scorer for scorer in settings.scorers}
        self._titles = scorer_titles([scorer_info(scorer) for scorer in settings.scorers])
        self._stack = contextlib.AsyncExitStack()
        self._session: Session
        self._renew_at, self._pause = 0.0, FIRST_PAUSE
        self._refused = False
        """Whether the judge failed, so that it isn't asked until the session is renewed."""
        self._jobs: asyncio.Queue[Job] = asyncio.Queue()
        self._suspects: asyncio.Queue[Job] = asyncio.Queue()
        """Samples that a dead worker had taken over and begun. They are scored one at a time, so that only the one that
        kills a worker is counted."""
        self._takeovers: set[str] = set()
        """The IDs of the rows of all unfinished jobs."""
        self._unfinished: Counter[int | None] = Counter()
        """The number of unfinished jobs of each frame."""
        self._last = 0
        """The number of the last frame."""
        self._elsewhere = False
        """Whether another worker had pending rows of this application at the last check."""
        self._begun: set[str] = set()
        """The IDs of rows that were taken over and are being scored."""
        self._bytes = 0
        self._active = 0
        """Jobs that are being scored, or whose outcomes are being written."""
        self._budget = _DailyBudget(settings.daily_budget)
        self._tasks: set[asyncio.Task[None]] = set()
        self._tell = OncePerKind(settings.stream).warn
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Has the error that ends the worker."""

    async def __aenter__(self) -> Scoring:
        judges = [judge for scorer in self._scorers.values() for judge in scorer.judges]
        opened = open_session(
            self._settings.judge, *judges, ledger=self._settings.ledger, concurrency=self._settings.concurrency
        )
        session = await self._stack.enter_async_context(opened)
        assert session.calls.ledger is not None  # noqa: S101 - it was opened with one
        self._ledger = session.calls.ledger
        self._renew()
        try:
            more = await self._claim()
        except BaseException:
            await self._stack.aclose()
            raise
        self._begin(self._claim_now_and_then(more))
        for _ in range(self._settings.concurrency):
            self._begin(self._score_jobs(self._jobs))
        self._begin(self._score_jobs(self._suspects))
        return self

    async def __aexit__(self, kind: Any, raised: BaseException | None, traceback: Any) -> None:
        await sync.cancel_all(self._tasks)
        await self._session.close()
        error = self.broken.exception() if self.broken.done() else raised
        if error is None or (isinstance(error, LedgerError) and not isinstance(error, LedgerValueError)):
            # A takeover is counted before scoring. If this can't be written, the takeover counts, but only once.
            with contextlib.suppress(LedgerError):
                await self._ledger.work(self._give_back)
        await self._stack.__aexit__(kind, raised, traceback)

    @property
    def backlog(self) -> int:
        """Samples that are accepted and not finished."""
        return self._jobs.qsize() + self._suspects.qsize() + self._active

    @property
    def settled(self) -> int:
        """The number of the last frame that is finished, with all before it, in any worker; negative while another
        worker has unfinished rows of this application."""
        if self._elsewhere:
            return -1
        return min((frame for frame in self._unfinished if frame is not None), default=self._last + 1) - 1

    async def accept(self, frame: Frame) -> Reply:
        """Write a frame's counts, and a pending row for each of its samples. They are durable when this returns.

        Raises:
            LedgerError: If they can't be written.
        """
        if self.broken.done():
            self.broken.result()
        self._last = frame.number
        counts = [each for hour in frame.counts for each in self._counts(hour)]
        jobs = list(map(self._job, frame.submitted))
        if counts or jobs:
            rows = [row for job in jobs for row in job.rows]
            samples = [job.sample for job in jobs if job.sample is not None]
            written = await self._ledger.work(live.write_frame, self._ledger.store, counts, rows, samples)
            if len(written) < len(rows):  # they have outcomes, or another worker has them
                self._elsewhere = await self._owns_elsewhere()
            ours = {row.id: row for row in written}
            for job in jobs:
                mine = [ours[row.id] for row in job.rows if row.id in ours]
                self._add(dataclasses.replace(job, rows=mine, frame=frame.number))
        return Reply(max(0, MAX_UNFINISHED - self.backlog) if self._bytes < MAX_UNFINISHED_BYTES else 0, self.settled)

    async def finish(self, seconds: float) -> None:
        """Wait until everything is scored, at most this many seconds."""
        end = time.monotonic() + seconds
        while self.backlog and not self.broken.done() and time.monotonic() < end:  # noqa: ASYNC110 - ends in three ways
            await asyncio.sleep(0.01)

    def _counts(self, hour: HourCounts) -> Iterable[LiveCounts]:
        eligible = hour.seen - hour.filtered
        for place, signature in enumerate(self._scorers):
            dropped, accepted = sum(hour.dropped[place + 1 :]), sum(hour.accepted[place + 1 :])
            yield LiveCounts(
                stream=self._settings.stream,
                signature=signature,
                owner=self._settings.owner,
                hour=hour.hour,
                seen=hour.seen,
                filtered=hour.filtered,
                eligible=eligible,
                declined=eligible - dropped - accepted,
                dropped=dropped,
                accepted=accepted,
            )

    def _job(self, item: Submitted) -> Job:
        known = {"span_id": item.span, "entity": item.entity}
        if item.trace is not None and _TRACE_ID.fullmatch(item.trace):
            known["trace_id"] = item.trace
        trace: Mapping[str, Any] = {name: text for name, text in known.items() if text is not None}
        sample, key, problem, content = None, None, "", Content(None)
        try:
            content = restored(item.content)
            sample = sample_from(content, trace)
            key = sample_hash(sample)
            trace = trace_metadata(sample)
        except Exception as error:  # noqa: BLE001 - whatever was submitted
            problem = error_text(error)
            kind = "read" if problem.startswith(READ_FAILED) else "invalid"
            sample, problem = None, problem if kind == "read" else INVALID + problem
            self._tell(kind, problem)
            trace = {**submitted_trace(content), **trace}
        names = ("span_id", "response_id", "entity")
        texts = [str(trace[name])[:LONGEST_NAME] if trace.get(name) else None for name in names]
        rows = [
            LiveScore(
                id=f"{self._settings.owner}/{item.number}/{place}",
                stream=self._settings.stream,
                source=item.source,
                signature=signature,
                owner=self._settings.owner,
                submitted=item.at,
                sample=key,
                trace=item.trace,
                span=texts[0],
                response=texts[1],
                entity=texts[2],
            )
            for place, signature in enumerate(self._scorers)
            if place < item.drawn
        ]
        return Job(sample, rows, problem, item.size)

    def _add(self, job: Job) -> None:
        # If a frame is sent again, some of its rows may have been taken over in the meantime.
        job.rows = [row for row in job.rows if row.id not in self._takeovers]
        if job.rows:
            self._takeovers.update(row.id for row in job.rows)
            self._bytes += job.size
            self._unfinished[job.frame] += 1
            (self._suspects if any(row.takeovers for row in job.rows) else self._jobs).put_nowait(job)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) and not self.broken.done():
            self.broken.set_exception(error)

    async def _claim(self) -> bool:
        """Take over rows of dead workers up to `MAX_UNFINISHED`. Returns whether there may be more."""
        store, stream, owner = self._ledger.store, self._settings.stream, self._settings.owner
        limit, claimed = MAX_UNFINISHED - self.backlog, 0
        if limit > 0:
            for row, sample in await self._ledger.work(live.claim_pending, store, stream, limit, [*self._scorers]):
                claimed += 1
                problem = "" if sample else f"{INVALID}its worker ended before it could say why"
                if sample and row.takeovers + 1 >= MAX_WORKERS:
                    problem = f"{row.takeovers + 1} workers ended before they had scored it"
                frame = 0 if row.owner == owner else None
                self._add(Job(sample, [row], problem, frame=frame, taken_over=True))
        self._elsewhere = await self._owns_elsewhere()
        return claimed >= limit

    async def _owns_elsewhere(self) -> bool:
        settings = self._settings
        return await self._ledger.work(live.pending_elsewhere, self._ledger.store, settings.stream, settings.owner)

    async def _claim_now_and_then(self, more: bool) -> None:
        while True:
            await asyncio.sleep(MISSING_EVERY if more or self._elsewhere else CLAIM_EVERY)
            more = await self._claim()

    async def _score_jobs(self, jobs: asyncio.Queue[Job]) -> None:
        while True:
            job = await jobs.get()
            self._active += 1
            await self._score(job)
            self._active -= 1
            self._bytes -= job.size
            self._takeovers.difference_update(row.id for row in job.rows)
            self._unfinished[job.frame] -= 1
            if not self._unfinished[job.frame]:
                del self._unfinished[job.frame]

    async def _score(self, job: Job) -> None:
        store = self._ledger.store
        scored = job.sample is not None and not job.problem
        asks = scored and any(self._scorers[row.signature].may_ask for row in job.rows)
        reserved = asks and await self._budget.reserve(self._spent)
        cost = 0.0
        try:
            if job.taken_over and scored:
                job.rows = [await self._ledger.work(self._begin_row, row) for row in job.rows]
            ended = await self._outcomes(job, affordable=reserved)
            try:
                await self._ledger.work(live.finish, store, [row for row, _ in ended])
            except LedgerValueError:
                ended = await self._finish_each(ended)
            self._begun.difference_update(row.id for row in job.rows)
            cost = sum(row.cost or 0.0 for row, _ in ended)
        finally:
            if reserved:
                await self._budget.settle(cost)
        for row, record in ended:
            if record is not None and self._settings.on_record is not None:
                sample = _origin(row) if job.sample is None else job.sample
                try:
                    await sync.call(self._settings.on_record, record, sample, self._scorers[record.signature])
                except (*USER_ERRORS, *_ENDING) as error:
                    if isinstance(error, asyncio.CancelledError) and sync.is_being_cancelled():
                        raise
                    self._tell("on_record", f"on_record failed: {described(error)}")

    async def _finish_each(
        self, ended: Collection[tuple[LiveScore, Record | None]]
    ) -> list[tuple[LiveScore, Record | None]]:
        """Write outcomes one by one. An outcome that the ledger refuses becomes a failure with that reason."""
        written: list[tuple[LiveScore, Record | None]] = []
        for row, record in ended:
            try:
                await self._ledger.work(live.finish, self._ledger.store, [row])
                written.append((row, record))
            except LedgerValueError as error:
                self._tell("outcome", f"an outcome can't be stored: {error}")
                sample = "" if record is None else record.sample_id
                failed = self._failed(row, sample, f"its outcome can't be stored: {error}")
                refused = dataclasses.replace(row.ended(failed), cost=row.cost)
                await self._ledger.work(live.finish, self._ledger.store, [refused])
                written.append((refused, failed))
        return written

    def _failed(self, row: LiveScore, sample_id: str, error: str) -> Record:
        return Record(
            sample_id=sample_id, scorer=self._titles[row.signature], signature=row.signature, outcome=Failed(error)
        )

    def _begin_row(self, row: LiveScore) -> LiveScore:
        begun = live.begin(self._ledger.store, row)
        self._begun.add(
            row.id
        )  # in the ledger's thread: a task that is canceled meanwhile doesn't learn that it counts
        return begun

    def _give_back(self) -> None:
        if self._begun:
            live.give_back(self._ledger.store, sorted(self._begun))

    async def _spent(self, since: float) -> float:
        return await self._ledger.work(live.spent, self._ledger.store, self._settings.stream, since)

    async def _outcomes(self, job: Job, *, affordable: bool) -> list[tuple[LiveScore, Record | None]]:
        """Score all rows of a job concurrently. The first error cancels the others."""
        tasks = [asyncio.ensure_future(self._outcome(row, job, affordable=affordable)) for row in job.rows]
        try:
            return await asyncio.gather(*tasks)
        finally:
            await sync.cancel_all(tasks)

    async def _outcome(self, row: LiveScore, job: Job, *, affordable: bool) -> tuple[LiveScore, Record | None]:
        """The row with its outcome, and its record. affordable: whether the day's budget allows judge calls."""
        if job.sample is None:
            record = self._failed(row, "", job.problem)
            return row.ended(record), record
        if job.problem:
            record = self._failed(row, job.sample.id, job.problem)
            return row.ended(record, known_cost=False), record
        scorer = self._scorers[row.signature]
        if scorer.may_ask and not affordable:
            self._tell(
                f"budget of day {int(time.time() // DAY)}",
                f"the daily budget of {money(self._settings.daily_budget)} is spent: until midnight (UTC), samples are "
                "dropped for the scorers that ask a judge",
            )
            return row.ended(None), None
        session = self._session_now()
        if has_reasoning(job.sample):
            row = dataclasses.replace(row, kept_reasoning=self._settings.keep_reasoning)
            warning = reasoning_note(1, kept=self._settings.keep_reasoning)
            self._tell("reasoning", sentence_of(warning, self._settings.front_end))
        try:
            record = await score_sample(scorer, job.sample, session, self._titles[row.signature])
            if any(source == "asked" for call in record.calls for source in call.sources()):
                self._pause = FIRST_PAUSE
            named = {call.judge for call in record.calls}
            judges = [each for each in (session.judge, *scorer.judges) if each.identity in named]
            asking = Asking(limits={each.identity: session.limits_of(each) for each in judges})
            return row.ended(record, asking=asking), record
        except _ENDING as error:
            record = self._failed(row, job.sample.id, described(error))
            return row.ended(record, known_cost=False), record
        except (RunAborted, ConfigError) as error:
            # The judge failed. Until the session is renewed, it refuses every question immediately.
            self._tell("judge", str(error))
            if not self._refused and session is self._session:  # not one that was replaced in the meantime
                self._refused, self._renew_at = True, time.monotonic() + self._pause
                self._pause = min(2 * self._pause, MAX_PAUSE)
            record = self._failed(row, job.sample.id, str(error))
            return row.ended(record, known_cost=False), record

    def _session_now(self) -> Session:
        """The session. An old one is replaced, so that circuit breakers are closed again."""
        if time.monotonic() > self._renew_at:
            self._renew()
        return self._session

    def _renew(self) -> None:
        settings = self._settings
        # The ledger knows what a day has cost. This one refuses a judge whose price is unknown.
        priced = None if settings.daily_budget is None else Budget(math.inf)
        self._session = _LiveSession(
            settings.judge, ledger=self._ledger, concurrency=settings.concurrency, budget=priced
        )
        self._session.keep_reasoning = settings.keep_reasoning
        self._refused, self._renew_at = False, time.monotonic() + RENEWED


def _origin(row: LiveScore) -> Sample:
    """A sample with only its origin, for a submission that isn't a sample."""
    known = {"span_id": row.span, "response_id": row.response, "entity": row.entity}
    if row.trace is not None and _TRACE_ID.fullmatch(row.trace):
        known["trace_id"] = row.trace
    trace = {name: text for name, text in known.items() if text is not None}
    return Sample(metadata={"trace": trace} if trace else {})


class _LiveSession(Session):
    """A session that never ends. A failure is shared with concurrent identical calls, not with later ones. A judge that
    refuses the key or the model isn't asked again."""

    def __init__(self, judge: Judge, *, ledger: AsyncLedger, concurrency: int, budget: Budget | None) -> None:
        super().__init__(judge, ledger=ledger, concurrency=concurrency, budget=budget)
        self._refusals: dict[str, str] = {}
        """The error of each judge that refused the key or the model."""

    async def _obtain(self, call: QuestionCall) -> JudgeAnswer[Any]:
        try:
            return await super()._obtain(call)
        except (ConfigError, JudgeRefused) as error:
            self._refusals[call.key.judge] = str(error)
            raise

    def require_usable(self, call: QuestionCall) -> None:
        if (refusal := self._refusals.get(call.key.judge)) is not None:
            raise JudgeUnavailable(refusal)
        super().require_usable(call)

    def _remember(self, key: Key, outcome: JudgeAnswer[Any] | JudgeError) -> None:
        if not isinstance(outcome, JudgeError):
            super()._remember(key, outcome)


class _DailyBudget:
    """The US dollars that a stream may cost per day, over all of its processes.

    Each sample in work is expected to cost as much as the most expensive sample so far. If the budget doesn't cover
    another one, the next sample waits. A single sample is scored as long as anything is left.
    """

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self._spent = self._most = 0.0
        self._paid = 0.0
        """All that this process has paid."""
        self._in_work = 0
        self._read_at = -SPENT_EVERY
        self._day = 0
        self._settled = asyncio.Condition()

    async def reserve(self, spent: Callable[[float], Awaitable[float]]) -> bool:
        """Wait until the budget covers one more sample. Returns False if the day's budget is spent.

        spent: Returns what all processes have spent since a time, from the ledger.
        """
        if self._limit is None:
            return True
        async with self._settled:
            while True:
                now = time.time()
                if time.monotonic() - self._read_at > SPENT_EVERY or int(now // DAY) != self._day:
                    before = self._paid
                    known = await spent(now - now % DAY)
                    self._spent = known + self._paid - before  # which may already include what was paid meanwhile
                    self._day, self._read_at = int(now // DAY), time.monotonic()
                if self._spent >= self._limit:
                    return False
                if not self._in_work or self._spent + (self._in_work + 1) * self._most <= self._limit:
                    self._in_work += 1
                    return True
                await self._settled.wait()

    async def settle(self, cost: float) -> None:
        """Release the reservation of a finished sample, and count its cost until the ledger is read again."""
        if self._limit is None:
            return
        self._in_work -= 1
        self._paid += cost
        self._spent += cost
        self._most = max(self._most, cost)
        async with self._settled:
            self._settled.notify_all()
