"""A calibration in pictures: scores by label, ROC curve, errors by threshold, reliability diagram."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from evalstone._core.display import count
from evalstone.report.view import Curve, CurvesChart, Figure, Mark, ReliabilityChart, SplitHistogramChart
from evalstone.stats.calibration import BINS

if TYPE_CHECKING:
    from evalstone.results.calibration import Calibration
    from evalstone.results.measures import CalibrationMeasures

MOST_POINTS = 400
"""The most points of a curve. More can't be told apart."""
DIAGRAM_TITLE = "How often people say yes at each score"


class Errors(NamedTuple):
    """The judge's errors if scores from a threshold on are yes, as shares."""

    threshold: float
    """As a share of the scale; above 1, no score is yes."""
    missed: float
    """Bad answers that pass."""
    flagged: float
    """Good answers that don't."""


def errors_by_threshold(calibration: Calibration) -> list[Errors]:
    """The errors at each threshold that makes a difference, from the lowest; empty unless there are good and bad
    answers."""
    scores, truths = calibration.scores_and_truths
    yes, no = sum(truths), len(truths) - sum(truths)
    if not yes or not no:
        return []
    ordered = sorted(zip(scores, truths, strict=True))
    false_yes, false_no = no, 0
    found: list[Errors] = []

    def add(threshold: float) -> None:
        wrong = false_yes / no, false_no / yes
        missed, flagged = reversed(wrong) if calibration.lower_is_better else wrong
        found.append(Errors(threshold, missed, flagged))

    for score, tied in groupby(ordered, key=lambda pair: pair[0]):
        add(score)
        same = [truth for _, truth in tied]
        false_no += sum(same)
        false_yes -= len(same) - sum(same)
    add(ordered[-1][0] + 1)
    return found


def calibration_figures(calibration: Calibration, measures: CalibrationMeasures) -> tuple[Figure, ...]:
    """Scores by label, ROC curve, errors by threshold and reliability diagram, as far as the labels allow them."""
    curves = (roc_chart([calibration]), threshold_chart(calibration))
    figures = (label_histograms(calibration), *curves, reliability_chart(calibration, measures))
    return tuple(figure for figure in figures if figure is not None)


def reliability_chart(calibration: Calibration, measures: CalibrationMeasures | None = None) -> ReliabilityChart:
    """The reliability diagram of a calibration's scores."""
    from evalstone.results.measures import measure  # noqa: PLC0415 - only a calibration needs its statistics

    raw = (measures or measure(calibration)).raw
    label = f"{calibration.scorer}, {calibration.judge}"
    return ReliabilityChart(label, () if raw is None else raw.bins, DIAGRAM_TITLE)


def roc_chart(calibrations: Sequence[Calibration], names: Sequence[str] = ()) -> CurvesChart | None:
    """The ROC curves of one calibration or of several, with a dot at the default threshold. names: those of several.
    None unless each has good and bad answers."""
    curves = [curve for each, name in zip(calibrations, names or [""], strict=True) if (curve := _roc(each, name))]
    if len(curves) < len(calibrations):
        return None
    areas = ", ".join(
        f"{f'{name} ' if name else ''}{each.auroc.estimate:.3f}"
        for each, name in zip(calibrations, names or [""], strict=True)
        if each.auroc is not None
    )
    return CurvesChart(
        f"ROC curve: AUROC {areas}",
        "ROC curve; dots: the scorer's threshold"
        if names
        else f"ROC curve, AUROC {areas}; dot: threshold {calibrations[0].default_threshold:.3g}",
        "share of good answers flagged",
        "share of bad answers caught",
        tuple(curves),
        diagonal=True,
    )


def _roc(calibration: Calibration, name: str) -> Curve | None:
    errors = errors_by_threshold(calibration)
    points = sorted({(each.flagged, 1 - each.missed) for each in errors})
    verdict = calibration.verdict
    if not points or verdict.missed is None or verdict.flagged is None:
        return None
    return Curve(name, tuple(_thinned(points)), (verdict.flagged.estimate, 1 - verdict.missed.estimate))


def threshold_chart(calibration: Calibration) -> CurvesChart | None:
    """The shares of missed bad answers and of flagged good ones at each threshold, with the default and the learned
    one; None unless there are good and bad answers."""
    errors = [each for each in errors_by_threshold(calibration) if each.threshold <= 1]
    if not errors:
        return None
    missed = [(each.threshold, each.missed) for each in errors]
    flagged = [(each.threshold, each.flagged) for each in errors]
    return CurvesChart(
        f"Errors by threshold; default {calibration.default_threshold:.4g}",
        "Errors at each threshold",
        "threshold",
        "share",
        (Curve("missed bad answers", _steps(missed)), Curve("flagged good answers", _steps(flagged))),
        threshold_marks(calibration),
        calibration.scale,
    )


def threshold_marks(calibration: Calibration) -> tuple[Mark, ...]:
    """The default threshold and the learned one."""
    scale, learned = calibration.scale, calibration.threshold
    marks = [Mark(calibration.default_threshold / scale, f"default {calibration.default_threshold:.3g}")]
    if learned is not None and learned.value != calibration.default_threshold:
        marks.append(Mark(learned.value / scale, f"learned {learned.value:.3g}"))
    return tuple(marks)


def label_histograms(calibration: Calibration) -> SplitHistogramChart | None:
    """The scores of good and of bad answers; None if annotators are split on every sample."""
    groups: list[tuple[str, tuple[int, ...]]] = []
    for name, truth in (
        ("good answers", not calibration.lower_is_better),
        ("bad answers", calibration.lower_is_better),
    ):
        counts = [0] * BINS
        for value, of in calibration.decided:
            if of == truth:
                counts[min(int(value * BINS), BINS - 1)] += 1
        groups.append((f"{name}: {sum(counts):,}", tuple(counts)))
    if not calibration.decided:
        return None
    return SplitHistogramChart(
        f"Scores by label: {', '.join(name for name, _ in groups)}",
        "Scores by label",
        "score of the judge",
        tuple(groups),
        threshold_marks(calibration)[:1],
        calibration.scale,
    )


def _steps(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """A line of steps: a threshold has the value of the next score above it."""
    line: list[tuple[float, float]] = []
    before = 0.0
    for at, value in _thinned(points):
        place = min(at, 1.0)
        line += [(before, value), (place, value)]
        before = place
    return tuple(dict.fromkeys(line))


def _thinned(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """At most `MOST_POINTS` points, with the first and the last."""
    step = -(-len(points) // MOST_POINTS)
    yield from points[:-1:step]
    yield points[-1]


def disagreements_text(calibration: Calibration) -> str:
    """How many samples there are on which judge and people differ."""
    found = calibration.disagreements
    missed = sum(one.error == "missed" for one in found)
    flagged = len(found) - missed
    of = count(len(calibration.decided), "sample")
    if not found:
        return f"The judge agrees with people on all of {of}."
    return (
        f"Judge and people differ on {len(found):,} of {of}: {count(missed, 'missed bad answer')} and "
        f"{count(flagged, 'flagged good answer')}."
    )
