"""Which samples to label next, so that few labels say much and the corrected mean stays unbiased.

Samples are put into strata by the judge's score, or its uncertainty. Each stratum gets labels by its size times the
spread of the judge's error that is to be expected there (Neyman's allocation); which of its samples is left to chance.
The strata go to `ppi_mean(strata=…)`, which weighs each by its size, so that labelling where the judge errs most does
not tilt the mean. Labels seen so far do not steer the choice: a stratum whose first labels happen to be all passes
would get no more, and keep its lucky mean.
Source: Neyman 1934, JRSS 97(4).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import Floats, Places, column, same_length

LEAST_EACH = 2


@dataclass(frozen=True)
class ToLabel:
    """The samples to label next, in random order.

    indexes: their positions. strata: the stratum of every sample (not only of these), for `ppi_mean`. probabilities:
    for every sample the share of its stratum that is labelled once these are; a label weighs 1 / probability.
    """

    indexes: tuple[int, ...]
    strata: tuple[int, ...]
    probabilities: tuple[float, ...]


def score_strata(
    scores: Sequence[float], uncertainties: Sequence[float] | None = None, *, most: int = 5
) -> tuple[int, ...]:
    """The stratum of every sample, from 0, by ascending uncertainty where that is given, else by ascending score.

    At most `most` strata of about equal size; equal values share one. Depends on its arguments only, so that every
    round of labelling has the same strata. Raises DataError for a value that is no finite number or other lengths.
    """
    same_length(scores=scores, uncertainties=uncertainties)
    if most < 1:
        raise ConfigError(f"most must be 1 or more, not {most}")
    keys = column("scores", scores) if uncertainties is None else column("uncertainties", uncertainties, 0.0)
    if not keys.size:
        return ()
    edges = np.unique(np.quantile(keys, np.linspace(0, 1, most + 1)[1:-1], method="inverted_cdf"))
    return tuple(int(place) for place in _packed(np.searchsorted(edges, keys, side="left")))


def next_to_label(
    scores: Sequence[float],
    uncertainties: Sequence[float] | None = None,
    *,
    labelled: Collection[int] = (),
    n: int = 20,
    scale: float = 1.0,
    seed: int = 0,
) -> ToLabel:
    """Choose n more samples to label, fewer if fewer are left.

    scores: the judge's, in [0, scale]. uncertainties: how far each is expected to be off, in the scores' unit; None:
    √(score · (scale - score)), and a tenth of the scale at least. labelled: the positions that have labels from earlier
    rounds (or a mapping by them). Every stratum gets two labels first. The same arguments give the same choice.
    Raises DataError for values outside [0, scale] or positions that do not exist, ConfigError for n below 0.
    """
    if n < 0:
        raise ConfigError(f"n must be 0 or more, not {n}")
    same_length(scores=scores, uncertainties=uncertainties)
    judged = column("scores", scores, 0.0, scale)
    known = _known(labelled, judged.size)
    strata = np.array(score_strata(scores, uncertainties), dtype=np.intp)
    expected = np.maximum(np.sqrt(judged * (scale - judged)), scale / 10)
    if uncertainties is not None:
        expected = column("uncertainties", uncertainties, 0.0)
    sizes = np.bincount(strata)
    have = np.bincount(strata[sorted(known)], minlength=sizes.size)
    source = np.random.default_rng([seed, len(known)])
    more = _allocated(sizes, have, _spreads(expected, strata), n)
    chosen: list[int] = []
    for stratum, count in enumerate(more):
        free = [int(place) for place in np.flatnonzero(strata == stratum) if int(place) not in known]
        chosen.extend(int(place) for place in source.permutation(free)[:count])
    shares = (have + np.array(more, dtype=np.intp)) / np.maximum(sizes, 1)
    return ToLabel(
        indexes=tuple(int(place) for place in source.permutation(chosen)) if chosen else (),
        strata=tuple(int(place) for place in strata),
        probabilities=tuple(float(shares[place]) for place in strata),
    )


def _known(labelled: Collection[int], count: int) -> set[int]:
    for place in labelled:
        if place not in range(count):
            raise DataError(f"labelled: there is no sample {place}; positions go from 0 to {count - 1}")
    return set(labelled)


def _spreads(expected: Floats, strata: Places) -> list[float]:
    """The spread of the judge's error that is to be expected in each stratum."""
    return np.sqrt(np.bincount(strata, weights=expected**2) / np.bincount(strata)).tolist() if strata.size else []


def _allocated(sizes: Places, have: Places, spreads: Sequence[float], n: int) -> list[int]:
    """How many more each stratum gets: one by one where the next label lowers the variance of the mean most.

    The variance is Σ (size · spread)² / labels, so the gain of the next label is (size · spread)² / (k (k + 1)).
    """
    more = [0] * len(spreads)

    def gain(stratum: int) -> float:
        k = int(have[stratum]) + more[stratum]
        if k >= sizes[stratum]:
            return -1.0
        return math.inf if k < LEAST_EACH else (float(sizes[stratum]) * spreads[stratum]) ** 2 / (k * (k + 1))

    queue = [(-gain(stratum), stratum) for stratum in range(len(spreads))]
    heapq.heapify(queue)
    for _ in range(n):
        if not queue or queue[0][0] > 0:
            break
        _, stratum = queue[0]
        more[stratum] += 1
        heapq.heapreplace(queue, (-gain(stratum), stratum))
    return more


def _packed(places: Places) -> Places:
    """The same strata numbered without gaps."""
    return np.unique(places, return_inverse=True)[1]
