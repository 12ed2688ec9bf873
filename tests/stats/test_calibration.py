from __future__ import annotations

import math
import random

import pytest

from evalstone.errors import DataError
from evalstone.stats.calibration import (
    best_threshold,
    brier_score,
    cross_validated,
    cross_validated_threshold,
    expected_calibration_error,
    folds,
    reliability,
)
from evalstone.stats.recalibration import platt

Y, N = True, False


def test_bins_hold_their_lower_end_and_the_last_one_both():
    found = reliability([0.0, 0.1, 0.19, 0.95, 1.0], [N, Y, N, Y, Y])
    assert [(one.low, one.high, one.n) for one in found] == [(0.0, 0.1, 1), (0.1, 0.2, 2), (0.9, 1.0, 2)]
    assert found[1].probability == pytest.approx(0.145)
    assert found[1].share == 0.5
    assert found[1].interval is not None
    # Wilson's interval of 1 of 2: (0.25 + z²/8 ± …): 0.0945 to 0.9055
    assert found[1].interval.low == pytest.approx(0.0945, abs=1e-4)


def test_the_expected_calibration_error_by_hand():
    # bin 0.2 to 0.3: mean 0.2, share 1/2, 2 of 4 cases; bin 0.8 to 0.9: mean 0.8, share 1, 2 of 4: (0.3 + 0.2) / 2
    assert expected_calibration_error([0.2, 0.2, 0.8, 0.8], [Y, N, Y, Y]) == pytest.approx(0.25)
    assert expected_calibration_error([0.2, 0.2, 0.8, 0.8], [Y, N, Y, Y], bins=1) == pytest.approx(0.25)
    assert expected_calibration_error([0.0, 1.0], [N, Y]) == 0
    assert expected_calibration_error([], []) is None


def test_the_brier_score_by_hand():
    assert brier_score([0.5, 1.0], [Y, N]) == pytest.approx((0.25 + 1) / 2)
    assert brier_score([], []) is None


@pytest.mark.parametrize("measure", [expected_calibration_error, brier_score])
def test_what_is_no_probability_is_refused(measure: object):
    assert callable(measure)
    with pytest.raises(DataError, match=r"must be in \[0, 1\], not 1.1"):
        measure([1.1], [Y])
    with pytest.raises(DataError, match="not nan"):
        measure([math.nan], [Y])
    with pytest.raises(DataError, match="1 probabilities, 2 truths"):
        measure([0.5], [Y, N])


def test_no_bins_are_refused():
    with pytest.raises(DataError, match="bins must be 1 or more, not 0"):
        reliability([0.5], [Y], bins=0)


def test_the_best_threshold_is_the_middle_of_the_gap_that_separates():
    assert best_threshold([0.1, 0.3, 0.7, 0.9], [N, N, Y, Y], "balanced_accuracy") == (0.5, 1.0)


def test_of_equal_thresholds_the_one_with_the_widest_gap_is_taken():
    # 0.15 (gap 0.1) and 0.65 (gap 0.5) both give an accuracy of 3/4
    assert best_threshold([0.1, 0.2, 0.4, 0.9], [N, Y, N, Y], "accuracy") == (0.65, 0.75)


def test_a_threshold_that_says_yes_to_all_is_a_candidate():
    assert best_threshold([0.1, 0.2, 0.3], [Y, Y, Y], "f1") == (0.1, 1.0)
    assert best_threshold([0.1, 0.2, 0.3], [Y, Y, Y], "balanced_accuracy") is None
    assert best_threshold([], [], "f1") is None


def test_a_threshold_that_says_no_to_all_is_a_candidate_where_no_score_is_1():
    # a constant judge of a rare yes: yes to all is right once in five, no to all four times
    assert best_threshold([0.2] * 5, [Y, N, N, N, N], "accuracy") == (0.6, 0.8)
    assert best_threshold([1.0] * 5, [Y, N, N, N, N], "accuracy") == (1.0, 0.2)


def test_scores_that_only_rounding_tells_apart_are_not_parted():
    scores, truths = [0.1 + 0.2, 0.3, 0.9], [Y, N, Y]
    assert best_threshold(scores, truths, "precision") == (pytest.approx(0.6), 1.0)
    assert best_threshold(scores[:2], truths[:2], "balanced_accuracy") == (pytest.approx(0.65), 0.5)


def test_the_best_threshold_is_that_of_trying_them_all():
    draw = random.Random(3)
    for _ in range(40):
        scores = [draw.randrange(8) / 8 for _ in range(20)]
        truths = [draw.random() < score for score in scores]
        found = best_threshold(scores, truths, "f1")
        tried: list[float] = []
        for at in scores:
            verdicts = [score >= at for score in scores]
            right = sum(verdict and truth for verdict, truth in zip(verdicts, truths, strict=True))
            if sum(verdicts) + sum(truths):
                tried.append(2 * right / (sum(verdicts) + sum(truths)))
        assert found is not None
        assert found[1] == pytest.approx(max(tried))


def test_folds_part_the_cases_and_share_out_the_positives():
    truths = [True] * 10 + [False] * 30
    parts = folds(truths, 5)
    assert sorted(place for part in parts for place in part) == list(range(40))
    assert [sum(truths[place] for place in part) for part in parts] == [2] * 5
    assert parts == folds(truths, 5)


def test_there_are_fewer_folds_where_a_class_is_small_and_none_where_it_has_one_case():
    assert len(folds([True] * 3 + [False] * 30, 5)) == 3
    assert folds([True] + [False] * 30, 5) == ()
    assert folds([], 5) == ()


def test_a_held_out_probability_does_not_know_its_own_truth():
    scores, truths = [0.1, 0.2, 0.8, 0.9] * 5, [N, N, Y, Y] * 5
    parts = folds(truths, 5)
    probabilities = cross_validated(platt, scores, truths, parts)
    place = parts[0][0]
    turned = [not truth if at == place else truth for at, truth in enumerate(truths)]
    assert cross_validated(platt, scores, turned, parts)[place] == probabilities[place]
    assert all(0 < p < 1 for p in probabilities)


def test_a_cross_validated_threshold_is_worth_no_more_than_chance_on_noise():
    draw = random.Random(5)
    scores = [draw.random() for _ in range(400)]
    truths = [draw.random() < 0.5 for _ in scores]
    chosen = best_threshold(scores, truths, "balanced_accuracy")
    checked = cross_validated_threshold(scores, truths, "balanced_accuracy", folds(truths, 5))
    assert chosen is not None
    assert checked is not None
    assert checked < chosen[1]
    assert checked == pytest.approx(0.5, abs=0.06)
