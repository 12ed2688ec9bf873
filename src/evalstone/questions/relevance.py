"""Relevance of passages to a question, and whether an answer used them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias, get_args

from evalstone._core.prompts import Prompt
from evalstone._core.truth import NoTruthValue
from evalstone.questions.base import Ask, Question
from evalstone.questions.items import ListOf, VerdictPerItem
from evalstone.questions.markers import MayOmit, NumberedBy, Quotes, Subject, WorstFirst, YesNo
from evalstone.questions.parts import ask_parts, by_number, chunks_of, space_for
from evalstone.types.context_limits import ContextLimits

RelevanceLevel: TypeAlias = Literal["high", "medium", "low", "none"]
LEVELS: tuple[RelevanceLevel, ...] = get_args(RelevanceLevel)


@dataclass(frozen=True)
class PassageRating(NoTruthValue):
    """How much one passage (its number, from 1) helps with the question, and whether the answer used it."""

    passage: Annotated[int, Subject()]
    level: Annotated[RelevanceLevel, WorstFirst(*reversed(LEVELS))]
    used: Annotated[bool, WorstFirst()]
    reason: str = ""


@dataclass(frozen=True)
class PassageRatings(NoTruthValue):
    """A rating for each passage in order, and what the question needs that no passage has."""

    passages: Annotated[tuple[PassageRating, ...], NumberedBy("context", "passage", "rating")]
    missing: Annotated[tuple[str, ...], MayOmit(())] = ()


RATE_PASSAGES = Prompt(
    instructions="""\
You rate how relevant each of some numbered passages is to a user's question, and whether an answer used it.

For each passage give, in this order:
- reason: in one short sentence, what helps, or why nothing does.
- level:
  - "high": states what is asked for, or an essential part.
  - "medium": has facts that a good answer needs, but no answer.
  - "low": is on the subject and helps little.
  - "none": is about something else.
- used: true if the answer repeats or relies on it; a common word is not use.

Then list under "missing" what the question needs and no passage has, if anything.""",
    template="{{context}}\n\n{{question}}\n\n{{answer}}\n\nRate each passage.",
    example="""\
Example. Passage 1: "The museum opens at nine." Question: "When is it open?" Answer: "Every day."
Reply: {"passages": {"1": {"reason": "It opens at nine.", "level": "high", "used": false}},
"missing": ["when the museum closes"]}""",
)


class RatePassages(Question[PassageRatings]):
    """For each passage: its level of relevance to the question and whether the answer used it; and what is missing."""

    kind = "rate_passages"
    question: str
    answer: str
    context: tuple[str, ...]
    prompt: Prompt = RATE_PASSAGES

    def fits(self, limits: ContextLimits) -> bool:
        return len(self.context) <= limits.items and self.within(limits.tokens)

    async def in_parts(self, ask: Ask, limits: ContextLimits) -> PassageRatings:
        """The ratings of groups of passages, in order.

        A split passage gets the level of its best piece, and counts as used if any piece was used. `missing` comes from
        the group with the fewest missing things, because it may have what other groups lack.
        """
        space = space_for(self, "context", limits, texts=limits.items)
        chunks = chunks_of(self, "context", space, limits)
        parts = await ask_parts(self, "context", chunks, ask)
        by_passage = by_number(chunks, [part.passages for part in parts])
        ratings = tuple(_of_pieces(number, pieces) for number, pieces in enumerate(by_passage, start=1))
        return PassageRatings(ratings, min((part.missing for part in parts), key=len))


def _of_pieces(number: int, pieces: Sequence[PassageRating]) -> PassageRating:
    best = min(pieces, key=lambda piece: LEVELS.index(piece.level))
    return replace(best, passage=number, used=any(piece.used for piece in pieces))


@dataclass(frozen=True)
class PassageVerdict(NoTruthValue):
    """Whether one passage (its number, from 1) was useful for arriving at the answer."""

    passage: Annotated[int, Subject()]
    useful: Annotated[bool, YesNo(), WorstFirst()]
    reason: str = ""


FIND_USEFUL = Prompt(
    instructions="""\
You decide for each of some numbered passages whether it was useful for the answer to a user's question.

For each passage give, in this order:
- reason: in one short sentence, what it contributes, or why it contributes nothing.
- verdict:
  - "yes": it supports at least one thing in the answer that matters for the question, fully or in part.
  - "no": it does not. A passage on the same subject that the answer does not need is no.""",
    template="{{context}}\n\n{{question}}\n\n{{answer}}\n\nDecide for each passage whether it was useful.",
)


class FindUsefulPassages(VerdictPerItem[PassageVerdict]):
    """For each passage, in order: was it useful for arriving at the answer to the question?"""

    kind = "find_useful_passages"
    items = "context"
    cuts_items = True
    question: str
    answer: str
    context: tuple[str, ...]
    prompt: Prompt = FIND_USEFUL

    def of_pieces(self, verdicts: Sequence[PassageVerdict]) -> PassageVerdict:
        """A passage is useful if any piece of it is."""
        return max(verdicts, key=lambda verdict: verdict.useful)


@dataclass(frozen=True)
class PassageStatement(NoTruthValue):
    """A statement that the passages make, and whether it bears on the question."""

    statement: Annotated[str, Subject(), Quotes("context")]
    relevant: Annotated[bool, YesNo(), WorstFirst()]
    reason: str = ""


JUDGE_PASSAGE_STATEMENTS = Prompt(
    instructions="""\
You split passages into statements and decide for each whether it helps to answer a user's question. A statement is a
part of a passage that says one thing. Do not split more than makes sense.

For each statement give, in this order:
- statement: its words, copied exactly.
- reason: in one short sentence, what it contributes to an answer, or why it contributes nothing.
- verdict:
  - "yes": an answer to the question could use it: it says what is asked for, a part of it, or what is needed to
    understand it.
  - "no": an answer does not need it. The same subject is not enough: for "When was Ada born?", the statement "Ada wrote
    programs" is no.
Passages without statements get an empty list.""",
    template="{{context}}\n\n{{question}}\n\nDecide for each statement whether it helps to answer the question.",
)


class JudgePassageStatements(ListOf[PassageStatement]):
    """For each statement of the passages, in order: does it bear on the question? Empty when there is none."""

    kind = "judge_passage_statements"
    key = "verdicts"
    cut = "context"
    question: str
    context: tuple[str, ...]
    prompt: Prompt = JUDGE_PASSAGE_STATEMENTS
