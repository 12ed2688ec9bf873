# ruff: noqa: S608 - statements are put together from our own names
"""What is looked at of a run by page: one SQLite file for each run, made from the run, and made again at will.

A run is read as a whole and in its order; a page shows fifty of its samples in another. So what its cases (samples, or
trials of samples) are filtered and ordered by is apart from their texts: in a narrow table (`table_index.py`), or, of a
run in blocks, in columns (`column_index.py`). Beside it are the beginnings of texts, a full-text index, and the samples
as they are, compressed.
"""

from __future__ import annotations

import functools
import json
import sqlite3
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evalstone._core.packed_texts import PackedTexts
from evalstone._core.validation import read_data
from evalstone.datasets.stored import sample_of
from evalstone.errors import ConfigError, unknown
from evalstone.results.losses import Loss, LossRule
from evalstone.results.summary import ScorerInfo
from evalstone.results.views.samples import scored_answer
from evalstone.types import Asking, Record, Sample
from evalstone.types.scorer_names import not_scored
from evalstone.view.indexing.files import refuse_damage
from evalstone.view.indexing.paging import MOST_AT_ONCE, every_page, page_of
from evalstone.view.indexing.tables import FORMAT, choice
from evalstone.view.query import SCORE, SampleQuery

PAGE = 50
Numbers: TypeAlias = NDArray[np.int64]
"""Whole numbers."""
ORDERS = {
    "goodness": "goodness",
    "order": "place",
    "id": "key",
    "cost": "cost",
    "tokens": "tokens",
    "seconds": "seconds",
    "latency": "latency",
}
"""By what samples are ordered by, the field of a case."""
OUTCOMES: tuple[Literal["score", "skipped", "failed"], ...] = "score", "skipped", "failed"


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


class Samples(NamedTuple):
    """The samples of a run, in the order of their first trials."""

    ids: PackedTexts
    places: Numbers
    """The place of the first trial of each."""
    scored: NDArray[np.bool_]
    """By scorer and sample, whether it has a score in any trial."""
    failed: NDArray[np.bool_]
    """By scorer and sample, whether it failed in any trial."""
    of_cases: Numbers | None
    """By case, the number of its sample, from 0; None if there are no trials."""


