# ruff: noqa: S608 - statements are put together from our own names
"""The index of a run in blocks: what its cases are filtered and ordered by is in columns, and records stay in blocks.

A list is one pass over the columns that it needs. A page reads the few records that it shows.
"""

from __future__ import annotations

import functools
import itertools
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from evalstone._core.json import storable
from evalstone._core.storage import Location
from evalstone.datasets.stored import record_line, sample_of
from evalstone.results.record_blocks import BLOCKS, CALLS, RecordBlocks, block_name
from evalstone.types import Record
from evalstone.view.indexing.column_store import Column, Mask, StoredColumns, ordered
from evalstone.view.indexing.index import OUTCOMES, Case, Index, Numbers, Samples, Stored, numbers
from evalstone.view.indexing.paging import MOST_AT_ONCE, read_place
from evalstone.view.indexing.tables import FAILED, LOSSES, SCORED, TOKENIZE, choice
from evalstone.view.query import SampleQuery
from evalstone.view.search_words import search_of, terms_of

_MOST_BLOCKS = 8
"""The number of blocks that have a row group in memory, for the records of a page."""


class ColumnIndex(Index):
    """The index of a run in blocks. Case number n is in row n - 1."""

    def __init__(self, file: Path, connection: sqlite3.Connection, about: Mapping[str, str]) -> None:
        super().__init__(file, connection, about)
        self._columns = StoredColumns(connection, json.loads(about["columns"]))
        self._last: tuple[SampleQuery | None, Mask | None] = None, None
        """The filters that were asked for last, and what they find: a page asks several times."""
        self._blocks: dict[int, RecordBlocks] = {}

    @property
    def has_trials(self) -> bool:
        return "trial" in self._columns

    def count(self, query: SampleQuery) -> int:
        found = self._found(query)
        return self.totals["all"] if found is None else int(np.count_nonzero(found))

    def case(self, key: str) -> Case | None:
        row = self._columns.find("key", storable(key))
        return None if row is None else self._at([row + 1])[0]

    def samples(self) -> Samples:
        columns = StoredColumns(self._connection, self._columns.about)  # whose memory isn't kept
        outcomes = [columns.numbers(f"o{number}") for number in range(len(self.scorers))]
        scored, failed = (
            np.array([each == kind for each in outcomes]).reshape(len(outcomes), -1) for kind in (SCORED, FAILED)
        )
        if not self.has_trials:
            return Samples(columns.texts("key"), np.arange(1, self.totals["all"] + 1), scored, failed, None)
        texts, numbers = columns.texts("sample"), dict[str, int]()
        of_cases = np.array([numbers.setdefault(sample, len(numbers)) for sample in texts], np.int64)
        _, first = np.unique(of_cases, return_index=True)
        scored, failed = (_in_any(each, of_cases, len(numbers)) for each in (scored, failed))
        return Samples(texts.at(first.tolist()), first + 1, scored, failed, of_cases)

    def places_searched(self, words: str) -> Numbers:
        query = "SELECT group_concat(rowid) FROM texts WHERE texts MATCH ?"
        if json.loads(self._about["keys_in_search"]):
            return numbers(self._connection, query, search_of(words))
        found, terms = np.ones(self.totals["all"], np.bool_), terms_of(words)
        patterns = [_pattern_of(term, is_whole=is_whole) for term, is_whole in terms]
        in_any_key = self._columns.matching("key", "|".join(filter(None, patterns)))
        for (term, is_whole), pattern in zip(terms, patterns, strict=True):
            several = bool(terms[1:]) and in_any_key.any()
            has_term = self._columns.matching("key", pattern) if several else in_any_key.copy()
            has_term[numbers(self._connection, query, f'"{term}"' if is_whole else f'"{term}" *') - 1] = True
            found &= has_term
        return np.flatnonzero(found) + 1

    def trials(self, sample: str) -> list[Case]:
        if not self.has_trials:
            return []
        of_sample = self._columns.texts("sample").compared(storable(sample)) == 0
        rows = np.flatnonzero(of_sample & (self._columns.numbers("trial") > 0))
        return sorted(self._at((rows + 1).tolist()), key=lambda case: case.trial or 0)

    def stored(self, place: int) -> Stored:
        sample, records = self._sample(place), self._records(place)
        return Stored(
            None if sample is None else sample_of(sample),
            records,
            {"sample": sample, "records": [json.loads(record_line(record)) for record in records]},
        )

    def stored_within(self, place: int, most: int) -> Stored | None:
        return None if self._has_samples and self._line(place, most) is None else self.stored(place)

    def every(self, query: SampleQuery) -> Iterator[Case]:
        column = self._column(self._order(query))
        rows = ordered(column, self._found(query), None, self.totals["all"], descending=query.descending)
        for start in range(0, len(rows), MOST_AT_ONCE):
            yield from self._with_texts(self._at([row + 1 for row in rows[start : start + MOST_AT_ONCE]]))

    def _cases(self, query: SampleQuery, column: str, cursor: str, limit: int, *, back: bool) -> list[Case]:
        place = read_place(cursor) if cursor else None
        found, down = self._found(query), query.descending
        rows = ordered(self._column(column), found, place, limit, descending=down, back=back)
        return self._at([row + 1 for row in rows])

    def _column(self, name: str) -> Column:
        return np.arange(1, self.totals["all"] + 1) if name == "place" else self._columns.column(name)

    def _at(self, places: Sequence[int]) -> list[Case]:
        rows = [place - 1 for place in places]
        keys, scorers = self._columns.texts_at("key", rows), range(len(self.scorers))
        goodness, cost, tokens, seconds, latency, losses = (
            self._columns.numbers_at(name, rows)
            for name in ("goodness", "cost", "tokens", "seconds", "latency", "loss")
        )
        values, outcomes = (
            [*zip(*(self._columns.numbers_at(f"{name}{number}", rows) for number in scorers), strict=True)]
            for name in "vo"
        )
        samples = self._columns.texts_at("sample", rows) if self.has_trials else keys
        trials = self._columns.numbers_at("trial", rows) if self.has_trials else [0] * len(rows)
        loss: list[Any] = [LOSSES[code - 1] if code else None for code in losses]
        trial = [each or None for each in trials]
        columns = places, keys, samples, trial, goodness, cost, tokens, seconds, latency, loss, values, outcomes
        return [*itertools.starmap(Case, zip(*columns, strict=True))]

    def _sample(self, place: int) -> dict[str, Any] | None:
        return json.loads(self._line(place) or b"") if self._has_samples else None

    @functools.cached_property
    def _has_samples(self) -> bool:
        return self._connection.execute("SELECT 1 FROM packs LIMIT 1").fetchone() is not None

    def _records(self, place: int) -> tuple[Record, ...]:
        """The records of a case, from its block."""
        ends, step = self._columns.numbers("block ends"), len(self.scorers)
        number = int(np.searchsorted(ends, place - 1, "right"))
        if number not in self._blocks:
            while len(self._blocks) >= _MOST_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[number] = self._block(number)
        start = (place - 1 - (int(ends[number - 1]) if number else 0)) * step
        return self._blocks[number][start : start + step]

    def _block(self, number: int) -> RecordBlocks:
        about = json.loads(self._about["blocks"])
        folder, name = Location(about["folder"]), block_name(about["plan"], number)
        has_calls = self._columns.numbers("block calls")[number]
        calls = {number: folder / CALLS / name} if has_calls else {}
        return RecordBlocks(self.scorers, about["plan"], [folder / BLOCKS / name], calls, first=number)

    def _found(self, query: SampleQuery) -> Mask | None:
        """By row, whether a query finds the case; None for all. Raises ConfigError for unknown names."""
        if query.filters != self._last[0]:
            found: Mask | None = None
            for term in self._terms(query):
                found = term if found is None else found & term
            self._last = query.filters, found
        return self._last[1]

    def _terms(self, query: SampleQuery) -> Iterator[Mask]:
        """Each condition of a query."""
        number = self._scorer(query.scorer) if query.scorer else None
        value = self._columns.numbers("goodness" if number is None else f"v{number}")
        if query.show == "imperfect":
            best = (
                1.0 if number is None else 0.0 if self.scorers[number].lower_is_better else self.scorers[number].scale
            )
            yield ~(value >= 1) if number is None else value != best
        elif query.show != "all":
            kind, chosen = OUTCOMES.index(query.show), range(len(self.scorers)) if number is None else [number]
            yield np.logical_or.reduce([self._columns.numbers(f"o{each}") == kind for each in chosen])
        if query.min is not None:
            yield value >= query.min
        if query.max is not None:
            yield value <= query.max
        if query.loss:
            yield self._columns.numbers("loss") == LOSSES.index(query.loss) + 1
        if query.reason:
            yield self._mask(self._places_of_reason(query.reason, number))
        for name, text in query.field:
            self._field_number(name)
            yield self._mask(self.places_with(name, text))
        if search_of(query.q):
            yield self._mask(self.places_searched(query.q))

    def _places_of_reason(self, reason: str, scorer: int | None) -> Numbers:
        own = "" if scorer is None else f" AND scorer = {scorer}"
        keys = f"SELECT key FROM groups WHERE text = ?{own}"
        select = f"SELECT group_concat(place) FROM members WHERE key IN ({keys})"
        return numbers(self._connection, select, choice(reason))

    def _mask(self, places: Numbers) -> Mask:
        found = np.zeros(self.totals["all"], np.bool_)
        found[places - 1] = True
        return found


def _in_any(have: Mask, samples: Numbers, size: int) -> Mask:
    """By scorer and sample, whether any case has something. samples: The number of that of each case; size: How many
    samples there are."""
    found = np.zeros((len(have), size), np.bool_)
    for of_scorer, own in zip(found, have, strict=True):
        of_scorer[samples[own]] = True
    return found


def _pattern_of(term: str, *, is_whole: bool) -> str:
    """A regular expression for a text, or for the beginning of a word, in a key of ASCII; "" if none has it."""
    words = _words_of(term)
    if not words or not all(map(str.isascii, words)):
        return ""
    return "(^|[^a-zA-Z0-9])" + "[^a-zA-Z0-9]+".join(words) + ("($|[^a-zA-Z0-9])" if is_whole else "")


def _words_of(term: str) -> list[str]:
    """The words of a term as the search has them: without accents, and in lower case."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE terms USING fts5(term, {TOKENIZE})")
        connection.execute("INSERT INTO terms VALUES (?)", (term,))
        connection.execute("CREATE VIRTUAL TABLE words USING fts5vocab(terms, 'instance')")
        return [word for (word,) in connection.execute("SELECT term FROM words ORDER BY offset")]
