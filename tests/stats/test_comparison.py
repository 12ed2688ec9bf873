from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.comparison import biggest_changes, compare_pairs
from evalstone.stats.comparison_of_many import compare_many
from evalstone.stats.intervals import Interval
from evalstone.stats.mean_difference import difference_interval
from evalstone.types import note

A = [0.5, 1.0, 0.8, 0.2, 0.9, 0.6]
B = [0.7, 1.0, 0.9, 0.6, 0.8, 0.9]


def test_a_comparison_worked_by_hand() -> None:
    # differences 0.2, 0, 0.1, 0.4, -0.1, 0.3: mean 0.15, s² = 0.175 / 5
    found = compare_pairs(A, B)
    assert found is not None
    assert (found.n, found.wins, found.ties, found.losses) == (6, 4, 1, 1)
    assert found.difference.estimate == pytest.approx(0.15)
    assert found.p_value == BoundedMean.of([y - x for x, y in zip(A, B, strict=True)], -1, 1).two_sided_p(0)
    assert found.test.name.endswith("mean difference")
    assert found.mcnemar is None
    assert found.notes == ()


def test_no_changed_sample_is_called_none() -> None:
    found = compare_pairs([0.5] * 40, [0.5] * 40)
    assert found is not None
    assert found.notes == (note("few_changed", "caution", changed=0, pairs=40),)


def passes(gained: int, lost: int, n: int) -> tuple[list[float], list[float]]:
    before = [0.0] * gained + [1.0] * lost + [1.0] * (n - gained - lost)
    return before, [1.0] * gained + [0.0] * lost + [1.0] * (n - gained - lost)


@pytest.mark.slow
@pytest.mark.parametrize("n", [12, 40, 200])
def test_test_and_interval_of_pass_fail_differences_never_disagree(n: int) -> None:
    significant = 0
    for gained in range(12):
        for lost in range(0, n - 11, 5):
            found = compare_pairs(*passes(gained, lost, n))
            assert found is not None
            low, high = found.difference.low, found.difference.high
            assert low is not None
            assert high is not None
            assert low <= found.difference.estimate <= high
            significant += found.p_value <= 0.05
            assert not low < 0 < high if found.p_value <= 0.05 else low <= 0 <= high
    assert significant


def test_test_and_interval_of_differences_in_few_groups_never_disagree() -> None:
    source = np.random.default_rng(7)
    for gap in (0.02, 0.1, 0.3):
        for groups in (5, 12):
            shift = np.repeat(source.normal(gap, 0.05, groups), 10)
            labels = np.repeat(np.arange(groups), 10).tolist()
            found = compare_pairs([0.5] * 10 * groups, np.clip(0.5 + shift, 0, 1).tolist(), groups=labels)
            assert found is not None
            assert found.difference.low is not None
            assert found.difference.high is not None
            assert (found.p_value <= 0.05) == (not found.difference.low <= 0 <= found.difference.high)


def test_when_nothing_changed_the_interval_says_what_could_have() -> None:
    found = difference_interval([0.0] * 40, scale=5)
    reach = 5 * (1 - 0.025 ** (1 / 40))
    assert (found.low, found.high, found.method) == (pytest.approx(-reach), pytest.approx(reach), "Gaffke")


def test_only_few_passes_that_changed_are_called_too_few() -> None:
    few, enough = compare_pairs(*passes(4, 0, 40)), compare_pairs(*passes(5, 0, 40))
    assert few is not None
    assert enough is not None
    assert few.notes == (note("few_changed", "caution", changed=4, pairs=40),)
    assert few.p_value > 0.05
    assert enough.notes == ()
    assert enough.p_value <= 0.05


def test_weights_weigh_means_and_differences() -> None:
    found = compare_pairs([0.0, 1.0, 0.5], [1.0, 1.0, 0.0], weights=[1.0, 1.0, 2.0])
    assert found is not None
    assert (found.mean_a, found.mean_b, found.difference.estimate) == (0.5, 0.5, 0.0)
    assert found.mcnemar is None


def test_lower_is_better_turns_the_gain_and_the_wins_but_not_the_difference() -> None:
    up, down = compare_pairs(A, B), compare_pairs(A, B, lower_is_better=True)
    assert up is not None
    assert down is not None
    assert (down.difference, down.p_value) == (up.difference, up.p_value)
    assert (down.difference.estimate, down.wins, down.losses) == (up.difference.estimate, up.losses, up.wins)


