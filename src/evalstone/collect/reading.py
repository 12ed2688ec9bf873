"""What is in the file of traces, read back: what was not read yet, in its order, and whole traces."""

from __future__ import annotations

import json
import os
import re
import threading
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

from evalstone.agents.formats.records import Record, identifier, records_in
from evalstone.agents.formats.values import PlacedError
from evalstone.errors import ConfigError, DataError

PIECE = 1_000_000
"""Bytes that are read at a time; a longer line is read whole."""
LOOKED_BACK = 1_000_000_000
"""Bytes at the end of the file that are searched for traces that a restart has cut in two."""
_BLOCK = 50_000
"""How many places are sorted together."""
_PLACE_BITS = 40
_HASH_MASK = (1 << 24) - 1
_ID = re.compile(rb'"trace(?:Id|_id)"\s*:\s*"([^"]{1,200})"')


@dataclass
class _Extent:
    """Lines that were written one after the other."""

    file: FileIO
    start: int
    end: int
    at: float
    """When the first of them was written."""
    until: float
    """When the last of them was written."""


class Line(NamedTuple):
    """A line that was read."""

    records: list[Record]
    place: int
    """Where it begins in its file."""
    size: int
    """Its length in bytes."""


class Piece(NamedTuple):
    """Lines that were read."""

    lines: list[Line]
    at: float
    """None was written before this time."""
    until: float
    """None was written after this time."""
    file: os.stat_result
    unreadable: str = ""
    """Why lines are left out; "" if none are."""


class Written:
    """What was written to a file and not read yet, as places in the file.

    A file that was moved or removed is read to its end. One thread may read while others open files and add.

    Args:
        resolution: Seconds within which writes count as written at one time.
    """

    def __init__(self, resolution: float) -> None:
        self._resolution = resolution
        self._lock = threading.Lock()
        """Held where the extents or the files are changed, which three threads do."""
        self._extents: deque[_Extent] = deque()
        self._files: list[FileIO] = []

    def open(self, path: Path, writer: BinaryIO) -> None:
        """Read what is written from now on through this writer. Raises OSError, and ConfigError for what is no file
        that can be read back."""
        if not path.is_file():
            raise ConfigError(
                f"{str(path)!r} is no file that can be read back, which scoring needs; name one with --out"
            )
        file = path.open("rb", buffering=0)
        with self._lock:
            self._files.append(file)
            self._close_unused()
        if not os.path.samestat(os.fstat(file.fileno()), os.fstat(writer.fileno())):
            raise OSError(f"{str(path)!r} was moved")

    def add(self, start: int, end: int, at: float) -> None:
        """Note that something was written at a time, in seconds of any clock."""
        with self._lock:
            last = self._extents[-1] if self._extents else None
            if last and last.file is self._files[-1] and last.end == start and at - last.at < self._resolution:
                last.end, last.until = end, at
            else:
                self._extents.append(_Extent(self._files[-1], start, end, at, at))

    def read(self) -> Piece | None:
        """The next lines; None if all were read. Call it from one thread at a time."""
        with self._lock:
            if not self._extents:
                return None
            extent = self._extents[0]
            start, end, until = extent.start, extent.end, extent.until
        lines, problem = list[Line](), ""
        of = os.fstat(extent.file.fileno())
        try:
            data = _lines(extent.file, start, end)
            if not data:
                problem = "the file is shorter than it was"
        except OSError as error:
            data, problem = b"", error.strerror or str(error)
        with self._lock:
            extent.start = start + len(data) if data else end
            if extent.start >= extent.end:  # it may have grown meanwhile
                self._extents.popleft()
            self._close_unused()
        for line in data.splitlines(keepends=True):
            try:
                lines.append(Line(_records(line), start, len(line)))
            except DataError as error:
                problem = str(error)
            start += len(line)
        return Piece(lines, extent.at, until, of, problem)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()

    def _close_unused(self) -> None:
        used = {id(each.file) for each in self._extents} | {id(self._files[-1])}
        for file in [file for file in self._files if id(file) not in used]:
            file.close()
            self._files.remove(file)


