from __future__ import annotations

from typing import Any, cast

import pytest
import statsmodels.stats.proportion as reference  # pyright: ignore[reportMissingTypeStubs]

from evalstone.errors import ConfigError, DataError
from evalstone.stats import mean_interval, wilson_interval
from evalstone.stats.proportions import lower_limit, rate_interval, upper_limit

COUNTS = [(0, 10), (10, 10), (1, 30), (27, 30), (81, 263), (970, 1000)]
confint = cast("Any", reference.proportion_confint)  # pyright: ignore[reportUnknownMemberType]


def test_wilson_as_published() -> None:
    # Newcombe 1998, Statistics in Medicine 17, table I: 81/263, 15/148, 0/20, 1/29
    for (successes, n), expected in {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0000, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }.items():
        found = wilson_interval(successes, n)
        assert found is not None
        assert (found.low, found.high) == (pytest.approx(expected[0], abs=5e-5), pytest.approx(expected[1], abs=5e-5))


@pytest.mark.parametrize(("successes", "n"), COUNTS)
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_intervals_are_those_of_statsmodels(successes: int, n: int, level: float) -> None:
    found = wilson_interval(successes, n, level)
    assert found is not None
    low, high = confint(successes, n, 1 - level, method="wilson")
    assert (found.low, found.high) == (pytest.approx(float(low), abs=1e-9), pytest.approx(float(high), abs=1e-9))
    low, high = confint(successes, n, 2 * (1 - level), method="beta")
    assert lower_limit(successes, n, level) == pytest.approx(float(low), abs=1e-9)
    assert upper_limit(successes, n, level) == pytest.approx(float(high), abs=1e-9)


def test_a_rate_in_groups_is_less_certain() -> None:
    passed = [True, True, True, True, False, False, True, True, False, False] * 4
    groups = [place // 2 for place in range(40)]
    alone, grouped = rate_interval(passed), rate_interval(passed, groups=groups)
    assert alone == wilson_interval(24, 40)
    assert grouped == mean_interval([float(p) for p in passed], low=0, high=1, groups=groups)
    assert alone is not None
    assert grouped is not None
    assert (alone.low or 0) > (grouped.low or 0)


def test_impossible_counts_and_levels_are_refused() -> None:
    assert wilson_interval(0, 0) is None
    for successes, n in ((3, 2), (-1, 2)):
        with pytest.raises(DataError, match=rf"from 0 to n: {successes} of {n}"):
            wilson_interval(successes, n)
        with pytest.raises(DataError, match=rf"from 0 to n: {successes} of {n}"):
            lower_limit(successes, n)
    with pytest.raises(ConfigError, match="level"):
        upper_limit(1, 2, 1.5)
