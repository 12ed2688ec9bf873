"""Repeated runs and repeated judgments: how much of the variance is between samples, between runs, or the judge's.

    x(i, j, k) = mean + sample(i) + run(i, j) + judgment(i, j, k),   each with a variance of its own

Estimated from the mean squares of the nested analysis of variance, also for unequal counts; a negative estimate is set
to 0. Source: Searle, Casella and McCulloch 1992, Variance Components, chapter 3 and appendix F.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalstone.errors import DataError
from evalstone.stats.intervals import SMALL_SAMPLE, Interval, mean_interval, mean_of


@dataclass(frozen=True)
class VarianceComponents:
    """Variances in the squared unit of the scores; None where nothing was repeated that would separate one."""

    mean: Interval
    """The mean over the samples' means; its interval includes all three sources of variance."""
    samples: float | None
    """Between samples; None for one sample."""
    runs: float | None
    """Between runs of the same sample; None if no sample has two runs (it is then part of `samples`)."""
    judge: float | None
    """Between judgments of the same output; None if none was judged twice (it is then part of `runs`)."""
    n: int
    """The number of samples."""
    runs_each: float
    """The harmonic mean of the runs per sample."""
    judgments_each: float
    """The harmonic mean of the judgments per run."""
    caution: str
    """Why to trust the components less, or ""."""

    def standard_error(
        self, *, n: int | None = None, runs: float | None = None, judgments: float | None = None
    ) -> float | None:
        """The standard error of the mean with other counts: √((samples + (runs + judge / k) / r) / n).

        Compare it with the present one to see what more samples, runs or judgments would gain.

        Args:
            n: Samples.
            runs: Runs per sample (r).
            judgments: Judgments per run (k).

        Returns:
            In the unit of the scores; None where `samples` is.

        Raises:
            DataError: A count is below 1.
        """
        n, runs = self.n if n is None else n, self.runs_each if runs is None else runs
        judgments = self.judgments_each if judgments is None else judgments
        if min(n, runs, judgments) < 1:
            raise DataError(f"counts must be 1 or more: n {n}, runs {runs}, judgments {judgments}")
        if self.samples is None:
            return None
        within = (self.runs or 0.0) + (self.judge or 0.0) / judgments
        return math.sqrt((self.samples + within / runs) / n)


def variance_components(
    table: Sequence[Sequence[Sequence[float]]], *, low: float = 0.0, high: float = 1.0, confidence: float = 0.95
) -> VarianceComponents | None:
    """The variance between samples, between runs of a sample, and between judgments of a run.

    Args:
        table: table[i][j][k] is sample i, run j, judgment k, in [low, high]; counts may differ.
        low: The lower end of the range.
        high: The upper end of the range.
        confidence: Of the mean's interval, in (0, 1).

    Returns:
        The components; None for no samples.

    Raises:
        DataError: A sample without a run, a run without a judgment, or a value that is not a number in [low, high].
        ConfigError: confidence is outside (0, 1), or low is not below high.
    """
    for i, runs in enumerate(table):
        if not runs or not all(runs):
            raise DataError(f"sample {i} has no run, or a run without a judgment")
    run_means = [[mean_of(run) for run in runs] for runs in table]
    mean = mean_interval([mean_of(means) for means in run_means], low=low, high=high, confidence=confidence)
    if mean is None:
        return None
    cells = [run for runs in table for run in runs]
    sizes = [sum(map(len, runs)) for runs in table]
    total, a = sum(sizes), len(table)
    means = [math.fsum(map(math.fsum, runs)) / size for runs, size in zip(table, sizes, strict=True)]
    grand = math.fsum(math.fsum(run) for run in cells) / total
    flat = [m for of_sample in run_means for m in of_sample]
    within = math.fsum((x - m) ** 2 for run, m in zip(cells, flat, strict=True) for x in run)
    parents = [m for runs, m in zip(table, means, strict=True) for _ in runs]
    between = math.fsum(len(run) * (m - top) ** 2 for run, m, top in zip(cells, flat, parents, strict=True))
    apart = math.fsum(size * (m - grand) ** 2 for size, m in zip(sizes, means, strict=True))
    squares = [sum(len(run) ** 2 for run in runs) for runs in table]
    crossed = sum(square / size for square, size in zip(squares, sizes, strict=True))

    judge = within / (total - len(cells)) if total > len(cells) else None
    repeats = len(cells) - a
    # E[mean square of runs] = judge + (total - crossed) / repeats · runs
    runs_raw = (between / repeats - (judge or 0.0)) * repeats / (total - crossed) if repeats else None
    samples_raw = None
    if a > 1:
        inner = (crossed - sum(squares) / total) / (a - 1)
        outer = (total - sum(size**2 for size in sizes) / total) / (a - 1)
        samples_raw = (apart / (a - 1) - (judge or 0.0) - inner * max(0.0, runs_raw or 0.0)) / outer
    negative = [name for name, v in (("runs", runs_raw), ("samples", samples_raw)) if v is not None and v < 0]
    cautions = [mean.caution] if mean.caution else []
    if negative:
        cautions.append(f"no variance is left for: {', '.join(negative)}")
    if repeats and repeats < SMALL_SAMPLE:
        cautions.append(f"only {repeats} repeated runs: their variance is approximate")
    return VarianceComponents(
        mean=mean,
        samples=None if samples_raw is None else max(0.0, samples_raw),
        runs=None if runs_raw is None else max(0.0, runs_raw),
        judge=judge,
        n=a,
        runs_each=_harmonic([len(runs) for runs in table]),
        judgments_each=_harmonic([len(run) for run in cells]),
        caution="; ".join(cautions),
    )


def _harmonic(counts: Sequence[int]) -> float:
    return len(counts) / sum(1 / count for count in counts)
