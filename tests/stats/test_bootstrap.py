from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from evalstone.errors import ConfigError, DataError
from evalstone.stats.bootstrap import bootstrap_interval

VALUES = np.random.default_rng(5).beta(6, 1, 40).tolist()


def spread(x: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    return np.asarray(np.std(x, axis=axis, ddof=1))


def test_the_bca_interval_is_scipys_but_for_chance() -> None:
    found = bootstrap_interval(VALUES, resamples=20_000)
    expected = scipy.stats.bootstrap((VALUES,), np.mean, n_resamples=20_000, method="BCa", rng=1).confidence_interval
    assert found is not None
    assert found.low == pytest.approx(float(expected.low), abs=0.004)
    assert found.high == pytest.approx(float(expected.high), abs=0.004)
    assert (found.mean, found.method) == (pytest.approx(statistics.fmean(VALUES)), "BCa")


def test_another_statistic_is_scipys_too() -> None:
    # The standard deviation of few resampled values is too small on average, so that the bias counts. The same seed
    # draws the same resamples there.
    few = VALUES[:12]
    found = bootstrap_interval(few, statistic=statistics.stdev, resamples=6000, seed=0)
    expected = scipy.stats.bootstrap((few,), spread, n_resamples=6000, method="BCa", rng=0).confidence_interval
    assert found is not None
    assert found.low == pytest.approx(float(expected.low), abs=1e-3)
    assert found.high == pytest.approx(float(expected.high), abs=1e-3)


def test_a_statistic_given_as_a_function_is_resampled_as_the_mean_is() -> None:
    groups = [place // 2 for place in range(40)]
    for labels in (None, groups):
        plain = bootstrap_interval(VALUES, resamples=4000, groups=labels)
        given = bootstrap_interval(VALUES, statistic=statistics.fmean, resamples=4000, groups=labels, seed=1)
        assert plain is not None
        assert given is not None
        assert given.low == pytest.approx(plain.low, abs=0.01)
        assert given.high == pytest.approx(plain.high, abs=0.01)


def test_whole_groups_are_drawn() -> None:
    once = bootstrap_interval(VALUES, seed=3)
    thrice = bootstrap_interval(VALUES * 3, groups=list(range(40)) * 3, seed=3)
    assert once is not None
    assert thrice is not None
    assert (thrice.low, thrice.high) == (pytest.approx(once.low), pytest.approx(once.high))
    assert thrice.groups == 40


def test_the_seed_makes_the_interval() -> None:
    assert bootstrap_interval(VALUES, seed=1) == bootstrap_interval(VALUES, seed=1)
    assert bootstrap_interval(VALUES, seed=1) != bootstrap_interval(VALUES, seed=2)


def test_what_cannot_be_resampled_has_no_limits() -> None:
    assert bootstrap_interval([]) is None
    one = bootstrap_interval([0.5])
    same = bootstrap_interval([0.7] * 10)
    assert one is not None
    assert same is not None
    assert (one.low, one.high, one.caution) == (None, None, "a single sample")
    assert (same.low, same.high, same.caution) == (None, None, "all resamples give the same statistic")
    with pytest.raises(ConfigError, match="resamples must be 100 or more, not 10"):
        bootstrap_interval(VALUES, resamples=10)
    with pytest.raises(DataError, match="value 1 is nan"):
        bootstrap_interval([0.5, float("nan")])


def test_a_statistic_that_is_no_number_for_some_resample_is_refused() -> None:
    with pytest.raises(DataError, match="the statistic must be a finite number"):
        bootstrap_interval([0.1, 0.2, 0.3], statistic=lambda _: math.nan, resamples=100)
