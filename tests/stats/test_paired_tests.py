from __future__ import annotations

import itertools
from typing import Any, cast

import numpy as np
import pytest
import scipy.stats
import statsmodels.stats.contingency_tables as tables  # pyright: ignore[reportMissingTypeStubs]

from evalstone.errors import DataError
from evalstone.stats._arrays import Floats
from evalstone.stats.paired_tests import friedman, mcnemar, mid_ranks, paired_t, permutation_test, wilcoxon


def drawn(seed: int, n: int, digits: int | None = None) -> Floats:
    values = np.random.default_rng(seed).normal(0.3, 1, n)
    return values if digits is None else np.round(values, digits)


def test_sign_flips_worked_by_hand() -> None:
    # of the 8 sign patterns of 1, 2, 4 only ±(1 + 2 + 4) reach 7; those of 1, 2, -4 reach 1 always
    assert permutation_test(np.array([1.0, 2.0, 0.0, 4.0])).p_value == 0.25
    assert permutation_test(np.array([1.0, 2.0, -4.0])).p_value == 1
    assert permutation_test(np.zeros(5)).p_value == 1


def test_sign_flips_are_scipys_permutation_test() -> None:
    d = drawn(1, 12)
    expected = scipy.stats.permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=10**6, vectorized=False
    )
    found = permutation_test(d)
    assert (found.p_value, found.exact) == (pytest.approx(float(expected.pvalue)), True)


def test_drawn_sign_flips_are_close_to_all_of_them_and_depend_on_the_seed_only() -> None:
    d = drawn(2, 19)
    some = np.concatenate((d, [1e-9, -1e-9]))  # two more that change nothing, so that patterns are drawn
    assert permutation_test(some).p_value == pytest.approx(permutation_test(d).p_value, abs=0.02)
    assert permutation_test(some) == permutation_test(some)
    assert permutation_test(some, seed=1) != permutation_test(some, seed=2)
    assert permutation_test(some).name == "paired permutation test, 9,999 permutations"


def test_sign_flips_of_pass_fail_are_mcnemars_at_any_number() -> None:
    d = np.array([1.0] * 40 + [-1.0] * 21 + [0.0] * 100)
    assert permutation_test(d).p_value == mcnemar(40, 21).p_value
    assert permutation_test(d).exact


def test_more_differences_than_are_worth_drawing_take_students_t() -> None:
    d = drawn(3, 10_050) - 0.28
    found, expected = permutation_test(d), cast("Any", scipy.stats.ttest_1samp(d, 0))
    assert (found.name, found.p_value) == ("paired t test", pytest.approx(float(expected.pvalue)))
    assert paired_t(np.array([0.5])).p_value == 1
    assert paired_t(np.array([0.5, 0.5])).p_value == 0


@pytest.mark.parametrize("n", [5, 12, 40])
def test_signed_ranks_without_ties_are_scipys(n: int) -> None:
    d = drawn(n, n)
    expected = cast("Any", scipy.stats.wilcoxon(d, method="exact"))
    found = wilcoxon(d)
    assert (found.statistic, found.p_value) == (float(expected.statistic), pytest.approx(float(expected.pvalue)))


@pytest.mark.parametrize("seed", range(4))
def test_signed_ranks_with_ties_count_all_sign_patterns(seed: int) -> None:
    d = drawn(seed, 11, 0)
    moved = d[d != 0]
    ranks = scipy.stats.rankdata(np.abs(moved))
    seen = abs(float(np.sum(ranks * np.sign(moved))))
    sums = [abs(float(np.dot(signs, ranks))) for signs in itertools.product((1, -1), repeat=moved.size)]
    assert wilcoxon(d).p_value == pytest.approx(float(np.mean(np.array(sums) >= seen - 1e-9)))


def test_many_signed_ranks_are_scipys_normal_approximation() -> None:
    d = drawn(9, 400, 1)
    expected = cast("Any", scipy.stats.wilcoxon(d[d != 0], method="approx"))
    found = wilcoxon(d)
    assert (found.p_value, found.exact) == (pytest.approx(float(expected.pvalue)), False)
    assert wilcoxon(np.zeros(3)).p_value == 1


def test_mid_ranks_share_what_is_tied() -> None:
    assert mid_ranks(np.array([0.3, 0.1, 0.3, 0.2])).tolist() == [3.5, 1, 3.5, 2]


@pytest.mark.parametrize(("gained", "lost"), [(7, 2), (0, 5), (1, 0), (121, 59), (30, 30)])
def test_mcnemar_is_that_of_statsmodels(gained: int, lost: int) -> None:
    reference = cast("Any", tables.mcnemar)  # pyright: ignore[reportUnknownMemberType]
    assert mcnemar(gained, lost).p_value == pytest.approx(float(reference([[0, gained], [lost, 0]], exact=True).pvalue))


def test_mcnemar_without_changes_sees_nothing_and_refuses_what_is_no_count() -> None:
    assert mcnemar(0, 0).p_value == 1
    with pytest.raises(DataError, match="gained -1, lost 2"):
        mcnemar(-1, 2)


def test_friedman_is_scipys_ties_included() -> None:
    table = np.random.default_rng(4).integers(0, 4, (30, 4)).astype(np.float64)
    expected = cast("Any", scipy.stats.friedmanchisquare(*np.transpose(table)))
    found = friedman(table)
    assert (found.statistic, found.p_value) == (
        pytest.approx(float(expected.statistic)),
        pytest.approx(float(expected.pvalue)),
    )
    assert friedman(np.ones((5, 3))).p_value == 1


def test_differences_that_are_equal_but_for_rounding_are_ties() -> None:
    exact = np.array([3.0, 3.0, 3.0, -1.0, -3.0, 2.0])
    rounded = np.array([0.4 - 0.1, 0.3, 0.9 - 0.6, -0.1, 0.7 - 1.0, 0.2])
    assert wilcoxon(rounded) == wilcoxon(exact)
    assert permutation_test(np.array([0.1, 0.2, -0.3])).p_value == 1
    table, exact = (
        np.array([[0.1 + 0.2, 0.3, 0.5], [0.3, 0.1 + 0.2, 0.7]]),
        np.array([[3.0, 3.0, 5.0], [3.0, 3.0, 7.0]]),
    )
    assert friedman(table) == friedman(exact)


def test_the_observed_pattern_counts_among_the_drawn_ones() -> None:
    # all signs agree: none of 9,999 random patterns gets as far, with a chance of 1 - 9,999 / 2^29
    clear = permutation_test(np.linspace(0.1, 0.9, 30))
    assert (clear.exact, clear.p_value) == (False, 1 / 10_000)


def test_drawn_patterns_that_tie_with_the_observed_one_count() -> None:
    # 24 signs of 1 and one of 2: P(|sum| >= 4) = 0.5731 by counting, P(|sum| > 4) = 0.3464
    found = permutation_test(np.array([1.0] * 13 + [-1.0] * 11 + [2.0]))
    assert found.p_value == pytest.approx(0.5731, abs=0.02)


def test_a_sampled_p_value_counts_the_observed_pattern_and_is_never_0() -> None:
    # 2 of 2^40 patterns are as far from 0 as all signs alike: none of 9,999 is
    assert permutation_test(np.arange(1.0, 41.0)).p_value == 1 / 10_000
