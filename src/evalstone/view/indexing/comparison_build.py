"""How a comparison of runs is computed and stored."""

from __future__ import annotations

import functools
import json
import sqlite3
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evalstone._core.front_ends import COMMAND_LINE
from evalstone._core.json import storable, to_jsonable
from evalstone._core.packed_texts import PackedTexts
from evalstone.errors import ConfigError, NotComparable
from evalstone.report.notes import sentence_of
from evalstone.results.comparable_runs import BuiltPairs, paired_scorers
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
from evalstone.results.pairing import Pairing
from evalstone.results.run import Run
from evalstone.results.views.comparison import comparison_notes, line_cells, reach_of, slices_text
from evalstone.results.views.samples import scored_answer
from evalstone.stats.packed_scores import index_of
from evalstone.view.indexing.column_store import CHUNK, Array, ColumnWriter, Mask, StoredColumns
from evalstone.view.indexing.comparison_scores import TABLES as SCORE_TABLES
from evalstone.view.indexing.comparison_scores import Pairs, ScoreWriter, floats
from evalstone.view.indexing.comparison_tables import FORMAT, SHOWN, TABLES, condition
from evalstone.view.indexing.differences import stored_differences
from evalstone.view.indexing.files import written
from evalstone.view.indexing.index import Index, Numbers

WHAT = "the comparison"
_HALF = 1 << 63


class Compared(NamedTuple):
    """Runs compared with the first one."""

    head: dict[str, Any]
    """What pages say of the comparison, as JSON data."""
    pairs: BuiltPairs
    """The scores that are compared; none if the runs can't be compared."""


def compared(runs: Sequence[Run], *, anyway: bool) -> Compared:
    """Compare runs with the first one. anyway: whether mismatches are allowed."""
    first, second, *others = runs
    try:
        comparison = compare(first, second, *others, allow_mismatch=anyway)
    except ConfigError as error:
        return Compared({**_nothing(error), "mismatch": isinstance(error, NotComparable)}, BuiltPairs())
    letters = [*comparison.runs][1:]
    lines = comparison.scorers
    reach = reach_of((line.info.scale, line.result) for line in lines)
    of_second = ((line.info_b.signature, line) for line in lines if line.b == "B")
    head = {
        "refused": "",
        "warnings": [sentence_of(note, COMMAND_LINE) for note in comparison.notes if note.severity == "warning"],
        "notes": [*comparison_notes(comparison, COMMAND_LINE)],
        "pairs": [[_line(line, reach) for line in lines if line.b == letter] for letter in letters],
        "differences": stored_differences(of_second),
        "data": comparison.to_dict(),
    }
    return Compared(head, paired_in(comparison))


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
    reach = reach_of((line.info.scale, line.result) for line in lines)
    letters = dict.fromkeys(letter for letter, _ in pairs)
    return {
        "refused": "",
        "notes": [slices_text(corrected_for(lines)), *(sentence_of(note, COMMAND_LINE) for note in notes)],
        "pairs": [[_line(line, reach) for line in lines if line.b == letter] for letter in letters],
    }


def compared_before(runs: Sequence[Run], head: Mapping[str, Any]) -> Compared:
    """Runs with the head of their comparison, for which nothing is compared again."""
    compared, built = {(line["b"], line["signature"]) for line in head["data"]["scorers"]}, BuiltPairs()
    for letter, run in [*letters_of(runs).items()][1:]:
        pairs = paired_scorers(runs[0], run, missing="worst")
        built.pairings[letter] = pairs.pairing
        for infos in pairs.scorers:
            if (key := (letter, infos[0].signature)) in compared:
                built.add(key, partial(pairs.build, *infos))
    return Compared(dict(head), built)


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
    about = {"format": FORMAT, "stamp": stamp, "head": json.dumps(comparison.head)}
    with written(file, WHAT) as connection:
        _make_tables(connection)
        if not comparison.head["refused"]:
            stored = _Rows(comparison, runs, indexes).write(connection)
            about |= {name: json.dumps(value) for name, value in stored.items()}
        connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())


def write_head(head: Mapping[str, Any], file: Path, stamp: str) -> None:
    """Store the head of a comparison without its samples. Arguments and errors as for `build`."""
    with written(file, WHAT) as connection:
        _make_tables(connection)
        about = {"format": FORMAT, "stamp": stamp, "head": json.dumps(head)}
        connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in (*TABLES, *SCORE_TABLES):
        connection.execute(statement)


