"""The judge's errors, corrected with some human labels.

Prediction-powered inference (PPI++): the mean of the labels, moved by how the judge's scores of the other samples
differ from its scores of the labelled ones:

    θ = mean(human, labelled) + λ · (mean(judged, not labelled) - mean(judged, labelled))

λ = 0 ignores the judge, λ = 1 trusts it but for its mean error; it is chosen in [0, 1] to make the variance smallest.
Strata count by their share of all samples. The variance is that of the samples' influences on θ, summed over groups
where samples hang together; the interval is `mean_interval`'s, with one degree of freedom less for λ. Labelled samples
must be a random choice, or a random choice within each stratum (`next_to_label` makes such a choice).
Sources: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, Science 382; Angelopoulos, Duchi and Zrnic 2023,
arXiv:2311.01453; strata: Fisch and others 2024, arXiv:2406.04291.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalstone.stats._arrays import Floats, Mask, Places, codes, column, group_sums, same_length
from evalstone.stats.comparison import difference_interval, differences
from evalstone.stats.intervals import Interval, Spread, bounded, check_level, mean_interval

FEWEST = 3
FEW_LABELS = 30


@dataclass(frozen=True)
class Corrected:
    """An estimate corrected by human labels, beside the raw one and the one of the labels alone.

    estimate: corrected, with its interval; None below three labels, and `caution` says so. raw: the mean of all judged
    scores; its interval knows nothing of the judge's errors. human: the labels alone, strata weighed. power: λ (that of
    b for a difference). error: the judge's mean error, mean of judged - human over the labelled, unweighed (None for a
    difference). labelled, n: how many of how many samples. saved: 1 - variance(estimate) / variance(human), in [0, 1]:
    what the judge's scores added to the labels; None when the labels do not vary.
    """

    estimate: Interval | None
    raw: Interval | None
    human: Interval | None
    power: float | None
    error: float | None
    labelled: int
    n: int
    saved: float | None
    caution: str


@dataclass(frozen=True)
class Labels:
    """One run's scores: the judge's of every sample, and the human ones in the same order, None where there is none."""

    judged: Sequence[float]
    human: Sequence[float | None]


@dataclass(frozen=True)
class _Frame:
    """What one call is about: the range of its estimate, its level, samples and how they hang together."""

    low: float
    high: float
    level: float
    n: int
    strata: Sequence[Hashable] | None
    groups: Sequence[Hashable] | None


@dataclass(frozen=True)
class _Side:
    """One run: θ = start + λ · shift, with each group's influence on start and, sign turned, on shift."""

    start: float
    shift: float
    on_start: Floats
    on_shift: Floats
    labelled: int
    freedom: int
    merged: int
    varied: bool


