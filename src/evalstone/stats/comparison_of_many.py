"""Comparison of several runs over the same samples: all pairs, and the ranks that they leave possible."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from evalstone.errors import ConfigError
from evalstone.stats._arrays import Mask, column, same_length, values_at
from evalstone.stats.comparison import PairedComparison, compare_pairs
from evalstone.stats.intervals import Ends, check_weights
from evalstone.stats.multiple_testing import Correction, adjust_p_values
from evalstone.stats.weighted_mean import unequal, weighted_average

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class RunPair:
    """The comparison of two of several runs."""

    a: str
    """The one run."""
    b: str
    """The other run."""
    comparison: PairedComparison
    """Their scores of the samples with a score in all runs."""
    adjusted_p_value: float
    """The p-value of their difference, corrected for the number of pairs."""


@dataclass(frozen=True, kw_only=True)
class ManyComparison:
    """Several runs over the same samples."""

    n: int
    """The number of samples with a score in all runs."""
    means: Mapping[str, float]
    """The mean score by run, over these samples."""
    pairs: tuple[RunPair, ...]
    """Every pair of runs."""
    ranks: Mapping[str, tuple[int, int]]
    """The best and the worst possible rank of each run, 1 for the best: with a probability of at least `confidence`,
    all true ranks are in these ranges. A run's best rank is 1 + the number of runs that are significantly better, its
    worst one is the number of runs less those that are significantly worse."""


def _chosen(values: Sequence[T], chosen: Sequence[bool]) -> list[T]:
    return list(itertools.compress(values, chosen))


def compare_many(
    runs: Mapping[str, Sequence[float | None]],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    lower_is_better: bool = False,
    ends: Mapping[str, Sequence[Ends]] | None = None,
    undefined: Mapping[str, Sequence[bool]] | None = None,
    max_change: float | None = None,
    correction: Correction = "holm",
) -> ManyComparison | None:
    """All pairwise comparisons of runs, with corrected p-values, and the ranks that they leave possible.

    Args:
        runs: Scores by run, of the same samples in the same order; two runs or more. None is a missing one.
        scale: The upper end of the range.
        confidence: The confidence level of the intervals, in (0, 1).
        groups: One cluster label per sample, as for `compare_pairs`.
        weights: One sampling weight per sample, as for `compare_pairs`.
        lower_is_better: Whether a lower score is a win.
        ends: By run, the lowest and the highest possible values, as for `compare_pairs`.
        undefined: By run, whether a score is undefined, not missing. A sample is left out of the comparison of two runs
            in which its score is undefined.
        max_change: The largest possible difference of a sample between the first run and another, in (0, scale]. Two
            other runs may differ by twice as much.
        correction: How to adjust the p-values of the pairs for multiple testing.

    Returns:
        The comparison; None for no sample with a score in all runs.

    Raises:
        ConfigError: Fewer than two runs, or an unknown correction.
        DataError: As for `compare_pairs`.
    """
    if len(runs) < 2:
        raise ConfigError(f"need at least two runs, got {len(runs)}")
    same_length(**{f"run {name}": values for name, values in runs.items()}, groups=groups, weights=weights)
    check_weights(weights)
    weights = unequal(weights)
    known: Mask = np.array([None not in row for row in zip(*runs.values(), strict=True)], dtype=np.bool_)
    n = int(known.sum())
    if n == 0:
        return None
    table = [column(name, values_at(values, known), 0.0, scale).tolist() for name, values in runs.items()]
    own_weights = None if weights is None else values_at(weights, known)
    pairs: list[tuple[str, str, PairedComparison]] = []
    first = next(iter(runs))
    for a, b in itertools.combinations(runs, 2):
        counted = [True] * known.size
        if undefined is not None:
            counted = [not (x and y) for x, y in zip(undefined[a], undefined[b], strict=True)]
        reach = max_change if max_change is None or a == first else min(2 * max_change, scale)
        pair = compare_pairs(
            _chosen(runs[a], counted),
            _chosen(runs[b], counted),
            scale=scale,
            confidence=confidence,
            groups=groups and _chosen(groups, counted),
            weights=weights and _chosen(weights, counted),
            lower_is_better=lower_is_better,
            ends=(_chosen(ends[a], counted), _chosen(ends[b], counted)) if ends else None,
            max_change=reach,
        )
        if pair is not None:
            pairs.append((a, b, pair))
    adjusted = adjust_p_values([pair.p_value for _, _, pair in pairs], correction)
    compared = tuple(
        RunPair(a=a, b=b, comparison=pair, adjusted_p_value=p) for (a, b, pair), p in zip(pairs, adjusted, strict=True)
    )
    return ManyComparison(
        n=n,
        means={name: weighted_average(own_weights, values) for name, values in zip(runs, table, strict=True)},
        pairs=compared,
        ranks=_ranks(list(runs), compared, confidence),
    )


def _ranks(runs: Sequence[str], pairs: Sequence[RunPair], confidence: float) -> dict[str, tuple[int, int]]:
    """The best and the worst rank of each run that the significant pairs leave possible."""
    better, worse = dict.fromkeys(runs, 0), dict.fromkeys(runs, 0)
    for pair in pairs:
        difference = pair.comparison.difference.estimate * (-1 if pair.comparison.lower_is_better else 1)
        if pair.adjusted_p_value <= 1 - confidence and difference:
            winner, loser = (pair.b, pair.a) if difference > 0 else (pair.a, pair.b)
            better[loser] += 1
            worse[winner] += 1
    return {run: (1 + better[run], len(runs) - worse[run]) for run in runs}
