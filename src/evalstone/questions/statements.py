"""Statements of an answer, and whether each addresses the question. Correctness is not asked here."""

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

LIST_STATEMENTS = Prompt(
    instructions="""\
You divide an answer into its statements.

A statement is a part of the answer that says one thing. Rules:
- Take the words of the answer; do not reword, add or correct.
- Do not divide further than sense allows: a list of five cities is one statement.
- An error message, a refusal or a single word is one statement.
- An empty answer has none: give an empty list.

Reply with a JSON object: {"statements": ["…", "…"]}""",
    template="{{answer}}\n\nDivide this answer into its statements.",
)


@dataclass(frozen=True)
class ListStatements(Question[tuple[str, ...]]):
    """The parts of an answer that each say one thing; empty for an empty answer."""

    kind: ClassVar[str] = "list_statements"

    answer: str
    prompt: Prompt = LIST_STATEMENTS

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        return object_schema({"statements": list_schema(TEXT)})

    def interpret(self, data: Any) -> tuple[str, ...]:
        return texts(member(data, "statements"), "statements")

    def example(self) -> Any:
        count = max(1, len(self.answer) // 90)
        return {"statements": [self.answer[i * 90 : i * 90 + 90] or "statement" for i in range(count)]}


Addressed: TypeAlias = Literal["yes", "partly", "no"]


@dataclass(frozen=True)
class StatementVerdict:
    """Whether one statement addresses the question.

    confidence: the probability in [0, 1] that the verdict is right, where the judge gives one for each statement.
    """

    statement: str
    addresses: Addressed
    reason: str = ""
    confidence: float | None = None


JUDGE_STATEMENTS = Prompt(
    instructions="""\
You decide for each of some numbered statements, all from one answer, whether it addresses the user's question. Whether
a statement is true does not matter here: a wrong answer to the question still addresses it.

For each statement give, in this order:
- reason: in one short sentence, how it bears on the question.
- verdict:
  - "yes": it answers the question or a part of it directly.
  - "partly": it bears on the question without answering it: background that the answer needs, a condition, the right
    kind of thing for another case.
  - "no": it is beside the question. On the same subject but not on what was asked is no: to "when was Ada born?", "Ada
    wrote programs" is no.

Reply with a JSON object that has one member for each statement, under its number:
{"verdicts": {"1": {"reason": "…", "verdict": "yes"}, "2": …}}""",
    template="{{question}}\n\n{{statements}}\n\nDecide for each statement whether it addresses the question.",
)


@dataclass(frozen=True)
class _AddressedReply:
    reason: str
    verdict: Addressed


@dataclass(frozen=True)
class JudgeStatements(Question[tuple[StatementVerdict, ...]]):
    """For each statement, in order: does it address the question?"""

    kind: ClassVar[str] = "judge_statements"

    question: str
    statements: tuple[str, ...]
    prompt: Prompt = JUDGE_STATEMENTS

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        item = object_schema({"reason": TEXT, "verdict": choice_schema(get_args(Addressed))})
        return object_schema({"verdicts": numbered_schema(item, len(self.statements))})

    def interpret(self, data: Any) -> tuple[StatementVerdict, ...]:
        replies = numbered(_AddressedReply, member(data, "verdicts"), len(self.statements), of="statement")
        return tuple(
            StatementVerdict(statement, reply.verdict, reply.reason)
            for statement, reply in zip(self.statements, replies, strict=True)
        )

    def example(self) -> Any:
        item = {"reason": "It answers what was asked.", "verdict": "yes"}
        return {"verdicts": {str(n): item for n in range(1, len(self.statements) + 1)}}
