"""Power analysis: how many samples show a difference, from a pilot run; and what that run itself can detect.

Two pilot runs over the same samples give the spread of the differences. With one, it is taken to be that of two runs
with independent scores, √2 times the spread of the scores. That overestimates the number of samples wherever good and
bad samples stay good and bad.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError
from evalstone.results.compare import pair_runs
from evalstone.results.run import OfScorer, Run, result_for, scores_in_order
from evalstone.stats.intervals import check_number, cluster_spread, mean_of, plain_spread

if TYPE_CHECKING:
    from evalstone.stats.power import SampleSizePlan

POWER_FORMAT = 1


@dataclass(frozen=True)
class ScorerPower(OfScorer):
    """How many samples show a difference in one scorer's mean."""

    plan: SampleSizePlan
    """The number of samples, with the spread it is based on."""
    design_effect: float
    """How many times more samples clustering requires; 1 without groups."""


@dataclass(frozen=True)
class PowerAnalysis:
    """How many samples show a true difference between two runs: a sequence with one entry per scorer."""

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
    """One entry per scorer with at least two scores."""

    def __getitem__(self, scorer: str) -> ScorerPower:
        """A scorer's number of samples, by title, signature or name.

        Raises:
            ConfigError: the scorer is unknown, ambiguous, or has fewer than two scores.
        """
        return result_for(self.scorers, self.baseline or self.run, scorer)

    def __iter__(self) -> Iterator[ScorerPower]:
        return iter(self.scorers)

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


def sample_size(
    run: Run,
    difference: float = 0.03,
    *,
    baseline: Run | None = None,
    power: float = 0.8,
    confidence: float = 0.95,
    allow_mismatch: bool = False,
) -> PowerAnalysis:
    """How many samples show a true difference of means between two runs, for each scorer.

    Args:
        run: a pilot run.
        difference: the true difference to detect, on the scale of the scores.
        baseline: a second pilot run over the same samples.
        power: the probability of detecting the difference.
        confidence: of the comparison.
        allow_mismatch: accept a baseline whose judge, scorers or cases differ.

    Raises:
        ConfigError: an argument is out of range, or the runs cannot be compared.
    """
    check_number("difference", difference)
    check_number("power", power)
    if not (math.isfinite(difference) and difference > 0):
        raise ConfigError(f"the difference must be above 0, not {difference:g}")
    if not 0 < power < 1:
        raise ConfigError(f"the power must be between 0 and 1, not {power:g}")
    from evalstone.stats.power import plan_sample_size  # noqa: PLC0415 - numpy

    pilots = _single_pilot(run) if baseline is None else _paired_pilot(baseline, run, allow_mismatch)
    scorers: list[ScorerPower] = []
    for pilot in pilots:
        effect = _design_effect(pilot.values, pilot.groups)
        plan = plan_sample_size(pilot.values, difference, power=power, confidence=confidence, design_effect=effect)
        if plan is not None:
            if plan.detectable is not None and plan.detectable > pilot.info.scale:
                plan = replace(plan, detectable=None)
            scorers.append(ScorerPower(pilot.title, pilot.info, plan, effect))
    return PowerAnalysis(run, baseline, difference, power, confidence, tuple(scorers))


@dataclass(frozen=True)
class _Pilot(OfScorer):
    """Values whose spread is that of the differences between two runs."""

    values: Sequence[float]
    groups: Sequence[str] | None


def _single_pilot(run: Run) -> Iterator[_Pilot]:
    for info in run.scorers:
        values, groups = scores_in_order(run, info.signature)
        yield _Pilot(run.titles[info.signature], info, [math.sqrt(2) * value for value in values], groups)


def _paired_pilot(a: Run, b: Run, allow_mismatch: bool) -> Iterator[_Pilot]:
    for pair in pair_runs(a, b, allow_mismatch=allow_mismatch)[0]:
        differences = [after - before for before, after in zip(pair.a, pair.b, strict=True)]
        yield _Pilot(pair.title, pair.info, differences, pair.groups)


def _design_effect(values: Sequence[float], groups: Sequence[str] | None) -> float:
    if groups is None or len(set(groups)) < 2:
        return 1.0
    mean = mean_of(values)
    independent = plain_spread(values, mean).variance
    return max(1.0, cluster_spread(values, mean, groups).variance / independent) if independent else 1.0


def detectable_note(run: Run) -> str:
    """One sentence on the differences a run of this size can detect; "" where it has too few scores."""
    parts: list[str] = []
    impossible: list[str] = []
    for pilot in _single_pilot(run):
        values = pilot.values
        if len(values) < 2 or min(values) == max(values):
            continue
        from evalstone.stats.power import detectable_difference  # noqa: PLC0415 - numpy and scipy

        deviation = math.sqrt(plain_spread(values, mean_of(values)).variance * len(values))
        effect = _design_effect(values, pilot.groups)
        smallest = detectable_difference(len(values), deviation, design_effect=effect)
        if smallest is None or smallest > pilot.info.scale:
            impossible.append(pilot.title)
        else:
            parts.append(f"{smallest:.2g} in {pilot.title}")
    sentences: list[str] = []
    if parts:
        sentences.append(
            f"Minimum detectable difference: a second run over the same samples would detect {', '.join(parts)} with "
            "80% power, and usually less, since the scores of two runs are correlated."
        )
    if impossible:
        sentences.append(
            f"Minimum detectable difference in {', '.join(impossible)}: none that the scale allows. More samples are "
            "needed."
        )
    return " ".join(sentences)
