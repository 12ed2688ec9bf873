"""Gates: check a run against criteria. The verdict on each is "pass", "fail" or "inconclusive".

A criterion passes if a one-sided test rejects "not met", fails if one rejects "met", and is inconclusive otherwise.
Holm's method controls two family-wise error rates over all criteria, whatever their dependence: the probability that
any unmet criterion passes, and the probability that any met criterion fails. Each is at most alpha.

The tests are those of `bounded_mean`, which are valid for small, skewed and nearly constant samples. A missing value
(None) counts as the worst value in the test for a pass, and as the best value in the test for a fail, so the verdict
holds whatever the missing values are (Manski 1990). If the number of values depends on the values, as in a run that its
gate stopped early, the tests are those of `betting`, which are valid at any stopping time. docs/evidence.md has the
simulated error rates.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from evalstone._core.front_ends import Wording
from evalstone._core.truth import PASSED, NoTruthValue
from evalstone.errors import ConfigError, DataError, invalid
from evalstone.stats._arrays import Floats, Positions, at, column, filled, has_value, same_length
from evalstone.stats.betting import BettingMean
from evalstone.stats.bounded_mean import NORMAL, BoundedMean, Side
from evalstone.stats.intervals import check_number, check_reach, check_weights, exceeds
from evalstone.stats.multiple_testing import holm
from evalstone.stats.packed_scores import packed
from evalstone.stats.paired_differences import differences
from evalstone.stats.power import more_units
from evalstone.stats.ppi import (
    FEW_LABELS,
    MIN_LABELS,
    MIN_LABELS_OF_STRATUM,
    CorrectedMean,
    corrected_difference,
    corrected_mean,
    same_labels,
)
from evalstone.stats.weighted_mean import WeightedMean, effective_number
from evalstone.types import Note, note, reaches

GateVerdict: TypeAlias = Literal["pass", "fail", "inconclusive"]
DecisionKind: TypeAlias = Literal["min", "max", "max_regression", "max_difference", "pass_rate", "require"]
POWER = 0.8
NO_VALUES = (note("no_values", "caution"),)
"""The notes of a decision without values."""
SIDES: tuple[Side, Side] = (1, -1)
Mean: TypeAlias = BoundedMean | BettingMean | CorrectedMean


@dataclass(frozen=True)
class _OfScores:
    name: str
    values: Sequence[float | None]
    """None: a missing value."""
    threshold: float
    scale: float = 1.0
    groups: Sequence[Hashable] | None = None
    weights: Sequence[float] | None = None
    stopped: bool = False
    """Whether the run was stopped depending on its values, which must be in the order in which they were drawn."""
    human: Sequence[float | None] | None = None
    """Human scores of the same samples, None if not labeled. The test is then about the mean human score, as in
    `ppi_mean`."""
    strata: Sequence[Hashable] | None = None
    """The strata within which samples were chosen for labeling at random."""


class AtLeast(_OfScores):
    """The mean of values in [0, scale] is at least the threshold."""


class AtMost(_OfScores):
    """The mean of values in [0, scale] is at most the threshold; for scores where lower is better."""


class PassRate(_OfScores):
    """The mean of values that are 0 (not passed) or 1 (passed) is at least the threshold."""


@dataclass(frozen=True)
class MaxRegression:
    """Non-inferiority: the mean is worse than the baseline's by at most the margin, which is 0 or more.

    `values` and `baseline` are scores in [0, scale] of the same samples in the same order; None is a missing score.
    """

    name: str
    values: Sequence[float | None]
    baseline: Sequence[float | None]
    margin: float
    scale: float = 1.0
    lower_is_better: bool = False
    groups: Sequence[Hashable] | None = None
    weights: Sequence[float] | None = None
    stopped: bool = False
    human: tuple[Sequence[float | None], Sequence[float | None]] | None = None
    """Human scores of the baseline and of the values, None if not labeled. The test is then about the mean difference
    of human scores, as in `ppi_difference`."""
    strata: Sequence[Hashable] | None = None
    """The strata within which samples were chosen for labeling at random."""
    same: Sequence[bool] | None = None
    """With human scores: whether both outputs are the same, by sample."""
    max_change: float | None = None
    """The largest possible |values - baseline| of a sample, in (0, scale]; None: the scale."""


class MaxDifference(MaxRegression):
    """Equivalence: the mean differs from the baseline's by at most the margin, in either direction.

    It passes if two one-sided tests reject a difference beyond each end, and fails if one of them, at half the error
    rate, shows a difference beyond its end. Source: Schuirmann 1987.
    """


GateCriterion: TypeAlias = AtLeast | AtMost | MaxRegression | MaxDifference | PassRate


@dataclass(frozen=True, kw_only=True)
class Miss:
    """A sample without the best score."""

    sample_id: str
    """Its id."""
    trial: int | None
    """The number of the trial; None if there is only one."""
    value: float | None
    """Its score; None without one."""
    reason: str
    """The reason for the score, the error, or why the judge gave no answer."""


@dataclass(frozen=True, kw_only=True)
class Decision(NoTruthValue):
    """The result for one criterion."""

    name: str
    """The scorer."""
    kind: DecisionKind
    """What is checked, by the name of the criterion, such as "min" or "pass_rate"."""
    verdict: GateVerdict
    """Whether the criterion is met: "pass", "fail" or "inconclusive"."""
    estimate: float | None
    """The mean or pass rate; for max_regression and max_difference, the mean difference from the baseline; for require,
    the share of samples with the best score. None without values."""
    threshold: float
    """What the estimate is compared with; for max_regression, -margin (margin if lower is better); for max_difference,
    the margin, which the estimate must not exceed on either side."""
    low: float | None
    """The one-sided lower confidence limit at the error rate that Holm's method allots to this criterion. If the
    estimate must be at least the threshold, the criterion passes if low >= threshold; otherwise it fails if
    low > threshold. Without a test, the lowest possible estimate given the missing values; None for require."""
    high: float | None
    """The one-sided upper confidence limit at the error rate that Holm's method allots to this criterion. If the
    estimate must be at least the threshold, the criterion fails if high < threshold; otherwise it passes if
    high <= threshold. Without a test, the highest possible estimate given the missing values; None for require."""
    p_pass: float | None
    """The Holm-adjusted p-value of "not met"; None without a test."""
    p_fail: float | None
    """The Holm-adjusted p-value of "met"; None without a test."""
    n: int
    """The number of samples or pairs with a value. For require, it includes samples whose score failed or for which the
    judge gave no answer."""
    more_samples: int | None
    """The number of further samples that would decide the criterion with a power of 0.8, if the estimate is the true
    value. None if it is decided, or if neither 10,000 more nor a hundred times as many as now would decide it."""
    notes: tuple[Note, ...]
    """Why to trust the decision less."""
    lower_is_better: bool = False
    """Whether the estimate must be at most the threshold; otherwise it must be at least the threshold."""
    missing: int = 0
    """The number of samples or pairs without a value. They count as worst for a pass and as best for a fail."""
    labeled: int | None = None
    """The number of human labels that correct the estimate; None if it isn't corrected."""
    more_labels: int | None = None
    """The number of further labels that would decide the criterion with a power of 0.8, if the estimate is the true
    value. None if it is decided or not corrected, or if labels for all samples wouldn't decide it."""
    effective: float | None = None
    """Kish's effective sample size of weighted samples with a value; None for equal weights."""
    groups: int | None = None
    """The number of clusters among samples with a value; None for independent samples."""
    misses: tuple[Miss, ...] = ()
    """For require, the first samples without the best score."""
    broken_off: Literal["run", "baseline"] | None = None
    """Which run was broken off, so that the values can't decide the criterion, whatever they are: the verdict is
    inconclusive, and limits and p-values say nothing. None if they can."""

    @property
    def passed(self) -> bool | None:
        """Whether the criterion passes; None if that is inconclusive."""
        return PASSED[self.verdict]


