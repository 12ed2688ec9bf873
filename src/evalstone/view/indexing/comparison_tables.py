"""The tables of a stored comparison, and the conditions on its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

FORMAT = "view-comparison/3"
NOTHING = -1.0
"""The size of the change of a sample without any difference of scores."""
Change: TypeAlias = Literal["changed", "different", "regressed", "fixed", "failed", "missing"]
"""Whether a score is another one, answers differ, a score is worse or better than in the first run, a result failed,
or a score is missing in one of two runs."""
SHOWN: tuple[Change, ...] = ("changed", "different", "regressed", "fixed", "failed", "missing")


def tables(runs: int, scorers: int) -> tuple[str, ...]:
    """The statements that make the tables.

    A row is a sample. `p` is its place in the index of a run. `d` is how much better a score is than in the first run,
    in parts of the scale; `low`, `high` and `change` are the lowest and the highest of these, and the largest without
    its sign. Of each scorer, `f` has a bit for each run with a failure, and `x` one for each run in which a score is
    missing that the first run has, or the other way round. `different` has one for each run with another answer.
    """
    places = "".join(f", p{run} INTEGER" for run in range(runs))
    differences = "".join(f", d{run}_{scorer} REAL" for run, scorer in cells(runs, range(scorers)))
    missing = "".join(f", f{scorer} INTEGER, x{scorer} INTEGER" for scorer in range(scorers))
    return (
        "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        f"CREATE TABLE rows (place INTEGER PRIMARY KEY, name TEXT NOT NULL{places}, different INTEGER, low REAL, "
        f"high REAL, change REAL{differences}{missing})",
        "CREATE TABLE trials (run INTEGER, place INTEGER, row INTEGER, PRIMARY KEY (run, place)) WITHOUT ROWID",
    )


def cells(runs: int, scorers: Sequence[int], run: int | None = None) -> Iterator[tuple[int, int]]:
    """The pairs of a run that is compared with the first one, and a scorer. run: of this one alone."""
    return ((of, scorer) for of in ([run] if run else range(1, runs)) for scorer in scorers)


def condition(change: Change, runs: int, scorers: Sequence[int], run: int | None = None) -> str:
    """The rows with a change, as an expression. scorers: one of them, or all; run: of this one alone."""
    everything = run is None and len(scorers) != 1
    bits = (1 << runs) - 1 if run is None else 1 << run
    match change:
        case "different":
            return f"different & {bits}"
        case "failed":
            return _any(f"f{scorer} & {bits | 1}" for scorer in scorers)
        case "missing":
            return _any(f"x{scorer} & {bits}" for scorer in scorers)
        case "changed":
            return "change > 0" if everything else _any(f"d{of}_{s} != 0" for of, s in cells(runs, scorers, run))
        case "regressed":
            return "low < 0" if everything else _any(f"d{of}_{s} < 0" for of, s in cells(runs, scorers, run))
        case "fixed":
            return "high > 0" if everything else _any(f"d{of}_{s} > 0" for of, s in cells(runs, scorers, run))


def order(kind: str, runs: int, scorers: Sequence[int], run: int | None = None) -> str:
    """What rows are ordered by, as an expression that is never NULL."""
    if kind not in ("change", "worse", "better"):
        return {"order": "place", "id": "name"}[kind]
    columns = [f"d{of}_{scorer}" for of, scorer in cells(runs, scorers, run)]
    if run is None and len(scorers) != 1:
        columns = [{"change": "change", "worse": "low", "better": "high"}[kind]]
    absent = NOTHING if kind == "change" else 2 if kind == "worse" else -2
    sized = "abs({})" if kind == "change" else "{}"
    values = [f"ifnull({sized.format(column)}, {absent})" for column in columns]
    if columns == ["change"]:
        return "change"
    if len(values) == 1:
        return values[0]
    return f"{'min' if kind == 'worse' else 'max'}({', '.join(values)})"


def _any(terms: Iterator[str]) -> str:
    return f"({' OR '.join(terms) or '0'})"
