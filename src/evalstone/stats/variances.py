"""Variance components of repeated scores: samples, judges, their interaction, and the judge's noise.

    score = mean + sample + judge + sample by judge + noise

The components are the variances of these random effects. Henderson's method 1 estimates them by equating sums of
squares with their expectations. It allows missing scores; for balanced tables, it gives the ANOVA estimates. Noise is
the variation when the same judge scores the same sample again. Without repeats, it includes the interaction of sample
and judge. If a system answers each sample in several trials and the judge scores each answer several times, the model
is score = mean + sample + trial + noise.

Confidence limits are those of `bounded_mean` for the mean of jackknife pseudo-values: n · estimate - (n - 1) ·
(estimate without the sample). They generalize to similar samples, but not to other judges: two or three judges say
little about others.
Sources: Henderson 1953, Biometrics 9(2); Searle, Casella and McCulloch 1992, "Variance Components"; Tukey 1958.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from evalstone.errors import ConfigError, DataError, invalid
from evalstone.stats._arrays import Floats, codes, column
from evalstone.stats.intervals import Interval, check_confidence, mean_interval
from evalstone.stats.ratios import FIELLER, ratio_limits
from evalstone.types import Note, note

Component: TypeAlias = Literal["samples", "judges", "samples by judges", "trials", "noise"]


@dataclass(frozen=True, kw_only=True)
class VarianceComponents:
    """The variance components of scores, in the squared unit of the scores."""

    variances: Mapping[Component, Interval]
    """The variance by component. Negative estimates are reported as 0."""
    samples: int
    """The number of samples with a score."""
    judges: int
    """The number of judges."""
    scores: int
    """The number of scores."""
    notes: tuple[Note, ...]
    """Why to trust the components less."""
    _pseudo: Mapping[Component, tuple[float, ...]] = field(repr=False)
    """The jackknife pseudo-values by component, one per sample."""
    _most: Mapping[Component, float] = field(repr=False)
    """The largest possible contribution of one sample to each component."""
    _confidence: float = field(repr=False)

    @cached_property
    def shares(self) -> Mapping[Component, Interval]:
        """The share of each component in the variance of a single score, in [0, 1]; empty if all scores are equal."""
        total = math.fsum(variance.estimate for variance in self.variances.values())
        if total <= 1e-12 * max(self._most.values()):
            return {}
        whole = [math.fsum(values) for values in zip(*self._pseudo.values(), strict=True)]
        shares: dict[Component, Interval] = {}
        for name, variance in self.variances.items():
            units = list(zip(self._pseudo[name], whole, strict=True))
            possible = [(most if other == name else 0.0, most) for other, most in self._most.items()]
            share, low, high = variance.estimate / total, 0.0, 1.0
            if math.fsum(whole) > 0:
                low, high = ratio_limits(units, possible, low=0.0, high=1.0, confidence=self._confidence)
            shares[name] = Interval(
                estimate=share,
                low=min(low, share),
                high=max(high, share),
                n=variance.n,
                confidence=self._confidence,
                method=FIELLER,
            )
        return shares

    def standard_error(self, samples: int, repeats: int = 1, judges: int = 1, trials: int = 1) -> Interval:
        """The standard error of a mean score, to plan whether more samples, trials, judges or repeats are worth it.

            √((V(samples) + V(samples by judges) / j + V(trials) / t + V(noise) / (t · j · r)) / n)

        V is the variance of a component. The judges' main effect is not included: it shifts the mean of all samples.

        Args:
            samples: The number of samples, n.
            repeats: How often each judge scores each answer, r.
            judges: The number of judges, j.
            trials: The number of answers per sample, t.

        Returns:
            The standard error, in the unit of the scores, with its confidence interval.

        Raises:
            ConfigError: A number is below 1.
        """
        for name, number in (("samples", samples), ("repeats", repeats), ("judges", judges), ("trials", trials)):
            if number < 1:
                raise ConfigError(invalid(name, "1 or more", number))
        parts: dict[Component, float] = {"samples": 1.0, "samples by judges": 1 / judges}
        parts |= {"trials": 1 / trials, "noise": 1 / (trials * judges * repeats)}
        used: dict[Component, float] = {name: weight for name, weight in parts.items() if name in self.variances}
        variance = math.fsum(weight * self.variances[name].estimate for name, weight in used.items())
        pseudo = [
            sum(weight * self._pseudo[name][place] for name, weight in used.items()) for place in range(self.samples)
        ]
        most = max(self._most[name] * weight for name, weight in used.items())
        return _root_of(_limits(variance, pseudo, most, self._confidence), samples)


def variance_components(
    values: Sequence[Sequence[float | None]],
    *,
    judges: Sequence[Hashable] | None = None,
    scale: float = 1.0,
    confidence: float = 0.95,
) -> VarianceComponents:
    """The variance components of repeated scores.

    Args:
        values: One row per sample and one column per repeat, in [0, scale]. None is a missing score; samples without a
            score are dropped.
        judges: The judge of each column; None for a single judge.
        scale: The upper end of the range of scores.
        confidence: The confidence level of the intervals, in (0, 1).

    Returns:
        The components: samples and noise; with several judges, also judges; with repeats by the same judge, also
        samples by judges.

    Raises:
        DataError: A value is not a number in [0, scale], rows differ in length, fewer than three samples have a score,
            fewer than two have two scores, a judge scored fewer than two samples, or too few samples are scored twice
            to separate the components.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    table = _Table.of(values, judges, scale)
    estimates, without = table.solved()
    n = len(table.sizes)
    pseudo: dict[Component, Floats] = {name: n * estimates[name] - (n - 1) * without[name] for name in estimates}
    # The mean of the pseudo-values is the bias-corrected estimate. Center them on the estimate, unbiased if balanced.
    rows: dict[Component, list[float]] = {
        name: (column - column.mean() + estimates[name]).tolist() for name, column in pseudo.items()
    }
    square, mean = scale**2, table.mean
    # No sample is farther from the mean than an end of the range, and the noise of a sample is largest with half of its
    # scores at one end and half at the other.
    farthest, repeats = max(mean, scale - mean) ** 2, float(table.counts[table.counts > 1].min(initial=2.0))
    most: dict[Component, float] = {
        name: square * repeats / (4 * (repeats - 1)) if name == "noise" else farthest for name in estimates
    }
    variances: dict[Component, Interval] = {
        name: _limits(max(0.0, estimates[name]), rows[name], most[name], confidence) for name in estimates
    }
    negative = [name for name in estimates if estimates[name] < -1e-12 * square]
    return VarianceComponents(
        variances=variances,
        samples=n,
        judges=table.counts.shape[1],
        scores=int(table.counts.sum()),
        notes=_below_zero(negative),
        _pseudo={name: tuple(row) for name, row in rows.items()},
        _most=most,
        _confidence=confidence,
    )