def decide(
    criteria: Sequence[GateCriterion], *, alpha: float | None = 0.05, next_alpha: float | None = None
) -> tuple[Decision, ...]:
    """Decide every criterion, in order.

    A criterion without values is inconclusive. A threshold at an end of the range that no value can miss passes.

    Args:
        criteria: The criteria to check.
        alpha: The family-wise error rate of wrong passes, and that of wrong fails, in (0, 0.5). None: no test. The
            estimate itself is then compared with the threshold: a criterion passes (fails) if it is met (not met)
            whatever the missing values are.
        next_alpha: The error rate of the next test, with more samples; used for `more_samples`. None: alpha.

    Returns:
        One decision per criterion.

    Raises:
        ConfigError: A threshold, a margin or a largest change is outside its range, or alpha is outside (0, 0.5).
        DataError: Values are not finite numbers in [0, scale], a sample changes by more than the largest change, or
            sequences of one criterion differ in length.
    """
    tests = [_test(criterion) for criterion in criteria]
    if alpha is None:
        return tuple(_compared(test, criterion.scale) for test, criterion in zip(tests, criteria, strict=True))
    check_alpha("alpha", alpha)
    if next_alpha is not None:
        check_alpha("next_alpha", next_alpha)
    passing, failing = ([test.p_values()[i] for test in tests] for i in (0, 1))
    adjusted = list(zip(holm(passing), holm(failing), strict=True))
    alphas = list(zip(_alphas(passing, alpha), _alphas(failing, alpha), strict=True))
    verdicts: list[GateVerdict] = [
        "pass" if p[0] <= alpha else "fail" if p[1] <= alpha else "inconclusive" for p in adjusted
    ]
    later = 1.0 if next_alpha is None else next_alpha / alpha
    return tuple(_tested(*results, later) for results in zip(tests, verdicts, adjusted, alphas, strict=True))


