"""The scores of a session: what workers send of them, the table at the end, and the files of --evalstone-report."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from evalstone._core.display import count, digits_for, limits, money, number
from evalstone._core.file_format import TEST_SCORE_FORMAT
from evalstone._core.files import make_folder
from evalstone._core.json import content_hash
from evalstone._core.validation import read_data
from evalstone.datasets.writing import write_jsonl
from evalstone.report.text import text
from evalstone.report.view import Cell, Column, Section, Table, View
from evalstone.results.files import write_run
from evalstone.results.run import Run
from evalstone.results.summary import ScorerInfo, ScorerSummary, scorer_titles, summarize
from evalstone.results.views.spending import calls_text
from evalstone.testing.names import RUNS
from evalstone.testing.settings import settings_of
from evalstone.types import Record, StoredScorer, total_cost

HEADER = ("scorer", "mean", "95% CI", "scores", "skipped", "failed", "asked", "shared", "cached", "cost")
SUMMED_UP = ("asked", "shared", "cached", "cost")
"""Columns whose sums are below the table."""
NARROWEST = 20
MOST_ROWS = 30
SCORES = "scores.jsonl"


def as_data(info: ScorerInfo, record: Record, system: str) -> dict[str, Any]:
    """A scorer and its record as plain data, without evidence, answers and replies, which the table doesn't need.

    system: the test function, with its parameters if each has a mean of its own.
    """
    data = record.to_dict()
    calls = [
        {
            "question": call.question,
            "fingerprint": call.fingerprint,
            "judge": call.judge,
            "answer": call.answer is not None or None,
            "usage": asdict(call.usage),
            "cost": call.cost,
            "source": call.source,
        }
        for asked in record.calls
        for call in asked.leaves()
    ]
    return {"system": system, "scorer": info.to_dict(), "record": {**data, "evidence": None, "calls": calls}}


def summary_lines(
    scored: Mapping[str, Sequence[dict[str, Any]]], width: int, earlier: Sequence[dict[str, Any]] = ()
) -> list[str]:
    """The table of a session: a row for each scorer of each system, and the sum of all calls.

    Scores of different systems are not pooled into one mean.

    Args:
        scored: By test, its scorers and records as data.
        width: The characters of a line.
        earlier: The scores of earlier attempts of rerun tests, which count only in the sum.
    """
    systems: dict[str, list[dict[str, Any]]] = {}
    for data in itertools.chain.from_iterable(scored.values()):
        systems.setdefault(data["system"], []).append(data)
    names = _short_names(systems)
    infos, every = _summed_up(data for of in (*systems.values(), earlier) for data in of)
    titles = scorer_titles(infos)
    rows = [
        (names[system], (titles[line.info.signature], *_cells(line)))
        for system, of in systems.items()
        for line in _summed_up(of)[1]
    ]
    left = len(rows) - MOST_ROWS
    notes = (
        *([f"and {count(left, 'more row')}; --evalstone-report DIR writes all scores"] if left > 0 else []),
        f"{calls_text(every)} · cost {money(total_cost(line.cost for line in every))}",
    )
    width = max(width, NARROWEST)
    table = _fitting(rows[:MOST_ROWS], width)
    return text(_view(table, notes), width).splitlines()


def _short_names(systems: Iterable[str]) -> Mapping[str, str]:
    """The names of systems: without the file where no two have the same name, and empty for a single one."""
    nodes = list(systems)
    if len(nodes) == 1:
        return {nodes[0]: ""}
    short = {node: node.partition("::")[2] or node for node in nodes}
    times = Counter(short.values())
    return {node: name if times[name] == 1 else node for node, name in short.items()}


def _cells(line: ScorerSummary) -> tuple[str, ...]:
    digits = digits_for(line.info.scale)
    return (
        number(line.mean, digits),
        limits(*((line.interval.low, line.interval.high) if line.interval else (None, None)), digits),
        f"{line.n_score:,}",
        f"{line.n_skipped:,}",
        f"{line.n_failed:,}",
        f"{line.asked:,}",
        f"{line.shared:,}",
        f"{line.cached:,}",
        money(line.cost),
    )


def _summed_up(scored: Iterable[dict[str, Any]]) -> tuple[list[ScorerInfo], tuple[ScorerSummary, ...]]:
    """The scorers, and the summary of their records."""
    infos: dict[str, ScorerInfo] = {}
    records: dict[str, list[Record]] = {}
    for data in scored:
        info = ScorerInfo.of(read_data(StoredScorer, data["scorer"]))
        infos.setdefault(info.signature, info)
        records.setdefault(info.signature, []).append(Record.from_dict(data["record"]))
    known = list(infos.values())
    return known, summarize(known, (one for name in infos for one in _clustered(records[name])))


def budget_line(config: pytest.Config, spent: float) -> str:
    """The spent part of the budget, including on samples without a score, which aren't in the table."""
    budget = settings_of(config).budget
    limit = "" if budget is None else f" of ${budget.limit:g}"
    return f"{money(spent)} of the budget{limit} is spent"


