"""Gates: does a run meet its criteria? Each criterion ends "pass", "fail" or "inconclusive".

A criterion passes when a one-sided test rejects "not met", fails when one rejects "met", and is inconclusive otherwise.
Two error rates are controlled by Holm's method, each over all criteria and whatever their dependence: the chance that
any criterion that is not met passes, and the chance that any criterion that is met fails, are each at most alpha.

Pass/fail values use the exact binomial test, scores the interval of `mean_interval`, differences that of
`difference_interval`, both one-sided. Values that don't vary have no spread; they use bounds that are valid for any
values. docs/statistics.md has the simulated error rates for scores.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import column, same_length
from evalstone.stats.comparison import difference_spread, differences
from evalstone.stats.intervals import (
    ROUNDING,
    Spread,
    check_number,
    cluster_spread,
    exact_reach,
    limits,
    lower_limit,
    mean_of,
    plain_spread,
    upper_limit,
)
from evalstone.stats.multiple_testing import holm
from evalstone.stats.power import passes_needed, samples_needed
from evalstone.stats.special import binomial_cdf, t_quantile

Verdict: TypeAlias = Literal["pass", "fail", "inconclusive"]
Kind: TypeAlias = Literal["at_least", "at_most", "max_regression", "pass_rate"]
Side: TypeAlias = Literal[1, -1]
"""1: is the true mean above a threshold? -1: is it below?"""
POWER = 0.8
APPROXIMATE_BELOW = 100


@dataclass(frozen=True)
class _OfScores:
    name: str
    values: Sequence[float]
    threshold: float
    scale: float = 1.0
    groups: Sequence[Hashable] | None = None


class AtLeast(_OfScores):
    """The mean of values in [0, scale] is at least the threshold."""


class AtMost(_OfScores):
    """The mean of values in [0, scale] is at most the threshold: for scores where lower is better."""


@dataclass(frozen=True)
class MaxRegression:
    """Non-inferiority: the mean is worse than the baseline's by at most the margin, which is 0 or more.

    `values` and `baseline` are scores in [0, scale] of the same samples in the same order.
    """

    name: str
    values: Sequence[float]
    baseline: Sequence[float]
    margin: float
    scale: float = 1.0
    lower_is_better: bool = False
    groups: Sequence[Hashable] | None = None


@dataclass(frozen=True)
class PassRate:
    """The pass rate of n independent samples is at least the threshold."""

    name: str
    passed: int
    n: int
    threshold: float


Criterion: TypeAlias = AtLeast | AtMost | MaxRegression | PassRate


@dataclass(frozen=True)
class Decision:
    """The result for one criterion."""

    name: str
    kind: Kind
    verdict: Verdict
    estimate: float | None
    """The mean, the pass rate, or for max_regression the mean difference from the baseline; None without values."""
    threshold: float
    """What the estimate is compared with; for max_regression -margin, and margin where lower is better."""
    low: float | None
    """The one-sided lower limit at the alpha that Holm leaves for this criterion. If the estimate must be at least the
    threshold, the criterion passes if low >= threshold; otherwise it fails if low > threshold."""
    high: float | None
    """The one-sided upper limit at the alpha that Holm leaves for this criterion. If the estimate must be at least the
    threshold, the criterion fails if high < threshold; otherwise it passes if high <= threshold."""
    p_pass: float
    """The Holm-adjusted p-value of "not met"."""
    p_fail: float
    """The Holm-adjusted p-value of "met"."""
    n: int
    """The number of samples or pairs."""
    more_samples: int | None
    """How many more samples would decide the criterion with a chance of 0.8, if the estimate were true; None if it is
    decided, or if no practical number would."""
    caution: str
    """Why to trust the decision less, or ""."""
    lower_is_better: bool = False
    """Whether the estimate must be at most the threshold; otherwise it must be at least the threshold."""


@dataclass(frozen=True)
class _Test:
    """A criterion ready to be tested. upward: met means above the threshold. certain: no value can miss it."""

    name: str
    kind: Kind
    threshold: float
    evidence: Evidence | None
    upward: bool
    certain: bool

    def p_values(self) -> tuple[float, float]:
        """The p-values of "not met" and of "met"."""
        if self.evidence is None:
            return 1.0, 1.0
        side: Side = 1 if self.upward else -1
        p_pass, p_fail = (self.evidence.p_value(self.threshold, one) for one in (side, -side))
        return 0.0 if self.certain else p_pass, p_fail


def decide(criteria: Sequence[Criterion], *, alpha: float = 0.05) -> tuple[Decision, ...]:
    """Decide every criterion, in order.

    A criterion without values is inconclusive. A threshold at the end of the range that no value can miss passes.

    Args:
        criteria: What must hold.
        alpha: The error rate in (0, 0.5): of any wrong pass, and of any wrong fail.

    Raises:
        ConfigError: A threshold is outside its range, a margin below 0, or alpha outside (0, 0.5).
        DataError: Values are not finite numbers in [0, scale], or values and baseline differ in length.
    """
    check_number("alpha", alpha)
    if not 0 < alpha < 0.5:
        raise ConfigError(f"alpha must be above 0 and below 0.5, such as 0.05, not {alpha}")
    tests = [_test(criterion) for criterion in criteria]
    passing, failing = ([test.p_values()[at] for test in tests] for at in (0, 1))
    adjusted = list(zip(holm(passing), holm(failing), strict=True))
    alphas = list(zip(_alphas(passing, alpha), _alphas(failing, alpha), strict=True))
    verdicts: list[Verdict] = [
        "pass" if p[0] <= alpha else "fail" if p[1] <= alpha else "inconclusive" for p in adjusted
    ]
    return tuple(map(_decision, tests, verdicts, adjusted, alphas))


def overall(decisions: Sequence[Decision]) -> Verdict:
    """The gate as a whole: "fail" if any fails, else "inconclusive" if any is, else "pass" (also without criteria)."""
    verdicts = {decision.verdict for decision in decisions}
    return "fail" if "fail" in verdicts else "inconclusive" if "inconclusive" in verdicts else "pass"


def _test(criterion: Criterion) -> _Test:
    name = criterion.name
    if isinstance(criterion, PassRate):
        _check_threshold(name, criterion.threshold, 1.0)
        if not 0 <= criterion.passed <= criterion.n:
            raise DataError(f"{name}: passed must be from 0 to n, not {criterion.passed} of {criterion.n}")
        passed, n = criterion.passed, criterion.n
        evidence = Passes(passed / n, n, passed) if n else None
        return _Test(name, "pass_rate", criterion.threshold, evidence, upward=True, certain=criterion.threshold == 0)
    scale = criterion.scale
    if isinstance(criterion, MaxRegression):
        if not 0 <= criterion.margin <= scale:
            raise ConfigError(f"{name}: the largest regression must be in [0, {scale:g}], not {criterion.margin}")
        same_length(values=criterion.values, baseline=criterion.baseline, groups=criterion.groups)
        d = differences(
            column(f"{name}: baseline", criterion.baseline, 0.0, scale),
            column(f"{name}: values", criterion.values, 0.0, scale),
        )
        evidence = of_differences(d.tolist(), scale=scale, groups=criterion.groups)
        upward = not criterion.lower_is_better
        threshold = -criterion.margin if upward else criterion.margin
        return _Test(name, "max_regression", threshold, evidence, upward, criterion.margin == scale)
    _check_threshold(name, criterion.threshold, scale)
    evidence = of_scores(criterion.values, scale=scale, groups=criterion.groups)
    upward = isinstance(criterion, AtLeast)
    certain = criterion.threshold == (0 if upward else scale)
    return _Test(name, "at_least" if upward else "at_most", criterion.threshold, evidence, upward, certain)


def _alphas(p_values: Sequence[float], alpha: float) -> list[float]:
    """The alpha at which Holm tests each: alpha / m for the smallest p, and so on to the first that isn't rejected."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    m, rejected, alphas = len(order), 0, [0.0] * len(order)
    for rank, place in enumerate(order):
        alphas[place] = alpha / (m - min(rank, rejected))
        rejected += rank == rejected and p_values[place] <= alphas[place]
    return alphas


