"""Zip archives of others, read member by member and never unpacked.

The directory at the end is checked before anything is read, and each member against it: an archive that is cut off,
encrypted, too large, or that contradicts itself, is refused in words. Members are stored, deflated, or compressed with
Zstandard, which needs pyarrow.
"""

from __future__ import annotations

import codecs
import importlib
import itertools
import os
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

from evalstone._core.display import excerpt
from evalstone._core.files import Expansion
from evalstone.errors import DataError, MissingDependency

MOST_ENTRIES = 1_000_000
"""The most entries of an archive. Each takes about 300 bytes of memory."""
BEGINNING = b"PK\3\4"
"""What a member begins with, and so an archive."""
STORED, DEFLATED, ZSTANDARD = 0, 8, 93
_METHODS = {1: "shrunk", 6: "imploded", 9: "Deflate64", 12: "bzip2", 14: "LZMA", 95: "XZ", 98: "PPMd"}
_ENCRYPTED = 0x1 | 0x40
_IS_UTF8 = 0x800
_PIECE = 1 << 16
_END, _END_64, _PLACE_64, _ENTRY, _LOCAL = (
    struct.Struct(form) for form in ("<4s4H2LH", "<4sQ2H2L4Q", "<4sLQL", "<4s6H3L5H2L", "<4s5H3L2H")
)
_LONGEST_COMMENT = 0xFFFF
_UNKNOWN_32 = 0xFFFFFFFF
_OUTSIDE = re.compile(r"^[/\\]|^[A-Za-z]:|(?:^|[/\\])\.\.(?:[/\\]|$)|\0")


class Entry(NamedTuple):
    """A member of an archive, as its directory has it."""

    name: str
    method: int
    check: int
    """The CRC-32 of its content."""
    packed: int
    """Its bytes in the archive."""
    size: int
    """The bytes of its content."""
    offset: int


class Archive:
    """A zip archive, opened for reading. It is a context manager.

    Raises DataError for one that isn't whole or not to be trusted.
    """

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] = path.open("rb")
        try:
            self._end = os.fstat(self._file.fileno()).st_size
            self._expansion = Expansion(self._end)
            self.replaced = 0
            """How many members were written again under the same name."""
            self.entries: Mapping[str, Entry] = self._read_directory()
            """The members by name; of those with the same name the last one, as zip tools read them."""
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def text(self, entry: Entry) -> Iterator[str]:
        """The text of a member, in pieces. Raises DataError for one that is damaged or no UTF-8."""
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        try:
            for piece in self.pieces(entry):
                yield decoder.decode(piece)
            yield decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise DataError(f"{excerpt(entry.name)} is no UTF-8 text") from None

    def pieces(self, entry: Entry) -> Iterator[bytes]:
        """The content of a member, in pieces. Raises DataError if it isn't what the directory says."""
        start, check, size = self._start(entry), 0, 0
        for piece in self._unpacked(entry, start):
            size += len(piece)
            self._expansion.used += len(piece)
            self._expansion.check(self._expansion.used)
            if size > entry.size:
                raise DataError(f"{excerpt(entry.name)} has more than the {entry.size:,} bytes that it says")
            check = zlib.crc32(piece, check)
            yield piece
        if size < entry.size:
            raise DataError(f"{excerpt(entry.name)} is cut off: it has {size:,} of its {entry.size:,} bytes")
        if check != entry.check:
            raise DataError(f"{excerpt(entry.name)} is damaged: its checksum is wrong")

    def _unpacked(self, entry: Entry, start: int) -> Iterator[bytes]:
        packed = _Part(self._file, start, entry.packed)
        if entry.method == STORED:
            while piece := packed.read(_PIECE):
                yield piece
        elif entry.method == DEFLATED:
            yield from _inflated(packed, entry)
        else:
            yield from _of_zstandard(packed, entry)

    def _start(self, entry: Entry) -> int:
        """Where the content of a member starts, after its own header."""
        name = excerpt(entry.name)
        header = self._at(entry.offset, _LOCAL.size, name)
        mark, _, flags, *_, length, extra = _LOCAL.unpack(header)
        if mark != BEGINNING:
            raise DataError(f"{name} isn't where the archive's directory says")
        if _name(self._at(entry.offset + _LOCAL.size, length, name), flags) != entry.name:
            raise DataError(f"{name} has another name in the archive's directory than before its content")
        start = entry.offset + _LOCAL.size + length + extra
        if start + entry.packed > self._end:
            raise DataError(f"{name} is cut off")
        return start

    def _at(self, offset: int, size: int, what: str) -> bytes:
        self._file.seek(offset)
        data = self._file.read(size)
        if len(data) < size:
            raise DataError(f"{what} is cut off")
        return data

    def _read_directory(self) -> Mapping[str, Entry]:
        count, size, offset = self._directory()
        if count > MOST_ENTRIES:
            raise DataError(f"an archive of {count:,} entries; at most {MOST_ENTRIES:,} can be read")
        entries: dict[str, Entry] = {}
        spans: list[tuple[int, int]] = []
        self._end, at = offset, offset
        for _ in range(count):
            if at + _ENTRY.size > offset + size:
                raise DataError("the archive's directory is cut off")
            entry, at = self._entry(at)
            self.replaced += entry.name in entries
            entries[entry.name] = entry
            spans.append((entry.offset, entry.offset + _LOCAL.size + entry.packed))
        if at != offset + size:
            raise DataError(f"the archive's directory has more than the {count:,} entries that it says")
        spans.sort()
        if any(one[1] > other[0] for one, other in itertools.pairwise(spans)):
            raise DataError("entries of the archive overlap, so that it would unpack to more than it holds")
        if spans and spans[-1][1] > offset:
            raise DataError("an entry of the archive reaches into its directory")
        return entries

    def _directory(self) -> tuple[int, int, int]:
        """The number of entries, and the size and place of the directory."""
        tail_at = max(0, self._end - _END.size - _LONGEST_COMMENT)
        tail = self._at(tail_at, self._end - tail_at, "the archive")
        at = tail.rfind(b"PK\5\6")
        if at < 0 or len(tail) - at < _END.size:
            raise DataError("the archive is cut off: its directory, which is at the end, is missing")
        _, disk, first, here, count, size, offset, comment = _END.unpack_from(tail, at)
        if at + _END.size + comment != len(tail):
            raise DataError("the archive is damaged: its end isn't that of the file")
        end = tail_at + at
        place = end - _PLACE_64.size
        if place >= 0 and self._at(place, 4, "the archive") == b"PK\6\7":
            end, disk, first, here, count, size, offset = self._directory_64(place)
        elif _UNKNOWN_32 in (size, offset):
            raise DataError("the archive is damaged: the place of its directory is missing")
        if disk or first or here != count:
            raise DataError("the archive is one part of several")
        if offset + size != end:
            raise DataError("the archive's directory isn't where its end says")
        return count, size, offset

    def _directory_64(self, place: int) -> tuple[int, int, int, int, int, int, int]:
        """The same of an archive with many entries or of many bytes, and where its end starts. place: where that is
        said."""
        _, _, at, _ = _PLACE_64.unpack(self._at(place, _PLACE_64.size, "the archive"))
        if at > place - _END_64.size:
            raise DataError("the archive is damaged: the place of its directory is wrong")
        header = self._at(at, _END_64.size, "the archive")
        mark, _, _, _, disk, first, here, count, size, offset = _END_64.unpack(header)
        if mark != b"PK\6\6":
            raise DataError("the archive is damaged: the place of its directory is wrong")
        return at, disk, first, here, count, size, offset

    def _entry(self, at: int) -> tuple[Entry, int]:
        """The entry of the directory that starts here, and where the next one does."""
        values = _ENTRY.unpack(self._at(at, _ENTRY.size, "the archive's directory"))
        mark, _, _, flags, method, _, _, check, packed, size, length, extra, comment, _, _, _, offset = values
        if mark != b"PK\1\2":
            raise DataError("the archive's directory is damaged")
        rest = self._at(at + _ENTRY.size, length + extra, "the archive's directory")
        name = _name(rest[:length], flags)
        if flags & _ENCRYPTED:
            raise DataError(f"{excerpt(name)} is encrypted")
        if _OUTSIDE.search(name):
            raise DataError(f"{excerpt(name)} is a path out of the archive")
        if method not in (STORED, DEFLATED, ZSTANDARD):
            how = _METHODS.get(method, f"compressed by method {method}")
            raise DataError(f"{excerpt(name)} is {how}; it should be stored, deflated or compressed with Zstandard")
        size, packed, offset = _in_64_bits(rest[length:], size, packed, offset, name)
        return Entry(name, method, check, packed, size, offset), at + _ENTRY.size + length + extra + comment


