"""The page of evidence, docs/evidence.md, and figures from it in pages that are written by hand.

The tables are those that `bench/coverage.py --save` wrote to docs/evidence/; the text around them is evidence.md.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import TypedDict, cast

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/evidence.md"
DATA = ROOT / "docs/evidence"
TEXT = Path(__file__).with_name("evidence.md")

PLACE = re.compile(r"\{\{(\w+)(?: (\d))?(?::\s*(.*?))?\}\}", re.DOTALL)
"""In evidence.md, a section, which of its tables (1), and how to read the table."""
FIGURE = re.compile(r"(lowest|highest) (.+) of (\w+)(?: (\d))?")
NUMBER = re.compile(r"\**(\d+(?:\.\d+)?)")


class Table(TypedDict):
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    replications: int | dict[str, int] | None


class Section(TypedDict):
    section: str
    replications: int
    tables: Sequence[Table]


@cache
def section(name: str) -> Section:
    """The tables of a section. Raises FileNotFoundError if none were saved."""
    return cast("Section", json.loads((DATA / f"{name}.json").read_text("utf-8")))


def evidence_page() -> str:
    """The page with all tables."""
    return PLACE.sub(lambda place: _table(place[1], int(place[2] or 1), place[3] or ""), TEXT.read_text("utf-8"))


def _table(name: str, number: int, how_to_read: str) -> str:
    found = section(name)
    table = found["tables"][number - 1]
    command = f"python bench/coverage.py --only {name}"
    if table["replications"] is not None:
        command += f" --replications {found['replications']}"
    lines = [table["head"], ["---"] * len(table["head"]), *table["rows"]]
    rows = "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)
    parts = (f"### {table['title']}", how_to_read, f"{precision(table)}: `{command}`", rows)
    return "\n\n".join(part for part in parts if part)


def precision(table: Table, rate: float = 95.0) -> str:
    """How many replications the figures come from, with two standard errors of a rate."""
    draws = table["replications"]
    if draws is None:
        return "Computed"
    if isinstance(draws, int):
        return f"{draws:,} replications, {error(draws, rate)}"
    return "; ".join(f"{of}: {count:,} replications, {error(count, rate)}" for of, count in draws.items())


def error(replications: int, rate: float) -> str:
    """Two standard errors of a rate in percent, in percentage points. Rates near 0 or 100% have that of 5%."""
    share = min(max(rate, 5.0), 95.0) / 100
    return f"±{200 * math.sqrt(share * (1 - share) / replications):.1f}"


def figure(name: str) -> str:
    """A figure by its name, such as `lowest default of means`: the worst and the median of some columns of a table.

    The columns are those with the name between `lowest` or `highest` and `of`, as it stands or after a colon. After the
    section, a number chooses one of its tables. Raises ValueError for another name, or if no column has such a name.
    """
    matched = FIGURE.fullmatch(name)
    if matched is None:
        raise ValueError(f"there is no figure {name!r}")
    end, column, of, number = matched.groups()
    table = section(of)["tables"][int(number or 1) - 1]
    at = [place for place, title in enumerate(table["head"]) if re.sub(r"^(?!width).+: ", "", title) == column]
    at = at or [place for place, title in enumerate(table["head"]) if title == column]
    cells = [row[place] for row in table["rows"] for place in at if row[place]]
    if not cells:
        raise ValueError(f"{of} has no column {column!r}")
    values = [_number(cell) for cell in cells]
    worst = min(values) if end == "lowest" else max(values)
    drawn = precision(table, worst)
    source = f"[{drawn[:1].lower()}{drawn[1:]}](evidence.md#{_anchor(table['title'])})"
    return f"{worst:.1f}% in the worst of {len(values)} cases and {median(values):.1f}% in the median ({source})"


def _number(cell: str) -> float:
    found = NUMBER.match(cell)
    if found is None:
        raise ValueError(f"{cell!r} is no number")
    return float(found[1])


def _anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
