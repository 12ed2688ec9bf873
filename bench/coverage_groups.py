"""Groups whose size goes with the score, such as long conversations that fail more: coverage and wrong decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from populations import Floats
from tables import Table, holds, percent, width

from evalstone.stats.comparison import compare_pairs
from evalstone.stats.gates import AtLeast, MaxRegression, decide
from evalstone.stats.intervals import Interval, mean_interval
from evalstone.stats.ppi import ppi_mean
from evalstone.stats.unpaired import compare_unpaired

Rate: TypeAlias = Callable[[Floats], Floats]
"""The pass rate of samples in groups of these sizes."""
LARGE = 2_000_000
JUST = 1e-9

POPULATIONS: dict[str, tuple[float, Rate, tuple[int, ...]]] = {
    "0.5 from 12 on, 0.98 below": (0.8, lambda size: np.where(size >= 12, 0.5, 0.98), (20, 60, 100, 200)),
    "0.4 from 20 on, 0.97 below": (1.0, lambda size: np.where(size >= 20, 0.4, 0.97), (60, 200)),
    "0.6 from 8 on, 0.99 below": (0.6, lambda size: np.where(size >= 8, 0.6, 0.99), (20, 60)),
    "0.99 - 0.025 · size": (0.7, lambda size: np.clip(0.99 - 0.025 * size, 0.3, 1), (20, 50, 100, 200)),
    "0.6 + 0.02 · size": (0.8, lambda size: np.clip(0.6 + 0.02 * size, 0, 0.98), (20, 50, 150)),
    "0.9 for all sizes": (0.8, lambda size: np.full(size.size, 0.9), (20, 60, 200)),
}
"""The deviation of the log size (its mean is 1.2), the pass rate by size, and the numbers of groups."""


def sizes_of(source: np.random.Generator, deviation: float, n: int) -> Floats:
    """Lognormal sizes, at least 1."""
    return np.maximum(1, np.rint(source.lognormal(1.2, deviation, n)))


def true_mean(deviation: float, rate: Rate) -> float:
    """The pass rate of all samples."""
    sizes = sizes_of(np.random.default_rng(72), deviation, LARGE)
    return float((sizes * rate(sizes)).sum() / sizes.sum())


def draw(source: np.random.Generator, deviation: float, rate: Rate, n: int) -> tuple[Floats, list[int]]:
    """Passes and failures of the samples of n groups, and their groups."""
    sizes = sizes_of(source, deviation, n)
    groups = np.repeat(np.arange(n), sizes.astype(int))
    return (source.random(groups.size) < rate(sizes)[groups]).astype(np.float64), groups.tolist()


def informative_groups(replications: int) -> Iterator[Table]:
    """The interval of the mean, and a gate at the true mean."""
    rows: list[list[str]] = []
    for name, (deviation, rate, counts) in POPULATIONS.items():
        truth = true_mean(deviation, rate)
        for n in counts:
            source = np.random.default_rng(73)
            found: list[Interval | None] = []
            passes: list[bool] = []
            fails: list[bool] = []
            for _ in range(replications // 2):
                values, groups = draw(source, deviation, rate, n)
                x = values.tolist()
                found.append(mean_interval(x, low=0, high=1, groups=groups))
                passes.append(decide([AtLeast("", x, truth + JUST, groups=groups)])[0].verdict == "pass")
                fails.append(decide([AtLeast("", x, truth - JUST, groups=groups)])[0].verdict == "fail")
            covers = percent([holds(interval, truth) for interval in found])
            rows.append([name, str(n), f"**{covers}**", width(found), percent(passes), percent(fails)])
    head = ["pass rate by size", "groups", "covers", "width", "gate: wrong pass", "gate: wrong fail"]
    yield Table("Groups whose size goes with the scores", head, rows, replications // 2)


def informative_changes(replications: int) -> Iterator[Table]:
    """Two systems over the same groups, the second one better or worse in large groups: interval, maximum regression.

    And two systems over different groups.
    """
    rows: list[list[str]] = []
    changes: dict[str, Rate] = {
        "worse from 12 on (-0.3), better below (+0.05)": lambda size: np.where(size >= 12, -0.3, 0.05),
        "better with size (0.015 · size - 0.2)": lambda size: np.clip(0.015 * size - 0.2, -0.2, 0.3),
    }
    for name, change in changes.items():
        deviation = 0.8
        sizes = sizes_of(np.random.default_rng(72), deviation, LARGE)
        truth = float((sizes * change(sizes)).sum() / sizes.sum())

        def changed(size: Floats, change: Rate = change) -> Floats:
            return 0.6 + change(size)

        for n in (20, 60, 200):
            source = np.random.default_rng(74)
            held: list[bool] = []
            unpaired: list[bool] = []
            passes: list[bool] = []
            for _ in range(replications // 2):
                a, groups = draw(source, deviation, lambda size: np.full(size.size, 0.6), n)
                size = np.bincount(groups)[groups].astype(np.float64)
                moves = source.random(a.size)
                gained = np.where(a == 0, moves < np.maximum(0, change(size)) / 0.4, 0)
                lost = np.where(a == 1, moves < np.maximum(0, -change(size)) / 0.6, 0)
                b = np.where(gained, 1.0, np.where(lost, 0.0, a))
                x, y = a.tolist(), b.tolist()
                paired = compare_pairs(x, y, groups=groups)
                held.append(paired is not None and holds(paired.difference, truth))
                limit = MaxRegression("", y, x, -truth - JUST, groups=groups)
                passes.append(decide([limit])[0].verdict == "pass")
                other, others = draw(source, deviation, changed, n)
                apart = compare_unpaired(x, other.tolist(), groups=(groups, others))
                unpaired.append(apart is not None and holds(apart.difference, truth))
            rows.append([name, str(n), f"**{percent(held)}**", percent(passes), f"**{percent(unpaired)}**"])
    head = ["change of the pass rate", "groups", "pairs: covers", "maximum regression: wrong pass", "unpaired: covers"]
    yield Table("Differences of groups whose size goes with the scores", head, rows, replications // 2)


def informative_labels(replications: int) -> Iterator[Table]:
    """A judge's scores corrected by human labels of all samples of some groups (`ppi_mean`)."""
    rows: list[list[str]] = []
    for name, (deviation, rate, _) in POPULATIONS.items():
        truth = true_mean(deviation, rate)
        for n, labeled in ((100, 30), (300, 60)):
            source = np.random.default_rng(75)
            found: list[Interval | None] = []
            for _ in range(replications // 8):
                values, groups = draw(source, deviation, rate, n)
                judged = np.where(source.random(values.size) < 0.15, 1 - values, values)
                chosen = set(source.choice(n, labeled, replace=False).tolist())
                human = [x if group in chosen else None for x, group in zip(values.tolist(), groups, strict=True)]
                estimate = ppi_mean(judged.tolist(), human, groups=groups)
                found.append(None if estimate is None else estimate.estimate)
            covers = percent([holds(interval, truth) for interval in found])
            rows.append([name, str(n), str(labeled), f"**{covers}**", width(found)])
    head = ["pass rate by size", "groups", "labeled groups", "covers", "width"]
    yield Table("Labels of whole groups whose size goes with the scores", head, rows, replications // 8)


SECTIONS = (informative_groups, informative_changes, informative_labels)
