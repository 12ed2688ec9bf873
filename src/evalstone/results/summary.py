"""Summaries of a run's records, one per scorer: mean, confidence interval, counts, cost."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evalstone._core.text import count as count
from evalstone.stats import Interval, mean_interval
from evalstone.stats.intervals import missing_bounds
from evalstone.types import Failed, Outcome, Record, Score, Skipped, total_cost

_FINGERPRINTS = re.compile(r"(; |\()[0-9a-f]{8}(?:, [0-9a-f]{8})*\)@\d+\Z|@\d+\Z")
MAX_REASONS = 1000
TOP_REASONS = 5


@dataclass(frozen=True)
class ScorerInfo:
    """What results need to know about a scorer."""

    name: str
    """The scorer's name, such as `faithfulness`."""
    signature: str
    """Name, non-default parameters, prompt fingerprints and version; identifies the scorer in records."""
    scale: float
    """Scores lie in [0, scale]."""
    lower_is_better: bool
    """Whether a lower score is better."""

    @property
    def parameters(self) -> str:
        """The name with its non-default parameters: the signature without fingerprints and version."""
        return _FINGERPRINTS.sub(lambda match: ")" if match[1] == "; " else "", self.signature)


@dataclass(frozen=True)
class ScorerSummary:
    """One scorer's results over a run."""

    info: ScorerInfo
    """The scorer."""
    interval: Interval | None
    """The mean over scored samples with its confidence interval; None when no sample was scored."""
    scored: int
    """Samples with a score."""
    skipped: int
    """Samples for which the score is undefined."""
    failed: int
    """Samples that could not be scored because of an error."""
    questions: int
    """Judge calls, cached ones included."""
    cached: int
    """Judge calls answered from the ledger or shared with another scorer."""
    cost: float | None
    """US dollars paid; None when a price is unknown."""
    reasons: tuple[tuple[str, int], ...]
    """The most frequent reasons for skipping or failing, with their counts."""
    corrections: int = 0
    """Repeated requests after malformed replies."""
    bounds: tuple[float, float] | None = None
    """The lowest and highest possible mean if skipped and failed samples had scores; None when there are none."""

    @property
    def mean(self) -> float | None:
        """The mean over scored samples, in [0, scale]; None when no sample was scored."""
        return self.interval.mean if self.interval else None

    def to_dict(self) -> dict[str, Any]:
        """The summary as stored in `summary.json`."""
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
    builders = {info.signature: SummaryBuilder(info) for info in scorers}
    for record in records:
        builders[record.scorer].add(record)
    return tuple(builder.summary() for builder in builders.values())


class SummaryBuilder:
    """Accumulates one scorer's records into a summary; keeps values and counts, not the records."""

    def __init__(self, info: ScorerInfo) -> None:
        self.info = info
        self.values = array("d")
        self.groups = array("q")
        self._group_numbers: dict[str, int] = {}
        self.counts: Counter[type[Outcome]] = Counter()
        self.reasons: Counter[str] = Counter()
        self.questions = 0
        self.cached = 0
        self.corrections = 0
        self.cost: float | None = 0.0

    def add(self, record: Record) -> None:
        """Add a record of this scorer."""
        outcome = record.outcome
        self.counts[type(outcome)] += 1
        if isinstance(outcome, Score):
            self._add_group(record.group)
            self.values.append(outcome.value)
        else:
            reason = outcome.reason if isinstance(outcome, Skipped) else outcome.error
            if reason in self.reasons or len(self.reasons) < MAX_REASONS:
                self.reasons[reason] += 1
        steps = [leaf for step in record.steps for leaf in step.leaves()]
        self.questions += sum(step.answer is not None or step.usage.requests > 0 for step in steps)
        self.cached += sum(step.cached for step in steps)
        self.corrections += sum(max(0, step.usage.requests - 1) for step in steps)
        self.cost = total_cost((self.cost, record.cost))

    def _add_group(self, name: str | None) -> None:
        """Record the group of the next value as a number; a sample without a group gets a negative one of its own.

        Nothing is stored until the first sample names a group.
        """
        if name is not None and not self._group_numbers:
            self.groups.extend(range(-len(self.values), 0))
        if name is not None:
            self.groups.append(self._group_numbers.setdefault(name, len(self._group_numbers)))
        elif self._group_numbers:
            self.groups.append(-len(self.values) - 1)

    def summary(self) -> ScorerSummary:
        """The summary of the records so far."""
        scale, missing = self.info.scale, self.counts[Skipped] + self.counts[Failed]
        groups = self.groups if self._group_numbers else None
        limits = missing_bounds(self.values, missing, 0.0, scale) if missing else None
        return ScorerSummary(
            info=self.info,
            interval=mean_interval(self.values, low=0.0, high=scale, groups=groups),
            scored=self.counts[Score],
            skipped=self.counts[Skipped],
            failed=self.counts[Failed],
            questions=self.questions,
            cached=self.cached,
            cost=self.cost,
            reasons=tuple(self.reasons.most_common(TOP_REASONS)),
            corrections=self.corrections,
            bounds=None if limits is None else (limits.low, limits.high),
        )
