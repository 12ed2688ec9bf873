"""One evaluation's questions and answers: what was asked, what came back, and what it took."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from evalstone.errors import JudgeError
from evalstone.judges.base import Judge
from evalstone.questions.base import Answer, ContextLimits, Question
from evalstone.types import NO_USAGE, Usage, total_cost

A = TypeVar("A")


class Sitting:
    """Puts questions to a judge, not more at a time than `limit` lets through, and keeps the answers in order."""

    def __init__(self, judge: Judge, limit: asyncio.Semaphore) -> None:
        self.judge = judge
        self.limit = limit
        self.asked: list[Question[Any]] = []
        self.answers: dict[int, Answer[Any]] = {}

    @property
    def room(self) -> ContextLimits:
        """What one question to the judge may hold."""
        return self.judge.context_limits

    async def __call__(self, question: Question[A]) -> A:
        place = len(self.asked)
        self.asked.append(question)
        async with self.limit:
            answer = await self.judge.answer(question)
        self.answers[place] = answer
        return answer.value

    def told(self, error: JudgeError | None = None) -> dict[str, Any]:
        """What was asked and what it took, for the metadata of a response; with the error that ended it."""
        answers = [self.answers[place] for place in sorted(self.answers)]
        replies = [answer.reply for answer in answers]
        costs: list[float | None] = [answer.cost for answer in answers]
        usage = sum((answer.usage for answer in answers), Usage())
        if error is not None:
            replies.append(error.reply)
            usage += error.usage or NO_USAGE
            costs.append(error.cost)
        told: dict[str, Any] = {
            "judge": self.judge.identity,
            "prompt": self.asked[0].prompt.fingerprint if self.asked else None,
            "questions": tuple(question.fingerprint for question in self.asked),
            "replies": tuple(replies),
            "confidences": tuple(answer.confidence for answer in answers),
            "usage": usage,
            "cost": total_cost(costs),
        }
        return told if error is None else {**told, "error": str(error)}


async def together(works: Iterable[Coroutine[Any, Any, A]]) -> list[A]:
    """The results of works that run at the same time, in order. The first error ends the others and is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
