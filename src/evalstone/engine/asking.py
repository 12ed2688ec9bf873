"""Putting a run's questions to its judge: once each, at most so many at a time, durable before they count."""

from __future__ import annotations

import asyncio
import copy
from collections import OrderedDict
from typing import Any, TypeVar

from evalstone.engine.calling import Caller
from evalstone.engine.limits import Budget
from evalstone.errors import EvalstoneError, JudgeError
from evalstone.judges.base import Judge
from evalstone.ledger import AsyncLedger, StoredAnswer
from evalstone.plain import plain
from evalstone.question import Answer, Question
from evalstone.types import NO_USAGE, Step

A = TypeVar("A")

REMEMBERED = 4096


class Asker:
    """One run's way to its judge.

    Equal questions that are asked at the same time are one call; a recent answer is given again; with a ledger, so is
    every answer that this judge ever gave there, unless `fresh`. concurrency: calls under way at once, at most.
    budget: what the calls may cost.
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
        self._caller = Caller(judge, budget)
        self.identity = judge.identity
        self._ledger = ledger if judge.costly else None
        self._fresh = fresh
        self._gate = asyncio.Semaphore(concurrency)
        self._flights: dict[str, asyncio.Task[tuple[Answer[Any], bool]]] = {}
        self._recent: OrderedDict[str, Answer[Any]] = OrderedDict()

    async def put(self, question: Question[A]) -> tuple[Answer[A], bool]:
        """The answer, and whether it cost nothing because it was there already or another asked at the same time."""
        key = question.fingerprint
        if (known := self._recent.get(key)) is not None:
            self._recent.move_to_end(key)
            return known, True
        flight = self._flights.get(key)
        if flight is not None:
            return await _joined(flight)
        flight = asyncio.get_running_loop().create_task(self._fly(question))
        flight.add_done_callback(_noted)
        self._flights[key] = flight
        return await asyncio.shield(flight)

    async def close(self) -> None:
        """Give up what is under way."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    async def _fly(self, question: Question[A]) -> tuple[Answer[A], bool]:
        try:
            answer, reused = await self._answer(question)
            self._recent[question.fingerprint] = answer
            if len(self._recent) > REMEMBERED:
                self._recent.popitem(last=False)
            return answer, reused
        finally:
            del self._flights[question.fingerprint]

    async def _answer(self, question: Question[A]) -> tuple[Answer[A], bool]:
        if self._ledger is None or self._fresh:
            return await self._ask(question)
        found = await self._ledger.answer_or_claim(question.fingerprint, self.identity)
        if isinstance(found, StoredAnswer) and (read := _read(question, found)) is not None:
            return read, True
        try:
            return await self._ask(question)
        finally:
            self._ledger.release(question.fingerprint, self.identity)

    async def _ask(self, question: Question[A]) -> tuple[Answer[A], bool]:
        # The place is kept until the answer is durable: what a kill can lose is what is under way, and no more.
        async with self._gate:
            if self._ledger is not None:
                self._ledger.check()
            answer = await self._caller.call(question)
            await self._keep(question, answer)
        return answer, False

    async def _keep(self, question: Question[Any], answer: Answer[Any]) -> None:
        if self._ledger is None or answer.reply is None:
            return
        await self._ledger.keep_answer(
            StoredAnswer(
                question=question.fingerprint,
                judge=self.identity,
                kind=question.kind,
                reply=answer.reply,
                usage=answer.usage,
                cost=answer.cost,
                seconds=answer.seconds,
                confidence=answer.confidence,
                alternatives=answer.alternatives,
            )
        )


def _noted(flight: asyncio.Task[Any]) -> None:
    # All who waited for it may have been stopped before it failed; nobody is left to whom its error is news.
    if not flight.cancelled():
        flight.exception()


async def _joined(flight: asyncio.Task[tuple[Answer[Any], bool]]) -> tuple[Answer[Any], bool]:
    """What another's question came to; its error without what it took, which is the other's."""
    try:
        return (await asyncio.shield(flight))[0], True
    except JudgeError as error:
        unpaid = copy.copy(error)
        unpaid.usage, unpaid.cost, unpaid.seconds = NO_USAGE, 0.0, 0.0
        raise unpaid from None


def _read(question: Question[A], stored: StoredAnswer) -> Answer[A] | None:
    """The stored reply as an answer; None when it no longer reads as one, so that it is asked again."""
    try:
        value = question.read_weighed(stored.reply, stored.alternatives)
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
        self.steps: list[Step] = []

    async def __call__(self, question: Question[A]) -> A:
        try:
            answer, reused = await self._asker.put(question)
        except JudgeError as error:
            self.steps.append(_failed(question, error, self._asker.identity))
            raise
        self.steps.append(
            Step(
                question=question.kind,
                fingerprint=question.fingerprint,
                judge=answer.judge,
                answer=plain(answer.value),
                usage=NO_USAGE if reused else answer.usage,
                cost=0.0 if reused else answer.cost,
                seconds=0.0 if reused else answer.seconds,
                confidence=answer.confidence,
                reused=reused,
                reply=answer.reply,
                alternatives=answer.alternatives,
            )
        )
        return answer.value


def _failed(question: Question[Any], error: JudgeError, judge: str) -> Step:
    return Step(
        question=question.kind,
        fingerprint=question.fingerprint,
        judge=judge,
        answer=None,
        usage=error.usage or NO_USAGE,
        cost=error.cost,
        seconds=error.seconds,
        reply=error.reply,
    )
