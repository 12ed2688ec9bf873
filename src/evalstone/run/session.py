"""The session: all judge calls of scorers, composite judges and calibrations go through it.

A question is answered from recent answers, by a call in flight, or by a `QuestionCall`, which the core in `calls`
makes. Batches and dry runs are sessions that override `Session._obtain`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar

from evalstone._core.observe import observer
from evalstone.agents.reasoning import answered
from evalstone.errors import (
    ConfigError,
    EvalstoneError,
    JudgeError,
    PromptTooLong,
    QuestionTooLong,
    RunAborted,
    StorageError,
)
from evalstone.judges.base import Judge, MemberCalls, awaited_answer, leaves, register_secrets
from evalstone.ledger import AsyncLedger, Key, StoredAnswer
from evalstone.models.limits import paying, sharing
from evalstone.models.shared_limits import LimitSharing
from evalstone.questions.answers import JudgeAnswer, failed_call, judge_call, reused
from evalstone.questions.base import Question
from evalstone.run.beginnings import Beginnings
from evalstone.run.budget import Budget, Reservation, StopSignal, call_price
from evalstone.run.calls import Call, Calls, Inflight, Shared
from evalstone.run.circuit_breaker import CircuitBreaker
from evalstone.types import NO_USAGE, JudgeCall, Record, Sample
from evalstone.types.context_limits import ContextLimits, narrowest

A = TypeVar("A")
B = TypeVar("B")

ENDING_THE_RUN = (ConfigError, StorageError, RunAborted)
"""Errors that end the run, not only the sample."""
REMEMBERED = 4096
SAMPLES_AT_A_TIME = 256
"""The maximum number of samples whose answers are remembered without their reasoning. All scorers of a sample get it at
about the same time."""
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
        cache: Whether to use answers in the ledger.
        budget: The budget of the run.
        stop: Once requested, no more calls are made. Ignored without a ledger or `cache`, because the answers so
            far would be lost for the next run.
        limits: The limits that several processes share; None if each has its own.
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
        cache: bool = True,
        budget: Budget | None = None,
        stop: StopSignal | None = None,
        limits: LimitSharing | None = None,
    ) -> None:
        self.judge = judge
        self.stop = stop if cache else None
        self.identity = judge.identity
        self.calls = Calls(ledger=ledger, cache=cache, budget=budget, limits=limits)
        self.slots = asyncio.Semaphore(concurrency)
        self.beginnings = Beginnings()
        self._identities: dict[int, tuple[Judge, str]] = {}
        self._limits: dict[int, tuple[Judge, ContextLimits]] = {}
        self._learned: dict[str, ContextLimits] = {}
        self._breakers: dict[str, CircuitBreaker] = {}
        self.known_working: set[str] = set()
        self._checked: set[str] = set()
        self.paid_before: dict[Key, StoredAnswer] = {}
        """Answers in the ledger that this run paid for before it was interrupted."""
        self._inflight = Inflight[Key, QuestionCall]()
        self._recent: OrderedDict[Key, JudgeAnswer[Any] | JudgeError] = OrderedDict()
        self._held = 0
        self._answered: OrderedDict[int, tuple[Sample, Sample]] = OrderedDict()

    async def ask(self, question: Question[A], judge: Judge | None = None, repeat: int = 0) -> JudgeAnswer[A]:
        """The judge's answer. Its `source` says whether a call was made for it, and only then it has a cost.

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
        return await AskScope(self, judge).ask(question, repeat=repeat)

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
        self.known_working.update(
            leaf.judge for call in record.calls for leaf in call.leaves() if leaf.answer is not None
        )

    def check(self, record: Record) -> None:
        """Raise JudgeUnavailable if a question of this record failed because its judges are unavailable."""
        for call in record.calls:
            failed = [leaf for leaf in call.leaves() if leaf.answer is None] if call.answer is None else []
            if failed and all(self.breaker(leaf.judge).is_open for leaf in failed):
                self.breaker(failed[0].judge).check()

    def reused(self, call: JudgeCall) -> None:
        """Report a call that wasn't made, because its answer was shared or cached."""
        observer().reused_call(call)

    def end(self, reason: str) -> None:
        """Make no more calls, even without a ledger. Those in flight go on."""
        self.calls.ended = reason

    async def close(self) -> None:
        """Cancel the calls in flight."""
        await self._inflight.close()

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

    def inflight(self, key: Key, judge: Judge, question: Question[Any]) -> tuple[QuestionCall, bool]:
        """The call in flight for this key, and whether it is a new one."""
        if (call := self._inflight.get(key)) is not None:
            return call, False
        call = QuestionCall(self, key, judge, question)
        return self._inflight.start(key, call, self._answer(call)), True

    def abandon(self, call: QuestionCall) -> None:
        """Cancel a call that nobody awaits. The same question then starts a new call."""
        call.task.cancel()
        self._inflight.forget(call.key, call)

    async def _answer(self, call: QuestionCall) -> JudgeAnswer[Any]:
        try:
            # A composite judge must not hold a slot while its members wait for slots.
            answer = await (self._combine(call, call.judge) if call.judge.members else self._obtain(call))
            self._remember(call.key, answer)
            return answer
        except JudgeError as error:
            if isinstance(error, PromptTooLong) and not call.judge.members:
                self._learn(call.judge, call.question, error.window)
            # The frames refer to raw replies, which may be large.
            error.__traceback__ = error.__cause__ = error.__context__ = None
            self._remember(call.key, error)
            raise
        finally:
            self._inflight.forget(call.key, call)

    def _remember(self, key: Key, outcome: JudgeAnswer[Any] | JudgeError) -> None:
        self._recent[key] = outcome
        self._held += len(outcome.reply or "")
        while len(self._recent) > self.remembered or self._held > HELD_CHARACTERS:
            self._held -= len(self._recent.popitem(last=False)[1].reply or "")

    async def _combine(self, call: QuestionCall, judge: Judge) -> JudgeAnswer[Any]:
        """The answer of a composite judge. Its members are asked in this session."""
        call.sent = True
        scope, repeat = AskScope(self), call.key.repeat_index
        limits = self.calls.limits
        within = nullcontext() if limits is None else sharing(limits)
        with within, observer().judge_call(judge, call.question, repeat) as observed:
            try:
                combined = judge.combine(call.question, MemberCalls(scope.ask, repeat))
                answer = await awaited_answer(judge, call.question, combined)
            finally:
                await scope.close()
            observed.result(answer)
        return answer

    def _obtain(self, call: QuestionCall) -> Awaitable[JudgeAnswer[Any]]:
        """The answer of a single judge, from the ledger or by a call."""
        if call.ledger is None:
            return self.calls.make(call)
        return self.calls.obtain(call.key, call.read, partial(self.calls.make, call))

    def require_usable(self, call: QuestionCall) -> None:
        """Raise ConfigError if the judge can't be called: a scorer may ask one that no plan names."""
        if call.key.judge not in self._checked:
            call.judge.check()
            self._checked.add(call.key.judge)

    def breaker(self, judge: str) -> CircuitBreaker:
        """The circuit breaker of a judge."""
        breaker = self._breakers.get(judge)
        if breaker is None:
            breaker = self._breakers[judge] = CircuitBreaker(judge, self.known_working)
        return breaker


