"""What reaches a threshold."""

from __future__ import annotations

import pytest

from evalstone.types import reaches

EIGHT_TENTHS = 0.7999999999999999  # eight times 0.1, added up


@pytest.mark.parametrize(
    ("value", "threshold", "scale", "up", "down"),
    [
        (EIGHT_TENTHS, 0.8, 1.0, True, True),
        (0.8, 0.8, 1.0, True, True),
        (0.1 + 0.2, 0.3, 1.0, True, True),
        (0.8 - 1e-8, 0.8, 1.0, False, True),
        (0.8 + 1e-8, 0.8, 1.0, True, False),
        (8 - 5e-9, 8.0, 10.0, True, True),
        (0.0008 - 1e-10, 0.0008, 0.001, False, True),
        (1.1e-16, 0.0, 1.0, True, True),
    ],
)
def test_a_value_reaches_a_threshold_that_it_misses_by_rounding_only(
    value: float, threshold: float, scale: float, up: bool, down: bool
) -> None:
    assert EIGHT_TENTHS < 0.8
    assert reaches(value, threshold, scale) is up
    assert reaches(value, threshold, scale, lower_is_better=True) is down
