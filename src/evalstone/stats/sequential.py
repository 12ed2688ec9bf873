"""Gates that may be looked at after every sample, with error rates that hold whenever one stops.

Each target has two bettors, one against "the mean is at most the threshold", one against "at least". A capital of 1 is
multiplied by 1 ± λ · (x - threshold) with each sample, x and threshold in parts of the range, λ >= 0 chosen from the
samples before. If the hypothesis is true, the capital ever reaches 1 / error with a chance of at most `error` (Ville's
inequality). λ is the bet that grows the capital fastest, mean and variance being what they were so far (aGRAPA), at
most 3/4 of what could ruin the bettor.
Samples must come in an order that has nothing to do with their scores: shuffle them.
Source: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", JRSS B 86(1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import Floats
from evalstone.stats.gates import Decision, Verdict
from evalstone.stats.intervals import check_level

BOLDEST = 0.75
GRID = 1000
ANYTIME: TypeAlias = Literal["at_least", "at_most", "no_worse"]


@dataclass(frozen=True)
class Target:
    """A criterion whose values come one by one, each in [low, high].

    kind "at_least" and "at_most": values are scores. "no_worse": values are gains over the baseline on the same sample
    (with their sign turned where lower is better); low is then -scale and the threshold -margin. Where samples hang
    together in groups, a value must be the mean of a group.
    """

    name: str
    threshold: float
    kind: ANYTIME = "at_least"
    low: float = 0.0
    high: float = 1.0


class ConfidenceSequence:
    """An interval for the mean of values in [low, high] that holds at every number of samples at once.

    The means on a grid of a thousandth of the range that no bettor has ruled out, one step added at either end.
    Raises ConfigError for an empty range or a level outside (0, 1).
    """

    def __init__(self, low: float = 0.0, high: float = 1.0, *, level: float = 0.95) -> None:
        check_level(level)
        _check_range("the range", low, high)
        self._low, self._span = low, high - low
        self._means = np.linspace(0, 1, GRID + 1)[1:-1]
        self._bettors = _Bettors(self._means)
        self._limit = math.log(2 / (1 - level))
        self._from, self._to = 0.0, 1.0

    def add(self, value: float) -> None:
        """One more value. Raises DataError outside the range."""
        self._bettors.add(_share("value", value, self._low, self._span))
        over, under = self._bettors.best
        kept = np.flatnonzero((over < self._limit) & (under < self._limit))
        if kept.size:
            self._from = max(self._from, float(self._means[kept[0]]) - 1 / GRID)
            self._to = min(self._to, float(self._means[kept[-1]]) + 1 / GRID)

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval now; it only ever shrinks."""
        return self._low + self._span * self._from, self._low + self._span * self._to


class SequentialGate:
    """Decides targets while samples come in; `error` is shared equally among them, for passes and for fails each.

    Raises ConfigError for no target, two of one name, a threshold outside its range, an error rate outside (0, 0.5).
    """

    def __init__(self, targets: Sequence[Target], *, error: float = 0.05) -> None:
        if not 0 < error < 0.5:
            raise ConfigError(f"error must be above 0 and below 0.5, as 0.05 is, not {error}")
        names = [target.name for target in targets]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"targets must have names of their own, one target or more: {names}")
        self._watches = {target.name: _Watch(target, error / len(names)) for target in targets}

    def add(self, values: Mapping[str, float]) -> None:
        """One sample's values by target name; targets without one (skipped, failed) stay as they are.

        Raises ConfigError for a name that is no target, DataError for a value outside its range.
        """
        for name in values:
            if name not in self._watches:
                raise ConfigError(f"{name!r} is no target; targets are {', '.join(self._watches)}")
        for name, value in values.items():
            self._watches[name].check(value)  # all before any, so that a refused sample counts nowhere
        for name, value in values.items():
            self._watches[name].add(value)

    @property
    def settled(self) -> bool:
        """Whether the run can stop: every target is decided, or one has failed."""
        verdicts = [watch.verdict for watch in self._watches.values()]
        return "fail" in verdicts or "inconclusive" not in verdicts

    def decisions(self) -> tuple[Decision, ...]:
        """Where each target stands. Once decided it stays so.

        p_pass and p_fail are anytime-valid (1 / largest capital) and adjusted by the number of targets; low and high
        are the confidence sequence at level 1 - 2 · error / targets; more is None, for more samples are on their way.
        """
        return tuple(watch.decision(len(self._watches)) for watch in self._watches.values())


class _Bettors:
    """The capitals of the bettors against each of some means in (0, 1), as logarithms, now and at their best."""

    def __init__(self, means: Floats) -> None:
        self._means = means
        self._capital = (np.zeros(means.size), np.zeros(means.size))
        self.best = (np.zeros(means.size), np.zeros(means.size))
        self._n, self._sum, self._squares = 0, 0.0, 0.0

    def add(self, x: float) -> None:
        # Half a value at either end stands for what is not known yet.
        mean = (0.5 + self._sum) / (1 + self._n)
        variance = (0.25 + self._squares) / (1 + self._n)
        gap = mean - self._means
        bet = gap / (variance + gap**2)
        over = np.clip(bet, 0, BOLDEST / self._means)
        under = np.clip(-bet, 0, BOLDEST / (1 - self._means))
        step = x - self._means
        for capital, best, growth in zip(self._capital, self.best, (over * step, -under * step), strict=True):
            capital += np.log1p(growth)
            np.maximum(best, capital, out=best)
        self._n, self._sum = self._n + 1, self._sum + x
        self._squares += (x - (0.5 + self._sum) / (1 + self._n)) ** 2


class _Watch:
    """One target, its bettors and what is decided."""

    def __init__(self, target: Target, error: float) -> None:
        _check_range(target.name, target.low, target.high)
        span = target.high - target.low
        share = (target.threshold - target.low) / span
        if not 0 < share < 1:
            told = f"inside ({target.low:g}, {target.high:g})"
            raise ConfigError(f"{target.name}: the threshold must be {told}, not {target.threshold}")
        self.verdict: Verdict = "inconclusive"
        self._target, self._error, self._span = target, error, span
        self._bettors = _Bettors(np.array([share]))
        self._sequence = ConfidenceSequence(target.low, target.high, level=1 - 2 * error)
        self._n, self._sum = 0, 0.0

    def check(self, value: float) -> None:
        _share(self._target.name, value, self._target.low, self._span)

    def add(self, value: float) -> None:
        target = self._target
        self._bettors.add(_share(target.name, value, target.low, self._span))
        self._sequence.add(value)
        self._n, self._sum = self._n + 1, self._sum + value
        if self.verdict == "inconclusive":
            above, below = (float(best[0]) >= -math.log(self._error) for best in self._bettors.best)
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
            more=None,
            caution="" if self._n else "no values",
        )


def _share(name: str, value: float, low: float, span: float) -> float:
    share = (value - low) / span
    if not -1e-9 <= share <= 1 + 1e-9:
        raise DataError(f"{name}: {value} is no number in [{low:g}, {low + span:g}]")
    return min(1.0, max(0.0, share))


def _check_range(name: str, low: float, high: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ConfigError(f"{name}: low and high must be finite and go up, not {low} and {high}")