class _Part:
    """A part of a file, as a file: what decompresses it can't read on."""

    closed = False

    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        self._file, self._at, self._end = file, start, start + size

    def read(self, size: int = -1) -> bytes:
        left = self._end - self._at
        self._file.seek(self._at)
        data = self._file.read(left if size < 0 else min(size, left))
        self._at += len(data)
        return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        """The archive stays open."""


def _inflated(packed: _Part, entry: Entry) -> Iterator[bytes]:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        while not inflater.eof:
            waiting = inflater.unconsumed_tail or packed.read(_PIECE)
            piece = inflater.decompress(waiting, _PIECE)
            if not waiting and not piece and not inflater.eof:
                raise DataError(f"{excerpt(entry.name)} is cut off")
            yield piece
    except zlib.error:
        raise DataError(f"{excerpt(entry.name)} is damaged") from None


def _of_zstandard(packed: _Part, entry: Entry) -> Iterator[bytes]:
    try:
        arrow: Any = importlib.import_module("pyarrow")
    except ImportError:
        raise MissingDependency("pyarrow", "parquet") from None
    try:
        with arrow.PythonFile(packed, mode="r") as file, arrow.CompressedInputStream(file, "zstd") as stream:
            while piece := stream.read(_PIECE):
                yield piece
    except OSError:
        raise DataError(f"{excerpt(entry.name)} is damaged") from None


def _name(data: bytes, flags: int) -> str:
    try:
        return data.decode("utf-8" if flags & _IS_UTF8 else "cp437")
    except UnicodeDecodeError:
        raise DataError(f"the name of an entry of the archive is no text: {excerpt(data)}") from None


def _in_64_bits(extra: bytes, size: int, packed: int, offset: int, name: str) -> tuple[int, int, int]:
    """The sizes and the place of an entry, with those that only the extra field has."""
    numbers = [size, packed, offset]
    missing = [place for place, number in enumerate(numbers) if number == _UNKNOWN_32]
    at = 0
    while missing and at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            if at + 4 + min(length, len(extra)) < at + 4 + 8 * len(missing) or at + 4 + length > len(extra):
                raise DataError(f"the size of {excerpt(name)} is damaged")
            found = struct.unpack_from(f"<{len(missing)}Q", extra, at + 4)
            for place, number in zip(missing, found, strict=True):
                numbers[place] = number
            return numbers[0], numbers[1], numbers[2]
        at += 4 + length
    return size, packed, offset
