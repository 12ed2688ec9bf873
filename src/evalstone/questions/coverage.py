"""What a text tells its reader, as questions, and which of them a summary answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

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
class ListQuestions(Question[tuple[str, ...]]):
    """Yes-no questions that a text answers with yes, what matters most first. limit: how many at most, in figures."""

    kind: ClassVar[str] = "list_questions"

    text: str
    limit: str
    prompt: Prompt = LIST_QUESTIONS

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        return object_schema({"questions": list_schema(TEXT)})

    def interpret(self, data: Any) -> tuple[str, ...]:
        return texts(member(data, "questions"), "questions")

    def example(self) -> Any:
        count = min(10, max(1, len(self.text) // 180))
        return {"questions": [f"Does it hold that {self.text[i * 180 : i * 180 + 60]}?" for i in range(count)]}


@dataclass(frozen=True)
class QuestionVerdict:
    """Whether a text answers one question."""

    question: str
    answered: bool
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
class _AnsweredReply:
    reason: str
    verdict: Literal["yes", "no"]


@dataclass(frozen=True)
class FindAnswers(Question[tuple[QuestionVerdict, ...]]):
    """For each question, in order: does the text answer it with yes?"""

    kind: ClassVar[str] = "find_answers"

    text: str
    questions: tuple[str, ...]
    prompt: Prompt = FIND_ANSWERS

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        item = object_schema({"reason": TEXT, "verdict": choice_schema(["yes", "no"])})
        return object_schema({"verdicts": numbered_schema(item, len(self.questions))})

    def interpret(self, data: Any) -> tuple[QuestionVerdict, ...]:
        replies = numbered(_AnsweredReply, member(data, "verdicts"), len(self.questions), of="question")
        return tuple(
            QuestionVerdict(question, reply.verdict == "yes", reply.reason)
            for question, reply in zip(self.questions, replies, strict=True)
        )

    def example(self) -> Any:
        item = {"reason": "The second sentence says so.", "verdict": "yes"}
        return {"verdicts": {str(number): item for number in range(1, len(self.questions) + 1)}}
