"""Questions and answers: what is asked of a judge, as a value, and what comes back.

A question's fields are what it asks about; its `prompt` says how a language model is asked; `read` turns the reply
into a typed answer. Two equal questions have one fingerprint, and that is what makes it possible to ask only once, to
reuse answers across runs, to replay them, and to let a judge that is no language model answer the same question.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from evalstone._core.json import content_hash, to_jsonable
from evalstone._core.parsing import parse_json
from evalstone._core.prompts import Material, Prompt
from evalstone.errors import JudgeError
from evalstone.types import NO_USAGE, JudgeCall, Usage

A = TypeVar("A")

BYTES_A_TOKEN = 4


@dataclass(frozen=True)
class LabelProbabilities:
    """Whose probabilities are wanted: the words that one member of the reply may be, such as the numbers of a scale."""

    member: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Question(ABC, Generic[A]):
    """What a judge is asked, and how its reply is read as an `A`.

    Subclasses are frozen dataclasses. Every field but `prompt` is a material (text, or a tuple of texts) and has a hole
    of its name in the prompt's template; `settings` names fields that shape the reading only and have no hole.
    """

    kind: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ()

    @property
    def weighed(self) -> LabelProbabilities | None:
        """The words whose probabilities are wanted with the answer; None when the answer alone is."""
        return None

    @property
    @abstractmethod
    def prompt_used(self) -> Prompt:
        """The prompt that this question is put with."""

    @abstractmethod
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON schema of the reply; None when the reply is plain text."""

    @abstractmethod
    def interpret(self, data: Any) -> A:
        """The answer that the parsed reply stands for. Raises ReplyError when it is not one."""

    @abstractmethod
    def example(self) -> Any:
        """A reply of typical length, as data: what a dry run assumes in the place of an answer."""

    def __post_init__(self) -> None:
        _check_holes(type(self), self.prompt_used)

    def inputs(self) -> dict[str, Material]:
        """What fills the prompt's holes."""
        return {name: getattr(self, name) for name in _input_names(type(self))}

    def render(self) -> tuple[str, str]:
        """The system and the user message that ask this question of a language model."""
        return self.prompt_used.render(self.inputs())

    @functools.cached_property
    def fingerprint(self) -> str:
        """The question's identity: 32 hexadecimal digits over kind, prompt, materials and settings."""
        content = [getattr(self, name) for name in (*_input_names(type(self)), *self.settings)]
        return content_hash([self.kind, self.prompt_used.fingerprint, content])

    @functools.cached_property
    def wanted(self) -> Mapping[str, Any] | None:
        """The schema, made once: it is needed to ask and again to read."""
        return self.schema()

    def read(self, reply: str) -> A:
        """The answer that a raw reply stands for. Raises ReplyError when it is not one."""
        return self.interpret(parse_json(reply) if self.wanted is not None else reply)

    def parse_with_probabilities(self, reply: str, alternatives: Mapping[str, float] | None = None) -> A:
        """The answer that a raw reply stands for, weighed by the probabilities of words where the judge gave any."""
        value = self.read(reply)
        return self.weigh(value, alternatives) if alternatives else value

    def weigh(self, answer: A, alternatives: Mapping[str, float]) -> A:
        """The answer with the probabilities of the words that might have stood in its place."""
        return answer


@functools.cache
def _input_names(kind: type[Question[Any]]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name != "prompt" and f.name not in kind.settings)


@functools.lru_cache(maxsize=512)
def _check_holes(kind: type[Question[Any]], prompt: Prompt) -> None:
    prompt.check(_input_names(kind))


@dataclass(frozen=True, kw_only=True)
class Answer(Generic[A]):
    """A judge's answer and what it took.

    value: the typed answer. reply: the raw reply it was read from (None when the judge is no language model).
    confidence: probability in [0, 1] that the answer is right, when the judge gives one. alternatives: the
    probabilities of the words that the question wants weighed, when the judge gives them. cost: US dollars, None when
    the price is unknown. seconds: wall time, waiting for retries included. cached: nothing was asked for it. members,
    detail: of a judge of judges, what its members answered, and how that became one answer.
    """

    value: A
    judge: str
    reply: str | None = None
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    seconds: float = 0.0
    confidence: float | None = None
    alternatives: Mapping[str, float] | None = None
    cached: bool = False
    members: tuple[JudgeCall, ...] = ()
    detail: Mapping[str, Any] | None = None


def unpaid(answer: Answer[A]) -> Answer[A]:
    """The answer, given again: it took nothing, and neither did its members'."""
    members = tuple(map(unpaid_step, answer.members))
    return replace(answer, usage=NO_USAGE, cost=0.0, seconds=0.0, cached=True, members=members)


def unpaid_step(step: JudgeCall) -> JudgeCall:
    """The step of an answer that is given again."""
    members = tuple(map(unpaid_step, step.members))
    return replace(step, usage=NO_USAGE, cost=0.0, seconds=0.0, cached=True, members=members)


def step_of(question: Question[A], answer: Answer[A], number: int = 0) -> JudgeCall:
    """A question and its answer, as a record keeps them."""
    return JudgeCall(
        question=question.kind,
        fingerprint=question.fingerprint,
        judge=answer.judge,
        answer=to_jsonable(answer.value),
        usage=answer.usage,
        cost=answer.cost,
        seconds=answer.seconds,
        confidence=answer.confidence,
        cached=answer.cached,
        reply=answer.reply,
        alternatives=answer.alternatives,
        number=number,
        members=answer.members,
        detail=answer.detail,
    )


def failed_step(question: Question[Any], error: JudgeError, judge: str, number: int = 0) -> JudgeCall:
    """A question that got no answer, with what asking it took."""
    return JudgeCall(
        question=question.kind,
        fingerprint=question.fingerprint,
        judge=judge,
        answer=None,
        usage=error.usage or NO_USAGE,
        cost=error.cost,
        seconds=error.seconds,
        reply=error.reply,
        number=number,
        members=tuple(error.members),
        detail={"error": str(error)},
    )


@dataclass(frozen=True)
class ContextLimits:
    """What one question to a judge may hold, at most: tokens of passages, and items that are judged one by one.

    whole: a response is better asked about at once than sentence by sentence.
    """

    tokens: int = 25_000
    items: int = 25
    whole: bool = False

    def characters(self, passages: Sequence[str]) -> int:
        """How many characters of such passages the tokens come to, at about four bytes to a token."""
        size = sum(len(passage.encode("utf-8", "replace")) for passage in passages)
        return max(1, int(self.tokens * BYTES_A_TOKEN * sum(map(len, passages)) / size)) if size else self.tokens


ROOM = ContextLimits()
"""What any judge is taken to hold that says nothing else."""


class Ask(Protocol):
    """How a scorer puts a question: `claims = await ask(ListClaims(text=output))`."""

    async def __call__(self, question: Question[A]) -> A: ...


def room_of(ask: Ask) -> ContextLimits:
    """What one question may hold that is put this way."""
    return getattr(ask, "context_limits", ROOM)
