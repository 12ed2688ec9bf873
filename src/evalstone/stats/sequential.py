"""Gates that may be checked after every sample, with error rates that hold whenever one stops.

Each target has two bettors, one against "the mean is at most the threshold", one against "at least". A capital of 1 is
multiplied by 1 ± λ · (x - threshold) with each sample, x and threshold as shares of the range, λ >= 0 chosen from the
samples before. If the hypothesis is true, the capital ever reaches 1 / alpha with a chance of at most alpha (Ville's
inequality). λ is the bet that grows the capital fastest if mean and variance stay what they were so far (aGRAPA), at
most 3/4 of what could ruin the bettor. Samples must come in an order unrelated to their scores: shuffle them.
Source: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", JRSS B 86(1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from evalstone.errors import ConfigError, DataError, unknown
from evalstone.stats._arrays import Floats
from evalstone.stats.gates import Decision, Verdict
from evalstone.stats.intervals import check_confidence

MAX_BET = 0.75
GRID = 1000
SequentialKind: TypeAlias = Literal["at_least", "at_most", "max_regression"]


@dataclass(frozen=True)
class Target:
    """A criterion whose values come one by one, each in [low, high].

    For "at_least" and "at_most", values are scores. For "max_regression", values are improvements over the baseline on
    the same sample (b - a, or a - b where lower is better), low is -scale and the threshold -margin. For clustered
    samples, a value must be the mean of a cluster.
    """

    name: str
    threshold: float
    kind: SequentialKind = "at_least"
    low: float = 0.0
    high: float = 1.0


class ConfidenceSequence:
    """An interval for the mean of values in [low, high] that holds at every number of samples at once.

    It holds the means on a grid of a thousandth of the range that no bettor has ruled out, and one step at either end.

    Raises:
        ConfigError: The range is empty, or confidence is outside (0, 1).
    """

    def __init__(self, low: float = 0.0, high: float = 1.0, *, confidence: float = 0.95) -> None:
        check_confidence(confidence)
        _check_range("the range", low, high)
        self._low, self._span = low, high - low
        self._means = np.linspace(0, 1, GRID + 1)[1:-1]
        self._bettors = _Bettors(self._means)
        self._limit = math.log(2 / (1 - confidence))
        self._from, self._to = 0.0, 1.0

    def add(self, value: float) -> None:
        """Add one value. Raises DataError outside the range."""
        self._bettors.add(_share("value", value, self._low, self._span))
        over, under = self._bettors.best
        possible = np.flatnonzero((over < self._limit) & (under < self._limit))
        if possible.size:
            self._from = max(self._from, float(self._means[possible[0]]) - 1 / GRID)
            self._to = min(self._to, float(self._means[possible[-1]]) + 1 / GRID)

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval so far; it only ever shrinks."""
        return self._low + self._span * self._from, self._low + self._span * self._to


class SequentialGate:
    """Decides targets while samples come in.

    Args:
        targets: One or more, with unique names.
        alpha: The error rate in (0, 0.5), of any wrong pass and of any wrong fail; shared equally among the targets.

    Raises:
        ConfigError: No target, two of one name, a threshold outside its range, or alpha outside (0, 0.5).
    """

    def __init__(self, targets: Sequence[Target], *, alpha: float = 0.05) -> None:
        if not 0 < alpha < 0.5:
            raise ConfigError(f"alpha must be above 0 and below 0.5, such as 0.05, not {alpha}")
        names = [target.name for target in targets]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"one target or more is needed, with unique names: {names}")
        self._states = {target.name: _TargetState(target, alpha / len(names)) for target in targets}

    def add(self, values: Mapping[str, float]) -> None:
        """Add one sample's values by target name; targets without one (skipped, failed) stay as they are.

        Raises:
            ConfigError: A name is not a target.
            DataError: A value is outside its range; the sample then counts for no target.
        """
        for name in values:
            if name not in self._states:
                raise ConfigError(unknown("target", name, self._states))
        for name, value in values.items():
            self._states[name].check(value)  # all before any, so that a rejected sample counts nowhere
        for name, value in values.items():
            self._states[name].add(value)

    @property
    def settled(self) -> bool:
        """Whether the run can stop: every target is decided, or one has failed."""
        verdicts = [state.verdict for state in self._states.values()]
        return "fail" in verdicts or "inconclusive" not in verdicts

    def decisions(self) -> tuple[Decision, ...]:
        """The state of each target. Once decided it stays so.

        p_pass and p_fail are anytime-valid (1 / largest capital) and multiplied by the number of targets; low and high
        are the confidence sequence at confidence 1 - 2 · alpha / targets; more_samples is None.
        """
        return tuple(state.decision(len(self._states)) for state in self._states.values())


