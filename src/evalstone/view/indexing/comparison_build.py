# ruff: noqa: S608 - statements are put together from our own names
"""How a comparison of runs is computed and stored."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalstone._core.front_ends import COMMAND_LINE
from evalstone._core.json import storable, to_jsonable
from evalstone.errors import ConfigError, NotComparable
from evalstone.report.notes import sentence_of
from evalstone.results.comparable_runs import paired_scorers
from evalstone.results.compare import (
    ScorerComparison,
    compare,
    compare_slices,
    corrected_for,
    letters_of,
    paired_in,
)
from evalstone.results.drift import drift
from evalstone.results.paired_scores import PairedScores
from evalstone.results.run import Run
from evalstone.results.views.comparison import comparison_notes, line_cells, reach_of, slices_text
from evalstone.results.views.samples import scored_answer
from evalstone.view.indexing.comparison_scores import TABLES, Pairs, write_scores
from evalstone.view.indexing.comparison_tables import FORMAT, NOTHING, SHOWN, cells, condition, tables
from evalstone.view.indexing.differences import stored_differences
from evalstone.view.indexing.files import written
from evalstone.view.indexing.index import Index

WHAT = "the comparison"


class Compared(NamedTuple):
    """Runs compared with the first one."""

    head: dict[str, Any]
    """What pages say of the comparison, as JSON data."""
    pairs: Pairs
    """The scores that are compared; none if the runs can't be compared."""


def compared(runs: Sequence[Run], *, anyway: bool) -> Compared:
    """Compare runs with the first one. anyway: whether mismatches are allowed."""
    first, second, *others = runs
    try:
        comparison = compare(first, second, *others, allow_mismatch=anyway)
    except ConfigError as error:
        return Compared({**_nothing(error), "mismatch": isinstance(error, NotComparable)}, {})
    letters = [*comparison.runs][1:]
    lines, reach = comparison.scorers, reach_of(comparison.scorers)
    of_second = ((line.info_b.signature, line) for line in lines if line.b == "B")
    head = {
        "refused": "",
        "warnings": [sentence_of(note, COMMAND_LINE) for note in comparison.notes if note.severity == "warning"],
        "notes": [*comparison_notes(comparison, COMMAND_LINE)],
        "pairs": [[_line(line, reach) for line in lines if line.b == letter] for letter in letters],
        "differences": stored_differences(of_second),
        "data": comparison.to_dict(),
    }
    return Compared(head, dict(paired_in(comparison)))


def sliced(pairs: Pairs, field: str, keys: Callable[[], Mapping[str, str]]) -> dict[str, Any]:
    """What pages say of the slices of compared runs.

    Args:
        pairs: The scores that are compared.
        field: The entry of the metadata by whose values samples are compared.
        keys: Finds the slice key of each sample by its ID in the first run.
    """
    try:
        lines, notes = compare_slices(pairs, field, keys())
    except ConfigError as error:
        return _nothing(error)
    reach = reach_of(lines)
    letters = dict.fromkeys(letter for letter, _ in pairs)
    return {
        "refused": "",
        "notes": [slices_text(corrected_for(lines)), *(sentence_of(note, COMMAND_LINE) for note in notes)],
        "pairs": [[_line(line, reach) for line in lines if line.b == letter] for letter in letters],
    }


def compared_before(runs: Sequence[Run], head: Mapping[str, Any]) -> Compared:
    """Runs with the head of their comparison, for which nothing is compared again."""
    pairs = {
        (letter, pair.info.signature): pair
        for letter, run in [*letters_of(runs).items()][1:]
        for pair in paired_scorers(runs[0], run, missing="worst")
    }
    return Compared(dict(head), pairs)


def drifted(before: Run, now: Run) -> dict[str, Any]:
    """The head of a comparison of a judge's scores of the same outputs."""
    try:
        found = drift(before, now)
    except ConfigError as error:
        return _nothing(error)
    return {"refused": "", "differences": stored_differences((line.info.signature, line) for line in found)}


def _nothing(error: ConfigError) -> dict[str, Any]:
    return {"refused": error.text(COMMAND_LINE), "warnings": [], "pairs": [], "notes": [], "differences": {}}


def _line(line: ScorerComparison, reach: Mapping[float, float]) -> dict[str, Any]:
    """A scorer in a pair of runs, over all samples or those of a slice."""
    size, a, b, change, interval, p, _, verdict = map(to_jsonable, line_cells(line, reach))
    return {
        "title": line.title,
        "lower_is_better": line.info.lower_is_better,
        "key": line.key,
        "n": size["text"],
        "regressed": getattr(line.result, "losses", 0),
        "fixed": getattr(line.result, "wins", 0),
        "cells": {"a": a, "b": b, "difference": change, "interval": interval, "p": p, "verdict": verdict},
    }


