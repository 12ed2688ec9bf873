"""A stored comparison of runs, open for reading."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evalstone._core.json import storable
from evalstone._core.packed_texts import PackedTexts
from evalstone.errors import ConfigError, unknown
from evalstone.results.summary import ScorerInfo
from evalstone.types.scorer_names import not_scored
from evalstone.view.compare_query import CompareQuery, Show
from evalstone.view.indexing.column_store import Column, Cursor, Mask, StoredColumns, ordered
from evalstone.view.indexing.comparison_build import total_key
from evalstone.view.indexing.comparison_scores import Pairs, stored_keys, stored_pairs
from evalstone.view.indexing.comparison_tables import FORMAT, cells, condition, order
from evalstone.view.indexing.files import refuse_damage
from evalstone.view.indexing.index import Index, Numbers, OutdatedIndex
from evalstone.view.indexing.paging import MOST_AT_ONCE, page_of, read_place
from evalstone.view.indexing.tables import choice
from evalstone.view.search_words import search_of

PAGE = 25


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
        self._last: tuple[Any, Mask | None] = None, None
        """What was looked for last, and what was found: a page asks several times."""
        self._ordered: tuple[Any, Column] = None, PackedTexts()
        """What rows were ordered by last, and the column of it."""
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
        if not (search_of(query.q) or query.field):
            return self.total(query.show, query)
        found = self._found(query)
        return self._size if found is None else int(np.count_nonzero(found))

    def page(self, query: CompareQuery, limit: int = PAGE) -> ComparedPage:
        """A page of the samples that a query finds. Errors as for `count`."""
        cursor, back = query.before or query.after, bool(query.before)
        rows = self._rows(query, read_place(cursor) if cursor else None, limit + 1, back=back)
        shown, *places = page_of(rows, limit, lambda row: self._cursor(query, row), back=back, cursor=cursor)
        return ComparedPage(self._samples(shown), *places)

    def named(self, name: str) -> ComparedSample | None:
        """The sample of this name; None if there is none."""
        row = self._columns.find("name", storable(name))
        return None if row is None else self._samples([row])[0]

    def at(self, run: int, place: int) -> ComparedSample | None:
        """The sample whose first trial has this place in the index of a run; None if there is none."""
        rows = np.flatnonzero(self._columns.numbers(f"p{run}") == place)
        return self._samples([int(rows[0])])[0] if rows.size else None

    def neighbors(
        self, query: CompareQuery, sample: ComparedSample
    ) -> tuple[ComparedSample | None, ComparedSample | None]:
        """The samples before and after one in the order of a query, which needn't find that one. Errors as for
        `count`."""
        cursor = read_place(self._cursor(query, sample.place - 1))
        found = (self._samples(self._rows(query, cursor, 1, back=back)) for back in (True, False))
        before, after = (samples[0] if samples else None for samples in found)
        return before, after

    def every(self, query: CompareQuery) -> Iterator[ComparedSample]:
        """All samples that a query finds, in its order."""
        rows = self._rows(query, None, self._size, back=False)
        for start in range(0, len(rows), MOST_AT_ONCE):
            yield from self._samples(rows[start : start + MOST_AT_ONCE])

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return [*cells(len(self.indexes), range(len(self.scorers)))]

    @functools.cached_property
    def _columns(self) -> StoredColumns:
        return StoredColumns(self._connection, json.loads(self._about["columns"]))

    def _samples(self, rows: Sequence[int]) -> list[ComparedSample]:
        columns, pairs = self._columns, self._pairs
        names, different = columns.texts_at("name", rows), columns.numbers_at("different", rows)
        places = [columns.numbers_at(f"p{run}", rows) for run in range(len(self.indexes))]
        changes = [columns.numbers_at(f"d{run}_{scorer}", rows) for run, scorer in pairs]
        return [
            ComparedSample(
                row + 1,
                names[number],
                tuple(of[number] or None for of in places),
                different[number],
                dict(zip(pairs, (of[number] for of in changes), strict=True)),
            )
            for number, row in enumerate(rows)
        ]

    def _rows(self, query: CompareQuery, cursor: Cursor | None, limit: int, *, back: bool) -> list[int]:
        """Rows that a query finds, after a cursor, or before it."""
        down = query.sort in ("change", "better")
        return ordered(self._order(query), self._found(query), cursor, limit, descending=down, back=back)

    def _order(self, query: CompareQuery) -> Column:
        if query.sort == "id":
            return self._columns.texts("name")
        if query.sort == "order":
            return np.arange(1, self._size + 1)
        key = query.sort, query.scorer, query.run
        if self._ordered[0] != key:
            chosen, run = self._chosen(query), self.run(query)
            self._ordered = key, order(self._columns.numbers, query.sort, len(self.indexes), chosen, run)
        return self._ordered[1]

    def _cursor(self, query: CompareQuery, row: int) -> str:
        """The place of a row in the order of a query."""
        by = self._order(query)
        value = by[row] if isinstance(by, PackedTexts) else by[row].item()
        return json.dumps([value, row + 1], ensure_ascii=False)

    def _scorer(self, query: CompareQuery) -> int | None:
        titles = [choice(scorer.title) for scorer in self.scorers]
        if not query.scorer:
            return None
        if choice(query.scorer) not in titles:
            raise ConfigError(not_scored(query.scorer, titles))
        return titles.index(choice(query.scorer))

    def _chosen(self, query: CompareQuery) -> Sequence[int]:
        scorer = self._scorer(query)
        return range(len(self.scorers)) if scorer is None else [scorer]

    def _found(self, query: CompareQuery) -> Mask | None:
        """Which rows a query finds; None for all. Errors as for `count`."""
        key = (search_of(query.q), query.field, query.show, self._chosen(query), self.run(query))
        if self._last[0] != key:
            found: Mask | None = None
            for each in self._conditions(query):
                found = each if found is None else found & each
            self._last = key, found
        return self._last[1]

    def _conditions(self, query: CompareQuery) -> Iterator[Mask]:
        if search_of(query.q):
            yield self._in_any(lambda index: index.places_searched(query.q))
        for name, value in query.field:
            known = dict.fromkeys(facet.name for index in self.indexes for facet in index.facets)
            if choice(name) not in known:
                raise ConfigError(unknown("field", name, known))
            yield self._in_any(functools.partial(Index.places_with, name=name, value=value))
        if query.show != "all":
            chosen = self._chosen(query)
            yield condition(self._columns.numbers, query.show, len(self.indexes), chosen, self.run(query))

    def _in_any(self, finder: Callable[[Index], Numbers]) -> Mask:
        """Which rows are at any of the places that are found in the index of any run."""
        found = np.zeros(self._size, np.bool_)
        for number, index in enumerate(self.indexes):
            places = finder(index)
            if f"t{number}" in self._columns:
                found[self._columns.numbers(f"t{number}")[places - 1]] = True
            elif self._aligned[number]:
                found[places - 1] = True
            else:
                in_index = np.zeros(index.totals["all"] + 1, np.bool_)
                in_index[places] = True
                found |= in_index[self._columns.numbers(f"p{number}")]
        return found

    @property
    def _size(self) -> int:
        """The number of rows."""
        return int(json.loads(self._about["totals"])["all"])

    @functools.cached_property
    def _aligned(self) -> Sequence[bool]:
        """Whether the rows are numbered as in the index of each run."""
        return json.loads(self._about["aligned"])
