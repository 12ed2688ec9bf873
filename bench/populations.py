"""Judged data of known truth, drawn at random: what bench/coverage.py simulates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Draw: TypeAlias = Callable[[np.random.Generator, int], Floats]


def passes(rate: float) -> Draw:
    """Pass/fail."""
    return lambda source, n: (source.random(n) < rate).astype(np.float64)


def claims(source: np.random.Generator, n: int) -> Floats:
    """The share of 1 to 5 claims that hold; how likely each is varies by answer."""
    count = source.integers(1, 6, n)
    return source.binomial(count, source.beta(6, 1, n)) / count


def near_one(source: np.random.Generator, n: int) -> Floats:
    """Three in four at 1, the others anywhere."""
    return np.where(source.random(n) < 0.75, 1.0, source.beta(2, 2, n))


def rare_zero(source: np.random.Generator, n: int) -> Floats:
    """90% at 1, 8% between 0.5 and 1, 2% at 0."""
    u = source.random(n)
    return np.where(u < 0.9, 1.0, np.where(u < 0.98, source.uniform(0.5, 1, n), 0.0))


def smooth(source: np.random.Generator, n: int) -> Floats:
    """Similarities near 0.9, skewed."""
    return source.beta(9, 1, n)


def marks(source: np.random.Generator, n: int) -> Floats:
    """Marks of 1 to 5, as 0 to 1."""
    return source.choice([0, 0.25, 0.5, 0.75, 1.0], p=[0.02, 0.03, 0.1, 0.35, 0.5], size=n)


def kinds(values: Sequence[float], shares: Sequence[float]) -> tuple[Draw, float]:
    """So many values, each with its share, and their mean."""
    return lambda source, n: source.choice(values, p=shares, size=n), float(np.dot(values, shares))


POPULATIONS: dict[str, tuple[Draw, float]] = {
    "pass rate 0.5": (passes(0.5), 0.5),
    "pass rate 0.8": (passes(0.8), 0.8),
    "pass rate 0.9": (passes(0.9), 0.9),
    "pass rate 0.97": (passes(0.97), 0.97),
    "pass rate 0.99": (passes(0.99), 0.99),
    "5% at 0, rest at 0.95 or 1": kinds([0, 0.95, 1], [0.05, 0.45, 0.5]),
    "2% at 0, 8% at 0.9, rest at 1": kinds([0, 0.9, 1], [0.02, 0.08, 0.9]),
    "90% at 0.75, of five grades": kinds([0, 0.25, 0.5, 0.75, 1], [0.01, 0.02, 0.05, 0.9, 0.02]),
    "share of 1 to 5 claims": (claims, 6 / 7),
    "3 in 4 at 1, rest spread": (near_one, 0.875),
    "90% at 1, 2% at 0": (rare_zero, 0.96),
    "similarities, beta(9, 1)": (smooth, 0.9),
    "similarities, beta(80, 20)": (lambda source, n: source.beta(80, 20, n), 0.8),
    "ratings from 1 to 5": (marks, 0.82),
}


def clustered(source: np.random.Generator, sizes: Sequence[int]) -> tuple[list[float], list[int]]:
    """Shares of 4 claims, likely by group: samples of one group hang together."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    rate = source.beta(5, 1, len(sizes))[labels]
    return (source.binomial(4, rate) / 4).tolist(), labels.tolist()


def grouped_passes(
    source: np.random.Generator, sizes: Sequence[int], rate: float, correlation: float
) -> tuple[list[float], list[int]]:
    """Pass/fail of samples in groups, with this correlation within them (beta-binomial)."""
    strength = (1 - correlation) / correlation
    labels = np.repeat(np.arange(len(sizes)), sizes)
    rates = source.beta(rate * strength, (1 - rate) * strength, len(sizes))[labels]
    return (source.random(labels.size) < rates).astype(np.float64).tolist(), labels.tolist()


def rare_losses(source: np.random.Generator, n: int) -> Floats:
    """Differences of mean 0: gains of 0.089 in 45%, losses of 0.8 in 5%."""
    u = source.random(n)
    return np.where(u < 0.05, -0.8, np.where(u < 0.5, 0.04 / 0.45, 0.0))


def skewed_losses(source: np.random.Generator, n: int) -> Floats:
    """Differences of mean 0: 0.1 less an exponential of that mean."""
    return np.maximum(-1, 0.1 * (1 - source.exponential(1, n)))


def pairs(source: np.random.Generator, n: int, gained: float, lost: float) -> tuple[Floats, Floats]:
    """Pass/fail pairs of which some changed."""
    u, base = source.random(n), source.random(n) < 0.5
    a = np.where(u < gained, 0.0, np.where(u < gained + lost, 1.0, base))
    b = np.where(u < gained, 1.0, np.where(u < gained + lost, 0.0, base))
    return a, b


def judged_again(source: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Shares of claims, of which 3 in 10 answers were changed by an equal system."""
    count, rate = source.integers(1, 6, n), source.beta(6, 1, n)
    a = source.binomial(count, rate) / count
    return a, np.where(source.random(n) < 0.3, source.binomial(count, rate) / count, a)


def labeled_runs(source: np.random.Generator, n: int) -> tuple[Floats, Floats, Floats]:
    """Human scores of n samples (mean 0.875), a lenient judge's scores of them, and an uninformative one."""
    human = near_one(source, n)
    noise = source.normal(0, 0.06, n)
    return human, np.clip(human + 0.4 * (1 - human) + noise, 0, 1), source.beta(4, 1, n)


def judged_passes(source: np.random.Generator, n: int, rate: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """What people and the judge say of n samples: it passes 95% of the good and 30% of the bad."""
    good = source.random(n) < rate
    return good, source.random(n) < np.where(good, 0.95, 0.3)
