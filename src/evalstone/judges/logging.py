"""A judge that logs every call of another judge. It has the identity of that judge and gives its answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from evalstone._core.declarations import check_settings
from evalstone._core.display import quoted
from evalstone._core.file_format import JUDGE_CALL_FORMAT
from evalstone._core.files import cannot_write, private
from evalstone._core.json import to_jsonable
from evalstone._core.redaction import redacted
from evalstone.errors import JudgeError
from evalstone.judges.base import Judge, JudgeSpec, MemberCalls, register_secrets
from evalstone.judges.parse import parse_member
from evalstone.questions.answers import JudgeAnswer, failed_call, judge_call
from evalstone.questions.base import Question, QuestionSpec
from evalstone.types import JudgeCall, Note, Sample, Usage
from evalstone.types.context_limits import ContextLimits

A = TypeVar("A")


class LoggingJudge(Judge, init=False):
    """Appends every call of a judge to a JSON Lines file as it ends. Answers from the ledger are not logged.

    Each line has `time`, `judge`, its `limits`, `calls` (the call as in records.jsonl, with the raw reply) and, with
    `include_inputs`, the question's texts as `inputs`. `ReplayJudge.from_records` reads the file. The judge's secrets
    are written as `***`. Raises ConfigError or WriteError if the file can't be written.
    """

    judge: Judge
    path: str | Path = "judge.jsonl"
    include_inputs: bool = False

    def __init__(self, judge: JudgeSpec, path: str | Path = "judge.jsonl", include_inputs: bool = False) -> None:
        vars(self).update(judge=judge, path=path, include_inputs=include_inputs)
        object.__setattr__(self, "judge", parse_member("judge", judge))
        check_settings(self)
        for name in ("cacheable", "deterministic", "members", "asks_at_once", "note"):
            object.__setattr__(self, name, getattr(self.judge, name))

    @property
    def identity(self) -> str:
        return self.judge.identity

    def cautions(self, samples: Iterable[Sample]) -> tuple[Note, ...]:
        return self.judge.cautions(samples)

    def with_cautions(self) -> tuple[Judge, ...]:
        return self.judge.with_cautions()

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.judge.secrets

    @property
    def context_limits(self) -> ContextLimits:
        return self.judge.context_limits

    def read(
        self, question: Question[A], reply: str, alternatives: Mapping[str, float] | None
    ) -> tuple[A, Mapping[str, Any] | None]:
        return self.judge.read(question, reply, alternatives)

    def estimated_usage(self, question: Question[Any], size: int | None = None) -> Usage:
        return self.judge.estimated_usage(question, size)

    def check_questions(self, scorer: str, asked: Iterable[QuestionSpec]) -> None:
        self.judge.check_questions(scorer, asked)

    def check_scorers(self, signatures: Sequence[str]) -> None:
        self.judge.check_scorers(signatures)

    def price(self, usage: Usage) -> float | None:
        return self.judge.price(usage)

    def opened(self) -> AbstractAsyncContextManager[object]:
        return self.judge.opened()

    def check(self) -> None:
        self.judge.check()
        self._append("")

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        return await self._logged(question, repeat, self.judge.answer(question, repeat))

    async def combine(self, question: Question[A], ask: MemberCalls) -> JudgeAnswer[A]:
        return await self._logged(question, ask.repeat, self.judge.combine(question, ask))

    async def _logged(self, question: Question[A], repeat: int, answering: Awaitable[JudgeAnswer[A]]) -> JudgeAnswer[A]:
        try:
            answer = await answering
        except JudgeError as error:
            self._write(question, failed_call(question, error, self.identity, repeat))
            raise
        self._write(question, judge_call(question, answer, repeat))
        return answer

    def _write(self, question: Question[Any], call: JudgeCall) -> None:
        line: dict[str, Any] = {
            "format": JUDGE_CALL_FORMAT,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "judge": call.judge,
            "limits": to_jsonable(self.context_limits),
            "calls": [to_jsonable(call)],
        }
        if self.include_inputs:
            line["inputs"] = to_jsonable(question.inputs())
        register_secrets(self.judge)
        self._append(redacted(json.dumps(line)) + "\n")

    def _append(self, text: str) -> None:
        try:
            with open(self.path, "a", encoding="utf-8", newline="\n", opener=private) as file:
                file.write(text)  # one write per line, so that the lines of several processes don't mix
        except OSError as error:
            raise cannot_write(f"can't write the log {quoted(self.path)}", error) from None
