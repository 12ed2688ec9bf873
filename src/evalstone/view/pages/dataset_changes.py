"""How two versions of a dataset differ, as a list of samples with what changed in each field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

from evalstone._core.json import value_of
from evalstone._core.word_diff import LEAST_SHARED, Kind, Piece, word_diff
from evalstone.errors import ConfigError, invalid, unknown
from evalstone.ledger.datasets import StoredLines
from evalstone.ledger.store import Ledger
from evalstone.report.csv import csv_rows
from evalstone.report.view import Tone
from evalstone.types.samples import SAMPLE_FIELDS, is_own_id
from evalstone.view.addresses import CSV, JSON, dataset_address, with_query
from evalstone.view.indexing.dataset_differences import Change, DatasetDifference, SampleDifference
from evalstone.view.library import Library
from evalstone.view.pages.common import Link
from evalstone.view.query import Query

Show: TypeAlias = Literal["all", "changed", "added", "removed"]
TONES: Mapping[Change, Tone] = {"changed": "unsure", "added": "good", "removed": "bad"}
_NAMES = {"old": "from", "new": "to"}
"""The names of fields of the query in an address, where they differ."""
LONGEST_TEXT = 900
"""About the most characters of a field in the list."""
MOST_COMPARED = 1 << 18
"""The most characters of a field that are compared word by word."""
IN_BRIEF = ("input", "output", "reference", "turns", "messages")
"""What is shown of a sample that is in one version alone: the first three of these that it has."""
MANY_HASHED = 0.5
"""The share of removed samples without IDs of their own from which on a note says what that means."""


@dataclass(frozen=True, kw_only=True)
class DifferenceQuery(Query):
    """Which versions are compared, and which samples are listed.

    Raises:
        ConfigError: A value makes no sense.
    """

    old: str = ""
    new: str = ""
    show: Show = "all"
    changed: str = ""
    """A field that samples changed in; "" for any."""
    after: str = ""
    before: str = ""

    def __post_init__(self) -> None:
        if bool(self.old) != bool(self.new):
            raise ConfigError("the address needs both versions: from and to")
        if self.old and self.old == self.new:
            raise ConfigError(invalid("to", "another version than from", self.new))
        if self.show not in get_args(Show):
            raise ConfigError(unknown("value of show", self.show, get_args(Show)))
        if self.changed and self.changed not in SAMPLE_FIELDS:
            raise ConfigError(unknown("field", self.changed, SAMPLE_FIELDS))

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """The query in the parameters of an address. Errors as for `Query.of`."""
        names = {text: name for name, text in _NAMES.items()}
        return super().of((names.get(name, name), text) for name, text in pairs if name not in _NAMES)

    def pairs(self, **changes: Any) -> list[tuple[str, str]]:
        """The parameters of an address, without defaults. changes: other values of fields."""
        return [(_NAMES.get(name, name), text) for name, text in super().pairs(**changes)]

    @property
    def is_complete(self) -> bool:
        """Whether there are versions to compare."""
        return bool(self.old)

    @property
    def change(self) -> Change | None:
        """How the listed samples differ; None for all."""
        return None if self.show == "all" else self.show

    def address(self, name: str, suffix: str = "", **changes: Any) -> str:
        """The address of a dataset with this query and other values of fields. suffix: that of its data."""
        pairs = self.pairs(**{"after": "", "before": "", **changes})
        return with_query(dataset_address(name, suffix), pairs) + ("" if suffix else "#changes")


@dataclass(frozen=True)
class ChangedField:
    """A field of a sample, or an entry of its metadata, in both versions."""

    name: str
    pieces: tuple[Piece, ...]
    note: str = ""


@dataclass(frozen=True)
class ChangedSample:
    """A sample in the list."""

    id: str
    change: Change
    tone: Tone
    fields: tuple[ChangedField, ...]


class _Pairs:
    """The samples of two versions, as data."""

    def __init__(self, ledger: Ledger, query: DifferenceQuery) -> None:
        self._old, self._new = (StoredLines(ledger, version) for version in (query.old, query.new))

    def of(self, sample: SampleDifference) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """A sample in both versions; without any field where it isn't there."""
        return _sample(self._old, sample.old), _sample(self._new, sample.new)


def _sample(lines: StoredLines, place: int | None) -> Mapping[str, Any]:
    line = None if place is None else lines.at(place)
    return {} if line is None else value_of(line)


# ---- The page ----


def difference_context(
    ledger: Ledger, difference: DatasetDifference, name: str, query: DifferenceQuery
) -> dict[str, Any]:
    """What the page of a dataset shows of a difference."""
    listed = difference.page(query.change, query.changed, query.after, query.before)
    pairs = _Pairs(ledger, query)
    rows = [
        ChangedSample(
            sample.id,
            sample.change,
            TONES[sample.change],
            changed_fields(sample.change, sample.fields, *pairs.of(sample)),
        )
        for sample in listed.samples
    ]
    counts: dict[Show, int] = {"all": sum(difference.counts.values()), **difference.counts}
    without_ids = sum(not is_own_id(row.id) for row in rows if row.change == "removed")
    removed = sum(row.change == "removed" for row in rows)
    return {
        "rows": rows,
        "same": difference.same,
        "total": counts["all"],
        "chips": [
            Link(
                show,
                query.address(name, show=show, changed=""),
                query.show == show and not query.changed,
                f"{number:,}",
            )
            for show, number in counts.items()
        ],
        "fields": [
            Link(each, query.address(name, show="changed", changed=each), query.changed == each, f"{number:,}")
            for each, number in difference.fields.items()
        ],
        "hashed": bool(removed) and without_ids / removed > MANY_HASHED,
        "previous": query.address(name, before=listed.previous) if listed.previous else "",
        "following": query.address(name, after=listed.following) if listed.following else "",
        "exports": [
            Link("CSV of all that match", query.address(name, CSV)),
            Link("JSON of this page", query.address(name, JSON, after=query.after, before=query.before)),
        ],
    }


