"""Coverage of the effective number of a panel's votes, and how often a panel is wrongly called better than its members.

`bench/coverage.py` runs these sections.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from tables import Table, holds, percent, width

from evalstone.stats.comparison import compare_pairs
from evalstone.stats.intervals import Interval
from evalstone.stats.panels import effective_votes

Wrong = NDArray[np.bool_]
NORMAL = NormalDist()
SIZES = (40, 100, 300)


def errors(source: np.random.Generator, n: int, rates: tuple[float, ...], shared: float) -> Wrong:
    """Errors of members with these rates, from normal variables that correlate."""
    difficulty, own = source.normal(size=(n, 1)), source.normal(size=(n, len(rates)))
    variables = np.sqrt(shared) * difficulty + np.sqrt(1 - shared) * own
    return variables < np.array([NORMAL.inv_cdf(rate) for rate in rates])


PANELS: tuple[tuple[tuple[float, ...], float], ...] = (
    ((0.1, 0.1, 0.1), 0.0),
    ((0.1, 0.1, 0.1), 0.5),
    ((0.1, 0.1, 0.1), 0.9),
    ((0.05, 0.05, 0.05), 0.5),
    ((0.05, 0.1, 0.3), 0.0),
    ((0.05, 0.1, 0.3), 0.5),
    ((0.1, 0.4), 0.8),
    ((0.2, 0.2, 0.2, 0.2, 0.2), 0.0),
    ((0.2, 0.2, 0.2, 0.2, 0.2), 0.5),
    ((0.05, 0.1, 0.15, 0.2, 0.3), 0.8),
)


def panel_votes(replications: int) -> Iterator[Table]:
    """The effective number of votes of panels whose members err on the same samples to some degree."""
    rows: list[list[str]] = []
    for rates, shared in PANELS:
        many = errors(np.random.default_rng(1), 1_000_000, rates, shared).astype(np.float64)
        truth = len(rates) if not shared else float(many.var(axis=0).mean() / many.mean(axis=1).var())
        row = [", ".join(f"{rate:g}" for rate in rates), f"{shared:g}", f"{truth:.2f}"]
        for n in SIZES:
            source = np.random.default_rng(2)
            found: list[Interval] = []
            for _ in range(replications // 4):
                votes = effective_votes(errors(source, n, rates, shared).tolist())
                if votes is not None:
                    found.append(votes.votes)
            row += [f"**{percent([holds(one, truth) for one in found])}**", width(found)]
        rows.append(row)
    head = ["members' error rates", "correlation", "votes", *(text for n in SIZES for text in (f"{n} labels", "width"))]
    yield Table("Effective number of votes", head, rows, replications // 4)


def panels_and_members(replications: int) -> Iterator[Table]:
    """Panels that are as accurate as their best members, and panels that are better: how often they are called so."""
    rows: list[list[str]] = []
    for what, gain in (("as accurate as each of three members", 0.0), ("8 points more accurate", 0.08)):
        row = [what]
        for n in SIZES:
            source = np.random.default_rng(3)
            better: list[bool] = []
            worse: list[bool] = []
            for _ in range(replications // 4):
                members = errors(source, n, (0.15, 0.15, 0.15), 0.6)
                panel = errors(source, n, (0.15 - gain,), 0.0)[:, 0]
                differences = [
                    compare_pairs(
                        (~own).astype(float).tolist(), (~panel).astype(float).tolist(), confidence=1 - 0.05 / 3
                    )
                    for own in members.T
                ]
                limits = [one.difference for one in differences if one is not None]
                better.append(all((one.low or 0) > 0 for one in limits))
                worse.append(any((one.high or 0) < 0 for one in limits))
            row += [percent(better), percent(worse)]
        rows.append(row)
    head = ["panel", *(text for n in SIZES for text in (f"{n} labels: better", "worse"))]
    yield Table("Panels compared with their members", head, rows, replications // 4)


SECTIONS = (panel_votes, panels_and_members)
