"""What a judge is, and how a judge that is made of others asks them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeVar

from evalstone._core.redaction import register
from evalstone.errors import JudgeError
from evalstone.judges.providers.limits import NO_LIMITS, Limits, shared_limiter
from evalstone.questions.base import JudgeAnswer, Question, failed_call, judge_call
from evalstone.questions.limits import DEFAULT_LIMITS, ContextLimits
from evalstone.types import NO_USAGE, JudgeCall, Usage, total_cost

A = TypeVar("A")


class Judge(ABC):
    """Anything that can answer a question: a language model, code, a recording, or a combination of judges.

    Judges are values, not connections: frozen, picklable and comparable.
    """

    cacheable: bool = True
    """Whether the answers are worth storing in the ledger."""

    deterministic: bool = False
    """Whether it gives the same answer each time, so that repeating a question is pointless."""

    members: tuple[Judge, ...] = ()
    """The judges that this one asks; empty for a judge that answers by itself."""

    note: str = ""
    """One sentence for reports: what this judge is and what it can't see."""

    limits: Limits = NO_LIMITS
    """Limits for calls to this judge. A judge without members applies them itself: `async with
    self.limits.admitted(self.identity): …`."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """What the ledger and the reports call this judge. Equal identities give interchangeable answers."""

    @abstractmethod
    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        """Answer a question.

        Args:
            question: what to answer.
            repeat: which repetition of the same question this is, from 0. A judge with a fixed seed uses another seed
                for each.

        Raises:
            JudgeDeclined: this judge can't answer the question.
            JudgeError: it should have answered and did not.
        """

    async def combine(self, question: Question[A], ask: AskJudge) -> JudgeAnswer[A]:
        """Answer from the members' answers. Only judges with members are asked this way.

        Args:
            question: what to answer.
            ask: the only way to ask a member: `await ask(member, question)`. It records each call.

        Raises:
            JudgeError: as `answer` does.
        """
        raise NotImplementedError(f"{type(self).__name__} has no members to combine")

    def price(self, usage: Usage) -> float | None:
        """The cost of this many tokens in US dollars; None if the price is unknown."""
        return None if self.cacheable else 0.0

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never be printed or stored, such as an API key. A run writes them as `***`."""
        return ()

    def opened(self) -> AbstractAsyncContextManager[object]:
        """A context that holds the judge's connections open; each run enters it once."""
        return nullcontext(self) if self.limits == NO_LIMITS else shared_limiter(self.identity, self.limits)

    @property
    def context_limits(self) -> ContextLimits:
        """How much one question to this judge may contain; longer ones are split where a question allows it."""
        return DEFAULT_LIMITS

    def check(self) -> None:  # noqa: B027 - most judges have nothing to check
        """Raise ConfigError for problems that can be detected before the first call, such as a missing key."""


def register_secrets(judge: Judge) -> None:
    """Keep a judge's secrets out of everything that is printed or stored."""
    secrets: object = judge.secrets
    register(*((secrets,) if isinstance(secrets, str) else judge.secrets))


class AskJudge:
    """How a composite judge asks its members. Records each call, failed ones included, in `calls`.

    `calls` is in the order in which the calls ended. Members are asked from repetition number `repeat` on, so that a
    composite judge that is itself repeated gets new answers without knowing its own number; one that asks a member
    several times adds what keeps its repetitions apart.
    """

    def __init__(
        self, answer: Callable[[Judge, Question[Any], int], Awaitable[JudgeAnswer[Any]]] | None = None, repeat: int = 0
    ) -> None:
        """Ask through `answer`, such as a run's session; None asks the members directly."""
        self._answer = answer or answer_directly
        self.repeat = repeat
        self.calls: list[JudgeCall] = []
        self._started = time.perf_counter()

    def taken(self) -> dict[str, Any]:
        """What the calls took so far, as an answer and an error have it; the seconds since the first could begin."""
        return {
            "usage": sum((call.usage for call in self.calls), NO_USAGE),
            "cost": total_cost(call.cost for call in self.calls),
            "seconds": time.perf_counter() - self._started,
            "members": tuple(self.calls),
        }

    async def __call__(self, judge: Judge, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        """Ask a member. Raises what the member raises."""
        repeat += self.repeat
        try:
            answer = await self._answer(judge, question, repeat)
        except JudgeError as error:
            self.calls.append(failed_call(question, error, judge.identity, repeat))
            raise
        self.calls.append(judge_call(question, answer, repeat))
        return answer


async def answer_directly(judge: Judge, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
    """Ask a judge with no ledger, limits or budget in between."""
    return await judge.answer(question, repeat)


def leaves(*judges: Judge) -> tuple[Judge, ...]:
    """The judges at the bottom of judges, which answer by themselves, each once."""
    single = (leaf for judge in judges for leaf in (leaves(*judge.members) if judge.members else (judge,)))
    return tuple({leaf.identity: leaf for leaf in single}.values())
