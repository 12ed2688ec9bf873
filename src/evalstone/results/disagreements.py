"""Where a judge and people differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from evalstone.results.calibration import Calibration, LabeledScore

DisagreementKind: TypeAlias = Literal["missed", "flagged"]
"""A bad answer that the judge passes, or a good one that it doesn't."""


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """A sample on which the judge's verdict, at the scorer's default threshold, is not that of people."""

    pair: LabeledScore
    """The score and the labels."""
    says_yes: bool
    """Whether the judge says yes. Most people say the opposite."""
    error: DisagreementKind
    """Which error that is."""
    distance: float
    """How far the score is on the wrong side of the threshold, from 0 (at it) to 1 (at the end of the scale)."""


def disagreements_of(calibration: Calibration) -> tuple[Disagreement, ...]:
    """The disagreements of a calibration, those farthest from the threshold first."""
    threshold, scale = calibration.default_threshold, calibration.scale
    found: list[Disagreement] = []
    for pair in calibration.pairs:
        truth, verdict = pair.truth(calibration.label_threshold, scale), calibration.says_yes(pair.value)
        if truth is None or truth == verdict:
            continue
        reach = scale - threshold if verdict else threshold
        distance = abs(pair.value - threshold)
        found.append(
            Disagreement(
                pair=pair,
                says_yes=verdict,
                error="missed" if truth == calibration.lower_is_better else "flagged",
                distance=min(1.0, distance / reach) if reach > 0 else 1.0,
            )
        )
    return tuple(sorted(found, key=lambda one: -one.distance))