@dataclass(frozen=True)
class Stored:
    """One sample with its records."""

    sample: Sample | None
    records: tuple[Record, ...]
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Both as data."""


class Index(ABC):
    """The index of a run, open for reading.

    Args:
        file: The index.
        connection: A connection to it.
        about: What it says of itself.
    """

    def __init__(self, file: Path, connection: sqlite3.Connection, about: Mapping[str, str]) -> None:
        self.file, self._connection, self._about = file, connection, about
        self._pack: tuple[int, Sequence[bytes]] = 0, []
        """The pack that was read last, and its lines."""
        self.stamp = about["stamp"]

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

    @property
    @abstractmethod
    def has_trials(self) -> bool:
        """Whether samples were answered several times."""

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
            Group(tuple(titles), OUTCOMES[kind], text, number)
            for (kind, text, number), alike in found.items()
            for _, titles in alike
        ]
        return groups[:limit]

    def _same_members(self, key: int, other: int) -> bool:
        """Whether two groups of the same size have the same samples."""
        query = "SELECT place FROM members WHERE key = ? EXCEPT SELECT place FROM members WHERE key = ? LIMIT 1"
        return self._connection.execute(query, (key, other)).fetchone() is None

    @abstractmethod
    def count(self, query: SampleQuery) -> int:
        """How many cases a query finds. Raises ConfigError if it names a scorer or field that the run doesn't have."""

    def page(self, query: SampleQuery, limit: int = PAGE) -> Page:
        """A page of the cases that a query finds. Errors as for `count`."""
        column = self._order(query)
        back = bool(query.before)
        cursor = query.before or query.after
        cases = self._cases(query, column, cursor, limit + 1, back=back)
        shown, *places = page_of(cases, limit, functools.partial(_cursor, column), back=back, cursor=cursor)
        return Page(self._with_texts(shown), *places)

    def neighbors(self, query: SampleQuery, key: str) -> tuple[str, str]:
        """The keys of the cases before and after one in the order of a query; "" if there is none."""
        case = self.case(key)
        if case is None:
            return "", ""
        column = self._order(query)
        cursor = _cursor(column, case)
        found = (self._cases(query, column, cursor, 1, back=back) for back in (True, False))
        before, after = (cases[0].key if cases else "" for cases in found)
        return before, after

    @abstractmethod
    def case(self, key: str) -> Case | None:
        """The case with this key; None if there is none."""

    def at(self, places: Iterable[int]) -> dict[int, Case]:
        """The cases at places, with the beginnings of their texts."""
        return {case.place: case for case in self._with_texts(self._at([*places]))}

    @abstractmethod
    def samples(self) -> Samples:
        """The samples, in the order of their first trials."""

    @abstractmethod
    def places_searched(self, words: str) -> Numbers:
        """The places of the cases that a search finds."""

    def places_with(self, name: str, value: str) -> Numbers:
        """The places of the cases with this value of an entry of the metadata."""
        select = "SELECT group_concat(place) FROM fields WHERE name = ? AND value = ?"
        return numbers(self._connection, select, self._field_numbers.get(choice(name)), choice(value))

    @abstractmethod
    def trials(self, sample: str) -> list[Case]:
        """The trials of a sample, if there are several."""

    @abstractmethod
    def stored(self, place: int) -> Stored:
        """The sample and the records of a case."""

    @abstractmethod
    def stored_within(self, place: int, most: int) -> Stored | None:
        """The sample and the records of a case; None if the sample is stored with others in more bytes than this."""

    def whole(self, case: Case) -> Case:
        """A case with its texts in full, which are cut in a list."""
        data = self._sample(case.place)
        if data is None:
            return case
        sample = sample_of(data)
        answer = scored_answer(sample, keeps_reasoning=self.keeps_reasoning).answer
        return replace(case, input=question_of(sample), answer=answer, reference=sample.reference or "")

    def every(self, query: SampleQuery) -> Iterator[Case]:
        """All cases that a query finds, in its order."""
        for page in every_page(lambda after: self.page(replace(query, after=after, before=""), MOST_AT_ONCE)):
            yield from page.cases

    @abstractmethod
    def _cases(self, query: SampleQuery, column: str, cursor: str, limit: int, *, back: bool) -> list[Case]:
        """Cases after a cursor, or before it, those without a value last. column: what they are ordered by."""

    @abstractmethod
    def _at(self, places: Sequence[int]) -> list[Case]:
        """The cases at places."""

    @abstractmethod
    def _sample(self, place: int) -> dict[str, Any] | None:
        """The sample of a case as data; None without its texts."""

    def _line(self, place: int, most: int = 0) -> bytes | None:
        """What is stored of a case in a pack; None if that is of more bytes than this."""
        execute = self._connection.execute
        pack, line = execute("SELECT pack, line FROM excerpts WHERE place = ?", (place,)).fetchone()
        if self._pack[0] != pack:
            reader = zlib.decompressobj()
            body = reader.decompress(execute("SELECT body FROM packs WHERE id = ?", (pack,)).fetchone()[0], most)
            if reader.unconsumed_tail:
                return None
            self._pack = int(pack), body.split(b"\n")
        return self._pack[1][int(line)]

    @functools.cached_property
    def _field_numbers(self) -> Mapping[str, int]:
        """The number that stands for each entry of the metadata."""
        return {name: number for number, name, _ in json.loads(self._about["facets"])}

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
            raise ConfigError(not_scored(title, self.titles))
        return choices.index(choice(title))

    def _order(self, query: SampleQuery) -> str:
        """The column that a query orders by."""
        if query.order.startswith(SCORE):
            return f"v{self._scorer(query.order.removeprefix(SCORE))}"
        return ORDERS[query.order]

    def _field_number(self, name: str) -> int:
        """The number of an entry of the metadata. Raises ConfigError for an unknown one."""
        if (name := choice(name)) not in self._field_numbers:
            raise ConfigError(unknown("field", name, self._field_numbers))
        return self._field_numbers[name]


def connected(file: Path) -> tuple[sqlite3.Connection, Mapping[str, str]]:
    """A connection to an index, and what it says of itself.

    Raises:
        OutdatedIndex: It isn't there, is of another version, or is damaged.
    """
    try:
        connection = sqlite3.connect(
            f"{file.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False, isolation_level=None
        )
        connection.execute("BEGIN")  # all of a page is of one moment
        about: dict[str, str] = dict(connection.execute("SELECT name, value FROM about"))
    except sqlite3.Error as error:
        raise OutdatedIndex(str(error)) from None
    if about.get("format") != FORMAT:
        connection.close()
        raise OutdatedIndex(f"{file} is of another version")
    return connection, about


def _cursor(column: str, case: Case) -> str:
    """The place of a case in an order: its value and its number, or its number alone if it has no value."""
    value = case.values[int(column[1:])] if column[1:].isdecimal() else getattr(case, column)
    return json.dumps([value, case.place], ensure_ascii=False)


def question_of(sample: Sample) -> str:
    """What was asked: the input, or the first message of the user."""
    return sample.input or next((message.content for message in sample.messages if message.role == "user"), "") or ""


def numbers(connection: sqlite3.Connection, select: str, *values: Any) -> Numbers:
    """The whole numbers that a statement selects, joined by commas: to read as many rows takes twice as long.

    Raises:
        sqlite3.Error: They can't be read.
    """
    text = connection.execute(select, values).fetchone()[0]
    return np.fromstring(text, dtype=np.int64, sep=",") if text else np.zeros(0, np.int64)


class OutdatedIndex(Exception):
    """An index that has to be made again."""
