"""Calibrations: a judge's scores compared with human labels, with a fitted threshold and recalibration."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

from evalstone._core.display import count
from evalstone._core.json import to_jsonable
from evalstone._core.validation import read_data
from evalstone.errors import ConfigError, DataError, unknown
from evalstone.results.agreement_slices import SliceAgreement, agreement_by_slice
from evalstone.stats.agreement import LEVELS, WEIGHTS, cohen_kappa, krippendorff_alpha
from evalstone.stats.calibration import (
    Bin,
    Fit,
    Isotonic,
    Platt,
    Recalibration,
    best_threshold,
    brier_score,
    counts_on_new_cases,
    cross_validated,
    expected_calibration_error,
    folds,
    isotonic,
    platt,
    reliability,
)
from evalstone.stats.classification import MEASURES, Confusion, auroc, measure_intervals
from evalstone.stats.intervals import Interval, mean_interval, proportion_interval
from evalstone.types import TOLERANCE, reaches

CALIBRATION_FORMAT = 1
FOLDS = 5
CALIBRATORS: Mapping[str, Fit] = {"platt": platt, "isotonic": isotonic}

Calibrator: TypeAlias = Literal["auto", "platt", "isotonic"]
"""The mapping from scores to probabilities: Platt's logistic curve, isotonic regression, or the better of the two."""


@dataclass(frozen=True)
class LabeledScore:
    """The judge's score and the human labels of one sample, on the scorer's scale."""

    sample: str
    """The sample's id."""
    value: float
    """The judge's score."""
    labels: tuple[float | None, ...]
    """One label per annotator, None if missing; at least one is present."""
    slices: Mapping[str, str] = field(default_factory=dict[str, str])
    """The sample's value of each field in `slice_by`."""

    @property
    def label(self) -> float:
        """The mean of the labels: the human score."""
        present = [label for label in self.labels if label is not None]
        return math.fsum(present) / len(present)

    def truth(self, label_threshold: float, scale: float = 1.0) -> bool | None:
        """Whether most labels reach the threshold; None for a tie."""
        votes = [reaches(label, label_threshold, scale) for label in self.labels if label is not None]
        return None if 2 * sum(votes) == len(votes) else 2 * sum(votes) > len(votes)


