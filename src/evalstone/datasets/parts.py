"""Parts of data files: ranges of rows that processes read independently of each other."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from evalstone._core.display import named
from evalstone._core.files import Expansion, encoding_of, text_pieces
from evalstone.datasets.arrow import parquet_groups, parquet_rows
from evalstone.datasets.files import JSON_LINES, DataFile
from evalstone.datasets.json_rows import json_lines
from evalstone.datasets.tables import Rows
from evalstone.errors import DataError

ROWS_PER_PART = 10_000
FEW_ROWS = 1_000
PARTS_PER_WORKER = 16
"""The fewest parts for a process, unless they have few rows: whoever ends first waits for a part of another one."""
FEW_PARTS_PER_WORKER = 4
"""The fewest parts with few rows. A judge is asked about the rows of one part at the same time, which takes as long for
few of them as for one."""
_START = 1 << 16
"""The bytes at the start of a file from which the length of its lines is estimated."""
_PIECE = 1 << 16


@dataclass(frozen=True)
class Part:
    """A range of the rows of a file.

    Of a Parquet file, `start` and `stop` are rows; of JSON Lines, bytes: the part has the lines that begin there. Files
    of other formats, and compressed ones, have one part, from 0 to None.
    """

    file: DataFile
    start: int = 0
    stop: int | None = None

    def rows(self, *, numbered: bool = False) -> Rows:
        """The rows with their positions. Lines are counted from the first of the part on; if `numbered`, from the first
        of the file on, which reads all of it before the part.

        Raises DataError as `DataFile.rows` does, with the file's name.
        """
        try:
            if self.stop is None:
                yield from self.file.rows()
            elif self.file.kind == ".parquet":
                yield from parquet_rows(self.file.location, range(self.start, self.stop))
            else:
                yield from self._lines(1 + self._lines_before() if numbered else 1)
        except DataError as error:
            raise DataError(f"{named(str(self.file.location))}: ", error) from None

    def _lines(self, first: int) -> Rows:
        expansion = Expansion(self.file.location.size)
        with self.file.location.open() as file:
            lines = _Lines(file, self.start, self.stop or 0)
            pieces = text_pieces(lines, first, self.file.encoding, can_name=True)
            for row in json_lines(expansion.counted(pieces), first):
                expansion.add_row()
                yield row

    def _lines_before(self) -> int:
        """The number of lines before this part."""
        with self.file.location.open() as file:
            lines, left = 0, _first_line_from(file, self.start)
            file.seek(0)
            while left and (piece := file.read(min(_PIECE, left))):
                lines += piece.count(b"\n")
                left -= len(piece)
            return lines


class _Lines:
    """The bytes of the lines of a file that begin in a range."""

    def __init__(self, file: IO[bytes], start: int, stop: int) -> None:
        self._file, self._at = file, _first_line_from(file, start)
        self._end = _first_line_from(file, stop)
        file.seek(self._at)

    def read(self, size: int, /) -> bytes:
        data = self._file.read(min(size, max(0, self._end - self._at)))
        self._at += len(data)
        return data


def _first_line_from(file: IO[bytes], place: int) -> int:
    """Where the first line begins that begins at a place or after it."""
    if place == 0:
        return 0
    at = place - 1
    file.seek(at)
    while piece := file.read(_PIECE):
        if (end := piece.find(b"\n")) >= 0:
            return at + end + 1
        at += len(piece)
    return at


def parts_of(files: Sequence[DataFile], rows: int = ROWS_PER_PART, *, workers: int = 0) -> list[Part]:
    """The parts of files, in order. They depend on nothing but the files and these numbers.

    Args:
        files: The files.
        rows: About how many rows a part has.
        workers: For how many processes there should be enough parts, if the files have so many rows and can be cut; 0
            if it doesn't matter.

    Raises:
        DataError: A file can't be read; the message has its name.
    """
    parts: list[Part] = []
    for file in files:
        try:
            parts += _parts_of(file, rows)
        except DataError as error:
            raise DataError(f"{named(str(file.location))}: ", error) from None
    enough = workers * (PARTS_PER_WORKER if rows > FEW_ROWS else FEW_PARTS_PER_WORKER)
    if len(parts) < enough and rows > 1 and any(part.stop is not None for part in parts):
        return parts_of(files, max(1, rows // 2), workers=workers)
    return parts


def _parts_of(file: DataFile, rows: int) -> Iterator[Part]:
    if file.kind == ".parquet":
        for start, stop in _ranges(parquet_groups(file.location), rows):
            yield Part(file, start, stop)
        return
    if file.kind not in JSON_LINES or file.zipped:
        yield Part(file)
        return
    with file.location.open() as stream:
        start = stream.read(_START)
    marked, mark = encoding_of(start)
    encoding = marked if mark or file.encoding is None else file.encoding
    if codecs.lookup(encoding).name != "utf-8":  # only reading all before it finds a line in another encoding
        yield Part(file)
        return
    size = file.location.size
    length = len(start) / max(1, start.count(b"\n"))
    parts = -(-size // max(1, int(rows * length)))
    for part in range(parts):
        yield Part(file, size * part // parts, size * (part + 1) // parts)


def _ranges(groups: Iterable[int], rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows of about the same size that have whole row groups, or are a part of one."""
    first = last = 0
    for group in groups:
        if last - first and last - first + group > rows:
            yield first, last
            first = last
        if group > 2 * rows:
            parts = -(-group // rows)
            ends = [last + group * part // parts for part in range(parts + 1)]
            yield from itertools.pairwise(ends)
            first = ends[-1]
        last += group
    if last > first:
        yield first, last


def row_number(place: str) -> int:
    """The number in the position of a row, such as 3 in `line 3`."""
    return int(place.split(" ", 2)[1])
