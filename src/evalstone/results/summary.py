"""What a run's records come to, a line a scorer."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evalstone.scorers import Scorer
from evalstone.stats import Interval, mean_interval
from evalstone.stats.intervals import missing_bounds
from evalstone.types import Failed, Outcome, Record, Score, Skipped, total_cost

_FINGERPRINTS = re.compile(r"(; |\()[0-9a-f]{8}(?:, [0-9a-f]{8})*\)@\d+\Z|@\d+\Z")
MOST_REASONS = 1000
SHOWN_REASONS = 5


@dataclass(frozen=True)
class ScorerInfo:
    """What a report needs to know of a scorer: its name, signature, scale and direction."""

    name: str
    signature: str
    scale: float
    lower_is_better: bool

    @classmethod
    def of(cls, scorer: Scorer) -> ScorerInfo:
        """The info of a scorer."""
        return cls(scorer.name, scorer.signature, scorer.scale, scorer.lower_is_better)

    @property
    def parameters(self) -> str:
        """The name with the changed parameters: the signature without fingerprints and version."""
        return _FINGERPRINTS.sub(lambda found: ")" if found[1] == "; " else "", self.signature)


@dataclass(frozen=True)
class ScorerSummary:
    """One scorer over a run: the mean over scored samples with its interval, and what became of the others.

    bounds: the lowest and the highest that the mean could be, were the missing scored too; None when none is missing.
    """

    info: ScorerInfo
    interval: Interval | None
    scored: int
    skipped: int
    failed: int
    questions: int
    cached: int
    cost: float | None
    reasons: tuple[tuple[str, int], ...]
    corrections: int = 0
    bounds: tuple[float, float] | None = None

    @property
    def mean(self) -> float | None:
        """The mean over scored samples, in [0, scale]; None when none was scored."""
        return self.interval.mean if self.interval else None

    def to_dict(self) -> dict[str, Any]:
        """The summary as it stands in `summary.json`."""
        interval = self.interval
        return {
            "name": self.info.name,
            "signature": self.info.signature,
            "scale": self.info.scale,
            "lower_is_better": self.info.lower_is_better,
            "mean": interval.mean if interval else None,
            "interval": [interval.low, interval.high] if interval else None,
            "level": interval.confidence if interval else None,
            "scored": self.scored,
            "skipped": self.skipped,
            "failed": self.failed,
            "bounds": None if self.bounds is None else list(self.bounds),
            "groups": interval.groups if interval else None,
            "caution": interval.caution if interval else "",
            "questions": self.questions,
            "cached": self.cached,
            "cost": self.cost,
        }


def summarize(scorers: Sequence[ScorerInfo], records: Iterable[Record]) -> tuple[ScorerSummary, ...]:
    """A summary for each scorer, in the order of the scorers, in one pass over the records."""
    tallies = {info.signature: SummaryBuilder(info) for info in scorers}
    for record in records:
        tallies[record.scorer].add(record)
    return tuple(tally.summary() for tally in tallies.values())


class SummaryBuilder:
    """What one scorer's records come to so far; nothing of them is kept but values and counts."""

    def __init__(self, info: ScorerInfo) -> None:
        self.info = info
        self.values = array("d")
        self.groups = array("q")
        self._numbers: dict[str, int] = {}
        self.counts: Counter[type[Outcome]] = Counter()
        self.reasons: Counter[str] = Counter()
        self.questions = 0
        self.cached = 0
        self.corrections = 0
        self.cost: float | None = 0.0

    def add(self, record: Record) -> None:
        """Count a record."""
        outcome = record.outcome
        self.counts[type(outcome)] += 1
        if isinstance(outcome, Score):
            self._group(record.group)
            self.values.append(outcome.value)
        else:
            told = outcome.reason if isinstance(outcome, Skipped) else outcome.error
            if told in self.reasons or len(self.reasons) < MOST_REASONS:
                self.reasons[told] += 1
        steps = [leaf for step in record.steps for leaf in step.leaves()]
        self.questions += sum(step.answer is not None or step.usage.requests > 0 for step in steps)
        self.cached += sum(step.cached for step in steps)
        self.corrections += sum(max(0, step.usage.requests - 1) for step in steps)
        self.cost = total_cost((self.cost, record.cost))

    def _group(self, name: str | None) -> None:
        """Note the group of the next value, by number; a sample without one is a group of its own, below zero.

        Nothing is kept while no sample names a group."""
        if name is not None and not self._numbers:
            self.groups.extend(range(-len(self.values), 0))
        if name is not None:
            self.groups.append(self._numbers.setdefault(name, len(self._numbers)))
        elif self._numbers:
            self.groups.append(-len(self.values) - 1)

    def summary(self) -> ScorerSummary:
        """The summary of the records so far."""
        scale, missing = self.info.scale, self.counts[Skipped] + self.counts[Failed]
        groups = self.groups if self._numbers else None
        reach = missing_bounds(self.values, missing, 0.0, scale) if missing else None
        return ScorerSummary(
            info=self.info,
            interval=mean_interval(self.values, low=0.0, high=scale, groups=groups),
            scored=self.counts[Score],
            skipped=self.counts[Skipped],
            failed=self.counts[Failed],
            questions=self.questions,
            cached=self.cached,
            cost=self.cost,
            reasons=tuple(self.reasons.most_common(SHOWN_REASONS)),
            corrections=self.corrections,
            bounds=None if reach is None else (reach.low, reach.high),
        )
