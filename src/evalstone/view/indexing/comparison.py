# ruff: noqa: S608 - statements are put together from our own names
"""A stored comparison of runs, open for reading."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from evalstone.errors import ConfigError, unknown
from evalstone.results.summary import ScorerInfo
from evalstone.view.compare_query import CompareQuery, Show
from evalstone.view.indexing.comparison_build import total_key
from evalstone.view.indexing.comparison_scores import Pairs, stored_keys, stored_pairs
from evalstone.view.indexing.comparison_tables import FORMAT, cells, condition, order
from evalstone.view.indexing.files import refuse_damage
from evalstone.view.indexing.index import Index, OutdatedIndex
from evalstone.view.indexing.paging import FEW, MOST_AT_ONCE, every_page, page_of, read_place
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
        self._found: dict[tuple[Any, ...], str] = {}
        """Tables of the places that a search found, by what was searched for."""
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
        if not (query.q or query.field):
            return self.total(query.show, query)
        where, values = self._where(query)
        if query.show == "all" and len(found := self._searched(query)) == 1:
            return self._size(found[0])
        return self._connection.execute(f"SELECT count(*) FROM rows NOT INDEXED WHERE {where}", values).fetchone()[0]

    def page(self, query: CompareQuery, limit: int = PAGE) -> ComparedPage:
        """A page of the samples that a query finds. Errors as for `count`."""
        cursor, back = query.before or query.after, bool(query.before)
        # The index in this order would be walked to its end for what a search or another filter finds rarely.
        sizes = [self._size(found) for found in self._searched(query)]
        walk = query.show == "all" and min(sizes, default=0) >= FEW
        where, values = self._where(query, walk=walk)
        by = order(query.sort, len(self.indexes), self._chosen(query), self.run(query))
        down = (query.sort in ("change", "better")) != back
        table = "rows NOT INDEXED" if sizes and not walk else "rows"
        place = f"place {'<' if back else '>'} :place"
        if cursor:
            values["value"], values["place"] = read_place(cursor)
            where += f" AND ({by} {'<' if down else '>'} :value OR ({by} = :value AND {place}))"
        rows: list[tuple[Any, ...]] = self._connection.execute(
            f"SELECT {by}, place, name, {self._columns} FROM {table} WHERE {where} "
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

    def _where(self, query: CompareQuery, *, walk: bool = False) -> tuple[str, dict[str, Any]]:
        """The condition of a query, with its values. walk: whether rows are taken in their order and then looked for in
        what a search found, and not the other way round."""
        terms = ["1"]
        chosen, run = self._chosen(query), self.run(query)
        if query.show != "all":
            terms.append(condition(query.show, len(self.indexes), chosen, run))
        terms += [f"{'+' * walk}place IN {found}" for found in self._searched(query)]
        return " AND ".join(terms), {}

    def _searched(self, query: CompareQuery) -> list[str]:
        """The tables of the rows that the search and each field of a query find in any run."""
        found: list[str] = []
        if query.q and (search := search_of(query.q)):
            found.append(self._in_any("SELECT rowid FROM run.texts WHERE texts MATCH ? ORDER BY rowid", search))
        for name, value in query.field:
            if not any(choice(name) == facet.name for index in self.indexes for facet in index.facets):
                known = dict.fromkeys(facet.name for index in self.indexes for facet in index.facets)
                raise ConfigError(unknown("field", name, known))
            found.append(self._in_any("SELECT place FROM run.fields WHERE name = ? AND value = ?", name, choice(value)))
        return found

    def _size(self, table: str) -> int:
        return self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]

    def _in_any(self, select: str, *values: str) -> str:
        """A table of the rows of which a statement selects the place in the index of any run. A name of a field is
        replaced by its number there."""
        key = (select, *values)
        if key not in self._found:
            self._found[key] = table = f"found{len(self._found)}"
            execute = self._connection.execute
            execute("PRAGMA temp_store=MEMORY")
            execute(f"CREATE TEMP TABLE {table} (place INTEGER PRIMARY KEY)")
            for number, index in enumerate(self.indexes):
                bound: list[Any] = [*values]
                if len(bound) == 2:
                    bound[0] = index.field_number(values[0])
                rows = f"SELECT place FROM rows WHERE p{number} IN ({select})"
                if index.has_trials:
                    rows = f"SELECT row FROM trials WHERE run = {number} AND place IN ({select})"
                elif self._aligned[number]:
                    rows = select
                execute("ATTACH ? AS run", (f"{index.file.resolve().as_uri()}?mode=ro",))
                execute(f"INSERT OR IGNORE INTO {table} {rows}", bound)
                execute("DETACH run")
        return self._found[key]

    @functools.cached_property
    def _aligned(self) -> Sequence[bool]:
        """Whether the rows are numbered as in the index of each run."""
        return json.loads(self._about["aligned"])
