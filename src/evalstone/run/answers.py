"""The answers of a run's target: one call per sample and trial, stored in the ledger before it counts."""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import time
from array import array
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from evalstone._core import sync
from evalstone._core.display import count
from evalstone._core.files import spare_files
from evalstone._core.observe import observer
from evalstone.datasets.stored import sample_of, sample_row
from evalstone.errors import (
    ConfigError,
    RunAborted,
    RunStopped,
    StorageError,
    TargetError,
    TargetRefused,
    TargetUnavailable,
)
from evalstone.ledger import AsyncLedger, Key, StoredAnswer
from evalstone.ledger.base import TARGET, chunks, target_scope
from evalstone.models.replies import read_aside
from evalstone.results.spilling import SpillingList
from evalstone.run.answer_rows import (
    Answered,
    ConversationCost,
    EarlierCost,
    TargetReply,
    answer_key,
    as_stored,
    read_answer,
)
from evalstone.run.budget import Budget, StopSignal
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
from evalstone.targets.base import NoAnswer, Prepared
from evalstone.targets.users import User
from evalstone.types import NO_USAGE, TARGET_FAILED, Failed, Sample, Skipped, StoredTarget, Usage, total_cost

RESTORED_AT_A_TIME = 500
MANY_MESSAGES = 1000
"""Entries of a list above which an answer is converted in a thread."""
MOST_CALLS = 10_000
T = TypeVar("T")
Call: TypeAlias = Callable[..., Awaitable[object]]
"""`Target.call`."""


class TargetResult(NamedTuple):
    """An outcome, with its row in the ledger."""

    answered: Answered
    stored: StoredAnswer | None
    """The row; None if the outcome isn't stored, so that a resumed run tries again."""
    restored: bool
    """Whether the outcome was read from the ledger."""
    unanswered: bool = False
    """Whether the call gave no answer, so that a resumed run makes it again."""


class _StartOver(Exception):
    """The target has lost the state of a conversation that was interrupted by a crash."""


async def _read_aside(sample: Sample, stored: StoredAnswer) -> Answered | None:
    return await read_aside(len(stored.reply), read_answer, sample, stored)


