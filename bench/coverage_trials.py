"""Trials: coverage of the intervals of pass@k, pass^k and the mean score, over samples of different difficulty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from populations import Floats
from tables import percent, table

from evalstone.results.trials import pass_all_k, pass_at_k, sizes
from evalstone.stats.intervals import mean_interval

RATES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "all samples pass 9 in 10": lambda source, n: np.full(n, 0.9),
    "most pass always, 1 in 10 never": lambda source, n: np.where(source.random(n) < 0.1, 0.0, 1.0),
    "beta(2, 1)": lambda source, n: source.beta(2, 1, n),
    "beta(0.3, 0.3): nearly always or never": lambda source, n: source.beta(0.3, 0.3, n),
    "1 in 20 flaky, rest pass": lambda source, n: np.where(source.random(n) < 0.05, 0.5, 1.0),
}
SIZES = (15, 30, 100)
LARGE = 2_000_000


def trials(replications: int) -> None:
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
    table("Trials", ["samples", "n", "mean", "pass@2", "pass@4", "pass^2", "pass^4"], rows)


def _holds(values: list[float], truth: float) -> bool:
    return _within(mean_interval(values, low=0, high=1), truth)


def _within(interval: object, truth: float) -> bool:
    low, high = getattr(interval, "low", None), getattr(interval, "high", None)
    return low is not None and high is not None and low - 1e-12 <= truth <= high + 1e-12


SECTIONS = (trials,)
