# ruff: noqa: S608 - statements are put together from our own names
"""What is looked at of a run by page: one SQLite file for each run, made from the run, and made again at will.

A run is read as a whole and in its order; a page shows fifty of its samples in another. So its cases (samples, or
trials of samples) are put into a narrow table that is filtered and ordered in milliseconds, their texts beside it, into
a full-text index, and the samples with their records are stored as they are, compressed.
"""

from __future__ import annotations

import functools
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evalstone._core.json import storable
from evalstone._core.validation import read_data
from evalstone.datasets.stored import sample_of
from evalstone.errors import ConfigError, unknown
from evalstone.results.losses import Loss, LossRule
from evalstone.results.summary import ScorerInfo
from evalstone.results.views.samples import scored_answer
from evalstone.types import Asking, Record, Sample
from evalstone.view.indexing.files import refuse_damage
from evalstone.view.indexing.paging import FEW, MOST_AT_ONCE, every_page, page_of, read_place
from evalstone.view.indexing.tables import FAILED, FORMAT, SCORED, choice
from evalstone.view.query import SCORE, SampleQuery
from evalstone.view.search_words import search_of

PAGE = 50
Numbers: TypeAlias = NDArray[np.int64]
"""Whole numbers."""
_ORDERS = {
    "goodness": "goodness",
    "order": "place",
    "id": "key",
    "cost": "cost",
    "tokens": "tokens",
    "seconds": "seconds",
    "latency": "latency",
}
_OUTCOMES: tuple[Literal["score", "skipped", "failed"], ...] = "score", "skipped", "failed"


@dataclass(frozen=True)
class Case:
    """One sample, or one trial of it, in a list."""

    place: int
    """Its number in the order of the records."""
    key: str
    sample: str
    trial: int | None
    goodness: float | None
    cost: float | None
    tokens: int
    seconds: float
    latency: float | None
    """How long the target took to answer, in seconds; None without one."""
    loss: Loss | None
    """Where a low answer is lost; None for other answers."""
    values: tuple[float | None, ...]
    """The score of each scorer."""
    outcomes: tuple[int | None, ...]
    """The outcome of each scorer; None if there is no record."""
    input: str = ""
    answer: str = ""
    reference: str = ""


class Page(NamedTuple):
    """Some of the samples that a query finds."""

    cases: list[Case]
    previous: str
    """Where the page before this one ends; "" if there is none."""
    following: str


class Facet(NamedTuple):
    """An entry of the metadata with the numbers of samples by value."""

    name: str
    values: tuple[tuple[str, int], ...]


class Group(NamedTuple):
    """Samples with the same reason for a missing score, or with the same finding in the evidence of a low score."""

    scorers: tuple[str, ...]
    """The titles of the scorers of which all of these samples have it."""
    outcome: Literal["score", "skipped", "failed"]
    text: str
    """The reason, or the finding after its label."""
    number: int
    """The number of samples."""


class Spread(NamedTuple):
    """How the numbers of a column are distributed."""

    n: int
    median: float
    p95: float
    """The 95th percentile."""
    highest: float
    bins: Sequence[int]
    """How many are in each of several equal parts; the last one has what is beyond."""
    width: float
    """The width of a part."""


