"""What judges that are made of judges have in common: their members' needs are theirs, and answers keep every call."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from evalstone.errors import JudgeDeclined, JudgeError, JudgeUnavailable, ProviderError, ReplyError, RunAborted
from evalstone.judges.base import AskJudge, Judge, leaves
from evalstone.judges.providers.limits import NO_LIMITS, Limits, shared_limiter
from evalstone.judges.voting import Vote, answer_confidence, elect, vote_detail
from evalstone.questions.base import Answer, ContextLimits, Question
from evalstone.types import Usage, total_cost

A = TypeVar("A")
Errors = Mapping[str, JudgeError | JudgeUnavailable]
"""Why members gave no answer, by their names."""


@dataclass(frozen=True)
class Composite(Judge):
    """A judge that asks others: a frozen value, like its members.

    An answer's usage, cost and calls are those of its members. In a run each member has its own place in the ledger, so
    that another vote, or another threshold, over the same members asks nothing again.
    """

    limits: Limits = field(default=NO_LIMITS, kw_only=True, compare=False, repr=False)
    """Limits on the composite as a whole; tokens are its members' matter."""

    @property
    @abstractmethod
    def members(self) -> tuple[Judge, ...]:
        """The judges that this one asks."""

    @property
    @abstractmethod
    def description(self) -> str:
        """How the members' answers become one, for reports."""

    @abstractmethod
    async def decide(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        """The members' answers as one, within the limits."""

    def derive(self) -> None:
        """Set what follows from the members; called last by `__post_init__`."""
        notes = dict.fromkeys(leaf.note for leaf in leaves(self) if leaf.note)
        object.__setattr__(self, "cacheable", any(leaf.cacheable for leaf in leaves(self)))
        object.__setattr__(self, "note", "; ".join([self.description, *notes]))

    async def answer(self, question: Question[A], repeat: int = 0) -> Answer[A]:
        async with self.opened():
            return await self.combine(question, AskJudge(repeat=repeat))

    async def combine(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        if self.limits == NO_LIMITS:
            return await self.decide(question, ask)
        async with self.limits.admitted(self.identity):
            return await self.decide(question, ask)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            stack.enter_context(shared_limiter(self.identity, self.limits))
            for member in self.members:
                await stack.enter_async_context(member.opened())
            yield

    def warnings(self) -> Mapping[str, int]:
        # Two models behind one endpoint share its errors, which are counted once.
        connections = {id(leaf.connection or leaf): leaf for leaf in leaves(self)}
        return dict(sum((Counter(leaf.warnings()) for leaf in connections.values()), Counter[str]()))

    @property
    def context_limits(self) -> ContextLimits:
        """What every member can take."""
        each = [member.context_limits for member in self.members]
        return ContextLimits(**{f.name: min(getattr(one, f.name) for one in each) for f in fields(ContextLimits)})

    def check(self) -> None:
        for member in self.members:
            member.check()

    def price(self, usage: Usage) -> float | None:
        """The sum of the members' prices."""
        return total_cost(member.price(usage) for member in self.members)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(secret for member in self.members for secret in member.secrets))

    def combined(self, ask: AskJudge, value: A, confidence: float | None, detail: Mapping[str, Any]) -> Answer[A]:
        """The answer that the recorded calls came to."""
        return Answer(
            value=value,
            judge=self.identity,
            usage=sum((call.usage for call in ask.calls), Usage()),
            cost=total_cost(call.cost for call in ask.calls),
            seconds=ask.seconds,
            confidence=confidence,
            cached=all(call.cached for call in ask.calls),
            members=tuple(ask.calls),
            detail=detail,
        )

    def voted(
        self,
        question: Question[A],
        ask: AskJudge,
        answers: Sequence[Answer[A]],
        *,
        vote: Vote,
        detail: Mapping[str, Any],
        errors: Errors,
    ) -> Answer[A]:
        """The result of a vote on several answers. Raises JudgeDeclined if it can't be decided."""
        try:
            result = elect(question, answers, vote)
        except JudgeDeclined as error:
            raise self.failure(ask, str(error), [error]) from None
        detail = {**detail, **vote_detail(result.verdicts), **silent_detail(errors)}
        return self.combined(ask, result.value, answer_confidence(result.verdicts), detail)

    def failure(self, ask: AskJudge, message: str, errors: Sequence[Exception]) -> JudgeError:
        """The members' errors as one: JudgeDeclined if all of them are, or another kind that all are."""
        kinds = (JudgeDeclined, ProviderError, ReplyError)
        kind = next((kind for kind in kinds if all(isinstance(error, kind) for error in errors)), JudgeError)
        replies = [error.reply for error in errors if isinstance(error, JudgeError) and error.reply is not None]
        return kind(
            message,
            reply=replies[-1] if replies else None,
            usage=sum((call.usage for call in ask.calls), Usage()),
            cost=total_cost(call.cost for call in ask.calls),
            seconds=ask.seconds,
            members=tuple(ask.calls),
        )


async def ask_all(
    ask: AskJudge, asked: Sequence[tuple[Judge, int]], question: Question[A]
) -> tuple[list[Answer[A]], Errors]:
    """Ask several members, or one several times, at once: the answers in order, and why the others gave none.

    Raises what ends a run, once all have ended, and ConfigError at once. A member that is down only gives no answer.
    """
    tasks = [asyncio.ensure_future(_tried(ask, judge, question, repeat)) for judge, repeat in asked]
    try:
        results = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    order = {(judge.identity, ask.repeat + repeat): place for place, (judge, repeat) in enumerate(asked)}
    ask.calls.sort(key=lambda call: order.get((call.judge, call.repeat_index), -1))
    answers = [result for result in results if isinstance(result, Answer)]
    errors: dict[str, JudgeError | JudgeUnavailable] = {}
    for (judge, repeat), result in zip(asked, results, strict=True):
        if isinstance(result, JudgeError | JudgeUnavailable):
            errors[f"{judge.identity} #{repeat}" if repeat else judge.identity] = result
        elif isinstance(result, Exception):
            raise result
    return answers, errors


async def _tried(ask: AskJudge, judge: Judge, question: Question[A], repeat: int) -> Answer[A] | Exception:
    try:
        return await ask(judge, question, repeat)
    except (JudgeError, RunAborted) as error:
        return error


def raise_if_down(errors: Errors, *, needed: int, asked: int) -> None:
    """Raise the error of a member that is down if too few are left for good."""
    down = [error for error in errors.values() if isinstance(error, JudgeUnavailable)]
    if asked - len(down) < needed:
        raise down[0]


def silent_detail(errors: Errors) -> dict[str, Any]:
    """Who gave no answer and why, as a part of an answer's detail."""
    return {"silent": {name: str(error) for name, error in errors.items()}} if errors else {}
