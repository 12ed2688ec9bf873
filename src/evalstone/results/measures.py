"""How well a judge agrees with people: the measures of a calibration, with their confidence intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstone.results.agreement_slices import SliceAgreement, agreement_by_slice
from evalstone.stats.agreement import LEVELS, WEIGHTS, cohen_kappa, krippendorff_alpha
from evalstone.stats.calibration import (
    Bin,
    Fit,
    cross_validated,
    expected_calibration_error,
    folds,
    isotonic,
    platt,
    reliability,
)
from evalstone.stats.classification import Confusion, measure_intervals
from evalstone.stats.intervals import Interval, mean_interval
from evalstone.stats.weighted_agreement import weighted_measures, weighted_share
from evalstone.stats.weighted_mean import weighted_average
from evalstone.types import reaches

if TYPE_CHECKING:
    from evalstone.results.calibration import Calibration


# ---- The judge against the labels ----


FOLDS = 5
CALIBRATORS: Mapping[str, Fit] = {"platt": platt, "isotonic": isotonic}


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """The judge's verdicts at a threshold, against the labels."""

    threshold: float
    """The score from which the verdict is yes, on the scorer's scale."""
    confusion: Confusion
    """Counts of true and false positives and negatives."""
    measures: Mapping[str, Interval | None]
    """Every measure of MEASURES with its interval, None if undefined. At a fitted threshold, those of new samples, with
    all labels of equal weight."""


@dataclass(frozen=True, kw_only=True)
class Probabilities:
    """How well calibrated scores are, read as probabilities."""

    ece: Interval
    """Expected calibration error."""
    brier: Interval
    """Brier score."""
    bins: tuple[Bin, ...]
    """The reliability diagram."""


@dataclass(frozen=True, kw_only=True)
class Annotators:
    """Inter-annotator agreement."""

    columns: int
    """The number of annotators."""
    alpha: Mapping[str, Interval | None]
    """Krippendorff's alpha by level of measurement; "nominal" is of labels thresholded to yes or no."""
    judge_kappa: tuple[Interval | None, ...]
    """Cohen's kappa between the judge, at the scorer's default threshold, and each annotator."""


@dataclass(frozen=True, kw_only=True)
class CalibrationMeasures:
    """The judge's scores and verdicts, measured against the labels."""

    no_information_rate: Interval | None
    """The share of the more frequent truth, in [0.5, 1]: the accuracy of always giving that verdict."""
    at_default: Verdicts
    """Verdicts at the scorer's default threshold."""
    at_fitted: Verdicts | None
    """Verdicts at the fitted threshold."""
    auroc: Interval | None
    """Area under the ROC curve."""
    raw: Probabilities | None
    """The scores as probabilities, unchanged."""
    recalibrated: Mapping[str, Probabilities]
    """By calibrator, the cross-validated recalibrated scores."""
    alpha: Mapping[str, Interval | None]
    """Krippendorff's alpha between the judge's scores and the mean labels, by level of measurement."""
    weighted_kappa: Mapping[str, Interval | None]
    """Cohen's weighted kappa between the judge's scores and the mean labels, by weights; empty for binary labels."""
    mean_error: Interval | None
    """The mean of score - label, on the scorer's scale."""
    mean_absolute_error: Interval | None
    """The mean of |score - label|, on the scorer's scale."""
    annotators: Annotators | None
    """Agreement between annotators; None with one column of labels."""
    slices: tuple[SliceAgreement, ...]
    """The verdicts at the default threshold by slice; empty without `slice_by`."""


def measure(calibration: Calibration) -> CalibrationMeasures:
    """The measures of a calibration."""
    scores, truths = calibration.scores_and_truths
    pairs = calibration.pairs
    groups, decided_groups = calibration.clusters, calibration.decided_clusters
    parts = folds(truths, FOLDS, groups=decided_groups)
    held_out = {name: cross_validated(fit_one, scores, truths, parts) for name, fit_one in CALIBRATORS.items() if parts}
    recalibrated = {
        name: _as_probabilities(probabilities, truths, decided_groups) for name, probabilities in held_out.items()
    }
    errors, scale = [pair.value - pair.label for pair in pairs], calibration.scale
    values, labels = [pair.value for pair in pairs], [pair.label for pair in pairs]
    ordinal = len(set(labels)) > 2
    return CalibrationMeasures(
        no_information_rate=no_information_rate(calibration),
        at_default=verdicts_at(calibration, calibration.default_threshold),
        at_fitted=verdicts_at_fitted(calibration),
        auroc=calibration.auroc,
        raw=_as_probabilities(scores, truths, decided_groups),
        recalibrated={name: result for name, result in recalibrated.items() if result is not None},
        alpha={
            level: krippendorff_alpha(list(zip(values, labels, strict=True)), level=level, groups=groups)
            for level in ("ordinal", "interval")
        },
        weighted_kappa={
            weights: cohen_kappa(values, labels, weights=weights, groups=groups) for weights in WEIGHTS if ordinal
        },
        mean_error=mean_interval(errors, low=-scale, high=scale, groups=groups, weights=calibration.weights),
        mean_absolute_error=mean_interval(
            [abs(error) for error in errors], low=0.0, high=scale, groups=groups, weights=calibration.weights
        ),
        annotators=_annotators(calibration),
        slices=agreement_by_slice(calibration),
    )


