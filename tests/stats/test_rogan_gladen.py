from __future__ import annotations

import itertools
import math

import pytest

from evalstone.errors import DataError
from evalstone.stats import proportion_interval
from evalstone.stats.classification import Confusion
from evalstone.stats.rogan_gladen import rogan_gladen


def test_a_rate_worked_by_hand() -> None:
    # 120 of 200 passed, 57 of 60 good ones seen, 28 of 40 bad ones: (0.6 + 0.7 - 1) / (0.95 + 0.7 - 1)
    found = rogan_gladen(120, 200, Confusion(tp=57, fn=3, tn=28, fp=12))
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
    assert found.raw == proportion_interval(120, 200)
    assert found.sensitivity == proportion_interval(57, 60)


def test_an_estimate_outside_of_the_range_is_cut_to_it() -> None:
    found = rogan_gladen(199, 200, Confusion(tp=54, fn=6, tn=36, fp=4))
    assert found is not None
    assert found.rate is not None
    assert (found.rate.mean, found.rate.high) == (1, 1)


def test_a_judge_no_better_than_chance_corrects_nothing() -> None:
    found = rogan_gladen(50, 100, Confusion(tp=20, fn=20, tn=20, fp=20))
    assert found is not None
    assert found.rate is None
    assert "no better than chance" in found.caution
    assert found.raw == proportion_interval(50, 100)


def test_a_judge_that_can_hardly_be_told_from_chance_corrects_nothing() -> None:
    # 12 / 22 + 15 / 33 is 1: with one more right and one more wrong label of each kind, the judge is at chance
    found = rogan_gladen(150, 200, Confusion(tp=11, fn=9, tn=14, fp=17))
    assert found is not None
    assert found.rate is None
    assert found.caution == "the judge is barely better than chance on the labeled samples"


@pytest.mark.no_cover
@pytest.mark.parametrize(("passed", "n"), [(0, 1), (1, 1), (3, 7), (150, 200)])
def test_all_small_counts_have_a_rate_within_its_limits_or_a_reason_for_none(passed: int, n: int) -> None:
    for tp, fn, tn, fp in itertools.product(range(6), repeat=4):
        found = rogan_gladen(passed, n, Confusion(tp=tp, fn=fn, tn=tn, fp=fp))
        assert found is not None
        if found.rate is None:
            assert found.caution
        else:
            low, high = found.rate.low, found.rate.high
            assert low is not None
            assert high is not None
            assert 0 <= low <= found.rate.mean <= high <= 1
            assert low < high


def test_labels_of_one_kind_only_correct_nothing() -> None:
    found = rogan_gladen(50, 100, Confusion(tp=20, fn=0, tn=0, fp=0))
    assert found is not None
    assert (found.rate, found.specificity) == (None, None)
    assert "the labels need both passes and fails" in found.caution


def test_few_labels_say_so() -> None:
    found = rogan_gladen(50, 100, Confusion(tp=19, fn=0, tn=40, fp=0))
    assert found is not None
    assert found.caution == "only 19 labels in one class: the interval is approximate"


def test_impossible_counts_are_named() -> None:
    assert rogan_gladen(0, 0, Confusion(5, 5, 5, 5)) is None
    with pytest.raises(DataError, match="passed must be from 0 to n: 11 of 10"):
        rogan_gladen(11, 10, Confusion(5, 5, 5, 5))
