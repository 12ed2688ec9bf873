"""What identifies samples: their IDs, which are unique in a dataset, and the version of the dataset."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from evalstone._core.display import excerpt
from evalstone._core.json import storable
from evalstone.errors import DataError
from evalstone.types import Sample
from evalstone.types.samples import default_id

DIGEST = 16
"""The bytes of the hash of an ID, and of that of a content."""
_NO_ID = bytes(DIGEST)
_FILES = 1 << 20
"""More files than a dataset has."""


def with_unique_ids(samples: Sequence[Sample], places: Sequence[str]) -> list[Sample]:
    """The samples with unique IDs. Samples with equal contents and no ID get `-2`, `-3` after their hash.

    Raises DataError if two rows have the same ID, or IDs that databases store as the same text.
    """
    own: dict[str, str] = {}
    for sample, place in zip(samples, places, strict=True):
        if sample.id != sample.default_id and own.setdefault(stored := storable(sample.id), place) != place:
            raise used_id(place, sample.id, own[stored])
    used = set(own)
    counts: dict[str, int] = {}
    unique: list[Sample] = []
    for sample in samples:
        if sample.id == sample.default_id:
            number, new = counts.get(sample.id, 1), sample.id
            while new in used:
                number += 1
                new = f"{sample.id}-{number}"
            counts[sample.id] = number
            used.add(new)
            sample = sample if new == sample.id else replace(sample, id=new)
        unique.append(sample)
    return unique


def made_unique(samples: Iterable[tuple[str, Sample]]) -> Iterator[Sample]:
    """Samples as by `with_unique_ids`, each after its place, such as `line 3` or `line 3 of b.jsonl`. Of each, it keeps
    a hash and a number.

    An ID of one's own that is the default ID of an earlier sample is an error, too.
    """
    ids = UniqueIds()
    for place, sample in samples:
        id = ids.add(place, sample.id, sample.content_hash)
        yield sample if id == sample.id else replace(sample, id=id)


class UniqueIds:
    """The IDs of samples, made unique as by `made_unique`."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        """By the hash of an ID, the number in the place of its sample, and that of its file."""
        self._counts: dict[str, int] = {}
        self._files: dict[str, int] = {}

    def add(self, place: str, id: str, content_hash: str) -> str:
        """The ID of the sample at a place. Raises DataError for one of its own that an earlier sample has."""
        kind, _, rest = place.partition(" ")
        digits, _, file = rest.partition(" ")
        number = int(digits) * _FILES + self._files.setdefault(file, len(self._files))
        if (first := self._numbers.setdefault(hash(storable(id)), number)) == number:
            return id
        if id != default_id(content_hash):
            raise used_id(place, id, f"{kind} {first // _FILES} {[*self._files][first % _FILES]}".rstrip())
        count, new = self._counts.get(id, 1), id
        while hash(new) in self._numbers:
            count += 1
            new = f"{id}-{count}"
        self._counts[id] = count
        self._numbers[hash(new)] = number
        return new


def used_id(place: str, id: str, first: str) -> DataError:
    """The error for a sample whose ID an earlier one has. place, first: where they are, such as `line 3`."""
    escaped = " (NUL and lone surrogates are stored as in JSON)" if "\\u" in storable(id) else ""
    return DataError(f"{place}: the id {excerpt(id)} is already used by {first}{escaped}")


def id_digest(id: str) -> bytes:
    """A hash of an ID, as databases store it: 16 bytes."""
    return hashlib.blake2b(storable(id).encode(), digest_size=DIGEST).digest()


def digest_of(id: str, content_hash: str) -> bytes:
    """What the version of a dataset has of a sample: hashes of its ID and of its content, of 16 bytes each. A default
    ID, which follows from the contents of this sample and of those before it, counts as none."""
    default = default_id(content_hash)
    is_default = id == default or id.startswith(f"{default}-")
    return (_NO_ID if is_default else id_digest(id)) + bytes.fromhex(content_hash)


class Version:
    """The version of a dataset: a hash of the digests of its samples, in order. Parts of a dataset can be digested by
    different processes."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=8)

    def add(self, id: str, content_hash: str) -> None:
        """Add the next sample."""
        self._hash.update(digest_of(id, content_hash))

    def add_digests(self, digests: bytes) -> None:
        """Add the next samples, by their digests."""
        self._hash.update(digests)

    def __str__(self) -> str:
        return self._hash.hexdigest()


def version_of(samples: Iterable[Sample]) -> str:
    """The version of samples: 16 hexadecimal digits."""
    version = Version()
    for sample in samples:
        version.add(sample.id, sample.content_hash)
    return str(version)
