from __future__ import annotations

import math

import pytest

from evalstone.stats.roots import root


@pytest.mark.parametrize("power", [0.3, 1.0, 1.5, 5.0])
@pytest.mark.parametrize("guess", [-2.0, 0.01, 0.5, 0.69, 1.0, 7.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_root_is_found_from_either_end_and_any_guess(power: float, guess: float, sign: int) -> None:
    evaluated: list[float] = []

    def f(x: float) -> float:
        evaluated.append(x)
        return sign * (x**power - 0.7**power)

    for start, end in ((0.0, 1.0), (1.0, 0.0)):
        found = root(f, start, end, guess, at_start=sign * (start**power - 0.7**power), close=1e-5)
        assert found == pytest.approx(0.7, abs=1e-7)
    assert all(0 < x < 1 for x in evaluated)
    assert len(evaluated) < 80


def test_a_jump_is_found_and_not_passed() -> None:
    found = root(lambda x: math.copysign(40.0, x - 0.3), 1.0, 0.0, 0.9, at_start=40.0, close=1e-5)
    assert found == pytest.approx(0.3, abs=1e-9)
