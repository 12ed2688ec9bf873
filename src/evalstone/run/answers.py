"""The answers of a run's target: one call per sample and trial, kept in the ledger before it counts."""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import time
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from evalstone._core.display import count
from evalstone._core.json import content_hash, to_jsonable
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
from evalstone.results.run import SpillingList
from evalstone.run.budget import Budget, StopSignal
from evalstone.run.circuit_breaker import CircuitBreaker
from evalstone.run.user_code import failed
from evalstone.targets import Answer, Target, absent
from evalstone.targets.base import FAILED, BlankAnswer
from evalstone.types import NO_USAGE, Failed, Sample, Skipped, StoredTarget

RESTORED_AT_A_TIME = 500


class Answered(NamedTuple):
    """How a call of the target ended."""

    sample: Sample
    """With the answer; without one, as it was asked."""
    problem: Failed | Skipped | None = None
    """Why there is no answer."""


def answer_key(sample: Sample, inputs: Sequence[str], scope: str) -> Key:
    """The key of the answer to a sample and trial: its id and what the target is given of it."""
    return Key(content_hash([sample.id, {name: getattr(sample, name) for name in inputs}]), scope, sample.trial or 1)


def read_answer(sample: Sample, stored: StoredAnswer) -> Answered | None:
    """What the ledger has of a call of a target; None for what can't be read, so that it is asked again."""
    try:
        line = json.loads(stored.reply)
        if (problem := line.get("failed")) is not None:
            return Answered(sample, Failed(**problem))
        return Answered(Answer.from_dict(line["answer"]).fill(sample, seconds=stored.seconds))
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
    """

    def __init__(
        self,
        target: Target,
        run: str,
        *,
        since: float = math.inf,
        trials: int,
        size: int,
        ledger: AsyncLedger | None,
        use_cache: bool,
        budget: Budget | None,
        stop: StopSignal,
    ) -> None:
        self.target, self.trials = target, trials
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
        """What the dearest answer so far has cost; None before the first."""
        self._first = asyncio.Lock()
        self._seconds = array("d")
        self._failed = self._cached = self._unpriced = 0
        self._cost: float | None = None
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
                if stored is not None and self._budget is not None:
                    self._budget.restore_answer(stored)
                if whole and (stored is None or self._take(place, sample, stored, restored=True) is None):
                    self.samples.put(place, sample)

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
            trials=self.trials,
            scope=self._scope,
            inputs=self.target.inputs,
            answers=len(seconds),
            failed=self._failed,
            cached=self._cached,
            cost=self._cost,
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
        return answer_key(sample, self.target.inputs, self._scope)

    async def _obtain(self, place: int, sample: Sample) -> Answered:
        if lacking := absent(self.target, sample):
            self.samples.put(place, sample)
            return Answered(sample, Skipped(lacking))
        key, ledger = self._key(sample), self._ledger
        if ledger is not None and self._use_cache:
            found = await ledger.answer_or_claim(*key)
            if isinstance(found, StoredAnswer):
                if self._budget is not None:
                    self._budget.restore_answer(found)
                if (answered := self._take(place, sample, found, restored=True)) is not None:
                    return answered
        try:
            stored = await self._priced(key, sample)
        finally:
            if ledger is not None:
                ledger.release(*key)
        answered = self._take(place, sample, stored)
        assert answered is not None  # noqa: S101 - it was just written
        return answered

    async def _priced(self, key: Key, sample: Sample) -> StoredAnswer:
        """Ask the target. Under a budget the first call goes alone: what it costs is what the others reserve."""
        if self._budget is not None and self._dearest is None:
            async with self._first:
                if self._dearest is None:
                    return await self._call(key, sample)
        return await self._call(key, sample)

    async def _call(self, key: Key, sample: Sample) -> StoredAnswer:
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
            try:
                trial, thread = sample.trial or 1, secrets.token_hex(8)
                async with clock:
                    answer = Answer.of(await target.call(sample, trial=trial, thread=thread))
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
                if self._budget is not None:
                    self._budget.settle(reserved, paid or 0.0)
            stored = StoredAnswer(
                question=key.question,
                judge=key.judge,
                repeat_index=key.repeat_index,
                kind=TARGET,
                reply=json.dumps(line),
                usage=usage,
                cost=paid,
                seconds=time.perf_counter() - started,
                confidence=None,
            )
            if ledger is not None and "unreachable" not in line:
                await ledger.keep_answer(stored)
        return stored

    def _failure(self, error: Exception | asyncio.CancelledError) -> dict[str, Any]:
        """What the ledger keeps of an answer that failed."""
        ours = isinstance(error, TargetError | ConfigError)
        outcome = Failed(f"{FAILED}{error}") if ours else failed(error, FAILED)
        if isinstance(error, Exception):
            self._breaker.failed(error)
        line: dict[str, Any] = {"failed": to_jsonable(outcome)}
        if isinstance(error, TargetUnreachable):
            line["unreachable"] = True
        return line

    def _take(self, place: int, sample: Sample, stored: StoredAnswer, *, restored: bool = False) -> Answered | None:
        """Count an answer; None for one that can't be read. restored: it comes from the ledger."""
        answered = read_answer(sample, stored)
        if answered is None:
            return None
        self.samples.put(place, answered.sample)
        paid = not restored or stored.written >= self._since
        self._cached += not paid
        self._usage += stored.usage if paid else NO_USAGE
        if answered.problem is not None:
            self._failed += 1
            if stored.cost:  # a blank answer is paid for too
                self._dearest = max(self._dearest or 0.0, stored.cost)
                self._cost = (self._cost or 0.0) + (stored.cost if paid else 0.0)
            return answered
        self._known_working.add(self.target.identity)
        self._seconds.append(stored.seconds)
        self._dearest = max(self._dearest or 0.0, stored.cost or 0.0)
        if stored.cost is None:
            self._unpriced += 1
        else:
            self._cost = (self._cost or 0.0) + (stored.cost if paid else 0.0)
        return answered


def _written(sample: Sample) -> str:
    return json.dumps(sample_row(sample))


def _read(text: bytes) -> Sample:
    return sample_of(json.loads(text))


def _quantile(ordered: list[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
