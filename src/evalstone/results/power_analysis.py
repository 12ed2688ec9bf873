"""Power analysis: how many samples are needed to detect a difference, and what a run of a given size can detect."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalstone._core.declarations import check_flags
from evalstone._core.display import count
from evalstone._core.file_format import POWER_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd, Setting
from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError, invalid
from evalstone.report.shown import Shown
from evalstone.results.of_scorer import OfScorer, result_for
from evalstone.results.run import Run, check_runs
from evalstone.results.run_pilots import paired_pilot, single_pilot
from evalstone.results.scores import refuse_weights
from evalstone.stats.intervals import check_number

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.stats.pilot import SampleSizePlan


@dataclass(frozen=True, kw_only=True)
class ScorerPower(OfScorer):
    """How many samples are needed to detect a difference in one scorer's mean."""

    plan: SampleSizePlan
    """The number of samples, with the standard deviation it is based on."""


@dataclass(frozen=True, kw_only=True)
class PowerAnalysis(Shown):
    """How many samples are needed to detect a difference between two runs: a sequence with one entry per scorer."""

    run: Run
    """The pilot run."""
    baseline: Run | None
    """The second pilot run over the same samples, or None."""
    difference: float
    """The true difference of means to detect, on the scale of the scores."""
    power: float
    """The probability of detecting it."""
    confidence: float
    """The confidence level of the comparison: 1 minus the probability of a false positive."""
    scorers: tuple[ScorerPower, ...]
    """One entry per scorer with at least two scores (groups)."""

    def __getitem__(self, scorer: str) -> ScorerPower:
        """A scorer's required number of samples, by title, signature or name.

        Raises:
            UnknownName: the scorer is unknown, ambiguous, or has fewer than two scores.
        """
        return result_for(self.scorers, self.run if self.baseline is None else self.baseline, scorer)

    def __iter__(self) -> Iterator[ScorerPower]:
        return iter(self.scorers)

    def __repr__(self) -> str:
        return f"<PowerAnalysis of {self.difference:g} at {self.power:.0%}: {count(len(self.scorers), 'scorer')}>"

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The number of samples for each scorer, as `evalstone power` shows it."""
        from evalstone.results.views.power import power_view  # noqa: PLC0415 - rarely needed

        return power_view(self, front_end)

    def to_dict(self) -> dict[str, Any]:
        """The analysis as plain data, as `evalstone power --json` prints it."""
        return {
            "format": POWER_FORMAT,
            "run": self.run.id,
            "baseline": None if self.baseline is None else self.baseline.id,
            "difference": self.difference,
            "power": self.power,
            "confidence": self.confidence,
            "scorers": to_jsonable(self.scorers),
        }


def power(
    run: Run,
    difference: float = 0.03,
    *,
    baseline: Run | None = None,
    power: float = 0.8,
    confidence: float = 0.95,
    allow_mismatch: bool = False,
) -> PowerAnalysis:
    """How many samples are needed to detect a true difference of means between two runs, for each scorer.

    Args:
        run: a pilot run.
        difference: the true difference to detect, on the scale of the scores; at most the smallest scale.
        baseline: a second pilot run over the same samples.
        power: the probability of detecting the difference.
        confidence: the confidence level of the comparison.
        allow_mismatch: accept a baseline whose judge, scorers or cases differ.

    Raises:
        ConfigError: an argument is out of range, the runs aren't comparable, or the samples have unequal weights.
    """
    check_flags(allow_mismatch=allow_mismatch)
    check_runs(run=run, **({} if baseline is None else {"baseline": baseline}))
    check_number(Setting("difference"), difference)
    check_number(Setting("power"), power)
    if not (math.isfinite(difference) and difference > 0):
        raise ConfigError(invalid(Setting("difference"), "above 0", difference, f"{difference:g}"))
    if not 0 < power < 1:
        raise ConfigError(invalid(Setting("power"), "above 0 and below 1", power, f"{power:g}"))
    from evalstone.stats.pilot import plan_sample_size  # noqa: PLC0415 - numpy

    if run.columns.has_weights:
        refuse_weights(((entry.key, entry.weight) for entry in run.columns.entries()), "a plan of sample sizes")
    pilots = single_pilot(run) if baseline is None else paired_pilot(baseline, run, allow_mismatch)
    scorers: list[ScorerPower] = []
    for pilot in pilots:
        if difference > pilot.info.scale:
            scale = f"{pilot.info.scale:g}, the scale of {pilot.title}"
            raise ConfigError(invalid(Setting("difference"), f"at most {scale}", difference, f"{difference:g}"))
        plan = plan_sample_size(pilot.pilot, difference, power=power, confidence=confidence)
        if plan is not None:
            scorers.append(ScorerPower(title=pilot.title, info=pilot.info, plan=plan))
    return PowerAnalysis(
        run=run, baseline=baseline, difference=difference, power=power, confidence=confidence, scorers=tuple(scorers)
    )
