"""Drift of a judge: the same outputs, judged then and now.

Pin a data set of anchors, judge it, keep the results, and judge it again whenever the judge may have changed: a model
behind a name, a prompt, a version. The outputs are the same, so whatever moves is the judge.
"""

from __future__ import annotations

from dataclasses import dataclass

from evalstone.errors import ConfigError
from evalstone.results.pairing import paired
from evalstone.results.run import Run
from evalstone.results.summary import ScorerInfo
from evalstone.stats.comparison import Drift, drift


@dataclass(frozen=True)
class ScorerDrift:
    """One scorer's drift between two runs over the same anchors."""

    title: str
    info: ScorerInfo
    drift: Drift
    one_sided: int


def judge_drift(
    before: Run, now: Run, *, level: float = 0.95, tolerance: float | None = None
) -> tuple[ScorerDrift, ...]:
    """For each scorer, whether the judge's scores of the same anchors moved.

    tolerance: a mean change within it counts as none; None is a fiftieth of the scale. Judges and signatures may
    differ, for that is what may have drifted. Raises ConfigError when the anchors are not the same to the letter.
    """
    if before.version != now.version:
        told = f"{before.dataset_name} at version {before.version}, {now.dataset_name} at version {now.version}"
        raise ConfigError(f"anchors must be the same samples with the same answers, to the letter: {told}")
    made: list[ScorerDrift] = []
    for one in paired(before, now, anyway=True).scorers:
        found = drift(one.a, one.b, scale=one.info.scale, confidence=level, tolerance=tolerance)
        if found is not None:
            made.append(ScorerDrift(one.title, one.info, found, one.one_sided))
    return tuple(made)
