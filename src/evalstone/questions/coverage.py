"""Coverage of a text by a summary: questions about the text, and which of them the summary answers."""

from __future__ import annotations

import asyncio
import itertools
import math
from dataclasses import dataclass, replace
from typing import Annotated

from evalstone._core.prompts import Prompt
from evalstone._core.truth import NoTruthValue
from evalstone.questions.base import Ask
from evalstone.questions.items import ListOf, VerdictPerItem
from evalstone.questions.markers import Restates, Subject, WorstFirst, YesNo
from evalstone.questions.parts import chunks_of, space_for, too_long
from evalstone.types.context_limits import ContextLimits

LIST_QUESTIONS = Prompt(
    instructions="""\
You write questions that a reader of a good summary of a text must be able to answer.

Rules:
- Each question is a yes-no question, and the text answers it with yes.
- Each asks about one point that matters for the text as a whole, such as a person, an event, a time, a cause or a
  result. Do not ask about what a good summary would leave out.
- Each makes sense without the text: put names in place of pronouns.
- Use the text's words, names and numbers, in the language of the text.
- Start with what matters most, ask nothing twice, and write at most as many questions as the given limit. A short text
  needs fewer.
A text that says nothing gets an empty list.""",
    template="{{text}}\n\n{{limit}}\n\nWrite the questions that a summary of this text must answer.",
)


class ListQuestions(ListOf[str]):
    """Yes-no questions that a text answers with yes, most important first. limit: the maximum number, as text."""

    kind = "list_questions"
    key = "questions"
    source = Restates("text")
    cut = "text"
    text: str
    limit: str
    prompt: Prompt = LIST_QUESTIONS

    def typical_count(self, characters: int) -> int:
        return min(10, characters // 180)

    def most_sentences(self, limits: ContextLimits) -> float:
        return math.inf  # the limit determines the number of items, not the length of the text

    async def in_parts(self, ask: Ask, limits: ContextLimits) -> tuple[str, ...]:
        """The questions on pieces of the text. The limit is divided evenly; pieces with a share of 0 are left out."""
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
class QuestionVerdict(NoTruthValue):
    """Whether a text answers one question."""

    question: Annotated[str, Subject()]
    answered: Annotated[bool, YesNo(), WorstFirst()]
    reason: str = ""


FIND_ANSWERS = Prompt(
    instructions="""\
You decide for each of some numbered yes-no questions whether a text answers it with yes. The text is the only evidence:
what you know from elsewhere does not count.

For each question give, in this order:
- reason: in one short sentence, which words of the text answer it, or what is missing.
- verdict:
  - "yes": the text says so, in any words, or it follows from the text without other knowledge.
  - "no": the text does not say so, says the opposite, or says too little: for "Did Ada publish the notes in 1843?", the
    text "Ada published notes" is no.""",
    template="{{text}}\n\n{{questions}}\n\nDecide for each question whether the text answers it with yes.",
)


class FindAnswers(VerdictPerItem[QuestionVerdict]):
    """For each question, in order: does the text answer it with yes?"""

    kind = "find_answers"
    items = "questions"
    text: str
    questions: tuple[str, ...]
    prompt: Prompt = FIND_ANSWERS
