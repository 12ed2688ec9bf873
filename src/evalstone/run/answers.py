"""The answers of a run's target: one call per sample and trial, kept in the ledger before it counts."""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import time
from array import array
from typing import Any, NamedTuple

from evalstone._core.json import to_jsonable
from evalstone.datasets.stored import sample_of, sample_row
from evalstone.errors import (
    ConfigError,
    RunAborted,
    RunStopped,
    StorageError,
    TargetError,
    TargetRefused,
    TargetUnavailable,
    TargetUnreachable,
)
from evalstone.ledger import AsyncLedger, Key, StoredAnswer
from evalstone.results.run import SpillingList
from evalstone.run.budget import Budget, StopSignal
from evalstone.run.circuit_breaker import CircuitBreaker
from evalstone.run.user_code import failed
from evalstone.targets import Answer, Target, absent
from evalstone.types import NO_USAGE, Failed, Sample, Skipped, StoredTarget, Usage

KIND = "target"
"""The kind of a target's answer in the ledger."""


class Answered(NamedTuple):
    """How a call of the target ended."""

    sample: Sample
    """With the answer; without one, as it was asked."""
    problem: Failed | Skipped | None = None
    """Why there is no answer."""


class Answers:
    """The answers of a run's target. Scorers of one sample and trial share one call.

    An answer is kept in the ledger, a failed one too: how often a system fails is part of what is measured, and a
    resumed run that tried again would flatter it. Only what could not be reached is asked again.

    Args:
        target: Who answers.
        run: The id of the run. Answers of a target without a version are kept for this run alone.
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
        self._scope = target.identity if target.version else f"{target.identity} in {run}"
        self._ledger, self._use_cache = ledger, use_cache
        self._budget, self._stop = budget, stop
        self._inflight: dict[int, tuple[asyncio.Task[Answered], int]] = {}
        self._known_working = set[str]()
        self._breaker = CircuitBreaker(target.identity, self._known_working, calls="samples", error=TargetUnavailable)
        self._dearest = 0.0
        self._seconds = array("d")
        self._failed = 0
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
        self._inflight[place] = task, remaining - 1
        try:
            return await asyncio.shield(task)
        finally:
            # One that nobody waits for any more, because the run ends, is for `close` to cancel.
            if self._inflight.get(place, (None, 1))[1] <= 0 and task.done():
                del self._inflight[place]

    async def restore(self, place: int, sample: Sample) -> None:
        """Take over the answer of a sample and trial whose records are all there."""
        if self._ledger is not None and (stored := await self._ledger.answer(*self._key(sample))) is not None:
            self._take(place, sample, stored, restored=True)

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
            answers=len(seconds),
            failed=self._failed,
            cost=self._cost,
            usage=self._usage,
            seconds={
                "mean": sum(seconds) / len(seconds),
                "p50": _quantile(seconds, 0.5),
                "p95": _quantile(seconds, 0.95),
            }
            if seconds
            else {},
        )

    def _key(self, sample: Sample) -> Key:
        return Key(self.target.fingerprint(sample), self._scope, sample.trial or 1)

    async def _obtain(self, place: int, sample: Sample) -> Answered:
        if lacking := absent(self.target, sample):
            self.samples.put(place, sample)
            return Answered(sample, Skipped(lacking))
        key, ledger = self._key(sample), self._ledger
        if ledger is not None and self._use_cache:
            found = await ledger.answer_or_claim(*key)
            if isinstance(found, StoredAnswer):
                return self._take(place, sample, found, restored=True)
        try:
            line, paid, seconds, usage = await self._call(sample)
            stored = StoredAnswer(
                question=key.question,
                judge=key.judge,
                repeat_index=key.repeat_index,
                kind=KIND,
                reply=json.dumps(line),
                usage=usage,
                cost=paid,
                seconds=seconds,
                confidence=None,
            )
            if ledger is not None and "unreachable" not in line:
                await ledger.keep_answer(stored)
        finally:
            if ledger is not None:
                ledger.release(*key)
        return self._take(place, sample, stored)

    async def _call(self, sample: Sample) -> tuple[dict[str, Any], float | None, float, Usage]:
        """Ask the target: what the ledger keeps of the answer, its cost in US dollars, its seconds and its tokens."""
        target = self.target
        async with target.limits.admitted(target.identity):
            if self._ledger is not None:
                self._ledger.check()
            if self._stop.requested:
                raise RunStopped(self._stop.reason)
            self._breaker.check()
            reserved = 0.0 if self._budget is None else self._budget.reserve_amount(self._dearest)
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
                timed_out = isinstance(error, TimeoutError) and clock.expired()
                line = self._failure(TargetError(f"no answer within {target.timeout:g} s") if timed_out else error)
            except asyncio.CancelledError as error:
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
                line = self._failure(error)  # of something that the target's own code waited for
            finally:
                if self._budget is not None:
                    self._budget.settle(reserved, paid or 0.0)
            self._dearest = max(self._dearest, paid or 0.0)
            return line, paid, time.perf_counter() - started, usage

    def _failure(self, error: Exception | asyncio.CancelledError) -> dict[str, Any]:
        """What the ledger keeps of an answer that failed."""
        if isinstance(error, TargetError | ConfigError):
            outcome = Failed(f"the target failed: {error}")
        else:
            outcome = failed(error, "the target failed: ")
        if isinstance(error, Exception):
            self._breaker.failed(error)
        line: dict[str, Any] = {"failed": to_jsonable(outcome)}
        if isinstance(error, TargetUnreachable):
            line["unreachable"] = True
        return line

    def _take(self, place: int, sample: Sample, stored: StoredAnswer, *, restored: bool = False) -> Answered:
        """Count an answer. restored: it comes from the ledger."""
        line = json.loads(stored.reply)
        if self._budget is not None and restored:
            self._budget.restore_answer(stored)
        if (problem := line.get("failed")) is not None:
            self._failed += 1
            self.samples.put(place, sample)
            return Answered(sample, Failed(**problem))
        self._known_working.add(self.target.identity)
        self._seconds.append(stored.seconds)
        self._usage += stored.usage
        if stored.cost is not None:
            self._cost = (self._cost or 0.0) + stored.cost
        answered = Answer.from_dict(line["answer"]).fill(sample, seconds=stored.seconds)
        self.samples.put(place, answered)
        return Answered(answered)


def _written(sample: Sample) -> str:
    return json.dumps(sample_row(sample))


def _read(text: bytes) -> Sample:
    return sample_of(json.loads(text))


def _quantile(ordered: list[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
