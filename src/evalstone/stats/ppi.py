"""Prediction-powered inference (PPI++): a mean corrected for the judge's errors with some human labels.

The judge's mean score of the unlabeled samples is corrected by its mean error on the labeled samples:

    θ = mean over labeled samples of (human - λ · judged) + mean over unlabeled samples of (λ · judged)

λ = 0 ignores the judge. λ = 1 trusts it up to its mean error. λ minimizes the variance of θ: it is the regression slope
of human on judged, divided by 1 + labeled / unlabeled, and restricted to [0, 1]. It is cross-fitted: the λ of a sample
depends on the labels of other samples only, so it isn't overfitted. One uninformative pseudo-label shrinks λ toward 0
if there are few labels.

Both means are of bounded values and have the limits of `BoundedMean`, which allow for rare errors that no label shows.
The limits of θ combine them by MOVER (Zou and Donner): squared distances are added. If clusters have both labeled and
unlabeled samples, the correlation of the two means is included.

Strata are weighted by their share of all samples: a labeled sample of stratum h has the weight N(h) / n(h). Labeled
samples must be chosen at random, or at random within each stratum, as by `select_for_labeling`.
Sources: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, Science 382; Angelopoulos, Duchi and Zrnic 2023,
arXiv:2311.01453; cross-fitting: Zrnic and Candès 2024, PNAS 121(15); strata: Fisch and others 2024, arXiv:2406.04291;
limits: Zou and Donner 2008, Statistics in Medicine 27(10).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from evalstone.stats._arrays import Floats, Positions, codes, column, group_sums, same_length
from evalstone.stats.bounded_mean import EXACT, SHARE, BoundedMean, Side
from evalstone.stats.intervals import GAFFKE, Interval, check_confidence, mean_interval, mover
from evalstone.stats.mean_difference import difference_interval
from evalstone.stats.roots import root
from evalstone.stats.special import normal_tail
from evalstone.stats.weighted_mean import WeightedMean
from evalstone.types import Note, note

MIN_LABELS = 3
FEW_LABELS = 30
MIN_LABELS_OF_STRATUM = 2
SIDES: tuple[Side, Side] = (1, -1)
GRID = 21
"""The number of candidate λ, evenly spaced in [0, 1]."""
TYPICAL_Z = 1.96
NEAREST, FARTHEST = 0.01, 16.0
"""The range in which p-values are computed, as normal quantiles. Larger p-values are reported as 0.5, smaller ones as
0."""
LEVELS = 48
"""If there are more distinct values than this, they are grouped into this many bins, each represented by its mean."""
TINY = 1e-300


@dataclass(frozen=True)
class _Sum:
    """A sum of means of bounded values.

    parts: the mean of human - λ · judged over labeled samples, and unless λ is 0, that of λ · judged over the others.
    correlation: the correlation of the two means, 0 or more.
    """

    parts: tuple[BoundedMean, ...]
    correlation: float

    @cached_property
    def mean(self) -> float:
        return math.fsum(part.mean for part in self.parts)

    def reach(self, alpha: float, side: Side, share: float, times: float = 1.0) -> float:
        """The distance from the mean to its limit; approximately that with `times` as many labels."""
        reaches = [abs(part.mean - part.limit(alpha, side, share=share)) for part in self.parts]
        reaches[0] /= math.sqrt(times)
        return mover(*reaches, correlation=self.correlation if len(reaches) > 1 else 0.0)


@dataclass(frozen=True)
class CorrectedMean:
    """Inference about a mean in [low, high] from a judge's scores and human labels (see the module docstring).

    It has the same methods as `BoundedMean`.
    """

    low: float
    high: float
    mean: float
    """The corrected mean, in [low, high]."""
    units: float
    """The number of independent labeled samples or clusters."""
    weight: float
    """The mean λ, in [0, 1]: the weight of the judge's scores."""
    _sides: Mapping[Side, _Sum]
    """The sums with the λ chosen for lower limits (1) and for upper limits (-1)."""

    def p_value(self, m: float, side: Side, *, share: float = EXACT) -> float:
        """The p-value of "the true mean is at most m" (side 1) or "at least m" (side -1); 1 if the estimate agrees."""
        if side * (m - (self.low if side == 1 else self.high)) <= 0:
            return float(side * (self.mean - m) <= 0)
        total = self._sides[side]
        gap = side * (total.mean - m)
        if gap <= 0:
            return 1.0

        def beyond(z: float) -> float:
            """How far beyond m the limit at a one-sided z is."""
            return total.reach(normal_tail(z), side, share) - gap

        below = beyond(NEAREST)
        if below >= 0:
            return 0.5
        far = 2.0
        while (above := beyond(far)) < 0:
            if far == FARTHEST:
                return 0.0
            far = min(2 * far, FARTHEST)
        guess = NEAREST + (far - NEAREST) * below / (below - above)
        return normal_tail(root(beyond, NEAREST, far, guess, at_start=below, close=1e-4 * gap))

    def limit(self, alpha: float, side: Side, *, share: float = EXACT, times: float = 1.0) -> float:
        """The one-sided lower (side 1) or upper (side -1) confidence limit at error rate alpha, in (0, 0.5).

        times: approximate the limit with this many times as many labels.
        """
        total = self._sides[side]
        limit = total.mean - side * total.reach(alpha, side, share, times)
        return min(max(limit, self.low), self.mean) if side == 1 else max(min(limit, self.high), self.mean)

    def two_sided_p(self, m: float, *, share: float = SHARE) -> float:
        """The two-sided p-value of "the true mean is m": twice the smaller of the one-sided ones."""
        return min(1.0, 2 * min(self.p_value(m, 1, share=share), self.p_value(m, -1, share=share)))

    def interval(self, confidence: float, *, share: float = SHARE) -> tuple[float, float]:
        """The confidence interval (low, high): all m with a two-sided p-value of at least 1 - confidence."""
        alpha = (1 - confidence) / 2
        return self.limit(alpha, 1, share=share), self.limit(alpha, -1, share=share)

    def half_width(self, confidence: float, *, times: float = 1.0) -> float:
        """Half the width of the interval; approximately that with `times` as many labels."""
        alpha = (1 - confidence) / 2
        low, high = (self.limit(alpha, side, share=SHARE, times=times) for side in SIDES)
        return (high - low) / 2


