"""Statistics of a calibration: fitted threshold and mapping, the judge against the labels, agreement of annotators."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from evalstone.errors import ConfigError, unknown
from evalstone.results.calibration import Calibration, Calibrator, Threshold
from evalstone.stats.agreement import LEVELS, cohen_kappa, fleiss_kappa, gwet_ac1, krippendorff_alpha
from evalstone.stats.calibration import (
    Bin,
    Fit,
    Recalibration,
    best_threshold,
    brier_score,
    cross_validated,
    cross_validated_threshold,
    expected_calibration_error,
    folds,
    isotonic,
    platt,
    reliability,
)
from evalstone.stats.classification import MEASURES, Confusion, auroc
from evalstone.stats.intervals import Interval, wilson_interval

CALIBRATORS: Mapping[str, Fit] = {"platt": platt, "isotonic": isotonic}
FOLDS = 5


def check_names(objective: str, calibrator: str) -> None:
    """Check the names of an objective and a calibrator.

    Raises:
        ConfigError: a name is unknown.
    """
    if objective not in MEASURES:
        raise ConfigError(unknown("objective", objective, MEASURES))
    if calibrator not in get_args(Calibrator):
        raise ConfigError(unknown("calibrator", calibrator, get_args(Calibrator)))


def fit(
    calibration: Calibration, *, objective: str = "balanced_accuracy", calibrator: Calibrator = "auto"
) -> Calibration:
    """The calibration with threshold and recalibration fitted to its pairs; both stay None when all truths are equal.

    Args:
        calibration: the pairs.
        objective: the measure that the threshold maximizes, a key of MEASURES.
        calibrator: "auto" uses Platt or isotonic, whichever has the lower cross-validated Brier score. (ECE would be
            won by always predicting the base rate.)

    Raises:
        ConfigError: the objective or the calibrator is unknown.
    """
    check_names(objective, calibrator)
    scores, truths = _scores_and_truths(calibration)
    if len(set(truths)) < 2:
        return calibration
    parts = folds(truths, FOLDS)
    threshold = None
    if (best := best_threshold(scores, truths, objective)) is not None:
        checked = cross_validated_threshold(scores, truths, objective, parts) if parts else None
        threshold = Threshold(best[0] * calibration.scale, objective, best[1], checked)
    recalibration = _recalibration(scores, truths, parts, calibrator)
    return dataclasses.replace(calibration, threshold=threshold, recalibration=recalibration)


def _scores_and_truths(calibration: Calibration) -> tuple[list[float], list[bool]]:
    return [value for value, _ in calibration.decided], [truth for _, truth in calibration.decided]


def _recalibration(
    scores: Sequence[float], truths: Sequence[bool], parts: Sequence[Sequence[int]], calibrator: Calibrator
) -> Recalibration:
    if calibrator != "auto":
        return CALIBRATORS[calibrator](scores, truths)
    if not parts:
        return platt(scores, truths)
    briers = {
        name: brier_score(cross_validated(one, scores, truths, parts), truths) for name, one in CALIBRATORS.items()
    }
    return CALIBRATORS[min(briers, key=lambda name: briers[name] or 0.0)](scores, truths)


@dataclass(frozen=True)
class Verdicts:
    """The judge's verdicts at a threshold, against the labels."""

    threshold: float
    """The score from which the verdict is yes, on the scorer's scale."""
    confusion: Confusion
    """Counts of true and false positives and negatives."""
    sensitivity: Interval | None
    """True positive rate with Wilson's interval."""
    specificity: Interval | None
    """True negative rate with Wilson's interval."""
    accuracy: Interval | None
    """Share of correct verdicts with Wilson's interval."""
    kappa: Interval | None
    """Cohen's kappa with its large-sample interval."""
    measures: Mapping[str, float | None]
    """Every measure of MEASURES, None where undefined."""


@dataclass(frozen=True)
class Probabilities:
    """How well scores, taken as probabilities, match the labels."""

    ece: float
    """Expected calibration error."""
    brier: float
    """Brier score."""
    bins: tuple[Bin, ...]
    """The reliability diagram."""


@dataclass(frozen=True)
class Annotators:
    """How far the annotators agree with each other."""

    columns: int
    """The number of annotators."""
    fleiss_kappa: float | None
    """Fleiss' kappa over the samples that all annotators labeled."""
    gwet_ac1: float | None
    """Gwet's AC1."""
    alpha: Mapping[str, float | None]
    """Krippendorff's alpha by level of measurement: of the labels, nominal of the truths they give."""
    judge_kappa: tuple[Interval | None, ...]
    """Cohen's kappa of the judge with each annotator."""