def _view(table: Table, notes: Sequence[str] = ()) -> View:
    return View(name="", lead="", sections=(Section("", tables=(table,), notes=tuple(notes)),))


def _fitting(rows: Sequence[tuple[str, Sequence[str]]], width: int) -> Table:
    """The rows below the names of their tests, without the columns that the last line sums up where they don't fit."""
    for left_out in ((), ("cost",), ("shared", "cost")):
        table = _table(rows, left_out)
        headings = {row[0].text for row in table.rows if row[0].heading}
        if max(len(line) for line in text(_view(table)).splitlines() if line not in headings) <= width:
            return table
    return _table(rows, SUMMED_UP)


def _table(rows: Sequence[tuple[str, Sequence[str]]], left_out: Sequence[str]) -> Table:
    places = [place for place, title in enumerate(HEADER) if title not in left_out]
    columns = tuple(Column(HEADER[place], numeric=place > 0) for place in places)
    cells: list[tuple[Cell, ...]] = []
    for test, of in itertools.groupby(rows, key=itemgetter(0)):
        if test:
            cells.append((Cell(test, heading=True), *(Cell("") for _ in places[1:])))
        for _, row in of:
            name, *others = (Cell(row[place]) for place in places)
            cells.append((replace(name, level=int(bool(test))), *others))
    return Table("Scores of the session", columns, tuple(cells))


def _clustered(records: Sequence[Record]) -> Iterator[Record]:
    """The records; where samples were scored more than once, each of these is a cluster."""
    times = Counter(record.sample_id for record in records if record.group is None)
    repeated = any(number > 1 for number in times.values())
    for record in records:
        yield replace(record, group=record.sample_id) if repeated and record.group is None else record


def write_scores(config: pytest.Config, scored: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """Write a line for each score of the session."""
    if (report := settings_of(config).report) is None:
        return
    make_folder(report)
    rows = (
        {
            "format": TEST_SCORE_FORMAT,
            "test": test,
            **{
                name: data["record"][name]
                for name in ("scorer", "signature", "sample_id", "trial", "outcome", "value", "scale", "reason", "cost")
                if name in data["record"]
            },
        }
        for test, data in ((test, data) for test, of in scored.items() for data in of)
    )
    write_jsonl(report / SCORES, rows)


_NOT_PLAIN = re.compile(r"[^\w.=,\[\] -]+")
LONGEST_NAME = 100


def write_test_run(run: Run, report: Path, item: pytest.Item) -> None:
    """Write a run into a folder that is named by its test: tests/test_support.py/test_answers."""
    file, *names = item.nodeid.split("::")
    folder = report.joinpath(*(_plain(name) for name in (*file.split("/"), *names)))
    number = item.stash[RUNS] = item.stash[RUNS] + 1
    write_run(run, folder if number == 1 else folder.with_name(f"{folder.name}-{number}"))


def _plain(name: str) -> str:
    """A name as that of a folder; with a hash where it had to be changed, so that no two become one."""
    plain = _NOT_PLAIN.sub("_", name).strip(". ")[:LONGEST_NAME]
    return plain if plain == name else f"{plain}-{content_hash(name)[:6]}"
