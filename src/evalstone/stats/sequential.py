"""Sequential gates and comparisons: decided while samples arrive, with error rates valid under optional stopping.

Each criterion of a gate has two bettors: one against "the mean is at most the threshold" and one against "the mean is
at least the threshold"; see `betting`. Verdicts of a comparison are read from a confidence sequence. Samples must
arrive in an order unrelated to their scores; shuffle them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from evalstone._core.truth import PASSED, NoTruthValue
from evalstone.errors import ConfigError, invalid, unknown
from evalstone.stats.betting import Bettors, ConfidenceSequence, Value, check_range, shares
from evalstone.stats.comparison import ComparisonVerdict
from evalstone.stats.gates import NO_VALUES, Decision, GateVerdict
from evalstone.stats.intervals import check_reach
from evalstone.stats.paired_differences import possible_difference

SequentialKind: TypeAlias = Literal["min", "max", "max_regression"]


@dataclass(frozen=True)
class SequentialCriterion:
    """A criterion whose values arrive one by one, each in [low, high].

    For "min" and "max", values are scores. For "max_regression", a value is the difference from the baseline
    on the same sample (b - a), low and high are ± the largest possible difference, and the threshold is -margin, or
    +margin if lower is better. With clustered samples, a value must be the mean of a cluster.
    """

    name: str
    threshold: float
    kind: SequentialKind = "min"
    low: float = 0.0
    high: float = 1.0
    lower_is_better: bool = False
    """For "max_regression": whether the mean must be at most the threshold."""

    @property
    def upward(self) -> bool:
        """Whether the mean must be at least the threshold."""
        return self.kind != "max" and not self.lower_is_better


class SequentialGate:
    """Decides criteria while samples arrive.

    Args:
        criteria: One or more, with unique names.
        alpha: The family-wise error rate of wrong passes, and that of wrong fails, in (0, 0.5). It is split equally
            among the criteria (Bonferroni).

    Raises:
        ConfigError: There are no criteria, names are not unique, a threshold is outside its range, or alpha is outside
            (0, 0.5).
    """

    def __init__(self, criteria: Sequence[SequentialCriterion], *, alpha: float = 0.05) -> None:
        if not 0 < alpha < 0.5:
            raise ConfigError(invalid("alpha", "above 0 and below 0.5, such as 0.05", alpha))
        names = [criterion.name for criterion in criteria]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"need at least one criterion, with unique names, got {names}")
        self._states = {criterion.name: _CriterionState(criterion, alpha / len(names)) for criterion in criteria}

    def add(self, values: Mapping[str, Value]) -> None:
        """Add one sample's values by criterion name.

        A missing value (None, or the lowest and the highest that it can be) counts as the worst value in the test for a
        pass, and as the best value in the test for a fail. Criteria without an entry are unchanged.

        Raises:
            ConfigError: A name is not a criterion.
            DataError: A value is outside its range. The sample is then not added to any criterion.
        """
        for name in values:
            if name not in self._states:
                raise ConfigError(unknown("criterion", name, self._states))
        for name, value in values.items():
            self._states[name].check(value)  # validate all first: a rejected sample must not be added to any criterion
        for name, value in values.items():
            self._states[name].add(value)

    @property
    def settled(self) -> bool:
        """Whether the run can stop: every criterion is decided, or one has failed."""
        verdicts = [state.verdict for state in self._states.values()]
        return "fail" in verdicts or "inconclusive" not in verdicts

    def decisions(self) -> tuple[Decision, ...]:
        """The current decision on each criterion. A verdict of pass or fail is final.

        p_pass and p_fail are anytime-valid (1 / largest capital), multiplied by the number of criteria. low and high
        are the confidence sequence at confidence 1 - 2 · alpha / criteria. more_samples is None.
        """
        return tuple(state.decision(len(self._states)) for state in self._states.values())


class _CriterionState:
    """A criterion with its bettors and its verdict."""

    def __init__(self, criterion: SequentialCriterion, alpha: float) -> None:
        check_range(criterion.name, criterion.low, criterion.high)
        span = criterion.high - criterion.low
        share = (criterion.threshold - criterion.low) / span
        if not 0 < share < 1:
            inside = f"inside ({criterion.low:g}, {criterion.high:g}), not {criterion.threshold:g}"
            raise ConfigError(
                f"{criterion.name}: the threshold must be {inside}: the ends of the range can't "
                "be tested during a run. Check the finished run instead (evalstone gate)"
            )
        self.verdict: GateVerdict = "inconclusive"
        self._criterion, self._alpha, self._span = criterion, alpha, span
        self._bettors = Bettors(np.array([share]))
        self._sequence = ConfidenceSequence(criterion.low, criterion.high, confidence=1 - 2 * alpha)
        self._n, self._sum, self._missing = 0, 0.0, 0

    def check(self, value: Value) -> None:
        shares(self._criterion.name, value, self._criterion.low, self._span)

    def add(self, value: Value) -> None:
        criterion = self._criterion
        self._bettors.add(*shares(criterion.name, value, criterion.low, self._span))
        self._sequence.add(value)
        if (known := known_value(value)) is None:
            self._missing += 1
        else:
            self._n, self._sum = self._n + 1, self._sum + known
        if self.verdict == "inconclusive":
            above, below = (float(best[0]) >= -math.log(self._alpha) for best in self._bettors.best)
            if above or below:
                self.verdict = "pass" if above == criterion.upward else "fail"

    def decision(self, criteria: int) -> Decision:
        criterion, (low, high) = self._criterion, self._sequence.bounds
        above, below = (min(1.0, criteria * math.exp(-float(best[0]))) for best in self._bettors.best)
        upward = criterion.upward
        return Decision(
            name=criterion.name,
            kind=criterion.kind,
            verdict=self.verdict,
            estimate=self._sum / self._n if self._n else None,
            threshold=criterion.threshold,
            low=low,
            high=high,
            p_pass=above if upward else below,
            p_fail=below if upward else above,
            n=self._n,
            more_samples=None,
            notes=() if self._n else NO_VALUES,
            lower_is_better=not upward,
            missing=self._missing,
        )


def known_value(value: Value) -> float | None:
    """The value; None if it is missing."""
    if isinstance(value, tuple):
        return value[0] if value[0] == value[1] else None
    return value


class SequentialComparison(NoTruthValue):
    """Compares two systems while their scores of the same samples arrive, until it is clear which one is better.

    A confidence sequence for the mean of b - a contains the true mean difference at all sample sizes at once, with a
    probability of 1 - alpha. All verdicts are read from it, so that the probability that any of them is ever wrong is
    at most alpha, however often you look and whenever you stop.

    Args:
        scale: The upper end of the range of scores.
        alpha: The error rate over all looks, in (0, 1).
        margin: Systems whose means differ by less than this, in (0, scale), are equivalent. None: no such verdict.
        max_change: The largest possible |b - a| of a sample, in (0, scale]. None: the scale. A smaller one saves
            samples. Declare it before you look at the scores.
        lower_is_better: Whether a lower score is better.

    Raises:
        ConfigError: An argument is outside its range, or the margin is not below max_change.
    """

    def __init__(
        self,
        *,
        scale: float = 1.0,
        alpha: float = 0.05,
        margin: float | None = None,
        max_change: float | None = None,
        lower_is_better: bool = False,
    ) -> None:
        if not 0 < alpha < 1:
            raise ConfigError(invalid("alpha", "above 0 and below 1, such as 0.05", alpha))
        check_reach("max_change", max_change, scale)
        self._reach = scale if max_change is None else max_change
        if margin is not None and not 0 < margin < self._reach:
            raise ConfigError(invalid("margin", f"above 0 and below {self._reach:g}", margin, f"{margin:g}"))
        self._scale, self._margin, self._lower_is_better = scale, margin, lower_is_better
        thresholds = (0.0,) if margin is None else (-margin, 0.0, margin)
        self._sequence = ConfidenceSequence(-self._reach, self._reach, confidence=1 - alpha, at=thresholds)
        self._sum = 0.0
        self.n = 0
        """The number of samples with both scores."""
        self.missing = 0
        """The number of samples of which a score is missing."""

    def add(self, a: float | None, b: float | None) -> None:
        """Add the scores of one sample. A missing one (None) may be anything in [0, scale].

        Raises:
            DataError: A score is outside [0, scale], or they differ by more than max_change. The sample is not added.
        """
        ends = possible_difference(a, b, scale=self._scale, reach=self._reach)
        self._sequence.add(ends)
        if a is None or b is None:
            self.missing += 1
        else:
            self.n, self._sum = self.n + 1, self._sum + ends[0]

    @property
    def estimate(self) -> float | None:
        """The mean of b - a over the samples with both scores; None without any.

        After a stop, it is biased away from 0 and from ± margin.
        """
        return self._sum / self.n if self.n else None

    @property
    def bounds(self) -> tuple[float, float]:
        """The confidence sequence of the mean of b - a: an open interval that never widens."""
        return self._sequence.bounds

    @property
    def verdict(self) -> ComparisonVerdict:
        """Whether b is better or worse than a, or equivalent within the margin.

        A difference that is clear but within the margin is "equivalent".
        """
        low, high = self.bounds
        if self._margin is not None and -self._margin <= low and high <= self._margin:
            return "equivalent"
        if low >= 0 or high <= 0:
            return "better" if (low >= 0) != self._lower_is_better else "worse"
        return "inconclusive"

    @property
    def passed(self) -> bool | None:
        """True if b is better or equivalent, False if it is worse; None while that is undecided."""
        return PASSED[self.verdict]

    @property
    def no_worse(self) -> bool:
        """Whether b is worse by less than the margin, or better than a (non-inferiority). It comes before a verdict."""
        low, high = self.bounds
        margin = self._margin or 0.0
        return high <= margin if self._lower_is_better else low >= -margin

    @property
    def settled(self) -> bool:
        """Whether there is a verdict other than "inconclusive"."""
        return self.verdict != "inconclusive"