@dataclass(frozen=True)
class CalibrationMeasures:
    """The judge against the labels."""

    at_default: Verdicts
    """Verdicts at the scorer's default threshold."""
    at_fitted: Verdicts | None
    """Verdicts at the fitted threshold."""
    auroc: Interval | None
    """Area under the ROC curve."""
    raw: Probabilities | None
    """The scores as probabilities, unchanged."""
    recalibrated: Mapping[str, Probabilities]
    """By calibrator, the recalibrated scores of held-out samples."""
    alpha: Mapping[str, float | None]
    """Krippendorff's alpha of the judge's scores and the mean labels."""
    mean_error: float
    """The mean of score - label, on the scorer's scale."""
    mean_absolute_error: float
    """The mean of |score - label|, on the scorer's scale."""
    annotators: Annotators | None
    """Agreement of the annotators; None where there is one column of labels."""


def measure(calibration: Calibration) -> CalibrationMeasures:
    """The measures of a calibration."""
    scores, truths = _scores_and_truths(calibration)
    pairs = calibration.pairs
    parts = folds(truths, FOLDS)
    held_out = {name: cross_validated(one, scores, truths, parts) for name, one in CALIBRATORS.items() if parts}
    recalibrated = {name: _probabilities(probabilities, truths) for name, probabilities in held_out.items()}
    threshold = calibration.threshold
    return CalibrationMeasures(
        at_default=_verdicts(calibration, calibration.default_threshold),
        at_fitted=None if threshold is None else _verdicts(calibration, threshold.value),
        auroc=auroc(scores, truths),
        raw=_probabilities(scores, truths),
        recalibrated={name: one for name, one in recalibrated.items() if one is not None},
        alpha={
            level: krippendorff_alpha([(pair.value, pair.label) for pair in pairs], level=level)
            for level in ("ordinal", "interval")
        },
        mean_error=math.fsum(pair.value - pair.label for pair in pairs) / len(pairs),
        mean_absolute_error=math.fsum(abs(pair.value - pair.label) for pair in pairs) / len(pairs),
        annotators=_annotators(calibration),
    )


def _verdicts(calibration: Calibration, threshold: float) -> Verdicts:
    pairs = [(value >= threshold / calibration.scale, truth) for value, truth in calibration.decided]
    counts = Confusion.of(pairs)
    return Verdicts(
        threshold=threshold,
        confusion=counts,
        sensitivity=wilson_interval(counts.tp, counts.positives),
        specificity=wilson_interval(counts.tn, counts.negatives),
        accuracy=wilson_interval(counts.tp + counts.tn, counts.n),
        kappa=cohen_kappa([verdict for verdict, _ in pairs], [truth for _, truth in pairs]),
        measures={name: measure(counts) for name, measure in MEASURES.items()},
    )


def _probabilities(probabilities: Sequence[float], truths: Sequence[bool]) -> Probabilities | None:
    ece, brier = expected_calibration_error(probabilities, truths), brier_score(probabilities, truths)
    if ece is None or brier is None:
        return None
    return Probabilities(ece, brier, reliability(probabilities, truths))


def _annotators(calibration: Calibration) -> Annotators | None:
    labels = [pair.labels for pair in calibration.pairs]
    columns = len(labels[0])
    if columns < 2:
        return None
    threshold = calibration.threshold.value if calibration.threshold else calibration.default_threshold
    truths = [tuple(None if label is None else label >= calibration.label_threshold for label in row) for row in labels]
    verdicts = [pair.value >= threshold for pair in calibration.pairs]
    kappas: list[Interval | None] = []
    for column in range(columns):
        both = [
            (verdict, row[column]) for verdict, row in zip(verdicts, truths, strict=True) if row[column] is not None
        ]
        kappas.append(cohen_kappa([verdict for verdict, _ in both], [truth for _, truth in both]))
    return Annotators(
        columns=columns,
        fleiss_kappa=fleiss_kappa([row for row in truths if None not in row]),
        gwet_ac1=gwet_ac1(truths, categories=2),
        alpha={level: krippendorff_alpha(truths if level == "nominal" else labels, level=level) for level in LEVELS},
        judge_kappa=tuple(kappas),
    )
