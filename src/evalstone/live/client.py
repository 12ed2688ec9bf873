"""`Live`: scores a fraction of an application's traffic while it runs."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import hashlib
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, Unpack, cast, get_args, overload

from evalstone._core import sync
from evalstone._core.declarations import NAME, Range, Rule, check_argument
from evalstone._core.display import count, excerpt
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.guards import is_mapping, is_number
from evalstone._core.json import storable
from evalstone._core.sizes import Concurrency, Queue
from evalstone.errors import ConfigError, described, error_text, repeated
from evalstone.judges.base import JudgeSpec
from evalstone.ledger.base import DEFAULT_LEDGER, file_of
from evalstone.live import frames
from evalstone.live.asgi import Application, Middleware, Read
from evalstone.live.frames import LONGEST_NAME, LONGEST_SIGNATURE, USER_ERRORS, Content, Priority, Settings, Submitted
from evalstone.live.sender import Channel, ProcessChannel, Sender
from evalstone.live.tracing import Trace, current_trace
from evalstone.live.watching import WatchedFields, watched
from evalstone.results.summary import ScorerInfo
from evalstone.run.budget import Budget
from evalstone.run.plan import named_scorer, scorer_info
from evalstone.run.planning import plan_for
from evalstone.scorers import Scorer
from evalstone.scorers.base import ScorerSpec
from evalstone.types import Record, Sample, SampleFields

if TYPE_CHECKING:
    from evalstone.live.accounting import Coverage

F = TypeVar("F", bound=Callable[..., Any])
SHUTDOWN = 5.0
"""Seconds to finish calls in flight when the application ends."""
_LOOK_AGAIN = 0.02
"""Seconds between two checks of a full queue."""
_BITS = 48
_STREAM = Rule(
    f"{NAME.words}, of up to {LONGEST_NAME} characters",
    lambda value: NAME.holds(value) and len(value) <= LONGEST_NAME,
)
_RATE = Rule("a number from 0 to 1, or one for each scorer", lambda value: is_number(value) and value in Range(0, 1))
LiveSource: TypeAlias = Literal["live", "trace"]
_SOURCES = get_args(LiveSource)


class Submission:
    """The argument of a filter: the sample as it was submitted, and where it comes from."""

    __slots__ = ("_make", "entity", "source", "trace_id")

    def __init__(
        self, make: Callable[[], Content] | None, source: LiveSource, trace_id: str | None, entity: str | None
    ) -> None:
        self.source = source
        self.trace_id = trace_id
        self.entity = entity
        self._make = make

    @property
    def sample(self) -> Any:
        """The Sample or the mapping that was submitted; for a watched function, a mapping of its arguments. None for an
        ASGI application, whose bodies are read later."""
        return None if self._make is None else self._make().fields

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the sample; empty if it has none."""
        sample = self.sample
        found: object = sample.metadata if isinstance(sample, Sample) else None
        if is_mapping(sample):
            found = sample.get("metadata")
        return found if is_mapping(found) else {}