class _Rows:
    """The samples of a comparison as rows: those of the first run in its order, then those that it doesn't have."""

    def __init__(self, comparison: Compared, runs: Sequence[Run], indexes: Sequence[Index]) -> None:
        self.comparison, self.runs, self.indexes = comparison, runs, indexes
        self.samples = [index.samples() for index in indexes]
        self.numbers = {letter: number for number, letter in enumerate(letters_of(runs))}
        self.lines: dict[str, dict[str, Mapping[str, Any]]] = {}
        """By scorer in the first run, what the comparison says of it by the letter of the other run."""
        for line in comparison.head["data"]["scorers"]:
            self.lines.setdefault(line["signature"], {})[line["b"]] = line
        self.more_names: list[str] = []
        """The names of the rows that the first run doesn't have."""
        self.row_of: list[Numbers] = [np.arange(len(self.samples[0].ids))]
        """By run, the row of each of its samples."""
        self._place()
        self.size = len(self.samples[0].ids) + len(self.more_names)

    def write(self, connection: sqlite3.Connection) -> dict[str, Any]:
        """Write all rows; returns what is said of them."""
        columns = ColumnWriter(connection)
        names: Sequence[str] = self.samples[0].ids
        columns.texts("name", [*names, *self.more_names] if self.more_names else names)
        aligned = [self._write_places(number, columns) for number in range(len(self.runs))]
        scorers = self._write_differences(connection, columns)
        columns.numbers("different", self._different_answers())
        for number, scorer in enumerate(scorers):
            self._write_missing(number, scorer["places"], columns)
        return {
            "aligned": aligned,
            "scorers": scorers,
            "columns": columns.about,
            "totals": self._totals(StoredColumns(connection, columns.about)),
            "indexes": [index.stamp for index in self.indexes],
        }

    # ---- Rows ----

    def _place(self) -> None:
        used, others = set[str](), dict[str, int]()
        first, letters = self.samples[0].ids, [*self.numbers]
        for number, own in enumerate(self.samples[1:], start=1):
            rows = self._rows_in_first(own.ids, self.comparison.pairs.pairings[letters[number]])
            for place in np.flatnonzero(rows < 0).tolist():
                sample = own.ids[place]
                if sample not in others:
                    used = used or {*first}
                    others[sample] = len(first) + len(self.more_names)
                    self.more_names.append(_new_name(sample, used, number))
                rows[place] = others[sample]
            self.row_of.append(rows)
            if own.ids == first:
                self.samples[number] = own._replace(ids=first)  # in the same memory

    def _rows_in_first(self, ids: PackedTexts, pairing: Pairing) -> Numbers:
        """The row of each sample of another run, -1 for those that the first run doesn't have."""
        first, rows = self.samples[0].ids, np.full(len(ids), -1)
        if pairing.partners is None:
            ours, theirs = Pairing().match(first, ids)
            rows[index_of(theirs)] = np.asarray(ours)
            return rows
        partners = {storable(theirs): storable(ours) for theirs, ours in pairing.partners.items()}
        row_of = {name: row for row, name in enumerate(first)}
        rows[:] = [row_of.get(partners.get(name, ""), -1) for name in ids]
        return rows

    def _write_places(self, number: int, columns: ColumnWriter) -> bool:
        """Write the places of samples in the index of a run; returns whether rows are numbered as in it."""
        samples, rows = self.samples[number], self.row_of[number]
        places = np.zeros(self.size, np.int64)
        places[rows] = samples.places
        columns.numbers(f"p{number}", places)
        if samples.of_cases is not None:
            columns.numbers(f"t{number}", np.where(samples.of_cases < 0, -1, rows[samples.of_cases]))
        return bool(((places == 0) | (places == np.arange(1, self.size + 1))).all())

    # ---- Scores ----

    def _write_differences(self, connection: sqlite3.Connection, columns: ColumnWriter) -> list[dict[str, Any]]:
        """Write how much better each score is than in the first run; returns the scorers, each with its place in the
        index of each run."""
        samples, scores = self.runs[0].samples, ScoreWriter(connection)
        places = [{info.signature: n for n, info in enumerate(index.scorers)} for index in self.indexes]
        lowest, highest = np.full(self.size, np.nan), np.full(self.size, np.nan)
        scorers: list[dict[str, Any]] = []
        for scorer, (signature, lines) in enumerate(self.lines.items()):
            found: list[int | None] = [places[0].get(signature)]
            for letter, number in [*self.numbers.items()][1:]:
                values = np.full(self.size, np.nan)
                found.append(None)
                if letter in lines:
                    pair = self.comparison.pairs[letter, signature]
                    found[-1] = places[number].get(pair.info_b.signature)
                    self._set_differences(values, pair)
                    if samples is not None:
                        scores.add(number * len(self.lines) + scorer, letter, pair)
                    if not scorers[scorer:]:
                        scorers.append({"title": pair.title, "info": pair.info.to_dict(), "places": found})
                    del pair  # that of the next scorer may be large, too
                np.fmin(lowest, values, out=lowest)
                np.fmax(highest, values, out=highest)
                columns.numbers(f"d{number}_{scorer}", values)
        if samples is not None:
            scores.write_keys(samples, (facet.name for facet in self.indexes[0].facets))
        columns.numbers("change", np.maximum(highest, -lowest))
        columns.numbers("low", lowest)
        columns.numbers("high", highest)
        return scorers

    def _set_differences(self, values: Array, pair: PairedScores) -> None:
        a, b = (floats(of) for of in (pair.a, pair.b))
        unit = (-1 if pair.info.lower_is_better else 1) / pair.info.scale
        values[self._rows_of(pair.samples)] = (b - a) * unit + 0.0  # of no difference, -0.0 is 0.0

    def _rows_of(self, names: Sequence[str]) -> Any:
        """The rows of samples of the first run."""
        if isinstance(names, PackedTexts) and self._first_names is not None:  # noqa: SIM102
            if (places := names.places_in(self._first_names)) is not None:
                return places
        return [self._row_by_name[storable(name)] for name in names]

    @functools.cached_property
    def _first_names(self) -> PackedTexts | None:
        """The samples of the first run as its columns have them, if these are the rows in their order."""
        columns = self.runs[0].columns
        names = columns.samples(columns.rows(self.runs[0].scorers[0].signature))
        return names if isinstance(names, PackedTexts) and names == self.samples[0].ids else None

    @functools.cached_property
    def _row_by_name(self) -> Mapping[str, int]:
        return {name: row for row, name in enumerate(self.samples[0].ids)}

    def _write_missing(self, number: int, places: Sequence[int | None], columns: ColumnWriter) -> None:
        """Write the runs in which a scorer failed, and those with a score that the first run lacks, or without one that
        it has, as bits. places: those of the scorer."""
        failed: Array = np.zeros(self.size, self._bits)
        scored: Array = np.zeros(self.size, self._bits)
        compared_with = 0
        for run, (samples, rows, place) in enumerate(zip(self.samples, self.row_of, places, strict=True)):
            if place is not None:
                compared_with |= (run > 0) << run
                scored[rows[samples.scored[place]]] |= self._bits(1 << run)
                failed[rows[samples.failed[place]]] |= self._bits(1 << run)
        columns.numbers(f"f{number}", failed)
        columns.numbers(f"x{number}", np.where(scored & 1, ~scored, scored) & self._bits(compared_with))

    @property
    def _bits(self) -> Any:
        """The type of numbers with a bit for each run."""
        return np.min_scalar_type((1 << len(self.runs)) - 1).type

    # ---- Answers ----

    def _different_answers(self) -> Array:
        """The runs with another answer than the first, as bits by row. With trials, any other answer counts."""
        different = np.zeros(self.size, self._bits)
        if self.runs[0].samples is None:
            return different
        first, are_first = self._answers(0)
        for number in range(1, len(self.runs)):
            answers, are_there = self._answers(number)
            different[are_first & are_there & (answers != first)] |= self._bits(1 << number)
        return different

    def _answers(self, number: int) -> tuple[Array, Mask]:
        """A hash of the answers of a run by row, and which rows it has."""
        run, ids = self.runs[number], self.samples[number].ids
        rows = dict(zip(ids, self.row_of[number].tolist(), strict=True))
        keeps, found, are_there = bool(run.keeps_reasoning), array("q", bytes(8 * self.size)), bytearray(self.size)
        for sample in run.samples or ():
            if (row := rows.get(storable(sample.id))) is not None:
                answer = hash(scored_answer(sample, keeps_reasoning=keeps).answer)
                found[row] = (found[row] + answer + _HALF) % (2 * _HALF) - _HALF
                are_there[row] = True
        return np.frombuffer(found, np.int64), np.frombuffer(are_there, np.bool_)

    def _totals(self, stored: StoredColumns) -> dict[str, int]:
        """How many rows have each change: of any run and scorer, and of each."""
        size, everything = len(self.runs), range(len(self.lines))
        counts = Counter[str]()
        for chunk in range(-(-self.size // CHUNK)):
            columns = functools.cache(functools.partial(stored.in_chunk, chunk))
            for run in (None, *range(1, size)):
                for scorer in (None, *everything):
                    for change in SHOWN:
                        mask = condition(columns, change, size, everything if scorer is None else [scorer], run)
                        counts[total_key(change, run, scorer)] += int(np.count_nonzero(mask))
        return {"all": self.size, **counts}


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