def check_alpha(name: Wording, alpha: float) -> None:
    """Raise ConfigError for an error rate that is not a number in (0, 0.5)."""
    check_number(name, alpha)
    if not 0 < alpha < 0.5:
        raise ConfigError(invalid(name, "above 0 and below 0.5, such as 0.05", alpha))


def alpha_at_look(alpha: float, look: int) -> float:
    """The error rate to spend on a look, counted from 1, so that all looks together spend at most `alpha`.

    look 1: 0.8 · alpha,   look k > 1: 0.2 · alpha / 2^(k - 1)
    """
    # Divided last, since 0.8 * 0.05 is 0.04000000000000001.
    return 4 * alpha / 5 if look == 1 else alpha / (5 * 2 ** (look - 1))


def overall(decisions: Sequence[Decision]) -> GateVerdict:
    """The verdict of the whole gate: "fail" if any criterion fails, else "inconclusive" if any is, else "pass"."""
    verdicts = {decision.verdict for decision in decisions}
    return "fail" if "fail" in verdicts else "inconclusive" if "inconclusive" in verdicts else "pass"


@dataclass(frozen=True)
class Evidence:
    """Inference about the true mean of values, valid whatever the missing ones are."""

    scored: Mean
    """The values that are not missing."""
    lowest: Mean
    """All values, with the lowest possible value for missing ones."""
    highest: Mean
    """All values, with the highest possible value for missing ones."""
    n: int
    missing: int
    labeled: int | None = None
    effective: float | None = None
    groups: int | None = None

    def p_value(self, threshold: float, side: Side) -> float:
        """The p-value of "the true mean isn't above (side 1) or below (side -1) the threshold"."""
        return (self.lowest if side == 1 else self.highest).p_value(threshold, side)

    def limit(self, alpha: float, side: Side) -> float:
        """The one-sided lower (side 1) or upper (side -1) confidence limit at error rate alpha."""
        return (self.lowest if side == 1 else self.highest).limit(alpha, side)


