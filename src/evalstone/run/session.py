"""Putting a run's questions to its judge: once each, at most so many at a time, durable before they count."""

from __future__ import annotations

import asyncio
import copy
from collections import OrderedDict
from typing import Any, TypeVar

from evalstone.errors import EvalstoneError, JudgeError, RunAborted
from evalstone.judges.base import Judge, NumberedFrom
from evalstone.ledger import AsyncLedger, StoredAnswer
from evalstone.ledger.rows import Key
from evalstone.questions.base import Answer, ContextLimits, Question, cached_call, failed_call, judge_call
from evalstone.run.budget import Budget
from evalstone.run.calling import Caller
from evalstone.types import NO_USAGE, JudgeCall, Record

A = TypeVar("A")

REMEMBERED = 4096


class Asker:
    """One run's way to its judge.

    Equal questions that are asked at the same time are one call; a recent answer is given again; with a ledger, so is
    every answer that this judge ever gave there, unless `fresh`. concurrency: calls under way at once, at most.
    budget: what the calls may cost. A judge of judges is not called: its members are, each in this same way, and what
    it makes of their answers is not stored, for it is made again from theirs at no cost.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        ledger: AsyncLedger | None = None,
        concurrency: int = 32,
        fresh: bool = False,
        budget: Budget | None = None,
    ) -> None:
        self._judge = judge
        self._budget = budget
        self._proved: set[str] = set()
        self._seats: dict[int, _Seat] = {}
        self.identity = judge.identity
        self._ledger = ledger
        self._fresh = fresh
        self._gate = asyncio.Semaphore(concurrency)
        self._flights: dict[Key, asyncio.Task[tuple[Answer[Any], bool]]] = {}
        self._recent: OrderedDict[Key, Answer[Any]] = OrderedDict()

    @property
    def room(self) -> ContextLimits:
        """What one question to the judge may hold."""
        return self._judge.room

    def went_before(self, record: Record) -> None:
        """Take note of a record of the run that was made before it was stopped: what was paid is out of the budget, and
        who answered can answer."""
        if self._budget is not None:
            self._budget.recorded(record)
        self._proved.update(leaf.judge for step in record.steps for leaf in step.leaves() if leaf.answer is not None)

    async def put(self, question: Question[A]) -> tuple[Answer[A], bool]:
        """The answer, and whether it cost nothing because it was there already or another asked at the same time."""
        return await self._put(self._seat(self._judge), question, 0)

    async def through(self, member: Judge, question: Question[A], number: int = 0) -> Answer[A]:
        """How the run's judge puts a question to a member: see `Put`. What cost nothing says so."""
        answer, cached = await self._put(self._seat(member), question, number)
        return answer.as_cached() if cached else answer

    def _seat(self, judge: Judge) -> _Seat:
        seat = self._seats.get(id(judge))
        if seat is None:
            caller = Caller(judge, self._budget, self._proved)
            seat = self._seats[id(judge)] = _Seat(judge, judge.identity, self._ledger, caller)
        return seat

    async def _put(self, seat: _Seat, question: Question[A], number: int) -> tuple[Answer[A], bool]:
        key = Key(question.fingerprint, seat.identity, number)
        if (known := self._recent.get(key)) is not None:
            self._recent.move_to_end(key)
            return known, True
        flight = self._flights.get(key)
        if flight is not None:
            return await _joined(flight)
        flight = asyncio.get_running_loop().create_task(self._fly(seat, question, key))
        flight.add_done_callback(_noted)
        if not flight.done():  # it may be, where the loop's tasks start eagerly
            self._flights[key] = flight
        return await asyncio.shield(flight)

    async def close(self) -> None:
        """Give up what is under way."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    async def _fly(self, seat: _Seat, question: Question[A], key: Key) -> tuple[Answer[A], bool]:
        try:
            if seat.judge.members:
                # It takes no place at the gate: its members do, and would wait for it.
                answer = await seat.judge.answer_through(question, NumberedFrom(key.number, self.through))
                cached = answer.cached
            else:
                answer, cached = await self._answer(seat, question, key)
            self._recent[key] = answer
            if len(self._recent) > REMEMBERED:
                self._recent.popitem(last=False)
            return answer, cached
        finally:
            self._flights.pop(key, None)

    async def _answer(self, seat: _Seat, question: Question[A], key: Key) -> tuple[Answer[A], bool]:
        if seat.ledger is None or self._fresh:
            return await self._ask(seat, question, key)
        found = await seat.ledger.answer_or_claim(*key)
        if isinstance(found, StoredAnswer) and (read := read_stored(question, found)) is not None:
            self._proved.add(key.judge)
            if self._budget is not None:
                self._budget.cached(found)
            return read, True
        try:
            return await self._ask(seat, question, key)
        finally:
            seat.ledger.release(*key)

    async def _ask(self, seat: _Seat, question: Question[A], key: Key) -> tuple[Answer[A], bool]:
        # The place is kept until the answer is durable: what a kill can lose is what is under way, and no more.
        async with self._gate:
            if seat.ledger is not None:
                seat.ledger.check()
            answer = await seat.caller.call(question, key.number)
            await self._keep(seat, question, key, answer)
        return answer, False

    async def _keep(self, seat: _Seat, question: Question[Any], key: Key, answer: Answer[Any]) -> None:
        if seat.ledger is None or answer.reply is None:
            return
        await seat.ledger.keep_answer(
            StoredAnswer(
                question=key.question,
                judge=key.judge,
                number=key.number,
                kind=question.kind,
                reply=answer.reply,
                usage=answer.usage,
                cost=answer.cost,
                seconds=answer.seconds,
                confidence=answer.confidence,
                alternatives=answer.alternatives,
            )
        )


class _Seat:
    """One judge in a run: who it is, how it is called, and where its answers are kept, if they are worth it."""

    def __init__(self, judge: Judge, identity: str, ledger: AsyncLedger | None, caller: Caller) -> None:
        self.judge = judge
        self.identity = identity
        self.caller = caller
        self.ledger = ledger if judge.costly else None


def _noted(flight: asyncio.Task[Any]) -> None:
    # All who waited for it may have been stopped before it failed; nobody is left to whom its error is news.
    if not flight.cancelled():
        flight.exception()


async def _joined(flight: asyncio.Task[tuple[Answer[Any], bool]]) -> tuple[Answer[Any], bool]:
    """What another's question came to; its error without what it took, which is the other's."""
    try:
        return (await asyncio.shield(flight))[0], True
    except JudgeError as error:
        told = copy.copy(error)
        told.usage, told.cost, told.seconds = NO_USAGE, 0.0, 0.0
        told.members = tuple(map(cached_call, error.members))
        raise told from None


def read_stored(question: Question[A], stored: StoredAnswer) -> Answer[A] | None:
    """The stored reply as an answer; None when it no longer reads as one, so that it is asked again."""
    try:
        value = question.parse_with_probabilities(stored.reply, stored.alternatives)
    except EvalstoneError:
        return None
    return Answer(
        value=value,
        judge=stored.judge,
        reply=stored.reply,
        confidence=stored.confidence,
        alternatives=stored.alternatives,
    )


class Transcript:
    """The `ask` that one scorer gets for one sample; it notes every step."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self.steps: list[JudgeCall] = []
        self.ended: RunAborted | None = None

    @property
    def room(self) -> ContextLimits:
        """What one question to the run's judge may hold."""
        return self._asker.room

    async def __call__(self, question: Question[A]) -> A:
        try:
            answer, cached = await self._asker.put(question)
        except JudgeError as error:
            self.steps.append(failed_call(question, error, self._asker.identity))
            raise
        except RunAborted as error:
            self.ended = error
            raise
        self.steps.append(judge_call(question, answer.as_cached() if cached else answer))
        return answer.value
