"""Coverage and drift of live scores as views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from evalstone._core.display import count, digits_for, number, percent, safe
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.report.notes import sentences_of
from evalstone.report.view import Cell, Column, Section, Table, View, words

if TYPE_CHECKING:
    from evalstone.live.accounting import Coverage, ScorerCoverage
    from evalstone.live.score_drift import LiveDrift, ScorerWatch, WatchedMean

UNACCOUNTED = "rows were deleted or imported without their counts, or the ledger is damaged"
"""The meaning of a difference between counts and rows."""
DRIFT = ("scorer", "verdict", "baseline", "mean", "units", "without score")
DRIFT_NUMBERS = ("baseline", "mean", "units")
Rows: TypeAlias = list[tuple[str, ...]]

_COVERAGE: tuple[tuple[str, Callable[[ScorerCoverage], int]], ...] = (
    ("seen", lambda one: one.seen),
    ("  filtered", lambda one: one.filtered),
    ("  eligible", lambda one: one.eligible),
    ("    declined", lambda one: one.declined),
    ("    sampled", lambda one: one.sampled),
    ("      dropped: queue full", lambda one: one.dropped_queue),
    ("      dropped: budget spent", lambda one: one.dropped_budget),
    ("      scores", lambda one: one.n_score),
    ("      skipped", lambda one: one.n_skipped),
    ("      failed", lambda one: one.n_failed),
    ("      pending", lambda one: one.pending),
    ("unaccounted", lambda one: one.unaccounted),
)


def coverage_view(found: Coverage, _: FrontEnd = PYTHON) -> View:
    """The counts of each scorer as a column; with several scorers, the last column is their total."""
    header, rows = _coverage_rows(found)
    columns = (words(""), *map(Column, header))
    missed = found.total.unaccounted
    cells = tuple((Cell(label.strip(), level=_level(label)), *map(Cell, numbers)) for label, *numbers in rows)
    section = Section(
        "",
        tables=(Table("Coverage of live scores", columns, cells),),
        warnings=(f"{missed:,} unaccounted: {UNACCOUNTED}.",) if missed else (),
    )
    times = (("since", found.since), ("until", found.until))
    lead = " ".join(f"{word} {_time(time)}" for word, time in times if time)
    return View(name=found.stream, lead=lead, sections=(section,))


def _level(label: str) -> int:
    return (len(label) - len(label.lstrip())) // 2


def _coverage_rows(found: Coverage) -> tuple[tuple[str, ...], Rows]:
    """The header and the rows of the table; with several scorers, the last column is their total."""
    shown = (*found.scorers, *([found.total] if len(found.scorers) > 1 else []))
    rows: Rows = []
    for label, value in _COVERAGE:
        numbers = [value(one) for one in shown]
        if any(numbers) or label != "unaccounted":
            rows.append((label, *(f"{each:,}" for each in numbers)))
    rows.append(("scores of eligible", *("-" if one.coverage is None else percent(one.coverage) for one in shown)))
    return tuple(safe(one.scorer, 60) or "all scorers" for one in shown), rows


def drift_view(found: LiveDrift, front_end: FrontEnd = PYTHON) -> View:
    """The table of scorers, and sentences about each."""
    columns = [Column(title) if title in DRIFT_NUMBERS else words(title) for title in DRIFT]
    rows = tuple(tuple(map(Cell, row)) for row in _drift_rows(found))
    about = tuple(f"{text}." for one in found for text in _about(one, found, front_end))
    return View(
        name="Live drift",
        lead=f"{found.stream} against {found.baseline}",
        warnings=tuple(sentences_of(found.notes, front_end)),
        sections=(Section("", tables=(Table("Live scores and the baseline", tuple(columns), rows),), notes=about),),
    )


def _drift_rows(found: LiveDrift) -> Rows:
    """A row for each scorer, in the order of `DRIFT`."""
    rows: Rows = []
    for one in found:
        digits = digits_for(one.info.scale)
        scored = next((test.watch.mean for test in one.tests if test.of == "scored"), None)
        missing = "-" if scored is None else percent(1 - scored)
        means = number(one.baseline, digits), number(one.mean, digits)
        rows.append((safe(one.title), one.verdict, *means, f"{one.units:,}", missing))
    return rows


def _about(one: ScorerWatch, found: LiveDrift, front_end: FrontEnd) -> Iterator[str]:
    title = safe(one.title)
    for test in one.tests:
        watch = test.watch
        if watch.verdict == "drifted":
            yield f"{title}: {_what(one, test)} since about {_time(test.changed)}; alarm at {_time(test.alarm)}"
        elif test.of == "score" and watch.verdict == "too few":
            why = "the baseline is too small or too low" if watch.bound <= 0 else "more live scores are needed"
            yield f"{title}: too few scores for an alarm: {why}"
    smallest = next((test.watch for test in one.tests if test.of == "score"), None)
    if smallest is None:
        yield f"{title}: the baseline has no scores"
    elif one.verdict != "drifted" and smallest.bound > 0:
        gap = number(smallest.baseline - smallest.bound, digits_for(one.info.scale))
        yield f"{title}: with this baseline, only a mean that is worse by more than {gap} can be found"
    if one.waiting:
        names = ["settle"] if found.cycle is None else ["settle", "cycle"]
        waits_for = ", ".join(map(front_end.term, names))
        yield f"{title}: {count(one.waiting, 'unit')} not closed yet ({waits_for})"
    if one.late:
        yield f"{title}: {count(one.late, 'sample')} came after their unit was closed, and count nowhere"
    if one.unfinished:
        alone = "without them, there would be no alarm by samples without a score; " if one.alarm_by_unfinished else ""
        yield (
            f"{title}: {count(one.unfinished, 'score')} came after their unit was closed, or are pending still; they "
            f"count as missing; {alone}if scoring is behind, raise {front_end.term('settle')}"
        )


def _what(one: ScorerWatch, test: WatchedMean) -> str:
    watch, digits = test.watch, digits_for(one.info.scale)
    if test.of == "scored":
        shares = percent(1 - watch.baseline), percent(1 - (watch.mean_since or 0))
        return f"samples without a score {shares[0]} -> {shares[1]}"
    turned = (test.of == "score, rising") != one.info.lower_is_better
    before, now = (
        number(one.info.scale - (x or 0) if turned else x, digits) for x in (watch.baseline, watch.mean_since)
    )
    return f"mean {before} -> {now}"


def _time(time: datetime | None) -> str:
    return "-" if time is None else f"{time:%Y-%m-%d %H:%M} UTC"
