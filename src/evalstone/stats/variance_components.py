"""Where the variance of repeated scores comes from: the samples, the judges, and the judge's noise.

    score = mean + sample + judge + sample by judge + noise

The components are the variances of these random effects, by Henderson's first method, which equates sums of squares
with their expectations and allows missing scores; for balanced tables these are the estimates of the analysis of
variance.
The noise is what differs when the same judge scores the same sample again. Without repeats, the noise includes what
sample and judge have together. Where a system answers each sample in several trials, and the judge scores each answer
several times, score = mean + sample + trial + noise.

The limits are those of `bounded_mean`, of each sample's pseudo-value: n · estimate - (n - 1) · estimate without the
sample. They hold for samples like these and for these judges; two or three judges say little about others.
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
from numpy.typing import NDArray

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import codes, column
from evalstone.stats.intervals import Interval, check_confidence, mean_interval
from evalstone.stats.ratios import FIELLER, ratio_limits

Component: TypeAlias = Literal["samples", "judges", "samples by judges", "trials", "noise"]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class VarianceComponents:
    """Variances of scores, in the square of their unit."""

    variances: Mapping[Component, Interval]
    """By source; an estimate below 0 is 0."""
    samples: int
    """How many samples have a score."""
    judges: int
    scores: int
    caution: str
    """Why to trust the components less, or ""."""
    _pseudo: Mapping[Component, tuple[float, ...]] = field(repr=False)
    """What each sample adds to each."""
    _most: Mapping[Component, float] = field(repr=False)
    """The most that one sample can add to each."""
    _confidence: float = field(repr=False)

    @cached_property
    def shares(self) -> Mapping[Component, Interval]:
        """The share of each in the variance of a single score, in [0, 1]; empty where nothing varies."""
        total = math.fsum(one.mean for one in self.variances.values())
        if total <= 1e-12 * max(self._most.values()):
            return {}
        whole = [math.fsum(values) for values in zip(*self._pseudo.values(), strict=True)]
        shares: dict[Component, Interval] = {}
        for name, one in self.variances.items():
            units = list(zip(self._pseudo[name], whole, strict=True))
            possible = [(most if other == name else 0.0, most) for other, most in self._most.items()]
            share, low, high = one.mean / total, 0.0, 1.0
            if math.fsum(whole) > 0:
                low, high = ratio_limits(units, possible, low=0.0, high=1.0, confidence=self._confidence)
            limits = min(low, share), max(high, share)
            shares[name] = Interval(share, *limits, one.n, self._confidence, None, FIELLER)
        return shares

    def standard_error(self, samples: int, repeats: int = 1, judges: int = 1, trials: int = 1) -> Interval:
        """The standard error of the mean of so many samples, each answered in so many trials, and each answer scored so
        often by each of so many judges.

            √((samples² + samples by judges² / j + trials² / t + noise² / (t · j · r)) / n)

        It says whether more samples, trials or repeats make a mean more precise. What judges have in common over all
        samples is not in it: it shifts the mean.

        Raises:
            ConfigError: A number is below 1.
        """
        for name, number in (("samples", samples), ("repeats", repeats), ("judges", judges), ("trials", trials)):
            if number < 1:
                raise ConfigError(f"{name} must be 1 or more, not {number}")
        parts: dict[Component, float] = {"samples": 1.0, "samples by judges": 1 / judges}
        parts |= {"trials": 1 / trials, "noise": 1 / (trials * judges * repeats)}
        used: dict[Component, float] = {name: weight for name, weight in parts.items() if name in self.variances}
        variance = math.fsum(weight * self.variances[name].mean for name, weight in used.items())
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
        values: A row per sample and a column per repeat, in [0, scale]; None is a missing score. Samples without a
            score are left out.
        judges: The judge of each column; None for one judge.
        scale: The upper end of the range of scores.
        confidence: Of the intervals, in (0, 1).

    Raises:
        DataError: A value is not a number in [0, scale], rows differ in length, there are fewer than three samples,
            fewer than two with two scores, or a judge scored fewer than two.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    table = _Table.of(values, judges, scale)
    found, without = table.solved()
    n = len(table.sizes)
    pseudo: dict[Component, Floats] = {name: n * found[name] - (n - 1) * without[name] for name in found}
    # Pseudo-values differ from the estimate by its bias, which is none in balanced tables.
    rows: dict[Component, list[float]] = {
        name: (one - one.mean() + found[name]).tolist() for name, one in pseudo.items()
    }
    square, mean = scale**2, table.mean
    # No sample is farther from the mean than the end of the range, and the noise of a sample is at most that of half
    # of its scores at one end and half at the other.
    farthest, repeats = max(mean, scale - mean) ** 2, float(table.counts[table.counts > 1].min(initial=2.0))
    most: dict[Component, float] = {
        name: square * repeats / (4 * (repeats - 1)) if name == "noise" else farthest for name in found
    }
    variances: dict[Component, Interval] = {
        name: _limits(max(0.0, found[name]), rows[name], most[name], confidence) for name in found
    }
    negative = [name for name in found if found[name] < -1e-12 * square]
    caution = f"the variance of {' and '.join(negative)} was estimated below 0" if negative else ""
    return VarianceComponents(
        variances=variances,
        samples=n,
        judges=table.counts.shape[1],
        scores=int(table.counts.sum()),
        caution=caution,
        _pseudo={name: tuple(one) for name, one in rows.items()},
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
    """The variance components of trials whose answers are scored several times.

        noise   = Σ (score - mean of its answer)² / Σ (scores of the answer - 1)
        trials  = variance of the answers' means within samples, less the noise that is in it:
                  noise · mean of 1 / scores of the answer
        samples = as `variance_components` of the answers' means, less the noise that these leave in it

    Where all answers have as many scores of their own, none is left for `samples`. `trials` is what remains of the
    variance between trials when that of the judge is taken out: where the judge varies more than the trials, it is
    estimated below 0, which is reported as 0 with a caution.

    Args:
        values: By sample and trial, the scores of one answer, in [0, scale]. Trials without a score are left out.
        answers: By sample and trial, what tells answers apart. Equal ones share their scores, so that the noise does
            not make their trials differ. None: no answers share scores.
        scale: The upper end of the range of scores.
        confidence: Of the intervals, in (0, 1).

    Raises:
        DataError: As for `variance_components` of the answers' means, or fewer than two samples have an answer with two
            scores.
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
        raise DataError("the variance of the judge needs two samples or more with an answer that is scored twice")
    noise = total / freedom
    pseudo = n * noise - (n - 1) * (total - squares) / (freedom - more)
    pseudo += noise - pseudo.mean()
    # The variance within samples has this share of the noise in it, and that of samples what is left over.
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
    negative = [f"the variance of {name} was estimated below 0" for name in rows if estimates[name] < -1e-12 * scale**2]
    return replace(
        of_means,
        variances={
            name: _limits(max(0.0, estimates[name]), values, most[name], confidence) for name, values in rows.items()
        },
        scores=sum(len(answer) for trials in samples for answer in trials),
        caution="; ".join(negative),
        _pseudo=rows,
        _most=most,
    )


