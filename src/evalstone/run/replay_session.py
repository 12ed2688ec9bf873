"""A session that asks nobody: it answers from the judge calls of a record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from evalstone.errors import JudgeError, ReplyError
from evalstone.judges.base import Judge
from evalstone.judges.scripted import ReplayJudge
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.run.session import QuestionCall, Session
from evalstone.types import Asking, JudgeCall

Reread: TypeAlias = Callable[[Question[Any], JudgeAnswer[Any]], JudgeAnswer[Any]]


class ReplaySession(Session):
    """A session that answers from the calls of a record, and keeps the questions.

    Args:
        calls: The calls of the record.
        keeps_reasoning: Whether the reasoning in front of the output was scored.
        asking: How the judges were asked.
        reread: Replaces an answer, such as by one with other probabilities.
    """

    def __init__(
        self,
        calls: Sequence[JudgeCall],
        *,
        keeps_reasoning: bool,
        asking: Asking,
        reread: Reread | None = None,
    ) -> None:
        super().__init__(ReplayJudge({}, limits_of_source=asking.limits_of(call.judge for call in calls)))
        self.keep_reasoning = keeps_reasoning
        self.questions: dict[str, Question[Any]] = {}
        """The questions that the calls answer, by fingerprint."""
        self._calls = {(call.fingerprint, call.repeat_index): call for call in calls}
        self._reread = reread

    async def _combine(self, call: QuestionCall, judge: Judge) -> JudgeAnswer[Any]:
        return await self._obtain(call)

    async def _obtain(self, call: QuestionCall) -> JudgeAnswer[Any]:
        question = call.question
        stored = self._calls.get((question.fingerprint, call.key.repeat_index))
        if stored is not None:
            self.questions[question.fingerprint] = question
        await asyncio.sleep(0)  # a failure cancels the questions beside it, which are to be seen first
        if stored is None:
            raise JudgeError("there is no answer")
        if stored.answer is None:
            raise JudgeError(str((stored.detail or {}).get("error", "there is no answer")))
        answer = JudgeAnswer(
            value=_value(question, stored),
            judge=stored.judge,
            probability=stored.probability,
            alternatives=stored.alternatives,
        )
        return answer if self._reread is None else self._reread(question, answer)


def _value(question: Question[Any], call: JudgeCall) -> Any:
    """The answer of a call: the stored data, or else what is read from the reply."""
    try:
        return question.from_jsonable(call.answer)
    except ReplyError:
        return question.parse_grounded(call.reply or "", call.alternatives)[0]
