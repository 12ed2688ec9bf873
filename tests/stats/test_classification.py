from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.stats.classification import MEASURES, Confusion, MeasureName, auroc, measure_intervals
from evalstone.stats.intervals import Interval, mean_interval

TABLE = Confusion(tp=30, fp=10, fn=20, tn=40)


def test_counts_come_from_pairs_of_verdict_and_truth():
    pairs = [(True, True)] * 2 + [(True, False)] * 3 + [(False, True)] * 4 + [(False, False)] * 5
    assert Confusion.of(pairs) == Confusion(tp=2, fp=3, fn=4, tn=5)


@pytest.mark.parametrize(
    ("measure", "worked"),
    [
        ("sensitivity", 30 / 50),
        ("specificity", 40 / 50),
        ("precision", 30 / 40),
        ("accuracy", 70 / 100),
        ("balanced_accuracy", 0.7),
        ("f1", 60 / 90),
        ("kappa", 0.4),  # expected 0.4 · 0.5 + 0.6 · 0.5 = 0.5; (0.7 - 0.5) / 0.5
    ],
)
def test_measures_worked_by_hand(measure: str, worked: float):
    assert MEASURES[measure](TABLE) == pytest.approx(worked)


def test_the_type_of_a_measure_names_all_of_them():
    assert get_args(MeasureName) == tuple(MEASURES)


def test_a_measure_that_would_divide_by_nothing_is_none():
    assert {name: measure(Confusion()) for name, measure in MEASURES.items()} == dict.fromkeys(MEASURES)
    only_yes = Confusion(tp=3)
    assert only_yes.sensitivity == only_yes.accuracy == 1
    assert only_yes.specificity is None
    assert only_yes.balanced_accuracy is None
    assert only_yes.kappa is None


CASES = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30)


