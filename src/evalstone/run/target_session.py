"""The target of a run: one answer per sample and trial, by one call or a conversation."""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import time
from array import array
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from evalstone._core import sync
from evalstone._core.display import count
from evalstone._core.files import spare_files
from evalstone._core.observe import observer
from evalstone.datasets.stored import sample_of, sample_row
from evalstone.errors import (
    ConfigError,
    RunAborted,
    StorageError,
    TargetError,
    TargetRefused,
    TargetUnavailable,
)
from evalstone.ledger import Key, StoredAnswer
from evalstone.ledger.base import TARGET, chunks, target_scope
from evalstone.models.replies import read_aside
from evalstone.results.spilling import SpillingList
from evalstone.run.answer_rows import (
    TargetCost,
    TargetOutcome,
    TargetReply,
    answer_key,
    answer_row,
    as_stored,
    read_answer,
)
from evalstone.run.budget import Budget, Reservation, StopSignal
from evalstone.run.calls import Call, Inflight, Shared
from evalstone.run.circuit_breaker import CircuitBreaker
from evalstone.run.conversations import (
    Conversation,
    UserEndsRun,
    UserProblem,
    is_conversation,
    unanswerable,
)
from evalstone.run.session import Session
from evalstone.run.user_code import failed
from evalstone.targets import Answer, Target
from evalstone.targets.answers import NoAnswer
from evalstone.targets.base import Prepared
from evalstone.targets.users import User
from evalstone.types import NO_USAGE, TARGET_FAILED, Failed, Sample, Skipped, StoredTarget, Usage, total_cost

RESTORED_AT_A_TIME = 500
MANY_MESSAGES = 1000
"""Entries of a list above which an answer is converted in a thread."""
MOST_CALLS = 10_000
T = TypeVar("T")
TargetFunction: TypeAlias = Callable[..., Awaitable[object]]
"""`Target.call`."""


class _StartOver(Exception):
    """The target has lost the state of a conversation that was interrupted by a crash."""


class _SharedAnswer(Shared[TargetOutcome]):
    """The answer to a sample and trial. `uses`: how many scorers have yet to ask for it."""

    __slots__ = ("uses",)

    def __init__(self, uses: int) -> None:
        self.uses = uses


