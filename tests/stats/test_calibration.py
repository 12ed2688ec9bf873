from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.errors import DataError
from evalstone.stats.calibration import (
    Isotonic,
    Platt,
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
from evalstone.stats.classification import Confusion
from evalstone.stats.intervals import mean_interval

Y, N = True, False


def test_bins_hold_their_lower_end_and_the_last_one_both():
    found = reliability([0.0, 0.1, 0.19, 0.95, 1.0], [N, Y, N, Y, Y])
    assert [(one.low, one.high, one.n) for one in found] == [(0.0, 0.1, 1), (0.1, 0.2, 2), (0.9, 1.0, 2)]
    assert found[1].probability == pytest.approx(0.145)
    assert found[1].share == 0.5
    assert found[1].interval is not None
    assert found[1].interval == mean_interval([0.0, 1.0], low=0, high=1)


def test_the_expected_calibration_error_by_hand():
    # bin 0.2 to 0.3: mean 0.2, share 1/2, 2 of 4 cases; bin 0.8 to 0.9: mean 0.8, share 1, 2 of 4: (0.3 + 0.2) / 2
    for bins in (10, 1):
        found = expected_calibration_error([0.2, 0.2, 0.8, 0.8], [Y, N, Y, Y], bins=bins)
        assert found is not None
        assert found.estimate == pytest.approx(0.25)
    assert expected_calibration_error([], []) is None


@pytest.mark.parametrize(
    ("probabilities", "truths"),
    [([0.0, 1.0] * 20, [N, Y] * 20), ([0.5] * 40, [N, Y] * 20), ([0.05] * 40, [N] * 40), ([0.95] * 40, [Y] * 40)],
)
def test_a_calibration_error_of_nothing_may_still_be_one(probabilities: list[float], truths: list[bool]):
    found = expected_calibration_error(probabilities, truths)
    assert found is not None
    assert found.low == 0
    assert found.high is not None
    assert 0.05 < found.high < 0.25


def test_the_limits_of_the_calibration_error_hold_where_the_estimate_is_biased_upward():
    source, held = random.Random(7), {"perfect": 0, "too sure": 0}
    for _ in range(8):
        scores = [source.random() for _ in range(60)]
        for name, truth in (("perfect", 0.0), ("too sure", 0.125)):
            shares = scores if name == "perfect" else [0.5 + (score - 0.5) / 2 for score in scores]
            found = expected_calibration_error(scores, [source.random() < share for share in shares])
            assert found is not None
            assert found.low is not None
            assert found.high is not None
            held[name] += found.low <= truth <= found.high
    assert min(held.values()) >= 6


def clustered(seed: int) -> tuple[list[float], list[bool], list[int]]:
    """20 clusters of a few dozen cases or fewer, with odds of their own; a calibration error of 0.147."""
    source = np.random.default_rng(seed)
    sizes = 1 + source.geometric(1 / 12, 20)
    groups = np.repeat(np.arange(20), sizes)
    seen = source.normal(0.5, 1.2, groups.size)
    odds = seen + 4 * source.normal(size=20)[groups]
    truths = source.random(groups.size) < 1 / (1 + np.exp(-odds))
    return (1 / (1 + np.exp(-1.2 * seen))).tolist(), truths.tolist(), groups.tolist()


@pytest.mark.parametrize("seed", [7, 12, 21, 27, 36])
def test_a_cluster_moves_its_bins_together_and_the_limits_of_the_calibration_error_allow_for_it(seed: int):
    """With fewer cases in each bin, and no more, the upper limits would be 0 to 0.14."""
    probabilities, truths, groups = clustered(seed)
    found = expected_calibration_error(probabilities, truths, groups=groups)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 0.147 <= found.high
    alone = expected_calibration_error(probabilities, truths, groups=list(range(len(truths))))
    assert alone is not None
    assert alone.low is not None
    assert alone.high is not None
    assert found.high - found.low > alone.high - alone.low


def test_one_cluster_shows_nothing_of_the_calibration_error():
    found = expected_calibration_error([0.2, 0.2, 0.8, 0.8], [Y, N, Y, Y], groups=["a"] * 4)
    assert found is not None
    assert (found.estimate, found.low, found.high, found.groups) == (pytest.approx(0.25), 0.0, 1.0, 1)


def test_the_brier_score_by_hand():
    assert brier_score([0.5, 1.0], [Y, N]) == pytest.approx((0.25 + 1) / 2)
    assert brier_score([], []) is None


@pytest.mark.parametrize("measure", [expected_calibration_error, brier_score])
def test_what_is_no_probability_is_refused(measure: object):
    assert callable(measure)
    with pytest.raises(DataError) as raised:
        measure([1.1], [Y])
    assert (raised.value.field, raised.value.value, raised.value.allowed) == ("a probability", 1.1, "in [0, 1]")
    with pytest.raises(DataError, match="not nan"):
        measure([math.nan], [Y])
    with pytest.raises(DataError, match="1 probability and 2 truths"):
        measure([0.5], [Y, N])


def test_no_bins_are_refused():
    with pytest.raises(DataError) as raised:
        reliability([0.5], [Y], bins=0)
    assert (raised.value.field, raised.value.value, raised.value.allowed) == ("bins", 0, "1 or more")


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
    for _ in range(8):
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


@pytest.mark.slow
def test_on_new_cases_a_threshold_learned_from_noise_is_worth_no_more_than_chance():
    draw = random.Random(5)
    scores = [draw.random() for _ in range(400)]
    truths = [draw.random() < 0.5 for _ in scores]
    chosen = best_threshold(scores, truths, "balanced_accuracy")
    expected = counts_on_new_cases(scores, truths, "balanced_accuracy")
    assert chosen is not None
    assert expected is not None
    assert expected.n == 400
    assert expected.positives == sum(truths)
    assert expected.balanced_accuracy is not None
    assert expected.balanced_accuracy < chosen[1]
    assert expected.balanced_accuracy == pytest.approx(0.5, abs=0.05)


def test_on_new_cases_half_a_case_of_optimism_is_a_case():
    scores, truths = [place / 20 for place in range(20)], [place >= 10 or place == 8 for place in range(20)]
    expected = counts_on_new_cases(scores, truths, "balanced_accuracy")
    assert expected is not None
    assert (expected.tp + expected.tn, expected.n) == (18, 20)  # 19 at the threshold that is best on these


def test_on_new_cases_a_gap_stays_a_gap_and_one_case_of_a_kind_says_nothing():
    assert counts_on_new_cases([0.1, 0.2, 0.8, 0.9], [N, N, Y, Y], "accuracy") == Confusion(tp=2, tn=2)
    assert counts_on_new_cases([0.1, 0.2, 0.9], [N, N, Y], "accuracy") is None
    assert counts_on_new_cases([], [], "accuracy") is None


isotonic([0.0, 1.0], [False, True])  # imports numpy, so that no timed example pays for it

CASES = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30)


