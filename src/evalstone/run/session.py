"""The session: all judge calls of scorers, composite judges and calibrations go through it.

A call passes, in this order: recent answers, calls in flight, the ledger, calls with the same beginning, the
concurrency limit, the circuit breaker, the budget, the judge, and the ledger again. Batches and dry runs are sessions
that override `Session._obtain`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar, cast

from evalstone._core import sync
from evalstone._core.observe import observer
from evalstone.agents.reasoning import answered
from evalstone.errors import (
    ConfigError,
    EvalstoneError,
    JudgeError,
    PromptTooLong,
    QuestionTooLong,
    RunAborted,
    RunStopped,
    StorageError,
)
from evalstone.judges.base import AskJudge, Judge, leaves, register_secrets
from evalstone.ledger import AsyncLedger, Key, StoredAnswer
from evalstone.models.limits import paying
from evalstone.questions.base import JudgeAnswer, Question, as_cached, failed_call, judge_call
from evalstone.questions.limits import ContextLimits, narrowest
from evalstone.run.beginnings import Beginnings
from evalstone.run.budget import Budget, Reservation, StopSignal
from evalstone.run.circuit_breaker import CircuitBreaker
from evalstone.run.spending import Spending
from evalstone.types import NO_USAGE, JudgeCall, Record, Sample

A = TypeVar("A")
B = TypeVar("B")

ENDING_THE_RUN = (ConfigError, StorageError, RunAborted)
"""Errors that end the run, not only the sample."""
REMEMBERED = 4096
SAMPLES_AT_A_TIME = 256
"""The maximum number of samples whose answers are remembered without their reasoning. All scorers of a sample get it at
about the same time."""
ROOM_INTERVAL = 0.005
"""Seconds between checks whether the budget has room for a call."""
HELD_CHARACTERS = 50_000_000
"""The maximum number of characters of raw replies in memory."""


class Session:
    """A run's access to its judges. Every question is asked once, and its answer is stored before it counts.

    Equal questions that are asked at the same time share one call, and its failure. The members of a composite judge
    are asked through the session. The combined answer isn't stored, because it can be recomputed at no cost.

    Args:
        judge: The default judge.
        ledger: Where answers are stored and looked up.
        concurrency: The maximum number of calls in flight.
        use_cache: Whether to use answers in the ledger.
        budget: The budget of the run.
        stop: Once requested, no more calls are made. Ignored without a ledger or `use_cache`, because the answers so
            far would be lost for the next run.
    """

    remembered: float = REMEMBERED
    """The maximum number of answers and failures in memory."""
    keep_reasoning: bool = False
    """Whether scorers get outputs with the reasoning in front of them."""

    def __init__(
        self,
        judge: Judge,
        *,
        ledger: AsyncLedger | None = None,
        concurrency: int = 32,
        use_cache: bool = True,
        budget: Budget | None = None,
        stop: StopSignal | None = None,
    ) -> None:
        self.judge = judge
        self.stop = stop if use_cache else None
        self.identity = judge.identity
        self.ledger = ledger
        self._budget = budget
        self.spending = Spending(budget, ledger)
        self._use_cache = use_cache
        self._slots = asyncio.Semaphore(concurrency)
        self._first: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._beginnings = Beginnings()
        self._identities: dict[int, tuple[Judge, str]] = {}
        self._limits: dict[int, tuple[Judge, ContextLimits]] = {}
        self._learned: dict[str, ContextLimits] = {}
        self._breakers: dict[str, CircuitBreaker] = {}
        self._known_working: set[str] = set()
        self._checked: set[str] = set()
        self.paid_before: dict[Key, StoredAnswer] = {}
        """Answers in the ledger that this run paid for before it was interrupted."""
        self._inflight: dict[Key, InflightCall] = {}
        self._recent: OrderedDict[Key, JudgeAnswer[Any] | JudgeError] = OrderedDict()
        self._held = 0
        self._answered: OrderedDict[int, tuple[Sample, Sample]] = OrderedDict()
        self._reserving = 0
        """The calls in flight, of judges and the target, with a reservation in the budget."""
        self._ended = ""
        """Why no more calls are made."""

    async def ask(self, question: Question[A], judge: Judge | None = None, repeat: int = 0) -> JudgeAnswer[A]:
        """The judge's answer. It is marked as cached if this call cost nothing.

        Args:
            question: The question.
            judge: The judge; by default that of the session.
            repeat: The number of the answer among several to the same question, from 0.

        Raises:
            JudgeError: The judge gave no usable answer.
            RunAborted: The budget is spent, the judge refused the key or the model, or it is unavailable.
            ConfigError: The judge is misconfigured, or returned something else than an answer.
            StorageError: The answer can't be stored.
        """
        return await Recording(self, judge).ask(question, repeat=repeat)

    def scored(self, sample: Sample) -> Sample:
        """The sample as scorers get it: without the reasoning in front of answers, unless it is kept."""
        if self.keep_reasoning:
            return sample
        known = self._answered.get(id(sample))
        if known is None:
            known = self._answered[id(sample)] = sample, answered(sample)
            if len(self._answered) > SAMPLES_AT_A_TIME:
                self._answered.popitem(last=False)
        return known[1]

    def restore(self, record: Record) -> None:
        """Restore a record written before the run was interrupted: mark its judges as working."""
        self._known_working.update(
            leaf.judge for call in record.steps for leaf in call.leaves() if leaf.answer is not None
        )

    def check(self, record: Record) -> None:
        """Raise JudgeUnavailable if a question of this record failed because its judges are unavailable."""
        for step in record.steps:
            failed = [leaf for leaf in step.leaves() if leaf.answer is None] if step.answer is None else []
            if failed and all(self._breaker(leaf.judge).is_open for leaf in failed):
                self._breaker(failed[0].judge).check()

    def end(self, reason: str) -> None:
        """Make no more calls, even without a ledger. Those in flight go on."""
        self._ended = reason

    async def close(self) -> None:
        """Cancel the calls in flight."""
        tasks = [call.task for call in self._inflight.values()]
        await sync.cancel_all(tasks)

    def identity_of(self, judge: Judge) -> str:
        """The judge's identity. It is computed once."""
        known = self._identities.get(id(judge))
        if known is None:
            register_secrets(judge)
            known = self._identities[id(judge)] = (judge, judge.identity)
        return known[1]

    def limits_of(self, judge: Judge) -> ContextLimits:
        """The maximum size of a question to the judge, including limits learned from its endpoint."""
        known = self._limits.get(id(judge))
        if known is None:
            learned = (self._learned[leaf.identity] for leaf in leaves(judge) if leaf.identity in self._learned)
            known = self._limits[id(judge)] = (judge, narrowest(judge.context_limits, *learned))
        return known[1]

    def _learn(self, judge: Judge, question: Question[Any], window: int | None) -> None:
        """Lower a judge's limits after a prompt was too long, so that later questions are split in time.

        If the question should have fit the reported window, its tokens were underestimated, or no window was reported.
        The limit then becomes half of this question.
        """
        before = self._learned.get(judge.identity, judge.context_limits)
        reply: int | None = getattr(judge, "max_tokens", None)  # only models have it
        if reply is not None and window is not None:
            reply = min(reply, window // 2)  # tokens are overestimated, so more may fit
        now = replace(narrowest(before, ContextLimits.of_window(window, reply)), whole=before.whole)
        size = question.size()
        if now.longest is None or size <= now.longest:
            now = replace(now, tokens=max(1, min(now.tokens, size // 2)), longest=max(1, size - 1))
        self._learned[judge.identity] = now
        self._limits.clear()

    def known(self, key: Key) -> JudgeAnswer[Any] | JudgeError | None:
        """The answer or failure in memory."""
        if (known := self._recent.get(key)) is not None:
            self._recent.move_to_end(key)
        return known

    def inflight(self, key: Key, judge: Judge, question: Question[Any]) -> tuple[InflightCall, bool]:
        """The call in flight for this key, and whether it is a new one."""
        call = self._inflight.get(key)
        if call is not None:
            return call, False
        call = InflightCall(question, key)
        call.task = asyncio.get_running_loop().create_task(self._answer(call, judge))
        call.task.add_done_callback(_retrieve)
        if not call.task.done():  # it may be, with eager tasks
            self._inflight[key] = call
        return call, True

    def abandon(self, call: InflightCall) -> None:
        """Cancel a call that nobody awaits. The same question then starts a new call."""
        call.task.cancel()
        self._forget(call)

    def _forget(self, call: InflightCall) -> None:
        if self._inflight.get(call.key) is call:
            del self._inflight[call.key]

    async def _answer(self, call: InflightCall, judge: Judge) -> JudgeAnswer[Any]:
        key = call.key
        try:
            if judge.members:
                # It must not hold a slot while its members wait for slots.
                answer = await self._combine(call, judge)
            else:
                answer = await self._obtain(call, judge)
            self._remember(key, answer)
            return answer
        except JudgeError as error:
            if isinstance(error, PromptTooLong) and not judge.members:
                self._learn(judge, call.question, error.window)
            # The frames refer to raw replies, which may be large.
            error.__traceback__ = error.__cause__ = error.__context__ = None
            self._remember(key, error)
            raise
        finally:
            self._forget(call)

    def _remember(self, key: Key, outcome: JudgeAnswer[Any] | JudgeError) -> None:
        self._recent[key] = outcome
        self._held += len(outcome.reply or "")
        while len(self._recent) > self.remembered or self._held > HELD_CHARACTERS:
            self._held -= len(self._recent.popitem(last=False)[1].reply or "")

    async def _combine(self, call: InflightCall, judge: Judge) -> JudgeAnswer[Any]:
        """The answer of a composite judge. Its members are asked in this session."""
        call.sent = True
        recording, repeat = Recording(self), call.key.repeat_index
        with observer().judge_call(judge, call.question, repeat) as observed:
            try:
                answer = await judge.combine(call.question, AskJudge(recording.ask_member, repeat))
            finally:
                await recording.close()
            observed.result(answer)
        return answer

    async def _obtain(self, call: InflightCall, judge: Judge) -> JudgeAnswer[Any]:
        """The answer of a single judge, from the ledger or by a call."""
        ledger = self.ledger if judge.cacheable else None
        if ledger is None:
            return await self._call(call, judge, None)
        if not self._use_cache:
            return await self._call(call, judge, ledger)
        result = await ledger.answer_or_claim(*call.key)
        if isinstance(result, StoredAnswer) and (answer := read_stored(call.question, result)) is not None:
            self._known_working.add(call.key.judge)
            if self.spending.has_paid_for(result):
                self.paid_before[call.key] = result
            return answer
        try:
            return await self._call(call, judge, ledger)
        finally:
            ledger.release(*call.key)

    async def _call(self, call: InflightCall, judge: Judge, ledger: AsyncLedger | None) -> JudgeAnswer[Any]:
        """Call the judge. Under a budget, the first call of each judge and kind of question runs alone: estimates don't
        include reasoning tokens, and later calls reserve what it cost."""
        if self._budget is not None and not self._budget.knows(call.question, judge):
            async with self._first[call.key.judge, call.question.kind]:
                if not self._budget.knows(call.question, judge):
                    return await self._send_in_turn(call, judge, ledger)
        return await self._send_in_turn(call, judge, ledger)

    async def _send_in_turn(self, call: InflightCall, judge: Judge, ledger: AsyncLedger | None) -> JudgeAnswer[Any]:
        if not judge.cacheable:  # no model, and so no provider with a prompt cache
            return await self._send(call, judge, ledger)
        async with self._beginnings.in_turn(call.key.judge, call.question):
            return await self._send(call, judge, ledger)

    async def _send(self, call: InflightCall, judge: Judge, ledger: AsyncLedger | None) -> JudgeAnswer[Any]:
        # Hold the slot until the answer is committed, so that a crash loses at most the calls in flight.
        async with self._slots:
            if self._budget is not None:
                await self.wait_for_budget(self._budget.estimate(call.question, judge))
            if self._ended:
                raise RunStopped(self._ended)
            if ledger is not None:
                ledger.check()
                if self.stop is not None and self.stop.requested:
                    raise RunStopped(self.stop.reason)
            breaker = self._breaker(call.key.judge)
            breaker.check()
            if call.key.judge not in self._checked:  # a scorer may ask a judge that no plan names
                judge.check()
                self._checked.add(call.key.judge)
            try:
                with self.reserving():
                    answer = await self._pay_for(call, judge, breaker)
            except JudgeError:
                if ledger is not None:
                    await ledger.keep_payments()
                raise
            breaker.answered()
            if ledger is not None and answer.reply is not None:
                stored = StoredAnswer.of(call.key, call.question.kind, answer, self.spending.run)
                await ledger.keep_answer(stored)
        return answer

    @contextmanager
    def reserving(self) -> Generator[None]:
        """During this context, a call of the run has a reservation in the budget."""
        self._reserving += 1
        try:
            yield
        finally:
            self._reserving -= 1

    async def wait_for_budget(self, amount: float) -> None:
        """Wait while an amount in US dollars would fit into the budget if the run's calls in flight cost less than is
        reserved for them, as most do. Returns early if the run ends."""
        stop = None if self.ledger is None else self.stop
        while self._reserving and self._budget is not None and self._budget.waits(amount):
            if self._ended or (stop is not None and stop.requested):
                return
            await asyncio.sleep(ROOM_INTERVAL)

    async def _pay_for(self, call: InflightCall, judge: Judge, breaker: CircuitBreaker) -> JudgeAnswer[Any]:
        """Call the judge, and count what its attempts cost, whether or not they bring an answer."""
        reservation = Reservation(self._budget, self.spending.pay, call.question, judge)
        end = reservation.give_up
        call.sent = True
        try:
            with (
                paying(reservation.next_attempt),
                observer().judge_call(judge, call.question, call.key.repeat_index) as observed,
            ):
                reply = judge.answer(call.question, call.key.repeat_index)
                is_async = inspect.isawaitable(cast(object, reply))
                answer = await reply if is_async else cast("JudgeAnswer[Any]", reply)
                if not is_async or not isinstance(cast(object, answer), JudgeAnswer):
                    expected = f"{type(judge).__name__}.answer must be an async def that returns a JudgeAnswer"
                    raise ConfigError(f"{expected}; it gave a value of type {type(answer).__name__}")
                observed.result(answer)
            end = partial(reservation.settle, answer.cost)
        except ENDING_THE_RUN:
            raise
        except Exception as error:
            if isinstance(error, JudgeError):
                end = partial(reservation.settle, error.cost)
            breaker.failed(error)
            raise
        finally:
            end()
        return answer

    def _breaker(self, judge: str) -> CircuitBreaker:
        breaker = self._breakers.get(judge)
        if breaker is None:
            breaker = self._breakers[judge] = CircuitBreaker(judge, self._known_working)
        return breaker


class InflightCall:
    """A call in flight. `sent`: the judge has been called, so the answer will be paid for. `others`: how many other
    askers wait for it."""

    __slots__ = ("key", "others", "question", "sent", "task")

    def __init__(self, question: Question[Any], key: Key) -> None:
        self.question = question
        self.key = key
        self.sent = False
        self.others = 0
        self.task: asyncio.Task[JudgeAnswer[Any]]


class Recording:
    """The `ask` of one scorer on one sample. It records every call.

    `close` cancels the calls that have not been sent, waits for those that have, and counts their cost, so no call
    outlives its record.

    Args:
        session: The session.
        judge: The default judge; that of the session if None.
        allowed: Raises ConfigError for a question that may not be asked. It is called before a judge is.
    """

    def __init__(
        self, session: Session, judge: Judge | None = None, allowed: Callable[[Question[Any]], None] | None = None
    ) -> None:
        self._allowed = allowed
        self.judge = session.judge if judge is None else judge
        self.calls: list[JudgeCall] = []
        self.aborted: EvalstoneError | None = None
        self._session = session
        self._own: set[InflightCall] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._begun: list[tuple[str, CoroutineType[Any, Any, Any]]] = []

    @property
    def context_limits(self) -> ContextLimits:
        """The maximum size of a question to the judge."""
        return self._session.limits_of(self.judge)

    def __call__(
        self, question: Question[A], judge: Judge | None = None, repeat: int = 0
    ) -> CoroutineType[Any, Any, A]:
        if self._allowed is not None:
            try:
                self._allowed(question)
            except ConfigError as error:
                self.aborted = error
                raise
        value = self._value(question, judge, repeat)
        self._begun.append((question.kind, value))
        return value

    async def _value(
        self, question: Question[A], judge: Judge | None, repeat: int, part_for: ContextLimits | None = None
    ) -> A:
        """The answer; a question that is too long is asked in parts. part_for: for a part, the limits that it was made
        for."""
        judge = self.judge if judge is None else judge
        limits = self._session.limits_of(judge)
        if limits == part_for or question.fits(limits):
            try:
                return (await self.ask(question, judge, repeat)).value
            except JudgeError as error:
                limits, before = self._session.limits_of(judge), limits
                too_long = isinstance(error, PromptTooLong) or judge.members
                if not too_long or limits == before or question.fits(limits):
                    raise
                try:
                    return await self._in_parts(question, judge, repeat, limits)
                except QuestionTooLong:
                    raise error from None
        return await self._in_parts(question, judge, repeat, limits)

    async def _in_parts(self, question: Question[A], judge: Judge, repeat: int, limits: ContextLimits) -> A:
        async def ask(question: Question[B]) -> B:
            return await self._value(question, judge, repeat, limits)

        return await question.in_parts(ask, limits)

    def not_awaited(self) -> list[str]:
        """The kinds of questions that were never asked because `ask` was called without `await`."""
        left = [
            (kind, value) for kind, value in self._begun if inspect.getcoroutinestate(value) == inspect.CORO_CREATED
        ]
        tasks: set[object] = {task.get_coro() for task in asyncio.all_tasks()} if left else set()
        forgotten = [(kind, value) for kind, value in left if value not in tasks]
        for _, value in forgotten:
            value.close()
        return list(dict.fromkeys(kind for kind, _ in forgotten))

    async def ask(self, question: Question[A], judge: Judge | None = None, repeat: int = 0) -> JudgeAnswer[A]:
        """The answer; the call is recorded. Raises what `Session.ask` raises."""
        session = self._session
        judge = self.judge if judge is None else judge
        key = Key(question.fingerprint, session.identity_of(judge), repeat)
        known = session.known(key)
        if known is not None:
            return self._keep(question, key, known, cached=True)
        call, own = session.inflight(key, judge, question)
        if own:
            self._own.add(call)
        else:
            call.others += 1
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        outcome: JudgeAnswer[A] | JudgeError
        try:
            outcome = await asyncio.shield(call.task)
        except JudgeError as error:
            outcome = error
        except ENDING_THE_RUN as error:
            self.aborted = error
            raise
        finally:
            if task is not None:
                self._tasks.discard(task)
            if not own:
                call.others -= 1
        if own:  # if this task was canceled just now, `close` counts the cost
            self._own.discard(call)
        return self._keep(question, key, outcome, cached=not own)

    async def ask_member(self, judge: Judge, question: Question[A], repeat: int) -> JudgeAnswer[A]:
        """The answer of a member of a composite judge."""
        return await self.ask(question, judge, repeat)

    def _keep(
        self, question: Question[A], key: Key, outcome: JudgeAnswer[A] | JudgeError, *, cached: bool
    ) -> JudgeAnswer[A]:
        if isinstance(outcome, JudgeError):
            error = unpaid_error(outcome) if cached else outcome
            self.calls.append(failed_call(question, error, key.judge, key.repeat_index))
            if cached:
                observer().cached_call(self.calls[-1])
            raise error
        answer = as_cached(outcome) if cached else outcome
        self.calls.append(judge_call(question, answer, key.repeat_index))
        if answer.cached:
            observer().cached_call(self.calls[-1])
        return answer

    async def close(self) -> None:
        """End the calls that the scorer has left running, and record their cost. Raises nothing."""
        here = asyncio.current_task()
        for task in self._tasks:
            if task is not here:
                task.cancel()
        calls_in_flight = {call for call in self._own if not call.task.done()}
        for call in calls_in_flight:
            if not call.sent and not call.others:
                self._session.abandon(call)
        if calls_in_flight:
            await asyncio.wait({call.task for call in calls_in_flight})
        for call in self._own:
            if call.task.cancelled():
                continue
            error = call.task.exception()
            if error is None:
                self.calls.append(judge_call(call.question, call.task.result(), call.key.repeat_index))
            elif isinstance(error, JudgeError):
                self.calls.append(failed_call(call.question, error, call.key.judge, call.key.repeat_index))
        self._own.clear()


def read_stored(question: Question[A], answer: StoredAnswer) -> JudgeAnswer[A] | None:
    """A stored reply as a cached answer; None if it no longer parses, so that the question is asked again."""
    try:
        value, dropped = question.parse_grounded(answer.reply, answer.alternatives)
    except EvalstoneError:
        return None
    return JudgeAnswer(
        value=value,
        judge=answer.judge,
        reply=answer.reply,
        confidence=answer.confidence,
        alternatives=answer.alternatives,
        refused_settings=answer.refused_settings,
        detail=dropped,
        cached=True,
    )


def unpaid_error(error: JudgeError) -> JudgeError:
    """A copy of a shared failure without its cost."""
    shared = type(error).__new__(type(error), *error.args)  # the constructors of subclasses differ
    shared.__dict__.update(error.__dict__)
    shared.usage, shared.cost, shared.seconds = NO_USAGE, 0.0, 0.0
    shared.members = tuple(as_cached(member) for member in error.members)
    return shared


def _retrieve(task: asyncio.Task[Any]) -> None:
    # If all askers were canceled before the call failed, nobody retrieves its error.
    if not task.cancelled():
        task.exception()
