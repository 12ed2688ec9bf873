"""What a text tells its reader, as questions, and which of them a summary answers."""

from __future__ import annotations

import asyncio
import itertools
import math
from dataclasses import dataclass, replace
from typing import Annotated

from evalstone._core.prompts import Prompt
from evalstone.questions.base import Ask, ListOf, VerdictPerItem
from evalstone.questions.limits import ContextLimits
from evalstone.questions.parts import chunks_of, space_for, too_long
from evalstone.questions.reply import Subject, WorstFirst, YesNo

LIST_QUESTIONS = Prompt(
    instructions="""\
You write the questions that a reader of a good summary of a text must be able to answer.

Rules:
- Each question is a yes-no question that the text answers with yes.
- Each asks for one thing that matters to the text as a whole: who, what, when, why, with what result. What a good
  summary would leave out is not asked for.
- Each is understood without the text: put names in the place of pronouns.
- Begin with what matters most, ask nothing twice, and write no more questions than the given limit; a short text needs
  fewer.
- Use the language of the text.
An empty text, or one that tells nothing, has no questions: give an empty list.

Reply with a JSON object: {"questions": ["…", "…"]}""",
    template="{{text}}\n\n{{limit}}\n\nWrite the questions that a summary of this text must answer.",
)


@dataclass(frozen=True)
class ListQuestions(ListOf[str]):
    """Yes-no questions that a text answers with yes, what matters most first. limit: how many at most, in figures."""

    kind = "list_questions"
    key = "questions"
    cut = "text"
    text: str
    limit: str
    prompt: Prompt = LIST_QUESTIONS

    def typical_count(self, characters: int) -> int:
        return min(10, characters // 180)

    def most_sentences(self, limits: ContextLimits) -> float:
        return math.inf  # the limit says how many items there are, however long the text is

    async def in_parts(self, ask: Ask, limits: ContextLimits) -> tuple[str, ...]:
        """The questions on pieces of the text. The limit is spread evenly; a piece without a share is not asked."""
        try:
            limit = int(float(self.limit))
        except (ValueError, OverflowError):
            limit = 0
        if limit < 1:
            raise too_long(self, limits)
        chunks = chunks_of(self, "text", space_for(self, "text", limits), limits)
        shares = [(n + 1) * limit // len(chunks) - n * limit // len(chunks) for n in range(len(chunks))]
        questions = (
            replace(self, text="".join(chunk.texts), limit=str(share))
            for chunk, share in zip(chunks, shares, strict=True)
            if share
        )
        return tuple(itertools.chain.from_iterable(await asyncio.gather(*map(ask, questions))))


@dataclass(frozen=True)
class QuestionVerdict:
    """Whether a text answers one question."""

    question: Annotated[str, Subject()]
    answered: Annotated[bool, YesNo(), WorstFirst()]
    reason: str = ""


FIND_ANSWERS = Prompt(
    instructions="""\
You decide for each of some numbered yes-no questions whether a text answers it with yes. The text is all that you have:
what you know from elsewhere does not count.

For each question give, in this order:
- reason: in one short sentence, which words of the text answer it, or what is wanting.
- verdict:
  - "yes": the text says it, in whatever words, or it follows from the text without further knowledge.
  - "no": the text does not say it, says the opposite, or says too little: to "did Ada publish the notes in 1843?", "Ada
    published notes" is no.

Reply with a JSON object that has one member for each question, under its number:
{"verdicts": {"1": {"reason": "…", "verdict": "yes"}, "2": …}}""",
    template="{{text}}\n\n{{questions}}\n\nDecide for each question whether the text answers it with yes.",
)


@dataclass(frozen=True)
class FindAnswers(VerdictPerItem[QuestionVerdict]):
    """For each question, in order: does the text answer it with yes?"""

    kind = "find_answers"
    items = "questions"
    text: str
    questions: tuple[str, ...]
    prompt: Prompt = FIND_ANSWERS
