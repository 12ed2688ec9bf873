"""How an answer compares with a reference answer, statement by statement."""

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
    validated,
)
from evalstone._core.prompts import Prompt
from evalstone.questions.base import Question

Match: TypeAlias = Literal["exact", "semantic", "partial", "missing"]
MATCHES: tuple[Match, ...] = get_args(Match)


@dataclass(frozen=True)
class StatementMatch:
    """How well the answer says one statement of the reference, and with which words; none when it is missing."""

    statement: str
    match: Match
    answer: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Contradiction:
    """A place where the answer says something that cannot be true together with the reference."""

    reason: str
    answer: str
    reference: str


@dataclass(frozen=True)
class Comparison:
    """A match for each statement of the reference in order, what the answer has beyond it, and what conflicts."""

    matches: tuple[StatementMatch, ...]
    extra: tuple[str, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()


COMPARE_STATEMENTS = Prompt(
    instructions="""\
You compare an answer with a reference answer that is taken to be right. Both come as numbered statements.

For each statement of the reference give, in this order:
- reason: in one short sentence, what the answer says on it.
- answer: the statement of the answer that says it; an empty text when none does.
- match:
  - "exact": the answer says it in the same words, but for case, punctuation and spelling.
  - "semantic": the answer says the same in other words. "Ada was born in 1815" and "her year of birth is 1815" are
    semantic.
  - "partial": the answer says a part of it and leaves the rest open, as "born in London" does for "born in London in
    1815".
  - "missing": the answer does not say it, or gets it wrong. "Born in 1816" for "born in 1815" is missing, and also
    goes under "contradictions".

Then give:
- "extra": the statements of the answer that have no counterpart in the reference and do not conflict with it. What only
  introduces, repeats or closes is not extra.
- "contradictions": one entry for each statement of the answer that cannot be true together with the reference: the
  reason first, then the statement of the answer, then that of the reference. More detail is no contradiction.
Where the reference and what you know differ, the reference decides.

Reply with a JSON object whose "matches" have one member for each statement of the reference, under its number:
{"matches": {"1": {"reason": "…", "answer": "…", "match": "semantic"}, "2": …}, "extra": ["…"],
"contradictions": [{"reason": "…", "answer": "…", "reference": "…"}]}""",
    template="{{reference}}\n\n{{answer}}\n\nCompare the answer with each statement of the reference.",
)


@dataclass(frozen=True)
class _MatchReply:
    reason: str
    answer: str
    match: Match


@dataclass(frozen=True)
class CompareStatements(Question[Comparison]):
    """For each statement of the reference: does the answer say it? And what does the answer add or get wrong?"""

    kind: ClassVar[str] = "compare_statements"

    reference: tuple[str, ...]
    answer: tuple[str, ...]
    prompt: Prompt = COMPARE_STATEMENTS

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        match = object_schema({"reason": TEXT, "answer": TEXT, "match": choice_schema(MATCHES)})
        conflict = object_schema({"reason": TEXT, "answer": TEXT, "reference": TEXT})
        return object_schema(
            {
                "matches": numbered_schema(match, len(self.reference)),
                "extra": list_schema(TEXT),
                "contradictions": list_schema(conflict),
            }
        )

    def interpret(self, data: Any) -> Comparison:
        given = member(data, "matches")
        replies = numbered(_MatchReply, given, len(self.reference), of="reference statement", what="match")
        matches = tuple(
            StatementMatch(statement, reply.match, reply.answer, reply.reason)
            for statement, reply in zip(self.reference, replies, strict=True)
        )
        conflicts = validated(list[Contradiction], member(data, "contradictions"), "contradictions")
        return Comparison(matches, texts(member(data, "extra"), "extra"), tuple(conflicts))

    def example(self) -> Any:
        item = {"reason": "The second statement says it.", "answer": "She was born in 1815.", "match": "semantic"}
        matches = {str(number): item for number in range(1, len(self.reference) + 1)}
        return {"matches": matches, "extra": [], "contradictions": []}
