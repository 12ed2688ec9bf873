"""Columns of millions of numbers and texts in a file of SQLite, for what is looked for in one pass over a few of them.

A column is stored in chunks of `CHUNK` rows with a checksum, so that a row at any place is read without most others.
Numbers are little endian; a missing one is NaN. A text is its UTF-8. Rows are numbered from 0.
"""

from __future__ import annotations

import importlib
import math
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evalstone._core.json import storable
from evalstone._core.packed_texts import PackedTexts
from evalstone.stats.smallest import smallest_places

CHUNK = 4096
TABLE = """
    CREATE TABLE columns (
        name TEXT, chunk INTEGER, checksum INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (name, chunk)
    )
"""
Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.int64]
Column: TypeAlias = Array | PackedTexts
Cursor: TypeAlias = tuple[float | str | None, int]
"""A place in an order: a value (None for rows without one), and a number, which is a row and one."""
_LENGTHS = " lengths"
"""After the name of a column of texts, that of their lengths."""


class DamagedColumns(Exception):
    """A column isn't what was written."""


class ColumnWriter:
    """Writes columns.

    Args:
        connection: A file with `TABLE`.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.about: dict[str, Any] = {}
        """What a reader needs to know of each column, as JSON data."""

    def numbers(self, name: str, values: Array) -> None:
        """Write a column of numbers. One that has the same number in all rows takes no space."""
        kind = values.dtype.newbyteorder("<")
        self.about[name] = {"kind": kind.str, "rows": values.size}
        first = values[0].item() if values.size else None
        if values.size and (np.isnan(values) if first != first else values == first).all():
            self.about[name]["all"] = None if first != first else first
            return
        self._write(name, (part.astype(kind).tobytes() for part in _chunks(values)))

    def texts(self, name: str, texts: Sequence[str]) -> None:
        """Write a column of texts, each as `storable`."""
        lengths = np.zeros(len(texts), np.uint32)

        def bodies() -> Iterator[bytes]:
            for start in range(0, len(texts), CHUNK):
                end = min(start + CHUNK, len(texts))
                body = b""
                if isinstance(texts, PackedTexts):
                    body = b"".join(texts.contents(np.arange(start, end)))
                    lengths[start:end] = texts.lengths[start:end]
                if not isinstance(texts, PackedTexts) or _may_differ(body):
                    encoded = [storable(texts[place]).encode() for place in range(start, end)]
                    body, lengths[start:end] = b"".join(encoded), [*map(len, encoded)]
                yield body

        self._write(name, bodies())
        self.about[name] = {"kind": "text", "rows": len(texts)}
        self.numbers(name + _LENGTHS, lengths)

    def _write(self, name: str, bodies: Iterator[bytes]) -> None:
        rows = ((name, chunk, zlib.crc32(body), body) for chunk, body in enumerate(bodies))
        self._connection.executemany("INSERT INTO columns VALUES (?, ?, ?, ?)", rows)


def _may_differ(content: bytes) -> bool:
    """Whether texts may not be `storable` as they are: they may have NUL, or surrogates, whose UTF-8 begins so."""
    return b"\0" in content or b"\xed" in content


def _chunks(values: Array) -> Iterator[Array]:
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


class StoredColumns:
    """Reads columns. Each is read once.

    Args:
        connection: A file with `TABLE`.
        about: What their writer knew of them.

    Whatever reads one raises DamagedColumns if it isn't as it was written.
    """

    def __init__(self, connection: sqlite3.Connection, about: Mapping[str, Any]) -> None:
        self._connection, self.about = connection, about
        self._arrays: dict[str, Array] = {}
        self._texts: dict[str, PackedTexts] = {}
        self._chunks = Counter[str]()
        """How many chunks of a column were read for a few rows."""

    def __contains__(self, name: str) -> bool:
        return name in self.about

    def numbers(self, name: str) -> Array:
        """A column of numbers."""
        if name not in self._arrays:
            of = self.about[name]
            if "all" in of:
                value = math.nan if of["all"] is None else of["all"]
                self._arrays[name] = np.full(of["rows"], value, of["kind"])
            else:
                self._arrays[name] = np.frombuffer(b"".join(self._bodies(name)), of["kind"])
        return self._arrays[name]

    def texts(self, name: str) -> PackedTexts:
        """A column of texts."""
        if name not in self._texts:
            content = bytearray()
            for body in self._bodies(name):
                content += body
            self._texts[name] = _packed(content, self.numbers(name + _LENGTHS))
        return self._texts[name]

    def find(self, name: str, text: str) -> int | None:
        """The first row with a text; None if there is none."""
        data = text.encode()
        for chunk, body in enumerate(self._bodies(name)):
            if data in body:
                texts = _packed(body, self.in_chunk(chunk, name + _LENGTHS))
                if (rows := np.flatnonzero(texts.compared(text) == 0)).size:
                    return chunk * CHUNK + int(rows[0])
        return None

    def matching(self, name: str, pattern: str) -> Mask:
        """Which texts of a column a regular expression finds something in, in upper or lower case; "" finds nothing."""
        found: Mask = np.zeros(int(self.about[name]["rows"]), np.bool_)
        if not pattern:
            return found
        arrow: Any = importlib.import_module("pyarrow")
        compute: Any = importlib.import_module("pyarrow.compute")
        for chunk, body in enumerate(self._bodies(name)):
            ends = np.concatenate([[0], self.in_chunk(chunk, name + _LENGTHS).cumsum()]).astype(np.int32)
            buffers = [arrow.py_buffer(each) for each in (ends, body)]
            texts = arrow.StringArray.from_buffers(len(ends) - 1, *buffers)
            _, bits = compute.match_substring_regex(texts, pattern, ignore_case=True).buffers()
            in_chunk = found[chunk * CHUNK : (chunk + 1) * CHUNK]
            in_chunk[:] = np.unpackbits(np.frombuffer(bits, np.uint8), count=len(in_chunk), bitorder="little")
        return found

    def column(self, name: str) -> Column:
        """A column of either kind."""
        return self.texts(name) if self.about[name]["kind"] == "text" else self.numbers(name)

    def numbers_at(self, name: str, rows: Sequence[int]) -> list[Any]:
        """The numbers in a few rows, of which not all of the column is read; None for a missing one."""
        of = self.about[name]
        if "all" in of:
            return [of["all"]] * len(rows)
        if self._is_read(name, rows):
            found = self.numbers(name)[[*rows]].tolist()
        else:
            chunks = {chunk: self.in_chunk(chunk, name) for chunk in {row // CHUNK for row in rows}}
            found = [chunks[row // CHUNK][row % CHUNK].item() for row in rows]
        return [None if value != value else value for value in found]

    def texts_at(self, name: str, rows: Sequence[int]) -> list[str]:
        """The texts in a few rows."""
        if self._is_read(name, rows):
            return [self.texts(name)[row] for row in rows]
        chunks: dict[int, PackedTexts] = {}
        for chunk in {row // CHUNK for row in rows}:
            chunks[chunk] = _packed(self._body(name, chunk), self.in_chunk(chunk, name + _LENGTHS))
        return [chunks[row // CHUNK][row % CHUNK] for row in rows]

    def _is_read(self, name: str, rows: Sequence[int]) -> bool:
        """Whether a column is read as a whole for a few rows: if it was, or else as many chunks of it."""
        if name in self._arrays or name in self._texts:
            return True
        self._chunks[name] += len({row // CHUNK for row in rows})
        return self._chunks[name] * CHUNK > 2 * self.about[name]["rows"] + CHUNK

    def in_chunk(self, chunk: int, name: str) -> Array:
        """The numbers of a chunk of a column."""
        of = self.about[name]
        if name in self._arrays or "all" in of:
            return self.numbers(name)[chunk * CHUNK : (chunk + 1) * CHUNK]
        return np.frombuffer(self._body(name, chunk), of["kind"])

    def _bodies(self, name: str) -> Iterator[bytes]:
        query = "SELECT checksum, body FROM columns WHERE name = ? ORDER BY chunk"
        rows = self._connection.execute(query, (name,))
        for _ in range(0, self.about[name]["rows"], CHUNK):
            yield _checked(rows.fetchone())

    def _body(self, name: str, chunk: int) -> bytes:
        query = "SELECT checksum, body FROM columns WHERE name = ? AND chunk = ?"
        return _checked(self._connection.execute(query, (name, chunk)).fetchone())


def _checked(row: tuple[int, bytes] | None) -> bytes:
    """The body of a chunk. Raises DamagedColumns if it isn't what was written."""
    if row is None or zlib.crc32(row[1]) != row[0]:
        raise DamagedColumns
    return row[1]


