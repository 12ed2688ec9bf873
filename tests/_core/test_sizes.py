"""Numbers that size a run have limits."""

from __future__ import annotations

import pytest

from evalstone._core.sizes import whole
from evalstone.errors import ConfigError


@pytest.mark.parametrize("value", [1, 2, 10])
def test_a_number_within_the_limits_is_returned(value: int) -> None:
    assert whole("trials", value, 1, 10) == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (11, "11"),
        (-1, "-1"),
        (True, "True"),
        (2.0, "2.0"),
        ("2", "'2'"),
        (None, "None"),
        pytest.param(10**5000, "<int>", id="too long to print"),
    ],
)
def test_anything_else_is_refused_with_the_name_the_limits_and_the_value(value: object, shown: str) -> None:
    with pytest.raises(ConfigError) as error:
        whole("trials", value, 1, 10)
    assert str(error.value) == f"trials must be a whole number from 1 to 10, not {shown}"