def _decision(test: _Test, verdict: Verdict, p: tuple[float, float], alphas: tuple[float, float]) -> Decision:
    evidence = test.evidence
    low = high = more = None
    caution = "no values"
    if evidence is not None:
        for_low, for_high = alphas if test.upward else alphas[::-1]
        low, high = evidence.limit(for_low, 1), evidence.limit(for_high, -1)
        more = _more_samples(test, evidence, alphas) if verdict == "inconclusive" else None
        approximate = not isinstance(evidence, Passes) and evidence.n < APPROXIMATE_BELOW
        caution = f"small sample (n = {evidence.n}): the error rate is approximate" if approximate else ""
    return Decision(
        name=test.name,
        kind=test.kind,
        verdict=verdict,
        estimate=None if evidence is None else evidence.mean,
        threshold=test.threshold,
        low=low,
        high=high,
        p_pass=p[0],
        p_fail=p[1],
        n=0 if evidence is None else evidence.n,
        more_samples=more,
        caution=caution,
        lower_is_better=not test.upward,
    )


def _more_samples(test: _Test, evidence: Evidence, alphas: tuple[float, float]) -> int | None:
    gap = evidence.mean - test.threshold if test.upward else test.threshold - evidence.mean
    if gap == 0 or evidence.deviation == 0:
        return None
    confidence = 1 - (alphas[0] if gap > 0 else alphas[1])
    if abs(gap) / evidence.deviation < 1e-3:  # millions of samples: no practical number
        return None
    if isinstance(evidence, Passes):  # the exact test needs more than Student's
        rate, threshold = evidence.mean / evidence.scale, test.threshold / evidence.scale
        needed = passes_needed(rate, threshold, power=POWER, confidence=confidence)
    else:
        needed = samples_needed(gap, deviation=evidence.deviation, power=POWER, confidence=confidence, sided=1)
    return max(1, needed - evidence.n)