class QuestionCall(Call[JudgeAnswer[Any]], Shared[JudgeAnswer[Any]]):
    """A question to a judge, in flight. `sent`: the judge has been called, so the answer will be paid for. `others`:
    how many other askers wait for it."""

    __slots__ = ("_session", "breaker", "judge", "key", "ledger", "others", "price_key", "question", "sent")
    ending_the_run = ENDING_THE_RUN

    def __init__(self, session: Session, key: Key, judge: Judge, question: Question[Any]) -> None:
        self._session = session
        self.key, self.judge, self.question = key, judge, question
        self.ledger = session.calls.ledger if judge.cacheable else None
        self.breaker = session.breaker(key.judge)
        self.price_key = (key.judge, question.kind)
        self.sent = False
        self.others = 0

    @property
    def stop(self) -> StopSignal | None:
        return None if self.ledger is None else self._session.stop

    def is_priced(self, budget: Budget) -> bool:
        return budget.highest(self.price_key) is not None or call_price(self.question, self.judge) == 0

    def estimate(self, budget: Budget, size: int | None = None) -> float:
        return budget.estimate(self.question, self.judge, size)

    def admitted(self) -> AbstractAsyncContextManager[Any]:
        slots = self._session.slots
        if not self.judge.cacheable:  # no model, and so no provider with a prompt cache
            return slots
        return self._session.beginnings.in_turn(self.key.judge, self.question, slots)

    def check(self) -> None:
        self._session.require_usable(self)

    async def read(self, stored: StoredAnswer) -> JudgeAnswer[Any] | None:
        """The answer in a row of the ledger; None if it no longer parses."""
        session = self._session
        if (answer := read_stored(self.question, stored, self.judge)) is not None:
            session.known_working.add(self.key.judge)
            if session.calls.spending.has_paid_for(stored):
                session.paid_before[self.key] = stored
        return answer

    async def send(self, reservation: Reservation) -> JudgeAnswer[Any]:
        """Call the judge, and count what its attempts cost, whether or not they bring an answer."""
        judge, question, repeat = self.judge, self.question, self.key.repeat_index
        self.sent = True
        try:
            with paying(reservation.next_attempt), observer().judge_call(judge, question, repeat) as observed:
                answer = await awaited_answer(judge, question, judge.answer(question, repeat))
                if self.key.judge.startswith(f"{answer.judge}#"):  # as its class says, without the hash of its code
                    answer = replace(answer, judge=self.key.judge)
                observed.result(answer)
        except JudgeError as error:
            reservation.settle(error.cost)
            raise
        reservation.settle(answer.cost)
        return answer

    def failed(self, error: Exception | asyncio.CancelledError) -> JudgeAnswer[Any]:
        raise error

    def row(self, outcome: JudgeAnswer[Any]) -> StoredAnswer | None:
        if outcome.reply is None:
            return None
        return StoredAnswer.of(self.key, self.question.kind, outcome, self._session.calls.spending.run)


