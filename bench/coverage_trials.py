"""Trials: coverage of the intervals of pass@k, pass^k and the mean score, over samples of different difficulty, and of
those of the variances of samples, trials and a judge that is repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from populations import Floats
from tables import Table, holds, percent, width

from evalstone.results.trials import pass_all_k, pass_at_k, sizes
from evalstone.stats.intervals import Interval, mean_interval
from evalstone.stats.variances import trial_components

RATES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "all samples pass 9 in 10": lambda source, n: np.full(n, 0.9),
    "most pass always, 1 in 10 never": lambda source, n: np.where(source.random(n) < 0.1, 0.0, 1.0),
    "beta(2, 1)": lambda source, n: source.beta(2, 1, n),
    "beta(0.3, 0.3): nearly always or never": lambda source, n: source.beta(0.3, 0.3, n),
    "1 in 20 flaky, rest pass": lambda source, n: np.where(source.random(n) < 0.05, 0.5, 1.0),
}
SIZES = (15, 30, 100)
LARGE = 2_000_000


def trials(replications: int) -> Iterator[Table]:
    """For 4 trials: the share of 95 % intervals that hold the truth, for pass@k and pass^k and the pooled mean."""
    rows: list[list[str]] = []
    for name, draw in RATES.items():
        rates = draw(np.random.default_rng(0), LARGE)
        for n in SIZES:
            source = np.random.default_rng(n)
            held = {(kind, k): list[bool]() for kind in "@^" for k in sizes(4) if k > 1}
            pooled = list[bool]()
            for _ in range(replications):
                chance = draw(source, n)
                passes = source.random((n, 4)) < chance[:, None]
                counts = passes.sum(axis=1).tolist()
                for (kind, k), into in held.items():
                    share = pass_at_k if kind == "@" else pass_all_k
                    truth = float(np.mean(1 - (1 - rates) ** k if kind == "@" else rates**k))
                    into.append(_holds([share(c, 4, k) for c in counts], truth))
                groups = np.repeat(np.arange(n), 4).tolist()
                interval = mean_interval(passes.ravel().astype(float).tolist(), low=0, high=1, groups=groups)
                pooled.append(_within(interval, float(rates.mean())))
            rows.append([name, str(n), percent(pooled), *map(percent, held.values())])
    head = ["samples", "n", "mean", "pass@2", "pass@4", "pass^2", "pass^4"]
    yield Table("pass@k and pass^k", head, rows, replications)


def _holds(values: list[float], truth: float) -> bool:
    return _within(mean_interval(values, low=0, high=1), truth)


def _within(interval: object, truth: float) -> bool:
    low, high = getattr(interval, "low", None), getattr(interval, "high", None)
    return low is not None and high is not None and low - 1e-12 <= truth <= high + 1e-12


def normal(source: np.random.Generator, n: int, answers: int, judgments: int) -> tuple[Floats, Floats]:
    """Scores by sample, trial and judgment, and the variance of each."""
    return _normal((0.12, 0.08, 0.06), source, n, answers, judgments)


def steady(source: np.random.Generator, n: int, answers: int, judgments: int) -> tuple[Floats, Floats]:
    """The same where trials don't vary, only the judge does."""
    return _normal((0.12, 0.0, 0.1), source, n, answers, judgments)


def _normal(spread: tuple[float, ...], source: np.random.Generator, *sizes: int) -> tuple[Floats, Floats]:
    parts = [sd * source.normal(size=shape) for sd, shape in zip(spread, shapes(*sizes), strict=True)]
    return np.clip(0.5 + sum(parts), 0, 1), np.square(spread)


def verdicts(source: np.random.Generator, n: int, answers: int, judgments: int) -> tuple[Floats, Floats]:
    """Passes that nine in ten samples have in 95 % of trials, the others in half; 5 % of judgments are wrong."""
    of_samples, of_trials, of_judgments = shapes(n, answers, judgments)
    rates = np.where(source.random(of_samples) < 0.9, 0.95, 0.5)
    right = source.random(of_trials) < rates
    wrong = source.random(of_judgments) < 0.05
    seen = (1 - 2 * 0.05) ** 2  # judgments are right or wrong, so that differences shrink
    mean = 0.9 * 0.95 + 0.1 * 0.5
    between = 0.9 * 0.95**2 + 0.1 * 0.5**2 - mean**2
    within = 0.9 * 0.95 * 0.05 + 0.1 * 0.5 * 0.5
    return (right ^ wrong).astype(np.float64), np.array([seen * between, seen * within, 0.05 * 0.95])


def shapes(n: int, answers: int, judgments: int) -> tuple[tuple[int, ...], ...]:
    """Of what samples, trials and judgments draw."""
    return (n, 1, 1), (n, answers, 1), (n, answers, judgments)


def repeated_judges(replications: int) -> Iterator[Table]:
    """Variances of samples, of trials and of the judge, where each answer is judged several times."""
    rows: list[list[str]] = []
    draws = {"normal": normal, "only the judge varies": steady, "verdicts": verdicts}
    for name, draw in draws.items():
        for n, answers, judgments in ((30, 2, 2), (30, 4, 3), (100, 4, 3)):
            source, found = np.random.default_rng(n), list[list[Interval]]()
            _, truths = draw(source, n, answers, judgments)
            for _ in range(replications // 4):
                scores, _ = draw(source, n, answers, judgments)
                found.append([*trial_components(scores.tolist()).variances.values()])
            row = [name, f"{n} x {answers} x {judgments}"]
            for intervals, truth in zip(zip(*found, strict=True), truths.tolist(), strict=True):
                row += [percent([holds(one, truth) for one in intervals]), width(intervals)]
            rows.append(row)
    head = ["scores", "samples x trials x judgments", "samples", "width", "trials", "width", "judge", "width"]
    yield Table("Variance of a repeated judge", head, rows, replications // 4)


SECTIONS = (trials, repeated_judges)
