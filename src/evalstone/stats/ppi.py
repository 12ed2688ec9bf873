"""Prediction-powered inference (PPI++): a mean corrected for the judge's errors with some human labels.

The mean of the labels, moved by how the judge's scores of the other samples differ from its scores of the labeled ones:

    θ = mean(human, labeled) + λ · (mean(judged, not labeled) - mean(judged, labeled))

λ = 0 ignores the judge, λ = 1 trusts it but for its mean error; it is chosen in [0, 1] to minimize the variance. Strata
are weighted by their share of all samples. The variance is that of the samples' influences on θ, summed over clusters;
the interval is that of `mean_interval`, with one degree of freedom less for λ. Labeled samples must be a random choice,
or a random choice within each stratum (`select_for_labeling` makes such a choice).
Sources: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, Science 382; Angelopoulos, Duchi and Zrnic 2023,
arXiv:2311.01453; strata: Fisch and others 2024, arXiv:2406.04291.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalstone.stats._arrays import Floats, Mask, Positions, codes, column, group_sums, same_length
from evalstone.stats.comparison import difference_interval, differences
from evalstone.stats.intervals import Interval, Spread, bounded, check_confidence, mean_interval

MIN_LABELS = 3
FEW_LABELS = 30


@dataclass(frozen=True)
class PPIEstimate:
    """An estimate corrected by human labels, in the unit of the scores."""

    estimate: Interval | None
    """The corrected mean, or mean difference; None below three labels."""
    raw: Interval | None
    """That of all the judge's scores; its interval ignores the judge's errors."""
    human: Interval | None
    """That of the labels alone, strata weighted; None where `estimate` is."""
    weight: float | None
    """λ, in [0, 1]: how much the judge's scores count (for a difference, those of b)."""
    bias: float | None
    """The judge's mean error, mean of judged - human over the labeled samples; None for a difference."""
    labeled: int
    """How many samples are labeled."""
    n: int
    """The number of samples."""
    variance_reduction: float | None
    """1 - variance(estimate) / variance(human), in [0, 1]: what the judge's scores add to the labels; None if the
    labels don't vary."""
    caution: str
    """Why there is no estimate, or why to trust it less, or ""."""


@dataclass(frozen=True)
class Labels:
    """One run's scores: the judge's of every sample, and the human ones in the same order, None where not labeled."""

    judged: Sequence[float]
    human: Sequence[float | None]


@dataclass(frozen=True)
class _Design:
    """What both runs share: the range of the estimate, its confidence, and how the samples depend on each other."""

    low: float
    high: float
    confidence: float
    n: int
    strata: Sequence[Hashable] | None
    groups: Sequence[Hashable] | None


@dataclass(frozen=True)
class _Side:
    """One run: θ = start + λ · shift, with each cluster's influence on start and, sign turned, on shift."""

    start: float
    shift: float
    on_start: Floats
    on_shift: Floats
    labeled: int
    freedom: int
    merged: int
    varied: bool


