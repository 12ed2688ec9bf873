"""The pictures of a calibration are of its scores and labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalstone.report.view import CurvesChart, Mark
from evalstone.results.calibration import Calibration, fit
from evalstone.results.views.calibration_figures import (
    errors_by_threshold,
    label_histograms,
    roc_chart,
    threshold_chart,
)
from tests.results.test_calibration import made

PAIRS: list[tuple[float, Any]] = [(0.2, 0), (0.4, 1), (0.4, 0), (0.9, 1), (1.0, 1)]


def chart(found: CurvesChart | None) -> CurvesChart:
    assert found is not None
    return found


def test_the_errors_at_each_threshold_are_counted() -> None:
    found = [(each.threshold, each.missed, round(each.flagged, 3)) for each in errors_by_threshold(made(PAIRS))]
    assert found == [(0.2, 1, 0), (0.4, 0.5, 0), (0.9, 0, 0.333), (1.0, 0, 0.667), (2.0, 0, 1)]
    lower = replace(made(PAIRS), lower_is_better=True)
    assert [(each.flagged, round(each.missed, 3)) for each in errors_by_threshold(lower)] == [
        (missed, flagged) for _, missed, flagged in found
    ]
    assert errors_by_threshold(made([(0.5, 1), (0.7, 1)])) == []


def test_a_roc_curve_goes_through_the_dot_of_the_default_threshold() -> None:
    roc = chart(roc_chart([made(PAIRS)]))
    (curve,) = roc.curves
    assert curve.points == ((0, 0), (0, 0.5), (1 / 3, 1), (2 / 3, 1), (1, 1))
    assert curve.dot == (1 / 3, 1)
    assert roc.title == "ROC curve, AUROC 0.917; dot: threshold 0.5"
    two = chart(roc_chart([made(PAIRS), made(PAIRS)], ["a", "b"]))
    assert [each.name for each in two.curves] == ["a", "b"]
    assert roc_chart([made(PAIRS), made([(0.5, 1)])], ["a", "b"]) is None


def test_errors_by_threshold_are_steps_with_both_thresholds() -> None:
    learned = fit(
        made([(value * 10, label * 10) for value, label in PAIRS], scale=10, default_threshold=3, label_threshold=5)
    )
    shown = chart(threshold_chart(learned))
    missed, flagged = shown.curves
    assert missed.points == ((0, 1), (0.2, 1), (0.2, 0.5), (0.4, 0.5), (0.4, 0), (0.9, 0), (1, 0))
    assert flagged.points[0] == (0, 0)
    assert learned.threshold is not None
    assert shown.marks == (
        Mark(0.3, "default 3"),
        Mark(learned.threshold.value / 10, f"learned {learned.threshold.value:.3g}"),
    )
    assert (shown.scale, threshold_chart(made([(0.5, 1)]))) == (10, None)


def test_scores_are_counted_by_label() -> None:
    shown = label_histograms(made([*PAIRS, (0.5, 1)]))
    assert shown is not None
    (good, of_good), (bad, of_bad) = shown.groups
    assert (good, bad) == ("good answers: 4", "bad answers: 2")
    assert of_good == (0, 0, 0, 0, 1, 1, 0, 0, 0, 2)
    assert of_bad == (0, 0, 1, 0, 1, 0, 0, 0, 0, 0)
    tied: Calibration = made([(0.5, (1.0, 0.0))])
    assert label_histograms(tied) is None


@pytest.mark.parametrize("n", [3000])
def test_a_curve_of_many_scores_has_few_points(n: int) -> None:
    many = made([(place / n, place % 2) for place in range(n)])
    points = chart(roc_chart([many])).curves[0].points
    assert len(points) <= 401
    assert (points[0], points[-1]) == ((0, 0), (1, 1))
