"""Asking through a provider's batch API: what the ledger does not hold is collected, and the outcome stays open.

A question that came back in a batch is read here, when a scorer asks it again: the question itself knows how.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from evalstone.errors import AnswerPending, EvalstoneError, JudgeError
from evalstone.judges.model import correction_messages, opening_messages, read_completion
from evalstone.judges.providers.base import ChatMessage, Completion, ModelCapabilities
from evalstone.judges.providers.batch import BatchApi
from evalstone.judges.providers.pricing import at_batch_price
from evalstone.ledger import AsyncLedger, StoredAnswer
from evalstone.ledger.batch_rows import BatchedQuestion, BatchRow, Place
from evalstone.ledger.batches import batched_questions
from evalstone.questions.base import Answer, Question
from evalstone.run.batch.admission import Admission
from evalstone.run.budget import LONGER_OUTPUT, Budget, size_of
from evalstone.run.session import Asker
from evalstone.types import NO_USAGE, JudgeCall, Record, Usage, total_cost

A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True)
class Collected:
    """A question for the next batch. known: what came of it so far. amount: what it may cost; None when that is not
    known."""

    question: Question[Any]
    known: BatchedQuestion
    amount: float | None


class BatchAsker(Asker):
    """A run's way to its judge through batches.

    A question that has no answer yet raises AnswerPending: it is in an open batch, or is now in `collected`, or does not
    fit into the budget, of which `short` tells then. budget: US dollars for all batches of the run.
    """

    def __init__(self, api: BatchApi, book: AsyncLedger, *, budget: float | None = None) -> None:
        super().__init__(api.judge, ledger=book)
        if budget is not None:
            Budget(budget, api.judge)  # raises ConfigError for a limit or a judge that cannot be reckoned with
        self.api, self.book, self.budget = api, book, budget
        self.collected: dict[str, Collected] = {}
        self.short = ""
        self._full = False
        self._places: dict[str, Place] = {}
        self._sent: dict[str, ModelCapabilities] = {}
        self._promised = 0.0
        self._took: dict[str, tuple[Usage, float | None]] = {}
        self._owed: set[str] = set()
        self._charged: set[str] = set()
        self._under_way: set[asyncio.Task[Any]] = set()
        self._wanted: set[str] = set()
        self._looking: asyncio.Task[dict[str, BatchedQuestion]] | None = None

    def know(self, places: dict[str, Place], batches: Iterable[BatchRow], run: str) -> None:
        """Take note of where the questions are, and of all batches of the judge, before the scorers ask again."""
        rows = list(batches)
        self._places, self.short, self._full = places, "", False
        self._sent = {row.id: _refusals(row) for row in rows}
        self._promised = sum(row.cost or 0.0 for row in rows if row.run == run)
        own = {row.id for row in rows if row.run == run}
        self._owed = {name for name, place in places.items() if place.batch in own} - self._charged

    async def known(self, question: Question[Any]) -> tuple[Any, float]:
        """The answer to a question, None where there is none yet, and what it would still cost."""
        name = question.fingerprint
        stored = await self.book.answer(name, self.identity)
        if stored is not None and (answer := _read(question, stored)) is not None:
            return answer.value, 0.0
        place = self._places.get(name)
        return None, 0.0 if place is not None else self._amount(question) or 0.0

    def admission(self) -> Admission | None:
        """Who decides which samples are begun; None without a budget."""
        return None if self.budget is None else Admission(self.api.judge, self.budget - self._promised, self.known)

    def spend(self) -> None:
        """The budget does not reach for a sample."""
        if self.budget is not None:
            self.short = f"the budget of ${self.budget:g} is spent"

    def charged(self, records: Iterable[Record]) -> None:
        """Take note of records that stand: what their steps took is told there, and in no other record."""
        for record in records:
            self._charged.update(step.fingerprint for step in record.steps if not step.cached)

    def charge(self, record: Record) -> Record:
        """The record, with what its answers took, where it is the first record of the run to use them."""
        steps = tuple(self._charged_step(step) for step in record.steps)
        self.charged([record])
        return replace(record, steps=steps)

    def _charged_step(self, step: JudgeCall) -> JudgeCall:
        if not step.cached or step.fingerprint not in self._owed:
            return step
        self._owed.discard(step.fingerprint)
        self._charged.add(step.fingerprint)
        usage, cost = self._took.get(step.fingerprint, (NO_USAGE, 0.0))
        return replace(step, usage=usage, cost=cost, cached=False)

    async def put(self, question: Question[A]) -> tuple[Answer[A], bool]:
        """The answer; what it took is told by the record that it is charged to. Raises AnswerPending."""
        # Of the questions that a scorer asks at once all are collected, though the first to be pending ends its work.
        return await asyncio.shield(self._started(self._answered(question))), True

    def _started(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._noted)
        return task

    def _noted(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # whoever wanted to know it may have been stopped before

    async def settled(self) -> None:
        """Wait until nothing that a scorer asked is under way."""
        while self._under_way:
            await asyncio.wait(self._under_way)
            await asyncio.sleep(0)  # whoever was answered may ask the next question now

    async def close(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _answered(self, question: Question[A]) -> Answer[A]:
        name = question.fingerprint
        stored = await self.book.answer(name, self.identity)
        if stored is not None and (answer := _read(question, stored)) is not None:
            self._took[name] = stored.usage, stored.cost
            return answer
        place = self._places.get(name)
        if place is not None and place.waiting:
            raise AnswerPending(f"{question.kind} waits for batch {place.batch}")
        known = place and await self._batched(name)
        if known is None or known.body is None:
            raise self._collect(question, known or BatchedQuestion(question=name, judge=self.identity))
        return await self._received(question, known, json.loads(known.body))

    async def _batched(self, name: str) -> BatchedQuestion | None:
        """What is known of a batched question; those that are looked up at the same time are one look-up."""
        self._wanted.add(name)
        if self._looking is None:
            self._looking = self._started(self._look_up())
        return (await asyncio.shield(self._looking)).get(name)

    async def _look_up(self) -> dict[str, BatchedQuestion]:
        await asyncio.sleep(0)  # others of this turn of the loop may want theirs as well
        wanted, self._wanted, self._looking = self._wanted, set[str](), None
        return await self.book.work(lambda ledger: batched_questions(ledger, wanted, self.identity))

    async def _received(self, question: Question[A], known: BatchedQuestion, told: dict[str, Any]) -> Answer[A]:
        """The answer that came in a batch. Raises AnswerPending when it is to be asked again, else what is wrong."""
        reply: Completion | None = None
        try:
            reply = self.api.reply(question, told)
            value = read_completion(question, reply)
        except JudgeError as error:
            if reply is not None:
                error.reply, error.usage, error.cost = reply.text, reply.usage, reply.cost
            raise self._tried(question, known, told, error) from None
        answer = Answer(
            value=value,
            judge=self.identity,
            reply=reply.text,
            usage=known.usage + reply.usage,
            cost=total_cost([known.cost, reply.cost]),
            confidence=reply.confidence,
            alternatives=reply.alternatives,
        )
        await self._keep_answer(question, answer)
        self._took[question.fingerprint] = answer.usage, answer.cost
        return answer

    async def _keep_answer(self, question: Question[Any], answer: Answer[Any]) -> None:
        await self.book.keep_answer(
            StoredAnswer(
                question=question.fingerprint,
                judge=self.identity,
                kind=question.kind,
                reply=answer.reply or "",
                usage=answer.usage,
                cost=answer.cost,
                seconds=answer.seconds,
                confidence=answer.confidence,
                alternatives=answer.alternatives,
            )
        )

    def _tried(
        self, question: Question[Any], known: BatchedQuestion, told: dict[str, Any], error: JudgeError
    ) -> EvalstoneError:
        """What to raise for a result that is no answer: AnswerPending where the question is put once more."""
        learned = told["status"] != 200 and self.api.learn(question, self._payload(question, known), told)
        tried = replace(
            known,
            attempts=known.attempts + (not learned),
            usage=known.usage + (error.usage or NO_USAGE),
            cost=total_cost([known.cost, error.cost]),
        )
        if error.reply:
            tried = replace(tried, reply=error.reply, error=str(error))
        if learned or (self.api.may_pass(told) and tried.attempts <= self.api.judge.retries):
            return self._collect(question, tried)
        # Told once; another scorer that asks the same has the same error and paid nothing for it.
        first = question.fingerprint not in self._charged
        self._charged.add(question.fingerprint)
        error.usage, error.cost = (tried.usage, tried.cost) if first else (NO_USAGE, 0.0)
        return error

    def _collect(self, question: Question[Any], known: BatchedQuestion) -> AnswerPending:
        """Collect a question where the budget allows it; the error that leaves the outcome open."""
        if question.fingerprint not in self.collected and not self._full:
            amount = self._amount(question)
            if self.budget is not None and self._promised + (amount or 0.0) > self.budget:
                self._full = True
                self.spend()
            else:
                self._promised += amount or 0.0
                self.collected[question.fingerprint] = Collected(question, known, amount)
        return AnswerPending(self.short or f"{question.kind} goes into the next batch")

    def _amount(self, question: Question[Any]) -> float | None:
        size = size_of(question)
        return at_batch_price(self.api.judge.price(Usage(size.input, size.output * LONGER_OUTPUT)))

    def turns(self, question: Question[Any], known: BatchedQuestion) -> list[ChatMessage]:
        """How a question is put to the model, after what came of it so far."""
        opening = opening_messages(question, self.api.judge.instructions)
        return correction_messages(opening, question, known.reply, known.error or "") if known.reply else opening

    def _payload(self, question: Question[Any], known: BatchedQuestion) -> dict[str, Any]:
        """The request as it was sent last."""
        return self.api.payload(question, self.turns(question, known), self._sent.get(known.batch, ModelCapabilities()))


def _refusals(row: BatchRow) -> ModelCapabilities:
    made = ModelCapabilities()
    made.update(row.about)
    return made


def _read(question: Question[A], stored: StoredAnswer) -> Answer[A] | None:
    """The stored reply as an answer; None when it no longer reads as one."""
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
