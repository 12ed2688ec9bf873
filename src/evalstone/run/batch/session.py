"""The session of batch runs: questions without an answer are collected, and their outcomes stay open.

Replies of a finished batch are parsed when the scorer asks the question again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalstone._core.observe import observer
from evalstone._core.parsing import MAX_REPLY
from evalstone.errors import AnswerPending, EvalstoneError, JudgeDeclined, JudgeError, PromptTooLong, ReplyError
from evalstone.judges.corrections import correction, names_items, read_completion
from evalstone.judges.model import ModelJudge, opening_messages, with_probabilities
from evalstone.ledger import AsyncLedger, StoredAnswer
from evalstone.ledger.base import BatchedQuestion, BatchRow, RunRow
from evalstone.ledger.batches import batched_questions
from evalstone.models.batch.base import BatchApi
from evalstone.models.forms import ModelCapabilities
from evalstone.models.provider import ChatMessage, Completion, RequestSettings
from evalstone.models.replies import as_object, parsed_json
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.run.budget import call_price, unpriced
from evalstone.run.dry_run import stand_in
from evalstone.run.scoring import score_sample
from evalstone.run.session import QuestionCall, Session, read_stored
from evalstone.scorers import Scorer
from evalstone.types import NO_USAGE, JudgeCall, Record, Sample, Usage, total_cost


@dataclass(frozen=True)
class Collected:
    """A question for the next batch."""

    question: Question[Any]
    known: BatchedQuestion
    """Its earlier attempts."""
    amount: float | None
    """The estimated cost in US dollars; None if the price is unknown."""
    unreadable: bool
    """Whether it has a stored answer, which no longer parses."""


class BatchSession(Session):
    """A session that gets its answers from a provider's batches.

    A question without an answer raises AnswerPending: it is in an open batch, has been added to `collected`, or exceeds
    the budget, which sets `short`.

    Args:
        judge: The judge.
        api: The batch API of the judge's provider.
        ledger: Stores batches and answers.
        budget: US dollars for all batches of the run.
    """

    def __init__(self, judge: ModelJudge, api: BatchApi, ledger: AsyncLedger, *, budget: float | None = None) -> None:
        super().__init__(judge, ledger=ledger)
        self.asked, self.api, self.store, self.limit = judge, api, ledger, budget
        self.collected: dict[str, Collected] = {}
        self.short = ""
        self._full = False
        self._places: dict[str, tuple[str, bool]] = {}
        self._sent: dict[str, ModelCapabilities] = {}
        self._promised = self._direct = 0.0
        self._collected_calls: dict[str, tuple[Usage, float | None]] = {}
        self._owed: set[str] = set()
        self._used: set[str] = set()
        """The questions in finished records, and those that failed."""
        self._unreadable: set[str] = set()
        self._requested: set[str] = set()
        self._look_up: asyncio.Task[dict[str, BatchedQuestion]] | None = None

    def begin(self, batches: Iterable[BatchRow], run: RunRow) -> None:
        """Note what the run paid for direct calls before it used batches."""
        of_batches = (row.cost or 0.0 for row in batches if row.run == run.id and row.collected is not None)
        self._direct = max(0.0, run.cost - sum(of_batches))

    def update(self, places: dict[str, tuple[str, bool]], batches: Iterable[BatchRow], run: RunRow) -> None:
        """Start a round with the batch of each question, all batches of the judge, and what the run has paid."""
        rows = list(batches)
        self._places, self.short, self._full = places, "", False
        self._sent = {row.id: _capabilities(row) for row in rows}
        own = {row.id for row in rows if row.run == run.id}
        self._promised = self._direct + sum(row.cost or 0.0 for row in rows if row.id in own)
        now, before = run.paid, self.calls.spending.before
        self.calls.spending.this_call = None if now is None or before is None else now - before
        self._owed = {name for name, (batch, _) in places.items() if batch in own} - self._used

    @property
    def left(self) -> float:
        """The US dollars of the budget that are left for new batches."""
        return math.inf if self.limit is None else self.limit - self._promised

    async def lookup(self, question: Question[Any]) -> tuple[Any, float]:
        """The answer to a question, or None, and the cost of asking it."""
        key = question.fingerprint
        stored = await self.store.answer(key, self.identity)
        if stored is not None and (answer := read_stored(question, stored, self.judge)) is not None:
            return answer.value, 0.0
        return None, 0.0 if key in self._places else self._amount(question) or 0.0

    def spend(self) -> None:
        """Note that the budget is spent."""
        self.short = f"the budget of ${self.limit:g} is spent"

    def count(self, records: Iterable[Record]) -> None:
        """Note the calls of finished records. No other record includes their cost, or counts them as asked."""
        for record in records:
            self._used.update(call.fingerprint for call in record.calls)

    def charge(self, record: Record) -> Record:
        """The record with the cost of its answers, unless an earlier record of the run includes it: then they are
        shared."""
        charged = replace(record, calls=tuple(map(self._charge_call, record.calls)))
        for call in charged.calls:
            if call.source != "asked":
                observer().reused_call(call)
        return charged

    def reused(self, call: JudgeCall) -> None:
        """Report nothing: what was asked in a batch is known when the record is charged."""

    def _charge_call(self, call: JudgeCall) -> JudgeCall:
        name, used = call.fingerprint, call.fingerprint in self._used
        self._used.add(name)
        if call.answer is None or call.source == "asked":
            return call
        if name in self._owed:
            self._owed.discard(name)
            usage, cost = self._collected_calls.get(name, (NO_USAGE, 0.0))
            return replace(call, usage=usage, cost=cost, source="asked")
        # In memory, answers also outlive records that wait for a batch.
        return replace(call, source="shared" if used else "cached")

    async def close(self) -> None:
        if self._look_up is not None:
            self._look_up.cancel()
        await super().close()

    async def _obtain(self, call: QuestionCall) -> JudgeAnswer[Any]:
        # The first pending question ends the scorer, but the questions that it asked concurrently are collected, too.
        call.sent = True
        question, key = call.question, call.key.question
        stored = await self.store.answer(key, self.identity)
        if stored is not None and (answer := read_stored(question, stored, self.judge)) is not None:
            self._collected_calls[key] = stored.usage, stored.cost
            return answer
        if stored is not None:
            self._unreadable.add(key)
        batch, waiting = self._places.get(key, ("", False))
        if waiting:
            raise AnswerPending(f"{question.kind} waits for batch {batch}")
        known = await self._batched(key) if batch else None
        if known is None or known.body is None:
            raise self._collect(question, known or BatchedQuestion(question=key, judge=self.identity))
        try:
            body = as_object(parsed_json(known.body.encode()))
        except ValueError as error:
            body = {"status": 0, "error": str(error)}
        return await self._read(call, known, body)

    async def _batched(self, key: str) -> BatchedQuestion | None:
        """The state of a batched question. Concurrent lookups share a query."""
        self._requested.add(key)
        if self._look_up is None:
            self._look_up = asyncio.get_running_loop().create_task(self._query())
        return (await asyncio.shield(self._look_up)).get(key)

    async def _query(self) -> dict[str, BatchedQuestion]:
        await asyncio.sleep(0)  # so that lookups of the same loop iteration are batched
        questions, self._requested, self._look_up = self._requested, set[str](), None
        return await self.store.work(batched_questions, self.store.store, questions, self.identity)

    async def _read(self, call: QuestionCall, known: BatchedQuestion, body: dict[str, Any]) -> JudgeAnswer[Any]:
        """The answer in a batch result. Raises AnswerPending if the question is retried, otherwise the error."""
        question, retries = call.question, self.asked.retries
        reply: Completion | None = None
        try:
            messages, settings = self.request_of(question, known)
            reply = with_probabilities(question, self.api.reply(messages, body))
            drop = known.attempts >= retries or names_items(question, known.reply or "")
            value, dropped = read_completion(question, reply, settings, drop)
            if (doubt := question.doubt(reply.text)) and known.error != doubt and known.attempts < retries:
                raise ReplyError(doubt)
        except JudgeError as error:
            # The next time, it would be the same. The refusal of a prompt says nothing about settings.
            final = reply is None and isinstance(error, PromptTooLong | JudgeDeclined)
            if reply is not None:
                error.reply, error.usage, error.cost = reply.text[:MAX_REPLY], reply.usage, reply.cost
            raise self._retry(question, known, body, error, final=final) from None
        sent = self._sent_with(known)
        form = question.reply_form
        self.api.capabilities.accept(form, sent.level(form))
        answer = JudgeAnswer(
            value=value,
            judge=self.identity,
            reply=reply.text,
            usage=known.usage + reply.usage,
            cost=total_cost([known.cost, reply.cost]),
            probability=reply.probability,
            alternatives=reply.alternatives,
            refused_settings=self.asked.reported(question, sent.refused_of(self.asked.settings_for(question))),
            detail=dropped,
        )
        await self.store.keep_answer(StoredAnswer.of(call.key, question.kind, answer, self.calls.spending.run))
        observer().batched_call(self.asked, answer.usage, answer.cost)
        self._collected_calls[call.key.question] = answer.usage, answer.cost
        return replace(answer, usage=NO_USAGE, cost=0.0, source="cached")

    def _retry(
        self, question: Question[Any], known: BatchedQuestion, body: dict[str, Any], error: JudgeError, *, final: bool
    ) -> EvalstoneError:
        """The error of an invalid result; AnswerPending if the question is retried. final: it isn't retried."""
        sent = self.api.payload(question.reply_form, *self.request_of(question, known), self._sent_with(known))
        learned = not final and body["status"] != 200 and self.api.learn(question.reply_form, sent, body)
        tried = replace(
            known,
            attempts=known.attempts + (not learned),
            usage=known.usage + (error.usage or NO_USAGE),
            cost=total_cost([known.cost, error.cost]),
        )
        if error.reply:
            tried = replace(tried, reply=error.reply, error=str(error))
        if learned or (not final and self.api.may_pass(body) and tried.attempts <= self.asked.retries):
            return self._collect(question, tried)
        # Only one record includes the cost. Other scorers with the same question get the error without it.
        first = question.fingerprint not in self._used
        if first:
            observer().batched_call(self.asked, tried.usage, tried.cost)
        self._used.add(question.fingerprint)
        error.usage, error.cost = (tried.usage, tried.cost) if first else (NO_USAGE, 0.0)
        error.source = "asked" if first else "shared"
        return error

    def _collect(self, question: Question[Any], known: BatchedQuestion) -> AnswerPending:
        """Collect a question if the budget allows it. Returns the error that leaves the outcome open."""
        key = question.fingerprint
        if key not in self.collected and not self._full:
            amount = self._amount(question)
            if self.limit is not None and amount is None:
                raise unpriced(self.asked)
            if self.limit is not None and self._promised + (amount or 0.0) > self.limit:
                self._full = True
                self.spend()
            else:
                self._promised += amount or 0.0
                self.collected[key] = Collected(question, known, amount, key in self._unreadable)
        return AnswerPending(self.short or f"{question.kind} goes into the next batch")

    def _amount(self, question: Question[Any]) -> float | None:
        return self.api.price(call_price(question, self.asked))

    def request_of(
        self, question: Question[Any], known: BatchedQuestion
    ) -> tuple[Sequence[ChatMessage], RequestSettings]:
        """The messages and settings of the next request for a question, considering its earlier attempts."""
        settings = self.asked.settings_for(question)
        opening = opening_messages(question, self.asked.instructions)
        if not known.reply:
            return opening, settings
        return correction(opening, settings, question, known.reply, known.error or "", known.attempts)

    def _sent_with(self, known: BatchedQuestion) -> ModelCapabilities:
        """The known limitations of the provider when the question was last sent."""
        return self._sent.get(known.batch, ModelCapabilities())


class EstimateSession(Session):
    """Estimates which samples the budget can pay for completely.

    Missing answers are replaced with stand-ins. Without this estimate, the first questions of all samples could use up
    the budget, and no sample would be complete.
    """

    def __init__(self, batches: BatchSession) -> None:
        super().__init__(batches.judge)
        self.keep_reasoning = batches.keep_reasoning
        self._batches, self._left = batches, batches.left
        self._counted: set[str] = set()

    async def affords(self, scorers: Iterable[Scorer], sample: Sample) -> bool:
        """Whether the rest of the budget covers all questions of these scorers on a sample. Deducts their cost."""
        for scorer in scorers:
            await score_sample(scorer, sample, self)
        return self._left >= 0

    async def _obtain(self, call: QuestionCall) -> JudgeAnswer[Any]:
        answer, amount = await self._batches.lookup(call.question)
        if call.key.question not in self._counted:
            self._counted.add(call.key.question)
            self._left -= amount
        value = await stand_in(call.question) if answer is None else answer
        return JudgeAnswer(value=value, judge=self.identity)


def _capabilities(row: BatchRow) -> ModelCapabilities:
    capabilities = ModelCapabilities()
    capabilities.update(row.metadata)
    return capabilities
