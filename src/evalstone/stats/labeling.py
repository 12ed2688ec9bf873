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

import numpy as np

from evalstone.errors import ConfigError, DataError, invalid
from evalstone.stats._arrays import Positions, column
from evalstone.stats.ppi import MIN_LABELS_OF_STRATUM

STRATA = 5


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
    """The further labels of each stratum: greedily, the next label goes where it reduces the variance of the mean most.

    The variance is proportional to Σ (size · spread)² / labels, so label k + 1 of a stratum reduces it by
    (size · spread)² / (k (k + 1)).
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