def _square_sum(answer: Sequence[float]) -> float:
    """The sum of the squares of differences to the mean."""
    mean = math.fsum(answer) / len(answer)
    return math.fsum((value - mean) ** 2 for value in answer)


def _limits(estimate: float, pseudo: Sequence[float], most: float, confidence: float) -> Interval:
    """A variance of at most `most` with its limits."""
    low, high = min(0.0, *pseudo), max(most, *pseudo)
    found = mean_interval(pseudo, low=low, high=high, confidence=confidence)
    bottom, top = (0.0, most) if found is None or found.low is None or found.high is None else (found.low, found.high)
    method = "" if found is None else found.method
    return Interval(
        estimate, max(0.0, min(bottom, estimate)), max(top, estimate), len(pseudo), confidence, None, method
    )


def _root_of(variance: Interval, n: int) -> Interval:
    low, high = (math.sqrt((limit or 0.0) / n) for limit in (variance.low, variance.high))
    mean = math.sqrt(variance.mean / n)
    return Interval(mean, low, high, variance.n, variance.confidence, None, variance.method)


@dataclass(frozen=True)
class _Table:
    """Scores by sample (rows) and judge (columns)."""

    counts: Floats
    sums: Floats
    squares: Floats
    """The sum of the squares of a sample's scores."""
    mean: float
    """Of all scores; sums and squares are those of differences to it, which lose fewer digits."""

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
        known = codes([0] * width if judges is None else judges)
        rows = [[value for value in row if value is not None] for row in values]
        scores = column("values", [value for row in rows for value in row], 0.0, scale)
        whose = np.array(
            [known[at] for row in values for at, value in enumerate(row) if value is not None], dtype=np.intp
        )
        sample = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        shape = (len(rows), int(known.max()) + 1 if width else 0)
        counts, sums = np.zeros(shape), np.zeros(shape)
        np.add.at(counts, (sample, whose), 1.0)
        mean = float(scores.mean()) if scores.size else 0.0
        centered = scores - mean
        np.add.at(sums, (sample, whose), centered)
        kept = counts.sum(axis=1) > 0
        squares = np.bincount(sample, weights=centered**2, minlength=len(rows))
        table = cls(counts[kept], sums[kept], squares[kept].astype(np.float64), mean)
        repeated = int(np.sum(table.counts.sum(axis=1) > 1))
        if int(kept.sum()) < 3 or repeated < 2 or int((counts > 0).sum(axis=0).min()) < 2:
            raise DataError(
                "variance components need three samples or more, two with two scores, and two of each judge; "
                f"{int(kept.sum())} samples have a score and {repeated} have two"
            )
        return table

    def solved(self) -> tuple[dict[Component, float], dict[Component, Floats]]:
        """The components, and those with each sample left out."""
        many = self.counts.shape[1] > 1
        cells = bool((self.counts > 1).sum() > 1)
        names: tuple[Component, ...] = ("samples", "noise")
        # Rows: sums of squares as differences of the uncorrected ones (of all, samples, judges, cells, the mean).
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
            raise DataError(
                "too few samples are scored twice, or by two judges, to tell the components apart"
            ) from None
        return (
            {name: float(solution[0, place]) for place, name in enumerate(names)},
            {name: solution[1:, place] for place, name in enumerate(names)},
        )

    def _expected(self) -> tuple[Floats, Floats]:
        """The uncorrected sums of squares (of all, samples, judges, cells, the mean), and how often each component is
        in their expectations: first for all samples, then with each left out."""
        c, y, squares = self.counts, self.sums, self.squares
        cells = np.divide(y**2, c, out=np.zeros_like(y), where=c > 0).sum(axis=1)
        size = c.sum(axis=1)
        total = y.sum(axis=1)

        def rest(x: Floats) -> Floats:
            """The sum over samples: of all, then without each."""
            whole = x.sum(axis=0)
            return np.concatenate([whole[None], whole - x])

        n, each, by_judge = rest(size), rest(c), rest(y)
        shared = (by_judge**2 / each).sum(axis=1)
        in_judge = (rest(c**2) / each).sum(axis=1)
        in_sample = rest((c**2).sum(axis=1) / size)
        sums = np.stack([rest(squares), rest(total**2 / size), shared, rest(cells), rest(total) ** 2 / n], axis=1)
        judges, samples = np.full_like(n, c.shape[1]), rest(np.ones_like(size))
        of_mean = np.stack([rest(size**2), (each**2).sum(axis=1), rest((c**2).sum(axis=1)), n], axis=1) / n[:, None]
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