def test_a_logistic_curve_is_the_one_of_greatest_likelihood():
    draw = random.Random(1)
    scores = [draw.random() for _ in range(300)]
    truths = [draw.random() < 1 / (1 + math.exp(3 - 5 * score)) for score in scores]
    found = platt(scores, truths)
    positives = sum(truths)
    high, low = (positives + 1) / (positives + 2), 1 / (300 - positives + 2)
    errors = [found(s) - (high if t else low) for s, t in zip(scores, truths, strict=True)]
    assert math.fsum(errors) == pytest.approx(0, abs=1e-6)
    assert math.fsum(e * s for e, s in zip(errors, scores, strict=True)) == pytest.approx(0, abs=1e-6)
    assert found.slope == pytest.approx(5, abs=1.2)


def test_scores_that_separate_leave_the_curve_finite():
    found = platt([0.1, 0.2, 0.8, 0.9], [False, False, True, True])
    assert math.isfinite(found.slope)
    # two of each: the targets are 1/4 and 3/4
    assert found(0.1) < 0.5 < found(0.9) < 0.9


def test_scores_that_are_all_equal_give_the_smoothed_base_rate():
    # one of four, smoothed: mean of 2/3 and three times 1/5
    assert platt([0.5] * 4, [True, False, False, False])(0.5) == pytest.approx((2 / 3 + 3 / 5) / 4, abs=1e-6)


@given(CASES)
def test_every_mapping_gives_probabilities(cases: list[tuple[float, bool]]):
    scores, truths = [score for score, _ in cases], [truth for _, truth in cases]
    for found in (platt(scores, truths), isotonic(scores, truths)):
        assert all(0 <= found(score) <= 1 for score in [*scores, 0.0, 0.5, 1.0])


def test_isotonic_steps_pool_what_falls():
    # 0, 1, 0, 1, 1 pools the second and the third to 1/2
    found = isotonic([1, 2, 3, 4, 5], [False, True, False, True, True])
    assert found == Isotonic(((1, 0), (2, 0.5), (3, 0.5), (4, 1), (5, 1)))
    assert [found(score) for score in (0, 1.5, 2.5, 3.5, 9)] == [0, 0.25, 0.5, 0.75, 1]


def test_isotonic_takes_cases_of_one_score_together():
    found = isotonic([1, 1, 1, 2], [True, False, False, True])
    assert found.corners == ((1, pytest.approx(1 / 3)), (2, 1))


@given(CASES)
def test_isotonic_never_falls_and_keeps_the_base_rate(cases: list[tuple[float, bool]]):
    scores, truths = [score for score, _ in cases], [truth for _, truth in cases]
    found = isotonic(scores, truths)
    heights = [height for _, height in found.corners]
    assert heights == sorted(heights)
    assert math.fsum(map(found, scores)) == pytest.approx(sum(truths))


@pytest.mark.parametrize("fit", [platt, isotonic])
def test_nothing_is_learned_from_nothing_or_from_lists_that_do_not_fit(fit: object):
    assert callable(fit)
    with pytest.raises(DataError, match="at least one case"):
        fit([], [])
    with pytest.raises(DataError, match="1 score and 0 truths"):
        fit([1], [])


@pytest.mark.parametrize("corners", [(), ((0, 0.5), (1, 0.2)), ((1, 0.2), (0, 0.5)), ((0, 1.5),), ((math.nan, 0.5),)])
def test_what_is_no_mapping_is_refused(corners: tuple[tuple[float, float], ...]):
    with pytest.raises(DataError, match="rising corners"):
        Isotonic(corners)
    with pytest.raises(DataError, match=r"slope and intercept .*, not nan"):
        Platt(math.nan, 0)


def test_a_curve_does_not_overflow():
    assert Platt(1e6, 0)(1) == 1
    assert Platt(-1e6, 0)(1) == 0