@dataclass(frozen=True)
class _Test:
    """A validated criterion. upward: it is met above the threshold. certain: no value can miss it. two_sided: it is
    met between -threshold and the threshold."""

    name: str
    kind: DecisionKind
    threshold: float
    evidence: Evidence | None
    upward: bool
    certain: bool
    notes: tuple[Note, ...] = ()
    two_sided: bool = False

    def p_values(self) -> tuple[float, float]:
        """The p-values of "not met" and of "met"."""
        if self.evidence is None:
            return 1.0, 1.0
        if self.two_sided:
            margin, p_value = self.threshold, self.evidence.p_value
            p_pass = max(p_value(-margin, 1), p_value(margin, -1))
            p_fail = min(1.0, 2 * min(p_value(-margin, -1), p_value(margin, 1)))
            return 0.0 if self.certain else p_pass, p_fail
        side: Side = 1 if self.upward else -1
        p_pass, p_fail = (self.evidence.p_value(self.threshold, s) for s in (side, -side))
        return 0.0 if self.certain else p_pass, p_fail


def _test(criterion: GateCriterion) -> _Test:
    name, scale, groups = criterion.name, criterion.scale, criterion.groups
    same_length(values=criterion.values, groups=groups, weights=criterion.weights, strata=criterion.strata)
    check_weights(criterion.weights)
    if criterion.stopped and (groups is not None or criterion.weights is not None):
        raise ConfigError(f"{name}: values of a stopped run can't have groups or weights")
    if isinstance(criterion, MaxRegression):
        limit = f"{name}: the maximum {'difference' if isinstance(criterion, MaxDifference) else 'regression'}"
        check_number(limit, criterion.margin)
        before_human, after_human = criterion.human or (None, None)
        same_length(
            values=criterion.values, baseline=criterion.baseline, same=criterion.same, human=after_human,
            human_baseline=before_human,
        )  # fmt: skip
        if not 0 <= criterion.margin <= scale:
            raise ConfigError(invalid(limit, f"in [0, {scale:g}]", criterion.margin))
        before = _ends(f"{name}: baseline", criterion.baseline, scale)
        after = _ends(f"{name}: values", criterion.values, scale)
        check_reach(f"{name}: max_change", criterion.max_change, scale)
        reach = scale if criterion.max_change is None else criterion.max_change
        if criterion.margin >= reach != scale:
            raise ConfigError(f"{limit} must be below max_change, {reach:g}")
        if criterion.human is not None and criterion.max_change is not None:
            raise ConfigError(f"{name}: max_change is of the judge's scores, which human labels correct")
        lowest, highest = (
            np.clip(_within(name, d, before, after, reach), -reach, reach)
            for d in (differences(before[1], after[0]), differences(before[0], after[1]))
        )
        test = _difference_test(criterion)
        if criterion.human is not None:
            return _corrected(test, criterion, [x is not None and y is not None for x, y in _pairs(criterion)])
        return replace(test, evidence=_evidence(lowest, highest, -reach, reach, criterion))
    check_number(f"{name}: the threshold", criterion.threshold)
    same_length(values=criterion.values, human=criterion.human)
    if not 0 <= criterion.threshold <= scale:
        raise ConfigError(invalid(f"{name}: the threshold", f"in [0, {scale:g}]", criterion.threshold))
    ends = _ends(f"{name}: values", criterion.values, scale)
    upward = not isinstance(criterion, AtMost)
    certain = criterion.threshold == (0 if upward else scale)
    kind: DecisionKind = "pass_rate" if isinstance(criterion, PassRate) else "min" if upward else "max"
    test = _Test(name, kind, criterion.threshold, None, upward, certain)
    if criterion.human is not None:
        return _corrected(test, criterion, [value is not None for value in criterion.values])
    return replace(test, evidence=_evidence(*ends, 0.0, scale, criterion))


