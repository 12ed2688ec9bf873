"""How two versions of a dataset differ: found once for each pair, in bounded memory, and kept beside the indexes.

Samples are matched by ID. Blocks that both versions have aren't read. Of each other sample, a hash of each field is
kept until both versions are read. What is stored are the places of the samples that differ.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from evalstone._core.json import content_hash, storable, value_of
from evalstone.errors import ConfigError, invalid
from evalstone.ledger.base import dataset_difference_file
from evalstone.ledger.datasets import StoredLines, placed_blocks
from evalstone.ledger.store import Ledger
from evalstone.types.samples import SAMPLE_FIELDS
from evalstone.view.indexing.files import refuse_damage, written
from evalstone.view.indexing.index import OutdatedIndex
from evalstone.view.indexing.jobs import Building, Jobs
from evalstone.view.indexing.paging import MOST_AT_ONCE, every_page, page_of
from evalstone.view.shelf import Shelf

FORMAT = "view-dataset-difference/1"
PAGE = 25
WHAT = "the difference of two versions of a dataset"
Change: TypeAlias = Literal["changed", "added", "removed"]
CHANGES: tuple[Change, ...] = ("changed", "added", "removed")
_ABSENT = -2
"""The hash of a field without a value."""
_TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE rows (number INTEGER PRIMARY KEY, change INTEGER, id TEXT, old INTEGER, new INTEGER, fields INTEGER)",
    *(f"CREATE TEMP TABLE {side} (id TEXT PRIMARY KEY, place INTEGER, hashes BLOB)" for side in ("old", "new")),
)
_ROWS = (
    "INSERT INTO rows (change, id, old, new, fields)"
    " SELECT iif(old.id IS NULL, 1, 0), new.id, old.place, new.place, differing(old.hashes, new.hashes)"
    " FROM new LEFT JOIN old ON old.id = new.id WHERE old.hashes IS NOT new.hashes ORDER BY new.place",
    "INSERT INTO rows (change, id, old, new, fields)"
    " SELECT 2, id, place, NULL, 0 FROM old WHERE id NOT IN (SELECT id FROM new) ORDER BY place",
    "CREATE INDEX rows_change ON rows (change, number)",
)


class SampleDifference(NamedTuple):
    """A sample that is in one version alone, or is another one in each."""

    number: int
    change: Change
    id: str
    old: int | None
    """Its place in the older version; None if it isn't there."""
    new: int | None
    fields: tuple[str, ...]
    """Of one that changed, the fields that did."""


class DifferencePage(NamedTuple):
    """Some of the samples that differ."""

    samples: list[SampleDifference]
    previous: str
    following: str