class TargetSession:
    """A run's access to its target. Scorers of one sample and trial share one answer.

    Answers are stored in the ledger, including blank ones: they are paid for, and part of the measurement. A call that
    gave no answer is made again when the run is resumed. An exception, a timeout or a refusal may have the same cause
    as the interruption, such as a missing environment variable.

    Args:
        target: The system under test.
        run: The id of the run. Answers of a target without a version are valid for this run only.
        trials: The number of trials per sample.
        size: The number of samples and trials.
        replaced: The number of samples whose data have an output, which the answer replaces.
        stop: Once requested, no more calls are made.
        user: The simulated user of conversations.
        session: The session of the judges, with the ledger and the budget. Asks the simulated user's judge.
    """

    def __init__(
        self,
        target: Target,
        run: str,
        *,
        user: User | None = None,
        session: Session,
        trials: int,
        size: int,
        replaced: int = 0,
        stop: StopSignal,
    ) -> None:
        self.target, self.trials, self.user, self.stop = target, trials, user, stop
        self._replaced = replaced
        self._session, self.calls = session, session.calls
        self.samples = SpillingList(size, write=_written, read=_read)
        """The samples with their answers, in plan order."""
        self.scope = target_scope(target.identity, "" if target.version else run)
        self._inflight = Inflight[int, _SharedAnswer]()
        self._known_working = set[str]()
        self.breaker = CircuitBreaker(target.identity, self._known_working, calls="samples", error=TargetUnavailable)
        self.slots = asyncio.Semaphore(spare_files(MOST_CALLS, 2 * target.files_per_call))
        """Limits the calls in flight to what the process may open files for, whatever the target's limits are."""
        self._seconds = array("d")
        self._failed = self._cached = self._unpriced = 0
        self._cost: float | None = None
        self._user_cost: float | None = 0.0
        self._usage = NO_USAGE

    @property
    def highest_cost(self) -> float:
        """The highest cost of a call so far, in US dollars, as far as a budget needs it."""
        budget = self.calls.budget
        return 0.0 if budget is None else budget.highest((self.scope, TARGET)) or 0.0

    async def get(self, place: int, sample: Sample, uses: int) -> TargetOutcome:
        """The answer to a sample and trial.

        Args:
            place: The number of the sample and trial in the plan.
            sample: The sample.
            uses: How many scorers will ask for this answer.

        Raises:
            RunAborted: The target is unavailable, the budget is spent, or the run was stopped.
            StorageError: The answer can't be stored.
        """
        answer = self._inflight.get(place)
        if answer is None:
            answer = self._inflight.start(place, _SharedAnswer(uses), self._obtain(place, sample))
        answer.uses -= 1
        try:
            return await answer.outcome()
        finally:
            # If the run ends while the call is in flight, `close` cancels it.
            if answer.uses <= 0 and answer.task.done():
                self._inflight.forget(place, answer)

    async def restore(self, cases: Iterable[tuple[int, Sample]], *, failed: bool = False) -> None:
        """Restore the answers of an interrupted run.

        Args:
            cases: The number and the sample, for each sample and trial that has all of its records. The answers of the
                others are restored when a scorer asks for them.
            failed: Whether these samples and trials have failed, so that those without an answer count as failed calls.
        """
        ledger = self.calls.ledger
        if ledger is None:
            return
        for part in chunks(cases, RESTORED_AT_A_TIME):
            rows = await asyncio.gather(*(ledger.answer(*self._key(sample)) for _, sample in part))
            for (place, sample), stored in zip(part, rows, strict=True):
                outcome = None if stored is None else await self._read(sample, stored)
                if outcome is None:
                    self.samples.put(place, sample)
                    self._failed += failed
                else:
                    self._add(place, outcome)

    async def close(self) -> None:
        """Cancel the calls in flight and wait for them to end."""
        await self._inflight.close()

    def summary(self) -> StoredTarget:
        """The number, cost and latency of the answers so far."""
        seconds = sorted(self._seconds)
        return StoredTarget(
            identity=self.target.identity,
            user="" if self.user is None else self.user.identity,
            trials=self.trials,
            scope=self.scope,
            inputs=self.target.inputs,
            replaced=self._replaced,
            answers=len(seconds),
            failed=self._failed,
            cached=self._cached,
            cost=self._cost,
            user_cost=self._user_cost,
            note=self._note(),
            usage=self._usage,
            seconds={
                "mean": sum(seconds) / len(seconds),
                "p50": _quantile(seconds, 0.5),
                "p95": _quantile(seconds, 0.95),
            }
            if seconds
            else {},
        )

    def _note(self) -> str:
        """A note on costs that the target doesn't report."""
        if self._unpriced and self._cost is not None:
            return f"the target reports no cost of {count(self._unpriced, 'answer')}"
        if self._unpriced and self.calls.budget is not None:
            return "the target reports no cost; the budget covers the judge calls alone"
        return ""

    def _key(self, sample: Sample) -> Key:
        return answer_key(sample, self.target.inputs, self.scope, "" if self.user is None else self.user.identity)

    async def _obtain(self, place: int, sample: Sample) -> TargetOutcome:
        if lacking := unanswerable(self.target, self.user, sample):
            self.samples.put(place, sample)
            return TargetOutcome(sample, Skipped(lacking))
        if self.target.holds_conversations or not is_conversation(sample, self.user):
            outcome = await self._answer(self._key(sample), sample, self.target.call, secrets.token_hex(8))
        else:
            outcome = await self._converse(sample)
        self._add(place, outcome)
        return outcome

    async def _read(self, sample: Sample, stored: StoredAnswer) -> TargetOutcome | None:
        """The outcome in a row; None if it can't be read, so that the target is called again."""
        paid = self.calls.spending.has_paid_for(stored)
        return await read_aside(len(stored.reply), partial(read_answer, paid=paid), sample, stored)

    async def _read_call(self, sample: Sample, stored: StoredAnswer) -> TargetOutcome | None:
        """As `_read`, for a single call: under a budget, later ones reserve what it cost."""
        outcome, budget = await self._read(sample, stored), self.calls.budget
        if outcome is not None and budget is not None and (outcome.cost or not isinstance(outcome.problem, Failed)):
            budget.learn((self.scope, TARGET), outcome.cost)
        return outcome

    async def _answer(
        self,
        key: Key,
        sample: Sample,
        call: TargetFunction,
        thread: str,
        *,
        fresh: bool = False,
        begun: bool = False,
        spent: TargetCost | None = None,
    ) -> TargetOutcome:
        """The outcome of one call, from the ledger or from the target.

        Args:
            key: The key of the answer.
            sample: The sample that is passed to the target.
            call: Calls the target.
            thread: The id of the conversation.
            fresh: Whether to ignore the ledger.
            begun: Whether the previous turn came from the ledger. A target that keeps threads then can't continue.
            spent: A cost to store with that of this call.
        """

        async def make() -> TargetOutcome:
            if begun and self.target.keeps_threads:
                raise _StartOver
            return await self.calls.make(_TargetCall(self, key, sample, call, thread, spent))

        return await (make() if fresh else self.calls.obtain(key, partial(self._read_call, sample), make))

    async def _converse(self, sample: Sample) -> TargetOutcome:
        """The outcome of a conversation, from the ledger or turn by turn."""
        key = self._key(sample)

        async def conduct() -> TargetOutcome:
            conversation = Conversation(sample, self.user, self._session)
            try:
                return await self._conducted(key, conversation)
            except _StartOver:
                return await self._conducted(key, conversation.restarted(), fresh=True)

        return await self.calls.obtain(key, partial(self._read, sample), conduct)

    async def _conducted(self, key: Key, conversation: Conversation, *, fresh: bool = False) -> TargetOutcome:
        """Conduct a conversation and store it. fresh: whether to ignore the turns in the ledger."""
        observed = observer().target_call(self.target, conversation.sample, conversation=True)
        try:
            with observed:
                reply = await self._conversation_reply(conversation, fresh)
                if reply.answer is not None:
                    observed.result(Answer())  # the turns have observations of their own
            if reply.answer is not None and (left := await conversation.problem()) is not None:
                reply = replace(reply, skipped=left.reason)
        except UserProblem as error:
            cost = conversation.paid, conversation.usage, conversation.count_user()
            return TargetOutcome(conversation.sample, error.outcome, *cost)
        except UserEndsRun as error:
            raise error.error from None
        finally:
            await conversation.close()
        paid = TargetCost(conversation.paid, conversation.usage, conversation.count_user())
        reply = replace(reply, conversation=paid, trace=observed.trace)
        text = await _in_place_or_aside(reply.answer is not None and _is_large(reply.answer), reply.to_json)
        stored = self.row(key, text, usage=NO_USAGE, cost=0.0, seconds=conversation.seconds)
        if self.calls.ledger is not None and not reply.unanswered:
            await self.calls.ledger.keep_answer(stored)
        return reply.outcome(conversation.sample, stored)

    async def _conversation_reply(self, conversation: Conversation, fresh: bool) -> TargetReply:
        """Set up, conduct the turns, and clean up."""
        target, loop = self.target, asyncio.get_running_loop()
        failure: TargetReply | None = None
        ended: BaseException | None = None
        clock = asyncio.timeout(target.timeout)  # for setup and cleanup; each turn has its own timeout
        try:
            async with clock, target.conversation(conversation.sample) as prepared:
                clock.reschedule(None)
                try:
                    if (failure := await self._turns(conversation, prepared, fresh)) is not None:
                        return failure
                except BaseException as error:
                    ended = error
                    raise
                finally:
                    clock.reschedule(loop.time() + target.timeout)
            if conversation.restored and prepared.state is not None:
                raise _StartOver  # the state belongs to the new setup, which has seen no turn
            return TargetReply(as_stored(conversation.answer(prepared.state)))
        except (RunAborted, StorageError, UserProblem, UserEndsRun, _StartOver):
            raise
        except Exception as error:  # noqa: BLE001 - setup and cleanup are user code
            if ended is not None:
                raise ended from None  # cleanup failed as well
            if conversation.restored and target.keeps_threads:  # it cleaned up a setup without turns
                if failure is not None:
                    return failure
                raise _StartOver from None
            if isinstance(error, TimeoutError) and clock.expired():
                error = TargetError(f"not ready within {target.timeout:g} s")
            self.breaker.failed(error)
            return _failure(error)
        except asyncio.CancelledError as error:
            if sync.is_being_cancelled():
                raise
            return _failure(error)

    async def _turns(self, conversation: Conversation, prepared: Prepared, fresh: bool) -> TargetReply | None:
        """Conduct the turns. Returns the failure of the first one that fails."""
        target, thread = self.target, secrets.token_hex(8)
        while (turn := await conversation.next_turn()) is not None:
            key = conversation.key(conversation.asked(conversation.sample, turn), target.inputs, self.scope)
            request = conversation.asked(prepared.sample, turn)
            # Starting over overwrites the rows of the turns, and with them their cost.
            spent = TargetCost(conversation.paid, conversation.usage) if fresh and not conversation.turns else None
            outcome = await self._answer(
                key, request, prepared.call, thread, fresh=fresh, begun=conversation.restored, spent=spent
            )
            conversation.restored, fresh = outcome.restored, fresh or (target.keeps_threads and not outcome.restored)
            conversation.count(outcome)
            if isinstance(problem := outcome.problem, Failed):
                return replace(self._failed_turn(problem, conversation), unanswered=outcome.unanswered)
            try:
                conversation.add(turn, outcome.sample)
            except TargetError as error:
                return self._failed_turn(Failed(str(error)), conversation)
        return None

    def _failed_turn(self, problem: Failed, conversation: Conversation) -> TargetReply:
        text = f"{TARGET_FAILED}turn {len(conversation.turns) + 1}: {problem.error.removeprefix(TARGET_FAILED)}"
        return TargetReply(failed=replace(problem, error=text))

    def row(self, key: Key, reply: str, *, usage: Usage, cost: float | None, seconds: float) -> StoredAnswer:
        """The row of a call or a conversation."""
        run = self.calls.spending.run
        return answer_row(key, reply, usage=usage, cost=cost, seconds=seconds, run=run)

    def _add(self, place: int, outcome: TargetOutcome) -> None:
        """Add the outcome of a sample and trial to the summary."""
        self.samples.put(place, outcome.sample)
        self._cached += not outcome.paid
        if outcome.paid:
            self._usage += outcome.usage
            self._user_cost = total_cost((self._user_cost, outcome.user_cost))
        failed = isinstance(outcome.problem, Failed)
        if outcome.cost or (outcome.cost is not None and not failed):  # what has no answer may have a cost
            self._cost = (self._cost or 0.0) + (outcome.cost if outcome.paid else 0.0)
        if failed:
            self._failed += 1
        elif outcome.seconds is not None:
            self._known_working.add(self.target.identity)
            self._seconds.append(outcome.seconds)
            self._unpriced += outcome.cost is None