def build(comparison: Compared, runs: Sequence[Run], indexes: Sequence[Index], file: Path, stamp: str) -> None:
    """Store a comparison with its samples. It is written under another name first, so that it is there as a whole or
    not at all.

    Args:
        comparison: The comparison.
        runs: The runs, with the one that others are compared with first.
        indexes: Their indexes.
        file: Where the comparison goes.
        stamp: What identifies the state of the runs.

    Raises:
        StorageError: The disk is full.
    """
    rows = None if comparison.head["refused"] else _Rows(comparison, runs, indexes)
    about = {"format": FORMAT, "stamp": stamp, "head": json.dumps(comparison.head)}
    with written(file, WHAT) as connection:
        _make_tables(connection, len(runs), 0 if rows is None else len(rows.lines))
        if rows is not None:
            rows.write(connection)
            write_scores(connection, comparison.pairs, runs[0].samples, (facet.name for facet in indexes[0].facets))
            stamps = [index.stamp for index in indexes]
            stored = {
                "aligned": rows.aligned,
                "scorers": rows.about,
                "totals": rows.totals(connection),
                "indexes": stamps,
            }
            about |= {name: json.dumps(value) for name, value in stored.items()}
        connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())


def write_head(head: Mapping[str, Any], file: Path, stamp: str) -> None:
    """Store the head of a comparison without its samples. Arguments and errors as for `build`."""
    with written(file, WHAT) as connection:
        _make_tables(connection, 0, 0)
        about = {"format": FORMAT, "stamp": stamp, "head": json.dumps(head)}
        connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())


def _make_tables(connection: sqlite3.Connection, runs: int, scorers: int) -> None:
    for statement in (*tables(runs, scorers), *TABLES):
        connection.execute(statement)


