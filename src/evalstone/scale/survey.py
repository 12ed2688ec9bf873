"""The survey of a source: what must be known of all samples before one of them is scored.

Each part of the source is surveyed by itself, in any process. A part's survey has 45 bytes for each sample, of which
13 are kept when the surveys are merged.
"""

from __future__ import annotations

import bisect
import itertools
import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalstone._core.display import joined, named
from evalstone._core.json import storable
from evalstone.agents.notes import Notes
from evalstone.datasets.files import DataFile
from evalstone.datasets.identity import Version, digest_of, id_digest, used_id
from evalstone.datasets.part_samples import Block, read_part, reader_of
from evalstone.datasets.parts import Part, row_number
from evalstone.datasets.reading import AS_FOUND, Reading
from evalstone.datasets.rows import RowReader
from evalstone.errors import DataError
from evalstone.scorers import Scorer
from evalstone.types import Sample

_KEY = 8
"""The bytes of the key of an ID."""
_DEFAULT = re.compile("hash-([0-9a-f]{16})")
_OWN, _IN_DEFAULT_FORM = 1, 2
"""Flags of an ID: the sample's default ID is another one; it looks like a default ID, whose digits are then its key."""


@dataclass(frozen=True)
class PartSurvey:
    """What is known of a part of a source, without its texts."""

    digests: bytes
    """The `digest_of` of each sample."""
    keys: bytes
    """The key of each sample's ID: the digits of a default ID, and the first bytes of the hash of any other."""
    flags: bytes
    """The flags of each sample's ID."""
    rows: array[int]
    """The number of each sample's row in the part, from 1."""
    reader: RowReader
    """What it has learned of the columns."""
    notes: Notes
    lacking: Mapping[str, Counter[str] | None]
    """By the signature of a scorer: how many samples lack each field that it needs; None if it can score one."""

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.rows)


def survey(part: Part, scorers: Sequence[Scorer], how: Reading = AS_FOUND) -> PartSurvey:
    """The survey of a part for some scorers.

    Raises DataError, with file and line, for an invalid row.
    """
    try:
        return _survey(part, scorers, how)
    except DataError:
        if part.start:  # the line was counted from the start of the part
            for place, sample in read_part(part, reader_of(part, how), numbered=True):
                _check_case(part, place, sample, scorers)
        raise


def _survey(part: Part, scorers: Sequence[Scorer], how: Reading) -> PartSurvey:
    reader, notes = reader_of(part, how), Notes("sample")
    digests, keys, flags, rows = bytearray(), bytearray(), bytearray(), array("I")
    lacking: dict[str, Counter[str] | None] = {scorer.signature: Counter() for scorer in scorers}
    unsure = [*scorers]
    """The scorers that no sample has suited so far."""
    for place, sample in read_part(part, reader):
        _check_case(part, place, sample, scorers)
        digest = digest_of(sample.id, sample.content_hash)
        digests += digest
        looks = _DEFAULT.fullmatch(sample.id)
        keys += bytes.fromhex(looks[1]) if looks else id_digest(sample.id)[:_KEY]
        flags.append(_OWN * (sample.id != sample.default_id) | _IN_DEFAULT_FORM * (looks is not None))
        rows.append(row_number(place))
        notes.add_messages(sample.messages, sample.id)
        for scorer in [*unsure] if unsure else ():
            absent = scorer.lacks(sample)
            counted = lacking[scorer.signature]
            if not absent:
                unsure.remove(scorer)
                lacking[scorer.signature] = None
            elif counted is not None:
                counted.update(need.field for need in absent)
    reader.forget()
    return PartSurvey(bytes(digests), bytes(keys), bytes(flags), rows, reader, notes, lacking)


def _check_case(part: Part, place: str, sample: Sample, scorers: Sequence[Scorer]) -> None:
    """Raise DataError, with the file and the row, for metadata that a scorer can't use."""
    try:
        for scorer in scorers:
            scorer.check_case(sample.metadata)
    except DataError as error:
        raise DataError(f"{named(str(part.file.location))}: {place}: ", error) from None


