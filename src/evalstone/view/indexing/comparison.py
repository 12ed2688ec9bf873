# ruff: noqa: S608 - statements are put together from our own names
"""A stored comparison of runs, open for reading."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evalstone.errors import ConfigError, unknown
from evalstone.results.summary import ScorerInfo
from evalstone.view.compare_query import CompareQuery, Show
from evalstone.view.indexing.comparison_build import total_key
from evalstone.view.indexing.comparison_scores import Pairs, stored_keys, stored_pairs
from evalstone.view.indexing.comparison_tables import FORMAT, cells, condition, order
from evalstone.view.indexing.files import refuse_damage
from evalstone.view.indexing.index import Index, Numbers, OutdatedIndex, numbers
from evalstone.view.indexing.paging import MOST_AT_ONCE, every_page, page_of, read_place
from evalstone.view.indexing.tables import choice
from evalstone.view.search_words import search_of

PAGE = 25
SPARSE = 64
"""If fewer than one of so many rows is found, these are put in order, rather than found in the order of all."""
Found: TypeAlias = NDArray[np.bool_]
"""By the place of a row, whether it is found."""


@dataclass(frozen=True)
class ComparedScorer:
    """A scorer that runs are compared by."""

    title: str
    info: ScorerInfo
    places: tuple[int | None, ...]
    """Its place among the scorers of each run; None in a run that isn't compared by it."""


class ComparedSample(NamedTuple):
    """A sample in several runs."""

    place: int
    name: str
    places: tuple[int | None, ...]
    """Its place in the index of each run: that of its first trial."""
    different: int
    """The runs with another answer than the first, as bits."""
    differences: Mapping[tuple[int, int], float | None]
    """By run and scorer, how much better the score is than in the first run, in parts of the scale."""


class ComparedPage(NamedTuple):
    """Some of the samples that a query finds."""

    samples: list[ComparedSample]
    previous: str
    following: str