class DatasetDifference:
    """The stored difference of two versions.

    Raises:
        OutdatedIndex: It isn't there, is of another version, or is damaged.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self._connection = sqlite3.connect(
                f"{file.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False, isolation_level=None
            )
            about: dict[str, str] = dict(self._connection.execute("SELECT name, value FROM about"))
        except sqlite3.Error as error:
            raise OutdatedIndex(str(error)) from None
        if about.get("format") != FORMAT:
            self._connection.close()
            raise OutdatedIndex(f"{file} is of another version")
        self.counts: Mapping[Change, int] = json.loads(about["counts"])
        """The numbers of samples that differ."""
        self.fields: Mapping[str, int] = json.loads(about["fields"])
        """How many samples changed in each field."""
        self.same = int(about["same"])
        """The number of samples that both versions have as they are."""

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> DatasetDifference:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self.close()
        refuse_damage(error, self.file)

    def page(
        self, change: Change | None, changed_field: str, after: str = "", before: str = "", size: int = PAGE
    ) -> DifferencePage:
        """The samples after a place, or before one; by default the first.

        Args:
            change: How they differ; None for all.
            changed_field: A field that they changed in; "" for any.
            after: The place after which they are: that of a page before.
            before: The place before which they are.
            size: The most samples.

        Raises:
            ConfigError: A place is none.
        """
        name, text = ("before", before) if before else ("after", after)
        if text and not (text.isascii() and text.isdecimal() and len(text) < 16):
            raise ConfigError(invalid(name, "the number of a row", text))
        at, where = int(text or 0), ["number < ?" if before else "number > ?"]
        if change is not None:
            where.append(f"change = {CHANGES.index(change)}")
        if changed_field:
            where.append(f"fields & {1 << SAMPLE_FIELDS.index(changed_field)}")
        query = f"SELECT * FROM rows WHERE {' AND '.join(where)} ORDER BY number {'DESC' if before else ''} LIMIT ?"  # noqa: S608
        rows = [_difference(row) for row in self._connection.execute(query, (at, size + 1))]
        cursor = text if at else ""
        return DifferencePage(*page_of(rows, size, lambda row: str(row.number), back=bool(before), cursor=cursor))

    def every(self, change: Change | None, changed_field: str) -> Iterator[SampleDifference]:
        """All samples. Arguments as for `page`."""
        for listed in every_page(lambda after: self.page(change, changed_field, after, size=MOST_AT_ONCE)):
            yield from listed.samples


def _difference(row: tuple[Any, ...]) -> SampleDifference:
    number, change, id, old, new, bits = row
    names = tuple(name for place, name in enumerate(SAMPLE_FIELDS) if bits >> place & 1)
    return SampleDifference(number, CHANGES[change], id, old, new, names)


class DatasetDifferences:
    """The differences of versions of datasets in the ledger of a shelf. They are files beside the indexes.

    Args:
        shelf: The shelf.
        folder: The folder that the indexes are in.
        jobs: What is being made.
    """

    def __init__(self, shelf: Shelf, folder: Path, jobs: Jobs) -> None:
        self.shelf, self.folder, self.jobs = shelf, folder, jobs

    def open(self, old: str, new: str) -> DatasetDifference | Building:
        """The difference of two versions, or, if it isn't there in time, how far it is.

        Raises:
            EvalstoneError: A version can't be read, or the difference can't be written.
        """
        file = dataset_difference_file(self.folder, old, new)
        if (found := _opened(file)) is not None:
            return found

        def make(building: Building) -> None:
            with self.shelf.reading() as ledger:
                build(ledger, old, new, file, building)

        building = self.jobs.done(file.name, make)
        return building or _opened(file) or Building("comparing")


def _opened(file: Path) -> DatasetDifference | None:
    if not file.exists():
        return None
    try:
        return DatasetDifference(file)
    except OutdatedIndex:
        return None


def build(ledger: Ledger, old: str, new: str, file: Path, building: Building) -> None:
    """Find how two versions differ, and store it.

    Raises:
        LedgerError: Samples are damaged, or gone.
        StorageError: The disk is full.
    """
    placed = [placed_blocks(ledger, version) for version in (old, new)]
    shared = {block.hash for block in placed[0]} & {block.hash for block in placed[1]}
    same = sum(block.samples for block in placed[0] if block.hash in shared)
    total = sum(block.samples for blocks in placed for block in blocks if block.hash not in shared)
    read = 0
    with written(file, WHAT) as connection:
        connection.create_function("differing", 2, _differing, deterministic=True)
        for statement in _TABLES:
            connection.execute(statement)
        for side, version, blocks in zip(("old", "new"), (old, new), placed, strict=True):
            lines = StoredLines(ledger, version)
            for block in blocks:
                if block.hash in shared:
                    continue
                rows = (_row(place, line) for place, line in enumerate(lines.of_block(block.place), start=block.place))
                connection.executemany(f"INSERT OR IGNORE INTO {side} VALUES (?, ?, ?)", rows)  # noqa: S608
                read += block.samples
                building.step("comparing", read, total + 1)
        for statement in _ROWS:
            connection.execute(statement)
        counts = dict(connection.execute("SELECT change, count(*) FROM rows GROUP BY change"))
        bits = connection.execute("SELECT fields, count(*) FROM rows WHERE change = 0 GROUP BY fields").fetchall()
        fields = {
            name: sum(times for mask, times in bits if mask >> place & 1) for place, name in enumerate(SAMPLE_FIELDS)
        }
        kept = "SELECT count(*) FROM new JOIN old USING (id) WHERE old.hashes = new.hashes"
        same += connection.execute(kept).fetchone()[0]
        about = {
            "format": FORMAT,
            "same": str(same),
            "counts": json.dumps({name: counts.get(place, 0) for place, name in enumerate(CHANGES)}),
            "fields": json.dumps({name: times for name, times in fields.items() if times}),
        }
        connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())


def _row(place: int, line: str) -> tuple[str, int, bytes]:
    row = cast("dict[str, Any]", value_of(line))
    return storable(row["id"]), place, array("q", (_hash(name, row.get(name)) for name in SAMPLE_FIELDS)).tobytes()


def _hash(name: str, value: Any) -> int:
    """A hash of a field that equals for this process only."""
    if value is None or isinstance(value, str):
        return _ABSENT if value is None else hash(value)
    return hash(content_hash(_without_notes(name, value)))


def _without_notes(name: str, value: Any) -> Any:
    """A field without the notes on its messages, which aren't part of its content."""
    if name == "messages":
        return [{key: each for key, each in message.items() if key != "notes"} for message in value]
    if name == "turns":
        return [{key: _without_notes(key, each) for key, each in turn.items()} for turn in value]
    return value


def _differing(old: bytes | None, new: bytes) -> int:
    """The fields whose hashes differ, as bits."""
    if old is None:
        return 0
    pairs = zip(memoryview(old).cast("q"), memoryview(new).cast("q"), strict=True)
    return sum(1 << place for place, (one, other) in enumerate(pairs) if one != other)
