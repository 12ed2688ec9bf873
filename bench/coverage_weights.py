"""Weighted samples: coverage of the interval of the population's mean, and wrong passes and fails of a gate at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from populations import Floats
from tables import Table, percent

from evalstone.stats.weighted_mean import WeightedMean

DrawWeighted: TypeAlias = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
"""Values and weights."""
SIZES = (30, 100, 300)
LARGE = 4_000_000


def strata(shares: Sequence[float], rates: Sequence[float], weights: Sequence[float]) -> DrawWeighted:
    """Pass/fail in strata: how many samples are drawn of each, its pass rate and its weight."""

    def draw(source: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        stratum = source.choice(len(shares), p=shares, size=n)
        passes = source.random(n) < np.asarray(rates)[stratum]
        return passes.astype(np.float64), np.asarray(weights, dtype=np.float64)[stratum]

    return draw


def lognormal(rate: Callable[[Floats], Floats]) -> DrawWeighted:
    """Pass/fail with lognormal weights exp(z), z standard normal; the pass rate depends on z."""

    def draw(source: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        z = source.normal(size=n)
        return (source.random(n) < rate(z)).astype(np.float64), np.exp(z)

    return draw


def rare_zeros(source: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Scores near 0.93 and 3% of zeros, more of them among heavy samples; lognormal weights."""
    z = source.normal(size=n)
    scores = np.clip(source.normal(0.93, 0.02, n), 0.0, 1.0)
    return np.where(source.random(n) < 0.03 * np.exp(z / 2), 0.0, scores), np.exp(z)


POPULATIONS: dict[str, DrawWeighted] = {
    "lognormal weights, pass rate 0.9": lognormal(lambda z: np.full(z.size, 0.9)),
    "lognormal, heavy ones fail more": lognormal(lambda z: 1 / (1 + np.exp(z - 3))),
    "lognormal, heavy ones fail less": lognormal(lambda z: 1 / (1 + np.exp(-z - 2))),
    "lognormal, 3 in 10 of the heaviest 10% fail": lognormal(lambda z: np.where(z > 1.3, 0.7, 0.99)),
    "lognormal, scores near 0.93, rare zeros": rare_zeros,
    "half of weight 10, pass rate 0.97; half of 1, 0.5": strata((0.5, 0.5), (0.97, 0.5), (10, 1)),
    "10% of weight 10, pass rate 0.97; others 0.5": strata((0.1, 0.9), (0.97, 0.5), (10, 1)),
    "10% of weight 10, pass rate 0.5; others 0.97": strata((0.1, 0.9), (0.5, 0.97), (10, 1)),
}


def weighted_means(replications: int) -> Iterator[Table]:
    """The default, and wrong passes and fails of a gate."""
    rows: list[list[str]] = []
    for name, draw in POPULATIONS.items():
        values, weights = draw(np.random.default_rng(99), LARGE)
        truth = float(np.average(values, weights=weights))
        for n in SIZES:
            source = np.random.default_rng(21)
            held: list[bool] = []
            passes: list[bool] = []
            fails: list[bool] = []
            wide: list[float] = []
            for turn in range(replications // 2):
                some, heavy = (of.tolist() for of in draw(source, n))
                found = WeightedMean.of_units(some, 0, 1, weights=heavy)
                held.append(found.two_sided_p(truth) >= 0.05)
                passes.append(found.p_value(truth, 1) <= 0.05)
                fails.append(found.p_value(truth, -1) <= 0.05)
                if turn < 50:
                    low, high = found.interval(0.95)
                    wide.append(high - low)
            width = f"{sum(wide) / len(wide):.3f}"
            rows.append([name, str(n), f"**{percent(held)}**", width, percent(passes), percent(fails)])
    head = ["", "n", "default", "width", "gate: wrong pass", "gate: wrong fail"]
    yield Table("Means of weighted samples", head, rows, replications // 2)


SECTIONS = (weighted_means,)
