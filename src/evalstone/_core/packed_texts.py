"""Texts in one piece of memory."""

from __future__ import annotations

import importlib
import random
from array import array
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeAlias, overload

_FACTOR = 0x9E3779B97F4A7C15
"""An odd number with bits everywhere, so that each byte of a text changes all of its hash."""
_SEED = random.getrandbits(64)
"""It differs between processes. Texts of one hash can be chosen all the same, so equal hashes prove nothing."""
_AT_ONCE = 16_384
"""From this number of texts on, numpy is faster, and how many it takes at once."""
_Memory: TypeAlias = bytes | memoryview
_WORD = 8
"""The bytes of a text that are taken at once."""


class PackedTexts(Sequence[str]):
    """Many short texts, in 12 bytes each besides their characters: a quarter of what they take as objects.

    Args:
        size: The number of texts to set later, "" until then.
    """

    def __init__(self, size: int = 0) -> None:
        self._data = bytearray()
        self._chosen: tuple[PackedTexts, array[int]] | None = None
        """Many texts at places of others, of which all are here, until where they start is needed."""
        self._starts, self._lengths = array("Q", [0]) * size, array("I", [0]) * size

    def append(self, text: str) -> None:
        """Add a text after the others."""
        data = text.encode("utf-8", "surrogatepass")
        self._starts.append(len(self._data))
        self._lengths.append(len(data))
        self._data += data

    @classmethod
    def of_buffers(cls, data: bytes | bytearray, starts: _Memory, lengths: _Memory) -> PackedTexts:
        """Texts from their UTF-8 and, for each, its place in that and its bytes: as 8 and 4 bytes of this machine. A
        bytearray is used as it is."""
        texts = cls()
        texts._data = data if isinstance(data, bytearray) else bytearray(data)
        texts._starts.frombytes(starts)
        texts._lengths.frombytes(lengths)
        return texts

    def extend(self, others: Sequence[str]) -> None:
        """Add texts after these."""
        if not isinstance(others, PackedTexts):
            for text in others:
                self.append(text)
            return
        others._arrays()
        shift = len(self._data)
        self._data += others._data
        if shift and len(others) >= _AT_ONCE:
            self._starts.frombytes((others._arrays()[0] + shift).tobytes())
        else:
            self._starts.extend(array("Q", [shift + start for start in others._starts]) if shift else others._starts)
        self._lengths += others._lengths

    def __setitem__(self, place: int, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        self._starts[place], self._lengths[place] = len(self._data), len(data)
        self._data += data

    def at(self, places: Sequence[int]) -> PackedTexts:
        """The texts at these places, in the same memory. Neither may get more texts."""
        some = PackedTexts()
        some._data = self._data
        if len(places) < _AT_ONCE:
            some._starts.extend([self._starts[place] for place in places])
            some._lengths.extend([self._lengths[place] for place in places])
            return some
        np: Any = importlib.import_module("numpy")
        chosen, base = np.asarray(places, np.int64), self
        if self._chosen is not None:
            base, chosen = self._chosen[0], np.frombuffer(self._chosen[1], np.uint32)[chosen]
        some._chosen = base, array("I", chosen.astype(np.uint32).tobytes())
        return some

    def places_in(self, others: PackedTexts) -> Any | None:
        """The places in others that these were taken from by `at`, as an array of numpy; None if they weren't."""
        np: Any = importlib.import_module("numpy")
        if self is others:
            return np.arange(len(self))
        return np.frombuffer(self._chosen[1], np.uint32) if self._chosen and self._chosen[0] is others else None

    def has_repeats(self, numbers: array[int] | None = None) -> bool:
        """Whether a text occurs twice, with the same number if they have numbers. It may be wrong if it says yes: only
        hashes are compared."""
        np: Any = importlib.import_module("numpy")  # few callers need it

        hashes = self.hashes()
        if numbers:
            with np.errstate(over="ignore"):
                hashes = hashes * _FACTOR + np.frombuffer(numbers, np.int64).astype(np.uint64)
        hashes.sort()
        return bool((hashes[1:] == hashes[:-1]).any())

    def hashes(self, seed: int = _SEED) -> Any:
        """A hash of each text, as an array of numpy. Without a seed, they are the same in this process only."""
        np: Any = importlib.import_module("numpy")
        found = np.full(len(self), seed, np.uint64)
        with np.errstate(over="ignore"):
            for part in self._parts():
                hashes = found[part]
                for rows, words in self._words(part):
                    some = (hashes[rows] + words) * _FACTOR
                    hashes[rows] = some ^ (some >> np.uint64(29))
                hashes *= np.uint64(_FACTOR)
                hashes += self._arrays()[1][part]
        return found

    def contents(self, places: Any) -> Iterator[bytes]:
        """The UTF-8 of the texts at some places, an array of numpy: one after the other, in parts."""
        np: Any = importlib.import_module("numpy")
        data, (starts, lengths) = np.frombuffer(self._data, np.uint8), self._arrays()
        for first in range(0, len(places), _AT_ONCE):
            own = places[first : first + _AT_ONCE]
            sizes = lengths[own].astype(np.int64)
            ends = sizes.cumsum()
            shifts = np.repeat(starts[own].astype(np.int64) - (ends - sizes), sizes)
            yield data[shifts + np.arange(ends[-1])].tobytes()

    def equals(self, other: PackedTexts) -> bool:
        """Whether as many others are the same texts, in the same order."""
        np: Any = importlib.import_module("numpy")
        for part in self._parts():
            if not np.array_equal(self._arrays()[1][part], other._arrays()[1][part]):
                return False
            both = zip(self._words(part), other._words(part), strict=True)
            if not all(np.array_equal(ours, theirs) for (_, ours), (_, theirs) in both):
                return False
        return True

    def places_of(self, texts: Collection[str]) -> list[int]:
        """The places at which one of some texts is, in order."""
        if len(self) < _AT_ONCE or not texts:
            return [place for place, text in enumerate(self) if text in texts] if texts else []
        np: Any = importlib.import_module("numpy")
        some = PackedTexts()
        some.extend([*texts])
        return [int(place) for place in np.flatnonzero(np.isin(self.hashes(), some.hashes())) if self[place] in texts]

    def joined(self, other: PackedTexts) -> tuple[Sequence[int], Sequence[int]] | None:
        """The places here and in others of the texts that are in both, in the order of these. None if these are few, or
        a text may be in one of them twice."""
        if len(self) < _AT_ONCE:
            return None
        np: Any = importlib.import_module("numpy")
        if len(self) == len(other) and self.equals(other):
            return range(len(self)), range(len(self))
        ours, theirs = self.hashes(), other.hashes()
        by_ours, by_theirs = np.argsort(ours), np.argsort(theirs)
        ours, theirs = ours[by_ours], theirs[by_theirs]
        if not len(theirs) or any((hashes[1:] == hashes[:-1]).any() for hashes in (ours, theirs)):
            return None
        at = np.minimum(np.searchsorted(theirs, ours), len(theirs) - 1)  # fast, because both are in order
        places = np.full(len(self), -1)
        places[by_ours] = np.where(theirs[at] == ours, by_theirs[at], -1)
        found = np.flatnonzero(places >= 0)
        both = array("q", found.tobytes()), array("q", places[found].tobytes())
        return both if self.at(both[0]).equals(other.at(both[1])) else None

    def compared(self, text: str) -> Any:
        """Whether each text comes before another one (-1), is the same (0), or comes after it (1), by their UTF-8: as
        an array of numpy."""
        np: Any = importlib.import_module("numpy")
        data, found = text.encode("utf-8", "surrogatepass"), np.zeros(len(self), np.int8)
        for part in self._parts():
            signs = found[part]
            for number, (rows, words) in enumerate(self._words(part)):
                some, own = words.byteswap(), data[number * _WORD : (number + 1) * _WORD].ljust(_WORD, b"\0")
                limit = np.uint64(int.from_bytes(own, "big"))
                here = (some > limit).astype(np.int8) - (some < limit)
                signs[rows] = np.where(signs[rows] == 0, here, signs[rows])
            same = np.flatnonzero(signs == 0)
            signs[same] = np.sign(self._arrays()[1][part][same].astype(np.int64) - len(data))
        return found

    def first(self, most: int, places: Any, *, last: bool = False) -> list[int]:
        """Of the texts at some places (an array of numpy), the places of the first few by their UTF-8, in this order.
        last: the last few, in the opposite order."""
        np: Any = importlib.import_module("numpy")
        chosen: list[int] = []
        for place in range(0, int(self._arrays()[1].max(initial=0)), _WORD):
            left = most - len(chosen)
            if len(places) <= left:
                break
            starts, lengths = (column[places].astype(np.int64) for column in self._arrays())
            words = self._eight(starts, lengths, place).byteswap()
            words = ~words if last else words
            limit = np.partition(words, left - 1)[left - 1] if left else words.min()
            chosen += places[words < limit].tolist()
            places = places[words == limit]
        if len(places) > most - len(chosen):  # they differ in zeros at their end
            lengths = self._arrays()[1][places].astype(np.int64)
            places = places[np.argsort(-lengths if last else lengths, kind="stable")]
        chosen += places[: most - len(chosen)].tolist()
        return sorted(chosen, key=lambda one: self[one].encode("utf-8", "surrogatepass"), reverse=last)

    def isascii(self) -> bool:
        """Whether all texts are ASCII. False if others in the same memory aren't, too."""
        return self._data.isascii()

    @property
    def lengths(self) -> Any:
        """The bytes of each text, as an array of numpy."""
        return self._arrays()[1]

    def _arrays(self) -> tuple[Any, Any]:
        """Where each text starts, and its bytes."""
        np: Any = importlib.import_module("numpy")
        if self._chosen is not None:
            starts, lengths = self._chosen[0]._arrays()
            places = np.frombuffer(self._chosen[1], np.uint32)
            self._starts.frombytes(starts[places].tobytes())
            self._lengths.frombytes(lengths[places].tobytes())
            self._chosen = None
        return np.frombuffer(self._starts, np.uint64), np.frombuffer(self._lengths, np.uint32)

    def _words(self, part: slice) -> Iterator[tuple[Any, Any]]:
        """The texts of a part, eight bytes of each at a time as an integer: those that are long enough, and these."""
        np: Any = importlib.import_module("numpy")
        starts, lengths = (column[part].astype(np.int64) for column in self._arrays())
        for place in range(0, int(lengths.max(initial=0)), _WORD):
            rows = np.flatnonzero(lengths > place) if place >= lengths.min() else slice(None)
            yield rows, self._eight(starts[rows], lengths[rows], place)

    def _eight(self, starts: Any, lengths: Any, place: int) -> Any:
        """Eight bytes of texts from a place on as integers, with zeros after the end of a text."""
        np: Any = importlib.import_module("numpy")
        data = self._data if len(self._data) >= _WORD else bytes(self._data).ljust(_WORD, b"\0")
        last = len(data) - _WORD
        every = np.ndarray(last + 1, "<u8", data, strides=(1,))
        masks = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)
        at, sizes = starts + place, np.clip(lengths - place, 0, _WORD)
        beyond = np.maximum(at - last, 0)  # of a text that ends with the memory
        return (every[at - beyond] >> (8 * beyond).astype(np.uint64)) & masks[sizes]

    def _parts(self) -> Iterator[slice]:
        """The texts in parts, so that what arithmetic needs of each is small."""
        return (slice(start, start + _AT_ONCE) for start in range(0, len(self), _AT_ONCE))

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        if self._chosen is not None:
            return self._chosen[0][self._chosen[1][place]]
        start = self._starts[place]
        return self._data[start : start + self._lengths[place]].decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        if self._chosen is not None:
            yield from map(self._chosen[0].__getitem__, self._chosen[1])
            return
        data = self._data
        for start, length in zip(self._starts, self._lengths, strict=True):
            yield data[start : start + length].decode("utf-8", "surrogatepass")

    def __len__(self) -> int:
        return len(self._starts if self._chosen is None else self._chosen[1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PackedTexts):
            return NotImplemented
        if len(self) < _AT_ONCE:
            return len(self) == len(other) and all(ours == theirs for ours, theirs in zip(self, other, strict=True))
        return self is other or (len(self) == len(other) and self.equals(other))

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it can change