def _packed(content: bytes | bytearray, lengths: Array) -> PackedTexts:
    starts = lengths.cumsum(dtype=np.uint64) - lengths
    return PackedTexts.of_buffers(content, starts.view(np.uint8).data, lengths.astype(np.uint32).view(np.uint8).data)


def ordered(
    column: Column,
    found: Mask | None,
    cursor: Cursor | None,
    most: int,
    *,
    descending: bool = False,
    back: bool = False,
) -> list[int]:
    """The first rows after a cursor, or before it in the opposite order, by a column and, of equal values, by row. Rows
    without a value come last.

    Args:
        column: What rows are ordered by.
        found: Which rows are there; None for all.
        cursor: The place in the order; None for its beginning.
        most: How many rows.
        descending: Whether large values come first.
        back: Whether rows before the cursor are wanted.
    """
    value, number = (None, 0) if cursor is None else cursor
    rows: list[int] = []
    for are_without in (True, False) if back else (False, True):
        is_here = cursor is not None and (value is None) == are_without
        if cursor is not None and not is_here and are_without == back:
            continue  # the cursor is in the other part, behind all of this one
        some = _is_missing(column) if are_without else ~_is_missing(column)
        some = some if found is None else some & found
        if is_here:
            some &= _is_beyond(column, value, number, descending=descending != back, back=back)
        chosen: Rows = np.flatnonzero(some)
        rows += _first(None if are_without else column, chosen, most - len(rows), descending != back, back=back)
        if len(rows) == most:
            break
    return rows


def _is_missing(column: Column) -> Mask:
    return np.zeros(len(column), np.bool_) if isinstance(column, PackedTexts) else np.isnan(column)


def _is_beyond(column: Column, value: float | str | None, number: int, *, descending: bool, back: bool) -> Mask:
    """Which rows come after a place. A text comes after any number."""
    place = np.arange(1, len(column) + 1)
    is_beyond: Mask = place < number if back else place > number
    if value is None:
        return is_beyond
    if isinstance(column, PackedTexts):
        signs = column.compared(value) if isinstance(value, str) else np.ones(len(column), np.int8)
        return (signs == (-1 if descending else 1)) | ((signs == 0) & is_beyond)
    limit = math.inf if isinstance(value, str) else value
    return (column < limit if descending else column > limit) | ((column == limit) & is_beyond)


def _first(column: Column | None, rows: Rows, most: int, descending: bool, *, back: bool) -> list[int]:
    """The first of some rows, by a column if there is one, and of equal values the last ones first if `back`."""
    rows = rows[::-1] if back else rows
    if column is None:
        return rows[:most].tolist()
    if isinstance(column, PackedTexts):
        return column.first(most, rows, last=descending)
    values = column[rows].astype(np.float64)
    return rows[smallest_places(-values if descending else values, most)].tolist()
