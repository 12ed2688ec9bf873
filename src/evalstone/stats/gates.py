"""Gates: does a run meet its criteria? Each ends "pass", "fail" or "inconclusive".

A criterion passes when a one-sided test rejects "not met", fails when one rejects "met", and is inconclusive otherwise.
Two error rates are controlled, each over all criteria together and whatever their dependence (Holm): the chance that
any criterion that is not met passes, and the chance that any criterion that is met fails, are each at most `error`.
How well that holds for scores was simulated (docs/statistics.md); for pass/fail values the tests are exact.
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
Kind: TypeAlias = Literal["at_least", "at_most", "no_worse", "pass_rate"]
POWER = 0.8
APPROXIMATE = 100


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
class NoWorse:
    """The mean is worse than the baseline's, over the same samples in the same order, by at most the margin (>= 0)."""

    name: str
    values: Sequence[float]
    baseline: Sequence[float]
    margin: float
    scale: float = 1.0
    lower_is_better: bool = False
    groups: Sequence[Hashable] | None = None


@dataclass(frozen=True)
class PassRate:
    """The share of n independent samples that pass is at least the threshold."""

    name: str
    passed: int
    n: int
    threshold: float


Criterion: TypeAlias = AtLeast | AtMost | NoWorse | PassRate


@dataclass(frozen=True)
class Decision:
    """What became of one criterion.

    estimate: the mean, the pass rate, or for no_worse the mean gain over the baseline (below 0: worse); None without
    values. threshold: what it is held against, -margin for no_worse. low, high: one-sided limits of the estimate, each
    at the error rate that Holm leaves for this criterion: low >= threshold where at_least passes, high < threshold
    where it fails, the other way round for at_most. p_pass, p_fail: Holm-adjusted p-values of "not met" and of "met".
    more: how many more samples would decide it with a chance of 0.8, were the estimate the truth; None when it is
    decided, or no such number is in sight. n: samples or pairs. caution: why to trust it less, or "".
    """

    name: str
    kind: Kind
    verdict: Verdict
    estimate: float | None
    threshold: float
    low: float | None
    high: float | None
    p_pass: float
    p_fail: float
    n: int
    more: int | None
    caution: str


@dataclass(frozen=True)
class _Case:
    """A criterion ready to be tested. upward: met means above the threshold. sure: no value can miss it."""

    name: str
    kind: Kind
    threshold: float
    evidence: Evidence | None
    upward: bool
    sure: bool

    def p_pass(self) -> float:
        if self.evidence is None:
            return 1.0
        if self.sure:
            return 0.0
        return self.evidence.above(self.threshold) if self.upward else self.evidence.below(self.threshold)

    def p_fail(self) -> float:
        if self.evidence is None:
            return 1.0
        return self.evidence.below(self.threshold) if self.upward else self.evidence.above(self.threshold)


def decide(criteria: Sequence[Criterion], *, error: float = 0.05) -> tuple[Decision, ...]:
    """Decide every criterion, in order.

    A criterion without values is inconclusive. A threshold at the end of the range that nothing can miss passes.
    Raises ConfigError for a threshold outside the range, a margin below 0 or an error rate outside (0, 0.5); DataError
    for values that are not finite numbers in [0, scale] or that differ in number.
    """
    if not 0 < error < 0.5:
        raise ConfigError(f"error must be above 0 and below 0.5, as 0.05 is, not {error}")
    cases = [_case(criterion) for criterion in criteria]
    passing, failing = [case.p_pass() for case in cases], [case.p_fail() for case in cases]
    pass_rates, fail_rates = _rates(passing, error), _rates(failing, error)
    passes, fails = holm(passing), holm(failing)
    made: list[Decision] = []
    for place, case in enumerate(cases):
        verdict: Verdict = "inconclusive"
        if passes[place] <= error:
            verdict = "pass"
        elif fails[place] <= error:
            verdict = "fail"
        rates = (pass_rates[place], fail_rates[place])
        made.append(_decision(case, verdict, (passes[place], fails[place]), rates))
    return tuple(made)


def overall(decisions: Sequence[Decision]) -> Verdict:
    """The gate as a whole: "fail" if any fails, else "inconclusive" if any is, else "pass" (also without criteria)."""
    verdicts = {decision.verdict for decision in decisions}
    return "fail" if "fail" in verdicts else "inconclusive" if "inconclusive" in verdicts else "pass"


