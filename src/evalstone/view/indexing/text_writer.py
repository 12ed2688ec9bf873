"""How the texts of cases are written into an index: for the full-text search, for lists and as they are."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from evalstone._core.json import storable, to_jsonable
from evalstone.results.run import Run
from evalstone.results.views.samples import scored_answer
from evalstone.types import Outcome, Sample, Score
from evalstone.view.indexing.groups import Groups
from evalstone.view.indexing.index import question_of
from evalstone.view.indexing.tables import FORMAT, TABLES, choice
from evalstone.view.search_words import spaced

EXCERPT = 600
"""The most characters of a text in a list."""
PACK_BYTES = 1 << 16
"""The bytes of samples and records that are compressed together. A larger case is alone."""
MOST_VALUES = 200
"""The most values of an entry of the metadata by which samples can be filtered."""
LONGEST_VALUE = 100
DEEPEST = 3
"""How many objects an entry of the metadata may be in to filter by it."""


class TextWriter:
    """Writes all that an index has besides the numbers of its cases.

    Args:
        connection: A new file.
        run: The run, whose records aren't read.
    """

    def __init__(self, connection: sqlite3.Connection, run: Run) -> None:
        self.connection, self.keeps_reasoning = connection, bool(run.keeps_reasoning)
        self.scorers, self.titles, self.asking = run.scorers, run.titles, run.asking
        for statement in TABLES.split(";"):
            connection.execute(statement)
        self.groups = Groups(connection)
        self._field_numbers: dict[str, int] = {}
        self._field_values: dict[str, Counter[str]] = {}
        self._excerpts: list[tuple[Any, ...]] = []
        self._texts: list[tuple[Any, ...]] = []
        self._fields: list[tuple[int, str, int]] = []
        self._pack: list[str] = []
        self._pack_bytes, self._pack_number = 0, 1

    def search(self, texts: tuple[Any, ...]) -> None:
        """Have a case be found by its texts. texts: what `texts_of` it returns."""
        self._texts.append(texts)

    def forget(self, texts: tuple[Any, ...]) -> None:
        """Take out a case that was flushed. texts: as they were."""
        # Without its texts, the index of words takes a row out only if it is told what is in it.
        delete = (
            "INSERT INTO texts (texts, rowid, id, input, answer, other, reason) VALUES ('delete', ?, ?, ?, ?, ?, ?)"
        )
        self.connection.execute(delete, texts)
        self.connection.execute("DELETE FROM excerpts WHERE place = ?", texts[:1])

    def keep(self, place: int, sample: Sample | None, line: str) -> None:
        """Keep a case for its page, and the beginnings of its texts for lists. line: What is kept of it, as JSON."""
        shown: Sequence[str | None] = (None, None, None)
        if sample is not None:
            answer = scored_answer(sample, keeps_reasoning=self.keeps_reasoning).answer
            shown = [*map(_excerpt, (question_of(sample), answer, sample.reference or ""))]
        self._excerpts.append((place, self._pack_number, len(self._pack), *shown))
        self._pack.append(line)
        self._pack_bytes += len(line)
        if self._pack_bytes >= PACK_BYTES:
            self._flush_pack()

    def add_fields(self, place: int, sample: Sample) -> None:
        """Add the entries of the metadata that cases are filtered by."""
        for name, value in _fields(sample):
            self._add_field(place, name, value)

    def _add_field(self, place: int, name: str, value: Any) -> None:
        if not isinstance(value, bool | int | float | str):
            return
        name, text = choice(name), choice(value if isinstance(value, str) else json.dumps(value))
        if text and len(name) <= LONGEST_VALUE and len(text) <= LONGEST_VALUE:
            values = self._field_values.setdefault(name, Counter())
            if len(values) <= MOST_VALUES:
                values[text] += 1
                self._fields.append((self._field_numbers.setdefault(name, len(self._field_numbers)), text, place))

    def flush(self) -> None:
        """Write what was added since the last time."""
        self._flush_pack()
        self.groups.flush()
        many = self.connection.executemany
        many("INSERT INTO excerpts VALUES (?, ?, ?, ?, ?, ?)", self._excerpts)
        many("INSERT INTO texts (rowid, id, input, answer, other, reason) VALUES (?, ?, ?, ?, ?, ?)", self._texts)
        many("INSERT OR IGNORE INTO fields VALUES (?, ?, ?)", self._fields)
        for rows in (self._excerpts, self._texts, self._fields):
            rows.clear()

    def _flush_pack(self) -> None:
        if self._pack:
            body = zlib.compress("\n".join(self._pack).encode("utf-8", "surrogatepass"), 1)
            self.connection.execute("INSERT INTO packs VALUES (?, ?)", (self._pack_number, body))
            self._pack, self._pack_bytes, self._pack_number = [], 0, self._pack_number + 1

    def describe(self, stamp: str, head: Mapping[str, Any], **about: Any) -> None:
        """Write what is said of all cases so far. about: What else there is, as JSON data."""
        self.groups.write()
        facets = {
            name: values.most_common() for name, values in self._field_values.items() if len(values) <= MOST_VALUES
        }
        for name, number in self._field_numbers.items():
            if name not in facets:
                self.connection.execute("DELETE FROM fields WHERE name = ?", (number,))
        about |= {
            "facets": [[self._field_numbers[name], name, values] for name, values in facets.items()],
            "scorers": [info.to_stored() for info in self.scorers],
            "titles": dict(self.titles),
            "keeps_reasoning": self.keeps_reasoning,
            "asking": to_jsonable(self.asking),
            "head": head,
        }
        rows = {"format": FORMAT, "stamp": stamp, **{name: json.dumps(value) for name, value in about.items()}}
        self.connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows.items())


def texts_of(place: int, key: str, sample: Sample | None, outcomes: Sequence[Outcome]) -> tuple[Any, ...]:
    """The texts in which a search looks for a case. key: As `storable`."""
    other: list[str] = []
    for outcome in outcomes:
        other += [outcome.reason, *_strings(outcome.evidence if isinstance(outcome, Score) else ())]
    texts = (key, "", "", "", "\n".join(other))
    if sample is not None:
        rest = [sample.reference or "", sample.instructions or "", *(sample.context or ())]
        rest += [*_strings(dict(sample.metadata)), *_strings(to_jsonable(sample.messages))]
        texts = (key, question_of(sample), sample.output or "", "\n".join(rest), "\n".join(other))
    return (place, *map(spaced, texts))


def _fields(sample: Sample) -> Iterator[tuple[str, Any]]:
    """The entries of the metadata to filter by, as slices name them: `a.b` is the entry b of the object a. What targets
    and traces write there differs from sample to sample."""
    yield from _entries("", {name: value for name, value in sample.metadata.items() if name not in ("target", "trace")})
    if sample.group is not None and "group" not in sample.metadata:
        yield "group", sample.group


def _entries(prefix: str, entries: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in entries.items():
        if isinstance(value, Mapping) and prefix.count(".") < DEEPEST:
            yield from _entries(f"{prefix}{name}.", cast("Mapping[str, Any]", value))
        else:
            yield f"{prefix}{name}", value


def _excerpt(text: str) -> str:
    return storable(text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…")


def _strings(value: Any) -> Iterator[str]:
    """The texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, Any]", value).values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            yield from _strings(item)
    elif hasattr(value, "__dict__"):
        yield from _strings(vars(value))