def changed_fields(
    change: Change, fields: Sequence[str], old: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[ChangedField, ...]:
    """What changed in a sample, or, if it is in one version alone, the fields that tell what it is.

    Args:
        change: How it differs.
        fields: The names of the fields that changed.
        old: The sample as it was, by field.
        new: The sample as it is.
    """
    if change == "changed":
        return tuple(_changed_field(*each) for each in _texts(fields, old, new))
    only = new or old
    names = [name for name in IN_BRIEF if only.get(name)][:3]
    return tuple(
        ChangedField(name, word_diff(text, text).shortened(LONGEST_TEXT).pieces)
        for name in names
        for text in [_text(name, only[name])[:MOST_COMPARED]]
    )


def _texts(
    names: Sequence[str], old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[str, str | None, str | None]]:
    """The fields that changed with their texts, None where there is no value. Entries of the metadata are fields."""
    for name in names:
        if name == "metadata":
            before: dict[str, Any] = old.get(name) or {}
            after: dict[str, Any] = new.get(name) or {}
            for entry in dict.fromkeys((*before, *after)):
                if before.get(entry) != after.get(entry) or (entry in before) != (entry in after):
                    yield (
                        f"metadata.{entry}",
                        _text(name, before[entry]) if entry in before else None,
                        _text(name, after[entry]) if entry in after else None,
                    )
        else:
            first, second = (None if s.get(name) is None else _text(name, s[name]) for s in (old, new))
            yield name, first, second


def _text(name: str, value: Any) -> str:
    """A field as a text."""
    if isinstance(value, str):
        return value
    if name == "context" and all(isinstance(passage, str) for passage in value):
        return "\n\n".join(value)
    return json.dumps(value, ensure_ascii=False, indent=1)


def _changed_field(name: str, before: str | None, after: str | None) -> ChangedField:
    note = "no value before" if before is None else "no value any more" if after is None else ""
    cut = [(text or "")[:MOST_COMPARED] for text in (before, after)]
    if cut[0] == cut[1]:
        same_beginning = f"The first {MOST_COMPARED:,} characters are the same." if cut[0] else ""
        return ChangedField(name, (), same_beginning or f"empty text, {note}")
    difference = word_diff(*cut)
    if difference.is_same:
        return ChangedField(name, (), "Only white space differs.")
    if difference.shared < LEAST_SHARED and all(cut):
        sides: tuple[tuple[Kind, str], ...] = (("removed", cut[0]), ("added", cut[1]))
        pieces = (
            piece._replace(kind=kind) if piece.kind == "same" else piece
            for kind, text in sides
            for piece in word_diff(text, text).shortened(LONGEST_TEXT).pieces
        )
        return ChangedField(name, tuple(pieces))
    return ChangedField(name, difference.shortened(LONGEST_TEXT).pieces)


# ---- The data ----


def _sample_data(sample: SampleDifference, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    names = sample.fields or [name for name in SAMPLE_FIELDS if name in (new or old)]
    return {
        "sample_id": sample.id,
        "change": sample.change,
        "fields": list(sample.fields),
        "from": {name: old.get(name) for name in names} if old else None,
        "to": {name: new.get(name) for name in names} if new else None,
    }


def difference_data(ledger: Ledger, difference: DatasetDifference, name: str, query: DifferenceQuery) -> dict[str, Any]:
    """A page of a difference as data."""
    listed, pairs = difference.page(query.change, query.changed, query.after, query.before), _Pairs(ledger, query)
    return {
        "from": query.old,
        "to": query.new,
        "same": difference.same,
        **difference.counts,
        "fields": difference.fields,
        "samples": [_sample_data(sample, *pairs.of(sample)) for sample in listed.samples],
        "next": query.address(name, JSON, after=listed.following) if listed.following else None,
    }


def difference_csv(library: Library, name: str, query: DifferenceQuery) -> Iterable[str]:
    """All samples that differ, as lines of a CSV file: of each, the fields that differ in both versions as JSON."""
    opened = library.dataset_difference(name, query.old, query.new)
    if isinstance(opened, DatasetDifference):
        with opened as difference, library.shelf.reading() as ledger:
            pairs = _Pairs(ledger, query)
            data = (_sample_data(sample, *pairs.of(sample)) for sample in difference.every(query.change, query.changed))
            rows = (
                (
                    each["sample_id"], each["change"], ", ".join(each["fields"]),
                    *(each[side] and json.dumps(each[side], ensure_ascii=False) for side in ("from", "to")),
                )
                for each in data
            )  # fmt: skip
            yield from csv_rows(("sample_id", "change", "fields", "from", "to"), rows)
