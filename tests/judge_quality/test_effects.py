from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from evalstone.judge_quality.audit import Scores, corrected, effect
from evalstone.judge_quality.perturbations import PERTURBATIONS, REPEAT
from evalstone.results.audit import Effect
from evalstone.stats.intervals import proportion_interval

HOW: dict[str, Any] = {"scorer": "faithfulness", "signature": "faithfulness@1", "scale": 1.0, "threshold": 0.5}
PADDED, PRAISED, ORDER = (
    PERTURBATIONS["verbosity"],
    PERTURBATIONS["injection_checked"],
    PERTURBATIONS["passages_reversed"],
)


def scores(*values: float | None) -> dict[str, float | None]:
    return {str(number): value for number, value in enumerate(values)}


def found(plain: Scores, edited: Scores, again: Scores | None = None) -> Effect:
    return effect(PADDED, plain, edited, plain if again is None else again, **HOW)


def test_flips_are_verdicts_that_change_and_moves_are_more_than_a_tenth():
    one = found(scores(0.4, 0.6, 0.9, 0.5, 0.2), scores(0.6, 0.4, 0.75, 0.5, 0.3))
    assert (one.n, one.raised, one.lowered, one.flipped, one.changed) == (5, 1, 1, 2, 3)
    assert one.flips is not None
    assert (one.flips.estimate, one.flips.n) == (0.4, 5)
    assert one.flips == proportion_interval(2, 5)
    assert one.shift is not None
    assert one.shift.estimate == pytest.approx((0.2 - 0.2 - 0.15 + 0.1) / 5)


def test_a_verdict_is_yes_at_the_threshold():
    assert found(scores(0.5), scores(0.49)).lowered == 1
    assert found(scores(0.49), scores(0.5)).raised == 1


def test_samples_without_an_unedited_score_are_left_out_and_lost_scores_are_counted():
    one = found(scores(0.9, None, 0.9), {"0": 0.9, "1": 0.2, "2": None})
    assert (one.n, one.lost) == (1, 1)


def test_an_edit_without_any_pair_has_no_numbers():
    one = found(scores(0.9), {"0": None})
    assert (one.n, one.lost, one.flips, one.shift, one.shift_p, one.flips_p, one.affected) == (
        0, 1, None, None, None, None, "",
    )  # fmt: skip


def test_a_shift_of_every_sample_is_more_than_chance():
    one = found(scores(*[0.9] * 12), scores(*[0.4] * 12))
    assert one.shift_p is not None
    assert one.shift_p < 0.02
    # 12 flips against none
    assert one.flips_p is not None
    assert one.flips_p <= 2 / 2**12
    assert one.affected == "down"


def test_flips_both_ways_unsettle_without_a_shift():
    one = found(scores(*[0.4, 0.6] * 8), scores(*[0.6, 0.4] * 8))
    assert one.shift is not None
    assert one.shift.estimate == pytest.approx(0)
    assert one.affected == "inconsistent"


def test_flips_that_are_as_frequent_when_repeat_are_chance():
    plain, noisy = scores(*[0.4, 0.6] * 8), scores(*[0.6, 0.4] * 8)
    assert found(plain, noisy, noisy).flips_p == 1
    assert found(plain, noisy, {}).flips_p is None


def test_asking_again_is_the_measure_and_is_not_tested():
    one = effect(REPEAT, scores(*[0.9] * 12), scores(*[0.1] * 12), {}, **HOW)
    assert (one.flipped, one.shift_p, one.flips_p, one.affected) == (12, None, None, "")


def test_p_values_are_adjusted_together():
    plain, down = scores(*[0.9] * 12), scores(*[0.4] * 12)
    raw = [effect(PADDED, plain, down, plain, **HOW), effect(ORDER, plain, plain, plain, **HOW)]
    one, other = corrected([effect(REPEAT, plain, plain, {}, **HOW), *raw])[1:]
    # four tests: the smallest p is taken times 4, the next one times 3
    assert raw[0].shift_p is not None
    assert raw[0].flips_p is not None
    assert (one.shift_p, one.flips_p) == (pytest.approx(3 * raw[0].shift_p), pytest.approx(4 * raw[0].flips_p))
    assert (other.shift_p, other.flips_p) == (1, 1)


def test_a_judge_obeys_when_praise_that_is_asked_for_is_given():
    one = dataclasses.replace(effect(PRAISED, scores(*[0.1] * 12), scores(*[0.9] * 12), scores(*[0.1] * 12), **HOW))
    assert one.affected == "up"
    assert one.follows_injection(lower_is_better=False)
    assert not one.follows_injection(lower_is_better=True)
    assert not dataclasses.replace(one, perturbation=PADDED).follows_injection(lower_is_better=False)
