"""How often aligning a judge claims a gain: where there is none, and where there is one.

Verdicts of several ways to ask are right as often as each other, or one of them more often; cases that are hard for one
way are hard for others. Probabilities are of a normal signal, and biased, too certain, or neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tables import Table, percent

from evalstone.stats.nested_selection import Candidate, NestedSelection, Objective, nested_selection

NORMAL = NormalDist()
SIZES = (50, 100, 200)
Draw: TypeAlias = Callable[[np.random.Generator, int], tuple[list[Candidate], list[bool], list[int] | None]]


def ways(accuracies: Sequence[float], *, shared: float = 0.5, yes: float = 0.5, group: int = 1) -> Draw:
    """Verdicts of several ways to ask. shared: the part of the difficulty that all have in common. group: the number of
    cases in a cluster, which have half of the difficulty in common."""

    def draw(source: np.random.Generator, n: int) -> tuple[list[Candidate], list[bool], list[int] | None]:
        truths = source.random(n) < yes
        groups = np.arange(n) // group
        common = _difficulty(source, groups) if group > 1 else source.standard_normal(n)
        found: list[Candidate] = []
        for accuracy in accuracies:
            own = _difficulty(source, groups) if group > 1 else source.standard_normal(n)
            right = np.sqrt(shared) * common + np.sqrt(1 - shared) * own < NORMAL.inv_cdf(accuracy)
            found.append(Candidate(verdicts=np.where(right, truths, ~truths).tolist()))
        return found, truths.tolist(), groups.tolist() if group > 1 else None

    return draw


def _difficulty(source: np.random.Generator, groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """That of each case, half of which is that of its cluster. groups: numbers from 0."""
    of_groups = source.standard_normal(1 + int(groups.max()))
    return np.sqrt(0.5) * np.take(of_groups, groups) + np.sqrt(0.5) * source.standard_normal(groups.size)


def shares(*, bias: float = 0.0, certainty: float = 1.0, signal: float = 1.5, others: int = 0) -> Draw:
    """The probabilities of a judge. bias: added to their log odds, which are then multiplied by certainty. others: the
    number of other ways that are no better."""

    def draw(source: np.random.Generator, n: int) -> tuple[list[Candidate], list[bool], list[int] | None]:
        truths = source.random(n) < 0.5
        found: list[Candidate] = []
        common = source.standard_normal(n)
        for _ in range(1 + others):
            seen = signal * (truths - 0.5) + np.sqrt(0.5) * (common + source.standard_normal(n))
            odds = certainty * (signal * seen + bias)
            share = 1 / (1 + np.exp(-odds))
            found.append(Candidate(verdicts=(share >= 0.5).tolist(), probabilities=share.tolist()))
        return found, truths.tolist(), None

    return draw


NULLS: tuple[tuple[str, Draw, Objective], ...] = (
    ("3 ways, right in 80%", ways([0.8] * 3), "accuracy"),
    ("9 ways, right in 80%", ways([0.8] * 9), "accuracy"),
    ("9 ways, right in 80%, independent", ways([0.8] * 9, shared=0.0), "accuracy"),
    ("9 ways, right in 95%", ways([0.95] * 9), "accuracy"),
    ("9 ways, right in 60%", ways([0.6] * 9), "accuracy"),
    ("9 ways, right in 80%, a tenth of labels yes", ways([0.8] * 9, yes=0.1), "accuracy"),
    ("9 ways, right in 80%, clusters of 5", ways([0.8] * 9, group=5), "accuracy"),
    ("probabilities without bias", shares(), "accuracy"),
    ("probabilities without bias, 3 ways", shares(others=2), "accuracy"),
    ("probabilities without bias, Brier score", shares(), "brier"),
    ("others worse: 80%, 75% …", ways([0.8, *[0.75] * 8]), "accuracy"),
)
GAINS: tuple[tuple[str, Draw, Objective], ...] = (
    ("1 of 2 other ways: 75% to 85%", ways([0.75, 0.75, 0.85]), "accuracy"),
    ("1 of 8 other ways: 75% to 85%", ways([0.75] * 8 + [0.85]), "accuracy"),
    ("1 of 8 other ways: 70% to 90%", ways([0.7] * 8 + [0.9]), "accuracy"),
    ("1 of 8 other ways: 75% to 85%, clusters of 5", ways([0.75] * 8 + [0.85], group=5), "accuracy"),
    ("biased probabilities", shares(bias=1.5), "accuracy"),
    ("very biased probabilities", shares(bias=3.0), "accuracy"),
    ("probabilities 4 times too certain, Brier score", shares(certainty=4.0), "brier"),
)


def alignments(replications: int) -> Iterator[Table]:
    """How often a gain is claimed, and the mean gain on held-out labels and on new ones."""
    replications = max(50, replications // 8)
    head = ["", *(f"{n} labels: claims" for n in SIZES)]
    rows = [
        [name, *(percent(_claims(draw, objective, n, replications)) for n in SIZES)] for name, draw, objective in NULLS
    ]
    yield Table("Claimed gains of alignment, where there are none", head, rows, replications)
    rows = list[list[str]]()
    for name, draw, objective in GAINS:
        row = [name]
        for n in SIZES:
            found = [_selected(draw, objective, n, seed) for seed in range(replications)]
            claimed = [_claims_gain(each) for each in found]
            gain = np.mean([each.gain.estimate for each in found if each is not None])
            row.append(f"{percent(claimed)} ({gain:+.3f})")
        rows.append(row)
    head = ["", *(f"{n} labels" for n in SIZES)]
    yield Table("Gains of alignment that are found, and the mean estimate", head, rows, replications)


def _selected(draw: Draw, objective: Objective, n: int, seed: int) -> NestedSelection | None:
    candidates, truths, groups = draw(np.random.default_rng([n, seed]), n)
    return nested_selection(candidates, truths, objective=objective, groups=groups)


def _claims(draw: Draw, objective: Objective, n: int, replications: int) -> list[bool]:
    return [_claims_gain(_selected(draw, objective, n, seed)) for seed in range(replications)]


def _claims_gain(found: NestedSelection | None) -> bool:
    return found is not None and not found.chosen.is_default and (found.gain.low or 0.0) > 0


SECTIONS = (alignments,)
