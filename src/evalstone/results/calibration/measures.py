"""What a calibration says, in numbers: the judge against the labels, the annotators against each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalstone.results.calibration.learning import FITS, held_out, scores_and_truths
from evalstone.results.calibration.values import Calibration, interval_as_data
from evalstone.stats.agreement import LEVELS, cohen_kappa, fleiss_kappa, gwet_ac1, krippendorff_alpha
from evalstone.stats.calibration import Bin, brier_score, expected_calibration_error, reliability
from evalstone.stats.classification import MEASURES, Confusion, auroc
from evalstone.stats.intervals import Interval, wilson_interval


@dataclass(frozen=True)
class Verdicts:
    """The judge's verdicts from one threshold on, against the labels.

    sensitivity, specificity, accuracy: with Wilson's intervals. kappa: Cohen's, with its large-sample interval.
    measures: every measure of MEASURES, None where undefined.
    """

    threshold: float
    confusion: Confusion
    sensitivity: Interval | None
    specificity: Interval | None
    accuracy: Interval | None
    kappa: Interval | None
    measures: Mapping[str, float | None]


@dataclass(frozen=True)
class Probabilities:
    """How far scores, taken as probabilities, are from what people say: ECE, Brier score, reliability diagram."""

    ece: float
    brier: float
    bins: tuple[Bin, ...]


@dataclass(frozen=True)
class Annotators:
    """How far the annotators agree with each other. fleiss is over samples that all of them labelled.

    alpha: Krippendorff's, by level of measurement; ordinal and interval over the labels, nominal over the truths that
    they give. each: for each column of labels, Cohen's kappa of the judge with that annotator.
    """

    columns: int
    fleiss: float | None
    ac1: float | None
    alpha: Mapping[str, float | None]
    each: tuple[Interval | None, ...]


@dataclass(frozen=True)
class Measures:
    """All of it. usual: at the scorer's own threshold. chosen: at the learned one. recalibrated: by way of fitting, on
    samples that the mapping was not fitted to. alpha: Krippendorff's of the judge's scores and the mean labels.
    error: the mean of score - label; distance: that of its size; both on the scorer's scale."""

    usual: Verdicts
    chosen: Verdicts | None
    auroc: Interval | None
    raw: Probabilities | None
    recalibrated: Mapping[str, Probabilities]
    alpha: Mapping[str, float | None]
    error: float
    distance: float
    annotators: Annotators | None


def measured(calibration: Calibration) -> Measures:
    """The measures of a calibration with at least one pair."""
    scores, truths = scores_and_truths(calibration)
    pairs = calibration.pairs
    held = {method: held_out(calibration, method) for method in FITS}
    return Measures(
        usual=verdicts(calibration, calibration.usual),
        chosen=None if calibration.threshold is None else verdicts(calibration, calibration.threshold.value),
        auroc=auroc(scores, truths),
        raw=_probabilities(scores, truths),
        recalibrated={
            method: found
            for method, probabilities in held.items()
            if probabilities is not None and (found := _probabilities(probabilities, truths)) is not None
        },
        alpha={
            level: krippendorff_alpha([(pair.value, pair.label) for pair in pairs], level=level)
            for level in ("ordinal", "interval")
        },
        error=math.fsum(pair.value - pair.label for pair in pairs) / len(pairs),
        distance=math.fsum(abs(pair.value - pair.label) for pair in pairs) / len(pairs),
        annotators=_annotators(calibration),
    )


def verdicts(calibration: Calibration, threshold: float) -> Verdicts:
    """The judge's verdicts from a threshold in [0, scale] on."""
    at = threshold / calibration.scale
    pairs = [(value >= at, truth) for value, truth in calibration.decided]
    counts = Confusion.of(pairs)
    return Verdicts(
        threshold,
        counts,
        wilson_interval(counts.tp, counts.positives),
        wilson_interval(counts.tn, counts.negatives),
        wilson_interval(counts.tp + counts.tn, counts.n),
        cohen_kappa([verdict for verdict, _ in pairs], [truth for _, truth in pairs]),
        {name: measure(counts) for name, measure in MEASURES.items()},
    )


def _probabilities(probabilities: Sequence[float], truths: Sequence[bool]) -> Probabilities | None:
    ece, brier = expected_calibration_error(probabilities, truths), brier_score(probabilities, truths)
    if ece is None or brier is None:
        return None
    return Probabilities(ece, brier, reliability(probabilities, truths))


def _annotators(calibration: Calibration) -> Annotators | None:
    """None where there is one column of labels."""
    columns = max(len(pair.labels) for pair in calibration.pairs)
    if columns < 2:
        return None
    at = calibration.threshold.value if calibration.threshold else calibration.usual
    rows = [tuple(None if label is None else label >= calibration.cut for label in p.labels) for p in calibration.pairs]
    whole = [row for row in rows if len(row) == columns and None not in row]
    judged = [pair.value >= at for pair in calibration.pairs]
    each: list[Interval | None] = []
    for column in range(columns):
        both = [(verdict, row[column]) for verdict, row in zip(judged, rows, strict=True) if row[column] is not None]
        each.append(cohen_kappa([verdict for verdict, _ in both], [truth for _, truth in both]))
    given = [pair.labels for pair in calibration.pairs]
    return Annotators(
        columns,
        fleiss_kappa(whole),
        gwet_ac1(rows, categories=2),
        {level: krippendorff_alpha(rows if level == "nominal" else given, level=level) for level in LEVELS},
        tuple(each),
    )


def measures_as_data(measures: Measures) -> dict[str, Any]:
    """The measures as plain data, intervals as [low, high] beside their estimates."""
    annotators = measures.annotators
    return {
        "usual": _verdicts_as_data(measures.usual),
        "chosen": None if measures.chosen is None else _verdicts_as_data(measures.chosen),
        "auroc": interval_as_data(measures.auroc),
        "as_it_stands": _probabilities_as_data(measures.raw),
        "recalibrated": {method: _probabilities_as_data(one) for method, one in measures.recalibrated.items()},
        "alpha": dict(measures.alpha),
        "error": measures.error,
        "distance": measures.distance,
        "annotators": None
        if annotators is None
        else {
            "columns": annotators.columns,
            "fleiss_kappa": annotators.fleiss,
            "gwet_ac1": annotators.ac1,
            "alpha": dict(annotators.alpha),
            "judge_kappa": [interval_as_data(one) for one in annotators.each],
        },
    }


def _verdicts_as_data(one: Verdicts) -> dict[str, Any]:
    intervals = {"sensitivity": one.sensitivity, "specificity": one.specificity, "accuracy": one.accuracy}
    return {
        "threshold": one.threshold,
        "confusion": dict(vars(one.confusion)),
        "measures": dict(one.measures),
        "intervals": {name: interval_as_data(found) for name, found in {**intervals, "kappa": one.kappa}.items()},
    }


def _probabilities_as_data(one: Probabilities | None) -> dict[str, Any] | None:
    if one is None:
        return None
    bins = [
        {"low": b.low, "high": b.high, "n": b.n, "probability": b.probability, "share": interval_as_data(b.interval)}
        for b in one.bins
    ]
    return {"ece": one.ece, "brier": one.brier, "bins": bins}