@dataclass(frozen=True)
class Stored:
    """One sample with its records."""

    sample: Sample | None
    records: tuple[Record, ...]
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Both as data."""


class Index:
    """The index of a run, open for reading.

    Args:
        file: The index.

    Raises:
        OutdatedIndex: It isn't there, is of another version, or is damaged.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._found = "", 0
        """The search whose cases are in the table of hits, and their number."""
        self._pack: tuple[int, Sequence[bytes]] = 0, []
        """The pack that was read last, and its lines."""
        try:
            self._connection = sqlite3.connect(
                f"{file.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False, isolation_level=None
            )
            self._connection.execute("BEGIN")  # all of a page is of one moment
            rows = self._connection.execute("SELECT name, value FROM about")
            self._about: dict[str, str] = dict(rows)
        except sqlite3.Error as error:
            raise OutdatedIndex(str(error)) from None
        if self._about.get("format") != FORMAT:
            self.close()
            raise OutdatedIndex(f"{file} is of another version")
        self.stamp = self._about["stamp"]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self.close()
        refuse_damage(error, self.file)

    @functools.cached_property
    def head(self) -> Mapping[str, Any]:
        """What `head_of` the run was."""
        return json.loads(self._about["head"])

    @functools.cached_property
    def totals(self) -> Mapping[str, int]:
        """The number of all cases, and of those with an outcome of each kind."""
        return json.loads(self._about["totals"])

    @functools.cached_property
    def scorers(self) -> tuple[ScorerInfo, ...]:
        """The scorers of the run."""
        return tuple(ScorerInfo(**each) for each in json.loads(self._about["scorers"]))

    @functools.cached_property
    def titles(self) -> tuple[str, ...]:
        """The titles of the scorers."""
        titles = json.loads(self._about["titles"])
        return tuple(titles[info.signature] for info in self.scorers)

    @functools.cached_property
    def facets(self) -> tuple[Facet, ...]:
        """The entries of the metadata to filter by."""
        stored = json.loads(self._about["facets"])
        return tuple(
            Facet(name, tuple((value, times) for value, times in values)) for _, name, values in stored if values[1:]
        )

    @functools.cached_property
    def has_trials(self) -> bool:
        """Whether samples were answered several times."""
        return self._connection.execute("SELECT 1 FROM cases WHERE trial IS NOT NULL").fetchone() is not None

    @property
    def keeps_reasoning(self) -> bool:
        """Whether the reasoning in front of an answer was scored."""
        return bool(json.loads(self._about["keeps_reasoning"]))

    @functools.cached_property
    def asking(self) -> Asking:
        """How the judges were asked."""
        return read_data(Asking, json.loads(self._about["asking"]))

    @functools.cached_property
    def spreads(self) -> Mapping[str, Spread]:
        """By name, how the cost, tokens, seconds and latency of samples are distributed, if they differ."""
        stored = json.loads(self._about["spreads"])
        return {name: Spread(*(each[field] for field in Spread._fields)) for name, each in stored.items()}

    @functools.cached_property
    def loss_rule(self) -> LossRule | None:
        """How the run tells where low answers are lost; None if it doesn't."""
        return LossRule.of(self.scorers)

    def groups(self, limit: int) -> list[Group]:
        """The largest groups of samples with the same fault. Scorers with the same fault in the same samples share
        one."""
        query = "SELECT key, scorer, kind, text, number FROM groups ORDER BY id"
        found: dict[tuple[int, str, int], list[tuple[int, list[str]]]] = {}
        for key, scorer, kind, text, number in self._connection.execute(query):
            alike = found.get((kind, text, number))
            if alike is None and len(found) == limit:
                continue
            alike = found.setdefault((kind, text, number), [])
            title = self.titles[int(scorer)]
            same = next((titles for other, titles in alike if self._same_members(key, other)), None)
            if same is None:
                alike.append((key, [title]))
            else:
                same.append(title)
        groups = [
            Group(tuple(titles), _OUTCOMES[kind], text, number)
            for (kind, text, number), alike in found.items()
            for _, titles in alike
        ]
        return groups[:limit]

    def _same_members(self, key: int, other: int) -> bool:
        """Whether two groups of the same size have the same samples."""
        query = "SELECT place FROM members WHERE key = ? EXCEPT SELECT place FROM members WHERE key = ? LIMIT 1"
        return self._connection.execute(query, (key, other)).fetchone() is None

    def count(self, query: SampleQuery) -> int:
        """How many cases a query finds. Raises ConfigError if it names a scorer or field that the run doesn't have."""
        if not query.is_filtered:
            return self.totals["all"]
        if (hits := self._only_searched(query)) is not None:
            return hits
        where, values = self._where(query)
        return int(
            self._connection.execute(f"SELECT count(*) FROM cases NOT INDEXED WHERE {where}", values).fetchone()[0]
        )

    def page(self, query: SampleQuery, limit: int = PAGE) -> Page:
        """A page of the cases that a query finds. Errors as for `count`."""
        column = self._order(query)
        back = bool(query.before)
        cursor = query.before or query.after
        rows = self._rows(query, column, cursor, limit + 1, back=back)
        shown, *places = page_of(rows, limit, lambda row: self._cursor(column, row), back=back, cursor=cursor)
        return Page(self._with_texts([*map(self._case, shown)]), *places)

    def neighbors(self, query: SampleQuery, key: str) -> tuple[str, str]:
        """The keys of the cases before and after one in the order of a query; "" if there is none."""
        row = self._row(key)
        if row is None:
            return "", ""
        column = self._order(query)
        cursor = self._cursor(column, row)
        found = (self._rows(query, column, cursor, 1, back=back) for back in (True, False))
        before, after = (rows[0][1] if rows else "" for rows in found)
        return before, after

    def case(self, key: str) -> Case | None:
        """The case with this key; None if there is none."""
        row = self._row(key)
        return None if row is None else self._case(row)

    def at(self, places: Iterable[int]) -> dict[int, Case]:
        """The cases at places, with the beginnings of their texts."""
        wanted = [*places]
        query = f"{self._select} WHERE place IN ({', '.join('?' * len(wanted))})"
        found = self._with_texts([*map(self._case, self._connection.execute(query, wanted))])
        return {case.place: case for case in found}

    def samples(self) -> Iterator[tuple[str, int, tuple[int | None, ...], tuple[int | None, ...]]]:
        """The ID of each sample in the order of its first trial, the place of that, and by scorer whether it has a
        score and whether it failed, in any trial; None without a record."""
        numbers = range(len(self.scorers))
        cells = "".join(f", max(o{n} = {kind})" for kind in (SCORED, FAILED) for n in numbers)
        query = f"SELECT sample, min(place){cells} FROM cases GROUP BY sample ORDER BY 2"
        for sample, place, *of in self._connection.execute(query):
            yield sample, place, tuple(of[: len(numbers)]), tuple(of[len(numbers) :])

    def places_of_trials(self) -> Iterator[tuple[str, int]]:
        """The ID of the sample of each trial, and the place of the trial; none if there is one trial each."""
        yield from self._connection.execute("SELECT sample, place FROM cases WHERE trial IS NOT NULL")

    def places_searched(self, search: str) -> Numbers:
        """The places of the cases that a search finds. search: what `search_of` makes of words."""
        return numbers(self._connection, "SELECT group_concat(rowid) FROM texts WHERE texts MATCH ?", search)

    def places_with(self, name: str, value: str) -> Numbers:
        """The places of the cases with this value of an entry of the metadata."""
        select = "SELECT group_concat(place) FROM fields WHERE name = ? AND value = ?"
        return numbers(self._connection, select, self._field_numbers.get(choice(name)), choice(value))

    def trials(self, sample: str) -> list[Case]:
        """The trials of a sample, if there are several."""
        query = f"{self._select} WHERE sample = ? AND trial IS NOT NULL ORDER BY trial"
        return [*map(self._case, self._connection.execute(query, (storable(sample),)))]

    def stored(self, place: int) -> Stored:
        """The sample and the records of a case."""
        return _stored(self._data(place))

    def stored_within(self, place: int, most: int) -> Stored | None:
        """The sample and the records of a case; None if it is stored with others in more bytes than this."""
        line = self._line(place, most)
        return None if line is None else _stored(json.loads(line))

    def whole(self, case: Case) -> Case:
        """A case with its texts in full, which are cut in a list."""
        data = self._data(case.place)["sample"]
        if data is None:
            return case
        sample = sample_of(data)
        answer = scored_answer(sample, keeps_reasoning=self.keeps_reasoning).answer
        return replace(case, input=question_of(sample), answer=answer, reference=sample.reference or "")

    def _data(self, place: int) -> dict[str, Any]:
        return json.loads(self._line(place) or b"")

    def _line(self, place: int, most: int = 0) -> bytes | None:
        execute = self._connection.execute
        pack, line = execute("SELECT pack, line FROM excerpts WHERE place = ?", (place,)).fetchone()
        if self._pack[0] != pack:
            reader = zlib.decompressobj()
            body = reader.decompress(execute("SELECT body FROM packs WHERE id = ?", (pack,)).fetchone()[0], most)
            if reader.unconsumed_tail:
                return None
            self._pack = int(pack), body.split(b"\n")
        return self._pack[1][int(line)]

    def every(self, query: SampleQuery) -> Iterator[Case]:
        """All cases that a query finds, in its order."""
        for page in every_page(lambda after: self.page(replace(query, after=after, before=""), MOST_AT_ONCE)):
            yield from page.cases

    # ---- Statements ----

    @functools.cached_property
    def _field_numbers(self) -> Mapping[str, int]:
        """The number that stands for each entry of the metadata."""
        return {name: number for number, name, _ in json.loads(self._about["facets"])}

    @functools.cached_property
    def _select(self) -> str:
        cells = "".join(f", v{n}, o{n}" for n in range(len(self.scorers)))
        return f"SELECT place, key, sample, trial, goodness, cost, tokens, seconds, latency, loss{cells} FROM cases"

    def _row(self, key: str) -> Sequence[Any] | None:
        return self._connection.execute(f"{self._select} WHERE key = ?", (storable(key),)).fetchone()

    def _case(self, row: Sequence[Any]) -> Case:
        place, key, sample, trial, goodness, cost, tokens, seconds, latency, loss, *cells = row
        values, outcomes = tuple(cells[::2]), tuple(cells[1::2])
        return Case(place, key, sample, trial, goodness, cost, tokens, seconds, latency, loss, values, outcomes)

    def _with_texts(self, cases: list[Case]) -> list[Case]:
        places = [case.place for case in cases]
        marks = ", ".join("?" * len(places))
        query = f"SELECT place, input, answer, reference FROM excerpts WHERE place IN ({marks}) AND input IS NOT NULL"
        texts = {place: texts for place, *texts in self._connection.execute(query, places)}
        return [
            replace(case, input=texts[case.place][0], answer=texts[case.place][1], reference=texts[case.place][2])
            if case.place in texts
            else case
            for case in cases
        ]

    def _scorer(self, title: str) -> int:
        choices = [*map(choice, self.titles)]
        if choice(title) not in choices:
            raise ConfigError(unknown("scorer", title, self.titles))
        return choices.index(choice(title))

    def _order(self, query: SampleQuery) -> str:
        if query.order.startswith(SCORE):
            return f"v{self._scorer(query.order.removeprefix(SCORE))}"
        return _ORDERS[query.order]

    def _cursor(self, column: str, row: Sequence[Any]) -> str:
        """The place of a row in an order: its value and its number, or its number alone if it has no value."""
        case = self._case(row)
        value = case.values[int(column[1:])] if column[1:].isdecimal() else getattr(case, column)
        return json.dumps([value, case.place], ensure_ascii=False)

    def _rows(self, query: SampleQuery, column: str, cursor: str, limit: int, *, back: bool) -> list[Sequence[Any]]:
        """Rows after a cursor, or before it, those without a value last."""
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
        return rows

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
            kind = _OUTCOMES.index(query.show)
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
            if (name := choice(name)) not in self._field_numbers:
                raise ConfigError(unknown("field", name, self._field_numbers))
            known = self._field_numbers[name]
            terms.append(f"place IN (SELECT place FROM fields WHERE name = {known} AND value = :field{at})")
            values[f"field{at}"] = choice(value)
        if query.q and (search := search_of(query.q)):
            self._find(search)
            terms.append("place IN hits")
        return " AND ".join(terms), values


def question_of(sample: Sample) -> str:
    """What was asked: the input, or the first message of the user."""
    return sample.input or next((message.content for message in sample.messages if message.role == "user"), "") or ""


def _stored(data: dict[str, Any]) -> Stored:
    sample = None if data["sample"] is None else sample_of(data["sample"])
    return Stored(sample, tuple(map(Record.from_dict, data["records"])), data)


def numbers(connection: sqlite3.Connection, select: str, *values: Any) -> Numbers:
    """The whole numbers that a statement selects, joined by commas: to read as many rows takes twice as long.

    Raises:
        sqlite3.Error: They can't be read.
    """
    text = connection.execute(select, values).fetchone()[0]
    return np.fromstring(text, dtype=np.int64, sep=",") if text else np.zeros(0, np.int64)


class OutdatedIndex(Exception):
    """An index that has to be made again."""
