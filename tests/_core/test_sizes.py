"""Numbers that size a run have limits."""

from __future__ import annotations

from typing import Any

import pytest

from evalstone._core.declarations import check_argument
from evalstone._core.sizes import MOST_TRIALS, Trials
from tests.refusals import refused


@pytest.mark.parametrize("value", [1, 2, MOST_TRIALS])
def test_a_number_within_the_limits_is_taken(value: int) -> None:
    check_argument("trials", value, Trials)


@pytest.mark.parametrize(
    "value", [0, MOST_TRIALS + 1, -1, True, 2.0, "2", None, pytest.param(10**5000, id="too long to print")]
)
def test_anything_else_is_refused_with_the_name_and_the_limits(value: Any) -> None:
    with refused("trials", "a whole number from 1 to 10000"):
        check_argument("trials", value, Trials)
