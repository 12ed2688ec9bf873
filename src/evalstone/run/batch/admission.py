"""Which samples a run through batches begins under a budget: those that it can pay for to the end.

Rounds go breadth first: without this the first questions of all samples would take the budget, and no sample would be
complete.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from evalstone.errors import JudgeDeclined
from evalstone.judges.base import Judge
from evalstone.judges.lexical import LexicalJudge
from evalstone.questions.base import Answer, Question
from evalstone.run.apply import apply
from evalstone.run.session import Asker
from evalstone.scorers import Scorer
from evalstone.types import Sample

A = TypeVar("A")

Known = Callable[[Question[Any]], Awaitable[tuple[Any, float]]]
"""What is known of a question: its answer, None where there is none yet, and what it would still cost."""


class Admission(Asker):
    """So many US dollars for the samples that are let in, one after another.

    What a sample takes is estimated as a dry run does it: its scorers run, and where an answer is not there yet the
    lexical judge stands in, or an example of usual length. known: see above. Nothing is asked.
    """

    def __init__(self, judge: Judge, left: float, known: Known) -> None:
        super().__init__(judge)
        self.left = left
        self._known = known
        self._lexical = LexicalJudge()
        self._admitted: set[str] = set()
        self._set_aside: dict[str, float] = {}

    async def admits(self, scorers: Iterable[Scorer], sample: Sample) -> bool:
        """Whether all questions of these scorers on a sample still fit; what they take is then set aside."""
        self._set_aside = {}
        for scorer in scorers:
            await apply(scorer, sample, self)
        amount = sum(self._set_aside.values())
        if amount > self.left:
            return False
        self.left -= amount
        self._admitted.update(self._set_aside)
        return True

    async def put(self, question: Question[A]) -> tuple[Answer[A], bool]:
        """The answer that is there, or one that stands in for it."""
        answer, amount = await self._known(question)
        if question.fingerprint not in self._admitted:
            self._set_aside[question.fingerprint] = amount
        value = await self._guess(question) if answer is None else answer
        return Answer(value=value, judge=self.identity), True

    async def _guess(self, question: Question[A]) -> A:
        try:
            return (await self._lexical.answer(question)).value
        except JudgeDeclined:
            return question.parse(json.dumps(question.example()))
