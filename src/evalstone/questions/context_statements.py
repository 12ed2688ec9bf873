"""The statements that passages make, and which of them bear on a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from evalstone._core.parsing import TEXT, choice_schema, list_schema, member, object_schema, validated
from evalstone._core.prompts import Prompt
from evalstone.questions.base import Question


@dataclass(frozen=True)
class PassageStatement:
    """A statement that the passages make, and whether it bears on the question."""

    statement: str
    relevant: bool
    reason: str = ""


JUDGE_PASSAGE_STATEMENTS = Prompt(
    instructions="""\
You go through some passages statement by statement and decide for each statement whether it bears on a user's question.
A statement is a part of a passage that says one thing; take its words, and do not divide further than sense allows.

For each statement give, in this order:
- reason: in one short sentence, what it contributes to an answer, or why it contributes nothing.
- statement: its words.
- verdict:
  - "yes": an answer to the question could use it: it states what is asked for, a part of it, or what is needed to
    understand it.
  - "no": an answer would not need it. On the same subject but not on what was asked is no: to "when was Ada born?",
    "Ada wrote programs" is no.
Passages without any statement give an empty list.

Reply with a JSON object: {"verdicts": [{"reason": "…", "statement": "…", "verdict": "yes"}, …]}""",
    template="{{context}}\n\n{{question}}\n\nDecide for each statement whether it bears on the question.",
)


@dataclass(frozen=True)
class _StatementReply:
    reason: str
    statement: str
    verdict: Literal["yes", "no"]


@dataclass(frozen=True)
class JudgePassageStatements(Question[tuple[PassageStatement, ...]]):
    """For each statement of the passages, in order: does it bear on the question? Empty when there is none."""

    kind: ClassVar[str] = "judge_passage_statements"

    question: str
    context: tuple[str, ...]
    prompt: Prompt = JUDGE_PASSAGE_STATEMENTS

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        item = object_schema({"reason": TEXT, "statement": TEXT, "verdict": choice_schema(["yes", "no"])})
        return object_schema({"verdicts": list_schema(item)})

    def interpret(self, data: Any) -> tuple[PassageStatement, ...]:
        replies = validated(list[_StatementReply], member(data, "verdicts"), "verdicts")
        return tuple(PassageStatement(reply.statement, reply.verdict == "yes", reply.reason) for reply in replies)

    def example(self) -> Any:
        length = sum(len(passage) for passage in self.context)
        item = {
            "reason": "It states the year that is asked for.",
            "statement": "Ada was born in 1815.",
            "verdict": "yes",
        }
        return {"verdicts": [item] * max(1, length // 90)}
