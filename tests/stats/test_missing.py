from __future__ import annotations

import math
from typing import cast

import pytest

from evalstone.errors import DataError
from evalstone.stats import Bounds, bounds


def test_bounds_put_the_missing_at_the_worst_and_the_best() -> None:
    # 0.5 + 0.9 over 4 with two at 0, and with two at 1
    found = bounds([0.5, 0.9], 2)
    assert found is not None
    assert (found.mean, found.n, found.missing) == (0.7, 2, 2)
    assert (found.low, found.high) == (pytest.approx(0.35), pytest.approx(0.85))
    assert found.width == pytest.approx(0.5)


def test_bounds_without_missing_are_the_mean_and_without_values_the_range() -> None:
    assert bounds([1.0, 4.0], 0, 0, 5) == Bounds(2.5, 2.5, 2.5, 2, 0)
    assert bounds([], 3, 0, 5) == Bounds(None, 0, 5, 0, 3)
    assert bounds([], 0) is None


def test_bounds_refuse_what_cannot_be() -> None:
    with pytest.raises(DataError, match="missing must be 0 or more, not -1"):
        bounds([0.5], -1)
    with pytest.raises(DataError, match=r"are not all in \[0.0, 1.0\]"):
        bounds([0.5, 1.5], 1)
    with pytest.raises(DataError, match="value 0 is nan"):
        bounds([math.nan], 1)
    with pytest.raises(DataError, match="the range must go up"):
        bounds([0.5], 1, 1, 0)


def test_without_missing_values_the_bounds_are_the_mean_in_any_range() -> None:
    found = bounds([0.5], 0, high=math.inf)
    assert found is not None
    assert (found.low, found.high) == (0.5, 0.5)
    with pytest.raises(DataError, match="missing must be 0 or more, not nan"):
        bounds([0.5], cast("int", math.nan))
