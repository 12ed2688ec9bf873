from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.stats.betting import ConfidenceSequence
from evalstone.stats.comparison import compare_pairs
from evalstone.stats.paired_differences import possible_difference
from evalstone.stats.sequential import SequentialComparison, SequentialCriterion, SequentialGate


def stopped(comparison: SequentialComparison, pairs: Sequence[tuple[float | None, float | None]]) -> tuple[str, int]:
    for count, pair in enumerate(pairs, start=1):
        comparison.add(*pair)
        if comparison.settled:
            return comparison.verdict, count
    return comparison.verdict, len(pairs)


def test_capital_worked_by_hand() -> None:
    # A gain of 1 is the share 1 of [-1, 1], and no difference is 0.5. Capital: no bet on the first value, then × 1.571
    # and × 1.75 each. 2 / 0.05 = 40 is passed by 1.571 · 1.75⁶ = 45.1, with the eighth sample.
    assert 1.571 * 1.75**5 < 40 < 1.571 * 1.75**6
    assert stopped(SequentialComparison(), [(0.0, 1.0)] * 100) == ("better", 8)
    assert stopped(SequentialComparison(), [(1.0, 0.0)] * 100) == ("worse", 8)
    assert stopped(SequentialComparison(lower_is_better=True), [(1.0, 0.0)] * 100) == ("better", 8)
    assert stopped(SequentialComparison(scale=5, lower_is_better=True), [(0.0, 5.0)] * 100) == ("worse", 8)


def test_a_verdict_is_read_from_the_confidence_sequence() -> None:
    source = np.random.default_rng(1)
    comparison = SequentialComparison(margin=0.1)
    sequence = ConfidenceSequence(-1, 1, at=(-0.1, 0.0, 0.1))
    for a, b in source.random((400, 2)).round(1).tolist():
        comparison.add(a, b)
        sequence.add(b - a)
        assert comparison.bounds == sequence.bounds
        low, high = comparison.bounds
        assert (comparison.verdict == "equivalent") == (low >= -0.1 and high <= 0.1)
        assert comparison.no_worse == (low >= -0.1)
    assert comparison.n == 400


def test_a_clear_difference_within_the_margin_is_equivalent() -> None:
    comparison = SequentialComparison(margin=0.3, max_change=0.5)
    pairs = [(0.5, 0.6), (0.5, 0.62)] * 100
    assert stopped(comparison, pairs)[0] in ("better", "equivalent")
    for pair in pairs:
        comparison.add(*pair)
    assert comparison.bounds[0] > 0
    assert comparison.verdict == "equivalent"


def test_no_worse_than_the_margin_comes_before_a_verdict() -> None:
    for lower, sign in ((False, 1), (True, -1)):
        comparison = SequentialComparison(margin=0.1, lower_is_better=lower)
        pairs = [(0.5, 0.5 + sign * change) for change in np.random.default_rng(2).uniform(-0.1, 0.16, 400)]
        first = next(n for n, pair in enumerate(pairs, 1) if comparison.add(*pair) is None and comparison.no_worse)
        assert comparison.verdict == "inconclusive"
        verdict, later = stopped(SequentialComparison(margin=0.1, lower_is_better=lower), pairs)
        assert (verdict, first < later) == ("equivalent", True)


def test_a_largest_change_saves_samples() -> None:
    b = (0.5 + np.clip(np.random.default_rng(3).normal(0.03, 0.05, 400), -0.19, 0.19)).tolist()
    pairs = [(0.5, value) for value in b]
    (whole, long), (narrow, short) = (stopped(SequentialComparison(max_change=most), pairs) for most in (None, 0.2))
    assert (whole, narrow) == ("better", "better")
    assert short < long / 3


def test_a_missing_score_counts_as_what_is_worst_for_each_claim() -> None:
    gains = [(0.0, 1.0)] * 30
    counts: list[int] = []
    for missing in ((0.0, None), (None, 1.0), (None, None)):
        assert stopped(SequentialComparison(), [missing] * 500) == ("inconclusive", 500)
        comparison = SequentialComparison()
        verdict, count = stopped(comparison, [missing] * 3 + gains)
        assert (verdict, comparison.n, comparison.missing, comparison.estimate) == ("better", count - 3, 3, 1.0)
        counts.append(count)
    assert 8 < counts[0] == counts[1] < counts[2]  # without both scores, b may even be worse


def test_what_a_missing_score_leaves_possible() -> None:
    assert possible_difference(0.2, 0.5, scale=1, reach=1) == pytest.approx((0.3, 0.3))
    assert possible_difference(None, 0.25, scale=1, reach=1) == (-0.75, 0.25)
    assert possible_difference(0.25, None, scale=1, reach=1) == (-0.25, 0.75)
    assert possible_difference(None, None, scale=5, reach=5) == (-5, 5)
    assert possible_difference(None, 0.25, scale=1, reach=0.3) == (-0.3, 0.25)
    assert possible_difference(0.1 + 0.2, 0.3, scale=1, reach=1) == (0, 0)


