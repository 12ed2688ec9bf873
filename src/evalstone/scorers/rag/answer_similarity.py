"""Answer similarity: how far an answer says what a reference answer says, statement by statement.

    credit  = exact 1 + b, semantic t, partial t / 2, missing -m       b = 0.2, t = 0.8, m = 0.15
    base    = Σ over statements of the reference of credit  /  (statements · (1 + b))
    penalty = contradictions · 1  +  min(extra statements · 0.05, 0.2)
    answer similarity = base - penalty, held within 0 and 1          range [0, scale]

Higher is better. All figures can be set but the 0.2. The bonus makes exact wording the standard: an answer that says
everything in other words gets 0.8 / 1.2 = 0.67. Undefined when the reference makes no statement; a blank reference is
an error, or 0 with require_reference=False. Three judge calls, of which the first is shared with answer relevancy.
Source: @mastra/evals; its documentation leaves the cost of missing statements out of the division, its code does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evalstone.errors import ConfigError, OutcomeError
from evalstone.questions.base import Ask
from evalstone.questions.statements import MATCHES, CompareStatements, Comparison, ListStatements
from evalstone.scorers.base import Scorer, listed
from evalstone.types import Score, Skipped

MOST_FOR_EXTRA = 0.2


@dataclass(frozen=True, kw_only=True)
class AnswerSimilarity(Scorer):
    """How far the answer says what the reference says.

    semantic: credit for a statement in other words; one half of it for a part. exact_bonus: credit beyond 1 for the
    same words. missing, contradiction, extra: what each such statement costs. require_reference: whether a blank
    reference is an error; otherwise such an answer has the similarity 0.
    """

    name = "answer_similarity"
    asks = (ListStatements, ListStatements, CompareStatements)
    bands = (
        (0.9, "the same, almost word for word"),
        (0.6, "the same in other words"),
        (0.3, "a part of it is missing or wrong"),
        (0.0, "it says something else, or contradicts the reference"),
    )
    advice = (
        "Look at the contradictions first, each costs the whole score by default; then at what is missing. If other "
        "words are as good to you, set exact_bonus to 0 and semantic to 1."
    )

    semantic: float = 0.8
    exact_bonus: float = 0.2
    missing: float = 0.15
    contradiction: float = 1.0
    extra: float = 0.05
    require_reference: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.semantic <= 1:
            raise ConfigError(f"{self.name}: semantic must be in [0, 1], not {self.semantic}")
        for name in ("exact_bonus", "missing", "contradiction", "extra"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{self.name}: {name} must be a number from 0, not {getattr(self, name)}")

    async def score(self, ask: Ask, *, output: str, reference: str) -> Score | Skipped:
        if not reference.strip():
            if self.require_reference:
                raise OutcomeError(f"{self.name} needs a reference; that of the sample is blank")
            return Score(0.0, self.scale, "The reference is blank: there is nothing to be similar to.")
        said = await ask(ListStatements(answer=output))
        wanted = await ask(ListStatements(answer=reference))
        if not wanted:
            return Skipped("the reference makes no statement")
        found = await ask(CompareStatements(reference=wanted, answer=said))
        return Score(similarity(found, self) * self.scale, self.scale, _reason(found), found)


def similarity(found: Comparison, costs: AnswerSimilarity) -> float:
    """The formula above, for at least one statement of the reference."""
    best = 1 + costs.exact_bonus
    credit = {"exact": best, "semantic": costs.semantic, "partial": costs.semantic * 0.5, "missing": -costs.missing}
    total = 0.0
    for match in found.matches:
        total += credit[match.match]
    value = total / (len(found.matches) * best)
    value -= len(found.contradictions) * costs.contradiction
    value -= min(len(found.extra) * costs.extra, MOST_FOR_EXTRA)
    return max(0.0, min(1.0, value))


def _reason(found: Comparison) -> str:
    counts = ((kind, sum(m.match == kind for m in found.matches)) for kind in MATCHES)
    told = [
        f"of {len(found.matches)} statements of the reference " + ", ".join(f"{n} {kind}" for kind, n in counts if n)
    ]
    if absent := [m.statement for m in found.matches if m.match == "missing"]:
        told.append(f"missing: {listed(absent)}")
    if found.contradictions:
        told.append(f"contradicted: {listed([c.reference for c in found.contradictions])}")
    if found.extra:
        told.append(f"beyond the reference: {listed(found.extra)}")
    return "; ".join(told) + "."
