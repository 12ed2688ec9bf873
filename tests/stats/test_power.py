from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any, cast

import numpy as np
import pytest
import scipy.stats

from evalstone.errors import ConfigError, EvalstoneError
from evalstone.stats.bounded_mean import BoundedMean, Side
from evalstone.stats.paired_tests import mcnemar
from evalstone.stats.power import Changes, detectable_difference, mcnemar_power, more_units, samples_needed

binom = cast("Any", scipy.stats.binom)
multinomial = cast("Any", scipy.stats.multinomial)


@pytest.mark.parametrize(("n", "gained", "lost"), [(12, 0.5, 0.1), (25, 0.3, 0.05), (30, 0.2, 0.0), (20, 0.7, 0.3)])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_power_is_the_sum_over_all_samples_that_the_test_rejects(
    n: int, gained: float, lost: float, alpha: float
) -> None:
    expected = sum(
        float(multinomial.pmf([up, down, n - up - down], n, [gained, lost, 1 - gained - lost]))
        for up, down in product(range(n + 1), repeat=2)
        if down < up <= n - down and mcnemar(up, down).p_value <= alpha
    )
    assert mcnemar_power(n, gained, lost, alpha) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("gained", "lost"), [(0.08, 0.03), (0.15, 0.05), (0.06, 0.01), (0.3, 0.1), (0.03, 0.0)])
def test_pass_fail_plans_have_the_power_that_was_asked_for(gained: float, lost: float) -> None:
    n = samples_needed(Changes(gained + lost), gained - lost)
    assert 0.8 <= mcnemar_power(n, gained, lost) < 0.815
    assert mcnemar_power(round(0.95 * n), gained, lost) < 0.8
    assert 2 * mcnemar_power(n, (gained + lost) / 2, (gained + lost) / 2) < 0.05


def test_large_samples_follow_the_normal_curve() -> None:
    n = samples_needed(Changes(0.1), 0.002)
    normal = cast("Any", scipy.stats.norm)
    expected = (1.959964 + 0.841621) ** 2 * 0.1 / 0.002**2
    assert n == pytest.approx(expected, rel=0.005)
    power = float(normal.cdf(0.002 * math.sqrt(n / 0.1) - 1.959964))
    assert mcnemar_power(n, 0.051, 0.049) == pytest.approx(power, abs=0.002)
    exact, approximate = mcnemar_power(999_000, 0.5 + 0.0014, 0.5 - 0.0014), mcnemar_power(1_001_000, 0.5014, 0.4986)
    assert exact == pytest.approx(approximate, abs=0.002)


def test_what_no_sample_can_show() -> None:
    assert detectable_difference(Changes(1.0), 2) is None
    assert detectable_difference(Changes(0.1), 1) is None
    assert mcnemar_power(1000, 0.0, 0.0) == 0


@pytest.mark.parametrize(
    ("passed", "n", "threshold"), [(90, 100, 0.85), (49, 50, 0.93), (78, 100, 0.82), (20, 20, 0.95)]
)
def test_more_pass_fail_samples_decide_as_often_as_they_should(passed: int, n: int, threshold: float) -> None:
    evidence = BoundedMean.of([1.0] * passed + [0.0] * (n - passed), 0, 1)
    rate = passed / n
    side: Side = 1 if rate > threshold else -1
    found = more_units(evidence, threshold, side, 0.05)
    assert found is not None

    def power(more: int) -> float:
        new = np.arange(more + 1)
        seen = passed + new
        tail = binom.sf(seen - 1, n + more, threshold) if side == 1 else binom.cdf(seen, n + more, threshold)
        return float(np.sum(binom.pmf(new, more, rate)[tail <= 0.05]))

    if rate == 1:
        assert power(found) == 1
        assert power(found - 1) == 0
    else:  # a test of whole counts goes up and down with n; over a stretch it has the power that was asked for
        assert np.mean([power(more) for more in range(found - 15, found + 16)]) == pytest.approx(0.8, abs=0.03)


def test_more_units_that_can_never_decide() -> None:
    evidence = BoundedMean.of([0.0, 1.0] * 30, 0, 1)
    assert more_units(evidence, 0.5, 1, 0.05) is None
    assert more_units(evidence, 0.6, 1, 0.05) is None
    assert more_units(evidence, 0.4999, 1, 0.05) is None
    strict, lax = more_units(evidence, 0.4, 1, 0.01), more_units(evidence, 0.4, 1, 0.05)
    assert strict is not None
    assert lax is not None
    assert strict > lax


def test_unchanged_differences_need_what_the_margin_says() -> None:
    found = more_units(BoundedMean.of([0.0] * 20, -1, 1), -0.02, 1, 0.05)
    assert found == math.ceil(math.log(0.05) / math.log(0.98)) - 20


def test_the_power_for_very_many_pairs_is_that_of_the_normal_test():
    # n · net = 3150, the test's limit 1.959964 · √(n / 2) = 2008.365, the deviation √(n · (1/2 - 0.0015²)) = 1024.693
    expected = float(scipy.stats.norm.cdf((3150 - 2008.365) / 1024.693))
    assert mcnemar_power(2_100_000, 0.25075, 0.24925) == pytest.approx(expected, abs=1e-5)


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: samples_needed(Changes(0.5), 1e-06),
        ConfigError,
        "a difference of 1e-06 would need more than 1,000,000,000 samples",
    ),
    (
        lambda: mcnemar_power(100, 0.7, 0.4),
        ConfigError,
        "shares must be 0 or more, with a sum of at most 1: gained 0.7, lost 0.4",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
