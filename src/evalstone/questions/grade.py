"""Grades: a number from 0 to 1 on a whole answer, with the reason given before it and every quarter described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from evalstone._core.parsing import member
from evalstone._core.prompts import Prompt
from evalstone.questions.base import Question
from evalstone.questions.reply import Between, WorstFirst, number_in, reason_of


@dataclass(frozen=True)
class Grade:
    """A number and the judge's reason for it; from 0 to 1 unless the question says otherwise."""

    score: Annotated[float, Between(0, 1), WorstFirst()]
    reason: str = ""


GRADE_FORM = """\
Reply with a JSON object, the reason first: {"reason": "…", "score": 0.75}
- reason: what decided, in one to three sentences, naming the words that did.
- score: a number from 0 to 1; values between the described ones are allowed."""


class GradeAnswer(Question[Grade]):
    """A number from 0 to 1. Anything else is a ReplyError that names the field, so that the judge is asked again."""

    def from_json(self, data: Any) -> Grade:
        return Grade(float(number_in(member(data, "score"), "score", text=True)), reason_of(data))


GRADE_GROUNDING = Prompt(
    instructions="""\
You grade how far an answer stays with the passages that it was to be written from. The passages are the only evidence:
what you know from elsewhere does not count, even where it is right. Whether the answer is complete or helpful does not
matter here.

- 1: everything it asserts is stated in the passages or follows from them.
- 0.75: only details without weight go beyond them, and none conflicts with them.
- 0.5: something of weight stands in no passage.
- 0.25: most of it stands in no passage, or one central assertion conflicts with them.
- 0: nothing of what it asserts is backed by them.
An answer that asserts nothing, such as "I do not know", goes beyond nothing: 1.

"""
    + GRADE_FORM,
    template="{{context}}\n\n{{answer}}\n\nGrade how far the answer stays with the passages.",
)


@dataclass(frozen=True)
class GradeGrounding(GradeAnswer):
    """How far does the answer stay with the passages?"""

    kind = "grade_grounding"
    instead = "faithfulness, which reads passages in parts"
    answer: str
    context: tuple[str, ...]
    prompt: Prompt = GRADE_GROUNDING


GRADE_RELEVANCE = Prompt(
    instructions="""\
You grade how well an answer addresses a user's question. Whether it is true does not matter here: a wrong answer to the
question still addresses it.

- 1: it answers all that is asked for, and little else.
- 0.75: it answers, with a small gap or with some matter beside the question.
- 0.5: it answers a part, or an answer has to be picked out of much else.
- 0.25: it stays on the subject without answering.
- 0: it has nothing to do with the question, or declines to answer.

"""
    + GRADE_FORM,
    template="{{question}}\n\n{{answer}}\n\nGrade how well the answer addresses the question.",
)


@dataclass(frozen=True)
class GradeRelevance(GradeAnswer):
    """How well does the answer address the question?"""

    kind = "grade_relevance"
    instead = "answer_relevancy, which reads answers in parts"
    question: str
    answer: str
    prompt: Prompt = GRADE_RELEVANCE


GRADE_AGAINST_REFERENCE = Prompt(
    instructions="""\
You grade how well an answer to a user's question meets a reference answer that is taken to be right.

- 1: it gives all that the reference gives on the question, and nothing that conflicts with it or with itself. More
  detail than the reference has is fine.
- 0.75: it gives the main thing; a detail is missing or imprecise.
- 0.5: it gives a part, and the rest is missing.
- 0.25: it is on the subject, but the main thing is wrong or missing.
- 0: it conflicts with the reference throughout, is beside the question, or declines to answer.
Where the reference and what you know differ, the reference decides.

"""
    + GRADE_FORM,
    template="{{question}}\n\n{{reference}}\n\n{{answer}}\n\nGrade how well the answer meets the reference.",
)


@dataclass(frozen=True)
class GradeAgainstReference(GradeAnswer):
    """How well does the answer meet the reference answer?"""

    kind = "grade_against_reference"
    instead = "factual_correctness, which reads texts in parts"
    question: str
    answer: str
    reference: str
    prompt: Prompt = GRADE_AGAINST_REFERENCE