def _difference_test(criterion: MaxRegression) -> _Test:
    certain = criterion.margin == criterion.scale
    if isinstance(criterion, MaxDifference):
        return _Test(criterion.name, "max_difference", criterion.margin, None, False, certain, two_sided=True)
    upward = not criterion.lower_is_better
    threshold = -criterion.margin if upward else criterion.margin
    return _Test(criterion.name, "max_regression", threshold, None, upward, certain)


def _within(name: str, d: Floats, before: tuple[Floats, Floats], after: tuple[Floats, Floats], reach: float) -> Floats:
    """The differences. Raises DataError if one of two known values is larger than the largest possible one."""
    known = (before[0] == before[1]) & (after[0] == after[1])
    if exceeds(float(np.max(np.abs(d[known]), initial=0.0)), reach):
        place = next(place for place in np.flatnonzero(known).tolist() if exceeds(float(d[place]), reach))
        raise DataError(f"{name}: max_change is {reach:g}, but sample {place} changes by {abs(d[place]):g}")
    return d


def _pairs(criterion: MaxRegression) -> list[tuple[float | None, float | None]]:
    return list(zip(criterion.baseline, criterion.values, strict=True))


def _corrected(test: _Test, criterion: GateCriterion, is_scored: Sequence[bool]) -> _Test:
    """The test of a mean corrected with human labels.

    Samples without a score form their own stratum. All of them get a human score at an end of the range, so it makes no
    difference which of them count as labeled; as many do as a random choice would label.
    """
    if criterion.stopped or criterion.weights is not None:
        what = "a run that its own gate stopped" if criterion.stopped else "weighted samples"
        raise ConfigError(f"{criterion.name}: human labels can't correct the scores of {what}")
    same = criterion.same if isinstance(criterion, MaxRegression) else None
    runs = [criterion.human] if not isinstance(criterion, MaxRegression) else criterion.human or ()
    labeled = sum(
        scored
        and not (same is not None and same[place])
        and all(human is not None and human[place] is not None for human in runs)
        for place, scored in enumerate(is_scored)
    )
    n, missing = sum(is_scored), [place for place, scored in enumerate(is_scored) if not scored]
    if labeled < MIN_LABELS:
        return replace(test, notes=(note("too_few_labels", "caution", labels=labeled, least=FEW_LABELS),))
    treated_as_labeled = set(missing[: max(MIN_LABELS_OF_STRATUM, round(len(missing) * labeled / n))])

    def mean_of(low: bool, places: Sequence[int]) -> CorrectedMean | None:
        def filled(
            values: Sequence[float | None], human: Sequence[float | None] | None, end: float
        ) -> tuple[list[float], list[float | None]]:
            """The values and labels, with this end of the range for missing ones."""
            scores, labels = [values[place] for place in places], [None if human is None else human[p] for p in places]
            for i, place in enumerate(places):
                if not is_scored[place]:
                    scores[i], labels[i] = end, end if place in treated_as_labeled else None
            return [end if score is None else score for score in scores], labels

        strata = [
            (0 if criterion.strata is None else criterion.strata[place]) if is_scored[place] else None
            for place in places
        ]
        groups = criterion.groups and [criterion.groups[place] for place in places]
        ends = (0.0, criterion.scale) if low else (criterion.scale, 0.0)
        if not isinstance(criterion, MaxRegression):
            judged, human = filled(criterion.values, criterion.human, ends[0])
            return corrected_mean(judged, human, scale=criterion.scale, strata=strata, groups=groups)
        human = criterion.human or ((), ())
        before, after = filled(criterion.baseline, human[0], ends[1]), filled(criterion.values, human[1], ends[0])
        return corrected_difference(
            (before[0], after[0]),
            (before[1], after[1]),
            same=None if same is None else [same[place] and is_scored[place] for place in places],
            scale=criterion.scale,
            strata=strata,
            groups=groups,
        )

    present = [place for place, scored in enumerate(is_scored) if scored]
    scored = mean_of(True, present)
    every = range(len(is_scored))
    lowest, highest = (mean_of(True, every), mean_of(False, every)) if missing else (scored, scored)
    if scored is None or lowest is None or highest is None:
        return replace(test, notes=(note("few_label_groups", "caution"),))
    groups = _clusters(criterion, present)
    own = [] if isinstance(criterion, MaxRegression) else [(criterion.human or ())[place] for place in present]
    notes = tuple(same_labels([label for label in own if label is not None]))
    evidence = Evidence(scored, lowest, highest, n, len(missing), labeled, groups=groups)
    return replace(test, evidence=evidence, notes=notes)