def test_the_area_is_the_share_of_pairs_in_order_and_half_the_ties():
    found = auroc([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    assert found is not None
    assert found.estimate == 3 / 4
    tied = auroc([0.5, 0.5, 0.7], [False, True, True])
    assert tied is not None
    assert tied.estimate == 3 / 4


@given(CASES)
def test_the_area_is_that_of_counting_every_pair(cases: list[tuple[int, bool]]):
    yes = [score for score, truth in cases if truth]
    no = [score for score, truth in cases if not truth]
    found = auroc([score for score, _ in cases], [truth for _, truth in cases])
    if not yes or not no:
        assert found is None
        return
    assert found is not None
    counted = sum((y > n) + (y == n) / 2 for y in yes for n in no) / (len(yes) * len(no))
    assert found.estimate == pytest.approx(counted)
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.estimate <= found.high <= 1


def test_the_ends_are_z_standard_errors_away_by_the_variance_at_the_ends():
    found = auroc([*range(20), *range(5, 25)], [False] * 20 + [True] * 20)
    assert found is not None
    assert found.low is not None
    area, m, k = found.low, 20, 20
    more = (m + k) / 2 - 1
    variance = area * (1 - area) * (1 + more * (1 - area) / (2 - area) + more * area / (1 + area)) / (m * k)
    assert (found.estimate - area) / math.sqrt(variance) == pytest.approx(1.959964, abs=1e-5)


def test_the_variance_is_at_least_delongs():
    # 2 positives below all negatives, 6 in their middle.
    found = auroc([0] * 2 + [3.5] * 6 + [*range(1, 7)], [True] * 8 + [False] * 6)
    assert found is not None
    assert found.high is not None
    spread = statistics.variance([0.0] * 2 + [0.5] * 6) / 8 + statistics.variance([0.75] * 3 + [0.0] * 3) / 6
    at_end = spread / (0.375 * 0.625) * found.high * (1 - found.high)
    assert found.estimate == 0.375
    assert found.high - found.estimate == pytest.approx(1.959964 * math.sqrt(at_end), abs=1e-5)


def missed(positives: int, below: int, negatives: int = 24) -> Interval:
    """The area where some positives are below all negatives and the others above all."""
    truths = [True] * below + [False] * negatives + [True] * (positives - below)
    found = auroc([0] * below + [1] * negatives + [2] * (positives - below), truths)
    assert found is not None
    return found


def test_cases_that_are_wrong_by_a_lot_widen_the_interval():
    # 2 of 8 positives are below all 24 negatives: each positive is above all negatives or none.
    found, share = missed(8, 2), mean_interval([0.0] * 2 + [1.0] * 6, low=0, high=1)
    assert share is not None
    assert (found.estimate, found.low, found.high) == (0.75, share.low, share.high)


@pytest.mark.parametrize("positives", [3, 5, 6, 10, 50])
@pytest.mark.parametrize("rate", [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5])
def test_a_judge_that_misses_positives_altogether_is_covered_though_few_show_it(positives: int, rate: float):
    held = 0.0
    for below in range(positives + 1):
        found = missed(positives, below)
        if found.low is not None and found.high is not None and found.low <= 1 - rate <= found.high:
            held += math.comb(positives, below) * rate**below * (1 - rate) ** (positives - below)
    assert held >= 0.935


def test_perfect_order_has_an_interval_and_many_cases_a_narrow_one():
    few = auroc([1, 2, 3, 4], [False, False, True, True])
    many = auroc(range(200), [False] * 100 + [True] * 100)
    assert few is not None
    assert many is not None
    assert (few.estimate, few.high, many.estimate, many.high) == (1, 1, 1, 1)
    assert few.low is not None
    assert many.low is not None
    assert few.low < 0.5 < 0.95 < many.low < 1


def test_scores_must_be_numbers_and_truths_as_many():
    with pytest.raises(DataError, match="1 score and 2 truths"):
        auroc([1], [True, False])
    with pytest.raises(ConfigError, match="confidence"):
        auroc([1, 2], [True, False], confidence=95)
    found = auroc([-math.inf, math.inf], [False, True])
    assert found is not None
    assert found.estimate == 1


def test_every_measure_has_limits_around_its_value_also_where_all_verdicts_are_right():
    for counts in (TABLE, Confusion(tp=20, tn=10), Confusion(tp=1, fp=20, fn=9, tn=2)):
        found = measure_intervals(counts)
        assert found.keys() == MEASURES.keys()
        for name, one in found.items():
            assert one is not None
            assert one.estimate == pytest.approx(MEASURES[name](counts))
            assert one.low is not None
            assert one.high is not None
            assert one.low <= one.estimate <= one.high
            assert one.high - one.low > 0.05


def test_a_measure_without_a_value_has_no_limits():
    found = measure_intervals(Confusion(tp=3))
    assert [name for name, one in found.items() if one is None] == ["balanced_accuracy", "kappa", "specificity"]
    assert measure_intervals(Confusion()) == dict.fromkeys(MEASURES)


def test_the_limits_of_f1_and_of_the_balanced_accuracy_by_hand():
    found = measure_intervals(TABLE)
    share = mean_interval([1.0] * 30 + [0.0] * 30, low=0, high=1)
    f1, middle = found["f1"], found["balanced_accuracy"]
    assert share is not None
    assert f1 is not None
    assert (share.low, share.high, f1.low) != (None, None, None)
    assert f1.low == pytest.approx(2 * (share.low or 0) / (1 + (share.low or 0)))
    assert f1.high == pytest.approx(2 * (share.high or 0) / (1 + (share.high or 0)))
    yes, no = found["sensitivity"], found["specificity"]
    assert middle is not None
    assert yes is not None
    assert no is not None
    down = math.hypot(yes.estimate - (yes.low or 0), no.estimate - (no.low or 0)) / 2
    assert middle.low == pytest.approx(0.7 - down)


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: auroc([1, math.nan], [True, False]),
        DataError,
        "scores must be numbers: score 1 is nan",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