class AskScope:
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
        self._own: set[QuestionCall] = set()
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
            return self._keep(question, key, known, own=False)
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
            outcome = await call.outcome()
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
        return self._keep(question, key, outcome, own=own)

    def _keep(
        self, question: Question[A], key: Key, outcome: JudgeAnswer[A] | JudgeError, *, own: bool
    ) -> JudgeAnswer[A]:
        if isinstance(outcome, JudgeError):
            error = outcome if own else shared_error(outcome)
            self.calls.append(failed_call(question, error, key.judge, key.repeat_index))
            self._observe(own)
            raise error
        answer = outcome if own else reused(outcome, "shared")
        self.calls.append(judge_call(question, answer, key.repeat_index))
        self._observe(own)
        return answer

    def _observe(self, own: bool) -> None:
        """Report the last call if it wasn't made. Of an own call to a composite judge, each member's is reported."""
        call = self.calls[-1]
        if call.source != "asked" and not (own and call.members):
            self._session.reused(call)

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


def read_stored(question: Question[A], answer: StoredAnswer, judge: Judge) -> JudgeAnswer[A] | None:
    """A stored reply of a judge as an answer; None if it no longer parses, so that the question is asked again."""
    try:
        value, detail = judge.read(question, answer.reply, answer.alternatives)
    except EvalstoneError:
        return None
    return JudgeAnswer(
        value=value,
        judge=answer.judge,
        reply=answer.reply,
        probability=answer.probability,
        alternatives=answer.alternatives,
        refused_settings=answer.refused_settings,
        detail=detail,
        source="cached",
    )


def shared_error(error: JudgeError) -> JudgeError:
    """A copy of a failure for another asker, without its cost."""
    shared = type(error).__new__(type(error), *error.args)  # the constructors of subclasses differ
    shared.__dict__.update(error.__dict__)
    shared.usage, shared.cost, shared.seconds = NO_USAGE, 0.0, 0.0
    shared.members = tuple(reused(member, "shared") for member in error.members)
    shared.source = "shared"
    return shared
