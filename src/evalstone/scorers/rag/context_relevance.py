"""Context relevance: how relevant the passages are to the question, minus penalties for unused and missing information.

    base    = mean over passages of: high 1, medium 0.7, low 0.3, none 0
    unused  = 0.1 for each passage of level high that the answer did not use
    missing = 0.15 for each piece of information that no passage has, at most 0.5
    context relevance = max(0, base - unused - missing)          range [0, scale], higher is better

All weights and penalties are parameters. With an empty list of passages nothing irrelevant was retrieved: the score
is the full scale, and the reason says so. Undefined when the judge rates no passage. One judge call. Source:
@mastra/evals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalstone.errors import ConfigError
from evalstone.questions.base import Ask
from evalstone.questions.relevance import LEVELS, Level, PassageRatings, RatePassages
from evalstone.scorers.base import ContextScorer, listed, require_number
from evalstone.scorers.rag import require_passages
from evalstone.types import Score, Skipped

WEIGHTS: Mapping[Level, float] = {"high": 1.0, "medium": 0.7, "low": 0.3, "none": 0.0}


@dataclass(frozen=True, kw_only=True)
class Penalties:
    """What each unused passage of level high and each missing piece of information costs, and the latter's limit."""

    unused: float = 0.1
    missing: float = 0.15
    missing_limit: float = 0.5

    def __post_init__(self) -> None:
        require_number(self, "unused", "missing", "missing_limit")


def relevance(ratings: PassageRatings, weights: Mapping[Level, float], penalties: Penalties) -> float:
    """Mean weight of the levels, less both penalties, not below 0; for at least one rating."""
    base = sum(weights[r.level] for r in ratings.passages) / len(ratings.passages)
    unused = sum(r.level == "high" and not r.used for r in ratings.passages) * penalties.unused
    missing = min(len(ratings.missing) * penalties.missing, penalties.missing_limit)
    return max(0.0, base - unused - missing)


@dataclass(frozen=True, kw_only=True)
class ContextRelevance(ContextScorer):
    """How relevant the passages are to the question, minus penalties for unused and missing information."""

    name = "context_relevance"
    interpretation = (
        (0.8, "the passages fit the question"),
        (0.5, "useful passages among others, or something is missing"),
        (0.2, "mostly off topic"),
        (0.0, "the passages do not help with the question"),
    )
    advice = (
        "Many low or none: improve retrieval or cut passages smaller. High but unused: the model overlooks them; "
        "put them first or pass fewer. Missing information: extend the index or the query."
    )

    penalties: Penalties = field(default_factory=Penalties)
    high: float = WEIGHTS["high"]
    medium: float = WEIGHTS["medium"]
    low: float = WEIGHTS["low"]
    none: float = WEIGHTS["none"]

    def __post_init__(self) -> None:
        super().__post_init__()
        require_passages(self)
        if not isinstance(self.penalties, Penalties):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{self.name}: penalties must be Penalties or a table of them, not {self.penalties!r}")
        require_number(self, *LEVELS, high=1)

    async def score(self, ask: Ask, *, input: str, output: str, context: Sequence[str]) -> Score | Skipped:
        if not context:
            return Score(self.scale, self.scale, "No passages: nothing irrelevant was retrieved.")
        ratings = await ask(RatePassages(question=input, answer=output, context=tuple(context)))
        weights: Mapping[Level, float] = {level: getattr(self, level) for level in LEVELS}
        value = relevance(ratings, weights, self.penalties) * self.scale
        return Score(value, self.scale, self._reason(ratings), ratings)

    def _reason(self, ratings: PassageRatings) -> str:
        parts = [
            f"{level}: passage {', '.join(str(r.passage) for r in ratings.passages if r.level == level)}"
            for level in LEVELS
            if any(r.level == level for r in ratings.passages)
        ]
        used = [str(r.passage) for r in ratings.passages if r.used]
        parts.append(f"used: {', '.join(used)}" if used else "none was used")
        if unused := [str(r.passage) for r in ratings.passages if r.level == "high" and not r.used]:
            parts.append(f"-{len(unused) * self.penalties.unused:.2g} for high but unused: {', '.join(unused)}")
        if ratings.missing:
            cost = min(len(ratings.missing) * self.penalties.missing, self.penalties.missing_limit)
            parts.append(f"-{cost:.2g} for missing: {listed(ratings.missing)}")
        return "; ".join(parts) + "."
