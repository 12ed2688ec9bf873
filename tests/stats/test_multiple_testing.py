from __future__ import annotations

import random
from typing import Any, cast

import pytest
import statsmodels.stats.multitest as reference  # pyright: ignore[reportMissingTypeStubs]

from evalstone.errors import ConfigError, DataError
from evalstone.stats import benjamini_hochberg, holm
from evalstone.stats.multiple_testing import adjust_p_values

P = [0.01, 0.04, 0.03, 0.005]


def test_holm_worked_by_hand() -> None:
    # sorted 0.005·4, 0.01·3, 0.03·2, 0.04·1, each at least the one before
    assert holm(P) == pytest.approx((0.03, 0.06, 0.06, 0.02))


def test_benjamini_and_hochberg_worked_by_hand() -> None:
    # sorted 0.005·4/1, 0.01·4/2, 0.03·4/3, 0.04·4/4, each at most the one after
    assert benjamini_hochberg(P) == pytest.approx((0.02, 0.04, 0.04, 0.02))


@pytest.mark.parametrize("count", [1, 2, 5, 30])
@pytest.mark.parametrize("power", [1, 6])
def test_adjusted_values_are_those_of_statsmodels(count: int, power: int) -> None:
    multipletests = cast("Any", reference.multipletests)  # pyright: ignore[reportUnknownMemberType]
    source = random.Random(count)
    p_values = [source.choice([0.02, source.random() ** power]) for _ in range(count)]
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist())
    assert benjamini_hochberg(p_values) == pytest.approx(multipletests(p_values, method="fdr_bh")[1].tolist())


def test_no_p_values_have_no_adjusted_ones_and_impossible_ones_are_named() -> None:
    assert holm([]) == benjamini_hochberg([]) == ()
    with pytest.raises(DataError, match=r"number 1 is 1\.2"):
        holm([0.5, 1.2])
    with pytest.raises(DataError, match="number 0 is nan"):
        benjamini_hochberg([float("nan")])


def test_p_values_are_adjusted_by_the_method_that_is_named() -> None:
    assert adjust_p_values(P) == adjust_p_values(P, "holm") == holm(P)
    assert adjust_p_values(P, "fdr_bh") == benjamini_hochberg(P)
    assert adjust_p_values(P, "none") == tuple(P)
    with pytest.raises(DataError, match=r"number 0 is 1\.2"):
        adjust_p_values([1.2], "none")
    with pytest.raises(ConfigError) as raised:
        adjust_p_values(P, "bonferroni")  # pyright: ignore[reportArgumentType]
    assert (raised.value.field, raised.value.value) == ("correction", "bonferroni")
