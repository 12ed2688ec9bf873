"""Power analysis: how many samples are needed to detect a difference, and what a run of a given size can detect.

Two pilot runs over the same samples give the standard deviation of the differences. With one pilot run, the two runs
are assumed to have independent scores, whose differences have √2 times the standard deviation of the scores. This
overestimates the number of samples if good samples stay good and bad samples stay bad. For clustered samples, groups
are counted, with the group sizes of the pilot.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalstone._core.display import count
from evalstone._core.file_format import POWER_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd, Setting
from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError, invalid
from evalstone.report.shown import Shown
from evalstone.results.of_scorer import OfScorer, result_for
from evalstone.results.scores import group_labels, refuse_weights, scores_of
from evalstone.stats.intervals import check_number

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.results.run import Run
    from evalstone.results.summary import ScorerInfo
    from evalstone.stats.pilot import Pilot, SampleSizePlan


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
    check_number(Setting("difference"), difference)
    check_number(Setting("power"), power)
    if not (math.isfinite(difference) and difference > 0):
        raise ConfigError(invalid(Setting("difference"), "above 0", difference, f"{difference:g}"))
    if not 0 < power < 1:
        raise ConfigError(invalid(Setting("power"), "above 0 and below 1", power, f"{power:g}"))
    from evalstone.stats.pilot import plan_sample_size  # noqa: PLC0415 - numpy

    if run.columns.has_weights:
        refuse_weights(((entry.key, entry.weight) for entry in run.columns.entries()), "a plan of sample sizes")
    pilots = _single_pilot(run) if baseline is None else _paired_pilot(baseline, run, allow_mismatch)
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


@dataclass(frozen=True)
class _ScorerPilot(OfScorer):
    """What a pilot says about the differences between two runs in one scorer."""

    pilot: Pilot | None
    """None if it has too few scores."""
    varies: bool
    """Whether its scores differ."""


def _single_pilot(run: Run, *, varying: bool = False) -> Iterator[_ScorerPilot]:
    """The pilot of each scorer; with `varying`, only of those whose scores differ."""
    for info in run.scorers:
        # A score that is undefined in both runs is left out of a comparison.
        columns = _trial_means(run, info) if run.trials > 1 else _values(run, info)
        known = {value for value in columns["values"] if value is not None}
        if varying and len(known) < 2:
            continue
        from evalstone.stats.pilot import Pilot  # noqa: PLC0415 - numpy

        ends = columns["ends"] or ()
        pass_fail = {*known, *itertools.chain(*ends)} <= {0.0, info.scale}
        pilot = Pilot.of(**columns, scale=info.scale, paired=False, pass_fail=pass_fail)
        yield _ScorerPilot(title=run.titles[info.signature], info=info, pilot=pilot, varies=len(known) > 1)


def _values(run: Run, info: ScorerInfo) -> dict[str, Any]:
    """A scorer's values and groups, as arguments of `Pilot.of`. A missing score may have any value."""
    scores = scores_of(run, info.signature, "failed")
    return {"values": scores.values, "groups": scores.labels, "ends": None}


def _trial_means(run: Run, info: ScorerInfo) -> dict[str, Any]:
    """The means over the trials of each sample, as arguments of `Pilot.of`: the number of samples is planned, with the
    same number of trials each."""
    scores = scores_of(run, info.signature, "worst").by_sample
    clustered = scores.groups is not None
    scores = scores.at([row for row in range(len(scores)) if row not in scores.undefined])
    groups = scores.groups or [None] * len(scores)
    return {
        "values": scores.values,
        "groups": group_labels(scores.names, groups) if clustered else None,
        "ends": [scores.ends_of(row) for row in range(len(scores))],
    }


def _paired_pilot(a: Run, b: Run, allow_mismatch: bool) -> Iterator[_ScorerPilot]:
    from evalstone.results.comparable_runs import pair_runs  # noqa: PLC0415 - not for what one run can detect

    for pair in pair_runs(a, b, allow_mismatch=allow_mismatch, missing="worst")[0]:
        pilot = pair.pilot(pair.info.scale)
        varies = pilot is not None and pilot.deviation > 0
        yield _ScorerPilot(title=pair.title, info=pair.info, pilot=pilot, varies=varies)


def detectable_note(run: Run) -> str:
    """Sentences on the differences that a run of this size can detect.

    "" if scores are weighted; without scorers with too few scores.
    """
    if run.columns.has_weights and any(scores_of(run, each.signature).unequal_weights for each in run.scorers):
        return ""
    parts: list[str] = []
    impossible: list[str] = []
    for scores in _single_pilot(run, varying=True):
        if scores.pilot is None:
            continue
        smallest = scores.pilot.detectable()
        if smallest is None:
            impossible.append(scores.title)
        else:
            parts.append(f"{smallest:.2g} in {scores.title}")
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
