"""What a judge is, and the conversation that every judge made of text replies has with its model."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from evalstone.errors import JudgeDeclined, JudgeError, ReplyError
from evalstone.questions.base import ROOM, Answer, ContextLimits, Question
from evalstone.types import NO_USAGE, Usage, total_cost

A = TypeVar("A")


class Judge(ABC):
    """Anything that can answer a question: a language model, code, a recording, several of those together.

    costly: whether an answer is worth keeping in the ledger. note: one sentence for reports on what this judge is and
    what it cannot see.
    """

    costly: bool = True
    note: str = ""

    @property
    @abstractmethod
    def identity(self) -> str:
        """What the ledger and the reports call this judge. Equal identities give interchangeable answers."""

    @abstractmethod
    async def answer(self, question: Question[A]) -> Answer[A]:
        """Answer a question. Raises JudgeDeclined when this judge cannot, JudgeError when it should have."""

    @property
    def members(self) -> tuple[Judge, ...]:
        """The judges that this one asks; empty for one that answers by itself."""
        return ()

    async def answer_numbered(self, question: Question[A], number: int) -> Answer[A]:
        """The answer when the same question is asked for the `number`-th time, from 0, to see whether it stays the
        same. A judge with a fixed seed takes another one for each number."""
        return await self.answer(question)

    async def answer_through(self, question: Question[A], put: Put) -> Answer[A]:
        """Answer, putting questions to the members by `put` alone. Raises what `answer` raises."""
        return await self.answer(question)

    def price_of(self, usage: Usage) -> float | None:
        """US dollars that so many tokens cost with this judge itself; None when its price is unknown."""
        return None if self.costly else 0.0

    @property
    def connection(self) -> object | None:
        """What it shares with other judges on the running loop, so that trouble met there is counted once."""
        return None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be written down, such as a key."""
        return ()

    def opened(self) -> AbstractAsyncContextManager[object]:
        """What the judge needs while a run lasts (connections); entered once by each run."""
        return contextlib.nullcontext()

    def met(self) -> Mapping[str, int]:
        """The trouble met so far on the running loop, and how often: `{"HTTP 429": 3}`."""
        return {}

    @property
    def room(self) -> ContextLimits:
        """What one question to this judge may hold; longer ones are put in parts, where a question can be."""
        return ROOM

    def check(self) -> None:  # noqa: B027 - most judges have nothing to check
        """Raise ConfigError for what can be known to be wrong before anything is asked, such as a missing key."""


class Put(Protocol):
    """How a judge of judges puts a question to a member: directly, or through a run's ledger, limits and budget."""

    async def __call__(self, member: Judge, question: Question[A], number: int = 0) -> Answer[A]: ...


async def put_directly(member: Judge, question: Question[A], number: int = 0) -> Answer[A]:
    """Put a question to a member with nothing in between."""
    return await (member.answer(question) if number == 0 else member.answer_numbered(question, number))


@dataclass(frozen=True)
class NumberedFrom:
    """A way to the members with numbers that begin at `start`: how a judge of judges is asked repeatedly."""

    start: int
    put: Put

    async def __call__(self, member: Judge, question: Question[A], number: int = 0) -> Answer[A]:
        return await self.put(member, question, self.start + number)


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
