"""Prediction-powered inference (PPI++): a mean corrected for the judge's errors with some human labels.

The mean of the labels, moved by how the judge's scores of the other samples differ from its scores of the labeled ones:

    θ = mean(human, labeled) + λ · (mean(judged, not labeled) - mean(judged, labeled))

λ = 0 ignores the judge, λ = 1 trusts it but for its mean error; it is chosen in [0, 1] to minimize the variance. Strata
are weighted by their share of all samples. The variance is that of the samples' influences on θ, summed over clusters;
the interval is that of `mean_interval`, with one degree of freedom less for λ.

Labeled samples must be a random choice, or a random choice within each stratum, as `select_for_labeling` makes it: each
stratum of the judge's scores gets labels in proportion to its size times the spread of the judge's error to be expected
there (Neyman's allocation), and which of its samples is random. Labeling where the judge errs most then doesn't bias
the mean. Earlier labels don't steer the choice: a stratum whose first labels happen to be all passes would get no more,
and keep its lucky mean.
Sources: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, Science 382; Angelopoulos, Duchi and Zrnic 2023,
arXiv:2311.01453; strata: Fisch and others 2024, arXiv:2406.04291; Neyman 1934, JRSS 97(4).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import Floats, Mask, Positions, codes, column, group_sums, same_length
from evalstone.stats.intervals import Interval, Spread, bounded, check_confidence, mean_interval

MIN_LABELS = 3
FEW_LABELS = 30
MIN_LABELS_OF_STRATUM = 2
STRATA = 5


@dataclass(frozen=True)
class PPIEstimate:
    """A mean corrected by human labels, in the unit of the scores."""

    estimate: Interval | None
    """The corrected mean; None below three labels."""
    raw: Interval | None
    """That of all the judge's scores; its interval ignores the judge's errors."""
    human: Interval | None
    """That of the labels alone, strata weighted; None where `estimate` is."""
    weight: float | None
    """λ, in [0, 1]: how much the judge's scores count."""
    bias: float | None
    """The judge's mean error, mean of judged - human over the labeled samples."""
    labeled: int
    """How many samples are labeled."""
    n: int
    """The number of samples."""
    variance_reduction: float | None
    """1 - variance(estimate) / variance(human), in [0, 1]: what the judge's scores add to the labels; None if the
    labels don't vary."""
    caution: str
    """Why there is no estimate, or why to trust it less, or ""."""


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
    scores = column("judged", judged, 0.0, scale)
    labels = column("human", [0.0 if label is None else label for label in human], 0.0, scale)
    known = np.fromiter((label is not None for label in human), dtype=np.bool_, count=n)
    raw = mean_interval(scores.tolist(), low=0.0, high=scale, confidence=confidence, groups=groups)
    labeled = int(known.sum())
    bias = float(np.mean((scores - labels)[known])) if labeled else None
    parts, merged = _merged(np.zeros(n, dtype=np.intp) if strata is None else codes(strata), known)
    clusters = np.arange(n) if groups is None else codes(groups)
    freedom = labeled - int(np.unique(parts).size) - 1
    if groups is not None:
        freedom = min(freedom, int(np.unique(clusters[known]).size) - 2)
    if labeled < MIN_LABELS or freedom < 1:
        caution = f"only {labeled} labels: too few for an estimate; label {FEW_LABELS} or more"
        return PPIEstimate(None, raw, None, None, bias, labeled, n, None, caution)
    start, on_start, varied = _influence(labels, known, None, parts, clusters)
    shift, on_shift, _ = _influence(-scores, known, ~known, parts, clusters)
    if groups is not None:
        on_start, on_shift = group_sums(on_start, clusters), group_sums(on_shift, clusters)
    # The λ of least variance. Fitted to the same labels, it costs one degree of freedom in variance and quantile.
    square = float(on_shift @ on_shift)
    weight = min(1.0, max(0.0, -float(on_start @ on_shift) / square)) if square > 0 else 0.0
    alone = float(np.sum(on_start**2))
    variance = float(np.sum((on_start + weight * on_shift) ** 2)) * (freedom + 1) / freedom
    count = None if groups is None else on_start.size
    mean = Interval(min(max(start + weight * shift, 0.0), scale), None, None, n, confidence, count)
    estimate = bounded(mean, Spread(variance, freedom, labeled), 0.0, scale)
    by_labels = Interval(start, None, None, labeled, confidence, count)
    by_labels = bounded(by_labels, Spread(alone, freedom + 1, labeled), 0.0, scale)
    reduction = max(0.0, 1 - variance / alone) if alone > 0 else None
    if reduction is None:
        # All labels are equal, so their spread is unknown: at an end of the scale their own interval is exact.
        inside = None if groups is None else clusters[known].tolist()
        estimate = mean_interval(labels[known].tolist(), low=0.0, high=scale, confidence=confidence, groups=inside)
        by_labels, weight = estimate, 0.0
    caution = _caution(labeled, merged, varied)
    return PPIEstimate(estimate, raw, by_labels, weight, bias, labeled, n, reduction, caution)


