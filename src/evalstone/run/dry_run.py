"""What a run would ask and cost, worked out without asking.

The scorers run for real; a stand-in answers. Where the lexical judge can answer a question its answer is taken, else
an example of typical length. Tokens are estimated from bytes, four to a token.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evalstone.errors import JudgeDeclined
from evalstone.judges.base import AskJudge, Judge, leaves
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.logging import LoggingJudge
from evalstone.ledger.location import is_there
from evalstone.ledger.rows import Key
from evalstone.questions.base import Answer, Question
from evalstone.run.budget import size_of
from evalstone.run.plan import Plan
from evalstone.run.session import read_stored
from evalstone.types import Failed, Sample, Skipped, Usage, total_cost

if TYPE_CHECKING:
    from evalstone.ledger.store import Ledger

A = TypeVar("A")

SECONDS_A_CALL = 2.0


@dataclass
class ScorerEstimate:
    """What one scorer would ask: calls, those of them that the ledger or another scorer already answers, tokens."""

    name: str
    calls: int = 0
    answered: int = 0
    shared: int = 0
    skipped: int = 0
    failed: int = 0
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Estimate:
    """What a run would ask. cost: US dollars; None when the model's price is unknown, 0 when the judge is free."""

    judge: str
    samples: int
    scorers: tuple[ScorerEstimate, ...]
    cost: float | None
    kinds: Mapping[str, int]

    def seconds(self, concurrency: int) -> float:
        """About how long the calls would take, at SECONDS_A_CALL each and so many at once."""
        return self.calls * SECONDS_A_CALL / concurrency

    @property
    def calls(self) -> int:
        """Judge calls that would be made."""
        return sum(scorer.calls for scorer in self.scorers)

    @property
    def usage(self) -> Usage:
        """Tokens that the calls would take."""
        return _total(self.scorers)


async def estimate(plan: Plan, *, ledger: str | Path | None = None) -> Estimate:
    """Estimate a plan. The ledger is only read, and only where it exists."""
    plan.check(asking=False)
    from evalstone.ledger.store import Ledger  # noqa: PLC0415 - SQLAlchemy, which only a run with a ledger needs

    book = Ledger(ledger) if ledger is not None and is_there(ledger) else None
    try:
        guesses = _Guesses(plan, book)
        lines: list[ScorerEstimate] = [ScorerEstimate(scorer.name) for scorer in plan.scorers]
        for sample in plan.dataset:
            for scorer, line in zip(plan.scorers, lines, strict=True):
                await guesses.run(scorer, sample, line)
            await asyncio.sleep(0)
    finally:
        if book is not None:
            book.close()
    return Estimate(plan.judge.identity, len(plan.dataset), tuple(lines), guesses.cost(), guesses.kinds)


def _total(lines: Iterable[ScorerEstimate]) -> Usage:
    return sum((line.usage for line in lines), Usage())


class _Guesses:
    """Stand-in answers, and the count of what they stand for.

    A judge of judges works for real over members that are stood in for: a panel asks each of them, and a cascade asks
    the second wherever the first one's confidence is not known beforehand, so that its figure is the most it can be.
    """

    def __init__(self, plan: Plan, book: Ledger | None) -> None:
        self.judge = plan.judge
        self.book = book
        self.lexical = LexicalJudge()
        self.seen: dict[Key, Any] = {}
        self.kinds: Counter[str] = Counter()
        self.spent: float | None = 0.0

    def cost(self) -> float | None:
        """US dollars for all that would be asked; None when a price is unknown."""
        prices = [judge.price(Usage(1, 1)) for judge in leaves(self.judge) if judge.cacheable]
        return None if None in prices else self.spent

    async def run(self, scorer: Any, sample: Sample, line: ScorerEstimate) -> None:
        try:
            outcome = await scorer.run(_Asking(self, line), sample)
        except JudgeDeclined as error:
            outcome = Skipped(str(error))
        except Exception as error:  # noqa: BLE001 - a scorer that breaks on a stand-in is counted, and tried for real later
            outcome = Failed(str(error))
        line.skipped += isinstance(outcome, Skipped)
        line.failed += isinstance(outcome, Failed)

    async def answer(self, question: Question[A], line: ScorerEstimate) -> A:
        """A stand-in answer, counted to a scorer's line."""
        if (key := Key(question.fingerprint, self.judge.identity)) in self.seen:
            line.shared += 1
            return self.seen[key].value

        return (await self._put(self.judge, question, 0, line)).value

    async def _put(self, judge: Judge, question: Question[Any], number: int, line: ScorerEstimate) -> Answer[Any]:
        key = Key(question.fingerprint, judge.identity, number)
        if key not in self.seen:
            self.seen[key] = await self._new(judge, question, number, line)
        return self.seen[key]

    async def _new(self, judge: Judge, question: Question[Any], number: int, line: ScorerEstimate) -> Answer[Any]:
        while isinstance(judge, LoggingJudge):
            judge = judge.judge  # what is only guessed is not logged
        if judge.members:

            async def put(member: Judge, question: Question[A], number: int = 0) -> Answer[A]:
                return await self._put(member, question, number, line)

            answer = await judge.combine(question, AskJudge(put, number))
            # Stand-ins always agree, which says nothing of how sure their judges will be.
            return replace(answer, confidence=None, detail=None) if judge.cacheable else answer
        if judge.cacheable and (stored := self._stored(judge, question, number)) is not None:
            line.answered += 1
            return stored
        if judge.cacheable or not self.judge.cacheable:
            line.calls += 1
            self.kinds[question.kind] += 1
        if not judge.cacheable:
            return await judge.answer(question)
        size = size_of(question)
        line.usage += size
        # Each by itself: some prices rise with the length of a call.
        self.spent = total_cost((self.spent, judge.price(size)))
        return Answer(value=await self._guess(question), judge=judge.identity)

    def _stored(self, judge: Judge, question: Question[A], number: int) -> Answer[A] | None:
        if self.book is None:
            return None
        found = self.book.answers(judge.identity, [question.fingerprint], number=number).get(question.fingerprint)
        return None if found is None else read_stored(question, found)

    async def _guess(self, question: Question[A]) -> A:
        try:
            return (await self.lexical.answer(question)).value
        except JudgeDeclined:
            return question.read(json.dumps(question.example()))


class _Asking:
    """The `ask` of one scorer in a dry run."""

    def __init__(self, guesses: _Guesses, line: ScorerEstimate) -> None:
        self._guesses, self._line = guesses, line
        self.room = guesses.judge.context_limits

    async def __call__(self, question: Question[A]) -> A:
        return await self._guesses.answer(question, self._line)