@pytest.mark.parametrize(("gained", "lost"), [(7, 1), (12, 4), (14, 5)])
def test_the_interval_of_pass_fail_differences_is_off_zero_where_the_test_rejects(gained: int, lost: int) -> None:
    a, b = [0.0] * gained + [1.0] * (20 - gained), [1.0] * (20 - lost) + [0.0] * lost
    for found, side in ((compare_pairs(a, b), 1), (compare_pairs(b, a), -1)):
        assert found is not None
        assert found.p_value < 0.05
        near = found.difference.low if side == 1 else found.difference.high
        assert near is not None
        assert side * near > 0.001
        gains = scipy.stats.binom(gained + lost, (1 + side * near * 20 / (gained + lost)) / 2)
        assert gains.sf(gained) + gains.pmf(gained) / 2 == pytest.approx(0.025, abs=1e-5)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("n", [5, 7, 10, 40])
def test_pass_fail_differences_exclude_zero_exactly_where_the_test_rejects(n: int, confidence: float) -> None:
    for gained, lost in ((up, down) for up in range(min(n, 12) + 1) for down in range(min(3, n - up + 1))):
        found = compare_pairs(*passes(gained, lost, n), confidence=confidence)
        assert found is not None
        low, high = found.difference.low, found.difference.high
        assert low is not None
        assert high is not None
        assert (found.p_value <= 1 - confidence) == (not low <= 0 <= high)
        assert low <= found.difference.estimate <= high


def test_pass_fail_has_mcnemars_test() -> None:
    a, b = [0.0] * 9 + [1.0] * 11, [1.0] * 7 + [0.0] * 2 + [1.0] * 9 + [0.0] * 2
    found = compare_pairs(a, b)
    assert found is not None
    assert found.mcnemar is not None
    # 2 · (1 + 9 + 36 / 2) / 512
    assert (found.mcnemar.gained, found.mcnemar.lost, found.mcnemar.p_value) == (7, 2, pytest.approx(56 / 512))
    assert (found.test.name, found.p_value) == ("McNemar's test, mid-p", found.mcnemar.p_value)
    grouped = compare_pairs(a, b, groups=list(range(10)) * 2)
    assert grouped is not None
    assert (grouped.mcnemar, grouped.groups) == (None, 10)


def test_copies_in_groups_count_once() -> None:
    a, b = [0.1, 0.2, 0.3] * 2, [0.2, 0.4, 0.6] * 2
    grouped, alone = compare_pairs(a, b, groups=[0, 1, 2] * 2), compare_pairs(a[:3], b[:3])
    assert grouped is not None
    assert alone is not None
    assert grouped.p_value == pytest.approx(alone.p_value)
    assert grouped.difference.low == pytest.approx(alone.difference.low)


def test_higher_is_better_unless_said_otherwise() -> None:
    for found, wins in (
        (compare_many({"a": [0.0, 0.0], "b": [0.2, 0.4]}), 2),
        (compare_many({"a": [0.0, 0.0], "b": [0.2, 0.4]}, lower_is_better=True), 0),
    ):
        assert found is not None
        assert found.pairs[0].comparison.wins == wins


def test_rounding_is_no_change() -> None:
    found = compare_pairs([0.1 + 0.2, 0.5], [0.3, 0.5])
    assert found is not None
    assert (found.ties, found.difference.estimate) == (2, 0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=15))