def _ends(name: str, values: Sequence[float | None], scale: float) -> tuple[Floats, Floats]:
    """The values with missing ones replaced by 0, and by `scale`."""
    lowest = column(name, filled(values, 0.0), 0.0, scale)
    return lowest, np.where(has_value(values), lowest, scale)


def _evidence(lowest: Floats, highest: Floats, low: float, high: float, criterion: GateCriterion) -> Evidence | None:
    """The evidence of values. A value is missing if its lowest and highest differ. None if all are missing."""
    present = np.flatnonzero(lowest == highest)
    if not present.size:
        return None

    def mean_of(values: Floats, places: Positions) -> BoundedMean | BettingMean:
        if criterion.stopped:
            return BettingMean.of(values[places].tolist(), low, high)
        groups = criterion.groups and at(criterion.groups, places)
        weights = criterion.weights and at(criterion.weights, places)
        return WeightedMean.of_units(packed(values[places]), low, high, groups=groups, weights=weights)

    worst, scored = mean_of(lowest, np.arange(lowest.size)), mean_of(lowest, present)
    missing = lowest.size - present.size
    best = mean_of(highest, np.arange(highest.size)) if missing else worst
    effective = effective_number(criterion.weights and at(criterion.weights, present))
    clusters = _clusters(criterion, present.tolist())
    return Evidence(scored, worst, best, present.size, missing, effective=effective, groups=clusters)


def _clusters(criterion: GateCriterion, places: Sequence[int]) -> int | None:
    """The number of clusters among the values at these positions; None for independent samples."""
    return None if criterion.groups is None else len({criterion.groups[place] for place in places})