class _Rows:
    """The samples of a comparison as rows of a table."""

    def __init__(self, comparison: Compared, runs: Sequence[Run], indexes: Sequence[Index]) -> None:
        self.runs, self.indexes = runs, indexes
        self._names: list[str] = []
        self._places: list[list[int | None]] = []
        """By row, the place of the sample in the index of each run."""
        self._row_of: list[dict[str, int]] = []
        """By run, the row of each sample."""
        self._outcomes: list[dict[int, tuple[Any, Any]]] = []
        """By run and row, for each scorer of the run whether the sample has a score, and whether it failed."""
        self.lines: dict[str, dict[int, PairedScores]] = {}
        """By scorer in the first run, the scores that are compared by the number of the other run."""
        numbers = {letter: number for number, letter in enumerate(letters_of(runs))}
        for line in comparison.head["data"]["scorers"]:
            letter, signature = line["b"], line["signature"]
            self.lines.setdefault(signature, {})[numbers[letter]] = comparison.pairs[letter, signature]

    @property
    def about(self) -> list[dict[str, Any]]:
        """The scorers, each with its place in the index of each run."""
        places = [{info.signature: n for n, info in enumerate(index.scorers)} for index in self.indexes]
        scorers: list[dict[str, Any]] = []
        for signature, lines in self.lines.items():
            line = next(iter(lines.values()))
            theirs = [places[n].get(lines[n].info_b.signature) if n in lines else None for n in range(1, len(places))]
            scorers.append(
                {"title": line.title, "info": line.info.to_dict(), "places": [places[0].get(signature), *theirs]}
            )
        return scorers

    @property
    def aligned(self) -> list[bool]:
        """Whether the rows are numbered as in the index of each run."""
        numbers = range(len(self.runs))
        return [all(at[n] in (None, row) for row, at in enumerate(self._places, start=1)) for n in numbers]

    def write(self, connection: sqlite3.Connection) -> None:
        """Write all rows."""
        size = len(self.runs)
        self._place()
        for number, index in enumerate(self.indexes):
            rows = self._row_of[number]
            trials = ((number, place, rows[sample] + 1) for sample, place in index.places_of_trials())
            connection.executemany("INSERT INTO trials VALUES (?, ?, ?)", trials)
        differences, different = self._differences(), self._different_answers()
        places, pairs = [of["places"] for of in self.about], [*cells(size, range(len(self.lines)))]

        def values_of(row: int) -> tuple[Any, ...]:
            values = [differences[pair].get(row) for pair in pairs]
            known = [value for value in values if value is not None]
            low, high = (min(known), max(known)) if known else (None, None)
            change = NOTHING if low is None or high is None else max(high, -low)
            missing = [bits for own in places for bits in self._missing(row, own)]
            return (row + 1, self._names[row], *self._places[row], different[row], low, high, change, *values, *missing)

        marks = ", ".join("?" * (6 + size + len(pairs) + 2 * len(places)))
        connection.executemany(f"INSERT INTO rows VALUES ({marks})", map(values_of, range(len(self._names))))
        connection.execute("CREATE INDEX rows_change ON rows (change DESC, place)")
        connection.execute("CREATE INDEX rows_name ON rows (name, place)")

    def _place(self) -> None:
        """Give every sample its row: those of the first run in its order, then those that it doesn't have."""
        partners = [dict[str, str]() for _ in self.runs]
        pairings = {number: pair.pairing for of in self.lines.values() for number, pair in of.items()}
        for number, pairing in pairings.items():
            of = pairing.partners or {}
            partners[number] = {storable(theirs): storable(ours) for theirs, ours in of.items()}
        used, others = set[str](), dict[str, int]()
        for number, index in enumerate(self.indexes):
            own, outcomes = dict[str, int](), dict[int, tuple[Any, Any]]()
            for sample, place, scored, failed in index.samples():
                row = None
                if number:
                    ours = partners[number].get(sample, "") if partners[number] else sample
                    row = self._row_of[0].get(ours, others.get(sample))
                if row is None:
                    row = len(self._names)
                    self._names.append(_new_name(sample, used, number))
                    self._places.append([None] * len(self.runs))
                    if number:
                        others[sample] = row
                self._places[row][number] = place
                own[sample], outcomes[row] = row, (scored, failed)
            self._row_of.append(own)
            self._outcomes.append(outcomes)

    def _missing(self, row: int, places: Sequence[int | None]) -> tuple[int, int]:
        """The runs in which a scorer failed, and those with a score that the first run lacks, or without one that it
        has, as bits. places: those of the scorer."""
        failed = scored = compared_with = 0
        for number, (outcomes, place) in enumerate(zip(self._outcomes, places, strict=True)):
            if place is not None:
                compared_with |= (number > 0) << number
                if (outcome := outcomes.get(row)) is not None:
                    scored |= bool(outcome[0][place]) << number
                    failed |= bool(outcome[1][place]) << number
        return failed, (~scored if scored & 1 else scored) & compared_with

    def _differences(self) -> dict[tuple[int, int], dict[int, float]]:
        """By run and scorer, how much better the score of each row is than in the first run."""
        found: dict[tuple[int, int], dict[int, float]] = {}
        rows = self._row_of[0]
        for scorer, lines in enumerate(self.lines.values()):
            for number in range(1, len(self.runs)):
                of = found[number, scorer] = {}
                if number in lines:
                    unit = (-1 if lines[number].info.lower_is_better else 1) / lines[number].info.scale
                    of |= {rows[storable(name)]: (b - a) * unit for name, a, b in lines[number].known.rows}
        return found

    def _different_answers(self) -> list[int]:
        """The runs with another answer than the first, as bits by row. With trials, any other answer counts."""
        answers: list[dict[int, int]] = []
        for run, rows in zip(self.runs, self._row_of, strict=True):
            keeps, of = bool(run.keeps_reasoning), dict[int, int]()
            for sample in run.samples or ():
                if (row := rows.get(storable(sample.id))) is not None:
                    of[row] = of.get(row, 0) + hash(scored_answer(sample, keeps_reasoning=keeps).answer)
            answers.append(of)
        first = answers[0]
        return [
            sum((row in first and of.get(row, first[row]) != first[row]) << number for number, of in enumerate(answers))
            for row in range(len(self._names))
        ]

    def totals(self, connection: sqlite3.Connection) -> dict[str, int]:
        """How many rows have each change: of any run and scorer, and of each."""
        size = len(self.runs)
        everything = range(len(self.lines))
        keys: list[str] = []
        terms: list[str] = []
        for run in (None, *range(1, size)):
            for scorer in (None, *everything):
                for change in SHOWN:
                    keys.append(total_key(change, run, scorer))
                    chosen = everything if scorer is None else [scorer]
                    terms.append(f"total({condition(change, size, chosen, run)} != 0)")
        counts: list[float] = []
        for start in range(0, len(terms), 500):
            counts += connection.execute(f"SELECT {', '.join(terms[start : start + 500])} FROM rows").fetchone()
        every = connection.execute("SELECT count(*) FROM rows").fetchone()[0]
        return {"all": every, **dict(zip(keys, map(int, counts), strict=True))}


def total_key(change: str, run: int | None, scorer: int | None) -> str:
    """What the number of rows with a change is stored by."""
    return f"{change} {run} {scorer}"


def _new_name(sample: str, names: set[str], number: int) -> str:
    """The name of a row: the ID of the sample, unless another one has it."""
    name = sample if sample not in names else f"{sample} (run {number + 1})"
    while name in names:
        name += "'"
    names.add(name)
    return name