@dataclass(frozen=True, kw_only=True)
class PPIEstimate:
    """A mean, or a difference of means, corrected with human labels, in the unit of the scores."""

    estimate: Interval | None
    """The corrected mean; None with fewer than three labels (clusters)."""
    raw: Interval | None
    """The mean of the judge's scores of all samples. Its interval ignores the judge's errors."""
    human: Interval | None
    """The mean of the labels alone, weighted by stratum; None if `estimate` is None."""
    weight: float | None
    """λ, in [0, 1]: the weight of the judge's scores; None if `estimate` is None."""
    bias: Interval | None
    """The judge's mean error, judged - human, on labeled samples, weighted by stratum; None without labels."""
    labeled: int
    """The number of labeled samples."""
    n: int
    """The number of samples."""
    p_value: float | None
    """The two-sided p-value of "the difference is 0"; None for a mean, or without an estimate."""
    doubled: float | None
    """The approximate half-width of the interval with twice as many labels; None if there are too few samples."""
    notes: tuple[Note, ...]
    """Why there is no estimate, or why to trust it less."""


def same_labels(labels: Sequence[float]) -> Iterator[Note]:
    """A note if all labels of a mean are the same: then they tell nothing about the judge's errors elsewhere."""
    if len(set(labels)) == 1:
        yield note("same_labels", "caution", labels=len(labels), label=labels[0])