def _alphas(p_values: Sequence[float], alpha: float) -> list[float]:
    """Holm's error rate of each test: alpha / m for the smallest p, and so on up to the first that isn't rejected."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    m, rejected, alphas = len(order), 0, [0.0] * len(order)
    for rank, place in enumerate(order):
        alphas[place] = alpha / (m - min(rank, rejected))
        rejected += rank == rejected and p_values[place] <= alphas[place]
    return alphas


def _compared(test: _Test, scale: float) -> Decision:
    """The decision without a test: whether the estimate meets the threshold, whatever the missing values are."""
    if test.evidence is None:
        return _decision(test, "inconclusive")
    ends = test.evidence.lowest.mean, test.evidence.highest.mean
    if test.two_sided:
        inside = [reaches(abs(end), test.threshold, scale, lower_is_better=True) for end in ends]
        beyond = not any(inside) and ends[0] * ends[1] > 0
        return _decision(test, "pass" if all(inside) else "fail" if beyond else "inconclusive", limits=ends)
    met = [reaches(end, test.threshold, scale, lower_is_better=not test.upward) for end in ends]
    return _decision(test, "pass" if all(met) else "inconclusive" if any(met) else "fail", limits=ends)


def _tested(
    test: _Test, verdict: GateVerdict, p: tuple[float, float], alphas: tuple[float, float], later: float
) -> Decision:
    evidence = test.evidence
    low = high = more = labels = None
    if evidence is not None:
        for_low, for_high = alphas if test.upward else alphas[::-1]
        if test.two_sided:
            for_low = for_high = alphas[1] / 2 if verdict == "fail" else alphas[0]
        low, high = evidence.limit(for_low, 1), evidence.limit(for_high, -1)
        at = (alphas[0] * later, alphas[1] * later)
        if verdict == "inconclusive":
            more, labels = _more_samples(test, evidence, at), _more_labels(test, evidence, at)
    return _decision(test, verdict, p=p, limits=(low, high), more=(more, labels))


def _decision(
    test: _Test,
    verdict: GateVerdict,
    *,
    p: tuple[float | None, float | None] = (None, None),
    limits: tuple[float | None, float | None] = (None, None),
    more: tuple[int | None, int | None] = (None, None),
) -> Decision:
    evidence = test.evidence
    return Decision(
        name=test.name,
        kind=test.kind,
        verdict=verdict,
        estimate=None if evidence is None else evidence.scored.mean,
        threshold=test.threshold,
        low=limits[0],
        high=limits[1],
        p_pass=p[0],
        p_fail=p[1],
        n=0 if evidence is None else evidence.n,
        more_samples=more[0],
        notes=test.notes or (NO_VALUES if evidence is None else ()),
        lower_is_better=not test.upward,
        missing=0 if evidence is None else evidence.missing,
        labeled=None if evidence is None else evidence.labeled,
        more_labels=more[1],
        effective=None if evidence is None else evidence.effective,
        groups=None if evidence is None else evidence.groups,
    )


def _more_samples(test: _Test, evidence: Evidence, alphas: tuple[float, float]) -> int | None:
    """The further samples needed to show on which side of the threshold the mean is, at the current missing rate."""

    def more(threshold: float, side: Side, alpha: float, power: float = POWER) -> int | None:
        known = evidence.lowest if side == 1 else evidence.highest
        if not isinstance(known, BoundedMean):
            return None
        units = more_units(known, threshold, side, alpha, power=power)
        return None if units is None else max(1, math.ceil(units * (evidence.n + evidence.missing) / known.units))

    mean, margin = evidence.scored.mean, test.threshold
    if test.two_sided and abs(mean) <= margin:
        # Each of the two tests may miss half as often.
        above, below = (more(side * -margin, side, alphas[0], (1 + POWER) / 2) for side in SIDES)
        return None if above is None or below is None else max(above, below)
    if test.two_sided:
        outward: Side = 1 if mean > 0 else -1
        return more(outward * margin, outward, alphas[1] / 2)
    side: Side = 1 if mean > test.threshold else -1
    return more(test.threshold, side, alphas[0] if (side == 1) == test.upward else alphas[1])


def _more_labels(test: _Test, evidence: Evidence, alphas: tuple[float, float]) -> int | None:
    """The further labels needed for the limit to be beyond the threshold with a probability of about POWER."""
    scored, labeled = evidence.scored, evidence.labeled
    if labeled is None or evidence.missing or not isinstance(scored, CorrectedMean):
        return None
    threshold = math.copysign(test.threshold, scored.mean) if test.two_sided else test.threshold
    gap = abs(scored.mean - threshold)
    side: Side = 1 if scored.mean > threshold else -1
    if test.two_sided:
        alpha = alphas[0] if abs(scored.mean) <= test.threshold else alphas[1] / 2
    else:
        alpha = alphas[0] if (side == 1) == test.upward else alphas[1]
    factor = 1 + NORMAL.inv_cdf(POWER) / -NORMAL.inv_cdf(alpha)

    def decides(labels: int) -> bool:
        limit = scored.limit(alpha, side, times=labels / labeled)
        return factor * abs(scored.mean - limit) <= gap

    low, high = labeled, evidence.n
    if not decides(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle + 1, high)
    return max(1, high - labeled)
