"""Relevance of passages to a question, and what an answer made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from evalstone._core.parsing import (
    TEXT,
    choice_schema,
    list_schema,
    member,
    numbered,
    numbered_schema,
    object_schema,
    texts,
)
from evalstone._core.prompts import Prompt
from evalstone.questions.base import Question

Level: TypeAlias = Literal["high", "medium", "low", "none"]
LEVELS: tuple[Level, ...] = ("high", "medium", "low", "none")


@dataclass(frozen=True)
class PassageRating:
    """How much one passage (its number, from 1) helps with the question, and whether the answer used it."""

    passage: int
    level: Level
    used: bool
    reason: str = ""


@dataclass(frozen=True)
class PassageRatings:
    """A rating for each passage in order, and what the question needs that no passage has."""

    passages: tuple[PassageRating, ...]
    missing: tuple[str, ...] = ()


RATE_PASSAGES = Prompt(
    instructions="""\
You rate how relevant each of some numbered passages is to a user's question, and whether an answer made use of it.

For each passage give, in this order:
- reason: in one short sentence, what in the passage helps with the question, or why nothing does.
- level:
  - "high": it states what is asked for, or an essential part of it.
  - "medium": it does not answer, but gives facts that a good answer builds on.
  - "low": it is about the same subject and helps little. A passage on the right person but on another matter is low.
  - "none": it has nothing to do with the question.
- used: true when the answer repeats, rewords or draws on something that this passage says; false when the answer could
  have been written without it. Agreement by chance on a common word is not use.

Then list under "missing" the pieces of information that the question needs and that no passage has, each as a short
phrase; an empty list when nothing is missing.

Reply with a JSON object that has one member for each passage, under its number:
{"passages": {"1": {"reason": "…", "level": "high", "used": true}, "2": …}, "missing": []}""",
    template="{{context}}\n\n{{question}}\n\n{{answer}}\n\nRate each passage for the question.",
)


@dataclass(frozen=True)
class _RatingReply:
    reason: str
    level: Level
    used: bool


@dataclass(frozen=True)
class RatePassages(Question[PassageRatings]):
    """For each passage: its level of relevance to the question and whether the answer used it; and what is missing."""

    kind: ClassVar[str] = "rate_passages"

    question: str
    answer: str
    context: tuple[str, ...]
    prompt: Prompt = RATE_PASSAGES

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        item = object_schema({"reason": TEXT, "level": choice_schema(get_args(Level)), "used": {"type": "boolean"}})
        return object_schema(
            {"passages": numbered_schema(item, len(self.context)), "missing": list_schema(TEXT)},
        )

    def interpret(self, data: Any) -> PassageRatings:
        replies = numbered(_RatingReply, member(data, "passages"), len(self.context), of="passage", what="rating")
        ratings = tuple(
            PassageRating(number, reply.level, reply.used, reply.reason)
            for number, reply in enumerate(replies, start=1)
        )
        return PassageRatings(ratings, texts(data.get("missing", []), "missing"))

    def example(self) -> Any:
        item = {"reason": "It states what is asked for.", "level": "high", "used": True}
        return {"passages": {str(n): item for n in range(1, len(self.context) + 1)}, "missing": []}


@dataclass(frozen=True)
class PassageVerdict:
    """Whether one passage (its number, from 1) was useful for arriving at the answer."""

    passage: int
    useful: bool
    reason: str = ""


FIND_USEFUL = Prompt(
    instructions="""\
You decide for each of some numbered passages whether it was useful for arriving at an answer to a user's question.

For each passage give, in this order:
- reason: in one short sentence, what it contributes, or why it contributes nothing.
- verdict:
  - "yes": it supports at least one thing in the answer that bears on the question, in full or in part.
  - "no": it contributes nothing to that. A passage on the same subject that the answer does not need is no.

Reply with a JSON object that has one member for each passage, under its number:
{"verdicts": {"1": {"reason": "…", "verdict": "yes"}, "2": …}}""",
    template="{{context}}\n\n{{question}}\n\n{{answer}}\n\nDecide for each passage whether it was useful.",
)


@dataclass(frozen=True)
class _UsefulReply:
    reason: str
    verdict: Literal["yes", "no"]


@dataclass(frozen=True)
class FindUsefulPassages(Question[tuple[PassageVerdict, ...]]):
    """For each passage, in order: was it useful for arriving at the answer to the question?"""

    kind: ClassVar[str] = "find_useful_passages"

    question: str
    answer: str
    context: tuple[str, ...]
    prompt: Prompt = FIND_USEFUL

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        item = object_schema({"reason": TEXT, "verdict": choice_schema(["yes", "no"])})
        return object_schema({"verdicts": numbered_schema(item, len(self.context))})

    def interpret(self, data: Any) -> tuple[PassageVerdict, ...]:
        replies = numbered(_UsefulReply, member(data, "verdicts"), len(self.context), of="passage")
        return tuple(
            PassageVerdict(number, reply.verdict == "yes", reply.reason)
            for number, reply in enumerate(replies, start=1)
        )

    def example(self) -> Any:
        item = {"reason": "The answer takes its main fact from it.", "verdict": "yes"}
        return {"verdicts": {str(n): item for n in range(1, len(self.context) + 1)}}
