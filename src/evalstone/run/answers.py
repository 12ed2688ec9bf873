"""The answers of a run's target: one call per sample and trial, kept in the ledger before it counts."""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import time
from array import array
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from evalstone._core.display import count
from evalstone._core.json import content_hash, to_jsonable
from evalstone._core.observe import observer
from evalstone.datasets.stored import sample_of, sample_row
from evalstone.errors import (
    ConfigError,
    EvalstoneError,
    RunAborted,
    RunStopped,
    StorageError,
    TargetError,
    TargetRefused,
    TargetUnavailable,
    TargetUnreachable,
)
from evalstone.ledger import AsyncLedger, Key, StoredAnswer
from evalstone.ledger.base import TARGET, chunks, target_scope
from evalstone.results.spilling import SpillingList
from evalstone.run.budget import Budget, StopSignal
from evalstone.run.circuit_breaker import CircuitBreaker
from evalstone.run.conversations import (
    Conversation,
    UserEndsRun,
    UserProblem,
    counted_before,
    is_conversation,
    unanswerable,
)
from evalstone.run.session import Session
from evalstone.run.user_code import failed
from evalstone.targets import Answer, Target
from evalstone.targets.base import BlankAnswer, Prepared
from evalstone.targets.users import User
from evalstone.types import NO_USAGE, TARGET_FAILED, Failed, Sample, Skipped, StoredTarget, Usage, total_cost

RESTORED_AT_A_TIME = 500
Call: TypeAlias = Callable[..., Awaitable[object]]
"""`Target.call`."""


class Answered(NamedTuple):
    """How a call of the target ended."""

    sample: Sample
    """With the answer; without one, as it was asked."""
    problem: Failed | Skipped | None = None
    """Why there is no answer, or none that can be scored."""
    cost: float | None = None
    """US dollars of the target; None if unknown."""
    usage: Usage = NO_USAGE
    user_cost: float | None = 0.0
    """US dollars of a simulated user; None if unknown."""


class Found(NamedTuple):
    """The answer to a call, or to a conversation."""

    answered: Answered
    stored: StoredAnswer | None
    """As the ledger has it; None if it is not kept there, so that a resumed run tries again."""
    restored: bool
    """Whether it comes from the ledger."""


class Spent(NamedTuple):
    """What calls have cost that are not in the ledger any more, or soon won't be."""

    cost: float | None
    usage: Usage
    counted: float

    def with_(self, stored: StoredAnswer) -> StoredAnswer:
        """An answer that is kept with this in its cost, so that it is not lost."""
        known = [cost for cost in (self.cost, stored.cost) if cost is not None]
        reply = stored.reply
        if self.counted:
            reply = json.dumps({**json.loads(reply), "counted": self.counted})
        return replace(stored, reply=reply, cost=sum(known) if known else None, usage=self.usage + stored.usage)


class _BeginAgain(Exception):
    """The target doesn't know any more what it had answered before a crash."""


def answer_key(sample: Sample, inputs: Sequence[str], scope: str, user: str = "") -> Key:
    """The key of the answer to a sample and trial: its id and what the target is given of it. user: the identity of who
    talks to the target in turns."""
    given: list[Any] = [sample.id, {name: getattr(sample, name) for name in inputs}]
    if sample.turns:
        given += [
            [turn.content_hash for turn in sample.turns],
            sample.messages,
        ]  # the answer holds what was said before
    elif user:
        # The simulated user reads the metadata, whether the target does or not.
        given += [user, sample.input, sample.messages, sample.metadata]
    return Key(content_hash(given), scope, sample.trial or 1)


def read_answer(sample: Sample, stored: StoredAnswer) -> Answered | None:
    """What the ledger has of a call of a target, or of a conversation with it; None for what can't be read, so that it
    is asked again."""
    try:
        line = json.loads(stored.reply)
        sample = _answered_in(sample, line.get("trace"))
        # What a conversation cost stands beside its answer, for its calls are in the ledger by themselves.
        paid: dict[str, Any] = {"cost": line.get("cost"), "user_cost": line.get("user_cost")}
        if "user_cost" in line:
            paid["usage"] = Usage(**line["usage"])
        else:
            paid = {"cost": stored.cost, "usage": stored.usage}
        if (problem := line.get("failed")) is not None:
            return Answered(sample, Failed(**problem), **paid)
        filled = Answer.from_dict(line["answer"]).fill(sample, seconds=stored.seconds)
        skipped = line.get("skipped")
        return Answered(filled, None if skipped is None else Skipped(skipped), **paid)
    except (ValueError, KeyError, TypeError, AttributeError, EvalstoneError):
        return None