def trial_components(
    values: Sequence[Sequence[Sequence[float]]],
    *,
    answers: Sequence[Sequence[Hashable]] | None = None,
    scale: float = 1.0,
    confidence: float = 0.95,
) -> VarianceComponents:
    """The variance components of a system's trials whose answers are scored several times.

        noise   = Σ (score - mean of its answer)² / Σ over answers of (number of scores - 1)
        trials  = variance of the answers' means within samples - noise · mean of (1 / number of scores)
        samples = as by `variance_components` of the answers' means, less the noise that remains in it

    If all answers have the same number of scores and share none, no noise remains in `samples`. If the judge varies
    more than the trials, `trials` may be estimated below 0; it is then reported as 0 with a note.

    Args:
        values: By sample and trial, the scores of one answer, in [0, scale]. Trials without a score are dropped.
        answers: By sample and trial, an identifier of the answer. Trials with the same answer share its scores, so the
            judge's noise adds no variance between them. None: no answers share scores.
        scale: The upper end of the range of scores.
        confidence: The confidence level of the intervals, in (0, 1).

    Returns:
        The components samples, trials and noise.

    Raises:
        DataError: As for `variance_components` of the answers' means, or if fewer than two samples have an answer with
            two scores.
        ConfigError: confidence is outside (0, 1).
    """
    if answers is None:
        answers = [[(row, place) for place in range(len(trials))] for row, trials in enumerate(values)]
    table = [
        [(mark, scores) for mark, scores in zip(marks, trials, strict=True) if scores]
        for marks, trials in zip(answers, values, strict=True)
    ]
    table = [trials for trials in table if trials]
    samples = [[scores for _, scores in trials] for trials in table]
    width = max(map(len, samples), default=0)
    means = [[math.fsum(answer) / len(answer) for answer in trials] for trials in samples]
    of_means = variance_components(
        [[*row, *[None] * (width - len(row))] for row in means], scale=scale, confidence=confidence
    )
    column("values", [value for trials in samples for answer in trials for value in answer], 0.0, scale)
    distinct = [dict(trials) for trials in table]
    more = np.array([sum(len(scores) - 1 for scores in of.values()) for of in distinct], dtype=np.float64)
    squares = np.array([sum(map(_square_sum, of.values())) for of in distinct])
    n, total, freedom = len(samples), float(squares.sum()), float(more.sum())
    if int((more > 0).sum()) < 2:
        raise DataError("the judge's variance needs at least two samples with an answer that is scored twice")
    noise = total / freedom
    pseudo = n * noise - (n - 1) * (total - squares) / (freedom - more)
    pseudo += noise - pseudo.mean()
    # The shares of the noise in the variance within samples (`share`) and in that between samples (`left`).
    scored = {mark: len(scores) for of in distinct for mark, scores in of.items()}
    sizes, times = [len(trials) for trials in table], [Counter(mark for mark, _ in trials) for trials in table]
    everywhere = Counter(mark for trials in table for mark, _ in trials)
    of_answers = math.fsum(number / scored[mark] for mark, number in everywhere.items())
    of_samples = math.fsum(
        number**2 / scored[mark] / size for size, of in zip(sizes, times, strict=True) for mark, number in of.items()
    )
    of_all = math.fsum(number**2 / scored[mark] for mark, number in everywhere.items()) / sum(sizes)
    share = (of_answers - of_samples) / (sum(sizes) - n)
    left = (of_samples - of_all - (n - 1) * share) / (sum(sizes) - sum(size**2 for size in sizes) / sum(sizes))
    by_sample, farthest = of_means._pseudo, of_means._most  # pyright: ignore[reportPrivateUsage]
    rows: dict[Component, tuple[float, ...]] = {
        "samples": tuple((np.array(by_sample["samples"]) - left * pseudo).tolist()),
        "trials": tuple((np.array(by_sample["noise"]) - share * pseudo).tolist()),
        "noise": tuple(pseudo.tolist()),
    }
    fewest = min(len(answer) for trials in samples for answer in trials if len(answer) > 1)
    most: dict[Component, float] = {"samples": farthest["samples"], "trials": farthest["noise"]}
    most["noise"] = scale**2 * fewest / (4 * (fewest - 1))
    estimates = {name: math.fsum(values) / n for name, values in rows.items()}
    negative = [name for name in rows if estimates[name] < -1e-12 * scale**2]
    return replace(
        of_means,
        variances={
            name: _limits(max(0.0, estimates[name]), values, most[name], confidence) for name, values in rows.items()
        },
        scores=sum(len(answer) for trials in samples for answer in trials),
        notes=_below_zero(negative),
        _pseudo=rows,
        _most=most,
    )