@dataclass(frozen=True)
class Threshold:
    """The score from which a sample counts as yes, fitted to labels."""

    value: float
    """The threshold, on the scorer's scale."""
    objective: str
    """The measure it maximizes, such as "balanced_accuracy"."""
    in_sample: float
    """The measure on the samples the threshold was fitted to; optimistic."""
    on_new: Confusion | None
    """The confusion counts to expect on as many new samples; None with fewer than two positives or two negatives."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """One judge and one scorer, compared with human labels."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"allow_inf_nan": False}

    judge: str
    """The judge's identity."""
    scorer: str
    """The scorer's signature."""
    name: str
    """The scorer's name."""
    scale: float
    """Scores lie in [0, scale]."""
    lower_is_better: bool
    """Whether a lower score is better."""
    default_threshold: float
    """The score from which a sample counts as yes by default."""
    label_threshold: float
    """The label from which the truth is yes, on the scorer's scale."""
    dataset: str
    """The name of the dataset."""
    version: str
    """The version of the dataset."""
    pairs: tuple[LabeledScore, ...]
    """The labeled samples with a score."""
    skipped: int = 0
    """Labeled samples that were skipped."""
    failed: int = 0
    """Labeled samples that failed."""
    stop_reason: str = ""
    """Why the run stopped early; "" when it completed."""
    columns: tuple[str, ...] = ()
    """The columns of labels."""
    words: Mapping[str, float] = field(default_factory=dict[str, float])
    """The value in [0, 1] that each label word was read as."""
    threshold: Threshold | None = None
    """The fitted threshold; None if all truths are the same."""
    recalibration: Recalibration | None = None
    """The fitted mapping from score / scale to the probability of yes; None if all truths are the same."""
    created: str = ""
    """When it was created, in UTC (ISO 8601)."""
    labels: str = ""
    """The name of the labels' file, or "in memory"."""
    labels_id: str = ""
    """A hash of the labels' location and columns, and of whether reasoning was kept. Calibrations with different ones
    are stored side by side."""
    keeps_reasoning: bool | None = None
    """Whether the reasoning in front of outputs was scored; None if no output has any."""

    def __post_init__(self) -> None:
        if not 0 < self.scale < math.inf:
            raise DataError(f"scale: must be above 0, not {self.scale}")
        if len({len(pair.labels) for pair in self.pairs}) != 1:
            raise DataError("pairs: need at least one, each with one label per column")
        for pair in self.pairs:
            present = [label for label in pair.labels if label is not None]
            if not present:
                raise DataError(f"sample {pair.sample!r} has no label")
            for number in (pair.value, *present):
                if not -TOLERANCE * self.scale <= number <= self.scale * (1 + TOLERANCE):
                    raise DataError(f"sample {pair.sample!r}: {number} is not in [0, {self.scale:g}]")

    @functools.cached_property
    def decided(self) -> tuple[tuple[float, bool], ...]:
        """Score / scale and truth of the samples whose annotators are not tied."""
        truths = ((pair.value / self.scale, pair.truth(self.label_threshold, self.scale)) for pair in self.pairs)
        return tuple((value, truth) for value, truth in truths if truth is not None)

    @property
    def scores_and_truths(self) -> tuple[list[float], list[bool]]:
        """`decided` as two lists."""
        return [value for value, _ in self.decided], [truth for _, truth in self.decided]

    @property
    def undecided(self) -> int:
        """Samples whose annotators are tied."""
        return len(self.pairs) - len(self.decided)

    @functools.cached_property
    def auroc(self) -> Interval | None:
        """The area under the ROC curve with its 95% interval; None without positives or without negatives."""
        return auroc(*self.scores_and_truths)

    def confusion(self, threshold: float) -> Confusion:
        """The confusion counts of the judge's verdicts at a threshold on the scorer's scale."""
        return Confusion.of((reaches(value, threshold / self.scale), truth) for value, truth in self.decided)

    @functools.cached_property
    def unusable(self) -> str:
        """Why audits and reports don't use this calibration; "" if the 95% interval of the AUROC is above 0.5."""
        area = self.auroc
        if area is None or area.low is None or area.high is None:
            return "it needs labels of both kinds, yes and no"
        if area.low > 0.5:
            return ""
        return (
            "its judge is not shown to be better than chance "
            f"(AUROC {area.mean:.3f}, 95% CI {area.low:.3f} to {area.high:.3f})"
        )

    @property
    def only_verdict(self) -> Literal["yes", "no", ""]:
        """The one verdict on all samples at the default threshold; "" if they differ, or with a single sample."""
        counts = self.confusion(self.default_threshold)
        if counts.n < 2 or 0 < counts.tp + counts.fp < counts.n:
            return ""
        return "yes" if counts.tp + counts.fp else "no"

    @property
    def flaw(self) -> str:
        """Why this calibration never replaces a flawless one: it is unusable, all its verdicts are the same, or most
        labeled samples have no score. "" if it has no flaw."""
        if self.unusable or self.only_verdict:
            return self.unusable or f"all its verdicts are {self.only_verdict}"
        missing = self.skipped + self.failed
        return "most labeled samples have no score" if missing > len(self.pairs) else ""

    def probability(self, value: float) -> float | None:
        """The probability that people say yes, for a score in [0, scale]; None if no mapping was fitted."""
        return None if self.recalibration is None else self.recalibration(value / self.scale)

    def __repr__(self) -> str:
        return f"<Calibration of {self.name} by {self.judge}: {count(len(self.pairs), 'labeled sample')}>"

    def __str__(self) -> str:
        """The agreement with people as a table."""
        from evalstone.results.quality_text import calibration_text  # noqa: PLC0415 - rarely needed

        return calibration_text(self, verdicts_at(self, self.default_threshold))

    def to_dict(self) -> dict[str, Any]:
        """The calibration with its measures as plain data; `from_dict` reads it back."""
        values = {item.name: to_jsonable(getattr(self, item.name)) for item in dataclasses.fields(self)}
        return {
            "format": CALIBRATION_FORMAT,
            **values,
            "undecided": self.undecided,
            "measures": to_jsonable(measure(self)),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calibration:
        """Create a calibration from its plain data. Its measures are not read; they are computed again.

        Raises:
            DataError: the data has another format, or a value doesn't fit its field.
        """
        if data.get("format") != CALIBRATION_FORMAT:
            raise DataError(f"calibration format {data.get('format')!r} is not {CALIBRATION_FORMAT}")
        stored: Any = data.get("recalibration")
        if stored is not None:
            isotonic = isinstance(stored, dict) and cast("dict[str, Any]", stored).get("kind") == "isotonic"
            data = {**data, "recalibration": read_data(Isotonic if isotonic else Platt, cast("object", stored))}
        return read_data(cls, data)


# ---- Fitting ----


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
    """Fit the threshold and the recalibration to the pairs. Both stay None if all truths are the same.

    Args:
        calibration: the pairs.
        objective: the measure that the threshold maximizes, a key of MEASURES.
        calibrator: "auto" uses Platt scaling or isotonic regression, whichever has the lower cross-validated Brier
            score. (By ECE, always predicting the base rate would win.)

    Returns:
        The calibration with both.

    Raises:
        ConfigError: the objective or the calibrator is unknown.
    """
    check_names(objective, calibrator)
    scores, truths = calibration.scores_and_truths
    if len(set(truths)) < 2:
        return calibration
    parts = folds(truths, FOLDS)
    threshold = None
    if (best := best_threshold(scores, truths, objective)) is not None:
        on_new = counts_on_new_cases(scores, truths, objective)
        threshold = Threshold(best[0] * calibration.scale, objective, best[1], on_new)
    recalibration = _recalibration(scores, truths, parts, calibrator)
    return dataclasses.replace(calibration, threshold=threshold, recalibration=recalibration)


def _recalibration(
    scores: Sequence[float], truths: Sequence[bool], parts: Sequence[Sequence[int]], calibrator: Calibrator
) -> Recalibration:
    if calibrator != "auto":
        return CALIBRATORS[calibrator](scores, truths)
    if not parts:
        return platt(scores, truths)
    briers = {
        name: brier_score(cross_validated(fit_one, scores, truths, parts), truths)
        for name, fit_one in CALIBRATORS.items()
    }
    return CALIBRATORS[min(briers, key=lambda name: briers[name] or 0.0)](scores, truths)


# ---- The judge against the labels ----


@dataclass(frozen=True)
class Verdicts:
    """The judge's verdicts at a threshold, against the labels."""

    threshold: float
    """The score from which the verdict is yes, on the scorer's scale."""
    confusion: Confusion
    """Counts of true and false positives and negatives."""
    measures: Mapping[str, Interval | None]
    """Every measure of MEASURES with its interval, None if undefined. At a fitted threshold, those of new samples."""


@dataclass(frozen=True)
class Probabilities:
    """How well calibrated scores are, read as probabilities."""

    ece: Interval
    """Expected calibration error."""
    brier: Interval
    """Brier score."""
    bins: tuple[Bin, ...]
    """The reliability diagram."""


@dataclass(frozen=True)
class Annotators:
    """Inter-annotator agreement."""

    columns: int
    """The number of annotators."""
    alpha: Mapping[str, Interval | None]
    """Krippendorff's alpha by level of measurement; "nominal" is of labels thresholded to yes or no."""
    judge_kappa: tuple[Interval | None, ...]
    """Cohen's kappa between the judge, at the scorer's default threshold, and each annotator."""


@dataclass(frozen=True)
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
    parts = folds(truths, FOLDS)
    held_out = {name: cross_validated(fit_one, scores, truths, parts) for name, fit_one in CALIBRATORS.items() if parts}
    recalibrated = {name: _as_probabilities(probabilities, truths) for name, probabilities in held_out.items()}
    errors, scale = [pair.value - pair.label for pair in pairs], calibration.scale
    values, labels = [pair.value for pair in pairs], [pair.label for pair in pairs]
    ordinal = len(set(labels)) > 2
    return CalibrationMeasures(
        no_information_rate=_no_information_rate(truths),
        at_default=verdicts_at(calibration, calibration.default_threshold),
        at_fitted=verdicts_at_fitted(calibration),
        auroc=calibration.auroc,
        raw=_as_probabilities(scores, truths),
        recalibrated={name: result for name, result in recalibrated.items() if result is not None},
        alpha={
            level: krippendorff_alpha(list(zip(values, labels, strict=True)), level=level)
            for level in ("ordinal", "interval")
        },
        weighted_kappa={weights: cohen_kappa(values, labels, weights=weights) for weights in WEIGHTS if ordinal},
        mean_error=mean_interval(errors, low=-scale, high=scale),
        mean_absolute_error=mean_interval([abs(error) for error in errors], low=0.0, high=scale),
        annotators=_annotators(calibration),
        slices=agreement_by_slice(calibration),
    )


def _no_information_rate(truths: Sequence[bool]) -> Interval | None:
    """The share of the more frequent truth, with its lower limit clipped to 0.5."""
    yes = sum(truths)
    share = proportion_interval(max(yes, len(truths) - yes), len(truths))
    if share is None or share.low is None:
        return share
    return dataclasses.replace(share, low=max(0.5, share.low))


def verdicts_at(calibration: Calibration, threshold: float) -> Verdicts:
    """The judge's verdicts at a threshold that was not fitted to these labels."""
    counts = calibration.confusion(threshold)
    return Verdicts(threshold, counts, measure_intervals(counts))


def verdicts_at_fitted(calibration: Calibration) -> Verdicts | None:
    """The verdicts at the fitted threshold, with the measures to expect on new samples.

    Because the correction for optimism is itself an estimate, each interval also covers the uncorrected one.
    """
    threshold = calibration.threshold
    if threshold is None:
        return None
    counts = calibration.confusion(threshold.value)
    in_sample = measure_intervals(counts)
    if threshold.on_new is None:
        return Verdicts(threshold.value, counts, dict.fromkeys(in_sample))
    expected = measure_intervals(threshold.on_new)
    return Verdicts(threshold.value, counts, {name: _union(expected[name], in_sample[name]) for name in in_sample})


def _union(expected: Interval | None, in_sample: Interval | None) -> Interval | None:
    """The expected value with an interval that covers both; None if either has no limits."""
    if expected is None or expected.low is None or expected.high is None:
        return None
    if in_sample is None or in_sample.low is None or in_sample.high is None:
        return None
    low, high = min(expected.low, in_sample.low), max(expected.high, in_sample.high)
    return dataclasses.replace(expected, low=low, high=high, method=f"{expected.method}, less optimism")


def _as_probabilities(probabilities: Sequence[float], truths: Sequence[bool]) -> Probabilities | None:
    ece = expected_calibration_error(probabilities, truths)
    squares = [(probability - truth) ** 2 for probability, truth in zip(probabilities, truths, strict=True)]
    brier = mean_interval(squares, low=0.0, high=1.0)
    if ece is None or brier is None:
        return None
    return Probabilities(ece, brier, reliability(probabilities, truths))


def _annotators(calibration: Calibration) -> Annotators | None:
    labels = [pair.labels for pair in calibration.pairs]
    columns = len(labels[0])
    if columns < 2:
        return None
    threshold, scale, cut = calibration.default_threshold, calibration.scale, calibration.label_threshold
    truths = [tuple(None if label is None else reaches(label, cut, scale) for label in row) for row in labels]
    verdicts = [reaches(pair.value, threshold, scale) for pair in calibration.pairs]
    return Annotators(
        columns=columns,
        alpha={level: krippendorff_alpha(truths if level == "nominal" else labels, level=level) for level in LEVELS},
        judge_kappa=tuple(cohen_kappa(verdicts, [row[column] for row in truths]) for column in range(columns)),
    )
