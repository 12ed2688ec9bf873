"""Watching a mean: has it fallen below what a baseline had, asked after every value and for as long as one likes?

    P(ever an alarm, however long the watch) <= alpha    if the mean never falls below the baseline's less a tolerance

The baseline is a sample of its own, so its true mean B is unknown. Its lower confidence limit L at an error rate of
BASELINE_SHARE · alpha takes its place: the watch tests against m = L - tolerance.

For each possible start j of a change and each bet λ, a bettor starts at value j with the capital g(j) and multiplies
it by 1 + λ · (m - x) with each value x (values and m as shares of the range, 0 < λ <= MAX_BET / (1 - m), so that no
capital falls below 0). The alarm is raised when the capital of all of them together, M(t), reaches 1 / alpha', alpha'
being the other part of alpha:

    R(t, λ) = (R(t-1, λ) + g(t)) · (1 + λ · (m - x(t))),   R(0, λ) = 0
    M(t)    = mean over λ of R(t, λ)
    g(t)    = G(t) - G(t + 1),   G(t) = 1 / log2(t + 1)

Proof. Let the mean of x(t), given all values before it, be at least m at every t. Then the mean of R(t, λ) given the
past is at most R(t-1, λ) + g(t), so N(t) = M(t) + G(t + 1), the capital with that of the bettors still to start, has a
mean of at most M(t-1) + g(t) + G(t + 1) = N(t-1). N is a nonnegative supermartingale that starts at G(1) = 1, and
P(N ever reaches 1 / alpha') <= alpha' (Ville's inequality); M <= N. If L <= B, "the mean is never below B - tolerance"
implies "never below m". So the chance of a false alarm is at most P(L > B) + alpha' <= alpha. (That the limit errs at
its rate for every distribution is simulated but not proven, see `bounded_mean`.)

A change at value T is found as if the watch had begun there, with a higher bar: log(1 / (alpha' · g(T))), which grows
with log T only. This is an e-detector (Shin, Ramdas and Rinaldo) whose starts share one alpha. Theirs bounds the mean
time to a false alarm from below, by 1 / alpha values, in place of the chance of ever having one.

What must hold: values of different units (traces, conversations) don't depend on each other. Scores of one unit may in
any way: the unit is one value, the mean of its scores. Values come in an order that has nothing to do with them, that
of their units' first submission and not that of their scoring.

Sources: Shin, Ramdas, Rinaldo 2023, "E-detectors: a nonparametric framework for sequential change detection", New
England Journal of Statistics in Data Science 2(2); Waudby-Smith and Ramdas 2024 (see `betting`); Ville 1939.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from evalstone.errors import ConfigError
from evalstone.stats._arrays import Floats, column
from evalstone.stats.bounded_mean import BoundedMean

WatchVerdict: TypeAlias = Literal["drifted", "no drift so far", "too few"]
BASELINE_SHARE = 0.8
"""The part of alpha for the baseline's limit: it widens with the square root of log(1 / alpha), and
the delay of an alarm grows by little."""
MAX_BET = 0.75
"""The share of its capital that a bettor can lose with one value, at most."""
BETS: Floats = MAX_BET * 0.5 ** np.arange(8.0)
"""As shares of what could ruin the bettor. Bets within a factor of 1.4 of the best one grow nearly as fast."""


@dataclass(frozen=True)
class MeanWatch:
    """A mean that is watched for a fall, after some values."""

    verdict: WatchVerdict
    """"drifted" from the first alarm on; "too few" while even the worst values could not have raised one; otherwise
    "no drift so far"."""
    baseline: float
    """The mean of the baseline."""
    bound: float
    """The baseline's lower confidence limit less the tolerance. A mean above it is never found: the baseline is too
    small to say so."""
    mean: float | None
    """The mean of all values; None without any."""
    values: int
    """How many units were watched."""
    alarm: int | None
    """The place of the value that raised the first alarm, from 0."""
    changed: int | None
    """Where the change began, as far as the evidence at the alarm says: the place of the first value since which the
    bettor with the most capital has gained most. An estimate without an error rate."""
    mean_since: float | None
    """The mean from there on, up to the last value."""
    evidence: float
    """The largest capital so far; 1 / (alpha · (1 - BASELINE_SHARE)) raises the alarm."""


def watch_mean(
    baseline: Sequence[float],
    values: Sequence[float],
    *,
    scale: float = 1.0,
    tolerance: float | None = None,
    alpha: float = 0.05,
) -> MeanWatch | None:
    """Whether the mean of values has ever fallen below the baseline's mean by more than a tolerance (see the module).

    Watching longer never costs anything: the result for the values so far and some more says the same of those so far.

    Args:
        baseline: One value per independent unit of the baseline, in [0, scale]; higher is better.
        values: One value per unit of what is watched, in the order of their submission.
        scale: The upper end of the range.
        tolerance: A fall by at most this is none; None is 0.02 · scale.
        alpha: The chance of a false alarm over the whole watch, in (0, 0.5).

    Returns:
        The watch so far; None for an empty baseline.

    Raises:
        DataError: A value is outside [0, scale].
        ConfigError: alpha or the tolerance is out of range.
    """
    tolerance = 0.02 * scale if tolerance is None else tolerance
    if not 0 < alpha < 0.5:
        raise ConfigError(f"alpha must be above 0 and below 0.5, such as 0.05, not {alpha}")
    if not 0 <= tolerance < scale:
        raise ConfigError(f"tolerance must be at least 0 and below {scale:g}, not {tolerance}")
    before, now = (column(n, x, 0.0, scale) / scale for n, x in (("baseline", baseline), ("values", values)))
    if not before.size:
        return None
    mean = float(before.mean())
    limit = BoundedMean.of(before.tolist(), 0.0, 1.0).limit(BASELINE_SHARE * alpha, 1)
    bound, bar = limit - tolerance / scale, -math.log((1 - BASELINE_SHARE) * alpha)
    evidence, alarm, changed, verdict = -math.inf, None, None, "too few"
    if 0 < bound < 1 and now.size:
        capital, best = capitals(now, bound)
        evidence = float(capital.max())
        if evidence >= bar:
            alarm = int(np.argmax(capital >= bar))
            changed, verdict = _start(now[: alarm + 1], best[alarm], bound), "drifted"
        elif capitals(np.zeros(now.size), bound)[0].max() >= bar:
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


def capitals(values: Floats, bound: float) -> tuple[Floats, Floats]:
    """The logarithm of M after each value, and the bet with the most capital then. Values and bound in (0, 1)."""
    starts = np.arange(1, values.size + 1)
    # g(t), without the difference of two numbers that are nearly equal
    first, second = np.log2(starts + 1.0), np.log2(starts + 2.0)
    given = np.log(np.log1p(1 / (starts + 1.0)) / math.log(2) / (first * second))
    logs: Floats = np.empty((BETS.size, values.size))
    for row, bet in zip(logs, BETS / (1 - bound), strict=True):
        growth = np.cumsum(np.log1p(bet * (bound - values)))
        np.logaddexp.accumulate(given - np.concatenate(([0.0], growth[:-1])), out=row)
        row += growth
    together: Floats = np.logaddexp.reduce(logs, axis=0) - math.log(BETS.size)
    return together, BETS[np.argmax(logs, axis=0)] / (1 - bound)


def _start(values: Floats, bet: float, bound: float) -> int:
    """The start from which a bettor with this bet has gained most by the last value."""
    growth = np.concatenate(([0.0], np.cumsum(np.log1p(bet * (bound - values)))[:-1]))
    return int(growth.size - 1 - np.argmin(growth[::-1]))