def test_turning_a_comparison_round_turns_its_signs(pairs: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    one, other = compare_pairs(a, b), compare_pairs(b, a)
    assert one is not None
    assert other is not None
    assert (one.wins, one.losses) == (other.losses, other.wins)
    assert one.p_value == pytest.approx(other.p_value)
    # The search for the worst unseen share ends within CLOSE of its maximum, which moves limits by up to 1.4e-7. Where
    # it ends depends on rounding errors, which differ between the signs.
    assert one.difference.low == pytest.approx(-(other.difference.high or 0.0), abs=5e-7)


def test_what_cannot_be_compared_is_refused() -> None:
    assert compare_pairs([], []) is None
    with pytest.raises(DataError, match="a has 2, b has 1"):
        compare_pairs([0.1, 0.2], [0.1])
    with pytest.raises(DataError) as raised:
        compare_pairs([0.5], [1.5])
    assert (raised.value.field, raised.value.value, raised.value.allowed) == ("b[0]", 1.5, "a number in [0, 1]")
    with pytest.raises(ConfigError, match="confidence"):
        compare_pairs([0.5], [0.5], confidence=2)


def test_one_pair_and_one_group_say_so() -> None:
    one, group = difference_interval([0.3]), difference_interval([0.3, 0.1], groups=["g", "g"])
    assert one.low == pytest.approx(-1 + 1.3 * 0.025)
    assert one.notes == (note("single_unit", "caution", noun="sample"),)
    assert (group.low, group.groups) == (pytest.approx(-1 + 1.2 * 0.025), 1)
    assert group.notes == (note("single_unit", "caution", noun="cluster"),)


def test_several_runs_are_compared_in_pairs_and_adjusted() -> None:
    source = np.random.default_rng(1)
    base = source.beta(5, 2, 40)
    runs = {
        "a": base.tolist(),
        "b": np.clip(base + source.normal(0, 0.05, 40), 0, 1).tolist(),
        "c": np.clip(base - 0.1 + source.normal(0, 0.05, 40), 0, 1).tolist(),
    }
    found = compare_many(runs)
    assert found is not None
    assert found.means["a"] == pytest.approx(float(base.mean()))
    assert [(pair.a, pair.b) for pair in found.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    raw = sorted(pair.comparison.p_value for pair in found.pairs)
    assert min(pair.adjusted_p_value for pair in found.pairs) == pytest.approx(3 * raw[0])
    assert found.ranks == {"a": (1, 2), "b": (1, 2), "c": (3, 3)}
    turned = compare_many(runs, lower_is_better=True)
    assert turned is not None
    assert turned.ranks == {"a": (2, 3), "b": (2, 3), "c": (1, 1)}
    two = compare_many({"a": A, "b": B}, groups=[0, 0, 1, 1, 2, 2])
    assert two is not None
    assert two.ranks == {"a": (1, 2), "b": (1, 2)}
    assert two.pairs[0].comparison == compare_pairs(A, B, groups=[0, 0, 1, 1, 2, 2])
    assert compare_many({"a": [], "b": []}) is None


def test_the_biggest_changes_come_first_and_what_stayed_is_left_out() -> None:
    assert biggest_changes(A, B) == (3, 5, 0, 2, 4)
    assert biggest_changes(A, B, 2) == (3, 5)
    assert biggest_changes(A, A) == ()


def test_a_run_may_be_called_anything() -> None:
    found = compare_many({"groups": [0.1, 0.2], "b": [0.3, 0.4]})
    assert found is not None
    assert list(found.means) == ["groups", "b"]


def test_only_the_ratios_of_weights_count() -> None:
    found = compare_pairs([0.5, 0.6, 0.1], [0.5, 0.7, 0.0], weights=[1.7e308] * 3)
    assert found is not None
    assert (found.mean_a, found.mean_b) == pytest.approx((0.4, 0.4))


def test_without_missing_scores_the_ends_change_nothing() -> None:
    ends = [(x, x) for x in A], [(x, x) for x in B]
    assert compare_pairs(A, B, ends=ends) == compare_pairs(A, B)


def assert_between_the_rates(found: Interval, lowest: Interval, highest: Interval) -> None:
    """Each limit is within those of the ends at half the error rate, and beyond the mean at its end."""
    assert found.low is not None
    assert found.high is not None
    assert lowest.low is not None
    assert highest.high is not None
    assert lowest.low < found.low < lowest.estimate
    assert highest.estimate < found.high < highest.high


@pytest.mark.parametrize("pass_fail", [True, False])
def test_the_limits_and_the_test_hold_whatever_the_missing_scores_are(pass_fail: bool) -> None:
    source = np.random.default_rng(3)
    before, after = (source.beta(shape, 2, 60) for shape in (1, 5))
    if pass_fail:
        before, after = np.round(before), np.round(after)
    a, b = before.tolist(), after.tolist()
    missing: list[float | None] = [None if place < 4 else x for place, x in enumerate(b)]
    without, found = compare_pairs(a[4:], b[4:]), compare_pairs(a, missing)
    assert without is not None
    assert found is not None
    assert (found.n, found.missing, without.missing) == (56, 4, 0)
    assert (found.mean_a, found.mean_b, found.mcnemar) == (without.mean_a, without.mean_b, without.mcnemar)
    assert found.difference.estimate == without.difference.estimate
    lowest, highest = (compare_pairs(a, [value] * 4 + b[4:]) for value in (0.0, 1.0))
    assert lowest is not None
    assert highest is not None
    assert_between_the_rates(found.difference, lowest.difference, highest.difference)
    assert lowest.p_value / 2 <= found.p_value < lowest.p_value * 0.9
    turned = compare_pairs(missing, a)
    assert turned is not None
    assert turned.p_value == pytest.approx(found.p_value)


def test_missing_scores_that_could_turn_the_difference_leave_it_undecided() -> None:
    a, b = [0.0] * 10 + [1.0] * 10, [1.0] * 4 + [0.0] * 6 + [None] * 10
    found = compare_pairs(a, b)
    assert found is not None
    assert (found.n, found.difference.estimate, found.p_value) == (10, 0.4, 1)
    assert found.difference.low is not None
    assert found.difference.low < 0
    assert compare_pairs([None, 0.5], [0.5, None]) is None


def test_a_score_that_is_missing_in_part_counts_with_its_ends() -> None:
    a, b = [0.2] * 30, [0.4] * 30
    ends = [(x, x) for x in a], [(0.3, 0.6)] * 3 + [(x, x) for x in b[3:]]
    found = compare_pairs(a, b, ends=ends)
    lowest, highest = (compare_pairs(a, [value] * 3 + b[3:]) for value in (0.3, 0.6))
    assert found is not None
    assert lowest is not None
    assert highest is not None
    assert (found.n, found.missing, found.difference.estimate) == (30, 3, pytest.approx(0.2))
    turned = compare_pairs(b, a, ends=(ends[1], ends[0]))
    assert turned is not None
    assert turned.p_value == pytest.approx(found.p_value)
    assert turned.difference.high == pytest.approx(-(found.difference.low or 0.0))
    assert_between_the_rates(found.difference, lowest.difference, highest.difference)


def test_passes_that_are_missing_in_part_are_not_tested_as_whole_ones() -> None:
    # The judge scored two of three trials, which all fail in a and all pass in b.
    a, b = [0.0] * 12, [1.0] * 12
    found = compare_pairs(a, b, ends=([(0.0, 1 / 3)] * 12, [(2 / 3, 1.0)] * 12))
    lowest = compare_pairs([1 / 3] * 12, [2 / 3] * 12)
    assert found is not None
    assert lowest is not None
    assert found.mcnemar is None
    assert lowest.test.name == found.test.name != "McNemar's test, mid-p"
    assert found.difference.low is not None
    assert lowest.difference.low is not None
    assert found.difference.low > lowest.difference.low


def test_the_interval_contains_the_difference_of_the_pairs_at_hand() -> None:
    # The best scores of a have no score in b, so that the mean difference can't be as large as that of the others.
    found = compare_pairs([0.2] * 50 + [0.9] * 50, [0.8] * 50 + [None] * 50)
    turned = compare_pairs([0.8] * 50 + [None] * 50, [0.2] * 50 + [0.9] * 50)
    assert found is not None
    assert turned is not None
    assert found.difference.high == found.difference.estimate == pytest.approx(0.6)
    assert turned.difference.low == turned.difference.estimate == pytest.approx(-0.6)


def test_a_largest_change_as_large_as_the_scale_changes_nothing() -> None:
    a, b = passes(8, 1, 20)
    found, declared = compare_pairs(a, b), compare_pairs(a, b, max_change=1.0)
    assert found is not None
    assert declared is not None
    assert (declared.test, declared.difference) == (found.test, found.difference)


def test_ranks_use_the_declared_largest_change_from_the_first_run() -> None:
    a = [0.5] * 60
    runs = {"a": a, "b": [0.56] * 60, "c": [0.44] * 60}
    plain, found = compare_many(runs), compare_many(runs, max_change=0.1)
    assert plain is not None
    assert found is not None
    assert plain.ranks == {"a": (1, 3), "b": (1, 2), "c": (2, 3)}
    assert found.ranks == {"a": (2, 2), "b": (1, 1), "c": (3, 3)}
    # b and c both differ from a by 0.1 at most, so they may differ by 0.2.
    assert [pair.comparison.max_change for pair in found.pairs] == [0.1, 0.1, 0.2]
    wide = compare_many(runs, max_change=0.6)
    assert wide is not None
    assert [pair.comparison.max_change for pair in wide.pairs] == [0.6, 0.6, 1.0]
    at_90 = compare_many(runs, confidence=0.9)
    assert at_90 is not None
    assert [pair.comparison.difference.confidence for pair in at_90.pairs] == [0.9] * 3
    with pytest.raises(DataError, match=r"max_change is 0\.05"):
        compare_many(runs, max_change=0.05)


def test_equal_systems_are_not_called_different_where_bad_answers_are_judged_less_often() -> None:
    source = np.random.default_rng(3)
    wrong = 0
    for _ in range(200):
        passed = source.random(200) < 0.85
        later = np.where(source.random(200) < 0.25, source.random(200) < 0.85, passed)
        judged = source.random(200) >= np.where(later, 0.01, 0.3)
        b = [float(x) if known else None for x, known in zip(later.tolist(), judged.tolist(), strict=True)]
        found = compare_pairs(passed.astype(float).tolist(), b)
        assert found is not None
        wrong += found.p_value <= 0.05
    assert wrong <= 0.025 * 200 + 2


def test_a_declared_largest_change_gives_small_shifts_their_power() -> None:
    a, b = [0.80, 0.75, 0.9, 0.85] * 15, [0.83, 0.77, 0.91, 0.87] * 15
    plain, declared = compare_pairs(a, b), compare_pairs(a, b, max_change=0.1)
    assert plain is not None
    assert declared is not None
    assert (plain.max_change, declared.max_change) == (None, 0.1)
    assert declared.difference.estimate == plain.difference.estimate
    assert declared.p_value < 0.001 < 0.05 < plain.p_value
    assert declared.p_value == BoundedMean.of([y - x for x, y in zip(a, b, strict=True)], -0.1, 0.1).two_sided_p(0)
    assert declared.difference.low is not None
    assert declared.difference.low > 0
    missing = compare_pairs([*a, 0.8], [*b, None], max_change=0.1)
    assert missing is not None
    lowest = compare_pairs([*a, 0.8], [*b, 0.7], max_change=0.1)
    assert lowest is not None
    assert missing.difference.low is not None
    assert lowest.difference.low is not None
    assert lowest.difference.low < missing.difference.low < lowest.difference.low + 0.002


def test_a_change_beyond_the_declared_largest_one_is_refused() -> None:
    for max_change in (0.0, -1.0, 1.1, math.nan):
        with pytest.raises(ConfigError) as raised:
            compare_pairs([0.5], [0.5], max_change=max_change)
        assert (raised.value.field, str(raised.value.value)) == ("max_change", str(max_change))
        assert raised.value.allowed.endswith("at most 1")
    with pytest.raises(ConfigError) as raised:
        compare_pairs([0.5], [0.5], margin=2)
    assert (raised.value.field, raised.value.value) == ("margin", 2)


def test_equivalence_takes_both_one_sided_tests() -> None:
    a, b = [0.5] * 200, [0.51, 0.49] * 100
    found = compare_pairs(a, b, margin=0.05)
    assert found is not None
    assert found.equivalence is not None
    assert found.equivalence.p_value < 0.05
    d = BoundedMean.of([y - x for x, y in zip(a, b, strict=True)], -1, 1)
    assert found.equivalence.p_value == max(d.p_value(-0.05, 1), d.p_value(0.05, -1))
    few = compare_pairs(a[:20], b[:20], margin=0.05)
    assert few is not None
    assert few.equivalence is not None
    assert few.equivalence.p_value > 0.05
    missing = compare_pairs([*a, *[0.5] * 40], [*b, *[None] * 40], margin=0.05)
    assert missing is not None
    assert missing.equivalence is not None
    assert missing.equivalence.p_value > 0.9
    plain = compare_pairs(a, b)
    assert plain is not None
    assert plain.equivalence is None


def test_the_comparison_of_a_stopped_run_says_why_it_may_leave_open_what_the_gate_decided() -> None:
    found = compare_pairs([0.2, 0.5] * 5, [0.4, 0.4] * 5, stopped=True)
    assert found is not None
    assert found.p_value > 0.05
    assert found.notes == (note("stopped_comparison", "caution"),)


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: difference_interval([]),
        DataError,
        "need at least one difference",
    ),
    (
        lambda: compare_many({"a": A}),
        ConfigError,
        "need at least two runs, got 1",
    ),
    (
        lambda: compare_pairs([0.5, None, 0.5], [0.6, 0.5, 0.2], max_change=0.1),
        DataError,
        "max_change is 0.1, but sample 2 changes by 0.3",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
