"""Gates: does a run meet its criteria? Each criterion ends "pass", "fail" or "inconclusive".

A criterion passes when a one-sided test rejects "not met", fails when one rejects "met", and is inconclusive otherwise.
Two error rates are controlled by Holm's method, each over all criteria and whatever their dependence: the chance that
any criterion that is not met passes, and the chance that any criterion that is met fails, are each at most alpha.
The tests are exact for pass/fail values; docs/statistics.md has the simulated error rates for scores.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import column, same_length
from evalstone.stats.comparison import differences
from evalstone.stats.multiple_testing import holm
from evalstone.stats.power import passes_needed, samples_needed
from evalstone.stats.thresholds import Evidence, Passes, of_differences, of_scores

Verdict: TypeAlias = Literal["pass", "fail", "inconclusive"]
Kind: TypeAlias = Literal["at_least", "at_most", "max_regression", "pass_rate"]
POWER = 0.8
APPROXIMATE_BELOW = 100


@dataclass(frozen=True)
class AtLeast:
    """The mean of values in [0, scale] is at least the threshold."""

    name: str
    values: Sequence[float]
    threshold: float
    scale: float = 1.0
    groups: Sequence[Hashable] | None = None


@dataclass(frozen=True)
class AtMost:
    """The mean of values in [0, scale] is at most the threshold: for scores where lower is better."""

    name: str
    values: Sequence[float]
    threshold: float
    scale: float = 1.0
    groups: Sequence[Hashable] | None = None


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
    """The mean, the pass rate, or for max_regression the mean improvement over the baseline (below 0: worse); None
    without values."""
    threshold: float
    """What the estimate is compared with; -margin for max_regression."""
    low: float | None
    """The one-sided lower limit at the alpha that Holm leaves for this criterion. At_least passes if low >= threshold;
    at_most fails if low > threshold."""
    high: float | None
    """The one-sided upper limit at the alpha that Holm leaves for this criterion. At_least fails if high < threshold;
    at_most passes if high <= threshold."""
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
        above, below = self.evidence.p_above(self.threshold), self.evidence.p_below(self.threshold)
        p_pass, p_fail = (above, below) if self.upward else (below, above)
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
    if not 0 < alpha < 0.5:
        raise ConfigError(f"alpha must be above 0 and below 0.5, such as 0.05, not {alpha}")
    tests = [_test(criterion) for criterion in criteria]
    passing = [test.p_values()[0] for test in tests]
    failing = [test.p_values()[1] for test in tests]
    adjusted = list(zip(holm(passing), holm(failing), strict=True))
    alphas = list(zip(_alphas(passing, alpha), _alphas(failing, alpha), strict=True))
    decisions: list[Decision] = []
    for test, p, left in zip(tests, adjusted, alphas, strict=True):
        verdict: Verdict = "pass" if p[0] <= alpha else "fail" if p[1] <= alpha else "inconclusive"
        decisions.append(_decision(test, verdict, p, left))
    return tuple(decisions)


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
            raise ConfigError(f"{name}: margin must be in [0, {scale:g}], not {criterion.margin}")
        same_length(values=criterion.values, baseline=criterion.baseline, groups=criterion.groups)
        d = differences(
            column(f"{name}: baseline", criterion.baseline, 0.0, scale),
            column(f"{name}: values", criterion.values, 0.0, scale),
        )
        improvements = (-d if criterion.lower_is_better else d).tolist()
        evidence = of_differences(improvements, scale=scale, groups=criterion.groups)
        return _Test(name, "max_regression", -criterion.margin, evidence, True, criterion.margin == scale)
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
        low, high = evidence.lower(for_low), evidence.upper(for_high)
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