class _Bettors:
    """The logarithms of the capitals of the bettors against each of some means in (0, 1), now and at their best."""

    def __init__(self, means: Floats) -> None:
        self._means = means
        self._capital = (np.zeros(means.size), np.zeros(means.size))
        self.best = (np.zeros(means.size), np.zeros(means.size))
        self._n, self._sum, self._squares = 0, 0.0, 0.0

    def add(self, x: float) -> None:
        # Half a value at either end stands for what is unknown at first.
        mean = (0.5 + self._sum) / (1 + self._n)
        variance = (0.25 + self._squares) / (1 + self._n)
        gap = mean - self._means
        bet = gap / (variance + gap**2)
        over = np.clip(bet, 0, MAX_BET / self._means)
        under = np.clip(-bet, 0, MAX_BET / (1 - self._means))
        step = x - self._means
        for capital, best, growth in zip(self._capital, self.best, (over * step, -under * step), strict=True):
            capital += np.log1p(growth)
            np.maximum(best, capital, out=best)
        self._n, self._sum = self._n + 1, self._sum + x
        self._squares += (x - (0.5 + self._sum) / (1 + self._n)) ** 2


class _TargetState:
    """One target, its bettors and its verdict."""

    def __init__(self, target: Target, alpha: float) -> None:
        _check_range(target.name, target.low, target.high)
        span = target.high - target.low
        share = (target.threshold - target.low) / span
        if not 0 < share < 1:
            inside = f"inside ({target.low:g}, {target.high:g})"
            raise ConfigError(
                f"{target.name}: the threshold must be {inside}, not {target.threshold:g}: during a run, the ends of "
                "the range can't be tested. Test the finished run instead (evalstone gate)"
            )
        self.verdict: Verdict = "inconclusive"
        self._target, self._alpha, self._span = target, alpha, span
        self._bettors = _Bettors(np.array([share]))
        self._sequence = ConfidenceSequence(target.low, target.high, confidence=1 - 2 * alpha)
        self._n, self._sum = 0, 0.0

    def check(self, value: float) -> None:
        _share(self._target.name, value, self._target.low, self._span)

    def add(self, value: float) -> None:
        target = self._target
        self._bettors.add(_share(target.name, value, target.low, self._span))
        self._sequence.add(value)
        self._n, self._sum = self._n + 1, self._sum + value
        if self.verdict == "inconclusive":
            above, below = (float(best[0]) >= -math.log(self._alpha) for best in self._bettors.best)
            if above or below:
                self.verdict = "pass" if above == (target.kind != "at_most") else "fail"

    def decision(self, targets: int) -> Decision:
        target, (low, high) = self._target, self._sequence.bounds
        above, below = (min(1.0, targets * math.exp(-float(best[0]))) for best in self._bettors.best)
        upward = target.kind != "at_most"
        return Decision(
            name=target.name,
            kind=target.kind,
            verdict=self.verdict,
            estimate=self._sum / self._n if self._n else None,
            threshold=target.threshold,
            low=low,
            high=high,
            p_pass=above if upward else below,
            p_fail=below if upward else above,
            n=self._n,
            more_samples=None,
            caution="" if self._n else "no values",
            lower_is_better=not upward,
        )


def _share(name: str, value: float, low: float, span: float) -> float:
    share = (value - low) / span
    if not -1e-9 <= share <= 1 + 1e-9:
        raise DataError(f"{name}: {value} is not a number in [{low:g}, {low + span:g}]")
    return min(1.0, max(0.0, share))


def _check_range(name: str, low: float, high: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ConfigError(f"{name}: low and high must be finite and go up, not {low} and {high}")
