"""The session: the only road from a scorer, a composite judge or a calibration to a judge.

A call goes through, in this order: answers of this session, calls in flight, the ledger, the concurrency limit, the
budget, the circuit breaker, the judge, the ledger. Batches and dry runs are sessions that get an answer elsewhere:
they override `Session._obtain`.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections import OrderedDict
from dataclasses import replace
from types import CoroutineType
from typing import Any, TypeVar, cast

from evalstone._core.observe import observer
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
from evalstone.questions.base import JudgeAnswer, Question, as_cached, failed_call, judge_call
from evalstone.questions.limits import ContextLimits, narrowest
from evalstone.run.budget import Budget, StopSignal
from evalstone.run.circuit_breaker import CircuitBreaker
from evalstone.run.spending import Spending
from evalstone.types import NO_USAGE, JudgeCall, Record

A = TypeVar("A")
B = TypeVar("B")

ENDING_THE_RUN = (ConfigError, StorageError, RunAborted)
"""Errors of a call that concern the run and not the sample."""
REMEMBERED = 4096
HELD_CHARACTERS = 50_000_000
"""Characters of raw replies that are remembered at most."""


class Session:
    """One run's access to its judges: every question is asked once, and its answer is durable before it counts.

    Equal questions asked at the same time are one call, and share its failure too. A composite judge is not called
    itself: its members are, each as an own call of the session; what it makes of their answers is not stored, because
    it can be computed again at no cost.

    Args:
        judge: The judge that answers unless a call names another.
        ledger: Where answers are kept and looked up.
        concurrency: The most calls in flight at a time.
        use_cache: Whether answers in the ledger are used.
        budget: What the calls may cost.
        stop: Ends the calls before the next one, where the ledger has those until then for the next run.
    """

    remembered: float = REMEMBERED
    """How many answers and failures are remembered, beside those in the ledger."""
    since: float = math.inf
    """When the run began, in seconds since 1970, if it was interrupted and goes on."""

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
        self.spending = Spending(budget)
        self._use_cache = use_cache
        self._slots = asyncio.Semaphore(concurrency)
        self._identities: dict[int, tuple[Judge, str]] = {}
        self._limits: dict[int, tuple[Judge, ContextLimits]] = {}
        self._learned: dict[str, ContextLimits] = {}
        self._breakers: dict[str, CircuitBreaker] = {}
        self._known_working: set[str] = set()
        self.paid_before: dict[Key, StoredAnswer] = {}
        """Answers that the run got before it was interrupted, until somebody counts what they had cost."""
        self._inflight: dict[Key, InflightCall] = {}
        self._recent: OrderedDict[Key, JudgeAnswer[Any] | JudgeError] = OrderedDict()
        self._held = 0

    async def ask(self, question: Question[A], judge: Judge | None = None, repeat: int = 0) -> JudgeAnswer[A]:
        """The judge's answer; `cached` when this call cost nothing.

        Args:
            question: What to ask.
            judge: Who is asked; the session's judge by default.
            repeat: Which of several answers to the same question is wanted, from 0.

        Raises:
            JudgeError: When the judge gives no usable answer.
            RunAborted: When the budget is spent or the judge no longer answers.
            ConfigError: When the provider refuses the key or the model.
            StorageError: When the answer cannot be stored.
        """
        return await Recording(self, judge).ask(question, repeat=repeat)

    def restore(self, record: Record) -> None:
        """Take over a record written before the run was interrupted: the run has paid for it, and the judges that
        answered are known to work."""
        self.spending.restore_record(record)
        self._known_working.update(
            leaf.judge for call in record.steps for leaf in call.leaves() if leaf.answer is not None
        )

    def check(self, record: Record) -> None:
        """Raise JudgeUnavailable if a question of this record failed because its judges are of no use any more."""
        for step in record.steps:
            failed = [leaf for leaf in step.leaves() if leaf.answer is None] if step.answer is None else []
            if failed and all(self._breaker(leaf.judge).is_open for leaf in failed):
                self._breaker(failed[0].judge).check()

    async def close(self) -> None:
        """Cancel the calls in flight."""
        tasks = [call.task for call in self._inflight.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def identity_of(self, judge: Judge) -> str:
        """The judge's identity, computed once."""
        known = self._identities.get(id(judge))
        if known is None:
            register_secrets(judge)
            known = self._identities[id(judge)] = (judge, judge.identity)
        return known[1]

    def limits_of(self, judge: Judge) -> ContextLimits:
        """How much one question to the judge may hold, with what the endpoints of this session have taught."""
        known = self._limits.get(id(judge))
        if known is None:
            learned = (self._learned[leaf.identity] for leaf in leaves(judge) if leaf.identity in self._learned)
            known = self._limits[id(judge)] = (judge, narrowest(judge.context_limits, *learned))
        return known[1]

    def _learn(self, judge: Judge, question: Question[Any], window: int | None) -> None:
        """Take over that a prompt was too long for a judge, so that the next ones are asked in parts beforehand.

        A window that would have held the question teaches nothing: its tokens were underestimated, or the endpoint
        names none. Then half of the question is the most for one that can be asked in parts.
        """
        before = self._learned.get(judge.identity, judge.context_limits)
        reply: int | None = getattr(judge, "max_tokens", None)  # of a model; other judges have none
        if reply is not None and window is not None:
            reply = min(reply, window // 2)  # tokens are estimated from above: there may be room for more
        now = replace(narrowest(before, ContextLimits.of_window(window, reply)), whole=before.whole)
        size = question.size()
        if now.longest is None or size <= now.longest:
            now = replace(now, tokens=max(1, min(now.tokens, size // 2)), longest=max(1, size - 1))
        self._learned[judge.identity] = now
        self._limits.clear()

    def known(self, key: Key) -> JudgeAnswer[Any] | JudgeError | None:
        """The answer or the failure that this session remembers."""
        if (known := self._recent.get(key)) is not None:
            self._recent.move_to_end(key)
        return known

    def inflight(self, key: Key, judge: Judge, question: Question[Any]) -> tuple[InflightCall, bool]:
        """The call in flight for this key, and whether it starts here."""
        call = self._inflight.get(key)
        if call is not None:
            return call, False
        call = InflightCall(question, key)
        call.task = asyncio.get_running_loop().create_task(self._answer(call, judge))
        call.task.add_done_callback(_retrieve)
        if not call.task.done():  # it may be, where the loop starts tasks eagerly
            self._inflight[key] = call
        return call, True

    def abandon(self, call: InflightCall) -> None:
        """Cancel a call that nobody waits for. Who asks the same from now on starts a call of their own."""
        call.task.cancel()
        self._forget(call)

    def _forget(self, call: InflightCall) -> None:
        if self._inflight.get(call.key) is call:
            del self._inflight[call.key]

    async def _answer(self, call: InflightCall, judge: Judge) -> JudgeAnswer[Any]:
        key = call.key
        try:
            if judge.members:
                # It takes no slot: its members do, and would wait for it.
                answer = await self._combine(call, judge)
            else:
                answer = await self._obtain(call, judge)
            self._remember(key, answer)
            return answer
        except JudgeError as error:
            if isinstance(error, PromptTooLong) and not judge.members:
                self._learn(judge, call.question, error.window)
            # Their frames hold the raw replies, which may be large.
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
        """The answer of a composite judge, whose members are asked in this session."""
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
        """The answer of a judge that answers by itself: from the ledger, or by calling it."""
        ledger = self.ledger if judge.cacheable else None
        if ledger is None:
            return await self._call(call, judge, None)
        if not self._use_cache:
            return await self._call(call, judge, ledger)
        found = await ledger.answer_or_claim(*call.key)
        if isinstance(found, StoredAnswer) and (answer := read_stored(call.question, found)) is not None:
            self._known_working.add(call.key.judge)
            self.spending.restore_answer(found)
            if found.written >= self.since:
                self.paid_before[call.key] = found
            return answer
        try:
            return await self._call(call, judge, ledger)
        finally:
            ledger.release(*call.key)

    async def _call(self, call: InflightCall, judge: Judge, ledger: AsyncLedger | None) -> JudgeAnswer[Any]:
        # Hold the slot until the answer is committed, so that a crash loses at most the calls in flight.
        async with self._slots:
            if ledger is not None:
                ledger.check()
                if self.stop is not None and self.stop.requested:
                    raise RunStopped(self.stop.reason)
            breaker = self._breaker(call.key.judge)
            breaker.check()
            reserved = 0.0 if self._budget is None else self._budget.reserve(call.question, judge)
            paid: float | None = None
            call.sent = True
            try:
                with observer().judge_call(judge, call.question, call.key.repeat_index) as observed:
                    reply = judge.answer(call.question, call.key.repeat_index)
                    is_async = inspect.isawaitable(cast(object, reply))
                    answer = await reply if is_async else cast("JudgeAnswer[Any]", reply)
                    if not is_async or not isinstance(cast(object, answer), JudgeAnswer):
                        expected = f"{type(judge).__name__}.answer must be an async def that returns a JudgeAnswer"
                        raise ConfigError(f"{expected}; it gave a value of type {type(answer).__name__}")
                    observed.result(answer)
                paid = answer.cost
                self.spending.pay(paid)
            except ENDING_THE_RUN:
                raise
            except Exception as error:
                if isinstance(error, JudgeError):
                    paid = error.cost
                    self.spending.pay(paid)
                breaker.failed(error)
                raise
            finally:
                if self._budget is not None:
                    self._budget.settle(reserved, paid)
            breaker.answered()
            if ledger is not None and answer.reply is not None:
                await ledger.keep_answer(StoredAnswer.of(call.key, call.question.kind, answer))
        return answer

    def _breaker(self, judge: str) -> CircuitBreaker:
        breaker = self._breakers.get(judge)
        if breaker is None:
            breaker = self._breakers[judge] = CircuitBreaker(judge, self._known_working)
        return breaker


class InflightCall:
    """A call in flight. `sent`: the judge has been asked, so that the answer will be paid for."""

    __slots__ = ("key", "others", "question", "sent", "task")

    def __init__(self, question: Question[Any], key: Key) -> None:
        self.question = question
        self.key = key
        self.sent = False
        self.others = 0
        self.task: asyncio.Task[JudgeAnswer[Any]]


class Recording:
    """The `ask` of one scorer on one sample: it keeps every call.

    Calls are structured: `close` cancels those that have not been sent, waits for those that have, and counts their
    cost, so that no call outlives its record.

    Args:
        session: Where the questions go.
        judge: Who answers where a question names no judge; the session's by default.
    """

    def __init__(self, session: Session, judge: Judge | None = None) -> None:
        self.judge = session.judge if judge is None else judge
        self.calls: list[JudgeCall] = []
        self.aborted: EvalstoneError | None = None
        self._session = session
        self._own: set[InflightCall] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._begun: list[tuple[str, CoroutineType[Any, Any, Any]]] = []

    @property
    def context_limits(self) -> ContextLimits:
        """How much one question to the judge may hold."""
        return self._session.limits_of(self.judge)

    def __call__(
        self, question: Question[A], judge: Judge | None = None, repeat: int = 0
    ) -> CoroutineType[Any, Any, A]:
        value = self._value(question, judge, repeat)
        self._begun.append((question.kind, value))
        return value

    async def _value(
        self, question: Question[A], judge: Judge | None, repeat: int, part_for: ContextLimits | None = None
    ) -> A:
        """The answer, from parts of the question where it is too long. part_for: the limits that it is a part for."""
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
        """The kinds of the questions that nobody was asked, because `ask` was called without `await`."""
        left = [
            (kind, value) for kind, value in self._begun if inspect.getcoroutinestate(value) == inspect.CORO_CREATED
        ]
        tasks: set[object] = {task.get_coro() for task in asyncio.all_tasks()} if left else set()
        forgotten = [(kind, value) for kind, value in left if value not in tasks]
        for _, value in forgotten:
            value.close()
        return list(dict.fromkeys(kind for kind, _ in forgotten))

    async def ask(self, question: Question[A], judge: Judge | None = None, repeat: int = 0) -> JudgeAnswer[A]:
        """The answer, its call kept. Raises what `Session.ask` raises."""
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
        if own:  # not where this task was canceled as the answer came: `close` counts what it cost
            self._own.discard(call)
        return self._keep(question, key, outcome, cached=not own)

    async def ask_member(self, judge: Judge, question: Question[A], repeat: int) -> JudgeAnswer[A]:
        """The answer of a composite judge's member."""
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
        """End what the calls' owner has left behind. Nothing is raised: only their cost is of interest."""
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
    """A stored reply as an answer that costs nothing; None when it no longer parses, so that it is asked again."""
    try:
        value = question.parse_with_probabilities(answer.reply, answer.alternatives)
    except EvalstoneError:
        return None
    return JudgeAnswer(
        value=value,
        judge=answer.judge,
        reply=answer.reply,
        confidence=answer.confidence,
        alternatives=answer.alternatives,
        refused_settings=answer.refused_settings,
        cached=True,
    )


def unpaid_error(error: JudgeError) -> JudgeError:
    """The failure of a call that another paid for."""
    shared = type(error).__new__(type(error), *error.args)  # subclasses may take other arguments than they keep
    shared.__dict__.update(error.__dict__)
    shared.usage, shared.cost, shared.seconds = NO_USAGE, 0.0, 0.0
    shared.members = tuple(as_cached(member) for member in error.members)
    return shared


def _retrieve(task: asyncio.Task[Any]) -> None:
    # Everyone who waited may have been cancelled before it failed; then its error is news to nobody.
    if not task.cancelled():
        task.exception()
