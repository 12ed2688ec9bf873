"""Context statement relevancy: the share of the statements in the passages that bear on the question.

    context statement relevancy = statements that bear on it / statements          range [0, scale], higher is better

context_relevance rates whole passages; this also sees how much of a good passage is off topic. Undefined
without passages, or when the judge finds no statement in them. One judge call.
Source: @mastra/evals 0.13 (ContextRelevancy), after deepeval's contextual relevancy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalstone.questions.base import Ask
from evalstone.questions.relevance import JudgePassageStatements, PassageStatement
from evalstone.scorers.base import ContextScorer, listed
from evalstone.types import Score, Skipped


def relevant_share(statements: Sequence[PassageStatement]) -> float:
    """relevant / all, for at least one statement."""
    return sum(s.relevant for s in statements) / len(statements)


@dataclass(frozen=True, kw_only=True)
class ContextStatementRelevancy(ContextScorer):
    """How much of what the passages say bears on the question."""

    name = "context_statement_relevancy"
    interpretation = (
        (0.7, "the passages stay on the question"),
        (0.4, "about half is off topic"),
        (0.0, "mostly off topic"),
    )
    advice = "Cut documents into smaller pieces, so that each passage contains less that is off topic; then re-rank."

    async def score(self, ask: Ask, *, input: str, context: Sequence[str]) -> Score | Skipped:
        if not context:
            return Skipped("there are no passages")
        statements = await ask(JudgePassageStatements(question=input, context=tuple(context)))
        if not statements:
            return Skipped("the judge found no statement in the passages")
        off_topic = [s.statement for s in statements if not s.relevant]
        reason = f"{len(statements) - len(off_topic)} of {len(statements)} statements bear on the question"
        reason += f"; off topic: {listed(off_topic)}." if off_topic else "."
        return Score(relevant_share(statements) * self.scale, self.scale, reason, statements)
