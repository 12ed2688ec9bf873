"""Data files as rows, each with its place in the file: JSON, JSON Lines, CSV, Parquet, and gzip of the text formats."""

from __future__ import annotations

import codecs
import csv
import gzip
import importlib
import io
import json
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, cast

from evalstone.datasets.tables import LIST_NAMES, Rows, numbered, rows_in
from evalstone.datasets.wording import escaped, excerpt, listed, named, nearest
from evalstone.errors import DataError, MissingDependency

READABLE = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
_TABLES = (".csv", ".tsv", ".parquet")
# UTF-32 before UTF-16: the little-endian mark of the one begins with the mark of the other.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MAX_CELL = 2**31 - 1
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n")
_QUOTED = re.compile(r'"[^"]*"')
_JSON_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[{}]', re.DOTALL)


@dataclass(frozen=True)
class DataFile:
    """A data file that exists: its path, its kind (`.jsonl`), and whether it is compressed."""

    path: Path
    kind: str
    zipped: bool

    @property
    def cells(self) -> bool:
        """Whether the rows are those of a table."""
        return self.kind in _TABLES

    def rows(self) -> Rows:
        """The rows with their places. Raises DataError that says what in the file can't be read."""
        if self.kind == ".parquet":
            return _parquet_rows(self.path)
        try:
            data = self.path.read_bytes()
            text = decoded(gzip.decompress(data) if self.zipped else data)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataError(f"not a complete gzip file ({escaped(error)})") from None
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}") from None
        if self.kind == ".json":
            return _json_rows(text)
        if self.kind in (".jsonl", ".ndjson"):
            return json_lines(text)
        return _csv_rows(text, "\t" if self.kind == ".tsv" else ",")


def find(path: Path) -> DataFile:
    """The data file at a path. Raises DataError for a missing file, with similar names, and for an unknown suffix."""
    readable = f"{', '.join(READABLE)} (all but the last also as .gz)"
    try:
        if path.is_dir():
            inside = sorted(entry.name for entry in path.iterdir() if _kind(entry.name)[0] in READABLE)
            offer = f"; it contains {listed(inside)}" if inside else ""
            raise DataError(f"{named(str(path))} is a folder; name a file with one of {readable}{offer}")
        if not path.exists():
            raise DataError(_missing(path))
    except OSError as error:
        raise DataError(f"{excerpt(str(path))} cannot be read: {error.strerror}") from None
    kind, zipped = _kind(path.name)
    if kind not in READABLE or (zipped and kind == ".parquet"):
        raise DataError(f"{named(str(path))} has an unknown suffix; readable are {readable}")
    return DataFile(path, kind, zipped)


def standard_input() -> Rows:
    """JSON Lines from standard input."""
    return json_lines(decoded(sys.stdin.buffer.read()))


def _kind(name: str) -> tuple[str, bool]:
    """The suffix of the format, and whether `.gz` follows it."""
    lower = name.lower()
    return PurePath(lower.removesuffix(".gz")).suffix, lower.endswith(".gz")


def _missing(path: Path) -> str:
    if not path.parent.is_dir():
        return f"{named(str(path))} does not exist, nor does its folder"
    near = nearest(path.name, (entry.name for entry in path.parent.iterdir()))
    hint = f"; did you mean {' or '.join(map(named, near))}?" if near else ""
    return f"{named(str(path))} does not exist{hint}"


def decoded(data: bytes) -> str:
    """The text: UTF-8 with or without a byte order mark, UTF-16 or UTF-32 with one.

    Raises DataError that names the first byte that is not text, and for NUL characters.
    """
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        # The utf-8-sig decoder counts from behind the mark.
        start = error.start + (len(codecs.BOM_UTF8) if encoding == "utf-8-sig" else 0)
        line, byte = data.count(b"\n", 0, start) + 1, data[start : start + 1].hex()
        name = encoding.removesuffix("-sig").upper()
        raise DataError(f"not {name}: byte {start + 1} (0x{byte}, line {line}); save the file as UTF-8") from None
    nul = text.find("\0")
    if nul >= 0:
        line = text.count("\n", 0, nul) + 1
        raise DataError(f"NUL character in line {line}: a binary file, or UTF-16 without a byte order mark")
    return text


def json_lines(text: str, first: int = 1) -> Rows:
    """One JSON value per line, counted from `first`; blank lines are skipped.

    Raises DataError with line and column of what is not JSON.
    """
    for number, line in enumerate(text.split("\n"), start=first):
        if line and not line.isspace():
            yield f"line {number}", parse_json(line, number)


