"""Whether the numbers that a tool has printed are those of the runs made of its rows, and if not, why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evalstone.compat.imports.results import Printed
from evalstone.stats.exact_sum import ExactSum
from evalstone.types import Note, note

TOLERANCE = 1e-12
"""The largest difference from a printed mean, as a share of the larger of it and 1, that is rounding of its sum."""


@dataclass(frozen=True, kw_only=True)
class MetricNumbers:
    """What a run has of a metric."""

    metric: str
    scores: int
    failed: int
    sum: float
    counted: int
    """How many results without a score the tool counted as scores."""
    counted_sum: float
    """The sum of what it counted for them."""


@dataclass(frozen=True, kw_only=True)
class RunNumbers:
    """What a run has that was printed."""

    system: str
    rows: int
    metrics: tuple[MetricNumbers, ...]


def checked(tool: str, runs: Sequence[RunNumbers], printed: Iterable[Printed]) -> Iterator[tuple[str | None, Note]]:
    """The notes on printed numbers, each with the system that it is about; None for all of them."""
    equal: dict[str | None, int] = {}
    numbers = list(printed)
    of_systems = {(number.kind, number.metric) for number in numbers if number.system is not None}
    for number in numbers:
        if number.system is None and (number.kind, number.metric) in of_systems:
            continue  # the same number, added up
        of = [run for run in runs if number.system in (None, run.system)]
        system = of[0].system if len(of) == 1 else number.system
        found = _difference(tool, number, of)
        if found is None:
            equal[system] = equal.get(system, 0) + 1
        else:
            yield system, found
    for system, times in equal.items():
        yield system, note("printed_equal", tool=tool, numbers=times)


def _difference(tool: str, printed: Printed, runs: Sequence[RunNumbers]) -> Note | None:
    """What differs, and why as far as that is known; None if it is ours."""
    if printed.ours is not None:
        return None if _same(printed, printed.ours, 1) else _differs(tool, printed, printed.ours)
    if printed.kind == "rows":
        rows = sum(run.rows for run in runs)
        return None if rows == printed.value else _differs(tool, printed, rows)
    of = [each for run in runs for each in run.metrics if each.metric == printed.metric]
    scores, failed, counted = (sum(getattr(each, name) for each in of) for name in ("scores", "failed", "counted"))
    total = ExactSum(each.sum for each in of)
    ours = _number(printed, scores, failed, total.value)
    if _same(printed, ours, scores):
        return None
    total.merge(ExactSum(each.counted_sum for each in of))
    if counted and _same(printed, _number(printed, scores + counted, failed - counted, total.value), scores + counted):
        return note("printed_with_failed", "caution", printed.metric, tool=tool, failed=counted, what=printed.kind)
    return _differs(tool, printed, ours)


def _number(printed: Printed, scores: int, failed: int, total: float) -> float | None:
    """Our number for a printed one; None for a mean of nothing."""
    match printed.kind:
        case "scores":
            return scores
        case "failed":
            return failed
        case "sum":
            return total
        case _:
            return total / scores if scores else None


def _same(printed: Printed, ours: float | None, scores: int) -> bool:
    """Whether a printed number is ours, up to rounding: of a sum, that of the mean."""
    if ours is None:
        return False
    parts = max(1, scores) if printed.kind == "sum" else 1
    rounding = 0.0 if printed.digits is None else 0.5 * 10.0**-printed.digits
    return abs(printed.value - ours) / parts <= rounding + TOLERANCE * max(1.0, abs(ours) / parts)


def _differs(tool: str, printed: Printed, ours: float | None) -> Note:
    return note(
        "printed_differs", "warning", printed.metric, tool=tool, what=printed.kind, printed=printed.value, ours=ours
    )
