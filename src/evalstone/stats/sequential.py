"""Sequential gates: criteria that can be checked after every sample, with error rates valid under optional stopping.

Each target has two bettors: one against "the mean is at most the threshold" and one against "the mean is at least the
threshold"; see `betting`. Samples must arrive in an order unrelated to their scores; shuffle them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from evalstone.errors import ConfigError, unknown
from evalstone.stats.betting import Bettors, ConfidenceSequence, check_range, shares
from evalstone.stats.gates import Decision, Verdict

SequentialKind: TypeAlias = Literal["at_least", "at_most", "max_regression"]


@dataclass(frozen=True)
class Target:
    """A criterion whose values arrive one by one, each in [low, high].

    For "at_least" and "at_most", values are scores. For "max_regression", a value is the improvement over the baseline
    on the same sample (b - a, or a - b if lower is better), low is -scale and the threshold is -margin. With clustered
    samples, a value must be the mean of a cluster.
    """

    name: str
    threshold: float
    kind: SequentialKind = "at_least"
    low: float = 0.0
    high: float = 1.0


class SequentialGate:
    """Decides targets while samples arrive.

    Args:
        targets: One or more, with unique names.
        alpha: The family-wise error rate of wrong passes, and that of wrong fails, in (0, 0.5). It is split equally
            among the targets (Bonferroni).

    Raises:
        ConfigError: There are no targets, names are not unique, a threshold is outside its range, or alpha is outside
            (0, 0.5).
    """

    def __init__(self, targets: Sequence[Target], *, alpha: float = 0.05) -> None:
        if not 0 < alpha < 0.5:
            raise ConfigError(f"alpha must be above 0 and below 0.5, such as 0.05, not {alpha}")
        names = [target.name for target in targets]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"need at least one target, with unique names, got {names}")
        self._states = {target.name: _TargetState(target, alpha / len(names)) for target in targets}

    def add(self, values: Mapping[str, float | None]) -> None:
        """Add one sample's values by target name.

        A missing value (None) counts as the worst value in the test for a pass, and as the best value in the test for a
        fail. Targets without an entry are unchanged.

        Raises:
            ConfigError: A name is not a target.
            DataError: A value is outside its range. The sample is then not added to any target.
        """
        for name in values:
            if name not in self._states:
                raise ConfigError(unknown("target", name, self._states))
        for name, value in values.items():
            self._states[name].check(value)  # validate all first: a rejected sample must not be added to any target
        for name, value in values.items():
            self._states[name].add(value)

    @property
    def settled(self) -> bool:
        """Whether the run can stop: every target is decided, or one has failed."""
        verdicts = [state.verdict for state in self._states.values()]
        return "fail" in verdicts or "inconclusive" not in verdicts

    def decisions(self) -> tuple[Decision, ...]:
        """The current decision on each target. A verdict of pass or fail is final.

        p_pass and p_fail are anytime-valid (1 / largest capital), multiplied by the number of targets. low and high are
        the confidence sequence at confidence 1 - 2 · alpha / targets. more_samples is None.
        """
        return tuple(state.decision(len(self._states)) for state in self._states.values())


class _TargetState:
    """A target with its bettors and its verdict."""

    def __init__(self, target: Target, alpha: float) -> None:
        check_range(target.name, target.low, target.high)
        span = target.high - target.low
        share = (target.threshold - target.low) / span
        if not 0 < share < 1:
            inside = f"inside ({target.low:g}, {target.high:g})"
            raise ConfigError(
                f"{target.name}: the threshold must be {inside}, not {target.threshold:g}: the ends of the range can't "
                "be tested during a run. Check the finished run instead (evalstone gate)"
            )
        self.verdict: Verdict = "inconclusive"
        self._target, self._alpha, self._span = target, alpha, span
        self._bettors = Bettors(np.array([share]))
        self._sequence = ConfidenceSequence(target.low, target.high, confidence=1 - 2 * alpha)
        self._n, self._sum, self._missing = 0, 0.0, 0

    def check(self, value: float | None) -> None:
        shares(self._target.name, value, self._target.low, self._span)

    def add(self, value: float | None) -> None:
        target = self._target
        self._bettors.add(*shares(target.name, value, target.low, self._span))
        self._sequence.add(value)
        if value is None:
            self._missing += 1
        else:
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
            missing=self._missing,
        )
