"""Calibrations whose labels are in clusters: the calibration error, and the risk of what a cascade keeps.

`bench/coverage.py` runs this section. Cases of a cluster share a random effect, or are copies of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from populations import Floats
from tables import Table, holds, percent, width

from evalstone.stats.calibration import BINS, expected_calibration_error
from evalstone.stats.intervals import Interval
from evalstone.stats.selective_risk import certified_threshold

LARGE = 400_000
"""The cases of a population."""
CLUSTERS = (10, 20, 40, 80)
LIMITS = (0.05, 0.1, 0.2)


class Cases(NamedTuple):
    """Labeled cases."""

    probabilities: Floats
    truths: NDArray[np.bool_]
    groups: NDArray[np.int64]


DrawClusters: TypeAlias = Callable[[np.random.Generator, int], Cases]


def logistic(x: Floats) -> Floats:
    """The probabilities of log odds."""
    return (1 / (1 + np.exp(-x))).astype(np.float64)


def related(
    own: float, *, slope: float = 1.0, shift: float = 0.0, size: float = 4.0, uneven: bool = False
) -> DrawClusters:
    """Clusters of so many cases and more, whose log odds share a part with this deviation that the judge doesn't see.

    slope, shift: of the judge's log odds; 1 and 0 for one that is as sure as it should be on average.
    """

    def draw(source: np.random.Generator, n: int) -> Cases:
        sizes = 1 + (source.geometric(1 / size, n) if uneven else source.poisson(size, n))
        groups = np.repeat(np.arange(n), sizes)
        seen = source.normal(0.5, 1.2, groups.size)
        odds = seen + own * source.normal(size=n)[groups]
        # Averaged over the part that isn't seen, the odds are nearer to even.
        judged = slope * seen / np.sqrt(1 + own**2 / 2.89) + shift
        return Cases(logistic(judged), source.random(groups.size) < logistic(odds), groups)

    return draw


def copies(size: int, *, slope: float = 1.0) -> DrawClusters:
    """Clusters of so many copies of a case, as the same text under several IDs is."""

    def draw(source: np.random.Generator, n: int) -> Cases:
        seen = source.normal(0.5, 1.2, n)
        truths = source.random(n) < logistic(seen)
        groups = np.repeat(np.arange(n), size)
        return Cases(logistic(slope * seen)[groups], truths[groups], groups)

    return draw


POPULATIONS: Mapping[str, DrawClusters] = {
    "about 5 cases, weakly related": related(0.5),
    "about 5 cases, related, overconfident": related(1.5, slope=2.0),
    "about 5 cases, related, shifted": related(1.5, shift=1.0),
    "about 13 cases, strongly related": related(4.0, size=12.0),
    "about 13 cases, strongly related, overconfident": related(4.0, slope=3.0, size=12.0),
    "1 to 60 cases, strongly related, overconfident": related(4.0, slope=3.0, size=12.0, uneven=True),
    "8 copies": copies(8),
    "8 copies, overconfident": copies(8, slope=2.0),
}


def true_error(draw: DrawClusters) -> float:
    """The expected calibration error of a population, with the bins of the estimate."""
    cases = draw(np.random.default_rng(361), LARGE // 5)
    bins = np.minimum((cases.probabilities * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, cases.probabilities - cases.truths, BINS)
    return float(np.abs(gaps).sum() / cases.truths.size)


def _errors(name: str, n: int, draws: int) -> list[str]:
    draw, source = POPULATIONS[name], np.random.default_rng(362)
    truth = true_error(draw)
    found: list[Interval | None] = []
    for _ in range(draws):
        cases = draw(source, n)
        groups = cases.groups.tolist()
        found.append(expected_calibration_error(cases.probabilities.tolist(), cases.truths.tolist(), groups=groups))
    covers = percent([holds(each, truth) for each in found])
    return [name, str(n), f"{truth:.3f}", f"**{covers}**", width(found)]


def _true_risk(population: Cases, threshold: float) -> float:
    sure = np.maximum(population.probabilities, 1 - population.probabilities)
    wrong = (population.probabilities >= 0.5) != population.truths
    kept = sure >= threshold
    return float(wrong[kept].mean()) if kept.any() else 0.0


def _risks(name: str, n: int, draws: int) -> list[str]:
    """How often the certified threshold keeps to its limit, or none is certified: of one case of each cluster."""
    draw, source = POPULATIONS[name], np.random.default_rng(363)
    population = draw(np.random.default_rng(361), LARGE // 5)
    row = [name, str(n)]
    for limit in LIMITS:
        held: list[bool] = []
        given = 0
        for _ in range(draws):
            cases = draw(source, n)
            # One case of each cluster, whoever was right.
            order = source.permutation(cases.groups.size)
            one = order[np.unique(cases.groups[order], return_index=True)[1]]
            probabilities, truths = cases.probabilities[one], cases.truths[one]
            sure, wrong = np.maximum(probabilities, 1 - probabilities), (probabilities >= 0.5) != truths
            found = certified_threshold(sure.tolist(), wrong.tolist(), limit)
            given += found is not None
            held.append(found is None or _true_risk(population, found.threshold) <= limit)
        row += [f"**{percent(held)}**", f"{100 * given / draws:.0f}"]
    return row


def calibration_clusters(replications: int) -> Iterator[Table]:
    """The coverage of the calibration error, and how often a certified risk holds."""
    with ProcessPoolExecutor(2) as pool:
        cells = [(name, n, replications // 10) for name in POPULATIONS for n in CLUSTERS]
        rows = [*pool.map(_errors, *zip(*cells, strict=True))]
        cells = [(name, n, replications // 4) for name in POPULATIONS for n in (100, 300)]
        risks = [*pool.map(_risks, *zip(*cells, strict=True))]
    head = ["population", "clusters", "true error", "covers", "width"]
    yield Table("Calibration errors of labels in clusters", head, rows, replications // 10)
    head = ["population", "clusters", *(text for limit in LIMITS for text in (f"risk {limit:.0%}: holds", "certified"))]
    yield Table("Certified risks of labels in clusters", head, risks, replications // 4)


SECTIONS = (calibration_clusters,)
