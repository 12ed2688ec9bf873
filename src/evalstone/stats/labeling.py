"""Selecting samples to label: stratified random sampling by the judge's score, with Neyman allocation.

Each stratum gets labels in proportion to its size times the expected standard deviation of the judge's error in it.
Within a stratum, samples are chosen at random, so labeling more where the judge is less certain doesn't bias the
corrected mean (`ppi_mean`). Earlier labels don't influence the allocation: otherwise, a stratum whose first labels are
all passes by chance would get no more labels, and its mean would stay too high. Source: Neyman 1934, JRSS 97(4).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np

from evalstone.errors import ConfigError, DataError, invalid
from evalstone.stats._arrays import Positions, column
from evalstone.stats.ppi import MIN_LABELS_OF_STRATUM

STRATA = 5
WRONG = 0.2
"""The share of samples on which a judge of unknown quality is taken to be wrong by the whole scale."""
LabelingOrder: TypeAlias = Literal["stratified", "uncertain", "random"]
"""How the next sample to label is chosen."""


def score_strata(scores: Sequence[float]) -> tuple[int, ...]:
    """The stratum of every sample, from 0 (lowest scores) up to 4. Strata are about equal in size; ties share one.

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

    Strata are those of `score_strata`. Each first gets two labels. The expected standard deviation of the judge's error
    on a sample is √(score · (scale - score)), but at least scale / 10.

    Args:
        scores: The judge's scores, in [0, scale].
        labeled: The positions of the samples labeled in earlier rounds.
        n: The number of samples to select.
        scale: The upper end of the range.
        seed: The seed; the same arguments give the same selection.

    Raises:
        DataError: A score is outside [0, scale], or `labeled` has a position that doesn't exist.
        ConfigError: n is below 0.
    """
    if n < 0:
        raise ConfigError(invalid("n", "0 or more", n))
    design = _Design.of(LabelingStrata.of(scores, scale), labeled)
    source = np.random.default_rng([seed, len(design.known)])
    selected: list[int] = []
    for stratum, count in enumerate(_allocate(design.of_scores, design.have, n)):
        selected.extend(int(place) for place in source.permutation(design.free(stratum))[:count])
    return tuple(int(place) for place in source.permutation(selected)) if selected else ()


def labels_to_reach(scores: Sequence[float], half_width: float, *, scale: float = 1.0, confidence: float = 0.95) -> int:
    """How many human labels a corrected mean (`ppi_mean`) needs for a confidence interval of about this half-width.

        labels = (z · Σ wₛ σₛ / half_width)²          at most the number of samples

    with the strata s of `score_strata`, their shares wₛ of the samples, and the standard deviation σₛ of the judge's
    error that is expected before any label: √(score · (scale - score)), but at least 0.4 · scale, as if the judge were
    wrong by the whole scale on one sample in five. Scores of 0 and 1 don't show how often it is wrong. A better judge
    needs fewer labels. They are allocated as by `select_for_labeling`.

    Args:
        scores: The judge's scores, in [0, scale].
        half_width: Half of the width of the interval, on the scale of the scores; above 0.
        scale: The upper end of the range.
        confidence: The confidence level.

    Raises:
        DataError: A score is outside [0, scale].
        ConfigError: The half-width is not above 0.

    Source: Neyman 1934, JRSS 97(4), for the allocation; the variance is that of a stratified mean of errors.
    """
    if not half_width > 0:
        raise ConfigError(invalid("half_width", "above 0", half_width))
    strata = LabelingStrata.of(scores, scale)
    total = int(strata.sizes.sum())
    if not total:
        return 0
    least = math.sqrt(WRONG * (1 - WRONG)) * scale
    spreads = (max(spread, least) for spread in strata.spreads)
    spread = sum(float(size) / total * each for size, each in zip(strata.sizes, spreads, strict=True))
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return min(total, math.ceil((z * spread / half_width) ** 2))


@dataclass(frozen=True)
class Choice:
    """The sample to label next, and how it was chosen."""

    place: int
    """Its position."""
    stratum: int | None
    """The stratum in which it was chosen at random; None if it was chosen among all samples."""
    probability: float
    """Its probability among those that could be chosen."""


@dataclass(frozen=True)
class LabelingStrata:
    """The strata of the judge's scores, which are the same for all labels."""

    of_sample: Positions
    """The stratum of every sample (`score_strata`)."""
    sizes: Positions
    """The number of samples in each."""
    spreads: Sequence[float]
    """The expected standard deviation of the judge's error in each."""

    @classmethod
    def of(cls, scores: Sequence[float], scale: float) -> LabelingStrata:
        """The strata of scores in [0, scale]. Raises DataError if a score is outside."""
        judged = column("scores", scores, 0.0, scale)
        strata = np.array(score_strata(scores), dtype=np.intp)
        expected = np.maximum(np.sqrt(judged * (scale - judged)), scale / 10)
        sizes = np.bincount(strata)
        spreads: list[float] = np.sqrt(np.bincount(strata, weights=expected**2) / np.maximum(sizes, 1)).tolist()
        return cls(strata, sizes, spreads)


