"""What a judge is, and the conversation that every judge made of text replies has with its model."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from evalstone.errors import JudgeDeclined, JudgeError, ReplyError
from evalstone.questions.base import ROOM, Answer, ContextLimits, Question, failed_call, judge_call
from evalstone.types import NO_USAGE, JudgeCall, Usage, total_cost

A = TypeVar("A")


class Judge(ABC):
    """Anything that can answer a question: a language model, code, a recording, several of those together.

    Values, not connections: frozen, picklable and comparable.
    """

    cacheable: bool = True
    """Whether the answers are worth storing in the ledger."""

    note: str = ""
    """One sentence for reports: what this judge is and what it can't see."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """What the ledger and the reports call this judge. Equal identities give interchangeable answers."""

    @abstractmethod
    async def answer(self, question: Question[A], repeat: int = 0) -> Answer[A]:
        """Answer a question.

        Args:
            question: what to answer.
            repeat: which repetition of the same question this is, from 0. A judge with a fixed seed uses another seed
                for each.

        Raises:
            JudgeDeclined: this judge can't answer the question.
            JudgeError: it should have answered and did not.
        """

    @property
    def members(self) -> tuple[Judge, ...]:
        """The judges that this one asks; empty for a judge that answers by itself."""
        return ()

    async def combine(self, question: Question[A], ask: AskJudge) -> Answer[A]:
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
    def connection(self) -> object | None:
        """The connection it shares with other judges on the running loop, so that warnings are counted once."""
        return None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never be written anywhere, such as an API key."""
        return ()

    def opened(self) -> AbstractAsyncContextManager[object]:
        """A context that holds the judge's connections open; each run enters it once."""
        return contextlib.nullcontext()

    def warnings(self) -> Mapping[str, int]:
        """Counts of the errors that were retried on the running loop so far: `{"HTTP 429": 3}`."""
        return {}

    @property
    def context_limits(self) -> ContextLimits:
        """How much one question to this judge may contain; longer ones are split where a question allows it."""
        return ROOM

    def check(self) -> None:  # noqa: B027 - most judges have nothing to check
        """Raise ConfigError for anything that can be known to be wrong before the first call, such as a missing key."""


class AskJudge:
    """How a composite judge asks its members. Records each call, failed ones included, in `calls`.

    `calls` is in the order in which the calls ended. Members are asked from repetition number `repeat` on, so that a
    composite judge that is itself repeated gets new answers without knowing its own number.
    """

    def __init__(
        self, answer: Callable[[Judge, Question[Any], int], Awaitable[Answer[Any]]] | None = None, repeat: int = 0
    ) -> None:
        """Ask through `answer`, such as a run's session; None asks the members directly."""
        self._answer = answer or answer_directly
        self.repeat = repeat
        self.calls: list[JudgeCall] = []

    async def __call__(self, judge: Judge, question: Question[A], repeat: int = 0) -> Answer[A]:
        """Ask a member. Raises what the member raises."""
        repeat += self.repeat
        try:
            answer = await self._answer(judge, question, repeat)
        except JudgeError as error:
            self.calls.append(failed_call(question, error, judge.identity, repeat))
            raise
        self.calls.append(judge_call(question, answer, repeat))
        return answer


async def answer_directly(judge: Judge, question: Question[A], repeat: int = 0) -> Answer[A]:
    """Ask a judge with no ledger, limits or budget in between."""
    return await judge.answer(question, repeat)


def leaves(judge: Judge) -> tuple[Judge, ...]:
    """The judges at the bottom of a judge, which answer by themselves, each once."""
    if not judge.members:
        return (judge,)
    found = {leaf.identity: leaf for member in judge.members for leaf in leaves(member)}
    return tuple(found.values())


@dataclass(frozen=True)
class Turn:
    """One message of the conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Reply:
    """A model's raw reply. complete=False: the model was stopped before its end. alternatives: the probabilities of
    the words that the question wants weighed."""

    text: str
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    confidence: float | None = None
    complete: bool = True
    alternatives: Mapping[str, float] | None = None


Send: TypeAlias = Callable[[list[Turn]], Awaitable[Reply | None]]


class _Spent:
    """What the attempts at one question took, and the last raw reply."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.usage = NO_USAGE
        self.costs: list[float | None] = []
        self.reply: str | None = None

    def add(self, reply: Reply) -> None:
        """Count a reply."""
        self.usage += reply.usage
        self.costs.append(reply.cost)
        self.reply = reply.text

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    def on(self, error: JudgeError) -> JudgeError:
        """The error with all this on it, beside what its own attempt took."""
        error.usage = self.usage + (error.usage or NO_USAGE)
        error.cost = total_cost([*self.costs, error.cost])
        error.seconds = self.seconds
        error.reply = self.reply if error.reply is None else error.reply
        return error


async def converse(question: Question[A], send: Send, *, judge: str, retries: int = 3, manner: str = "") -> Answer[A]:
    """Ask, read the reply, and on a reply that is no answer show the model its error and ask again.

    send: puts the turns to the model; None means that it has nothing more to say, and a JudgeError that it raises ends
    the conversation. retries: corrections at most. manner: a sentence on style, added to the instructions. Raises the
    last reply's error when no attempt gave an answer: JudgeDeclined when the model declined to the end, else
    ReplyError. Every JudgeError that leaves has what all attempts took, and the last raw reply. A reply that was cut
    off is an error even where it can be read.
    """
    spent = _Spent()
    turns = opening = opened_with(question, manner)
    error: JudgeError | None = None
    for _ in range(retries + 1):
        try:
            reply = await send(turns)
        except JudgeError as raised:
            spent.on(raised)
            raise
        if reply is None:
            break
        spent.add(reply)
        try:
            value = value_of(question, reply)
        except (ReplyError, JudgeDeclined) as raised:
            error = raised
            turns = corrected(opening, question, reply.text, str(raised))
            continue
        return Answer(
            value=value,
            judge=judge,
            reply=reply.text,
            usage=spent.usage,
            cost=total_cost(spent.costs),
            seconds=spent.seconds,
            confidence=reply.confidence,
            alternatives=reply.alternatives,
        )
    if error is None:
        error = JudgeError(f"{judge} has no answer to {question.kind}")
    raise spent.on(error)


def opened_with(question: Question[Any], manner: str = "") -> list[Turn]:
    """The turns that put a question to a model for the first time."""
    system, user = question.render()
    system = f"{system}\n{manner}" if system and manner else system
    return [Turn("system", system)] * bool(system) + [Turn("user", user)]


def corrected(opening: list[Turn], question: Question[Any], reply: str, error: str) -> list[Turn]:
    """The turns that show a model its reply, and what is wrong with it, and ask again."""
    return [*opening, Turn("assistant", _excerpt(reply)), Turn("user", _correction(question, error))]


def value_of(question: Question[A], reply: Reply) -> A:
    """The answer that a reply is. Raises ReplyError, for one that was cut off as well, and JudgeDeclined."""
    if not reply.complete:
        raise ReplyError("the reply was cut off before its end")
    return question.parse_with_probabilities(reply.text, reply.alternatives)


def _correction(question: Question[Any], error: str) -> str:
    is_json = question.json_schema is not None
    form = "the JSON object that was asked for, complete" if is_json else "the answer asked for"
    return f"That reply cannot be used: {error}. Reply again with {form}, and nothing else."


def _excerpt(text: str) -> str:
    return text if len(text) <= 4000 else text[:2000] + "\n[…]\n" + text[-2000:]
