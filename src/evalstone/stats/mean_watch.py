"""Sequential change detection: has a mean dropped below a baseline's? The test is valid after every value, forever.

    P(any alarm, however long the watch) <= alpha    if the mean never falls below (baseline mean - tolerance)

The baseline is itself a sample, so its true mean B is unknown. Its lower confidence limit L at error rate
BASELINE_SHARE · alpha takes the place of B: the watch tests against m = L - tolerance.

For each possible start j of a change and each bet λ, a bettor starts at value j with the capital g(j) and multiplies it
by 1 + λ · (m - x) for each value x. Values and m are shares of the range, and 0 < λ <= MAX_BET / (1 - m), so capital
never becomes negative. The alarm is raised when the total capital M(t) reaches 1 / alpha', where
alpha' = (1 - BASELINE_SHARE) · alpha:

    R(t, λ) = (R(t-1, λ) + g(t)) · (1 + λ · (m - x(t))),   R(0, λ) = 0
    M(t)    = mean over λ of R(t, λ)
    g(t)    = G(t) - G(t + 1),   G(t) = 1 / log2(t + 1)

Proof. Suppose that the conditional mean of x(t) given all earlier values is at least m at every t. Then the conditional
mean of R(t, λ) is at most R(t-1, λ) + g(t). N(t) = M(t) + G(t + 1) adds the capital of the bettors yet to start; its
conditional mean is at most M(t-1) + g(t) + G(t + 1) = N(t-1). So N is a nonnegative supermartingale that starts at
G(1) = 1, and P(N ever reaches 1 / alpha') <= alpha' (Ville's inequality). M <= N. If L <= B, "the mean is never below
B - tolerance" implies "the mean is never below m". The probability of a false alarm is therefore at most
P(L > B) + alpha' <= alpha. (The error rate of L is confirmed by simulation, but not proven for every distribution; see
`bounded_mean`.)

A change at value T is detected as if the watch had begun there with a higher threshold, log(1 / (alpha' · g(T))), which
grows only with log T. This is an e-detector (Shin, Ramdas and Rinaldo) whose starts share one alpha. The original
controls the average run length, at least 1 / alpha values until a false alarm, instead of the probability of any false
alarm.

Whole cycles. Scores that vary with the hour have no constant mean, so "the mean is at least m at every t" is false at
night although the mean over every day is at least m. With `cycles`, bettors start only at the start of a cycle, and
capital counts only at the end of one: t and j are cycles, and the factor of a cycle is the product over its n values.
If these are independent with means p(i) whose average is at least m,

    the mean of Π (1 + λ · (m - x(i))) = Π (1 + λ · (m - p(i))) <= (1 + λ · (m - average of p(i)))^n <= 1

by the inequality of arithmetic and geometric means, so the proof holds for whole cycles. n may differ between cycles,
but must not depend on the values.

Assumptions: different units (traces, conversations) are independent. Scores within a unit may be dependent in any way;
their mean is the unit's single value. The order of the values is unrelated to their size: units are ordered by their
first submission, not by when they were scored. Without cycles, the expected value is the same at all times; a few bad
hours are a drop.

Sources: Shin, Ramdas, Rinaldo 2023, "E-detectors: a nonparametric framework for sequential change detection", New
England Journal of Statistics in Data Science 2(2); Waudby-Smith and Ramdas 2024 (see `betting`); Ville 1939.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from evalstone._core.truth import PASSED, NoTruthValue
from evalstone.errors import ConfigError, DataError, invalid
from evalstone.stats._arrays import Floats, Positions, column, same_length
from evalstone.stats.bounded_mean import BoundedMean

WatchVerdict: TypeAlias = Literal["drifted", "no drift so far", "too few"]
BASELINE_SHARE = 0.8
"""The share of alpha for the baseline's confidence limit. A small remainder is enough for the watch: it delays an alarm
only a little."""
MAX_BET = 0.75
"""The largest share of its capital that a bettor can lose on one value."""
BETS: Floats = MAX_BET * 0.5 ** np.arange(8.0)
"""As shares of the bet that could ruin the bettor. Bets within a factor of 1.4 of the best one grow nearly as fast."""


@dataclass(frozen=True, kw_only=True)
class MeanWatch(NoTruthValue):
    """The state of a watch for a drop of the mean, after some values."""

    verdict: WatchVerdict
    """"drifted" from the first alarm on; "too few" while there are so few values that even the worst ones couldn't have
    raised an alarm; otherwise "no drift so far"."""
    baseline: float
    """The mean of the baseline."""
    bound: float
    """The baseline's lower confidence limit minus the tolerance. A drop of the mean to a value above it can't be
    detected; that takes a larger baseline."""
    mean: float | None
    """The mean of all values; None without any."""
    values: int
    """The number of units watched."""
    alarm: int | None
    """The position, from 0, of the value that raised the first alarm; None without an alarm."""
    changed: int | None
    """The estimated start of the change, as a position from 0: where a bettor with the most successful bet would have
    had to start to gain most by the alarm. A point estimate without an error rate. None without an alarm."""
    mean_since: float | None
    """The mean from `changed` to the last value; None without an alarm."""
    evidence: float
    """The largest total capital so far; 1 / (alpha · (1 - BASELINE_SHARE)) raises the alarm."""

    @property
    def passed(self) -> bool | None:
        """False after an alarm, True without one so far; None if there are too few values for an alarm."""
        return PASSED[self.verdict]


def watch_mean(
    baseline: Sequence[float],
    values: Sequence[float],
    *,
    scale: float = 1.0,
    tolerance: float | None = None,
    alpha: float = 0.05,
    cycles: Sequence[int] | None = None,
) -> MeanWatch | None:
    """Test whether the mean of values ever dropped below the baseline's mean by more than a tolerance.

    The test can be repeated after every value without inflating the error rate; see the module docstring. More values
    never change the result for earlier ones.

    Args:
        baseline: One value per independent unit of the baseline, in [0, scale]; higher is better.
        values: One value per watched unit, in order of submission.
        scale: The upper end of the range.
        tolerance: A drop by at most this much is acceptable, in [0, scale). None: 0.02 · scale.
        alpha: The probability of any false alarm over the whole watch, in (0, 0.5).
        cycles: The number of each value's cycle, such as its day, never decreasing. All cycles must be complete. Only
            the means over whole cycles are tested, so that values may vary within a cycle. None: all values are alike.

    Returns:
        The state of the watch; None for an empty baseline.

    Raises:
        DataError: A value is outside [0, scale], there are fewer or more cycles than values, or cycles decrease.
        ConfigError: alpha or tolerance is outside its range.
    """
    tolerance = 0.02 * scale if tolerance is None else tolerance
    if not 0 < alpha < 0.5:
        raise ConfigError(invalid("alpha", "above 0 and below 0.5, such as 0.05", alpha))
    if not 0 <= tolerance < scale:
        raise ConfigError(invalid("tolerance", f"at least 0 and below {scale:g}", tolerance))
    before, now = (column(n, x, 0.0, scale) / scale for n, x in (("baseline", baseline), ("values", values)))
    if not before.size:
        return None
    mean = float(before.mean())
    limit = BoundedMean.of(before.tolist(), 0.0, 1.0).limit(BASELINE_SHARE * alpha, 1)
    bound, bar = limit - tolerance / scale, -math.log((1 - BASELINE_SHARE) * alpha)
    evidence, alarm, changed, verdict = -math.inf, None, None, "too few"
    starts = _starts(now.size, cycles)
    if 0 < bound < 1 and now.size:
        capital, best = capitals(now, bound, starts)
        evidence = float(capital.max())
        if evidence >= bar:
            last = int(np.argmax(capital >= bar))
            alarm = int(np.append(starts, now.size)[last + 1]) - 1
            changed, verdict = int(starts[_start(now, best[last], bound, starts[: last + 1], alarm)]), "drifted"
        elif capitals(np.zeros(now.size), bound, starts)[0].max() >= bar:
            verdict = "no drift so far"
    return MeanWatch(
        verdict=verdict,
        baseline=scale * mean,
        bound=scale * bound,
        mean=scale * float(now.mean()) if now.size else None,
        values=int(now.size),
        alarm=alarm,
        changed=changed,
        mean_since=None if changed is None else scale * float(now[changed:].mean()),
        evidence=math.exp(min(700.0, evidence)),
    )


def _starts(size: int, cycles: Sequence[int] | None) -> Positions:
    """The position of the first value of each cycle."""
    if cycles is None:
        return np.arange(size)
    same_length(values=range(size), cycles=cycles)
    steps = np.diff(np.asarray(cycles, dtype=np.int64))
    if (steps < 0).any():
        raise DataError(f"cycles must not decrease, but value {int(np.argmax(steps < 0)) + 1} is of an earlier cycle")
    return np.flatnonzero(np.concatenate(([True], steps > 0)))[:size]


def capitals(values: Floats, bound: float, starts: Positions) -> tuple[Floats, Floats]:
    """log M after each cycle, and the bet with the most capital at that time.

    values: in [0, 1], at least one. bound: in (0, 1). starts: the position of the first value of each cycle.
    """
    numbers = np.arange(1, starts.size + 1)
    # log g(t), in a form without catastrophic cancellation
    first, second = np.log2(numbers + 1.0), np.log2(numbers + 2.0)
    log_start = np.log(np.log1p(1 / (numbers + 1.0)) / math.log(2) / (first * second))
    logs: Floats = np.empty((BETS.size, starts.size))
    for row, bet in zip(logs, BETS / (1 - bound), strict=True):
        growth = _growth(values, bet, bound, starts)
        np.logaddexp.accumulate(log_start - np.concatenate(([0.0], growth[:-1])), out=row)
        row += growth
    log_mean: Floats = np.logaddexp.reduce(logs, axis=0) - math.log(BETS.size)
    return log_mean, BETS[np.argmax(logs, axis=0)] / (1 - bound)


def _growth(values: Floats, bet: float, bound: float, starts: Positions) -> Floats:
    """The log capital of a bettor who starts with the first value, after each cycle."""
    growth: Floats = np.cumsum(np.add.reduceat(np.log1p(bet * (bound - values)), starts))
    return growth


def _start(values: Floats, bet: float, bound: float, starts: Positions, last: int) -> int:
    """The cycle from whose start a bettor with this bet would have gained most by the value at `last`."""
    growth = np.concatenate(([0.0], _growth(values[: last + 1], bet, bound, starts)[:-1]))
    return int(growth.size - 1 - np.argmin(growth[::-1]))
