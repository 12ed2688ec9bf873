"""What an estimate shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import count, money, safe
from evalstone.report.view import Cell, Column, Section, Table, View, words

if TYPE_CHECKING:
    from evalstone.results.estimate import Estimate, JudgeEstimate, ScorerEstimate
    from evalstone.types import Usage


def estimate_view(work: Estimate) -> View:
    """The calls of each scorer, and those of each judge with their cost."""
    target = (f"Target calls: at most {work.target_calls:,}; their cost is unknown",) if work.target else ()
    if work.without_stand_in:
        samples = count(work.without_stand_in, "sample")
        target += (f"Judge calls leave out {samples} without an output or a reference to stand in for an answer.",)
    calls = scorers_table(work.scorers, "Calls by scorer")
    of_judges = (judges_table(work.judges, "Calls by judge"),) if work.judges else ()
    return View(
        work.dataset_name,
        f"{planned(work)} · dry run",
        (
            Section("Calls by scorer", target, (calls,), notes=open_calls(work), warnings=failures(work)),
            Section("Judge calls and cost", (expense(work.calls, work.usage, work.cost),), of_judges),
        ),
    )


def planned(work: Estimate) -> str:
    """Samples and trials, target and judge."""
    target = "" if work.target is None else f" · target {work.target}"
    samples = count(work.samples, "sample") + (f" × {work.trials:,} trials" if work.trials > 1 else "")
    return f"{samples}{target} · judge {work.judge}"


def open_calls(work: Estimate) -> tuple[str, ...]:
    """The scorers whose calls depend on the target's answers."""
    return tuple(
        f"{line.name}: the calls for {count(line.open, 'sample')} depend on the answer: {line.open_reason}"
        for line in work.scorers
        if line.open
    )


def failures(work: Estimate) -> tuple[str, ...]:
    """The scorers that would fail, with their first error."""
    return tuple(
        f"{line.name}: {count(line.n_failed, 'sample')} would fail: {line.error}"
        for line in work.scorers
        if line.n_failed
    )


def scorers_table(scorers: Sequence[ScorerEstimate], caption: str) -> Table:
    """The calls of each scorer."""
    titles = ("asked", "shared", "cached", "input tokens", "output tokens", "skipped")
    rows = tuple(
        _row(line.name, line.asked, line.shared, line.cached, line.usage.input, line.usage.output, line.n_skipped)
        for line in scorers
    )
    return Table(caption, (words("scorer"), *map(Column, titles)), rows)


def judges_table(judges: Sequence[JudgeEstimate], caption: str) -> Table:
    """The calls and cost of each judge."""
    rows = tuple(
        (
            *_row(judge.judge, judge.calls, judge.usage.input, judge.usage.output),
            Cell("unknown" if judge.cost is None else money(judge.cost)),
        )
        for judge in judges
    )
    titles = ("calls", "input tokens", "output tokens", "cost")
    return Table(caption, (words("judge"), *map(Column, titles)), rows)


def _row(name: str, *numbers: int) -> tuple[Cell, ...]:
    return Cell(safe(name, 200)), *(Cell(f"{number:,}") for number in numbers)


def expense(calls: int, usage: Usage, price: float | None, note: str = "") -> str:
    """The estimated tokens and cost of judge calls, on one line."""
    cost = "cost unknown" if price is None else f"about {money(price)}{note}"
    tokens = f"about {usage.input:,} input and {usage.output:,} output tokens"
    return f"{count(calls, 'call')}, {tokens}, {cost}; retries and reasoning tokens not included"