def _below_zero(components: Sequence[str]) -> tuple[Note, ...]:
    """The caution that the variance of some components was estimated below 0, if there are any."""
    return (note("variance_below_zero", "caution", components=tuple(components)),) if components else ()


def _square_sum(answer: Sequence[float]) -> float:
    """The sum of squared deviations from the mean."""
    mean = math.fsum(answer) / len(answer)
    return math.fsum((value - mean) ** 2 for value in answer)


def _limits(estimate: float, pseudo: Sequence[float], most: float, confidence: float) -> Interval:
    """A variance of at most `most`, with the limits of the mean of its pseudo-values."""
    low, high = min(0.0, *pseudo), max(most, *pseudo)
    interval = mean_interval(pseudo, low=low, high=high, confidence=confidence)
    lower, upper, method = 0.0, most, ""
    if interval is not None:
        lower = interval.low if interval.low is not None else lower
        upper, method = interval.high if interval.high is not None else upper, interval.method
    return Interval(
        estimate=estimate,
        low=max(0.0, min(lower, estimate)),
        high=max(upper, estimate),
        n=len(pseudo),
        confidence=confidence,
        groups=None,
        method=method,
    )


def _root_of(variance: Interval, n: int) -> Interval:
    """√(variance / n), with its limits."""
    low, high = (math.sqrt((limit or 0.0) / n) for limit in (variance.low, variance.high))
    mean = math.sqrt(variance.estimate / n)
    return Interval(
        estimate=mean,
        low=low,
        high=high,
        n=variance.n,
        confidence=variance.confidence,
        groups=None,
        method=variance.method,
    )