class Answers:
    """The answers of a run's target. Scorers of one sample and trial share one call.

    Answers are stored in the ledger, including blank ones: they are paid for, and part of the measurement. A call that
    gave no answer is made again when the run is resumed. An exception, a timeout or a refusal may have the same cause
    as the interruption, such as a missing environment variable.

    Args:
        target: The system under test.
        run: The id of the run. Answers of a target without a version are valid for this run only.
        trials: The number of trials per sample.
        size: The number of samples and trials.
        ledger: Where answers are stored and looked up.
        use_cache: Whether to use answers in the ledger.
        budget: The budget of the run, shared with the judges.
        stop: Once requested, no more calls are made.
        user: The simulated user of conversations.
        session: Asks the simulated user's judge.
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
        ledger: AsyncLedger | None,
        use_cache: bool,
        budget: Budget | None,
        stop: StopSignal,
    ) -> None:
        self.target, self.trials, self.user = target, trials, user
        self._session = session
        self.samples = SpillingList(size, write=_written, read=_read)
        """The samples with their answers, in plan order."""
        self._scope = target_scope(target.identity, "" if target.version else run)
        self._ledger, self._use_cache = ledger, use_cache
        self._budget, self._stop = budget, stop
        self._inflight: dict[int, tuple[asyncio.Task[Answered], int]] = {}
        self._known_working = set[str]()
        self._breaker = CircuitBreaker(target.identity, self._known_working, calls="samples", error=TargetUnavailable)
        self.highest_cost: float | None = None
        """The highest cost of a call so far; None before the first."""
        self._first = asyncio.Lock()
        self._slots = asyncio.Semaphore(spare_files(MOST_CALLS, 2 * target.files_per_call))
        """Limits the calls in flight to what the process may open files for, whatever the target's limits are."""
        self._seconds = array("d")
        self._failed = self._cached = self._unpriced = 0
        self._cost: float | None = None
        self._user_cost: float | None = 0.0
        self._usage = NO_USAGE

    async def get(self, place: int, sample: Sample, uses: int) -> Answered:
        """The answer to a sample and trial.

        Args:
            place: The number of the sample and trial in the plan.
            sample: The sample.
            uses: How many scorers will ask for this answer.

        Raises:
            RunAborted: The target is unavailable, the budget is spent, or the run was stopped.
            StorageError: The answer can't be stored.
        """
        task, remaining = self._inflight.get(place, (None, uses))
        if task is None:
            task = asyncio.create_task(self._obtain(place, sample))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # also if nobody awaits it
        self._inflight[place] = task, remaining - 1
        try:
            return await asyncio.shield(task)
        finally:
            # If the run ends while the call is in flight, `close` cancels it.
            if self._inflight.get(place, (None, 1))[1] <= 0 and task.done():
                del self._inflight[place]

    async def restore(self, cases: Iterable[tuple[int, Sample]], *, failed: bool = False) -> None:
        """Restore the answers of an interrupted run.

        Args:
            cases: The number and the sample, for each sample and trial that has all of its records. The answers of the
                others are restored when a scorer asks for them.
            failed: Whether these samples and trials have failed, so that those without an answer count as failed calls.
        """
        ledger = self._ledger
        if ledger is None:
            return
        for part in chunks(cases, RESTORED_AT_A_TIME):
            rows = await asyncio.gather(*(ledger.answer(*self._key(sample)) for _, sample in part))
            for (place, sample), stored in zip(part, rows, strict=True):
                answered = None if stored is None else await _read_aside(sample, stored)
                if answered is None:
                    self.samples.put(place, sample)
                    self._failed += failed
                else:
                    self._add(place, TargetResult(answered, stored, restored=True))

    async def close(self) -> None:
        """Cancel the calls in flight and wait for them to end."""
        tasks = [task for task, _ in self._inflight.values()]
        await sync.cancel_all(tasks)

    def summary(self) -> StoredTarget:
        """The number, cost and latency of the answers so far."""
        seconds = sorted(self._seconds)
        return StoredTarget(
            identity=self.target.identity,
            user="" if self.user is None else self.user.identity,
            trials=self.trials,
            scope=self._scope,
            inputs=self.target.inputs,
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
        if self._unpriced and self._budget is not None:
            return "the target reports no cost; the budget covers the judge calls alone"
        return ""

    def _key(self, sample: Sample) -> Key:
        return answer_key(sample, self.target.inputs, self._scope, "" if self.user is None else self.user.identity)

    async def _obtain(self, place: int, sample: Sample) -> Answered:
        if lacking := unanswerable(self.target, self.user, sample):
            self.samples.put(place, sample)
            return Answered(sample, Skipped(lacking))
        if self.target.holds_conversations or not is_conversation(sample, self.user):
            result = await self._answer(self._key(sample), sample, self.target.call, secrets.token_hex(8))
        else:
            result = await self._converse(sample)
        return self._add(place, result)

    async def _lookup(self, key: Key, sample: Sample) -> TargetResult | None:
        """The outcome in the ledger. If there is none, the key is claimed, and the caller has to release it."""
        if self._ledger is None or not self._use_cache:
            return None
        stored = await self._ledger.answer_or_claim(*key)
        if not isinstance(stored, StoredAnswer):
            return None
        answered = await _read_aside(sample, stored)
        return None if answered is None else TargetResult(answered, stored, restored=True)

    async def _answer(
        self,
        key: Key,
        sample: Sample,
        call: Call,
        thread: str,
        *,
        fresh: bool = False,
        begun: bool = False,
        spent: EarlierCost | None = None,
    ) -> TargetResult:
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
        try:
            if not fresh and (result := await self._lookup(key, sample)) is not None:
                self._learn_price(result.answered.cost, isinstance(result.answered.problem, Failed))
                return result
            if begun and self.target.keeps_threads:
                raise _StartOver
            return await self._priced(key, sample, call, thread, spent)
        finally:
            if self._ledger is not None and not fresh:
                self._ledger.release(*key)

    async def _converse(self, sample: Sample) -> TargetResult:
        """The outcome of a conversation, from the ledger or turn by turn."""
        key = self._key(sample)
        try:
            if (result := await self._lookup(key, sample)) is not None:
                return result
            conversation = Conversation(sample, self.user, self._session)
            try:
                return await self._conducted(key, conversation)
            except _StartOver:
                return await self._conducted(key, conversation.restarted(), fresh=True)
        finally:
            if self._ledger is not None:
                self._ledger.release(*key)

    async def _conducted(self, key: Key, conversation: Conversation, *, fresh: bool = False) -> TargetResult:
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
            return TargetResult(Answered(conversation.sample, error.outcome, *cost), None, restored=False)
        except UserEndsRun as error:
            raise error.error from None
        finally:
            await conversation.close()
        paid = ConversationCost(conversation.paid, conversation.usage, conversation.count_user())
        reply = replace(reply, conversation=paid, trace=observed.trace)
        text = await _in_place_or_aside(reply.answer is not None and _is_large(reply.answer), reply.to_json)
        stored = self._row(key, text, usage=NO_USAGE, cost=0.0, seconds=conversation.seconds)
        if self._ledger is not None and not reply.unanswered:
            await self._ledger.keep_answer(stored)
        return TargetResult(reply.answered(conversation.sample, stored), stored, restored=False)

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
            timed_out = isinstance(error, TimeoutError) and clock.expired()
            return self._failure(TargetError(f"not ready within {target.timeout:g} s") if timed_out else error)
        except asyncio.CancelledError as error:
            if sync.is_being_cancelled():
                raise
            return self._failure(error)

    async def _turns(self, conversation: Conversation, prepared: Prepared, fresh: bool) -> TargetReply | None:
        """Conduct the turns. Returns the failure of the first one that fails."""
        target, thread = self.target, secrets.token_hex(8)
        while (turn := await conversation.next_turn()) is not None:
            key = conversation.key(conversation.asked(conversation.sample, turn), target.inputs, self._scope)
            request = conversation.asked(prepared.sample, turn)
            # Starting over overwrites the rows of the turns, and with them their cost.
            spent = EarlierCost(conversation.paid, conversation.usage) if fresh and not conversation.turns else None
            result = await self._answer(
                key, request, prepared.call, thread, fresh=fresh, begun=conversation.restored, spent=spent
            )
            conversation.restored, fresh = result.restored, fresh or (target.keeps_threads and not result.restored)
            conversation.count(result.stored, paid=self._paid(result))
            if isinstance(problem := result.answered.problem, Failed):
                return replace(self._failed_turn(problem, conversation), unanswered=result.unanswered)
            try:
                conversation.add(turn, result.answered.sample)
            except TargetError as error:
                return self._failed_turn(Failed(str(error)), conversation)
        return None

    def _failed_turn(self, problem: Failed, conversation: Conversation) -> TargetReply:
        text = f"{TARGET_FAILED}turn {len(conversation.turns) + 1}: {problem.error.removeprefix(TARGET_FAILED)}"
        return TargetReply(failed=replace(problem, error=text))

    async def _priced(
        self, key: Key, sample: Sample, call: Call, thread: str, spent: EarlierCost | None = None
    ) -> TargetResult:
        """Call the target. Under a budget, the first call runs alone: its cost is what later calls reserve."""
        if self._budget is not None and self.highest_cost is None:
            async with self._first:
                if self.highest_cost is None:
                    return await self._call(key, sample, call, thread, spent)
        return await self._call(key, sample, call, thread, spent)

    async def _call(
        self, key: Key, sample: Sample, call: Call, thread: str, spent: EarlierCost | None = None
    ) -> TargetResult:
        """Call the target and store its answer."""
        target, ledger = self.target, self._ledger
        # Hold the slot until the answer is committed, so that a crash loses at most the calls in flight.
        async with self._slots, target.limits.admitted(target.identity):
            await self._session.wait_for_budget(self.highest_cost or 0.0)
            if ledger is not None:
                ledger.check()
            if self._stop.requested:
                raise RunStopped(self._stop.reason)
            self._breaker.check()
            reserved = 0.0 if self._budget is None else self._budget.reserve_amount(self.highest_cost or 0.0)
            paid: float | None = 0.0
            text = ""
            usage, started, clock = NO_USAGE, time.perf_counter(), asyncio.timeout(target.timeout)
            observed = observer().target_call(target, sample)
            try:
                with observed, self._session.reserving():
                    async with clock:
                        returned = await call(sample, trial=sample.trial or 1, thread=thread)
                    answer = await _in_place_or_aside(_is_large(returned), Answer.of, returned)
                    paid, usage = answer.cost, answer.usage
                    observed.result(answer)
                    large = _is_large(answer)
                    answer = await _in_place_or_aside(large, as_stored, answer)
                    await _in_place_or_aside(large, partial(answer.fill, seconds=0.0), sample)  # it may contradict it
                reply = TargetReply(answer, trace=observed.trace)
                text = await _in_place_or_aside(large, reply.to_json)
                self._breaker.answered()
            except (RunAborted, StorageError):
                raise
            except Exception as error:  # noqa: BLE001 - a target is user code
                if isinstance(error, TargetRefused) and not self._breaker.has_answered:
                    raise TargetUnavailable(f"{target.identity} can't be used: {error}") from None
                if isinstance(error, NoAnswer):
                    paid, usage = error.answer.cost or 0.0, error.answer.usage
                timed_out = isinstance(error, TimeoutError) and clock.expired()
                reply = self._failure(TargetError(f"no answer within {target.timeout:g} s") if timed_out else error)
            except asyncio.CancelledError as error:
                if sync.is_being_cancelled():
                    raise
                reply = self._failure(error)  # raised by what the target awaited
            finally:
                self._session.spending.pay(paid or 0.0)
                if self._budget is not None:
                    self._budget.settle(reserved, paid or 0.0)
            self._learn_price(paid, reply.answer is None)
            if reply.answer is None:
                reply = replace(reply, trace=observed.trace)
                text = reply.to_json()
            stored = self._row(key, text, usage=usage, cost=paid, seconds=time.perf_counter() - started)
            if ledger is not None and reply.unanswered:
                await ledger.keep_payments()
            elif ledger is not None:
                await ledger.keep_answer(stored if spent is None else spent.added_to(stored))
        return TargetResult(reply.answered(sample, stored), stored, restored=False, unanswered=reply.unanswered)

    def _failure(self, error: Exception | asyncio.CancelledError) -> TargetReply:
        ours = isinstance(error, TargetError | ConfigError)
        outcome = Failed(f"{TARGET_FAILED}{error}") if ours else failed(error, TARGET_FAILED)
        if isinstance(error, Exception):
            self._breaker.failed(error)
        return TargetReply(failed=outcome, unanswered=True)

    def _row(self, key: Key, reply: str, *, usage: Usage, cost: float | None, seconds: float) -> StoredAnswer:
        """The row of a call or a conversation."""
        return StoredAnswer(
            question=key.question,
            judge=key.judge,
            repeat_index=key.repeat_index,
            kind=TARGET,
            reply=reply,
            usage=usage,
            cost=cost,
            seconds=seconds,
            confidence=None,
            run=self._session.spending.run,
        )

    def _learn_price(self, cost: float | None, failed: bool) -> None:
        """Update what later calls reserve. A failed call without a cost says nothing about the price."""
        if cost or not failed:
            self.highest_cost = max(self.highest_cost or 0.0, cost or 0.0)

    def _paid(self, result: TargetResult) -> bool:
        """Whether this run paid for an answer."""
        return not result.restored or (result.stored is not None and self._session.spending.has_paid_for(result.stored))

    def _add(self, place: int, result: TargetResult) -> Answered:
        """Add the outcome of a sample and trial to the summary."""
        answered, stored = result.answered, result.stored
        self.samples.put(place, answered.sample)
        paid = self._paid(result)
        self._cached += not paid
        if paid:
            self._usage += answered.usage
            self._user_cost = total_cost((self._user_cost, answered.user_cost))
        failed = isinstance(answered.problem, Failed)
        if answered.cost or (answered.cost is not None and not failed):  # what has no answer may have a cost
            self._cost = (self._cost or 0.0) + (answered.cost if paid else 0.0)
        if failed:
            self._failed += 1
        elif stored is not None:
            self._known_working.add(self.target.identity)
            self._seconds.append(stored.seconds)
            self._unpriced += answered.cost is None
        return answered


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
