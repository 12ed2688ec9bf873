"""Context usage: the share of the passages that the answer made use of.

    context usage = passages used / passages          range [0, scale], higher is better

Used: the answer repeats, rewords or draws on something that the passage says. Undefined without passages. One judge
call, shared with context_relevance. Source: @mastra/evals 0.13, where it is called contextual recall;
today's context_recall looks at the reference answer instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalstone.questions.base import Ask
from evalstone.questions.relevance import PassageRating, RatePassages
from evalstone.scorers.base import ContextScorer
from evalstone.types import Score, Skipped


def used_share(ratings: Sequence[PassageRating]) -> float:
    """used / all, for at least one passage."""
    return sum(r.used for r in ratings) / len(ratings)


@dataclass(frozen=True, kw_only=True)
class ContextUsage(ContextScorer):
    """How many of the passages the answer made use of."""

    name = "context_usage"
    interpretation = (
        (0.8, "nearly every passage was used"),
        (0.4, "some passages were not used"),
        (0.0, "most passages were not used"),
    )
    advice = (
        "Unused passages that are relevant were overlooked: put them first or pass fewer. Unused ones that are not "
        "relevant cost tokens: retrieve fewer or re-rank; context_relevance tells which kind they are."
    )

    async def score(self, ask: Ask, *, input: str, output: str, context: Sequence[str]) -> Score | Skipped:
        if not context:
            return Skipped("there are no passages")
        ratings = (await ask(RatePassages(question=input, answer=output, context=tuple(context)))).passages
        used = [str(r.passage) for r in ratings if r.used]
        rest = [str(r.passage) for r in ratings if not r.used]
        reason = f"used: passage {', '.join(used)}" if used else "no passage was used"
        reason += f"; not used: {', '.join(rest)}." if used and rest else "."
        return Score(used_share(ratings) * self.scale, self.scale, reason, ratings)
