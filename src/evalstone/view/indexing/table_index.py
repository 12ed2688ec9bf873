# ruff: noqa: S608 - statements are put together from our own names
"""An index whose cases are rows of a table."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evalstone._core.json import storable
from evalstone._core.packed_texts import PackedTexts
from evalstone.datasets.stored import sample_of
from evalstone.types import Record
from evalstone.view.indexing.index import OUTCOMES, Case, Index, Numbers, Samples, Stored, numbers
from evalstone.view.indexing.paging import FEW, read_place
from evalstone.view.indexing.tables import FAILED, SCORED, choice
from evalstone.view.query import SampleQuery
from evalstone.view.search_words import search_of


class TableIndex(Index):
    """The index of a run whose cases are rows of a table, with records in the packs of samples."""

    def __init__(self, file: Path, connection: sqlite3.Connection, about: Mapping[str, str]) -> None:
        super().__init__(file, connection, about)
        self._found = "", 0
        """The search whose cases are in the table of hits, and their number."""

    @property
    def has_trials(self) -> bool:
        return self._connection.execute("SELECT 1 FROM cases WHERE trial IS NOT NULL").fetchone() is not None

    def count(self, query: SampleQuery) -> int:
        if not query.is_filtered:
            return self.totals["all"]
        if (hits := self._only_searched(query)) is not None:
            return hits
        where, values = self._where(query)
        return int(
            self._connection.execute(f"SELECT count(*) FROM cases NOT INDEXED WHERE {where}", values).fetchone()[0]
        )

    def case(self, key: str) -> Case | None:
        row = self._connection.execute(f"{self._select} WHERE key = ?", (storable(key),)).fetchone()
        return None if row is None else _case(row)

    def samples(self) -> Samples:
        scorers, ids, places, of = range(len(self.scorers)), PackedTexts(), list[int](), list[tuple[int | None, ...]]()
        cells = "".join(f", max(o{n} = {kind})" for kind in (SCORED, FAILED) for n in scorers)
        query = f"SELECT sample, min(place){cells} FROM cases GROUP BY sample ORDER BY 2"
        for sample, place, *own in self._connection.execute(query):
            ids.append(sample)
            places.append(place)
            of.append(tuple(own))
        have = np.array([[bool(cell) for cell in own] for own in of], np.bool_).reshape(len(of), -1).T
        scored, failed = have[: len(scorers)], have[len(scorers) :]
        return Samples(ids, np.array(places, np.int64), scored, failed, self._samples_of_cases(ids))

    def _samples_of_cases(self, ids: PackedTexts) -> Numbers | None:
        """By case, the number of its sample; -1 at a place without one."""
        if not self.has_trials:
            return None
        numbers, last = {sample: number for number, sample in enumerate(ids)}, "SELECT max(place) FROM cases"
        found = np.full(self._connection.execute(last).fetchone()[0], -1, np.int64)
        for sample, place in self._connection.execute("SELECT sample, place FROM cases"):
            found[place - 1] = numbers[sample]
        return found

    def places_searched(self, words: str) -> Numbers:
        query = "SELECT group_concat(rowid) FROM texts WHERE texts MATCH ?"
        return numbers(self._connection, query, search_of(words))

    def trials(self, sample: str) -> list[Case]:
        query = f"{self._select} WHERE sample = ? AND trial IS NOT NULL ORDER BY trial"
        return [*map(_case, self._connection.execute(query, (storable(sample),)))]

    def stored(self, place: int) -> Stored:
        return _stored(self._data(place))

    def stored_within(self, place: int, most: int) -> Stored | None:
        line = self._line(place, most)
        return None if line is None else _stored(json.loads(line))

    def _sample(self, place: int) -> dict[str, Any] | None:
        return self._data(place)["sample"]

    def _data(self, place: int) -> dict[str, Any]:
        return json.loads(self._line(place) or b"")

    def _at(self, places: Sequence[int]) -> list[Case]:
        query = f"{self._select} WHERE place IN ({', '.join('?' * len(places))})"
        return [*map(_case, self._connection.execute(query, places))]

    @functools.cached_property
    def _select(self) -> str:
        cells = "".join(f", v{n}, o{n}" for n in range(len(self.scorers)))
        return f"SELECT place, key, sample, trial, goodness, cost, tokens, seconds, latency, loss{cells} FROM cases"

    def _cases(self, query: SampleQuery, column: str, cursor: str, limit: int, *, back: bool) -> list[Case]:
        where, values = self._where(query)
        # One pass over the table takes as long for every filter. An index in this order would be walked to its end for
        # what few samples have, such as failures, which have no mean; it is soon at the end of a page of many.
        table = "NOT INDEXED " * query.is_filtered
        if column in self._indexed and (self._only_searched(query) or 0) >= FEW:
            table, where = "", "+place IN hits"
        value, place = read_place(cursor) if cursor else (None, 0)
        rows: list[Sequence[Any]] = []
        without = f"{column} IS NULL", f"place {'<' if back else '>'} :place", f"place{' DESC' * back}"
        down = query.descending != back
        sign = "<" if down else ">"
        beyond = f"({column} {sign} :value OR ({column} = :value AND place {'<' if back else '>'} :place))"
        with_value = f"{column} IS NOT NULL", beyond, f"{column}{' DESC' * down}, place{' DESC' * back}"
        for part in (without, with_value) if back else (with_value, without):
            is_null = part is without
            if cursor and (is_null if back else not is_null) and (value is None) != is_null:
                continue  # the cursor is in the other part, behind all of this one
            at = bool(cursor) and (value is None) == is_null
            condition = f"{part[0]} AND {part[1]}" if at else part[0]
            text = f"{self._select} {table}WHERE {where} AND {condition} ORDER BY {part[2]} LIMIT :limit"
            bound = {**values, "value": value, "place": place, "limit": limit - len(rows)}
            rows += self._connection.execute(text, bound)
            if len(rows) == limit:
                break
        return [*map(_case, rows)]

    @property
    def _indexed(self) -> Sequence[str]:
        """The columns in whose order there is an index."""
        return "place", "key", "goodness", *(f"v{number}" for number in range(len(self.scorers)))

    def _only_searched(self, query: SampleQuery) -> int | None:
        """How many cases a query finds that does nothing but search; None for any other."""
        search = search_of(query.q)
        return self._find(search) if search and query.filters == SampleQuery(q=query.q) else None

    def _find(self, search: str) -> int:
        """Put the cases that a search finds into a table, once: a page asks for them several times. Their number."""
        if search != self._found[0]:
            self._connection.execute("PRAGMA temp_store=MEMORY")
            self._connection.execute("CREATE TEMP TABLE IF NOT EXISTS hits (place INTEGER PRIMARY KEY)")
            self._connection.execute("DELETE FROM hits")
            insert = "INSERT INTO hits SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid"
            self._found = search, self._connection.execute(insert, (search,)).rowcount
        return self._found[1]

    def _where(self, query: SampleQuery) -> tuple[str, dict[str, Any]]:
        """The condition of a query, with its values."""
        terms: list[str] = ["1"]
        values: dict[str, Any] = {}
        number = self._scorer(query.scorer) if query.scorer else None
        if query.show == "imperfect":
            if number is None:
                terms.append("(goodness IS NULL OR goodness < 1)")
            else:
                best = 0.0 if self.scorers[number].lower_is_better else self.scorers[number].scale
                terms.append(f"v{number} IS NOT :best")
                values["best"] = best
        elif query.show != "all":
            kind = OUTCOMES.index(query.show)
            terms.append(f"{query.show} > 0" if number is None else f"o{number} = {kind}")
        column = "goodness" if number is None else f"v{number}"
        for name, sign in (("min", ">="), ("max", "<=")):
            if (value := getattr(query, name)) is not None:
                terms.append(f"{column} {sign} :{name}")
                values[name] = value
        if query.loss:
            terms.append("loss = :loss")
            values["loss"] = query.loss
        if query.reason:
            own = "" if number is None else f" AND scorer = {number}"
            keys = f"SELECT key FROM groups WHERE text = :reason{own}"
            terms.append(f"place IN (SELECT place FROM members WHERE key IN ({keys}))")
            values["reason"] = choice(query.reason)
        for at, (name, value) in enumerate(query.field):
            known = self._field_number(name)
            terms.append(f"place IN (SELECT place FROM fields WHERE name = {known} AND value = :field{at})")
            values[f"field{at}"] = choice(value)
        if query.q and (search := search_of(query.q)):
            self._find(search)
            terms.append("place IN hits")
        return " AND ".join(terms), values


def _case(row: Sequence[Any]) -> Case:
    place, key, sample, trial, goodness, cost, tokens, seconds, latency, loss, *cells = row
    values, outcomes = tuple(cells[::2]), tuple(cells[1::2])
    return Case(place, key, sample, trial, goodness, cost, tokens, seconds, latency, loss, values, outcomes)


def _stored(data: dict[str, Any]) -> Stored:
    sample = None if data["sample"] is None else sample_of(data["sample"])
    return Stored(sample, tuple(map(Record.from_dict, data["records"])), data)
