from __future__ import annotations

import itertools
import math
from typing import Any, cast

import numpy as np
import pytest
import scipy.stats
import statsmodels.stats.contingency_tables as tables  # pyright: ignore[reportMissingTypeStubs]

from evalstone.errors import DataError
from evalstone.stats._arrays import Floats
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.paired_tests import mcnemar, mean_test, mid_ranks, wilcoxon


def drawn(seed: int, n: int, digits: int | None = None) -> Floats:
    values = np.random.default_rng(seed).normal(0.3, 1, n)
    return values if digits is None else np.round(values, digits)


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


@pytest.mark.parametrize(("gained", "lost"), [(7, 2), (0, 5), (1, 0), (121, 59)])
def test_mcnemar_is_the_exact_one_less_half_of_the_observed_split(gained: int, lost: int) -> None:
    reference = cast("Any", tables.mcnemar)  # pyright: ignore[reportUnknownMemberType]
    exact = float(reference([[0, gained], [lost, 0]], exact=True).pvalue)
    observed = float(scipy.stats.binom.pmf(lost, gained + lost, 0.5))
    assert mcnemar(gained, lost).p_value == pytest.approx(exact - observed)
    assert mcnemar(lost, gained).p_value == mcnemar(gained, lost).p_value


def test_mcnemar_of_an_even_split_sees_nothing() -> None:
    assert mcnemar(30, 30).p_value == 1


def test_the_mean_test_holds_where_losses_are_rare_and_large() -> None:
    # Small gains of 0.089 in 45 of 100, a loss of 0.8 in 5 of 100: the mean is 0, and 36 % of samples show no loss.
    source = np.random.default_rng(3)
    rejected = 0
    for _ in range(300):
        u = source.random(20)
        d = np.where(u < 0.05, -0.8, np.where(u < 0.5, 0.04 / 0.45, 0.0))
        rejected += mean_test(BoundedMean.of(d.tolist(), -1, 1)).p_value <= 0.05
    assert rejected < 0.05 * 300


def test_mcnemar_without_changes_sees_nothing_and_refuses_what_is_no_count() -> None:
    assert mcnemar(0, 0).p_value == 1
    with pytest.raises(DataError, match="gained -1, lost 2"):
        mcnemar(-1, 2)


def test_differences_that_are_equal_but_for_rounding_are_ties() -> None:
    exact = np.array([3.0, 3.0, 3.0, -1.0, -3.0, 2.0])
    rounded = np.array([0.4 - 0.1, 0.3, 0.9 - 0.6, -0.1, 0.7 - 1.0, 0.2])
    assert wilcoxon(rounded) == wilcoxon(exact)


def test_the_unit_of_the_differences_does_not_matter_to_wilcoxon():
    d = np.array([1.0, -2.0, 3.0, 4.0, 5.0])  # W- = 2; of 32 sign patterns {}, {1} and {2} have at most 2
    assert wilcoxon(d).p_value == wilcoxon(1e-9 * d).p_value == wilcoxon(1e9 * d).p_value == 2 * 3 / 32


def test_mcnemars_test_rejects_no_difference_as_rarely_as_it_says() -> None:
    rejected = [
        sum(math.comb(n, k) for k in range(n + 1) if mcnemar(k, n - k).p_value <= 0.05) / 2**n for n in range(61)
    ]
    assert max(rejected) == rejected[16] == pytest.approx(0.0768, abs=1e-4)
    for n in range(5, 61):
        for changes in (0.1, 0.3, 0.5, 0.7, 0.8):
            chances = [math.comb(n, m) * changes**m * (1 - changes) ** (n - m) for m in range(n + 1)]
            assert math.fsum(p * r for p, r in zip(chances, rejected, strict=False)) <= 0.051