class Answers:
    """The answers of a run's target. Scorers of one sample and trial share one call.

    An answer is kept in the ledger, a failed one too: how often a system fails is part of what is measured, and a
    resumed run that tried again would flatter it. Only what could not be reached is asked again.

    Args:
        target: Who answers.
        run: The id of the run. Answers of a target without a version are kept for this run alone.
        since: When the run began, in seconds since 1970, if it was interrupted and goes on: it paid for what was
            answered from then on. What a new run finds in the ledger was paid by others.
        trials: How many there are of each sample.
        size: How many calls there are to be.
        ledger: Where answers are kept and looked up.
        use_cache: Whether answers in the ledger are used.
        budget: What the calls may cost, together with those of the judges.
        stop: Ends the calls before the next one.
        user: Who talks to the target in turns.
        session: Where a simulated user asks its judge.
    """

    def __init__(
        self,
        target: Target,
        run: str,
        *,
        user: User | None = None,
        session: Session,
        since: float = math.inf,
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
        """The samples with their answers, in the order of the plan."""
        self._scope = target_scope(target.identity, "" if target.version else run)
        self._since = since if target.version else -math.inf
        self._ledger, self._use_cache = ledger, use_cache
        self._budget, self._stop = budget, stop
        self._inflight: dict[int, tuple[asyncio.Task[Answered], int]] = {}
        self._known_working = set[str]()
        self._breaker = CircuitBreaker(target.identity, self._known_working, calls="samples", error=TargetUnavailable)
        self._dearest: float | None = None
        """What the dearest call so far has cost; None before the first."""
        self._first = asyncio.Lock()
        self._seconds = array("d")
        self._failed = self._cached = self._unpriced = 0
        self._cost: float | None = None
        self._user_cost: float | None = 0.0
        self._usage = NO_USAGE

    async def get(self, place: int, sample: Sample, uses: int) -> Answered:
        """The answer to a sample and trial. place: its number in the plan. uses: how often this will be called for it.

        Raises:
            RunAborted: The target is of no use any more, the budget is spent, or the run was stopped.
            StorageError: The answer cannot be kept.
        """
        task, remaining = self._inflight.get(place, (None, uses))
        if task is None:
            task = asyncio.create_task(self._obtain(place, sample))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # also where nobody waits for it
        self._inflight[place] = task, remaining - 1
        try:
            return await asyncio.shield(task)
        finally:
            # One that nobody waits for any more, because the run ends, is for `close` to cancel.
            if self._inflight.get(place, (None, 1))[1] <= 0 and task.done():
                del self._inflight[place]

    async def restore(self, cases: Iterable[tuple[int, Sample, bool]]) -> None:
        """Take over the answers of an interrupted run.

        Args:
            cases: The samples and trials by their number in the plan, and whether all of their records are there. Of
                the others the cost counts, and the answer is taken when it is needed.
        """
        ledger = self._ledger
        if ledger is None:
            return
        for some in chunks(cases, RESTORED_AT_A_TIME):
            found = await asyncio.gather(*(ledger.answer(*self._key(sample)) for _, sample, _ in some))
            for (place, sample, whole), stored in zip(some, found, strict=True):
                answered = None if stored is None else read_answer(sample, stored)
                if stored is not None:
                    self._count_paid(stored, answered)
                if whole and answered is None:
                    self.samples.put(place, sample)
                elif whole and answered is not None:
                    self._take(place, Found(answered, stored, restored=True))

    async def close(self) -> None:
        """Cancel the calls in flight, and wait until they have ended."""
        tasks = [task for task, _ in self._inflight.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def summary(self) -> StoredTarget:
        """What the answers so far took."""
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
        """What a reader of the costs has to know."""
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
            found = await self._answer(self._key(sample), sample, self.target.call, secrets.token_hex(8))
        else:
            found = await self._talk(sample)
        return self._take(place, found)

    async def _lookup(self, key: Key, sample: Sample) -> Found | None:
        """What the ledger has. Where it has nothing the key is claimed, and to be released."""
        if self._ledger is None or not self._use_cache:
            return None
        stored = await self._ledger.answer_or_claim(*key)
        if not isinstance(stored, StoredAnswer):
            return None
        answered = read_answer(sample, stored)
        self._count_paid(stored, answered)
        if answered is None:
            return None
        return Found(answered, stored, restored=True)

    def _count_paid(self, stored: StoredAnswer, answered: Answered | None) -> None:
        """Count what a stored answer cost, if this run paid for it."""
        costs = (stored.cost,) if answered is None else (answered.cost, answered.user_cost)
        cost = sum(cost or 0.0 for cost in costs) - (0.0 if answered is None else counted_before(stored))
        self._session.spending.restore_answer(replace(stored, cost=cost))

    async def _answer(
        self,
        key: Key,
        sample: Sample,
        call: Call,
        thread: str,
        *,
        fresh: bool = False,
        begun: bool = False,
        spent: Spent | None = None,
    ) -> Found:
        """The answer to one call, from the ledger or from the target.

        Args:
            key: Its key.
            sample: What the target is given.
            call: Calls the target.
            thread: The id of the conversation.
            fresh: Call the target, whatever is in the ledger.
            begun: The turn before came from the ledger, so that a target that keeps threads can't be called.
            spent: What the ledger is to have with the cost of this call.
        """
        try:
            if not fresh and (found := await self._lookup(key, sample)) is not None:
                self._learn_price(found.answered.cost, isinstance(found.answered.problem, Failed))
                return found
            if begun and self.target.keeps_threads:
                raise _BeginAgain
            stored = await self._priced(key, sample, call, thread, spent)
        finally:
            if self._ledger is not None and not fresh:
                self._ledger.release(*key)
        return self._read(sample, stored)

    def _read(self, sample: Sample, stored: StoredAnswer) -> Found:
        answered = read_answer(sample, stored)
        assert answered is not None  # noqa: S101 - it was just written
        return Found(answered, stored, restored=False)

    async def _talk(self, sample: Sample) -> Found:
        """A conversation, from the ledger or turn by turn."""
        key = self._key(sample)
        try:
            if (found := await self._lookup(key, sample)) is not None:
                return found
            talk = Conversation(sample, self.user, self._session)
            try:
                return await self._hold(key, talk)
            except _BeginAgain:
                return await self._hold(key, talk.anew(), fresh=True)
        finally:
            if self._ledger is not None:
                self._ledger.release(*key)

    async def _hold(self, key: Key, talk: Conversation, *, fresh: bool = False) -> Found:
        """Hold a conversation, and keep what was said. fresh: ask for each turn anew, whatever is in the ledger."""
        line: dict[str, Any] = {}
        observed = observer().target_call(self.target, talk.sample, conversation=True)
        try:
            with observed:
                line |= await self._held(talk, fresh)
                if "answer" in line:
                    observed.result(Answer())  # what was said is in the calls for the turns
            if "answer" in line and (left := await talk.problem()) is not None:
                line["skipped"] = left.reason
        except UserProblem as error:
            cost = talk.paid, talk.usage, talk.count_user()
            return Found(Answered(talk.sample, error.outcome, *cost), None, restored=False)
        except UserEndsRun as error:
            raise error.error from None
        finally:
            await talk.close()
        line |= {"cost": talk.paid, "usage": to_jsonable(talk.usage), "user_cost": talk.count_user()}
        if talk.counted:
            line["counted"] = talk.counted
        if observed.trace is not None:
            line["trace"] = dict(observed.trace)
        stored = _row(key, line, usage=NO_USAGE, cost=0.0, seconds=talk.seconds)
        if self._ledger is not None and "unreachable" not in line:
            await self._ledger.keep_answer(stored)
        return self._read(talk.sample, stored)

    async def _held(self, talk: Conversation, fresh: bool) -> dict[str, Any]:
        """Talk until the end or a failure; the answer as the ledger keeps it."""
        target, loop = self.target, asyncio.get_running_loop()
        failure: dict[str, Any] | None = None
        ended: BaseException | None = None
        clock = asyncio.timeout(target.timeout)  # of setting up and cleaning up; a turn has a time of its own
        try:
            async with clock, target.conversation(talk.sample) as prepared:
                clock.reschedule(None)
                try:
                    if (failure := await self._turns(talk, prepared, fresh)) is not None:
                        return failure
                except BaseException as error:
                    ended = error
                    raise
                finally:
                    clock.reschedule(loop.time() + target.timeout)
            if talk.restored and prepared.state is not None:
                raise _BeginAgain  # it is the state of what was set up just now, where nobody said anything
            return {"answer": talk.answer(prepared.state).to_dict()}
        except (RunAborted, StorageError, UserProblem, UserEndsRun, _BeginAgain):
            raise
        except Exception as error:  # noqa: BLE001 - setting up and cleaning up is the user's own code
            if ended is not None:
                raise ended from None  # cleaning up what was broken off failed too
            if talk.restored and target.keeps_threads:  # it cleaned up what nobody had worked on
                if failure is not None:
                    return failure
                raise _BeginAgain from None
            timed_out = isinstance(error, TimeoutError) and clock.expired()
            return self._failure(TargetError(f"not ready within {target.timeout:g} s") if timed_out else error)
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            return self._failure(error)

    async def _turns(self, talk: Conversation, prepared: Prepared, fresh: bool) -> dict[str, Any] | None:
        """Talk until the end; the failure of the turn that ended it before, as the ledger keeps it."""
        target, thread = self.target, secrets.token_hex(8)
        while (turn := await talk.next_turn()) is not None:
            key = talk.key(talk.asked(talk.sample, turn), target.inputs, self._scope)
            given = talk.asked(prepared.sample, turn)
            # Beginning again overwrites the answers to the turns, and with them what they cost.
            spent = Spent(talk.paid, talk.usage, talk.counted) if fresh and not talk.turns else None
            found = await self._answer(key, given, prepared.call, thread, fresh=fresh, begun=talk.restored, spent=spent)
            talk.restored, fresh = found.restored, fresh or (target.keeps_threads and not found.restored)
            talk.count(found.stored, paid=self._paid(found))
            if isinstance(problem := found.answered.problem, Failed):
                unreachable = json.loads(found.stored.reply).get("unreachable") if found.stored else None
                return self._failed_turn(problem, talk) | ({"unreachable": True} if unreachable else {})
            try:
                talk.add(turn, found.answered.sample)
            except TargetError as error:
                return self._failed_turn(Failed(str(error)), talk)
        return None

    def _failed_turn(self, problem: Failed, talk: Conversation) -> dict[str, Any]:
        text = f"{TARGET_FAILED}turn {len(talk.turns) + 1}: {problem.error.removeprefix(TARGET_FAILED)}"
        return {"failed": to_jsonable(replace(problem, error=text))}

    async def _priced(
        self, key: Key, sample: Sample, call: Call, thread: str, spent: Spent | None = None
    ) -> StoredAnswer:
        """Ask the target. Under a budget the first call goes alone: what it costs is what the others reserve."""
        if self._budget is not None and self._dearest is None:
            async with self._first:
                if self._dearest is None:
                    return await self._call(key, sample, call, thread, spent)
        return await self._call(key, sample, call, thread, spent)

    async def _call(
        self, key: Key, sample: Sample, call: Call, thread: str, spent: Spent | None = None
    ) -> StoredAnswer:
        """Ask the target, and keep what it answered."""
        target, ledger = self.target, self._ledger
        # Hold the place until the answer is committed, so that a crash loses at most the calls in flight.
        async with target.limits.admitted(target.identity):
            if ledger is not None:
                ledger.check()
            if self._stop.requested:
                raise RunStopped(self._stop.reason)
            self._breaker.check()
            reserved = 0.0 if self._budget is None else self._budget.reserve_amount(self._dearest or 0.0)
            paid: float | None = 0.0
            usage, started, clock = NO_USAGE, time.perf_counter(), asyncio.timeout(target.timeout)
            observed = observer().target_call(target, sample)
            try:
                with observed:
                    async with clock:
                        answer = Answer.of(await call(sample, trial=sample.trial or 1, thread=thread))
                    observed.result(answer)
                paid, usage = answer.cost, answer.usage
                line: dict[str, Any] = {"answer": answer.to_dict()}
                self._breaker.answered()
            except (RunAborted, StorageError):
                raise
            except Exception as error:  # noqa: BLE001 - a target's own code may raise anything
                if isinstance(error, TargetRefused) and not self._breaker.has_answered:
                    raise TargetUnavailable(f"{target.identity} can't be used: {error}") from None
                if isinstance(error, BlankAnswer):
                    paid, usage = error.answer.cost or 0.0, error.answer.usage
                timed_out = isinstance(error, TimeoutError) and clock.expired()
                line = self._failure(TargetError(f"no answer within {target.timeout:g} s") if timed_out else error)
            except asyncio.CancelledError as error:
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
                line = self._failure(error)  # of something that the target's own code waited for
            finally:
                self._session.spending.pay(paid or 0.0)
                if self._budget is not None:
                    self._budget.settle(reserved, paid or 0.0)
            self._learn_price(paid, "failed" in line)
            if observed.trace is not None:
                line["trace"] = dict(observed.trace)
            stored = _row(key, line, usage=usage, cost=paid, seconds=time.perf_counter() - started)
            if ledger is not None and "unreachable" not in line:
                await ledger.keep_answer(stored if spent is None else spent.with_(stored))
        return stored

    def _failure(self, error: Exception | asyncio.CancelledError) -> dict[str, Any]:
        """What the ledger keeps of an answer that failed."""
        ours = isinstance(error, TargetError | ConfigError)
        outcome = Failed(f"{TARGET_FAILED}{error}") if ours else failed(error, TARGET_FAILED)
        if isinstance(error, Exception):
            self._breaker.failed(error)
        line: dict[str, Any] = {"failed": to_jsonable(outcome)}
        if isinstance(error, TargetUnreachable):
            line["unreachable"] = True
        return line

    def _learn_price(self, cost: float | None, failed: bool) -> None:
        """Take over what a call cost, which is what the next ones reserve. One that failed for nothing says nothing."""
        if cost or not failed:
            self._dearest = max(self._dearest or 0.0, cost or 0.0)

    def _paid(self, found: Found) -> bool:
        """Whether this run paid for an answer."""
        return not found.restored or (found.stored is not None and found.stored.written >= self._since)

    def _take(self, place: int, found: Found) -> Answered:
        """Count the answer to a sample and trial."""
        answered, stored, _ = found
        self.samples.put(place, answered.sample)
        paid = self._paid(found)
        self._cached += not paid
        if paid:
            self._usage += answered.usage
            self._user_cost = total_cost((self._user_cost, answered.user_cost))
        failed = isinstance(answered.problem, Failed)
        if answered.cost or (answered.cost is not None and not failed):  # a blank answer is paid for too
            self._cost = (self._cost or 0.0) + (answered.cost if paid else 0.0)
        if failed:
            self._failed += 1
        elif stored is not None:
            self._known_working.add(self.target.identity)
            self._seconds.append(stored.seconds)
            self._unpriced += answered.cost is None
        return answered


def _row(key: Key, line: dict[str, Any], *, usage: Usage, cost: float | None, seconds: float) -> StoredAnswer:
    """What the ledger keeps of a call or a conversation."""
    return StoredAnswer(
        question=key.question,
        judge=key.judge,
        repeat_index=key.repeat_index,
        kind=TARGET,
        reply=json.dumps(line),
        usage=usage,
        cost=cost,
        seconds=seconds,
        confidence=None,
    )


def _answered_in(sample: Sample, trace: Mapping[str, str] | None) -> Sample:
    """The sample with the trace of the call that answered it, in place of that of the answer that it came with."""
    kept = {name: value for name, value in sample.metadata.items() if name != "trace" or not _names_trace(value)}
    metadata = kept if trace is None else {**kept, "trace": trace}
    return sample if metadata == sample.metadata else replace(sample, metadata=metadata)


def _names_trace(value: object) -> bool:
    return isinstance(value, Mapping) and "trace_id" in value


def _written(sample: Sample) -> str:
    return json.dumps(sample_row(sample))


def _read(text: bytes) -> Sample:
    return sample_of(json.loads(text))


def _quantile(ordered: list[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
