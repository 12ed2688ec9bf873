"""Shares and widths as text, and tables of them: what bench/coverage.py prints and saves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Table:
    """A table of evidence."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    replications: int | Mapping[str, int] | None
    """How many draws each figure comes from; if they differ, by the figures; None if the figures are computed."""

    def markdown(self) -> str:
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        return "\n".join([self.title, "", *(f"| {' | '.join(cells)} |" for cells in lines)])


TEXTS = re.compile(r'\[\s+"(?:[^"\\]|\\.)*"(?:,\s+"(?:[^"\\]|\\.)*")*\s+\]')
"""A list of texts in JSON with indents."""


def save(tables: Iterable[Table], folder: Path, *, section: str, replications: int) -> None:
    """Write the tables of a section as SECTION.json, each row on one line. replications: those that were asked for."""
    found = {"section": section, "replications": replications, "tables": [asdict(table) for table in tables]}
    text = json.dumps(found, ensure_ascii=False, indent=2)
    folder.mkdir(parents=True, exist_ok=True)
    rows_on_lines = TEXTS.sub(lambda texts: json.dumps(json.loads(texts[0]), ensure_ascii=False), text)
    (folder / f"{section}.json").write_text(rows_on_lines + "\n", "utf-8")