def ppi_mean(
    judged: Sequence[float],
    human: Sequence[float | None],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    strata: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> PPIEstimate | None:
    """The mean score as people would give it.

    Args:
        judged: The judge's score of every sample, in [0, scale].
        human: The human score of the same samples, in [0, scale]; None where not labeled.
        scale: The upper end of the range.
        confidence: The confidence level, in (0, 1).
        strata: One label per sample, if samples were chosen for labeling at random within each stratum; strata with
            fewer than two labels are merged.
        groups: One cluster label per sample.

    Returns:
        The estimate; None for no samples.

    Raises:
        DataError: Lengths differ, or a value is not a finite number in [0, scale].
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    n = same_length(judged=judged, human=human, strata=strata, groups=groups)
    if n == 0:
        return None
    design = _Design(0.0, scale, confidence, n, strata, groups)
    scores, (labels, is_labeled) = column("judged", judged, 0.0, scale), _labels("human", human, scale)
    raw = mean_interval(scores.tolist(), low=0.0, high=scale, confidence=confidence, groups=groups)
    result = _estimate([_side(scores, labels, is_labeled, design)], [1], raw, design)
    result = replace(result, bias=float(np.mean((scores - labels)[is_labeled])) if is_labeled.any() else None)
    if result.estimate is None or result.variance_reduction is not None:
        return result
    # All labels are equal, so their spread is unknown: at an end of the scale their own interval is exact.
    clusters = _of_labeled(groups, is_labeled)
    values: list[float] = labels[is_labeled].tolist()
    alone = mean_interval(values, low=0.0, high=scale, confidence=confidence, groups=clusters)
    return replace(result, estimate=alone, human=alone, weight=0.0)


def ppi_difference(
    a: Labels,
    b: Labels,
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    strata: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> PPIEstimate | None:
    """The mean of b - a as people would score it, over the same samples in the same order; None for no samples.

    Each run has its own λ, the two chosen together. The runs may be labeled on different samples; labels on the same
    ones give narrower intervals. `labeled` is the smaller of the two counts.

    Args:
        a: The baseline.
        b: The candidate.
        scale, confidence, strata, groups: As for `ppi_mean`.

    Raises:
        DataError: Lengths differ, or a value is not a finite number in [0, scale].
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    n = same_length(a=a.judged, a_human=a.human, b=b.judged, b_human=b.human, strata=strata, groups=groups)
    if n == 0:
        return None
    design = _Design(-scale, scale, confidence, n, strata, groups)
    scores = [column(name, labels.judged, 0.0, scale) for name, labels in (("b", b), ("a", a))]
    labels = [_labels(name, run.human, scale) for name, run in (("human of b", b), ("human of a", a))]
    judged = differences(scores[1], scores[0]).tolist()
    raw = difference_interval(judged, scale=scale, confidence=confidence, groups=groups)
    sides = [_side(score, *human, design) for score, human in zip(scores, labels, strict=True)]
    both = labels[0][1] & labels[1][1]
    changes = differences(labels[1][0][both], labels[0][0][both])
    nonzero = changes[changes != 0]
    # As in difference_interval: two more labels, that cancel, of the size of a change.
    fewest = min(int(is_labeled.sum()) for _, is_labeled in labels)
    extra = 2 * float(np.mean(nonzero**2)) * changes.size / fewest / (fewest + 2) ** 2 if nonzero.size else 0.0
    result = _estimate(sides, [1, -1], raw, design, extra)
    if result.estimate is None or result.variance_reduction is not None:
        return result
    clusters, alone = _of_labeled(groups, both), None
    if changes.size:
        alone = difference_interval(changes.tolist(), scale=scale, confidence=confidence, groups=clusters)
    return replace(result, estimate=alone, human=alone, weight=0.0)


def _labels(name: str, human: Sequence[float | None], scale: float) -> tuple[Floats, Mask]:
    """The labels (0 where there is none) and which samples have one."""
    is_labeled = np.fromiter((label is not None for label in human), dtype=np.bool_, count=len(human))
    return column(name, [0.0 if label is None else label for label in human], 0.0, scale), is_labeled


def _of_labeled(groups: Sequence[Hashable] | None, is_labeled: Mask) -> list[Hashable] | None:
    return None if groups is None else [group for group, chosen in zip(groups, is_labeled, strict=True) if chosen]


def _side(scores: Floats, labels: Floats, is_labeled: Mask, design: _Design) -> _Side:
    n = scores.size
    strata = codes(design.strata) if design.strata is not None else np.zeros(n, dtype=np.intp)
    strata, merged = _merged(strata, is_labeled)
    groups = np.arange(n) if design.groups is None else codes(design.groups)
    on_start, on_shift, starts, shifts = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    kinds = np.unique(strata)
    for kind in kinds:
        inside = strata == kind
        yes, no, share = inside & is_labeled, inside & ~is_labeled, float(inside.mean())
        size, rest = int(yes.sum()), int(no.sum())
        if not size:
            continue
        units = int(np.unique(groups[yes]).size)
        factor = share * np.sqrt(units / max(1, units - 1))  # makes the sum of squares the unbiased variance
        starts[inside] = mean = float(labels[yes].mean())
        on_start[yes] = factor / size * (labels[yes] - mean)
        if rest:
            of_labeled, of_rest = float(scores[yes].mean()), float(scores[no].mean())
            shifts[inside] = of_rest - of_labeled
            on_shift[yes] = factor / size * (scores[yes] - of_labeled)
            on_shift[no] = -share / rest * (scores[no] - of_rest)
    varied = bool(on_start.any())
    start, shift = float(starts.mean()), float(shifts.mean())
    # How many samples fall into each stratum is chance too.
    on_start, on_shift = on_start + (starts - start) / n, on_shift - (shifts - shift) / n
    labeled = int(is_labeled.sum())
    freedom = labeled - kinds.size - 1
    if design.groups is not None:
        on_start, on_shift = group_sums(on_start, groups), group_sums(on_shift, groups)
        freedom = min(freedom, int(np.unique(groups[is_labeled]).size) - 2)
    return _Side(start, shift, on_start, on_shift, labeled, freedom, merged, varied)


def _merged(strata: Positions, is_labeled: Mask) -> tuple[Positions, int]:
    """Strata with fewer than two labels put together, and with the smallest other one if they still have too few."""
    labels = np.bincount(strata, weights=is_labeled)
    small = np.flatnonzero(labels < 2)
    if not small.size:
        return strata, 0
    if labels[small].sum() < 2 and small.size < labels.size:
        enough = np.flatnonzero(labels >= 2)
        small = np.append(small, enough[np.argmin(labels[enough])])
    return np.where(np.isin(strata, small), small[0], strata), int(np.sum(labels < 2))


def _estimate(
    sides: Sequence[_Side], signs: Sequence[int], raw: Interval | None, design: _Design, extra: float = 0.0
) -> PPIEstimate:
    """θ and its interval; extra is added to the variance."""
    labeled, merged = min(side.labeled for side in sides), max(side.merged for side in sides)
    freedom = min(side.freedom for side in sides) - len(sides) + 1
    if labeled < MIN_LABELS or freedom < 1:
        caution = f"only {labeled} labels: too few for an estimate; label {FEW_LABELS} or more"
        return PPIEstimate(None, raw, None, None, None, labeled, design.n, None, caution)
    on_start = np.sum([sign * side.on_start for sign, side in zip(signs, sides, strict=True)], axis=0)
    columns = np.stack([sign * side.on_shift for sign, side in zip(signs, sides, strict=True)], axis=1)
    weights = _weights(on_start, columns)
    start = float(sum(sign * side.start for sign, side in zip(signs, sides, strict=True)))
    shift = float(sum(w * sign * side.shift for w, sign, side in zip(weights, signs, sides, strict=True)))
    residuals = on_start - columns @ weights
    # λ was fitted to the same labels: one degree of freedom each, in the variance as in the quantile.
    alone = float(np.sum(on_start**2))
    variance = float(np.sum(residuals**2)) * (freedom + len(sides)) / freedom
    variance, alone = variance + extra * (variance / alone if alone > 0 else 1.0), alone + extra
    clusters = None if design.groups is None else on_start.size
    mean = Interval(min(max(start + shift, design.low), design.high), None, None, design.n, design.confidence, clusters)
    human = Interval(start, None, None, labeled, design.confidence, clusters)
    return PPIEstimate(
        estimate=bounded(mean, Spread(variance, freedom, labeled), design.low, design.high),
        raw=raw,
        human=bounded(human, Spread(alone, freedom + len(sides), labeled), design.low, design.high),
        weight=float(weights[0]),
        bias=None,
        labeled=labeled,
        n=design.n,
        variance_reduction=max(0.0, 1 - variance / alone) if alone > 0 else None,
        caution=_caution(labeled, merged, all(side.varied for side in sides)),
    )


def _weights(target: Floats, columns: Floats) -> Floats:
    """Each λ in [0, 1]: least squares; one that leaves the range is set to its end and the others are fitted again."""
    weights = np.asarray(np.linalg.lstsq(columns, target, rcond=None)[0], dtype=np.float64)
    inside = (weights >= 0) & (weights <= 1)
    weights = np.clip(weights, 0.0, 1.0)
    if inside.any() and not inside.all():
        left = target - columns[:, ~inside] @ weights[~inside]
        weights[inside] = np.clip(np.linalg.lstsq(columns[:, inside], left, rcond=None)[0], 0.0, 1.0)
    return weights


def _caution(labeled: int, merged: int, varied: bool) -> str:
    cautions = [f"only {labeled} labels: the interval is approximate"] if labeled < FEW_LABELS else []
    if merged:
        cautions.append(f"strata with fewer than two labels were merged: {merged}")
    if not varied:
        cautions.append("labels don't vary within their strata: the interval is approximate")
    return "; ".join(cautions)