def ppi_mean(
    judged: Sequence[float],
    human: Sequence[float | None],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    strata: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
    least: int = MIN_LABELS,
) -> PPIEstimate | None:
    """The mean human score of all samples, estimated from the judge's scores and some labels (PPI++).

    Args:
        judged: The judge's score of every sample, in [0, scale].
        human: The human scores of the same samples, in [0, scale]; None if not labeled.
        scale: The upper end of the range.
        confidence: The confidence level, in (0, 1).
        strata: One stratum per sample, if samples were chosen for labeling at random within strata. Strata with fewer
            than two labels are merged.
        groups: One cluster label per sample.
        least: The minimum number of labels for an estimate.

    Returns:
        The estimate; None for no samples.

    Raises:
        DataError: Lengths differ, or a value is not a finite number in [0, scale].
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    labels = _Labeled.of(judged, human, scale=scale, strata=strata, groups=groups)
    return None if labels is None else labels.estimate(labels.judged.raw(confidence), confidence, least)


def ppi_difference(
    judged: tuple[Sequence[float], Sequence[float]],
    human: tuple[Sequence[float | None], Sequence[float | None]],
    *,
    same: Sequence[bool] | None = None,
    scale: float = 1.0,
    confidence: float = 0.95,
    strata: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> PPIEstimate | None:
    """The mean difference of human scores between two runs over the same samples, second minus first (PPI++).

    A sample is labeled if both its outputs are. If both outputs are the same, the difference is 0 and needs no labels.

    Args:
        judged: The judge's scores in both runs, in [0, scale].
        human: The human scores in both runs, in [0, scale]; None if not labeled.
        same: Whether both runs have the same output, by sample. None: all outputs differ.
        scale: The upper end of the range.
        confidence: The confidence level, in (0, 1).
        strata: As for `ppi_mean`.
        groups: One cluster label per sample.

    Returns:
        The estimate, with a p-value; None for no samples. `labeled` and `n` count samples with different outputs only.

    Raises:
        DataError: Lengths differ, or a value is not a finite number in [0, scale].
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    labels = _Labeled.of_differences(judged, human, same, scale=scale, strata=strata, groups=groups)
    if labels is None:
        return None
    raw = difference_interval(labels.judged.scores.tolist(), scale=scale, confidence=confidence, groups=groups)
    return labels.estimate(raw, confidence)