class _TargetCall(Call[TargetOutcome]):
    """A call to the target."""

    ending_the_run = (RunAborted, StorageError)

    def __init__(
        self,
        session: TargetSession,
        key: Key,
        sample: Sample,
        call: TargetFunction,
        thread: str,
        spent: TargetCost | None,
    ) -> None:
        self._session, self._sample, self._call, self._thread, self._spent = session, sample, call, thread, spent
        self.key, self.ledger, self.breaker = key, session.calls.ledger, session.breaker
        self.price_key = (session.scope, TARGET)
        self._cost: float | None = 0.0
        self._usage = NO_USAGE

    @property
    def stop(self) -> StopSignal | None:
        return self._session.stop

    def is_priced(self, budget: Budget) -> bool:
        return budget.highest(self.price_key) is not None

    def estimate(self, budget: Budget, size: int | None = None) -> float:
        return budget.highest(self.price_key) or 0.0

    @asynccontextmanager
    async def admitted(self) -> AsyncGenerator[None]:
        target = self._session.target
        async with self._session.slots, target.limits.admitted(target.identity):
            yield

    async def send(self, reservation: Reservation) -> TargetOutcome:
        target, sample, answered = self._session.target, self._sample, False
        self._started, clock = time.perf_counter(), asyncio.timeout(target.timeout)
        self._observed = observer().target_call(target, sample)
        try:
            with self._observed:
                async with clock:
                    returned = await self._call(sample, trial=sample.trial or 1, thread=self._thread)
                answer = await _in_place_or_aside(_is_large(returned), Answer.of, returned)
                self._cost, self._usage = answer.cost, answer.usage
                self._observed.result(answer)
                large = _is_large(answer)
                answer = await _in_place_or_aside(large, as_stored, answer)
                await _in_place_or_aside(large, partial(answer.fill, seconds=0.0), sample)  # it may contradict it
            reply = TargetReply(answer, trace=self._observed.trace)
            text = await _in_place_or_aside(large, reply.to_json)
            answered = True
        except TimeoutError:
            if clock.expired():
                raise TargetError(f"no answer within {target.timeout:g} s") from None
            raise
        except NoAnswer as error:
            self._cost, self._usage = error.answer.cost or 0.0, error.answer.usage
            raise
        finally:
            if answered or self._cost:
                reservation.settle(self._cost or 0.0)
            else:
                reservation.release()
        return self._outcome(reply, text)

    def failed(self, error: Exception | asyncio.CancelledError) -> TargetOutcome:
        if isinstance(error, TargetRefused) and not self.breaker.has_answered:
            raise TargetUnavailable(f"{self._session.target.identity} can't be used: {error}") from None
        reply = replace(_failure(error), trace=self._observed.trace)
        return self._outcome(reply, reply.to_json())

    def _outcome(self, reply: TargetReply, text: str) -> TargetOutcome:
        seconds = time.perf_counter() - self._started
        self._row = self._session.row(self.key, text, usage=self._usage, cost=self._cost, seconds=seconds)
        return reply.outcome(self._sample, self._row)

    def row(self, outcome: TargetOutcome) -> StoredAnswer | None:
        return self._row if self._spent is None else self._spent.added_to(self._row)