def _lines(file: FileIO, start: int, end: int) -> bytes:
    """The first whole lines between two places; b"" if the file ends before."""
    file.seek(start)
    parts = list[bytes]()
    while start < end:
        part = file.read(min(PIECE, end - start))
        if not part:  # something else has cut the file
            return b""
        start += len(part)
        if (place := part.rfind(b"\n")) >= 0:
            parts.append(part[: place + 1])
            break
        parts.append(part)
    return b"".join(parts)


def _records(line: bytes) -> list[Record]:
    """The records in a line. Raises DataError."""
    try:
        return list(records_in(json.loads(line)))
    except (PlacedError, ValueError, RecursionError) as error:
        raise DataError(str(error) or type(error).__name__) from None


class TraceIndex:
    """Where in a file each trace is, so that late records can be read together with earlier ones.

    It covers the last `LOOKED_BACK` bytes of the file, and takes eight bytes for each trace and line. If another file
    takes its place, as after a rotation, it covers what was added to that file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: os.stat_result | None = None
        self._earlier = array("Q")
        """For each trace and line, a part of the hash of the trace's ID, followed by the place of the line; sorted.
        These lines were there before anything was added."""
        self._later: deque[tuple[int, array[int]]] = deque()
        """The lines that were added, with the last of their places."""
        self._recent = array("Q")
        """The last of them, in any order."""

    def look_back(self) -> None:
        """Note what the file has already, because a restart may have cut a trace in two. Raises OSError."""
        places = array("Q")
        with self._path.open("rb") as file:
            self._file = os.fstat(file.fileno())
            size = self._file.st_size
            if size > LOOKED_BACK:
                file.seek(size - LOOKED_BACK)
                file.readline()
            place = file.tell()
            for line in file:
                places.extend({_start(trace) | place for trace in _traces_in(line)})
                place += len(line)
                if place >= size:
                    break
        self._earlier = array("Q", sorted(places))

    def add(self, file: os.stat_result, place: int, traces: Iterable[str]) -> None:
        """Note the traces of a line that was written to a file, after all others of this file."""
        if self._file is None or not os.path.samestat(self._file, file):
            self._forget()
            self._file = file
        self._recent.extend({_start(trace) | place for trace in traces if trace})
        if len(self._recent) >= _BLOCK:
            self._later.append((place, array("Q", sorted(self._recent))))
            self._recent = array("Q")
            while self._later[0][0] < place - LOOKED_BACK:
                self._later.popleft()

    def records_of(self, traces: Iterable[str], scored: Collection[str]) -> dict[str, list[Record]]:
        """What the file had of these traces before anything was added, and all that it has of those that were scored.

        Raises OSError.
        """
        self._recent = array("Q", sorted(self._recent))
        blocks = [self._earlier, *(block for _, block in self._later), self._recent]
        places = {
            trace: [place for block in blocks[: None if trace in scored else 1] for place in _places_of(trace, block)]
            for trace in traces
        }
        ordered = sorted({place for each in places.values() for place in each})
        by_trace: dict[str, list[Record]] = {}
        if not ordered or self._file is None:
            return by_trace
        try:
            with self._path.open("rb") as file:
                if not os.path.samestat(self._file, os.fstat(file.fileno())):
                    raise FileNotFoundError  # another one is in its place
                for place in ordered:
                    file.seek(place)
                    _add_records(file.readline(), places, by_trace)
        except FileNotFoundError:
            self._forget()
        return by_trace

    def _forget(self) -> None:
        self._earlier, self._recent = array("Q"), array("Q")
        self._later.clear()


def _places_of(trace: str, block: array[int]) -> Iterator[int]:
    start = _start(trace)
    at = bisect_left(block, start)
    while at < len(block) and block[at] >> _PLACE_BITS == start >> _PLACE_BITS:
        yield block[at] & ((1 << _PLACE_BITS) - 1)
        at += 1


def _start(trace: str) -> int:
    return (hash(trace) & _HASH_MASK) << _PLACE_BITS


def _traces_in(line: bytes) -> set[str]:
    return {identifier(text.decode("utf-8", "replace")) for text in set(_ID.findall(line))} - {""}


def _add_records(line: bytes, traces: Collection[str], by_trace: dict[str, list[Record]]) -> None:
    try:
        records = _records(line)
    except DataError:
        return
    for record in records:
        if record.trace in traces:
            by_trace.setdefault(record.trace, []).append(record)