def corrected_mean(
    judged: Sequence[float],
    human: Sequence[float | None],
    *,
    scale: float = 1.0,
    strata: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> CorrectedMean | None:
    """The inference behind `ppi_mean`, for one-sided tests and limits. Arguments and errors as for `ppi_mean`.

    None with fewer than three labels (clusters).
    """
    labels = _Labeled.of(judged, human, scale=scale, strata=strata, groups=groups)
    return labels.corrected if labels is not None and labels.enough else None


def corrected_difference(
    judged: tuple[Sequence[float], Sequence[float]],
    human: tuple[Sequence[float | None], Sequence[float | None]],
    *,
    same: Sequence[bool] | None = None,
    scale: float = 1.0,
    strata: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> CorrectedMean | None:
    """The inference behind `ppi_difference`, for one-sided tests and limits. Arguments and errors as there.

    None with fewer than three labels (clusters).
    """
    labels = _Labeled.of_differences(judged, human, same, scale=scale, strata=strata, groups=groups)
    return labels.corrected if labels is not None and labels.enough else None


@dataclass(frozen=True, eq=False)
class JudgedScores:
    """The scores of all samples by a judge, with strata and clusters: what is the same for all labels. Build it with
    `of`, and keep it to correct one mean again and again, as labels are added."""

    scores: Floats
    """In [low, high]."""
    low: float
    high: float
    strata: Positions
    groups: Positions | None

    @classmethod
    def of(
        cls,
        judged: Sequence[float],
        *,
        scale: float = 1.0,
        strata: Sequence[Hashable] | None = None,
        groups: Sequence[Hashable] | None = None,
    ) -> JudgedScores | None:
        """Scores in [0, scale]; None for no samples. Arguments and errors as for `ppi_mean`."""
        n = same_length(judged=judged, strata=strata, groups=groups)
        if n == 0:
            return None
        scores = column("judged", judged, 0.0, scale)
        return cls(scores, 0.0, scale, _codes(strata, n), None if groups is None else codes(groups))

    def corrected(
        self, labels: Mapping[int, float], *, confidence: float = 0.95, least: int = MIN_LABELS
    ) -> PPIEstimate:
        """The estimate of `ppi_mean`.

        Args:
            labels: The human score of each labeled sample, by its position.
            confidence: The confidence level, in (0, 1).
            least: The minimum number of labels for an estimate.

        Raises:
            DataError: A label is not a finite number in [0, scale].
            ConfigError: confidence is outside (0, 1).
        """
        check_confidence(confidence)
        return self._labeled(labels, self.low, self.high).estimate(self.raw(confidence), confidence, least)

    def mean_of_labels(self, labels: Mapping[int, float], *, scale: float, confidence: float = 0.95) -> Interval | None:
        """The mean of labels alone, weighted by stratum; None with fewer than three labels (clusters).

        Args:
            labels: What people said of samples, in [0, scale], by their positions. It may be anything, not the score.
            scale: The upper end of its range.
            confidence: As for `corrected`, with its errors.
        """
        check_confidence(confidence)
        labeled = self._labeled(labels, 0.0, scale)
        return labeled.alone(confidence, 0.0, scale) if labeled.enough else None

    def _labeled(self, labels: Mapping[int, float], low: float, high: float) -> _Labeled:
        places = sorted(labels)
        human = column("human", [labels[place] for place in places], low, high)
        return _Labeled(self, np.array(places, dtype=np.intp), human)

    def raw(self, confidence: float) -> Interval | None:
        """The mean of the scores."""
        if confidence not in self._raw:
            groups = None if self.groups is None else self.groups.tolist()
            self._raw[confidence] = mean_interval(
                self.scores.tolist(), low=self.low, high=self.high, confidence=confidence, groups=groups
            )
        return self._raw[confidence]

    @cached_property
    def _raw(self) -> dict[float, Interval | None]:
        return {}

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest score."""
        return float(self.scores.min()), float(self.scores.max())

    @cached_property
    def variance(self) -> float:
        """The variance of the scores."""
        return float(self.scores.var())

    @cached_property
    def sizes(self) -> Positions:
        """The number of samples of each stratum."""
        return np.bincount(self.strata)

    @cached_property
    def cells(self) -> _Cells:
        """Equal scores of a stratum as one. With clusters, each sample is by itself."""
        if self.groups is None:
            return _Cells.of(self.scores, self.strata)
        each = np.arange(self.scores.size)
        return _Cells(each, np.ones(each.size, dtype=np.intp), each)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Samples that are alike."""

    first: Positions
    """A sample of each cell."""
    counts: Positions
    """The number of samples of each."""
    of_sample: Positions
    """The cell of each sample."""

    @classmethod
    def of(cls, values: Floats, keys: Floats | Positions) -> _Cells:
        """Samples with the same value and the same key."""
        order = np.lexsort((values, keys))
        values, keys = values[order], keys[order]
        starts = np.flatnonzero(np.r_[True, (values[1:] != values[:-1]) | (keys[1:] != keys[:-1])])
        of_sample = np.empty(order.size, dtype=np.intp)
        counts = np.diff(np.r_[starts, order.size])
        of_sample[order] = np.repeat(np.arange(starts.size), counts)
        return cls(order[starts], counts, of_sample)


class _Labeled:
    """The scores in [low, high] of all samples, and labels of some.

    Args:
        judged: The scores.
        places: The positions of the labeled samples, in ascending order.
        labels: Their labels.
        shown: The numbers of labeled samples and of all samples, as reported; None for those of the arguments.
    """

    def __init__(
        self, judged: JudgedScores, places: Positions, labels: Floats, shown: tuple[int, int] | None = None
    ) -> None:
        self.judged, self.labels, self.low, self.high = judged, labels, judged.low, judged.high
        self.places, self.shown = places, shown or (places.size, judged.scores.size)
        self.scores = judged.scores[places]
        self.groups = None if judged.groups is None else judged.groups[places]
        merged, self.merged = _merged(np.bincount(judged.strata[places], minlength=judged.sizes.size))
        self.strata = merged[judged.strata[places]]
        self.sizes = np.bincount(merged, weights=judged.sizes)
        self.have = np.bincount(self.strata, minlength=self.sizes.size)
        cells = judged.cells
        counts = cells.counts - np.bincount(cells.of_sample[places], minlength=cells.counts.size)
        left = np.flatnonzero(counts)
        others = cells.first[left]
        self.others = _Others(
            others,
            judged.scores[others],
            merged[judged.strata[others]],
            counts[left],
            None if judged.groups is None else judged.groups[others],
        )

    @classmethod
    def of(
        cls,
        judged: Sequence[float],
        human: Sequence[float | None],
        *,
        scale: float,
        strata: Sequence[Hashable] | None,
        groups: Sequence[Hashable] | None,
    ) -> _Labeled | None:
        same_length(judged=judged, human=human, strata=strata, groups=groups)
        scores = JudgedScores.of(judged, scale=scale, strata=strata, groups=groups)
        return None if scores is None else cls._with(scores, _labels("human", human, scale))

    @classmethod
    def _with(cls, judged: JudgedScores, labels: Floats, shown: tuple[int, int] | None = None) -> _Labeled:
        """labels: one for each sample, NaN for a missing one."""
        places = np.flatnonzero(~np.isnan(labels))
        return cls(judged, places, labels[places], shown)

    @classmethod
    def of_differences(
        cls,
        judged: tuple[Sequence[float], Sequence[float]],
        human: tuple[Sequence[float | None], Sequence[float | None]],
        same: Sequence[bool] | None,
        *,
        scale: float,
        strata: Sequence[Hashable] | None,
        groups: Sequence[Hashable] | None,
    ) -> _Labeled | None:
        (before, after), (label_before, label_after) = judged, human
        n = same_length(
            judged_a=before, judged_b=after, human_a=label_before, human_b=label_after, same=same, strata=strata,
            groups=groups,
        )  # fmt: skip
        if n == 0:
            return None
        scores = column("judged_b", after, 0.0, scale) - column("judged_a", before, 0.0, scale)
        labels = _labels("human_b", label_after, scale) - _labels("human_a", label_before, scale)
        equal = np.zeros(n, dtype=np.bool_) if same is None else np.asarray(same, dtype=np.bool_)
        parts = np.where(equal, -1, _codes(strata, n))
        scores[equal], labels[equal] = 0.0, np.nan
        changed, labeled = int(np.sum(~equal)), int(np.sum(~np.isnan(labels)))
        # Label as many equal outputs as a random choice would. Their differences are all 0, so it doesn't matter which.
        as_labeled = max(MIN_LABELS_OF_STRATUM, round(float(equal.sum()) * labeled / max(1, changed)))
        labels[np.flatnonzero(equal)[:as_labeled]] = 0.0
        clusters = None if groups is None else codes(groups)
        return cls._with(
            JudgedScores(scores, -scale, scale, codes(parts.tolist()), clusters), labels, (labeled, changed)
        )

    @property
    def enough(self) -> bool:
        """Whether there are enough labels for an estimate."""
        units = self.labels.size if self.groups is None else np.unique(self.groups).size
        return self.shown[0] >= MIN_LABELS and units >= MIN_LABELS

    @cached_property
    def shares(self) -> tuple[Floats, Floats]:
        """The stratum weight of each labeled sample, and of each of the others."""
        sizes, have = self.sizes, self.have
        with np.errstate(divide="ignore", invalid="ignore"):
            return (sizes / have)[self.strata], (sizes / (sizes - have))[self.others.strata]

    @cached_property
    def corrected(self) -> CorrectedMean:
        """Inference about the corrected mean."""
        best, weight = self._sum(0)
        sides: dict[Side, _Sum] = {1: self._sum(1)[0], -1: self._sum(-1)[0]}
        mean = min(max(best.mean, self.low), self.high)
        return CorrectedMean(self.low, self.high, mean, best.parts[0].units, weight, sides)

    def _sum(self, side: Literal[1, 0, -1]) -> tuple[_Sum, float]:
        """The corrected mean as a sum, and the mean λ. side: the limit to fit λ to; 0 for the estimate."""
        others, groups = self.others, self.groups
        counts, other_counts = self.shares
        weights = self._weights(counts, side)
        # In a stratum whose samples are all labeled, the judge has nothing to add.
        weights[(self.have == self.sizes)[self.strata]] = 0.0
        of_stratum = np.bincount(self.strata, weights=weights, minlength=self.sizes.size) / np.maximum(self.have, 1)
        top = float(weights.max())
        errors = self.labels - weights * self.scores
        ends = float(self._end(1, weights).min()), float(self._end(-1, weights).max())
        parts = [_mean(_binned(errors, counts), *ends, counts, groups)]
        if top == 0:
            return _Sum(tuple(parts), 0.0), 0.0
        moved = of_stratum[others.strata] * others.scores
        ends = top * self.low, top * self.high
        values = _binned(moved, other_counts * others.counts)
        parts.append(_mean(values, *ends, other_counts, others.groups, others.counts))
        correlation = 0.0
        if self.judged.groups is not None:
            influence = np.zeros(self.judged.scores.size)
            influence[self.places] = counts * (errors - parts[0].mean)
            of_others = np.zeros(self.judged.scores.size)
            of_others[others.first] = other_counts * (moved - parts[1].mean)
            correlation = _correlation(
                group_sums(influence, self.judged.groups), group_sums(of_others, self.judged.groups)
            )
        return _Sum(tuple(parts), max(0.0, correlation)), float(of_stratum @ self.sizes / self.sizes.sum())

    def _end(self, side: Side, weights: Floats) -> Floats:
        """The lowest (side 1) or highest (side -1) possible value of human - λ · judged, given the judge's scores."""
        smallest, largest = self.judged.ends
        return self.low - weights * largest if side == 1 else self.high - weights * smallest

    def _weights(self, counts: Floats, side: Literal[1, 0, -1]) -> Floats:
        """λ of each labeled sample, fitted to the labels of other samples (clusters) and an uninformative pseudo-label.

        On a grid, the λ with the smallest variance (side 0), or with the tightest expected limit (side 1 or -1).
        """
        f, h = self.scores, self.labels
        units = np.arange(f.size) if self.groups is None else codes(self.groups.tolist())
        others = self.judged.scores.size - f.size
        if not others:
            return np.zeros(f.size)
        n = int(units.max())  # other labeled samples (clusters)
        square = counts**2
        # Leave-one-out moments: totals minus each unit's own contribution.
        columns = (square, square * f, square * h, square * f * f, square * f * h, square * h * h)
        total, x, y, xx, xy, yy = (float(c.sum()) - group_sums(c, units)[:, None] for c in columns)
        total = np.maximum(total, TINY)
        x, y = x / total, y / total
        weights = np.linspace(0.0, 1.0, GRID)[None, :]
        spread = self.judged.variance
        pseudo = (
            float(square.sum()) / (n + 1) * spread / total
        )  # the pseudo-label: it adds to the variance of judged only
        errors = yy / total - y * y - 2 * weights * (xy / total - x * y) + weights**2 * (xx / total - x * x + pseudo)
        variance = errors / n + weights**2 * spread * f.size / others / n
        if side:
            # The allowance for an error that no label shows.
            far = np.abs(y - weights * x - self._end(side, weights))
            variance = TYPICAL_Z**2 * variance + (far * (1 - normal_tail(TYPICAL_Z) ** (1 / n))) ** 2
        return weights[0, np.argmin(variance, axis=1)][units]

    def estimate(self, raw: Interval | None, confidence: float, least: int = MIN_LABELS) -> PPIEstimate:
        """The estimate, with those of the judge alone and the labels alone."""
        labeled, n = self.shown
        bias = mean_interval(
            (self.scores - self.labels).tolist(),
            low=self.low - self.high,
            high=self.high - self.low,
            confidence=confidence,
            groups=None if self.groups is None else self.groups.tolist(),
            weights=self.shares[0].tolist() if self.enough else None,
        )
        if not self.enough or labeled < least:
            few = note("too_few_labels", "caution", labels=labeled, least=FEW_LABELS)
            return PPIEstimate(
                estimate=None,
                raw=raw,
                human=None,
                weight=None,
                bias=bias,
                labeled=labeled,
                n=n,
                p_value=None,
                doubled=None,
                notes=(few,),
            )
        corrected = self.corrected
        return PPIEstimate(
            estimate=_interval(corrected, n, confidence, self.judged.groups, "PPI++"),
            raw=raw,
            human=self.alone(confidence, self.low, self.high),
            weight=corrected.weight,
            bias=bias,
            labeled=labeled,
            n=n,
            p_value=corrected.two_sided_p(0.0) if self.low < 0 else None,
            doubled=corrected.half_width(confidence, times=2) if 2 * labeled <= n else None,
            notes=(*self._same_labels(), *[note("strata_merged", "caution", strata=self.merged)] * bool(self.merged)),
        )

    def _same_labels(self) -> Iterator[Note]:
        """The note for a mean whose labels are all the same."""
        if self.low == 0:
            yield from same_labels(self.labels.tolist())

    def alone(self, confidence: float, low: float, high: float) -> Interval:
        """The mean of the labels, which are in [low, high]."""
        mean = _mean(self.labels, low, high, self.shares[0], self.groups)
        return _interval(mean, self.shown[0], confidence, self.groups, GAFFKE)


@dataclass(frozen=True)
class _Others:
    """The samples without a label; equal ones are one row, unless there are clusters."""

    first: Positions
    """The position of a sample of each row."""
    scores: Floats
    strata: Positions
    counts: Positions
    """The number of samples of each row."""
    groups: Positions | None


def _interval(
    mean: BoundedMean | CorrectedMean, n: int, confidence: float, groups: Positions | None, method: str
) -> Interval:
    low, high = mean.interval(confidence)
    clusters = None if groups is None else int(np.unique(groups).size)
    return Interval(estimate=mean.mean, low=low, high=high, n=n, confidence=confidence, groups=clusters, method=method)


def _codes(strata: Sequence[Hashable] | None, n: int) -> Positions:
    return np.zeros(n, dtype=np.intp) if strata is None else codes(strata)


def _labels(name: str, human: Sequence[float | None], scale: float) -> Floats:
    """The labels, with NaN for missing ones."""
    labels = column(name, [0.0 if label is None else label for label in human], 0.0, scale)
    labels[[label is None for label in human]] = np.nan
    return labels


def _mean(
    values: Floats,
    low: float,
    high: float,
    weights: Floats,
    groups: Positions | None,
    counts: Positions | None = None,
) -> BoundedMean:
    """The weighted mean of values, each as often as its count says; with clusters, these are all 1."""
    if groups is not None:
        return WeightedMean.of_units(values.tolist(), low, high, groups=groups.tolist(), weights=weights.tolist())
    cells = _Cells.of(values, weights)
    total = cells.counts if counts is None else np.bincount(cells.of_sample, weights=counts).astype(np.intp)
    values, weights = values[cells.first], weights[cells.first]
    return WeightedMean.of_units(values.tolist(), low, high, weights=weights.tolist(), counts=total.tolist())


def _binned(values: Floats, weights: Floats) -> Floats:
    """Values, replaced by the mean of their bin if there are many; the smallest and the largest values are kept."""
    low, high = float(values.min()), float(values.max())
    if np.unique(values).size <= LEVELS:
        return values
    bins = 1 + np.minimum(((values - low) / (high - low) * LEVELS).astype(np.intp), LEVELS - 1)
    bins[values == low], bins[values == high] = 0, LEVELS + 1
    means = np.bincount(bins, weights * values) / np.maximum(np.bincount(bins, weights), TINY)
    return np.clip(means[bins], low, high)


def _correlation(x: Floats, y: Floats) -> float:
    norms = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / norms if norms > 0 else 0.0


def _merged(labels: Positions) -> tuple[Positions, int]:
    """For each stratum with so many labels, the one that it is part of after merging those with fewer than two; and how
    many these are.

    If together they still have too few labels, they are merged with the stratum that has the fewest labels of the rest.
    """
    strata = np.arange(labels.size)
    small = np.flatnonzero(labels < MIN_LABELS_OF_STRATUM)
    if not small.size:
        return strata, 0
    merged = int(small.size)
    if labels[small].sum() < MIN_LABELS_OF_STRATUM and small.size < labels.size:
        enough = np.flatnonzero(labels >= MIN_LABELS_OF_STRATUM)
        small = np.append(small, enough[np.argmin(labels[enough])])
    strata[small] = small[0]
    return strata, merged