def no_information_rate(calibration: Calibration) -> Interval | None:
    """The share of the more frequent truth, with its lower limit clipped to 0.5."""
    _, truths = calibration.scores_and_truths
    if not truths:
        return None
    weights, groups = calibration.decided_weights, calibration.decided_clusters
    likelier = weighted_average(weights, [float(truth) for truth in truths]) >= 0.5
    share = weighted_share([True] * len(truths), [truth == likelier for truth in truths], weights, groups=groups)
    if share is None or share.low is None:
        return share
    return dataclasses.replace(share, low=max(0.5, share.low))


def accuracy_at(calibration: Calibration, threshold: float) -> Interval | None:
    """The accuracy of the judge's verdicts at a threshold that was not fitted to these labels."""
    right = [reaches(score, threshold / calibration.scale) == truth for score, truth in calibration.decided]
    groups = calibration.decided_clusters
    return weighted_share([True] * len(right), right, calibration.decided_weights, groups=groups)


def verdicts_at(calibration: Calibration, threshold: float) -> Verdicts:
    """The judge's verdicts at a threshold that was not fitted to these labels."""
    counts, weights = calibration.confusion(threshold), calibration.decided_weights
    return Verdicts(threshold=threshold, confusion=counts, measures=_measures(calibration, threshold, weights))


def _measures(
    calibration: Calibration, threshold: float, weights: Sequence[float] | None
) -> Mapping[str, Interval | None]:
    groups = calibration.decided_clusters
    if weights is None and groups is None:
        return measure_intervals(calibration.confusion(threshold))
    scores, truths = calibration.scores_and_truths
    verdicts = [reaches(score, threshold / calibration.scale) for score in scores]
    return weighted_measures(verdicts, truths, weights, groups=groups)


def verdicts_at_fitted(calibration: Calibration) -> Verdicts | None:
    """The verdicts at the fitted threshold, with the measures to expect on new samples.

    Because the correction for optimism is itself an estimate, each interval also covers the uncorrected one. With
    clusters, the corrected one has the distances of the uncorrected one's limits.
    """
    threshold = calibration.threshold
    if threshold is None:
        return None
    counts = calibration.confusion(threshold.value)
    in_sample = _measures(calibration, threshold.value, None)
    if threshold.on_new is None:
        return Verdicts(threshold=threshold.value, confusion=counts, measures=dict.fromkeys(in_sample))
    expected = measure_intervals(threshold.on_new)
    if calibration.decided_clusters is not None:
        expected = {name: _moved(in_sample[name], expected[name], -float(name == "kappa")) for name in in_sample}
    return Verdicts(
        threshold=threshold.value,
        confusion=counts,
        measures={name: _union(expected[name], in_sample[name]) for name in in_sample},
    )


def _moved(interval: Interval | None, to: Interval | None, lowest: float) -> Interval | None:
    """An interval around another estimate, in [lowest, 1]."""
    if interval is None or to is None or interval.low is None or interval.high is None:
        return None
    by = to.estimate - interval.estimate
    low, high = (min(1.0, max(lowest, limit + by)) for limit in (interval.low, interval.high))
    return dataclasses.replace(interval, estimate=to.estimate, low=low, high=high)


def _union(expected: Interval | None, in_sample: Interval | None) -> Interval | None:
    """The expected value with an interval that covers both; None if either has no limits."""
    if expected is None or expected.low is None or expected.high is None:
        return None
    if in_sample is None or in_sample.low is None or in_sample.high is None:
        return None
    low, high = min(expected.low, in_sample.low), max(expected.high, in_sample.high)
    return dataclasses.replace(expected, low=low, high=high, method=f"{expected.method}, less optimism")


def _as_probabilities(
    probabilities: Sequence[float], truths: Sequence[bool], groups: Sequence[str] | None
) -> Probabilities | None:
    ece = expected_calibration_error(probabilities, truths, groups=groups)
    squares = [(probability - truth) ** 2 for probability, truth in zip(probabilities, truths, strict=True)]
    brier = mean_interval(squares, low=0.0, high=1.0, groups=groups)
    if ece is None or brier is None:
        return None
    return Probabilities(ece=ece, brier=brier, bins=reliability(probabilities, truths, groups=groups))


def _annotators(calibration: Calibration) -> Annotators | None:
    labels = [pair.labels for pair in calibration.pairs]
    columns = len(labels[0])
    if columns < 2:
        return None
    threshold, scale, cut = calibration.default_threshold, calibration.scale, calibration.label_threshold
    truths = [tuple(None if label is None else reaches(label, cut, scale) for label in row) for row in labels]
    verdicts = [reaches(pair.value, threshold, scale) for pair in calibration.pairs]
    groups = calibration.clusters
    return Annotators(
        columns=columns,
        alpha={
            level: krippendorff_alpha(truths if level == "nominal" else labels, level=level, groups=groups)
            for level in LEVELS
        },
        judge_kappa=tuple(
            cohen_kappa(verdicts, [row[column] for row in truths], groups=groups) for column in range(columns)
        ),
    )