def _case(criterion: Criterion) -> _Case:
    if isinstance(criterion, PassRate):
        _check_threshold(criterion.name, criterion.threshold, 1.0)
        if not 0 <= criterion.passed <= criterion.n:
            raise DataError(f"{criterion.name}: passed must be from 0 to n, not {criterion.passed} of {criterion.n}")
        found = Passes(criterion.passed, criterion.n) if criterion.n else None
        return _Case(
            criterion.name, "pass_rate", criterion.threshold, found, upward=True, sure=criterion.threshold == 0
        )
    if isinstance(criterion, NoWorse):
        if not 0 <= criterion.margin <= criterion.scale:
            raise ConfigError(f"{criterion.name}: margin must be in [0, {criterion.scale:g}], not {criterion.margin}")
        same_length(values=criterion.values, baseline=criterion.baseline, groups=criterion.groups)
        d = differences(
            column(f"{criterion.name}: baseline", criterion.baseline, 0.0, criterion.scale),
            column(f"{criterion.name}: values", criterion.values, 0.0, criterion.scale),
        )
        gains = (-d if criterion.lower_is_better else d).tolist()
        evidence = of_differences(gains, scale=criterion.scale, groups=criterion.groups)
        sure = criterion.margin == criterion.scale
        return _Case(criterion.name, "no_worse", -criterion.margin, evidence, upward=True, sure=sure)
    _check_threshold(criterion.name, criterion.threshold, criterion.scale)
    evidence = of_scores(criterion.values, scale=criterion.scale, groups=criterion.groups)
    upward = isinstance(criterion, AtLeast)
    sure = criterion.threshold == (0 if upward else criterion.scale)
    return _Case(criterion.name, "at_least" if upward else "at_most", criterion.threshold, evidence, upward, sure)


def _rates(p_values: Sequence[float], error: float) -> list[float]:
    """The error rate at which Holm tests each: error / m for the smallest p, and so on to the first not rejected."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    m, rejected, rates = len(order), 0, [0.0] * len(order)
    for rank, place in enumerate(order):
        rates[place] = error / (m - min(rank, rejected))
        rejected += rank == rejected and p_values[place] <= rates[place]
    return rates


def _decision(case: _Case, verdict: Verdict, p: tuple[float, float], rates: tuple[float, float]) -> Decision:
    evidence = case.evidence
    if evidence is None:
        return Decision(case.name, case.kind, verdict, None, case.threshold, None, None, *p, 0, None, "no values")
    below, above = rates if case.upward else rates[::-1]
    return Decision(
        name=case.name,
        kind=case.kind,
        verdict=verdict,
        estimate=evidence.mean,
        threshold=case.threshold,
        low=evidence.lower(below),
        high=evidence.upper(above),
        p_pass=p[0],
        p_fail=p[1],
        n=evidence.n,
        more=_more(case, evidence, rates) if verdict == "inconclusive" else None,
        caution=_caution(evidence),
    )


def _caution(evidence: Evidence) -> str:
    """Exact tests need none; the others are off by a little for few samples, and by more where low scores are rare."""
    if isinstance(evidence, Passes) or evidence.n >= APPROXIMATE:
        return ""
    return f"only {evidence.n} scores: the error rate is approximate, rare bad scores may not have been seen"


def _more(case: _Case, evidence: Evidence, rates: tuple[float, float]) -> int | None:
    gap = evidence.mean - case.threshold if case.upward else case.threshold - evidence.mean
    if gap == 0 or evidence.deviation == 0:
        return None
    level = 1 - (rates[0] if gap > 0 else rates[1])
    if abs(gap) / evidence.deviation < 1e-3:  # millions of samples: no such number is in sight
        return None
    if isinstance(evidence, Passes):  # the exact test asks for more than Student's
        rates_of = (evidence.mean / evidence.scale, case.threshold / evidence.scale)
        needed = passes_needed(*rates_of, power=POWER, level=level)
    else:
        needed = samples_needed(gap, deviation=evidence.deviation, power=POWER, level=level, sided=1)
    return max(1, needed - evidence.n)


def _check_threshold(name: str, threshold: float, scale: float) -> None:
    if not 0 <= threshold <= scale:
        raise ConfigError(f"{name}: the threshold must be in [0, {scale:g}], not {threshold}")