def _influence(
    values: Floats, inside: Mask, outside: Mask | None, strata: Positions, clusters: Positions
) -> tuple[float, Floats, bool]:
    """The mean of the values inside, less that of those outside, by strata; each sample's influence on it.

    And whether the values inside vary within their strata.
    """
    n = values.size
    means, influence = np.zeros(n), np.zeros(n)
    for kind in np.unique(strata):
        part = strata == kind
        yes, no, share = part & inside, np.zeros_like(part) if outside is None else part & outside, float(part.mean())
        size, rest = int(yes.sum()), int(no.sum())
        if not size or (outside is not None and not rest):
            continue
        units = int(np.unique(clusters[yes]).size)
        factor = share * np.sqrt(units / max(1, units - 1))  # makes the sum of squares the unbiased variance
        mean = float(values[yes].mean())
        influence[yes] = factor / size * (values[yes] - mean)
        means[part] = mean
        if rest:
            other = float(values[no].mean())
            influence[no] = -share / rest * (values[no] - other)
            means[part] = mean - other
    varied = bool(influence.any())
    # How many samples fall into each stratum is chance too.
    total = float(means.mean())
    return total, influence + (means - total) / n, varied


def _merged(strata: Positions, is_labeled: Mask) -> tuple[Positions, int]:
    """Strata with fewer than two labels put together, and with the smallest other one if they still have too few."""
    labels = np.bincount(strata, weights=is_labeled)
    small = np.flatnonzero(labels < MIN_LABELS_OF_STRATUM)
    if not small.size:
        return strata, 0
    merged = int(small.size)
    if labels[small].sum() < MIN_LABELS_OF_STRATUM and small.size < labels.size:
        enough = np.flatnonzero(labels >= MIN_LABELS_OF_STRATUM)
        small = np.append(small, enough[np.argmin(labels[enough])])
    return np.where(np.isin(strata, small), small[0], strata), merged


def _caution(labeled: int, merged: int, varied: bool) -> str:
    cautions = [f"only {labeled} labels: the interval is approximate"] if labeled < FEW_LABELS else []
    if merged:
        cautions.append(f"strata with fewer than two labels were merged: {merged}")
    if not varied:
        cautions.append("labels don't vary within their strata: the interval is approximate")
    return "; ".join(cautions)


def score_strata(scores: Sequence[float]) -> tuple[int, ...]:
    """The stratum of every sample, by ascending score, from 0 to 4: about equal in size, equal scores in one.

    Raises:
        DataError: A score is not a finite number.
    """
    keys = column("scores", scores)
    if not keys.size:
        return ()
    edges = np.unique(np.quantile(keys, np.linspace(0, 1, STRATA + 1)[1:-1], method="inverted_cdf"))
    strata = np.unique(np.searchsorted(edges, keys, side="left"), return_inverse=True)[1]  # numbered without gaps
    return tuple(int(stratum) for stratum in strata)


def select_for_labeling(
    scores: Sequence[float], *, labeled: Collection[int] = (), n: int = 20, scale: float = 1.0, seed: int = 0
) -> tuple[int, ...]:
    """The positions of n more samples to label, in random order; fewer if fewer are left.

    Strata are those of `score_strata`; each gets two labels first. A judge's error is expected to be
    √(score · (scale - score)), but at least a tenth of the scale.

    Args:
        scores: The judge's, in [0, scale].
        labeled: The positions of the samples labeled in earlier rounds.
        n: How many to select.
        scale: The upper end of the range.
        seed: The same arguments give the same selection.

    Raises:
        DataError: A score is outside [0, scale], or a position doesn't exist.
        ConfigError: n is below 0.
    """
    if n < 0:
        raise ConfigError(f"n must be 0 or more, not {n}")
    judged = column("scores", scores, 0.0, scale)
    known = set(labeled)
    for place in labeled:
        if place not in range(judged.size):
            raise DataError(f"labeled: there is no sample {place}; positions go from 0 to {judged.size - 1}")
    strata = np.array(score_strata(scores), dtype=np.intp)
    expected = np.maximum(np.sqrt(judged * (scale - judged)), scale / 10)
    sizes = np.bincount(strata)
    have = np.bincount(strata[sorted(known)], minlength=sizes.size)
    spreads: list[float] = np.sqrt(np.bincount(strata, weights=expected**2) / np.maximum(sizes, 1)).tolist()
    source = np.random.default_rng([seed, len(known)])
    selected: list[int] = []
    for stratum, count in enumerate(_allocate(sizes, have, spreads, n)):
        free = [int(place) for place in np.flatnonzero(strata == stratum) if int(place) not in known]
        selected.extend(int(place) for place in source.permutation(free)[:count])
    return tuple(int(place) for place in source.permutation(selected)) if selected else ()


def _allocate(sizes: Positions, have: Positions, spreads: Sequence[float], n: int) -> list[int]:
    """How many more each stratum gets: one by one where the next label lowers the variance of the mean most.

    The variance is Σ (size · spread)² / labels, so the gain of the next label is (size · spread)² / (k (k + 1)).
    """
    more = [0] * len(spreads)

    def gain(stratum: int) -> float:
        k = int(have[stratum]) + more[stratum]
        if k >= sizes[stratum]:
            return -1.0
        few = k < MIN_LABELS_OF_STRATUM
        return math.inf if few else (float(sizes[stratum]) * spreads[stratum]) ** 2 / (k * (k + 1))

    queue = [(-gain(stratum), stratum) for stratum in range(len(spreads))]
    heapq.heapify(queue)
    for _ in range(n):
        if not queue or queue[0][0] > 0:
            break
        _, stratum = queue[0]
        more[stratum] += 1
        heapq.heapreplace(queue, (-gain(stratum), stratum))
    return more
