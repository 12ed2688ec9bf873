"""What a run would ask and cost, worked out without asking.

The scorers run for real; a stand-in answers. Where the embedded judge can answer a question its answer is taken, else
an example of typical length. Tokens are estimated from bytes, four to a token.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evalstone.engine.limits import model_cost, size_of
from evalstone.engine.plan import Plan
from evalstone.errors import CannotAnswerError
from evalstone.judges.embedded import EmbeddedJudge
from evalstone.judges.model import ModelJudge
from evalstone.ledger.location import is_there
from evalstone.question import Question
from evalstone.types import Failed, Sample, Skipped, Usage

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
    return Estimate(plan.judge.identity, len(plan.dataset), tuple(lines), _cost(plan, _total(lines)), guesses.kinds)


def _total(lines: Iterable[ScorerEstimate]) -> Usage:
    return sum((line.usage for line in lines), Usage())


def _cost(plan: Plan, usage: Usage) -> float | None:
    judge = plan.judge
    if not judge.costly:
        return 0.0
    if not isinstance(judge, ModelJudge):
        return None
    return model_cost(judge, usage)


class _Guesses:
    """Stand-in answers, and the count of what they stand for."""

    def __init__(self, plan: Plan, book: Ledger | None) -> None:
        self.identity = plan.judge.identity
        self.costly = plan.judge.costly
        self.judge = plan.judge
        self.book = book if plan.judge.costly else None
        self.embedded = EmbeddedJudge()
        self.seen: dict[str, Any] = {}
        self.kinds: Counter[str] = Counter()

    async def run(self, scorer: Any, sample: Sample, line: ScorerEstimate) -> None:
        async def ask(question: Question[A]) -> A:
            return await self._answer(question, line)

        try:
            outcome = await scorer.run(ask, sample)
        except CannotAnswerError as error:
            outcome = Skipped(str(error))
        except Exception as error:  # noqa: BLE001 - a scorer that breaks on a stand-in is counted, and tried for real later
            outcome = Failed(str(error))
        line.skipped += isinstance(outcome, Skipped)
        line.failed += isinstance(outcome, Failed)

    async def _answer(self, question: Question[A], line: ScorerEstimate) -> A:
        key = question.fingerprint
        if key in self.seen:
            line.shared += 1
            return self.seen[key]
        stored = self.book.answers(self.identity, [key]) if self.book is not None else {}
        if stored:
            line.answered += 1
            answer = question.read_weighed(stored[key].reply, stored[key].alternatives)
        else:
            answer = await self._guess(question)
            line.calls += 1
            self.kinds[question.kind] += 1
            if self.costly:
                line.usage += size_of(question)
        self.seen[key] = answer
        return answer

    async def _guess(self, question: Question[A]) -> A:
        if not self.costly:
            return (await self.judge.answer(question)).value
        try:
            return (await self.embedded.answer(question)).value
        except CannotAnswerError:
            return question.read(json.dumps(question.example()))