def test_a_value_known_within_ends_is_missing_only_there() -> None:
    gate, whole = (SequentialGate([SequentialCriterion("a", -0.5, "max_regression", -1, 1)]) for _ in range(2))
    for _ in range(200):
        gate.add({"a": (0.0, 1.0)})
        whole.add({"a": None})
    (found,), (unknown,) = gate.decisions(), whole.decisions()
    assert (found.verdict, found.missing, found.n, unknown.verdict) == ("pass", 200, 0, "inconclusive")
    with pytest.raises(DataError, match=r"a: 2\.0 .* in \[-1, 1\]"):
        gate.add({"a": (0.0, 2.0)})


def test_a_regression_where_lower_is_better_passes_below_the_margin() -> None:
    gate = SequentialGate([SequentialCriterion("a", 0.1, "max_regression", -1, 1, lower_is_better=True)])
    for _ in range(100):
        gate.add({"a": 0.0})
    (found,) = gate.decisions()
    assert (found.verdict, found.lower_is_better, found.threshold, found.p_fail) == ("pass", True, 0.1, 1)


@pytest.mark.slow
def test_equal_systems_hardly_ever_get_a_verdict_however_often_it_is_looked_at() -> None:
    source = np.random.default_rng(4)
    wrong = 0
    for _ in range(150):
        changes = source.choice([-1.0, 0.0, 1.0], p=[0.2, 0.6, 0.2], size=300)
        pairs = [(max(-d, 0.0), max(d, 0.0)) for d in changes.tolist()]
        wrong += stopped(SequentialComparison(), pairs)[0] != "inconclusive"
    assert wrong <= 14  # 5 % of 150 is 7.5; more than 14 has a chance of 1 in 150


def test_pairs_of_a_stopped_run_are_tested_by_betting() -> None:
    changes = np.random.default_rng(5).choice([-1.0, 0.0, 1.0], p=[0.05, 0.65, 0.3], size=300)
    pairs = [(max(-d, 0.0), max(d, 0.0)) for d in changes.tolist()]
    comparison = SequentialComparison()
    _, count = stopped(comparison, pairs)
    a, b = ([pair[side] for pair in pairs[:count]] for side in (0, 1))
    found, fixed = compare_pairs(a, b, stopped=True), compare_pairs(a, b)
    assert found is not None
    assert fixed is not None
    assert found.test.name.startswith("betting, ")
    assert found.difference.method == "confidence sequence"
    assert fixed.p_value < found.p_value <= 0.05
    assert found.difference.low == pytest.approx(comparison.bounds[0], abs=0.003)
    assert found.difference.high == pytest.approx(comparison.bounds[1], abs=0.003)
    assert found.mcnemar is None
    earlier = compare_pairs(a[:-1], b[:-1], stopped=True)
    assert earlier is not None
    assert earlier.p_value > 0.05
    assert earlier.difference.low == 0 or (earlier.difference.low or 0) < 0


def test_missing_scores_and_equivalence_of_a_stopped_run() -> None:
    a: list[float | None] = [0.5] * 300
    b: list[float | None] = [0.5] * 300
    equal = compare_pairs(a, b, stopped=True, margin=0.05)
    assert equal is not None
    assert equal.equivalence is not None
    assert equal.equivalence.p_value < 0.05
    few = compare_pairs([1.0] * 30, [0.0] * 10 + [None] * 20, stopped=True)
    assert few is not None
    assert (few.n, few.missing, few.p_value <= 0.05) == (10, 20, True)
    assert few.difference.high is not None
    assert few.difference.high <= 0
    open_end = compare_pairs([0.0] * 30, [0.0] * 10 + [None] * 20, stopped=True)
    assert open_end is not None
    assert (open_end.p_value, open_end.difference.low is not None and open_end.difference.low < 0) == (1, True)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"alpha": 0}, "alpha must be above 0 and below 1"),
        ({"margin": 0}, "margin must be above 0 and below 1, not 0"),
        ({"margin": 1}, "margin must be above 0 and below 1, not 1"),
        ({"margin": 0.2, "max_change": 0.2}, r"margin must be above 0 and below 0\.2"),
        ({"max_change": 2}, "max_change must be above 0 and at most 1, not 2"),
        ({"scale": math.inf}, "low and high must be finite"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, float], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        SequentialComparison(**settings)  # pyright: ignore[reportArgumentType]


def test_wrong_scores_are_refused_and_not_added() -> None:
    comparison = SequentialComparison(max_change=0.3)
    for wrong in ((1.5, 0.0), (0.0, -1.0), (math.nan, 0.0)):
        with pytest.raises(DataError, match=r"number in \[0, 1\]"):
            comparison.add(*wrong)
    assert (comparison.n, comparison.estimate, comparison.bounds) == (0, None, (-0.3, 0.3))


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: compare_pairs([1.0, 0.0], [1.0, 0.0], stopped=True, groups=["a", "a"]),
        ConfigError,
        "scores of a stopped run can't have groups or weights",
    ),
    (
        lambda: SequentialComparison(max_change=0.3).add(0.2, 0.6),
        DataError,
        "max_change is 0.3, but a sample changes by 0.4, from 0.2 to 0.6",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
