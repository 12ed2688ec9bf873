"""How a run differs from another one, scorer by scorer: from a baseline, or from an earlier run of the same judge.

Of many runs that don't differ from their baseline, some look better by chance. So the p-values of all comparisons with
a baseline are corrected together: those of each run over the dataset, by each scorer (see `over_runs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from evalstone.results.compare import ScorerComparison
from evalstone.results.drift import ScorerDrift
from evalstone.stats.multiple_testing import holm

ALPHA = 1 - 0.95
"""The largest p-value of a significant difference: runs are compared at a confidence level of 95%."""


@dataclass(frozen=True)
class Difference:
    """The difference of a scorer's mean from that of the first run: the run minus the first one."""

    estimate: float
    low: float | None
    high: float | None
    p: float
    """The p-value."""
    adjusted_p: float
    """The p-value, corrected for the number of scorers."""
    n: int
    """The number of samples that the two have in common."""
    verdict: str
    """That of a comparison or of a drift."""
    adjusted_p_runs: float | None = None
    """The p-value, corrected for all comparisons with the baseline (see `over_runs`), which then decides the verdict;
    None if it is compared alone."""


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


@dataclass(frozen=True)
class Family:
    """The runs over a dataset, compared with its baseline: the comparisons that p-values are corrected for."""

    known: Mapping[str, Differences] = field(default_factory=dict[str, Differences])
    """By the ID of the run, how it differs from the baseline if the two are compared alone."""
    adjusted: Mapping[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    """By the ID of the run and the signature of the scorer, the p-value corrected for all comparisons."""
    runs: int = 0
    """The number of runs that are compared, or are to be."""
    comparisons: int = 0
    """The number of comparisons, one for each run and scorer. Of runs that are yet to be compared, the most there can
    be."""
    missing: int = 0
    """The number of runs that are yet to be compared."""

    def differences(self, run: str) -> Differences | None:
        """How a run differs from the baseline, with corrected p-values and the verdicts that they decide: above 0.05,
        a difference is inconclusive. None if that isn't known."""
        if (known := self.known.get(run)) is None:
            return None
        of: dict[str, Difference] = {}
        for scorer, found in known.of.items():
            p = self.adjusted[run, scorer]
            verdict = found.verdict if p <= ALPHA else "inconclusive"
            of[scorer] = replace(found, adjusted_p_runs=p, verdict=verdict)
        return replace(known, of=of)


def over_runs(known: Mapping[str, Differences], missing: Iterable[int] = ()) -> Family:
    """Correct p-values for all comparisons with a baseline: of each run by each scorer, with Holm's method.

    Until all runs are compared, the others count as p = 1. Whatever their p-values are, the corrected ones then become
    no larger.

    Args:
        known: How runs differ from the baseline, by their IDs.
        missing: By run that is yet to be compared, its number of scorers.
    """
    sizes = [*missing]
    places = [(run, scorer) for run, differences in known.items() for scorer in differences.of]
    adjusted = holm([*(known[run].of[scorer].p for run, scorer in places), *[1.0] * sum(sizes)])
    return Family(
        known,
        dict(zip(places, adjusted, strict=False)),
        sum(bool(differences.of) for differences in known.values()) + len(sizes),
        len(adjusted),
        len(sizes),
    )


def stored_differences(lines: Iterable[tuple[str, ScorerComparison | ScorerDrift]]) -> dict[str, Any]:
    """Differences for the head of a comparison, as JSON data. lines: with the signature of each."""
    return {
        signature: asdict(
            Difference(
                line.difference.estimate,
                line.difference.low,
                line.difference.high,
                line.p_value,
                line.adjusted_p_value,
                line.difference.n,
                line.verdict,
            )
        )
        for signature, line in lines
    }