def ppi_mean(
    judged: Sequence[float],
    human: Sequence[float | None],
    *,
    scale: float = 1.0,
    level: float = 0.95,
    strata: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> Corrected | None:
    """The mean score as people would give it; None for no sample.

    judged: the judge's score of every sample. human: the human score of the same samples, None where there is none;
    both in [0, scale]. strata: one label a sample, if samples were chosen for labelling at random within each; strata
    with fewer than two labels are merged. groups: one label a sample; samples of one group hang together.
    Raises DataError when lengths differ or a value is not a finite number in [0, scale].
    """
    check_level(level)
    n = same_length(judged=judged, human=human, strata=strata, groups=groups)
    if n == 0:
        return None
    frame = _Frame(0.0, scale, level, n, strata, groups)
    scores, (marks, there) = column("judged", judged, 0.0, scale), _labels("human", human, scale)
    raw = mean_interval(scores.tolist(), low=0.0, high=scale, level=level, groups=groups)
    made = _corrected([_side(scores, marks, there, frame)], [1], raw, frame)
    error = float(np.mean((scores - marks)[there])) if there.any() else None
    if made.estimate is None or made.saved is not None:
        return replace(made, error=error)
    # All labels are equal, so nothing tells how much others vary: at an end of the scale their own interval is exact.
    kept = None if groups is None else [group for group, is_there in zip(groups, there, strict=True) if is_there]
    alone = mean_interval(marks[there].tolist(), low=0.0, high=scale, level=level, groups=kept)
    return replace(made, estimate=alone, human=alone, power=0.0, error=error)


def ppi_difference(
    a: Labels,
    b: Labels,
    *,
    scale: float = 1.0,
    level: float = 0.95,
    strata: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> Corrected | None:
    """The mean of b - a as people would score it, over the same samples in the same order; None for no sample.

    Each run has its own λ, the two chosen together. The runs may be labelled on different samples; labels on the same
    ones give narrower intervals. labelled is the smaller of the two counts.
    Raises DataError when lengths differ or a value is not a finite number in [0, scale].
    """
    check_level(level)
    n = same_length(a=a.judged, a_human=a.human, b=b.judged, b_human=b.human, strata=strata, groups=groups)
    if n == 0:
        return None
    frame = _Frame(-scale, scale, level, n, strata, groups)
    scores = [column(name, labels.judged, 0.0, scale) for name, labels in (("b", b), ("a", a))]
    marks = [_labels(name, labels.human, scale) for name, labels in (("human of b", b), ("human of a", a))]
    raw = difference_interval(differences(scores[1], scores[0]).tolist(), scale=scale, level=level, groups=groups)
    sides = [_side(score, *mark, frame) for score, mark in zip(scores, marks, strict=True)]
    both = marks[0][1] & marks[1][1]
    changes = differences(marks[1][0][both], marks[0][0][both])
    changed = changes[changes != 0]
    # As in difference_interval: two labels more, that cancel, of the size of a change.
    least = min(int(there.sum()) for _, there in marks)
    extra = 2 * float(np.mean(changed**2)) * changes.size / least / (least + 2) ** 2 if changed.size else 0.0
    made = _corrected(sides, [1, -1], raw, frame, extra)
    if made.estimate is None or made.saved is not None:
        return made
    kept = None if groups is None else [group for group, is_there in zip(groups, both, strict=True) if is_there]
    alone = difference_interval(changes.tolist(), scale=scale, level=level, groups=kept) if changes.size else None
    return replace(made, estimate=alone, human=alone, power=0.0)


def _labels(name: str, human: Sequence[float | None], scale: float) -> tuple[Floats, Mask]:
    """The labels (0 where there is none) and where they are."""
    there = np.fromiter((mark is not None for mark in human), dtype=np.bool_, count=len(human))
    return column(name, [0.0 if mark is None else mark for mark in human], 0.0, scale), there


def _side(scores: Floats, marks: Floats, there: Mask, frame: _Frame) -> _Side:
    n = scores.size
    places = codes(frame.strata) if frame.strata is not None else np.zeros(n, dtype=np.intp)
    places, merged = _merged(places, there)
    groups = np.arange(n) if frame.groups is None else codes(frame.groups)
    on_start, on_shift, starts, shifts = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    kinds = np.unique(places)
    for kind in kinds:
        inside = places == kind
        yes, no, share = inside & there, inside & ~there, float(inside.mean())
        size, rest = int(yes.sum()), int(no.sum())
        if not size:
            continue
        units = int(np.unique(groups[yes]).size)
        bias = share * np.sqrt(units / max(1, units - 1))  # makes the sum of squares the unbiased variance
        starts[inside] = mean = float(marks[yes].mean())
        on_start[yes] = bias / size * (marks[yes] - mean)
        if rest:
            here, elsewhere = float(scores[yes].mean()), float(scores[no].mean())
            shifts[inside] = elsewhere - here
            on_shift[yes] = bias / size * (scores[yes] - here)
            on_shift[no] = -share / rest * (scores[no] - elsewhere)
    varied = bool(on_start.any())
    start, shift = float(starts.mean()), float(shifts.mean())
    # How many samples fall into each stratum is chance too.
    on_start, on_shift = on_start + (starts - start) / n, on_shift - (shifts - shift) / n
    freedom = int(there.sum()) - kinds.size - 1
    if frame.groups is not None:
        on_start, on_shift = group_sums(on_start, groups), group_sums(on_shift, groups)
        freedom = min(freedom, int(np.unique(groups[there]).size) - 2)
    return _Side(start, shift, on_start, on_shift, int(there.sum()), freedom, merged, varied)


def _merged(places: Places, there: Mask) -> tuple[Places, int]:
    """Strata with fewer than two labels put together, and with the smallest other one if they still have too few."""
    labels = np.bincount(places, weights=there)
    small = np.flatnonzero(labels < 2)
    if not small.size:
        return places, 0
    if labels[small].sum() < 2 and small.size < labels.size:
        enough = np.flatnonzero(labels >= 2)
        small = np.append(small, enough[np.argmin(labels[enough])])
    return np.where(np.isin(places, small), small[0], places), int(np.sum(labels < 2))


def _corrected(
    sides: Sequence[_Side], signs: Sequence[int], raw: Interval | None, frame: _Frame, extra: float = 0.0
) -> Corrected:
    labelled, merged = min(side.labelled for side in sides), max(side.merged for side in sides)
    freedom = min(side.freedom for side in sides) - len(sides) + 1
    if labelled < FEWEST or freedom < 1:
        told = f"only {labelled} labels: too few for an estimate; {FEW_LABELS} or more are wanted"
        return Corrected(None, raw, None, None, None, labelled, frame.n, None, told)
    on_start = np.sum([sign * side.on_start for sign, side in zip(signs, sides, strict=True)], axis=0)
    columns = np.stack([sign * side.on_shift for sign, side in zip(signs, sides, strict=True)], axis=1)
    powers = _powers(on_start, columns)
    start = float(sum(sign * side.start for sign, side in zip(signs, sides, strict=True)))
    shift = float(sum(p * sign * side.shift for p, sign, side in zip(powers, signs, sides, strict=True)))
    rest = on_start - columns @ powers
    # λ was fitted to the same labels: one degree of freedom each, in the variance as in the quantile.
    whole = float(np.sum(on_start**2))
    fitted = float(np.sum(rest**2)) * (freedom + len(sides)) / freedom
    fitted, whole = fitted + extra * (fitted / whole if whole > 0 else 1.0), whole + extra
    count = None if frame.groups is None else on_start.size
    shape = Interval(min(max(start + shift, frame.low), frame.high), None, None, frame.n, frame.level, count)
    alone = Interval(start, None, None, labelled, frame.level, count)
    return Corrected(
        estimate=bounded(shape, Spread(fitted, freedom, labelled), frame.low, frame.high),
        raw=raw,
        human=bounded(alone, Spread(whole, freedom + len(sides), labelled), frame.low, frame.high),
        power=float(powers[0]),
        error=None,
        labelled=labelled,
        n=frame.n,
        saved=max(0.0, 1 - fitted / whole) if whole > 0 else None,
        caution=_caution(labelled, merged, all(side.varied for side in sides)),
    )


def _powers(target: Floats, columns: Floats) -> Floats:
    """Each λ in [0, 1]: least squares, one that leaves the range put to its end and the others fitted again."""
    powers = np.asarray(np.linalg.lstsq(columns, target, rcond=None)[0], dtype=np.float64)
    inside = (powers >= 0) & (powers <= 1)
    powers = np.clip(powers, 0.0, 1.0)
    if inside.any() and not inside.all():
        left = target - columns[:, ~inside] @ powers[~inside]
        powers[inside] = np.clip(np.linalg.lstsq(columns[:, inside], left, rcond=None)[0], 0.0, 1.0)
    return powers


def _caution(labelled: int, merged: int, varied: bool) -> str:
    told = [f"only {labelled} labels: the interval is a guide"] if labelled < FEW_LABELS else []
    if merged:
        told.append(f"strata with fewer than two labels were merged: {merged}")
    if not varied:
        told.append("labels do not vary within their strata, so that little tells how much others do")
    return "; ".join(told)
