"""Grades of a whole answer: one of five described numbers from 0 to 1, after the reason."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from evalstone._core.parsing import member
from evalstone._core.prompts import Prompt
from evalstone._core.truth import NoTruthValue
from evalstone.questions.base import Question
from evalstone.questions.markers import QUARTERS, Between, WorstFirst
from evalstone.questions.reply import number_in, reason_of, schema_of


@dataclass(frozen=True)
class Grade(NoTruthValue):
    """A number and the judge's reason; from 0 to 1, unless the question has another range."""

    score: Annotated[float, Between(0, 1), WorstFirst()]
    reason: str = ""


@dataclass(frozen=True)
class _AnchoredGrade(Grade):
    score: Annotated[float, Between(0, 1, QUARTERS), WorstFirst()]


class GradeAnswer(Question[Grade]):
    """One of five numbers from 0 to 1; with a custom prompt, which may describe others, any number in the range.

    A number between the five is read as it is. Anything else is a ReplyError, so the judge is asked again.
    """

    notes = "- reason: why, in one to three sentences, with the words of the material that decide."

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        is_own = self.prompt != type(self).prompt
        return schema_of(Grade if is_own else _AnchoredGrade, self)

    def from_json(self, data: Any) -> Grade:
        return Grade(float(number_in(member(data, "score"), "score")), reason_of(data))


GRADE_GROUNDING = Prompt(
    instructions="""\
You grade how closely an answer keeps to the passages that it was to be written from. The passages are the only
evidence: what you know from elsewhere does not count, even if it is right. The answer need not be complete.

- 1: the passages say everything that it asserts, or it follows from them.
- 0.75: only unimportant details are not in the passages, and nothing conflicts with them.
- 0.5: something important is in no passage.
- 0.25: most of it is in no passage, or one central statement conflicts with them.
- 0: the passages support nothing that it asserts.
An answer that asserts nothing, such as "I do not know", gets 1.""",
    template="{{context}}\n\n{{answer}}\n\nGrade how closely the answer keeps to the passages.",
)


class GradeGrounding(GradeAnswer):
    """How closely does the answer stick to the passages?"""

    kind = "grade_grounding"
    instead = "faithfulness, which reads passages in parts"
    answer: str
    context: tuple[str, ...]
    prompt: Prompt = GRADE_GROUNDING


GRADE_RELEVANCE = Prompt(
    instructions="""\
You grade how well an answer addresses a user's question. A wrong answer to the question still addresses it.

- 1: it answers everything that is asked for, and says little else.
- 0.75: it answers, with a small gap or with some text that is not about the question.
- 0.5: it answers a part, or the answer is hidden among much else.
- 0.25: it is on the subject, but does not answer.
- 0: it has nothing to do with the question, or declines to answer.""",
    template="{{question}}\n\n{{answer}}\n\nGrade how well the answer addresses the question.",
)


class GradeRelevance(GradeAnswer):
    """How well does the answer address the question?"""

    kind = "grade_relevance"
    instead = "answer_relevancy, which reads answers in parts"
    question: str
    answer: str
    prompt: Prompt = GRADE_RELEVANCE


GRADE_AGAINST_REFERENCE = Prompt(
    instructions="""\
You grade how well an answer to a user's question agrees with a reference answer, which is taken to be right whatever
you know.

- 1: it gives everything that the reference gives about the question, and nothing that conflicts with the reference or
  with itself. More detail is fine.
- 0.75: it gives the main point; a detail is missing or imprecise.
- 0.5: it gives a part, and the rest is missing.
- 0.25: it is on the subject, but the main point is wrong or missing.
- 0: it conflicts with the reference throughout, is not about the question, or declines to answer.""",
    template="{{question}}\n\n{{reference}}\n\n{{answer}}\n\nGrade how well the answer agrees with the reference.",
)


class GradeAgainstReference(GradeAnswer):
    """How well does the answer agree with the reference answer?"""

    kind = "grade_against_reference"
    instead = "factual_correctness, which reads texts in parts"
    question: str
    answer: str
    reference: str
    prompt: Prompt = GRADE_AGAINST_REFERENCE
