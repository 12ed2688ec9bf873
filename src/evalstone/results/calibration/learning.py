"""What labels teach: the threshold that is best by a measure, and the mapping from scores to probabilities."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import get_args

from evalstone.errors import ConfigError, unknown
from evalstone.results.calibration.values import Calibration, Method, Threshold
from evalstone.stats.calibration import (
    Fit,
    Recalibration,
    best_threshold,
    brier_score,
    cross_validated,
    cross_validated_threshold,
    folds,
    isotonic,
    platt,
)
from evalstone.stats.classification import MEASURES

FITS: Mapping[str, Fit] = {"platt": platt, "isotonic": isotonic}
FOLDS = 5


def learned(calibration: Calibration, *, maximise: str = "balanced_accuracy", method: Method = "auto") -> Calibration:
    """The calibration with threshold and recalibration learned from its pairs.

    maximise: a name of MEASURES. method: "auto" takes of Platt's curve and isotonic steps the one with the lower
    cross-validated Brier score, which unlike ECE cannot be won by always saying the base rate. Both stay None where
    the labels have only one truth. Raises ConfigError for unknown names.
    """
    check(maximise, method)
    scores, truths = scores_and_truths(calibration)
    if len(set(truths)) < 2:
        return calibration
    parts = folds(truths, FOLDS)
    found = best_threshold(scores, truths, maximise)
    threshold = None
    if found is not None:
        checked = cross_validated_threshold(scores, truths, maximise, parts) if parts else None
        threshold = Threshold(found[0] * calibration.scale, maximise, found[1], checked)
    return dataclasses.replace(
        calibration, threshold=threshold, recalibration=_recalibration(scores, truths, parts, method)
    )


def check(maximise: str, method: str) -> None:
    """Raise ConfigError for an unknown measure or way of fitting."""
    if maximise not in MEASURES:
        raise ConfigError(unknown("measure", maximise, MEASURES))
    if method not in get_args(Method):
        raise ConfigError(unknown("way of fitting", method, get_args(Method)))


def scores_and_truths(calibration: Calibration) -> tuple[list[float], list[bool]]:
    """The decided samples' scores on the scale from 0 to 1, and their truths."""
    return [value for value, _ in calibration.decided], [truth for _, truth in calibration.decided]


def held_out(calibration: Calibration, method: str) -> list[float] | None:
    """Each decided sample's probability by a mapping fitted to other samples; None with too few labels."""
    scores, truths = scores_and_truths(calibration)
    parts = folds(truths, FOLDS)
    return cross_validated(FITS[method], scores, truths, parts) if parts else None


def _recalibration(
    scores: Sequence[float], truths: Sequence[bool], parts: Sequence[Sequence[int]], method: Method
) -> Recalibration:
    if method != "auto":
        return FITS[method](scores, truths)
    if not parts:
        return platt(scores, truths)
    briers = {name: brier_score(cross_validated(fit, scores, truths, parts), truths) for name, fit in FITS.items()}
    return FITS[min(briers, key=lambda name: briers[name] or 0.0)](scores, truths)