def next_for_labeling(
    strata: LabelingStrata,
    *,
    labeled: Collection[int] = (),
    order: LabelingOrder = "stratified",
    seed: int = 0,
) -> Choice | None:
    """The next sample to label; None if all are labeled.

    "stratified" chooses like `select_for_labeling`, "uncertain" at random within the stratum with the largest expected
    error of the judge, and "random" among all samples. However they are mixed, the labeled samples of a stratum are a
    random choice among its samples, as `ppi_mean` needs them to be.

    Args:
        strata: The strata of the judge's scores.
        labeled: The positions of the samples that aren't to be chosen.
        order: How to choose.
        seed: The seed; the same arguments choose the same sample.

    Raises:
        DataError: `labeled` has a position that doesn't exist.
    """
    design = _Design.of(strata, labeled)
    open_strata = np.flatnonzero(strata.sizes > design.have)
    if not open_strata.size:
        return None
    source = np.random.default_rng([seed, len(design.known)])
    if order == "random":
        free = design.free()
        return Choice(int(source.choice(free)), None, 1 / len(free))
    if order == "uncertain":
        stratum = max(map(int, open_strata), key=lambda number: strata.spreads[number])
    else:
        stratum = _allocate(design.of_scores, design.have, 1).index(1)
    free = design.free(stratum)
    return Choice(int(source.choice(free)), stratum, 1 / len(free))


@dataclass(frozen=True)
class _Design:
    """Strata, with what is labeled in each."""

    of_scores: LabelingStrata
    have: Positions
    known: frozenset[int]

    @classmethod
    def of(cls, strata: LabelingStrata, labeled: Collection[int]) -> _Design:
        known, samples = frozenset(labeled), strata.of_sample.size
        for place in labeled:
            if place not in range(samples):
                raise DataError(f"labeled: there is no sample {place}; positions go from 0 to {samples - 1}")
        have = np.bincount(strata.of_sample[sorted(known)], minlength=strata.sizes.size)
        return cls(strata, have, known)

    def free(self, stratum: int | None = None) -> Positions:
        """The positions that aren't labeled: of a stratum, or of all."""
        strata = self.of_scores.of_sample
        is_free = np.ones(strata.size, dtype=bool)
        is_free[sorted(self.known)] = False
        return np.flatnonzero(is_free if stratum is None else is_free & (strata == stratum))


def _allocate(strata: LabelingStrata, have: Positions, n: int) -> list[int]:
    """The further labels of each stratum: greedily, the next label goes where it reduces the variance of the mean most.

    The variance is proportional to Σ (size · spread)² / labels, so label k + 1 of a stratum reduces it by
    (size · spread)² / (k (k + 1)).
    """
    sizes, spreads = strata.sizes, strata.spreads
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