def _json_rows(text: str) -> Rows:
    """The items of an array, the rows of an object in one of the layouts of `rows_in`, or one object as one row.

    JSON Lines are read as such under this name too. Raises DataError for anything else.
    """
    if not text.strip():
        return
    try:
        value = parse_json(text)
    except DataError:
        if not _starts_with_json_line(text):
            raise
        yield from json_lines(text)
        return
    if isinstance(value, list):
        yield from numbered("item", cast("list[Any]", value))
        return
    if not isinstance(value, dict):
        raise DataError(f"must be a list of objects, not {type(value).__name__}: {excerpt(value)}")
    entries = cast("dict[str, Any]", value)
    rows = rows_in(entries)
    if not entries or (rows is None and any(isinstance(item, list) for item in entries.values())):
        expected = f"must be a list of objects, or an object with one under {listed(LIST_NAMES)}"
        raise DataError(f"{expected}; it is an object with {listed(entries) or 'nothing'}")
    yield from [("item 1", entries)] if rows is None else rows


def _starts_with_json_line(text: str) -> bool:
    first, _, rest = text.lstrip().partition("\n")
    try:
        return bool(rest.strip()) and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


class _DuplicateKeyError(Exception):
    """An object has the same key twice."""


def parse_json(text: str, line: int = 1) -> Any:
    """The value of a JSON text that begins in `line`.

    Raises DataError with line and column of what is not JSON, and with the line of a key that an object has twice: one
    of the two values would be lost.
    """
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 20) : error.pos + 20]
        at = line + error.lineno - 1
        raise DataError(f"line {at}, column {error.colno}: not JSON ({error.msg}): {excerpt(near)}") from None
    except _DuplicateKeyError:
        key, position = _duplicate_key(text)
        at = line + text.count("\n", 0, position)
        raise DataError(f"line {at}: duplicate key {excerpt(key)} in one object") from None
    except RecursionError:
        raise DataError(f"line {line}: nested too deeply") from None
    except ValueError as error:
        raise DataError(f"line {line}: not JSON ({escaped(error)}): {excerpt(text)}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise _DuplicateKeyError
    return entries


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _duplicate_key(text: str) -> tuple[str, int]:
    """The first key that its object already has, and its position. The text must have one."""
    objects: list[set[str]] = []
    for token in _JSON_TOKEN.finditer(text):
        if token[0] == "{":
            objects.append(set())
        elif token[0] == "}":
            objects.pop()
        elif token[2]:
            key: str = json.loads(token[1])
            if key in objects[-1]:
                return key, token.start()
            objects[-1].add(key)
    raise ValueError("there is no duplicate key")


def _csv_rows(text: str, delimiter: str) -> Rows:
    """Rows of a CSV file with a header; an empty cell is None. Places are the lines where rows begin.

    The delimiter of a .csv file is what stands most often between the quotes of its header: a comma, a semicolon or a
    tab; or it is in a first line `sep=;`, as Excel writes it. Rows of blank cells are skipped like blank lines. Raises
    DataError for a header with an empty or repeated name, a row with more cells than the header, and broken quotes.
    """
    first = 1
    if declared := _SEPARATOR_LINE.match(text):
        delimiter, text, first = declared[1], text[declared.end() :], 2
    elif delimiter == ",":
        header_line = _QUOTED.sub("", text.split("\n", 1)[0])
        delimiter = max(",", ";", "\t", key=header_line.count)
    limit = csv.field_size_limit(_MAX_CELL)  # one for the whole process, so it is put back
    line, header = first, None
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        for cells in reader:
            if header is None and cells:
                header = _header(cells, line)
            elif header is not None and any(cell.strip() for cell in cells):
                yield f"line {line}", _row(header, cells, line)
            line = reader.line_num + first
    except csv.Error as error:
        raise DataError(f"line {line}: broken CSV ({escaped(error)})") from None
    finally:
        csv.field_size_limit(limit)


def _header(cells: list[str], line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    for place, name in enumerate(names, start=1):
        if not name:
            hint = "; write a pandas table with index=False" if place == 1 else ""
            raise DataError(f"line {line}: column {place} has no name in the header: {listed(names)}{hint}")
        if name in names[: place - 1]:
            raise DataError(f"line {line}: two columns of the header are named {excerpt(name)}")
    return names


def _row(header: list[str], cells: list[str], line: int) -> dict[str, str | None]:
    if len(cells) > len(header):
        extra = excerpt(cells[len(header)])
        raise DataError(f"line {line}: {len(cells)} cells for {len(header)} columns; the first extra one is {extra}")
    padded = cells + [""] * (len(header) - len(cells))
    return {name: cell if cell.strip() else None for name, cell in zip(header, padded, strict=True)}


def _parquet_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """The rows of a Parquet file. Raises MissingDependency without pyarrow, DataError for an unreadable file."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingDependency("pyarrow", "parquet") from None
    try:
        with parquet.ParquetFile(path) as file:
            yield from numbered("row", (row for batch in file.iter_batches() for row in batch.to_pylist()))
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"not a Parquet file that pyarrow can read ({escaped(error)})") from None
