"""Which samples to label next, so that few labels say much and the corrected mean stays unbiased.

Samples are put into strata by the judge's score or its uncertainty. Each stratum gets labels in proportion to its size
times the spread of the judge's error to be expected there (Neyman's allocation); which of its samples is random. Pass
the strata to `ppi_mean(strata=…)`, which weights each by its size, so that labeling where the judge errs most doesn't
bias the mean. Earlier labels don't steer the choice: a stratum whose first labels happen to be all passes would get no
more, and keep its lucky mean. Source: Neyman 1934, JRSS 97(4).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import Positions, column, same_length

MIN_LABELS = 2


@dataclass(frozen=True)
class Selection:
    """The samples to label next."""

    indexes: tuple[int, ...]
    """Their positions, in random order."""
    strata: tuple[int, ...]
    """The stratum of every sample (not only of these), for `ppi_mean`."""
    probabilities: tuple[float, ...]
    """For every sample, the share of its stratum that is labeled once these are; a label weighs 1 / probability."""


def score_strata(
    scores: Sequence[float], uncertainties: Sequence[float] | None = None, *, max_strata: int = 5
) -> tuple[int, ...]:
    """The stratum of every sample, from 0, by ascending uncertainty if given, else by ascending score.

    Strata are of about equal size; equal values share one. Depends on the arguments only, so that every round of
    labeling has the same strata.

    Raises:
        DataError: A value is not a finite number, or lengths differ.
        ConfigError: max_strata is below 1.
    """
    same_length(scores=scores, uncertainties=uncertainties)
    if max_strata < 1:
        raise ConfigError(f"max_strata must be 1 or more, not {max_strata}")
    keys = column("scores", scores) if uncertainties is None else column("uncertainties", uncertainties, 0.0)
    if not keys.size:
        return ()
    edges = np.unique(np.quantile(keys, np.linspace(0, 1, max_strata + 1)[1:-1], method="inverted_cdf"))
    strata = np.unique(np.searchsorted(edges, keys, side="left"), return_inverse=True)[1]  # numbered without gaps
    return tuple(int(stratum) for stratum in strata)


def select_for_labeling(
    scores: Sequence[float],
    uncertainties: Sequence[float] | None = None,
    *,
    labeled: Collection[int] = (),
    n: int = 20,
    scale: float = 1.0,
    seed: int = 0,
) -> Selection:
    """Select n more samples to label, fewer if fewer are left. Every stratum gets two labels first.

    Args:
        scores: The judge's, in [0, scale].
        uncertainties: How far each score is expected to be off, in the unit of the scores. None stands for
            √(score · (scale - score)), but at least a tenth of the scale.
        labeled: The positions of the samples labeled in earlier rounds.
        n: How many to select.
        scale: The upper end of the range.
        seed: The same arguments give the same selection.

    Raises:
        DataError: A value is outside [0, scale], or a position doesn't exist.
        ConfigError: n is below 0.
    """
    if n < 0:
        raise ConfigError(f"n must be 0 or more, not {n}")
    same_length(scores=scores, uncertainties=uncertainties)
    judged = column("scores", scores, 0.0, scale)
    known = set(labeled)
    for place in labeled:
        if place not in range(judged.size):
            raise DataError(f"labeled: there is no sample {place}; positions go from 0 to {judged.size - 1}")
    strata = np.array(score_strata(scores, uncertainties), dtype=np.intp)
    expected = np.maximum(np.sqrt(judged * (scale - judged)), scale / 10)
    if uncertainties is not None:
        expected = column("uncertainties", uncertainties, 0.0)
    sizes = np.bincount(strata)
    have = np.bincount(strata[sorted(known)], minlength=sizes.size)
    spreads: list[float] = np.sqrt(np.bincount(strata, weights=expected**2) / np.maximum(sizes, 1)).tolist()
    source = np.random.default_rng([seed, len(known)])
    more = _allocate(sizes, have, spreads, n)
    selected: list[int] = []
    for stratum, count in enumerate(more):
        free = [int(place) for place in np.flatnonzero(strata == stratum) if int(place) not in known]
        selected.extend(int(place) for place in source.permutation(free)[:count])
    shares = (have + np.array(more, dtype=np.intp)) / np.maximum(sizes, 1)
    return Selection(
        indexes=tuple(int(place) for place in source.permutation(selected)) if selected else (),
        strata=tuple(int(stratum) for stratum in strata),
        probabilities=tuple(float(shares[stratum]) for stratum in strata),
    )


def _allocate(sizes: Positions, have: Positions, spreads: Sequence[float], n: int) -> list[int]:
    """How many more each stratum gets: one by one where the next label lowers the variance of the mean most.

    The variance is Σ (size · spread)² / labels, so the gain of the next label is (size · spread)² / (k (k + 1)).
    """
    more = [0] * len(spreads)

    def gain(stratum: int) -> float:
        k = int(have[stratum]) + more[stratum]
        if k >= sizes[stratum]:
            return -1.0
        return math.inf if k < MIN_LABELS else (float(sizes[stratum]) * spreads[stratum]) ** 2 / (k * (k + 1))

    queue = [(-gain(stratum), stratum) for stratum in range(len(spreads))]
    heapq.heapify(queue)
    for _ in range(n):
        if not queue or queue[0][0] > 0:
            break
        _, stratum = queue[0]
        more[stratum] += 1
        heapq.heapreplace(queue, (-gain(stratum), stratum))
    return more