class Live:
    """Scores a fraction of an application's traffic while it runs, in a separate process, and writes to the ledger.

    A request only counts the sample and, if it is sampled, copies it into a queue. A scorer scores a sample if

        first 48 bits of SHA-256(trace ID) / 2^48 < rate

    so all scorers and processes make the same decision, and a higher rate includes all samples of a lower rate.
    Without a trace ID, the decision is random. A trace that its tracer didn't sample (flag 00) is declined.

    Scoring raises nothing in the application. Errors are counted, and the logger `evalstone.live` logs each kind once.
    Only exceptions that aren't derived from Exception propagate, such as SystemExit and KeyboardInterrupt, because a
    signal handler may raise them; CancelledError and GeneratorExit don't.

    Args:
        scorers: One or more names, Scorer values or tables.
        judge: The judge that answers the scorers' questions.
        stream: The name of the stream of scores in the ledger. Processes that use the same name score the same stream.
        sampling: The fraction of the traffic to score, from 0 to 1; or a rate for each scorer, by name or signature.
        filter: A function that decides which submissions are eligible. It is called in the request. If it raises, the
            submission is ineligible, and the error is logged once.
        ledger: Where scores are stored.
        queue: The number of samples that can wait in memory. If the queue is full, the newest sample is dropped and
            counted.
        daily_budget: The US dollars that the stream may cost per day (UTC), over all processes. Once they are spent,
            samples for scorers that ask a judge are dropped and counted until midnight. Calls in flight can exceed it.
        concurrency: The maximum number of concurrent judge calls, and of samples that are scored at a time.
        process: Whether the worker is a process. A thread (False) slows down requests while it computes.
        priority: "low" for a worker that gets about a tenth of a CPU that the application fully uses (niceness 10).
            "idle" for one that runs only on an idle CPU (SCHED_IDLE on Linux; niceness 19 elsewhere): it barely delays
            requests, but on a machine without idle time it scores nothing, and the queue fills.
        unsampled: Whether to score traces that their tracer didn't sample.
        keep_reasoning: Whether a model's reasoning in front of an output, such as <think>…</think>, is scored as a part
            of it.
        front_end: How its log messages write settings: as in Python, or as options of the command line.
        on_record: A function that is called in the worker with each record, its sample and its scorer, after they are
            stored: at most once for each record, and not if the worker dies in between. Dropped samples have no record.
            If what was submitted isn't a sample, the record is a failure, and the sample has only its origin in the
            metadata. If it raises, the error is logged once. The worker imports it, so define it outside the main
            module.

    Raises:
        ConfigError: For a scorer, judge or option that can't be used.
    """

    def __init__(
        self,
        scorers: ScorerSpec | Iterable[ScorerSpec],
        judge: JudgeSpec = "lexical",
        *,
        stream: str = "live",
        sampling: float | Mapping[str, float] = 0.1,
        filter: Callable[[Submission], object] | None = None,
        ledger: str | Path = DEFAULT_LEDGER,
        queue: int = 1000,
        daily_budget: float | None = None,
        concurrency: int = 8,
        process: bool = True,
        priority: Priority = "low",
        unsampled: bool = False,
        keep_reasoning: bool = False,
        front_end: FrontEnd = PYTHON,
        on_record: Callable[[Record, Sample, Scorer], object] | None = None,
    ) -> None:
        self.stream = stream
        self._rates: tuple[float, ...] = ()
        plan = plan_for([Sample(output="-")], scorers, judge=judge)
        if not plan.scorers:
            raise ConfigError("live scoring needs a scorer")
        plan.check_scorers()
        for scorer in plan.scorers:
            if (size := len(storable(scorer.signature).encode())) > LONGEST_SIGNATURE:
                raise ConfigError(
                    f"{scorer.name}: its parameters are too long for live scores: its signature has {size:,} bytes, "
                    f"and an index takes {LONGEST_SIGNATURE:,}; shorten its texts, or set them in a scorer of your own"
                )
        if daily_budget is not None:
            Budget(daily_budget, *plan.asked_judges)
        check_argument("queue", queue, Queue)
        check_argument("concurrency", concurrency, Concurrency)
        check_argument("stream", stream, Annotated[str, _STREAM])
        check_argument("priority", priority, Priority)
        if priority == "idle" and not process:
            raise ConfigError('priority="idle" is of a worker process, and process=False has none')
        check_argument("filter", filter, Callable[[Submission], object] | None)
        rates = _rates(plan.scorers, sampling)
        self._rates = tuple(rates.values())
        self._filter, self._unsampled = filter, unsampled
        file = file_of(ledger)
        self.ledger = str(ledger) if file is None else str(file.absolute())
        """The ledger of the scores: a file's absolute path, or a URL."""
        settings = Settings(
            stream=stream,
            owner="",
            scorers=tuple(rates),
            judge=plan.judge,
            ledger=self.ledger,
            concurrency=concurrency,
            daily_budget=daily_budget,
            priority=priority,
            keep_reasoning=keep_reasoning,
            front_end=front_end,
            on_record=on_record,
        )
        if process:
            frames.portable(settings)
        self._random = random.Random()
        self._sender = Sender(settings, queue, _in_process if process else _in_thread)
        atexit.register(self._sender.exit, SHUTDOWN)

    def __repr__(self) -> str:
        return f"<Live {self.stream}: {count(len(self._rates), 'scorer')}>"

    def submit(
        self,
        sample: Sample | Mapping[str, Any] | None = None,
        *,
        trace_id: str | None = None,
        entity: str | None = None,
        source: LiveSource = "live",
        **fields: Unpack[SampleFields],
    ) -> bool:
        """Submit a sample, or its fields as keyword arguments. Returns immediately and never raises.

        An invalid sample becomes a failed score. Lists and mappings are copied before this returns.

        Args:
            sample: The sample; or pass its fields by name.
            trace_id: The trace ID used for sampling: by default `trace.trace_id` in the sample's metadata, or that of
                the current OpenTelemetry span.
            entity: The evaluated component, such as an agent's name.
            source: "live", or "trace" for samples from traces.

        Returns:
            Whether the sample was put into the queue: False if it was filtered, declined or dropped.
        """
        return self._submit(sample, trace_id, entity, source, fields)

    async def asubmit(
        self,
        sample: Sample | Mapping[str, Any] | None = None,
        *,
        trace_id: str | None = None,
        entity: str | None = None,
        source: LiveSource = "live",
        **fields: Unpack[SampleFields],
    ) -> bool:
        """`submit` that waits while the queue is full and drops nothing: for samples from a file or another queue.

        Don't submit from another thread meanwhile. It may fill the queue again before this call submits.
        """
        while self._sender.is_full:  # noqa: ASYNC110 - another thread empties it
            await asyncio.sleep(_LOOK_AGAIN)
        return self._submit(sample, trace_id, entity, source, fields, exceeding=True)

    async def astored(self) -> None:
        """Wait until everything that was submitted before the call is in the ledger, scored or pending, where a crash
        can't lose it."""
        queued = self._sender.queued
        while self._sender.stored < queued:  # noqa: ASYNC110 - another thread stores it
            await asyncio.sleep(_LOOK_AGAIN)

    def _submit(
        self,
        sample: Sample | Mapping[str, Any] | None,
        trace_id: str | None,
        entity: str | None,
        source: LiveSource,
        fields: SampleFields,
        *,
        exceeding: bool = False,
    ) -> bool:
        try:
            given: object = fields if sample is None else sample
            problem = ""
            known: LiveSource = "live"
            try:
                known = "trace" if source == "trace" else "live"  # not a text of a class that the worker doesn't know
                if sample is not None and fields:
                    problem = f"give the sample whole or by its fields, not both (fields: {', '.join(fields)})"
                elif source not in _SOURCES:
                    problem = f"source must be live or trace, not {excerpt(source)}"
                if trace_id is None:
                    metadata = given.metadata if isinstance(given, Sample) else _entry(given, "metadata")
                    trace_id = None if metadata is None else _entry(_entry(metadata, "trace"), "trace_id")
            except USER_ERRORS as error:  # the code of what was submitted; it becomes a failed score
                problem = problem or described(error)
            trace = current_trace() if trace_id is None else Trace(_text(trace_id))
            drawn = self.draw(trace)
            if not drawn and self._filter is None:  # without what a request need not call
                self._sender.count(time.time())
                return False
            return self.offer(
                lambda: Content(None, problem=problem) if problem else Content(given),
                trace,
                drawn,
                entity=entity,
                source=known,
                exceeding=exceeding,
            )
        except USER_ERRORS as error:  # nothing is raised into the application
            self._sender.tell("submit", f"a submission was lost: {described(error)}")
            return False

    def draw(self, trace: Trace) -> int:
        """How many of the scorers score this trace. Scorers are ordered by their rates, the highest first."""
        if trace.declined and not self._unsampled:
            return 0
        if trace.trace_id is None:
            place = self._random.random()
        else:
            digest = hashlib.sha256(trace.trace_id.encode("utf-8", "surrogatepass")).digest()
            place = int.from_bytes(digest[: _BITS // 8]) / 2**_BITS
        drawn = 0
        for rate in self._rates:
            if place >= rate:
                break
            drawn += 1
        return drawn

    @property
    def filters(self) -> bool:
        """Whether there is a filter. It also sees submissions that aren't sampled."""
        return self._filter is not None

    def offer(
        self,
        make: Callable[[], Content],
        trace: Trace,
        drawn: int,
        *,
        entity: str | None = None,
        source: LiveSource = "live",
        later: int | None = None,
        exceeding: bool = False,
    ) -> bool:
        """Count a submission, and put it into the queue if it is sampled. For the decorator and the middleware.

        Args:
            make: Returns what was submitted.
            trace: The trace of the request.
            drawn: The result of `draw`.
            entity: The evaluated component.
            source: "live" or "trace".
            later: If set, `make` is called outside the request, and returns no fields (None) for a request to skip. The
                number is the approximate size in bytes of what it holds until then.
            exceeding: Whether it may be larger than what is left of the queue's bytes.
        """
        try:
            now = time.time()
            if entity is not None:
                entity = _text(entity)
            if self._filter is not None and not self._passes(make, trace, entity, source, read=later is None):
                self._sender.count(now, filtered=True)
                return False
            if not drawn:
                self._sender.count(now)
                return False
            if later is not None:
                made = functools.partial(self._made, make, now, drawn, source, trace, entity, BaseException)
                return self._sender.offer(now, drawn, made, later)
            item = self._made(make, now, drawn, source, trace, entity)
            return self._sender.offer(now, drawn, item, item.size, exceeding=exceeding)
        except USER_ERRORS as error:  # nothing is raised into the application
            self._sender.tell("submit", f"a submission was lost: {described(error)}")
            return False

    def _made(
        self,
        make: Callable[[], Content],
        now: float,
        drawn: int,
        source: LiveSource,
        trace: Trace,
        entity: str | None,
        errors: type[BaseException] | tuple[type[BaseException], ...] = USER_ERRORS,
    ) -> Submitted:
        try:
            content = make()
            if content.fields is None and not content.problem:
                drawn = 0
            copied, size = frames.snapshot(content)
        except errors as error:  # it becomes a failed score
            copied, size = frames.snapshot(Content(None, problem=error_text(error)))
        number = next(self._sender.numbers)
        return Submitted(number, now, drawn, source, trace.trace_id, trace.span_id, entity, copied, size)

    def _passes(
        self, make: Callable[[], Content], trace: Trace, entity: str | None, source: LiveSource, *, read: bool
    ) -> bool:
        try:
            submission = Submission(make if read else None, source, trace.trace_id, entity)
            return bool(cast("Callable[[Submission], object]", self._filter)(submission))
        except USER_ERRORS as error:  # the user's code
            self._sender.tell("filter", f"the filter failed, and what it fails on is not scored: {described(error)}")
            return False

    @overload
    def watch(self, function: F, /, *, entity: str | None = None, **fields: Unpack[WatchedFields]) -> F: ...
    @overload
    def watch(self, /, *, entity: str | None = None, **fields: Unpack[WatchedFields]) -> Callable[[F], F]: ...
    def watch(
        self, function: F | None = None, /, *, entity: str | None = None, **fields: Unpack[WatchedFields]
    ) -> F | Callable[[F], F]:
        """A decorator: score what a function returns.

        The parameters of the function that are named like the inputs of a target (input, messages, context,
        instructions, metadata) become fields of the sample; `@live.watch(input="question")` names others. The function
        is async or plain, and returns text, an `Answer`, its fields, or what a known framework returns; or it yields
        text, and is scored once it is exhausted. A call that raises, or a stream that is not read to its end, is not
        submitted.

        Args:
            function: The function.
            entity: What is evaluated; by default the function's name.
            fields: Sample field to parameter name.

        Raises:
            ConfigError: No parameter is a field of the sample, or there is no such parameter or field.
        """
        if function is None:
            return cast("Callable[[F], F]", functools.partial(watched, self, entity=entity, fields=fields))
        return watched(self, function, entity, fields)

    def asgi(
        self,
        app: Application,
        read: Read,
        *,
        paths: Collection[str] | None = None,
        entity: str | None = None,
        body_limit: int = 1_000_000,
    ) -> Middleware:
        """ASGI middleware: score what an application answers. Requests and responses pass unchanged and undelayed.

        Only successful responses (2xx) that were sent to the end count, and neither HEAD nor OPTIONS.

        Args:
            app: The application.
            read: A function of the request and the response, with copies of their bodies. It returns the fields of the
                sample, or None to skip the request, which then counts as filtered. It is called outside the request,
                and only for sampled requests.
            paths: The paths that count; all by default. A path that ends in * stands for all that begin with it.
            entity: What is evaluated; by default the path of the request.
            body_limit: Bytes of each body that are copied.
        """
        return Middleware(self, app, read, paths, entity, body_limit)

    def start(self) -> None:
        """Start the worker now instead of with the first submission: it takes over the samples of earlier workers."""
        self._sender.start()

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until everything that was submitted before the call is scored.

        Returns:
            False if it took longer than `timeout` seconds, or the worker ended first.
        """
        return self._sender.flush(timeout)

    def close(self, timeout: float = SHUTDOWN) -> bool:
        """Wait like `flush`, and end the worker. Samples that aren't scored by then stay pending in the ledger, for the
        next worker of the stream. A later submission starts a worker again.

        Returns:
            Whether everything is scored.
        """
        return self._sender.close(timeout)

    async def aflush(self, timeout: float = 30.0) -> bool:  # noqa: ASYNC109 - the form of `flush`
        """`flush`, for an event loop."""
        return await self._in_thread(self.flush, timeout)

    async def aclose(self, timeout: float = SHUTDOWN) -> bool:  # noqa: ASYNC109 - the form of `close`
        """`close`, for an event loop."""
        return await self._in_thread(self.close, timeout)

    async def _in_thread(self, wait: Callable[[float], bool], timeout: float) -> bool:  # noqa: ASYNC109 - the thread's timeout
        try:
            return await sync.call_at_once(wait, timeout)
        except RuntimeError as error:  # the process can't start a thread; nothing is raised into the application
            self._sender.tell("thread", f"a thread can't be started, so nobody waits for scores: {described(error)}")
            return False

    def coverage(self, since: datetime | None = None) -> Coverage:
        """How many submissions the stream has seen, and what became of them; see `Coverage`. Call `flush` first for
        current numbers.

        since: Include the whole hour of this time, and all later ones.
        """
        from evalstone.live.accounting import coverage  # noqa: PLC0415 - the ledger, which the application doesn't need

        return coverage(self.stream, ledger=self.ledger, since=since)

    def __enter__(self) -> Live:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    async def __aenter__(self) -> Live:
        self.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()


_INVALID = "0" * 32
"""OpenTelemetry's trace ID for no trace. Requests with it don't belong together."""


def _text(name: object) -> str | None:
    """A name as text that can be sent to the worker; None if it is empty, or can't be read."""
    with contextlib.suppress(*USER_ERRORS):
        text = f"{name:032x}" if isinstance(name, int) else str(name)  # a number is a trace of OpenTelemetry's SDK
        return None if name is None or text == _INVALID else str.__str__(text)[:LONGEST_NAME] or None
    return None


def _entry(values: object, name: str) -> Any:
    if type(values) is dict:  # without the look-ups of the abstract class
        return cast("dict[str, Any]", values).get(name)
    return values.get(name) if is_mapping(values) else None


def _in_process(settings: Settings) -> Channel:
    return ProcessChannel(frames.portable(settings))


def _in_thread(settings: Settings) -> Channel:
    from evalstone.live.worker import ThreadChannel  # noqa: PLC0415 - what only a worker needs

    return ThreadChannel(settings)


def _rates(scorers: tuple[Scorer, ...], sampling: float | Mapping[str, float]) -> dict[Scorer, float]:
    """The rate of each scorer, the highest first."""
    signatures = [scorer.signature for scorer in scorers]
    if twice := [each for each in signatures if signatures.count(each) > 1]:
        raise ConfigError(repeated("scorers", twice[0], f"the scorer {twice[0]} is named twice"))
    if isinstance(sampling, Mapping):
        infos = [scorer_info(scorer) for scorer in scorers]
        # The rate by signature goes before one by name.
        by_name = {_named(name, infos).signature: rate for name, rate in sampling.items() if name not in signatures}
        rates_of = {**by_name, **{name: rate for name, rate in sampling.items() if name in signatures}}
        found: dict[Scorer, object] = {}
        for scorer in scorers:
            if scorer.signature not in rates_of:
                raise ConfigError(f"sampling has no rate for {scorer.name}")
            found[scorer] = rates_of[scorer.signature]
    else:
        found = dict.fromkeys(scorers, sampling)
    for rate in found.values():
        check_argument("sampling", rate, Annotated[float, _RATE])
    rates = cast("dict[Scorer, float]", found)
    return dict(sorted(rates.items(), key=lambda item: -item[1]))


def _named(name: str, infos: list[ScorerInfo]) -> ScorerInfo:
    try:
        return named_scorer(name, infos)
    except ConfigError as error:
        raise ConfigError("sampling: ", error) from None
