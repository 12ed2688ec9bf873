"""Shares and widths as text, and Markdown tables: how bench/coverage.py prints."""

from __future__ import annotations

from collections.abc import Sequence

from evalstone.stats.intervals import Interval


def holds(interval: Interval | None, truth: float) -> bool:
    """Whether an interval holds the truth, rounding apart."""
    if interval is None or interval.low is None or interval.high is None:
        return False
    return interval.low - 1e-12 <= truth <= interval.high + 1e-12


def width(intervals: Sequence[Interval | None]) -> str:
    """How wide intervals are on average, as text."""
    found = [i.high - i.low for i in intervals if i is not None and i.low is not None and i.high is not None]
    return f"{sum(found) / len(found):.3f}"


def percent(found: Sequence[bool]) -> str:
    """A share as text."""
    return f"{100 * sum(found) / len(found):.1f}"


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
