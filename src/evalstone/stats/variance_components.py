"""Repeated runs and repeated judgements: how much of the spread is the samples', the runs', the judge's.

    x(i, j, k) = mean + sample(i) + run(i, j) + judgement(i, j, k),   each with a variance of its own

Estimated from the mean squares of the nested analysis of variance, also for unequal counts; a negative estimate is 0.
Source: Searle, Casella and McCulloch 1992, Variance Components, chapter 3 and appendix F.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalstone.errors import DataError
from evalstone.stats.intervals import FEW, Interval, mean_interval, mean_of


@dataclass(frozen=True)
class VarianceComponents:
    """Variances, in the square of the scores' unit; None where nothing was repeated that would tell one apart.

    mean: over the samples' means, with its interval, which counts all three. samples: between samples. runs: between
    runs of the same sample; None where no sample has two runs (it is then part of samples). judge: between judgements
    of the same output; None where none was judged twice (it is then part of runs). n: samples; runs_each,
    judgements_each: harmonic means of the counts. caution: why to trust it less, or "".
    """

    mean: Interval
    samples: float | None
    runs: float | None
    judge: float | None
    n: int
    runs_each: float
    judgements_each: float
    caution: str

    def standard_error(
        self, *, n: int | None = None, runs: float | None = None, judgements: float | None = None
    ) -> float | None:
        """Of the mean, with these counts in place of the present ones: √((samples + (runs + judge / k) / r) / n).

        What repeating more would gain: compare with the present one. None where `samples` is.
        Raises DataError for a count below 1.
        """
        n, runs = self.n if n is None else n, self.runs_each if runs is None else runs
        judgements = self.judgements_each if judgements is None else judgements
        if min(n, runs, judgements) < 1:
            raise DataError(f"counts must be 1 or more: n {n}, runs {runs}, judgements {judgements}")
        if self.samples is None:
            return None
        within = (self.runs or 0.0) + (self.judge or 0.0) / judgements
        return math.sqrt((self.samples + within / runs) / n)


def variance_components(
    table: Sequence[Sequence[Sequence[float]]],
    *,
    low: float = 0.0,
    high: float = 1.0,
    level: float = 0.95,
) -> VarianceComponents | None:
    """table[i][j][k]: sample i, run j, judgement k, in [low, high]; counts may differ. None for no sample.

    Raises DataError for a sample without a run, a run without a judgement, or a value that is no finite number.
    """
    for i, runs in enumerate(table):
        if not runs or not all(runs):
            raise DataError(f"sample {i} has no run, or a run without a judgement; one or more is wanted")
    cells = [[mean_of(run) for run in runs] for runs in table]
    mean = mean_interval([mean_of(means) for means in cells], low=low, high=high, level=level)
    if mean is None:
        return None
    judge, between_runs, samples, clipped = _estimates(table)
    told = [mean.caution] if mean.caution else []
    if clipped:
        told.append(f"no variance was left for: {', '.join(clipped)}")
    counts = [len(runs) for runs in table]
    judgements = [len(run) for runs in table for run in runs]
    if between_runs is not None and sum(counts) - len(counts) < FEW:
        told.append(f"only {sum(counts) - len(counts)} repeated runs: their variance is a guide")
    return VarianceComponents(
        mean, samples, between_runs, judge, len(table), _harmonic(counts), _harmonic(judgements), "; ".join(told)
    )


def _estimates(
    table: Sequence[Sequence[Sequence[float]]],
) -> tuple[float | None, float | None, float | None, list[str]]:
    """Variances of judgements, runs and samples, and the names of those that came out below 0."""
    runs = [run for group in table for run in group]
    sizes = [sum(map(len, group)) for group in table]
    whole, cells, a = sum(sizes), len(runs), len(table)
    run_means = [[mean_of(run) for run in group] for group in table]
    means = [math.fsum(map(math.fsum, group)) / size for group, size in zip(table, sizes, strict=True)]
    grand = math.fsum(math.fsum(run) for run in runs) / whole
    flat = [m for group in run_means for m in group]
    within = math.fsum((x - m) ** 2 for run, m in zip(runs, flat, strict=True) for x in run)
    between = math.fsum(
        len(run) * (m - mean) ** 2
        for group, ms, mean in zip(table, run_means, means, strict=True)
        for run, m in zip(group, ms, strict=True)
    )
    apart = math.fsum(size * (mean - grand) ** 2 for size, mean in zip(sizes, means, strict=True))
    squares = [sum(len(run) ** 2 for run in group) for group in table]
    crossed = sum(square / size for square, size in zip(squares, sizes, strict=True))
    clipped: list[str] = []
    judge = within / (whole - cells) if whole > cells else None
    noise = judge or 0.0
    between_runs = None
    if cells > a:
        # E[mean square of runs] = judge + (whole - crossed) / (cells - a) · runs
        between_runs = _kept("runs", (between / (cells - a) - noise) * (cells - a) / (whole - crossed), clipped)
    if a < 2:
        return judge, between_runs, None, clipped
    inner, outer = (crossed - sum(squares) / whole) / (a - 1), (whole - sum(s**2 for s in sizes) / whole) / (a - 1)
    left = apart / (a - 1) - noise - inner * (between_runs or 0.0)
    return judge, between_runs, _kept("samples", left / outer, clipped), clipped


def _kept(name: str, variance: float, clipped: list[str]) -> float:
    if variance < 0:
        clipped.append(name)
    return max(0.0, variance)


def _harmonic(counts: Sequence[int]) -> float:
    return len(counts) / sum(1 / count for count in counts)
