"""Judges that log what another one answers, or limit how much it is asked. They answer as it does, under its name."""

from __future__ import annotations

import asyncio
import json
import math
import weakref
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, cast

from evalstone._core.json import to_jsonable
from evalstone.errors import BudgetExceeded, ConfigError, JudgeError
from evalstone.judges.base import AskJudge, Judge
from evalstone.judges.providers.limits import Limiter
from evalstone.questions.base import Answer, ContextLimits, Question, failed_call, judge_call
from evalstone.types import JudgeCall, Usage

A = TypeVar("A")


@dataclass(frozen=True)
class Wrapped(Judge):
    """A judge that another one stands in: the same identity, so the same answers in a ledger, and the same members."""

    judge: Judge

    def __post_init__(self) -> None:
        if not isinstance(self.judge, Judge):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{type(self).__name__} needs a Judge, not {type(self.judge).__name__}")
        object.__setattr__(self, "cacheable", self.judge.cacheable)
        object.__setattr__(self, "note", self.judge.note)

    @property
    def identity(self) -> str:
        return self.judge.identity

    @property
    def members(self) -> tuple[Judge, ...]:
        return self.judge.members

    @property
    def connection(self) -> object | None:
        return self.judge.connection

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.judge.secrets

    @property
    def context_limits(self) -> ContextLimits:
        return self.judge.context_limits

    def price(self, usage: Usage) -> float | None:
        return self.judge.price(usage)

    def warnings(self) -> Mapping[str, int]:
        return self.judge.warnings()

    def check(self) -> None:
        self.judge.check()

    def opened(self) -> AbstractAsyncContextManager[object]:
        return self.judge.opened()

    async def answer(self, question: Question[A], repeat: int = 0) -> Answer[A]:
        return await self.judge.answer(question, repeat)

    async def combine(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        return await self.judge.combine(question, ask)


@dataclass(frozen=True)
class Logged(Wrapped):
    """A judge whose answers are written to a JSON Lines file as they come: what was really asked, not what was cached.

    path: the file; lines are added. Each has `time`, `judge`, `steps` (the step as in records.jsonl, raw reply and all)
    and, with texts=True, the question's `materials`. ReplayJudge.from_records reads it. A key is never written: the
    judge's secrets are cut out of every line. Raises ConfigError when the file cannot be written.
    """

    path: str | Path = "judge.jsonl"
    texts: bool = False

    async def answer(self, question: Question[A], repeat: int = 0) -> Answer[A]:
        return await self._logged(question, repeat, self.judge.answer(question, repeat))

    async def combine(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        return await self._logged(question, ask.repeat, self.judge.combine(question, ask))

    def check(self) -> None:
        self.judge.check()
        self._append("")

    async def _logged(self, question: Question[A], number: int, asked: Any) -> Answer[A]:
        try:
            answer = cast("Answer[A]", await asked)
        except JudgeError as error:
            self._write(question, failed_call(question, error, self.identity, number))
            raise
        self._write(question, judge_call(question, answer, number))
        return answer

    def _write(self, question: Question[Any], step: JudgeCall) -> None:
        line: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "judge": step.judge,
            "steps": [to_jsonable(step)],
        }
        if self.texts:
            line["materials"] = to_jsonable(question.inputs())
        text = json.dumps(line)
        for secret in self.secrets:
            text = text.replace(json.dumps(secret)[1:-1], "[secret]")
        self._append(text + "\n")

    def _append(self, text: str) -> None:
        try:
            with Path(self.path).open("a", encoding="utf-8") as file:
                file.write(text)  # one write of one line, so that the lines of several processes do not mix
        except OSError as error:
            raise ConfigError(f"the log {str(self.path)!r} cannot be written: {error.strerror or error}") from None


@dataclass(frozen=True)
class Limited(Wrapped):
    """A judge that is asked so much and no more; a judge of judges counts as one.

    at_once: questions under way at the same time. a_minute: questions begun in a minute. at_most: questions in one run
    (as long as the judge is open); the next one ends the run with what it has (BudgetExceeded). None for no limit.
    Limits hold for all equal values on one event loop together. Raises ConfigError for a limit that is no whole number
    of 1 or more (at_most: of 0 or more).
    """

    at_once: int | None = None
    a_minute: int | None = None
    at_most: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("at_once", 1), ("a_minute", 1), ("at_most", 0)):
            value: object = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise ConfigError(f"{name} must be a whole number of {least} or more, or None, not {value!r}")

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[object]:
        seats = _seats.setdefault(asyncio.get_running_loop(), {})
        # Equal limits around each other are two: a question that is within one would wait for itself at the other.
        key = (self.identity, self.at_once, self.a_minute, self.at_most, _limits(self.judge))
        seat = seats.setdefault(key, _Seat.of(self))
        seat.users += 1
        try:
            async with self.judge.opened():
                yield seat
        finally:
            seat.users -= 1
            if not seat.users:
                del seats[key]

    def opened(self) -> AbstractAsyncContextManager[object]:
        return self._opened()

    async def answer(self, question: Question[A], repeat: int = 0) -> Answer[A]:
        return cast("Answer[A]", await self._within(lambda: self.judge.answer(question, repeat)))

    async def combine(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        return cast("Answer[A]", await self._within(lambda: self.judge.combine(question, ask)))

    async def _within(self, ask: Any) -> Any:
        async with self._opened() as opened:
            seat = cast(_Seat, opened)
            if self.at_most is not None and seat.asked >= self.at_most:
                raise BudgetExceeded(f"the limit of {self.at_most} questions to {self.identity} is reached")
            seat.asked += 1
            with await seat.limiter.admit(0):
                return await ask()


def _limits(judge: Judge) -> int:
    """How many limits stand around the innermost judge."""
    return isinstance(judge, Limited) + _limits(judge.judge) if isinstance(judge, Wrapped) else 0


@dataclass
class _Seat:
    """The limits of equal judges on one event loop, while they are open."""

    limiter: Limiter
    asked: int = 0
    users: int = field(default=0)

    @classmethod
    def of(cls, judge: Limited) -> _Seat:
        limiter = Limiter(requests_per_minute=judge.a_minute)
        limiter.at_once = math.inf if judge.at_once is None else judge.at_once
        return cls(limiter)


_seats: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, _Seat]] = weakref.WeakKeyDictionary()
