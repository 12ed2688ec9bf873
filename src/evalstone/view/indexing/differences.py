"""How a run differs from another one, scorer by scorer: from a baseline, or from an earlier run of the same judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from evalstone.results.compare import ScorerComparison
from evalstone.results.drift import ScorerDrift


@dataclass(frozen=True)
class Difference:
    """The difference of a scorer's mean from that of the first run: the run minus the first one."""

    estimate: float
    low: float | None
    high: float | None
    adjusted_p: float
    """The p-value, corrected for the number of scorers."""
    n: int
    """The number of samples that the two have in common."""
    verdict: str
    """That of a comparison or of a drift."""


@dataclass(frozen=True)
class Differences:
    """How a run differs from the first one."""

    of: Mapping[str, Difference] = field(default_factory=dict[str, Difference])
    """By the signature of the scorer in the run."""
    refused: str = ""
    """Why the two can't be compared."""

    @classmethod
    def in_head(cls, head: Mapping[str, Any]) -> Differences:
        """What the stored head of a comparison of two runs says."""
        return cls({name: Difference(**each) for name, each in head["differences"].items()}, head["refused"])


def stored_differences(lines: Iterable[tuple[str, ScorerComparison | ScorerDrift]]) -> dict[str, Any]:
    """Differences for the head of a comparison, as JSON data. lines: with the signature of each."""
    return {
        signature: asdict(
            Difference(
                line.difference.estimate,
                line.difference.low,
                line.difference.high,
                line.adjusted_p_value,
                line.difference.n,
                line.verdict,
            )
        )
        for signature, line in lines
    }
