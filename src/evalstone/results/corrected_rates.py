"""The share of samples that a judge says yes to, corrected by what its calibration says of its errors.

A calibration's labelled samples say how often the judge is right where people say yes (sensitivity) and where they say
no (specificity), at the threshold that the scorer has by itself: one that was chosen on those labels would flatter the
judge.
"""

from __future__ import annotations

from dataclasses import dataclass

from evalstone.errors import ConfigError
from evalstone.results.calibration.values import Calibration
from evalstone.results.run import Run
from evalstone.results.scores import scored
from evalstone.results.summary import ScorerInfo
from evalstone.stats.rogan_gladen import RoganGladenEstimate, count_correct, rogan_gladen


@dataclass(frozen=True)
class RoganGladenResult:
    """The share of samples with a score of `threshold` or more, as people would say it, beside the judge's."""

    title: str
    info: ScorerInfo
    threshold: float
    result: RoganGladenEstimate
    told: tuple[str, ...]


def corrected_share(run: Run, scorer: str, calibration: Calibration, *, level: float = 0.95) -> RoganGladenResult:
    """The share of a run's samples that reach the calibration's threshold, corrected by Rogan and Gladen's estimator.

    Raises ConfigError when the calibration is of another judge or scorer, and when no sample has a score.
    """
    line = run[scorer]
    if (calibration.judge, calibration.scorer) != (run.judge, line.info.signature):
        raise ConfigError(
            f"the calibration is of {calibration.scorer} by {calibration.judge}, the run's scores are of "
            f"{line.info.signature} by {run.judge}"
        )
    values, groups = scored(run, line.info.signature)
    at = calibration.usual / calibration.scale
    judged = [value >= at for value, _ in calibration.decided]
    right, wrong = count_correct(judged, [truth for _, truth in calibration.decided])
    passed = sum(value >= calibration.usual for value in values.values())
    result = rogan_gladen(passed, len(values), sensitivity=right, specificity=wrong, confidence=level)
    if result is None:
        raise ConfigError(f"{line.info.name} has no score to correct")
    told: list[str] = []
    if inside := sum(pair.sample in values for pair in calibration.pairs):
        told.append(f"{inside} of the labelled samples are in this run: with --labels less has to be assumed")
    if groups:
        told.append("samples of one group hang together, which these intervals do not reckon with")
    return RoganGladenResult(run.titles[line.info.signature], line.info, calibration.usual, result, tuple(told))
