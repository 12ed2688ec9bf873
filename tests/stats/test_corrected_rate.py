from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest

from evalstone.errors import DataError, EvalstoneError
from evalstone.stats import proportion_interval
from evalstone.stats.classification import Confusion
from evalstone.stats.corrected_rate import rogan_gladen
from evalstone.types import note


def test_a_rate_worked_by_hand() -> None:
    # 120 of 200 passed, 57 of 60 good ones seen, 28 of 40 bad ones: (0.6 + 0.7 - 1) / (0.95 + 0.7 - 1)
    found = rogan_gladen(120, 200, Confusion(tp=57, fn=3, tn=28, fp=12))
    assert found is not None
    assert found.rate is not None
    assert found.rate.estimate == pytest.approx(0.3 / 0.65)
    # At each limit, the judged rate is as far from what the limit leads to as the limits of the three rates allow.
    judged, tpr, tnr = (proportion_interval(k, n) for k, n in ((120, 200), (57, 60), (28, 40)))
    assert judged is not None
    assert tpr is not None
    assert tnr is not None
    low, high = found.rate.low or 0, found.rate.high or 0
    reach = math.hypot(0.6 - (judged.low or 0), low * ((tpr.high or 0) - 0.95), (1 - low) * (0.7 - (tnr.low or 0)))
    assert 0.6 - low * 0.95 - (1 - low) * 0.3 == pytest.approx(reach)
    reach = math.hypot((judged.high or 0) - 0.6, high * (0.95 - (tpr.low or 0)), (1 - high) * ((tnr.high or 0) - 0.7))
    assert high * 0.95 + (1 - high) * 0.3 - 0.6 == pytest.approx(reach)
    assert found.raw == proportion_interval(120, 200)
    assert found.sensitivity == proportion_interval(57, 60)


def test_an_estimate_outside_of_the_range_is_cut_to_it() -> None:
    found = rogan_gladen(190, 200, Confusion(tp=54, fn=6, tn=36, fp=4))
    assert found is not None
    assert found.rate is not None
    assert (found.rate.estimate, found.rate.high) == (1, 1)


@pytest.mark.parametrize(
    ("labels", "youden"),
    [
        (Confusion(tp=20, fn=20, tn=20, fp=20), (1.0, 0.78, 1.22)),
        (Confusion(tp=24, fn=16, tn=24, fp=16), (1.2, 0.97, 1.41)),
        (Confusion(tp=10, fn=30, tn=10, fp=30), (0.5, 0.33, 0.72)),
    ],
)
def test_a_judge_that_is_not_significantly_better_than_chance_corrects_nothing(
    labels: Confusion, youden: tuple[float, ...]
) -> None:
    found = rogan_gladen(50, 100, labels)
    assert found is not None
    assert found.rate is None
    (by_chance,) = found.notes
    assert (by_chance.kind, by_chance["confidence"]) == ("judge_by_chance", 0.95)
    assert by_chance["sum"] == pytest.approx(youden, abs=0.005)
    assert found.raw == proportion_interval(50, 100)


def test_the_interval_is_wide_where_the_judge_is_hardly_better_than_chance() -> None:
    """81% of such intervals covered the truth when they divided by sensitivity + specificity - 1."""
    found = rogan_gladen(220, 300, Confusion(tp=72, fn=8, tn=9, fp=11))
    assert found is not None
    assert found.rate is not None
    assert found.rate.low == 0
    assert (found.rate.high or 1) > 0.75


@pytest.mark.parametrize("passed", [300, 0])
def test_a_pass_rate_that_the_judges_errors_do_not_explain_is_not_corrected(passed: int) -> None:
    found = rogan_gladen(passed, 300, Confusion(tp=160, fn=40, tn=160, fp=40))
    assert found is not None
    assert found.rate is None
    (unlike,) = found.notes
    assert (unlike.kind, unlike["confidence"]) == ("unlike_the_labels", 0.95)
    assert unlike["passed"][0] == passed / 300
    assert [unlike[name][0] for name in ("sensitivity", "specificity")] == [0.8, 0.8]
    assert all(unlike[name][1] < 0.8 < unlike[name][2] for name in ("sensitivity", "specificity"))


@pytest.mark.parametrize(("passed", "n"), [(0, 1), (1, 1), (3, 7), (150, 200)])
def test_all_small_counts_have_a_rate_within_its_limits_or_a_reason_for_none(passed: int, n: int) -> None:
    for tp, fn, tn, fp in itertools.product(range(6), repeat=4):
        found = rogan_gladen(passed, n, Confusion(tp=tp, fn=fn, tn=tn, fp=fp))
        assert found is not None
        if found.rate is None:
            assert found.notes
        else:
            low, high = found.rate.low, found.rate.high
            assert low is not None
            assert high is not None
            assert 0 <= low <= found.rate.estimate <= high <= 1
            assert low < high


def test_labels_of_one_kind_only_correct_nothing() -> None:
    found = rogan_gladen(50, 100, Confusion(tp=20, fn=0, tn=0, fp=0))
    assert found is not None
    assert (found.rate, found.specificity) == (None, None)
    assert found.notes == (note("one_sided_labels", "caution"),)


def test_few_labels_say_so() -> None:
    found = rogan_gladen(50, 100, Confusion(tp=19, fn=0, tn=40, fp=0))
    assert found is not None
    assert found.rate is not None
    assert found.rate.notes == found.notes == (note("few_class_labels", "caution", labels=19),)


def test_impossible_counts_are_named() -> None:
    assert rogan_gladen(0, 0, Confusion(5, 5, 5, 5)) is None


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: rogan_gladen(11, 10, Confusion(5, 5, 5, 5)),
        DataError,
        "passed must be from 0 to n: 11 of 10",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
