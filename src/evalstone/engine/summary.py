"""What a run's records come to, a line a scorer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evalstone.scorers import Scorer
from evalstone.stats import Interval, mean_interval
from evalstone.types import Failed, Record, Score, Skipped, total_cost


@dataclass(frozen=True)
class ScorerCard:
    """What a report needs to know of a scorer: its name, signature, scale and direction."""

    name: str
    signature: str
    scale: float
    lower_is_better: bool

    @classmethod
    def of(cls, scorer: Scorer) -> ScorerCard:
        """The card of a scorer."""
        return cls(scorer.name, scorer.signature, scorer.scale, scorer.lower_is_better)


@dataclass(frozen=True)
class ScorerSummary:
    """One scorer over a run: the mean over scored samples with its interval, and what became of the others."""

    card: ScorerCard
    interval: Interval | None
    scored: int
    skipped: int
    failed: int
    questions: int
    reused: int
    cost: float | None
    reasons: tuple[tuple[str, int], ...]

    @property
    def mean(self) -> float | None:
        """The mean over scored samples, in [0, scale]; None when none was scored."""
        return self.interval.mean if self.interval else None

    def to_dict(self) -> dict[str, Any]:
        """The summary as it stands in `summary.json`."""
        interval = self.interval
        return {
            "name": self.card.name,
            "signature": self.card.signature,
            "scale": self.card.scale,
            "lower_is_better": self.card.lower_is_better,
            "mean": interval.mean if interval else None,
            "interval": [interval.low, interval.high] if interval else None,
            "level": interval.level if interval else None,
            "scored": self.scored,
            "skipped": self.skipped,
            "failed": self.failed,
            "questions": self.questions,
            "reused": self.reused,
            "cost": self.cost,
        }


def summarize(cards: Sequence[ScorerCard], records: Iterable[Record]) -> tuple[ScorerSummary, ...]:
    """A summary for each scorer, in the order of the cards."""
    by_scorer: dict[str, list[Record]] = {card.signature: [] for card in cards}
    for record in records:
        by_scorer[record.scorer].append(record)
    return tuple(_summary(card, by_scorer[card.signature]) for card in cards)


def _summary(card: ScorerCard, records: Sequence[Record]) -> ScorerSummary:
    values = [r.outcome.value for r in records if isinstance(r.outcome, Score)]
    steps = [step for record in records for step in record.steps]
    reasons: dict[str, int] = {}
    for record in records:
        if isinstance(record.outcome, Skipped | Failed):
            told = record.outcome.reason if isinstance(record.outcome, Skipped) else record.outcome.error
            reasons[told] = reasons.get(told, 0) + 1
    return ScorerSummary(
        card=card,
        interval=mean_interval(values, low=0.0, high=card.scale),
        scored=len(values),
        skipped=sum(isinstance(r.outcome, Skipped) for r in records),
        failed=sum(isinstance(r.outcome, Failed) for r in records),
        questions=len(steps),
        reused=sum(step.reused for step in steps),
        cost=total_cost(step.cost for step in steps),
        reasons=tuple(sorted(reasons.items(), key=lambda item: -item[1])[:5]),
    )
