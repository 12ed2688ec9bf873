"""The scores of a session: what workers send of them, the table at the end, and the files of --evalstone-report."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from evalstone._core.display import aligned, count, digits_for, limits, money, number
from evalstone._core.files import make_folder
from evalstone._core.json import content_hash
from evalstone._core.validation import read_data
from evalstone.datasets.writing import write_jsonl
from evalstone.results.files import write_run
from evalstone.results.run import Run
from evalstone.results.summary import ScorerInfo, ScorerSummary, calls_text, scorer_titles, summarize
from evalstone.testing.names import RUNS
from evalstone.testing.settings import settings_of
from evalstone.types import Record, StoredScorer, total_cost

HEADER = ("scorer", "mean", "95% CI", "scored", "skipped", "failed", "asked", "shared", "cached", "cost")
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
    calls = [call for step in record.steps for call in step.leaves()]
    steps = [
        {
            "question": call.question,
            "fingerprint": call.fingerprint,
            "judge": call.judge,
            "answer": call.answer is not None or None,
            "usage": asdict(call.usage),
            "cost": call.cost,
            "source": call.source,
        }
        for call in calls
    ]
    return {"system": system, "scorer": info.to_dict(), "record": {**data, "evidence": None, "steps": steps}}


def summary_lines(
    scored: Mapping[str, Sequence[dict[str, Any]]], width: int, earlier: Sequence[dict[str, Any]] = ()
) -> Iterator[str]:
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
        (names[system], ("  " * bool(names[system]) + titles[line.info.signature], *_cells(line)))
        for system, of in systems.items()
        for line in _summed_up(of)[1]
    ]
    yield from _fitting(rows[:MOST_ROWS], width)
    if (left := len(rows) - MOST_ROWS) > 0:
        yield f"and {count(left, 'more row')}; --evalstone-report DIR writes all scores"
    total = f"{calls_text(every)} · cost {money(total_cost(line.cost for line in every))}"
    yield from textwrap.wrap(total, max(width, NARROWEST))


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
        f"{line.scored:,}",
        f"{line.skipped:,}",
        f"{line.failed:,}",
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


def _fitting(rows: Sequence[tuple[str, Sequence[str]]], width: int) -> Iterator[str]:
    """The rows below the names of their tests, without the columns that the last line sums up where the table is too
    wide; else each row as sentences."""
    for left_out in ((), ("cost",), ("shared", "cost"), SUMMED_UP):
        columns = [place for place, title in enumerate(HEADER) if title not in left_out]
        header, *lines = aligned(
            [[row[place] for place in columns] for row in (HEADER, *(row for _, row in rows))], words=("scorer",)
        )
        if max(map(len, (header, *lines))) <= width:
            yield header
            yield from _below_tests(zip((test for test, _ in rows), ([line] for line in lines), strict=True))
            return
    yield from _below_tests((test, _sentences(row, max(width, NARROWEST))) for test, row in rows)


def _below_tests(rows: Iterable[tuple[str, Iterable[str]]]) -> Iterator[str]:
    """The lines of rows, with the name of a test above its first row."""
    for test, of in itertools.groupby(rows, key=itemgetter(0)):
        yield from [test] * bool(test)
        for _, lines in of:
            yield from lines


def _sentences(row: Sequence[str], width: int) -> Iterator[str]:
    scorer, mean, between, scored, skipped, failed, asked, shared, cached, cost = row
    yield scorer
    indent = "  " * (2 if scorer.startswith(" ") else 1)
    text = f"mean {mean} ({between}), {scored} scored, {skipped} skipped, {failed} failed, judge calls: {asked} asked, "
    text += f"{shared} shared, {cached} cached, {cost}"
    yield from textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)


def _clustered(records: Sequence[Record]) -> Iterator[Record]:
    """The records; where samples were scored more than once, each of these is a cluster."""
    times = Counter(record.sample for record in records if record.group is None)
    repeated = any(number > 1 for number in times.values())
    for record in records:
        yield replace(record, group=record.sample) if repeated and record.group is None else record


def write_scores(config: pytest.Config, scored: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """Write a line for each score of the session."""
    if (report := settings_of(config).report) is None:
        return
    make_folder(report)
    rows = (
        {
            "test": test,
            "scorer": data["scorer"]["name"],
            **{
                name: data["record"][name]
                for name in ("sample", "trial", "outcome", "value", "scale", "reason", "cost")
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
