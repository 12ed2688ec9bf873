"""What judges made of judges have in common: their members' needs are theirs, and every answer keeps its members'."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import fields
from typing import Any, TypeVar

from evalstone.errors import (
    JudgeDeclined,
    JudgeError,
    JudgeUnavailable,
    ProviderError,
    ReplyError,
    RunAborted,
)
from evalstone.judges.base import AskJudge, Judge, leaves
from evalstone.questions.base import Answer, ContextLimits, Question
from evalstone.types import JudgeCall, Usage, total_cost

A = TypeVar("A")


class Composite(Judge):
    """A judge that asks others. It keeps nothing between questions: a frozen value, like its members.

    An answer's usage, cost and steps are those of its members. In a run each of them has its place in the ledger, so
    that another vote, or another threshold, over the same members asks nothing again.
    """

    @property
    @abstractmethod
    def members(self) -> tuple[Judge, ...]:
        """The judges that this one asks."""

    @property
    @abstractmethod
    def manner(self) -> str:
        """One sentence on how their answers become one, for reports."""

    @abstractmethod
    async def combine(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        """The members' answers as one. Raises what their errors come to."""

    def settled(self) -> None:
        """Take over from the members what is theirs to say; to be called last when one is made."""
        notes = dict.fromkeys(leaf.note for leaf in leaves(self) if leaf.note)
        object.__setattr__(self, "cacheable", any(leaf.cacheable for leaf in leaves(self)))
        object.__setattr__(self, "note", "; ".join([self.manner, *notes]))

    async def answer(self, question: Question[A], repeat: int = 0) -> Answer[A]:
        async with self.opened():
            return await self.combine(question, AskJudge(repeat=repeat))

    def opened(self) -> AbstractAsyncContextManager[object]:
        return _all_opened(self.members)

    def warnings(self) -> Mapping[str, int]:
        # Two models behind one endpoint meet its trouble together, and it is counted once.
        places = {id(leaf.connection or leaf): leaf for leaf in leaves(self)}
        met: Counter[str] = Counter()
        for leaf in places.values():
            met.update(leaf.warnings())
        return dict(met)

    @property
    def context_limits(self) -> ContextLimits:
        """What each member has room for."""
        rooms = [member.context_limits for member in self.members]
        return ContextLimits(
            **{field.name: min(getattr(room, field.name) for room in rooms) for field in fields(ContextLimits)}
        )

    def check(self) -> None:
        for member in self.members:
            member.check()

    def price(self, usage: Usage) -> float | None:
        """The sum of the members' prices."""
        return total_cost(member.price(usage) for member in self.members)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(secret for member in self.members for secret in member.secrets))


@asynccontextmanager
async def _all_opened(members: tuple[Judge, ...]) -> AsyncGenerator[None]:
    async with AsyncExitStack() as stack:
        for member in members:
            await stack.enter_async_context(member.opened())
        yield


class Hearing:
    """One question before a judge of judges: it asks the members, and keeps what they said and what it took."""

    def __init__(self, judge: Judge, ask: AskJudge) -> None:
        self.judge = judge
        self.ask = ask
        self.steps = ask.calls
        self._started = time.perf_counter()

    async def ask_all(
        self, asked: Sequence[tuple[Judge, int]], question: Question[A]
    ) -> tuple[list[Answer[A]], dict[str, JudgeError | JudgeUnavailable]]:
        """What several answer at the same time, in order, and why the others do not, by who they are.

        Raises what ends a run and ConfigError; a judge that is down is one that does not answer.
        """
        tasks = [asyncio.ensure_future(self.tried(judge, question, number)) for judge, number in asked]
        try:
            results = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        order = {(judge.identity, self.ask.repeat + number): place for place, (judge, number) in enumerate(asked)}
        self.steps.sort(key=lambda step: order.get((step.judge, step.repeat_index), -1))
        answers = [one for one in results if isinstance(one, Answer)]
        silent: dict[str, JudgeError | JudgeUnavailable] = {}
        for (judge, number), one in zip(asked, results, strict=True):
            if isinstance(one, JudgeError | JudgeUnavailable):
                silent[f"{judge.identity} #{number}" if number else judge.identity] = one
            elif isinstance(one, Exception):
                raise one
        return answers, silent

    async def tried(self, member: Judge, question: Question[A], number: int = 0) -> Answer[A] | Exception:
        """A member's answer, or why there is none: a JudgeError, or the error that ends a run, not yet raised."""
        try:
            return await self.ask(member, question, number)
        except (JudgeError, RunAborted) as error:
            return error

    def end_below(self, needed: int, members: int, silent: Mapping[str, Exception]) -> None:
        """Raise the error of a member that is down where, for good, fewer than needed are left to answer."""
        down = [error for error in silent.values() if isinstance(error, JudgeUnavailable)]
        if members - len(down) < needed:
            raise down[0]

    def answered(
        self, value: A, *, confidence: float | None, detail: Mapping[str, Any], steps: list[JudgeCall] | None = None
    ) -> Answer[A]:
        """The members' answers as one. steps: in the order in which they are to be shown."""
        members = tuple(self.steps if steps is None else steps)
        return Answer(
            value=value,
            judge=self.judge.identity,
            usage=sum((step.usage for step in members), Usage()),
            cost=total_cost(step.cost for step in members),
            seconds=time.perf_counter() - self._started,
            confidence=confidence,
            cached=all(step.cached for step in members),
            members=members,
            detail=detail,
        )

    def failure(self, told: str, errors: Sequence[Exception]) -> JudgeError:
        """What the members' errors come to: JudgeDeclined when all of them are, or another kind that all are."""
        kinds = (JudgeDeclined, ProviderError, ReplyError)
        kind = next((kind for kind in kinds if all(isinstance(error, kind) for error in errors)), JudgeError)
        replies = [error.reply for error in errors if isinstance(error, JudgeError) and error.reply is not None]
        return kind(
            told,
            reply=replies[-1] if replies else None,
            usage=sum((step.usage for step in self.steps), Usage()),
            cost=total_cost(step.cost for step in self.steps),
            seconds=time.perf_counter() - self._started,
            members=tuple(self.steps),
        )