def _failure(error: Exception | asyncio.CancelledError) -> TargetReply:
    """The reply of a call that raised an error."""
    ours = isinstance(error, TargetError | ConfigError)
    return TargetReply(
        failed=Failed(f"{TARGET_FAILED}{error}") if ours else failed(error, TARGET_FAILED), unanswered=True
    )


def _is_large(returned: object) -> bool:
    """Whether what a target returned may take so long to convert that other calls should go on meanwhile."""
    match returned:
        case None | str():
            return False
        case Answer():
            values: Iterable[Any] = vars(returned).values()
        case Mapping():
            values = cast("Mapping[Any, Any]", returned).values()
        case list() | tuple():
            values = (cast("Sequence[Any]", returned),)
        case _:
            return True  # an object of a framework, whose size is not known
    return any(
        isinstance(value, list | tuple) and len(cast("Sequence[Any]", value)) > MANY_MESSAGES for value in values
    )


async def _in_place_or_aside(large: bool, function: Callable[..., T], *args: Any) -> T:
    return await sync.call_in_turn(function, *args) if large else function(*args)


def _written(sample: Sample) -> str:
    return json.dumps(sample_row(sample))


def _read(text: bytes) -> Sample:
    return sample_of(json.loads(text))


def _quantile(ordered: list[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
