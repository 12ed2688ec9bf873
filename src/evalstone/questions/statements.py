"""Statements of an answer, and whether each addresses the question. Correctness is not asked here."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_args

from evalstone._core.parsing import bare
from evalstone._core.prompts import Prompt
from evalstone._core.truth import NoTruthValue
from evalstone.questions.base import Ask, Question
from evalstone.questions.items import ListOf, VerdictPerItem
from evalstone.questions.markers import Key, NotInReply, NumberedBy, Quotes, Subject, WorstFirst
from evalstone.questions.parts import ask_parts, chunks_of, space_for
from evalstone.types.context_limits import ContextLimits

LIST_STATEMENTS = Prompt(
    instructions="""\
You split an answer into its statements.

A statement is a part of the answer that says one thing. Rules:
- Copy the words of the answer exactly. Do not reword, add or correct.
- Do not split more than makes sense: a list of five cities is one statement.
- An error message, a refusal or a single word is one statement.
An empty answer gets an empty list.""",
    template="{{answer}}\n\nSplit this answer into its statements.",
)


class ListStatements(ListOf[str]):
    """The parts of an answer that each say one thing, in its words; empty for an empty answer."""

    kind = "list_statements"
    key = "statements"
    source = Quotes("answer")
    cut = "answer"
    answer: str
    prompt: Prompt = LIST_STATEMENTS


Addressed: TypeAlias = Literal["yes", "partly", "no"]


@dataclass(frozen=True)
class StatementVerdict(NoTruthValue):
    """Whether one statement addresses the question.

    probability: that the verdict is right, in [0, 1], if the judge returns one for each statement.
    """

    statement: Annotated[str, Subject()]
    addresses: Annotated[Addressed, Key("verdict"), WorstFirst("no", "partly", "yes")]
    reason: str = ""
    probability: Annotated[float | None, NotInReply()] = None


JUDGE_STATEMENTS = Prompt(
    instructions="""\
You decide for each numbered statement of an answer whether it addresses a user's question, true or not.

For each statement give, in this order:
- reason: how it relates, in short.
- verdict:
  - "yes": it answers at least in part, or says that it is not known.
  - "partly": it gives background or conditions for an answer.
  - "no": neither, even on the same subject.""",
    template="{{question}}\n\n{{statements}}\n\nDecide for each statement.",
    example="""\
Example. Question: "When is it open?" Statements: 1. "At nine." 2. "It has 40 rooms."
Reply: {"verdicts": {"1": {"reason": "Nine is a time.", "verdict": "yes"},
"2": {"reason": "40 rooms tell no time.", "verdict": "no"}}}""",
)


class JudgeStatements(VerdictPerItem[StatementVerdict]):
    """For each statement, in order: does it address the question?"""

    kind = "judge_statements"
    items = "statements"
    question: str
    statements: tuple[str, ...]
    prompt: Prompt = JUDGE_STATEMENTS


Match: TypeAlias = Literal["exact", "semantic", "partial", "missing"]
MATCHES: tuple[Match, ...] = get_args(Match)


@dataclass(frozen=True)
class StatementMatch(NoTruthValue):
    """How well the answer matches one statement of the reference, and its words; empty if it is missing."""

    statement: Annotated[str, Subject()]
    match: Annotated[Match, WorstFirst(*reversed(MATCHES))]
    answer: Annotated[str, Quotes("answer", needed_for=("exact", "semantic", "partial"))] = ""
    reason: str = ""


@dataclass(frozen=True)
class Contradiction(NoTruthValue):
    """A statement of the answer that contradicts the reference."""

    reason: str
    answer: Annotated[str, Quotes("answer")]
    reference: Annotated[str, Quotes("reference")]


@dataclass(frozen=True)
class StatementComparison(NoTruthValue):
    """A match for each statement of the reference in order, extra statements, and contradictions."""

    matches: Annotated[tuple[StatementMatch, ...], NumberedBy("reference", "reference statement", "match")]
    extra: Annotated[tuple[str, ...], Quotes("answer")] = ()
    contradictions: tuple[Contradiction, ...] = ()


COMPARE_STATEMENTS = Prompt(
    instructions="""\
You compare an answer with a reference answer that is taken to be right. Both are given as numbered statements. If the
reference and what you know differ, the reference decides.

For each statement of the reference give, in this order, under "matches":
- reason: in one short sentence, what the answer says about it.
- answer: the statement of the answer that says it, word for word; an empty text if none does.
- match:
  - "exact": the answer says it in the same words, apart from case, punctuation and spelling.
  - "semantic": the answer says the same in other words: "Ada was born in 1815" and "her year of birth is 1815".
  - "partial": the answer says a part of it and leaves the rest open: "born in London" for "born in London in 1815".
  - "missing": the answer does not say it, or says it wrong. "Born in 1816" for "born in 1815" is missing; also list it
    under "contradictions".

Then give:
- extra: the statements of the answer, word for word, that the reference does not have and that do not conflict with it.
  Statements that only introduce, repeat or close are not extra.
- contradictions: one entry for each statement of the answer that cannot be true if the reference is true: the reason
  first, then the statement of the answer and that of the reference, both word for word. More detail is not a
  contradiction.""",
    template="{{reference}}\n\n{{answer}}\n\nCompare the answer with each statement of the reference.",
)


class CompareStatements(Question[StatementComparison]):
    """For each statement of the reference: does the answer say it? And what does the answer add or get wrong?"""

    kind = "compare_statements"
    reference: tuple[str, ...]
    answer: tuple[str, ...]
    prompt: Prompt = COMPARE_STATEMENTS

    def fits(self, limits: ContextLimits) -> bool:
        return len(self.reference) <= limits.items and self.within(limits.tokens)

    async def in_parts(self, ask: Ask, limits: ContextLimits) -> StatementComparison:
        """The merged comparisons with groups of the reference's statements.

        A statement counts as extra only if it is extra in every group.
        """
        space = space_for(self, "reference", limits, texts=limits.items)
        chunks = chunks_of(self, "reference", space, limits, cut=False)
        parts = await ask_parts(self, "reference", chunks, ask)
        extra = {bare(text): text for text in parts[0].extra}
        for part in parts[1:]:
            also = set(map(bare, part.extra))
            extra = {key: text for key, text in extra.items() if key in also}
        matches = tuple(match for part in parts for match in part.matches)
        return StatementComparison(
            matches, tuple(extra.values()), tuple(itertools.chain.from_iterable(part.contradictions for part in parts))
        )

    def example(self) -> Any:
        answer, reply = next(filter(str.strip, self.answer), ""), super().example()
        for match in reply["matches"].values():
            match.update(answer=answer, match="exact" if answer else "missing")
        reference = next(filter(str.strip, self.reference), "")
        conflicts = [{**conflict, "answer": answer, "reference": reference} for conflict in reply["contradictions"]]
        return {**reply, "extra": [answer] * bool(answer), "contradictions": conflicts * bool(answer and reference)}
