from __future__ import annotations

import math

import pytest

from evalstone.errors import DataError
from evalstone.stats import wilson_interval
from evalstone.stats.rogan_gladen import Hits, RateStratum, corrected_rate, hits, stratified_rate


def test_a_rate_worked_by_hand() -> None:
    # 120 of 200 passed, 57 of 60 good ones seen, 28 of 40 bad ones: (0.6 + 0.7 - 1) / (0.95 + 0.7 - 1)
    found = corrected_rate(120, 200, sensitivity=Hits(57, 60), specificity=Hits(28, 40))
    assert found is not None
    assert found.rate is not None
    assert found.rate.mean == pytest.approx(0.3 / 0.65)
    # Lang and Reiczigel, step by step with z = 1.959964
    z = 1.959964
    judged, se, sp = (120 + z * z / 2) / (200 + z * z), 58 / 62, 29 / 42
    rate = (judged + sp - 1) / (se + sp - 1)
    shift = 2 * z * z * (rate * se * (1 - se) / 62 - (1 - rate) * sp * (1 - sp) / 42)
    variance = judged * (1 - judged) / (200 + z * z) + rate**2 * se * (1 - se) / 62
    variance = (variance + (1 - rate) ** 2 * sp * (1 - sp) / 42) / (se + sp - 1) ** 2
    assert found.rate.low == pytest.approx(rate + shift - z * math.sqrt(variance), abs=1e-6)
    assert found.rate.high == pytest.approx(rate + shift + z * math.sqrt(variance), abs=1e-6)
    assert found.raw == wilson_interval(120, 200)
    assert found.sensitivity == wilson_interval(57, 60)


def test_an_estimate_outside_of_the_range_is_cut_to_it() -> None:
    found = corrected_rate(199, 200, sensitivity=Hits(54, 60), specificity=Hits(36, 40))
    assert found is not None
    assert found.rate is not None
    assert (found.rate.mean, found.rate.high) == (1, 1)


def test_strata_are_corrected_each_with_its_own_errors() -> None:
    easy = RateStratum(90, 100, Hits(60, 60), Hits(40, 40))
    hard = RateStratum(150, 300, Hits(45, 60), Hits(30, 40))
    found = stratified_rate([easy, hard])
    assert found is not None
    assert found.rate is not None
    assert found.rate.mean == pytest.approx(0.25 * 0.9 + 0.75 * 0.5)
    assert found.sensitivity == wilson_interval(105, 120)
    halves = stratified_rate(
        [RateStratum(90, 100, Hits(60, 60), Hits(40, 40), 0.5), RateStratum(150, 300, *hard_hits(), 0.5)]
    )
    assert halves is not None
    assert halves.rate is not None
    assert halves.rate.mean == pytest.approx(0.7)


def hard_hits() -> tuple[Hits, Hits]:
    return Hits(45, 60), Hits(30, 40)


def test_a_judge_no_better_than_chance_corrects_nothing() -> None:
    found = corrected_rate(50, 100, sensitivity=Hits(20, 40), specificity=Hits(20, 40))
    assert found is not None
    assert found.rate is None
    assert "no better than chance" in found.caution
    assert found.raw == wilson_interval(50, 100)


def test_labels_of_one_kind_only_correct_nothing() -> None:
    found = corrected_rate(50, 100, sensitivity=Hits(20, 20), specificity=Hits(0, 0))
    assert found is not None
    assert (found.rate, found.specificity) == (None, None)
    assert "labelled samples of both kinds are wanted" in found.caution


def test_few_labels_say_so() -> None:
    found = corrected_rate(50, 100, sensitivity=Hits(19, 19), specificity=Hits(40, 40))
    assert found is not None
    assert found.caution == "only 19 labelled samples of one kind: the interval is a guide"


def test_hits_count_what_the_judge_got_right() -> None:
    judged, human = [True, True, False, False, True], [True, False, True, False, True]
    assert hits(judged, human) == (Hits(2, 3), Hits(1, 2))
    with pytest.raises(DataError, match="judged has 1, human has 2"):
        hits([True], [True, False])


def test_impossible_counts_and_shares_are_named() -> None:
    whole = Hits(5, 5)
    assert corrected_rate(0, 0, sensitivity=whole, specificity=whole) is None
    assert stratified_rate([]) is None
    with pytest.raises(DataError, match="passed: 11 of 10 is no count"):
        corrected_rate(11, 10, sensitivity=whole, specificity=whole)
    with pytest.raises(DataError, match="specificity: 6 of 5 is no count"):
        corrected_rate(1, 10, sensitivity=whole, specificity=Hits(6, 5))
    with pytest.raises(DataError, match="shares are wanted for all 2 strata or for none, not for 1"):
        stratified_rate([RateStratum(1, 2, whole, whole, 0.5), RateStratum(1, 2, whole, whole)])
    with pytest.raises(DataError, match="a stratum with a share has no judged samples"):
        stratified_rate([RateStratum(0, 0, whole, whole, 0.5), RateStratum(1, 2, whole, whole, 0.5)])
    with pytest.raises(DataError, match="shares must be 0 or more"):
        stratified_rate([RateStratum(1, 2, whole, whole, -1.0)])


def test_a_stratum_without_samples_counts_for_nothing() -> None:
    full, none = RateStratum(50, 80, Hits(19, 20), Hits(18, 20)), RateStratum(0, 0, Hits(0, 0), Hits(0, 0))
    alone, beside = stratified_rate([full]), stratified_rate([none, full])
    assert alone is not None
    assert beside is not None
    assert beside.rate == alone.rate
    with pytest.raises(DataError, match="shares must be 0 or more and finite"):
        stratified_rate([RateStratum(1, 2, Hits(5, 5), Hits(5, 5), float("nan"))])