def _check_threshold(name: str, threshold: float, scale: float) -> None:
    if not 0 <= threshold <= scale:
        raise ConfigError(f"{name}: the threshold must be in [0, {scale:g}], not {threshold}")


# ---- What values say about their true mean ----


@dataclass(frozen=True)
class Evidence(ABC):
    """The mean of n values, in the unit of the values, and what follows for the true mean.

    A limit at error rate alpha is the threshold whose p-value is alpha.
    """

    mean: float
    n: int

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation per sample, design effect included: √(n · variance of the mean)."""

    @abstractmethod
    def p_value(self, threshold: float, side: Side) -> float:
        """The p-value of "the true mean is not beyond the threshold": small when the mean is on that side of it."""

    @abstractmethod
    def limit(self, alpha: float, side: Side) -> float:
        """What the true mean is above (1) or below (-1) with confidence 1 - alpha."""


@dataclass(frozen=True)
class Passes(Evidence):
    """Pass/fail values of independent samples, worth 0 or `scale` each: the exact binomial test."""

    successes: int
    scale: float = 1.0

    @property
    def deviation(self) -> float:
        """√(p (1 - p)) · scale, p the rate after one more success and one more failure."""
        rate = (self.successes + 1) / (self.n + 2)
        return math.sqrt(rate * (1 - rate)) * self.scale

    def p_value(self, threshold: float, side: Side) -> float:
        """P(X >= successes), or P(X <= successes), at the threshold."""
        rate = min(1.0, max(0.0, threshold / self.scale))
        if side == 1:
            return binomial_cdf(self.n - self.successes, self.n, 1 - rate)
        return binomial_cdf(self.successes, self.n, rate)

    def limit(self, alpha: float, side: Side) -> float:
        """Clopper and Pearson's limit."""
        of = lower_limit if side == 1 else upper_limit
        return of(self.successes, self.n, 1 - alpha) * self.scale


@dataclass(frozen=True)
class _Varied(Evidence):
    spread: Spread
    scale: float

    @property
    def deviation(self) -> float:
        """√(n · variance of the mean)."""
        return math.sqrt(self.n * self.spread.variance)


@dataclass(frozen=True)
class Scores(_Varied):
    """Values in [0, scale] that vary: Student's t, with the variance that the threshold would have."""

    def p_value(self, threshold: float, side: Side) -> float:
        """The variance is φ · m (1 - m) / n, as in `mean_interval`, at m = threshold."""
        there = max(0.0, threshold * (self.scale - threshold)) / (self.mean * (self.scale - self.mean))
        return _t_tail(side * (self.mean - threshold), self.spread.variance * there, self.spread.freedom)

    def limit(self, alpha: float, side: Side) -> float:
        """The limit of `mean_interval` at confidence 1 - 2 · alpha."""
        quantile = t_quantile(1 - alpha, self.spread.freedom)
        low, high = limits(self.mean, self.spread.variance, quantile, 0.0, self.scale)
        return low if side == 1 else high


@dataclass(frozen=True)
class Differences(_Varied):
    """Paired differences in [-scale, scale]: Student's t around `center`, as in `difference_interval`."""

    center: float

    def p_value(self, threshold: float, side: Side) -> float:
        """Student's t."""
        return _t_tail(side * (self.center - threshold), self.spread.variance, self.spread.freedom)

    def limit(self, alpha: float, side: Side) -> float:
        """Student's limit, cut to the range."""
        half = t_quantile(1 - alpha, self.spread.freedom) * math.sqrt(self.spread.variance)
        return min(self.scale, max(-self.scale, self.center - side * half))


