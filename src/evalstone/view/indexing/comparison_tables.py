"""The tables of a stored comparison, and the conditions on its rows.

A row is a sample, and its columns are numbers. `pN` is its place in the index of run N, 0 if the run doesn't have it.
`dN_S` is how much better the score of scorer S is in run N than in the first run, in parts of the scale; `low`, `high`
and `change` are the lowest and the highest of these, and the largest without its sign. Of each scorer, `fS` has a bit
for each run with a failure, and `xS` one for each run in which a score is missing that the first run has, or the other
way round. `different` has one for each run with another answer. With trials, `tN` has the row of each case of run N.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np

from evalstone.view.indexing.column_store import TABLE, Array, Mask

FORMAT = "view-comparison/6"
NOTHING = -1.0
"""The size of the change of a sample without any difference of scores."""
Change: TypeAlias = Literal["changed", "different", "regressed", "fixed", "failed", "missing"]
"""Whether a score is another one, answers differ, a score is worse or better than in the first run, a result failed,
or a score is missing in one of two runs."""
SHOWN: tuple[Change, ...] = ("changed", "different", "regressed", "fixed", "failed", "missing")
TABLES = ("CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)", TABLE)
Columns: TypeAlias = Callable[[str], Array]
"""Returns a column by its name."""


def cells(runs: int, scorers: Sequence[int], run: int | None = None) -> Iterator[tuple[int, int]]:
    """The pairs of a run that is compared with the first one, and a scorer. run: of this one alone."""
    return ((of, scorer) for of in ([run] if run else range(1, runs)) for scorer in scorers)


def condition(columns: Columns, change: Change, runs: int, scorers: Sequence[int], run: int | None = None) -> Mask:
    """Which rows have a change. scorers: one of them, or all; run: of this one alone."""
    bits = (1 << runs) - 1 if run is None else 1 << run
    match change:
        case "different":
            return columns("different") & bits > 0
        case "failed":
            return _any(columns, (columns(f"f{scorer}") & (bits | 1) > 0 for scorer in scorers))
        case "missing":
            return _any(columns, (columns(f"x{scorer}") & bits > 0 for scorer in scorers))
        case "changed":
            name = "change"
        case "regressed":
            name = "low"
        case "fixed":
            name = "high"
    names = [name] if run is None and len(scorers) != 1 else [f"d{of}_{s}" for of, s in cells(runs, scorers, run)]
    return _any(columns, (_is_change(columns(each), change) for each in names))


def order(columns: Columns, kind: str, runs: int, scorers: Sequence[int], run: int | None = None) -> Array:
    """What rows are ordered by: the largest change, the largest loss or the largest gain, which each row has."""
    if run is None and len(scorers) != 1:
        values = [columns({"change": "change", "worse": "low", "better": "high"}[kind])]
    else:
        values = [columns(f"d{of}_{scorer}") for of, scorer in cells(runs, scorers, run)]
    absent = NOTHING if kind == "change" else 2.0 if kind == "worse" else -2.0
    sized = [np.abs(each) for each in values] if kind == "change" else values
    found = [np.where(np.isnan(each), absent, each) for each in sized]
    return (np.minimum if kind == "worse" else np.maximum).reduce(found)


def _is_change(values: Array, change: Change) -> Mask:
    return values < 0 if change == "regressed" else values > 0 if change == "fixed" else (values < 0) | (values > 0)


def _any(columns: Columns, masks: Iterator[Mask]) -> Mask:
    found = np.zeros(len(columns("different")), np.bool_)
    for mask in masks:
        found |= mask
    return found