@dataclass
class _FileColumns:
    """What the columns of a file are for."""

    samples: int = 0
    ignored: dict[str, None] = field(default_factory=dict[str, None])
    lacking: dict[str, Counter[str] | None] = field(default_factory=dict[str, "Counter[str] | None"])

    def add(self, found: PartSurvey) -> None:
        """Add the survey of a part."""
        self.samples += found.samples
        self.ignored |= found.reader.ignored
        _add_lacking(self.lacking, found.lacking)


def _add_lacking(total: dict[str, Counter[str] | None], more: Mapping[str, Counter[str] | None]) -> None:
    for signature, counts in more.items():
        before = total.setdefault(signature, Counter())
        total[signature] = None if counts is None or before is None else before + counts


@dataclass
class Survey:
    """What is known of a source: the surveys of its parts, merged in order."""

    how: Reading = AS_FOUND
    parts: list[Part] = field(default_factory=list[Part])
    firsts: list[int] = field(default_factory=list[int])
    """By part, the number of its first sample, from 0."""
    samples: int = 0
    lacking: dict[str, Counter[str] | None] = field(default_factory=dict[str, "Counter[str] | None"])
    notes: Notes = field(default_factory=lambda: Notes("sample"))
    renamed: dict[int, str] = field(default_factory=dict[int, str])
    """By the number of a sample, its ID, if it isn't that of its row: default IDs that an earlier sample has."""

    def __post_init__(self) -> None:
        self.reader = self.how.reader()
        self._version = Version()
        self._keys, self._flags = bytearray(), bytearray()
        self._rows = array("I")
        self._files: dict[DataFile, _FileColumns] = {}

    def add(self, part: Part, found: PartSurvey) -> None:
        """Add the survey of the next part. Raises DataError if its rows don't go with those before."""
        self.parts.append(part)
        self.firsts.append(self.samples)
        self.samples += found.samples
        self._version.add_digests(found.digests)
        self._keys += found.keys
        self._flags += found.flags
        self._rows.extend(found.rows)
        self.reader.merge(found.reader)
        self.notes.merge(found.notes)
        self._files.setdefault(part.file, _FileColumns()).add(found)
        _add_lacking(self.lacking, found.lacking)

    def finish(self) -> None:
        """Check what only all parts show: unique IDs and known columns.

        Raises:
            DataError: Two samples have the same ID, no column is recognized, or a file names one otherwise.
        """
        if not self.samples:
            return
        self.reader.columns.check()
        self._check_files()
        self._name_samples()

    def _check_files(self) -> None:
        """Raise DataError for a file in which a scorer lacks a field in all samples, if other files have the field, and
        the file has a column that none of these has: it was renamed."""
        files = {file: one for file, one in self._files.items() if one.samples}
        for signature in self.lacking:
            suited = [one for one in files.values() if one.lacking[signature] is None]
            for file, one in files.items():
                counts = one.lacking[signature]
                absent = [] if counts is None else [name for name, number in counts.items() if number == one.samples]
                other = [column for column in one.ignored if not any(column in each.ignored for each in suited)]
                if suited and absent and other:
                    raise DataError(
                        f"{named(str(file.location))} has no column for {joined(absent)}, which other files have, but "
                        f"{joined([repr(column) for column in other])}, which they don't have: name its columns as "
                        "theirs, or score it as a run of its own"
                    )

    @property
    def version(self) -> str:
        """The version of the dataset, as `Dataset.version` has it."""
        return str(self._version)

    def _name_samples(self) -> None:
        """Give samples with the default ID of an earlier one an ID of their own, as `made_unique` does."""
        import numpy as np  # noqa: PLC0415 - as in `stats`

        if not (repeated := self._repeated()):
            return
        keys, flags = np.frombuffer(self._keys, np.uint64), np.frombuffer(self._flags, np.uint8)
        others = np.sort(keys[(flags & _IN_DEFAULT_FORM) == 0])
        """The keys of IDs that don't look like default ones."""
        counts, taken = Counter[bytes](), set[bytes]()
        known: dict[int, dict[str, int]] = {}
        """By the first sample with a key, the IDs with this key, and the first sample with each."""
        for first, place in repeated:
            if self._flags[place] & _OWN:  # different IDs may have the same key
                ids = known.setdefault(first, {self._stored_id(first): first})
                if (earlier := ids.setdefault(self._stored_id(place), place)) != place:
                    where, sample = self._read(place, numbered=True)
                    raise used_id(where, sample.id, self._read(earlier, numbered=True)[0])
                continue
            key = bytes(self._keys[place * _KEY : (place + 1) * _KEY])
            number, name = counts[key] + 2, f"hash-{key.hex()}"
            while (new := id_digest(f"{name}-{number}")[:_KEY]) in taken or _has(others, np.frombuffer(new, np.uint64)):
                number += 1
            counts[key] = number - 1
            taken.add(new)
            self.renamed[place] = f"{name}-{number}"

    def place_of(self, sample: int) -> tuple[int, int]:
        """The number of the part that has a sample, and the sample's number in it."""
        part = bisect.bisect_right(self.firsts, sample) - 1
        return part, sample - self.firsts[part]

    def _repeated(self) -> list[tuple[int, int]]:
        """The samples whose ID an earlier one has: the first with it, and this one, in order of the latter."""
        import numpy as np  # noqa: PLC0415 - as in `stats`

        keys, flags = np.frombuffer(self._keys, np.uint64), np.frombuffer(self._flags, np.uint8)
        found: list[tuple[int, int]] = []
        for form in (0, _IN_DEFAULT_FORM):
            places = np.flatnonzero((flags & _IN_DEFAULT_FORM) == form)
            places = places[np.argsort(keys[places], kind="stable")]
            same = keys[places[1:]] == keys[places[:-1]]
            first = 0
            for at in np.flatnonzero(same).tolist():
                if not (at and same[at - 1]):
                    first = at
                found.append((int(places[first]), int(places[at + 1])))
        return sorted(found, key=lambda pair: pair[1])

    def _stored_id(self, place: int) -> str:
        """The ID of a sample, as databases store it."""
        return storable(self._read(place)[1].id)

    def _read(self, place: int, *, numbered: bool = False) -> tuple[str, Sample]:
        """A sample, read again, and its position."""
        at, number = self.place_of(place)
        part = self.parts[at]
        found = itertools.islice(read_part(part, reader_of(part, self.how), numbered=numbered), number, None)
        where, sample = next(found, ("", None))
        if sample is None:
            raise DataError(f"{named(str(part.file.location))} has changed while it was read")
        return f"{where} of {named(part.file.location.name)}", sample


def _has(ordered: Any, value: Any) -> bool:
    """Whether a sorted array has the value of an array of one."""
    at = int(ordered.searchsorted(value)[0])
    return at < len(ordered) and ordered[at] == value[0]


def blocks_of(survey: Survey) -> tuple[Block, ...]:
    """The blocks of a surveyed source: one for each part that has samples."""
    renamed: dict[int, dict[int, str]] = {}
    for place, id in survey.renamed.items():
        part, number = survey.place_of(place)
        renamed.setdefault(part, {})[number] = id
    ends = [*survey.firsts[1:], survey.samples]
    ranges = enumerate(zip(survey.firsts, ends, strict=True))
    filled = [(at, first, end - first) for at, (first, end) in ranges if end > first]
    return tuple(
        Block(number=number, part=survey.parts[at], first=first, samples=samples, renamed=renamed.get(at, {}))
        for number, (at, first, samples) in enumerate(filled)
    )