@dataclass(frozen=True)
class Equal(Evidence):
    """Values in [low, high] that are all equal, in so many independent units: Chernoff's bound.

    p = exp(-units · KL(mean, threshold)), both as shares of the range. Valid for any values in the range; at an end of
    it threshold^units, the exact chance.
    """

    units: int
    low: float
    high: float

    @property
    def deviation(self) -> float:
        """That of pass/fail with one more success and one more failure, as the values have none."""
        rate = ((self.mean - self.low) / (self.high - self.low) * self.units + 1) / (self.units + 2)
        return math.sqrt(rate * (1 - rate)) * (self.high - self.low)

    def p_value(self, threshold: float, side: Side) -> float:
        """Chernoff's bound on a mean this far."""
        if side * (self.mean - threshold) <= 0:
            return 1.0
        p, q = ((x - self.low) / (self.high - self.low) for x in (self.mean, threshold))
        divergence = 0.0
        for observed, true in ((p, q), (1 - p, 1 - q)):
            if observed > 0:
                if true <= 0:
                    return 0.0
                divergence += observed * math.log(observed / true)
        return math.exp(-self.units * divergence)

    def limit(self, alpha: float, side: Side) -> float:
        """The threshold at which the bound is alpha, by bisection; else the end of the range."""
        inside, outside = self.mean, self.low if side == 1 else self.high
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if self.p_value(middle, side) < alpha else (middle, outside)
        return outside


@dataclass(frozen=True)
class Unchanged(Evidence):
    """Differences that are all 0: a mean of ± d needs a share d / scale of changed samples, and none has changed."""

    units: int
    scale: float

    @property
    def deviation(self) -> float:
        """That of one change in units + 2 samples."""
        return self.scale / math.sqrt(self.units + 2)

    def p_value(self, threshold: float, side: Side) -> float:
        """(1 - |threshold| / scale)^units where the mean is on that side of the threshold, else 1."""
        return 1.0 if side * threshold >= 0 else (1 - min(1.0, abs(threshold) / self.scale)) ** self.units

    def limit(self, alpha: float, side: Side) -> float:
        """∓ scale · (1 - alpha^(1 / units))."""
        return -side * exact_reach(self.units, alpha, self.scale)


def of_scores(
    values: Sequence[float], *, scale: float = 1.0, groups: Sequence[Hashable] | None = None
) -> Evidence | None:
    """The evidence of scores in [0, scale]; None for no values. Pass/fail values without clusters are exact.

    Raises:
        DataError: A value is not a finite number in [0, scale], or `groups` has another length.
    """
    same_length(values=values, groups=groups)
    x = column("values", values, 0.0, scale)
    n = x.size
    if n == 0:
        return None
    if groups is None and bool(np.all((x == 0) | (x == scale))):
        successes = int(np.sum(x == scale))
        return Passes(successes / n * scale, n, successes, scale)
    numbers, units = x.tolist(), n if groups is None else len(set(groups))
    mean = mean_of(numbers)
    if units == 1 or min(numbers) == max(numbers):
        return Equal(mean, n, units, 0.0, scale)
    spread = plain_spread(numbers, mean) if groups is None else cluster_spread(numbers, mean, groups)
    # Clusters whose sums happen to be equal have no spread, and no test can divide by it.
    if spread.variance <= ROUNDING * scale**2:
        return Equal(mean, n, units, 0.0, scale)
    return Scores(mean, n, spread, scale)


def of_differences(
    differences: Sequence[float], *, scale: float = 1.0, groups: Sequence[Hashable] | None = None
) -> Evidence | None:
    """The evidence of paired differences in [-scale, scale]; None for no values. Errors: `of_scores`."""
    same_length(differences=differences, groups=groups)
    d = column("differences", differences, -scale, scale)
    n = d.size
    if n == 0:
        return None
    units = n if groups is None else len(set(groups))
    if not d.any():
        return Unchanged(0.0, n, units, scale)
    if units == 1:
        return Equal(float(d.mean()), n, 1, -scale, scale)
    center, spread = difference_spread(d, groups)
    return Differences(float(d.mean()), n, spread, scale, center)


def _t_tail(gap: float, variance: float, freedom: float) -> float:
    """P(T >= gap in standard errors), T Student's t."""
    if variance <= 0:
        return 0.0 if gap > 0 else 1.0
    from scipy.special import stdtr  # noqa: PLC0415 - 0.15 s of import

    return float(stdtr(freedom, -gap / math.sqrt(variance)))