@dataclass(frozen=True)
class _Table:
    """Scores by sample (rows) and judge (columns)."""

    counts: Floats
    sums: Floats
    squares: Floats
    """The sum of squared scores of each sample."""
    mean: float
    """The mean of all scores. Sums and squares are of deviations from it, which lose fewer digits."""

    @property
    def sizes(self) -> Floats:
        return self.counts.sum(axis=1)

    @classmethod
    def of(cls, values: Sequence[Sequence[float | None]], judges: Sequence[Hashable] | None, scale: float) -> _Table:
        width = len(values[0]) if values else 0
        if any(len(row) != width for row in values) or (judges is not None and len(judges) != width):
            raise DataError(
                "every sample needs one entry per repeat, and every repeat a judge; None where it is missing"
            )
        judge_codes = codes([0] * width if judges is None else judges)
        rows = [[value for value in row if value is not None] for row in values]
        scores = column("values", [value for row in rows for value in row], 0.0, scale)
        judge = np.array(
            [judge_codes[i] for row in values for i, value in enumerate(row) if value is not None], dtype=np.intp
        )
        sample = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        shape = (len(rows), int(judge_codes.max()) + 1 if width else 0)
        counts, sums = np.zeros(shape), np.zeros(shape)
        np.add.at(counts, (sample, judge), 1.0)
        mean = float(scores.mean()) if scores.size else 0.0
        centered = scores - mean
        np.add.at(sums, (sample, judge), centered)
        kept = counts.sum(axis=1) > 0
        squares = np.bincount(sample, weights=centered**2, minlength=len(rows))
        table = cls(counts[kept], sums[kept], squares[kept].astype(np.float64), mean)
        repeated = int(np.sum(table.counts.sum(axis=1) > 1))
        if int(kept.sum()) < 3 or repeated < 2 or int((counts > 0).sum(axis=0).min()) < 2:
            raise DataError(
                "variance components need at least three samples with a score, two with two scores, and two per judge; "
                f"{int(kept.sum())} samples have a score and {repeated} have two"
            )
        return table

    def solved(self) -> tuple[dict[Component, float], dict[Component, Floats]]:
        """The estimates of all components, and the leave-one-out estimates by sample."""
        many = self.counts.shape[1] > 1
        cells = bool((self.counts > 1).sum() > 1)
        names: tuple[Component, ...] = ("samples", "noise")
        # Rows: corrected sums of squares, as contrasts of the uncorrected ones (total, samples, judges, cells, mean).
        contrasts = np.array([[0, 1, 0, 0, -1], [1, -1, 0, 0, 0]], dtype=np.float64)
        if many and cells:
            names = ("samples", "judges", "samples by judges", "noise")
            contrasts = np.array(
                [[0, 1, 0, 0, -1], [0, 0, 1, 0, -1], [0, -1, -1, 1, 1], [1, 0, 0, -1, 0]], dtype=np.float64
            )
        elif many:
            names = ("samples", "judges", "noise")
            contrasts = np.array([[0, 1, 0, 0, -1], [0, 0, 1, 0, -1], [1, -1, -1, 0, 1]], dtype=np.float64)
        order: tuple[Component, ...] = ("samples", "judges", "samples by judges", "noise")
        used = [order.index(name) for name in names]
        sums, parts = self._expected()
        left = np.einsum("ct,ntk->nck", contrasts, parts)[:, :, used]
        right = np.einsum("ct,nt->nc", contrasts, sums)
        try:
            solution = np.asarray(np.linalg.solve(left, right[:, :, None]), dtype=np.float64)[:, :, 0]
        except np.linalg.LinAlgError:
            raise DataError("too few samples are scored twice, or by two judges, to separate the components") from None
        return (
            {name: float(solution[0, place]) for place, name in enumerate(names)},
            {name: solution[1:, place] for place, name in enumerate(names)},
        )

    def _expected(self) -> tuple[Floats, Floats]:
        """The uncorrected sums of squares (total, samples, judges, cells, mean), and the coefficients of the components
        in their expectations. The first row is for all samples, the others with one sample left out."""
        c, y, squares = self.counts, self.sums, self.squares
        cells = np.divide(y**2, c, out=np.zeros_like(y), where=c > 0).sum(axis=1)
        size = c.sum(axis=1)
        total = y.sum(axis=1)

        def rest(x: Floats) -> Floats:
            """The sum over all samples, then over all but each one."""
            whole = x.sum(axis=0)
            return np.concatenate([whole[None], whole - x])

        n, judge_counts, judge_sums = rest(size), rest(c), rest(y)
        by_judge = (judge_sums**2 / judge_counts).sum(axis=1)
        in_judge = (rest(c**2) / judge_counts).sum(axis=1)
        in_sample = rest((c**2).sum(axis=1) / size)
        sums = np.stack([rest(squares), rest(total**2 / size), by_judge, rest(cells), rest(total) ** 2 / n], axis=1)
        judges, samples = np.full_like(n, c.shape[1]), rest(np.ones_like(size))
        of_mean = (
            np.stack([rest(size**2), (judge_counts**2).sum(axis=1), rest((c**2).sum(axis=1)), n], axis=1) / n[:, None]
        )
        parts = np.stack(
            [
                np.stack([n, n, n, n], axis=1),
                np.stack([n, in_sample, in_sample, samples], axis=1),
                np.stack([in_judge, n, in_judge, judges], axis=1),
                np.stack([n, n, n, rest((c > 0).sum(axis=1).astype(np.float64))], axis=1),
                of_mean,
            ],
            axis=1,
        )
        return sums, parts