class StoredComparison:
    """A comparison of runs: its head, and its samples as soon as it has the indexes of the runs.

    Args:
        file: The stored comparison.

    Raises:
        OutdatedIndex: It isn't there, is of another version, or is damaged.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.indexes: tuple[Index, ...] = ()
        self.slices: Mapping[str, Any] | None = None
        """What a page says of the slices; None if there are none."""
        self._last: tuple[Any, Found | None] = None, None
        """What was looked for last, and what was found: a page asks several times."""
        try:
            self._connection = sqlite3.connect(
                f"{file.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False, isolation_level=None
            )
            self._about: dict[str, str] = dict(self._connection.execute("SELECT name, value FROM about"))
        except sqlite3.Error as error:
            raise OutdatedIndex(str(error)) from None
        if self._about.get("format") != FORMAT:
            self._connection.close()
            raise OutdatedIndex(f"{file} is of another version")
        self.stamp = self._about["stamp"]

    def take(self, indexes: Sequence[Index]) -> bool:
        """Use the indexes of the runs, and close them in the end. Whether the samples are stored, and in them."""
        self.indexes = tuple(indexes)
        return json.loads(self._about.get("indexes", "null")) == [index.stamp for index in indexes]

    def close(self) -> None:
        """Close the file, and the indexes."""
        self._connection.close()
        for index in self.indexes:
            index.close()

    def __enter__(self) -> StoredComparison:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self.close()
        refuse_damage(error, self.file, *(index.file for index in self.indexes))

    @functools.cached_property
    def head(self) -> Mapping[str, Any]:
        """What a page says of the comparison."""
        return json.loads(self._about["head"])

    @functools.cached_property
    def scorers(self) -> tuple[ComparedScorer, ...]:
        """The scorers that the runs are compared by."""
        stored = json.loads(self._about.get("scorers", "[]"))
        return tuple(
            ComparedScorer(each["title"], ScorerInfo(**each["info"]), tuple(each["places"])) for each in stored
        )

    @property
    def pairs(self) -> Pairs:
        """The scores that are compared."""
        return stored_pairs(self._connection)

    def keys(self, field: str) -> Mapping[str, str] | None:
        """The slice key of each sample by its ID in the first run; None if they aren't stored."""
        return stored_keys(self._connection, field)

    def total(self, show: Show, query: CompareQuery) -> int:
        """How many samples have a change, of the scorer and the run of a query. Raises ConfigError for unknown ones."""
        totals = json.loads(self._about["totals"])
        return totals["all"] if show == "all" else totals[total_key(show, self.run(query), self._scorer(query))]

    def run(self, query: CompareQuery) -> int | None:
        """The number of the run of a query. Raises ConfigError for an unknown one."""
        letters = list(self.head["data"]["runs"])[1:]
        if not query.run:
            return None
        if query.run not in letters:
            raise ConfigError(unknown("run", query.run, letters))
        return letters.index(query.run) + 1

    def count(self, query: CompareQuery) -> int:
        """How many samples a query finds. Raises ConfigError if it names a scorer, run or field that isn't there."""
        found = self._found(query)
        return self.total(query.show, query) if found is None else int(np.count_nonzero(found))

    def page(self, query: CompareQuery, limit: int = PAGE) -> ComparedPage:
        """A page of the samples that a query finds. Errors as for `count`."""
        cursor, back = query.before or query.after, bool(query.before)
        rows_of, where, values = self._source(query)
        by = order(query.sort, len(self.indexes), self._chosen(query), self.run(query))
        down = (query.sort in ("change", "better")) != back
        place = f"place {'<' if back else '>'} :place"
        if cursor:
            values["value"], values["place"] = read_place(cursor)
            where += f" AND ({by} {'<' if down else '>'} :value OR ({by} = :value AND {place}))"
        rows: list[tuple[Any, ...]] = self._connection.execute(
            f"SELECT {by}, place, name, {self._columns} FROM {rows_of} WHERE {where} "
            f"ORDER BY {by}{' DESC' * down}, place{' DESC' * back} LIMIT {limit + 1}",
            values,
        ).fetchall()
        shown, *places = page_of(
            rows, limit, lambda row: json.dumps(row[:2], ensure_ascii=False), back=back, cursor=cursor
        )
        return ComparedPage([self._sample(row) for row in shown], *places)

    def named(self, name: str) -> ComparedSample | None:
        """The sample of this name; None if there is none."""
        row = self._connection.execute(f"SELECT 0, place, name, {self._columns} FROM rows WHERE name = ?", (name,))
        found = row.fetchone()
        return None if found is None else self._sample(found)

    def at(self, run: int, place: int) -> ComparedSample | None:
        """The sample whose first trial has this place in the index of a run; None if there is none."""
        row = self._connection.execute(f"SELECT 0, place, name, {self._columns} FROM rows WHERE p{run} = ?", (place,))
        found = row.fetchone()
        return None if found is None else self._sample(found)

    def neighbors(
        self, query: CompareQuery, sample: ComparedSample
    ) -> tuple[ComparedSample | None, ComparedSample | None]:
        """The samples before and after one in the order of a query, which needn't find that one. Errors as for
        `count`."""
        by = order(query.sort, len(self.indexes), self._chosen(query), self.run(query))
        row = self._connection.execute(f"SELECT {by}, place FROM rows WHERE place = ?", (sample.place,)).fetchone()
        cursor = json.dumps(row, ensure_ascii=False)
        before = self.page(replace(query, before=cursor, after=""), 1).samples
        after = self.page(replace(query, after=cursor, before=""), 1).samples
        return before[0] if before else None, after[0] if after else None

    def every(self, query: CompareQuery) -> Iterator[ComparedSample]:
        """All samples that a query finds, in its order."""
        for page in every_page(lambda after: self.page(replace(query, after=after, before=""), MOST_AT_ONCE)):
            yield from page.samples

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return [*cells(len(self.indexes), range(len(self.scorers)))]

    @property
    def _columns(self) -> str:
        places = (f"p{run}" for run in range(len(self.indexes)))
        return ", ".join([*places, "different", *(f"d{run}_{scorer}" for run, scorer in self._pairs)])

    def _sample(self, row: Sequence[Any]) -> ComparedSample:
        _, place, name, *rest = row
        size = len(self.indexes)
        return ComparedSample(
            place, name, tuple(rest[:size]), rest[size], dict(zip(self._pairs, rest[size + 1 :], strict=True))
        )

    def _scorer(self, query: CompareQuery) -> int | None:
        titles = [choice(scorer.title) for scorer in self.scorers]
        if not query.scorer:
            return None
        if choice(query.scorer) not in titles:
            raise ConfigError(unknown("scorer", query.scorer, titles))
        return titles.index(choice(query.scorer))

    def _chosen(self, query: CompareQuery) -> Sequence[int]:
        scorer = self._scorer(query)
        return range(len(self.scorers)) if scorer is None else [scorer]

    def _source(self, query: CompareQuery) -> tuple[str, str, dict[str, Any]]:
        """The table, the condition and its values for what a query finds."""
        found = self._found(query)
        if found is None:
            return "rows", self._condition(query), {}
        places = np.flatnonzero(found)
        if len(places) * SPARSE >= len(found):
            # The first of many are soon found in the order of the list.
            self._connection.create_function("is_found", 1, found.tobytes().__getitem__)
            return "rows", "is_found(place)", {}
        return "rows NOT INDEXED", "place IN (SELECT value FROM json_each(:found))", {"found": str(places.tolist())}

    def _condition(self, query: CompareQuery) -> str:
        """The rows with the change of a query, as an expression."""
        chosen, run = self._chosen(query), self.run(query)
        return "1" if query.show == "all" else condition(query.show, len(self.indexes), chosen, run)

    def _found(self, query: CompareQuery) -> Found | None:
        """By place, whether a query finds the row; None if it neither searches nor names a field. Errors as for
        `count`."""
        search = search_of(query.q)
        if not (search or query.field):
            return None
        key = (search, query.field, where := self._condition(query))
        if self._last[0] != key:
            finders: list[Callable[[Index], Numbers]] = []
            if search:
                finders.append(lambda index: index.places_searched(query.q))
            for name, value in query.field:
                known = dict.fromkeys(facet.name for index in self.indexes for facet in index.facets)
                if choice(name) not in known:
                    raise ConfigError(unknown("field", name, known))
                finders.append(functools.partial(Index.places_with, name=name, value=value))
            found = np.ones(self._size, bool)
            for finder in finders:
                found &= self._in_any(finder)
            if query.show != "all":
                with_change = np.zeros(self._size, bool)
                select = f"SELECT group_concat(place) FROM rows NOT INDEXED WHERE {where}"
                with_change[numbers(self._connection, select)] = True
                found &= with_change
            self._last = key, found
        return self._last[1]

    def _in_any(self, finder: Callable[[Index], Numbers]) -> Found:
        """By place, whether the row is at any of the places that are found in the index of any run."""
        found = np.zeros(self._size, bool)
        for number, index in enumerate(self.indexes):
            places = finder(index)
            if not index.has_trials and self._aligned[number]:
                found[places] = True
                continue
            in_index = np.zeros(index.totals["all"] + 1, bool)
            in_index[places] = True
            if index.has_trials:
                of_trials, rows = (self._column(name, f"trials WHERE run = {number}") for name in ("place", "row"))
                found[rows[in_index[of_trials]]] = True
            else:
                found[1:] |= in_index[self._column(f"ifnull(p{number}, 0)", "rows NOT INDEXED")]
        return found

    def _column(self, expression: str, table: str) -> Numbers:
        """The numbers that an expression has in the rows of a table, in the order of their places."""
        column = f"SELECT {expression} AS number FROM {table} ORDER BY place"
        return numbers(self._connection, f"SELECT group_concat(number) FROM ({column})")

    @functools.cached_property
    def _size(self) -> int:
        """The number of rows, and one: places begin with 1."""
        return int(json.loads(self._about["totals"])["all"]) + 1

    @functools.cached_property
    def _aligned(self) -> Sequence[bool]:
        """Whether the rows are numbered as in the index of each run."""
        return json.loads(self._about["aligned"])
