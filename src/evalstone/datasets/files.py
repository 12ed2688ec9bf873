"""Data files as rows with their positions: JSON, JSON Lines, CSV, Parquet, Excel, and gzip of the text formats."""

from __future__ import annotations

import codecs
import csv
import gzip
import itertools
import os
import re
import sys
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from evalstone._core.display import count, escaped, excerpt, named, nearest, quoted, shortlist
from evalstone._core.files import (
    ByteStream,
    Expansion,
    check_encoding,
    first_of_utf8,
    numbered_lines,
    row_limit,
    text_pieces,
    too_long,
)
from evalstone._core.front_ends import Setting
from evalstone._core.storage import Location, check_address, is_address, is_pattern
from evalstone.datasets.arrow import parquet_rows
from evalstone.datasets.cells import scalar_text
from evalstone.datasets.columns import field_of
from evalstone.datasets.json_rows import json_lines, json_rows
from evalstone.datasets.row_labels import label_name
from evalstone.datasets.sheets import sheet_rows
from evalstone.datasets.tables import Refused, Rows
from evalstone.errors import ConfigError, DataError

READABLE = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".xlsx")
_BINARY = (".parquet", ".xlsx")
_READABLE = f"{', '.join(READABLE)} (all but the last two also as .gz)"
JSON_LINES = (".jsonl", ".ndjson")
_TABLES = (".csv", ".tsv", ".parquet", ".xlsx")
_MAX_CELL = 2**31 - 1
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n")
_ESCAPED_QUOTES = (
    "; quotes inside a cell must be doubled, not written with a backslash (pandas: doublequote=True; Spark: "
    "option('escape', '\"'))"
)
DELIMITERS = (",", ";", "\t", "|")
"""What may separate the cells of a .csv file."""
_BLANK_CELLS = ' \t\r\n,;|"'
"""The characters of a line of blank cells."""
_UTF_8 = ("utf-8", "utf-8-sig")
_SHEETS = (".xlsm", ".xls", ".ods")
_QUOTED = re.compile(r'"[^"]*"')


@dataclass(frozen=True)
class DataFile:
    """An existing data file: where it is, its format (such as `.jsonl`), and whether it is compressed."""

    location: Location
    kind: str
    zipped: bool
    encoding: str | None = None
    """The encoding of its text; None for the one that it says itself, or else UTF-8."""
    sheet: str | None = None
    """The sheet of an Excel file; None for the only one."""

    @classmethod
    def at(cls, location: Location) -> DataFile:
        """The data file at a location. Raises DataError for an unknown suffix."""
        kind, zipped = kind_of(location.name)
        if kind not in READABLE or (zipped and kind in _BINARY):
            hint = "; save it as .xlsx, or the sheet as CSV UTF-8" if kind in _SHEETS else ""
            raise DataError(f"{named(str(location))} has an unknown suffix; readable are {_READABLE}{hint}")
        return cls(location, kind, zipped)

    @property
    def cells(self) -> bool:
        """Whether the file is a table."""
        return self.kind in _TABLES

    @property
    def text_cells(self) -> bool:
        """Whether it has no sign for a missing value but a blank cell, and lists only as text."""
        return self.kind in (".csv", ".tsv", ".xlsx")

    @property
    def is_text(self) -> bool:
        """Whether it is a text, in an encoding."""
        return self.kind not in _BINARY

    def rows(self, *, by_id: bool = False, refused: Refused | None = None) -> Rows:
        """The rows with their positions, read one by one. by_id: as for `json_rows`. refused: What is called for a line
        of JSON Lines or a row of CSV that can't be read, which is left out then.

        Raises DataError if part of the file can't be read or is too long (see `row_limit`), or if the file expands to
        far more than its size (see `Expansion`).
        """
        if self.kind == ".parquet":
            yield from parquet_rows(self.location)
            return
        if self.kind == ".xlsx":
            yield from _table_rows(self, refused)
            return
        expansion = Expansion(self.location.size)
        for row in _rows_of(self.kind, expansion.counted(self.text()), refused, by_id=by_id):
            expansion.add_row()
            yield row

    def text(self) -> Iterator[str]:
        """The text in pieces. Raises DataError if it can't be read."""
        with self._opened() as stream:
            yield from text_pieces(stream, encoding=self.encoding, can_name=True)

    @property
    def can_be_read_again(self) -> bool:
        """Whether it can be read several times, unlike a pipe."""
        return self.location.local is None or self.location.local.is_file()

    def misread(self) -> tuple[str, str] | None:
        """The first character of a text in UTF-8 that is read in another encoding, and what becomes of it; None for any
        other file, and for one that can't be read, which its rows say."""
        if self.encoding is None or codecs.lookup(self.encoding).name in _UTF_8 or not self.can_be_read_again:
            return None
        try:
            with self._opened() as stream:
                first = first_of_utf8(stream)
            return (first, first.encode().decode(self.encoding, "replace")) if first else None
        except (DataError, UnicodeError):
            return None

    @contextmanager
    def _opened(self) -> Generator[ByteStream]:
        """Its bytes, without compression. Raises DataError if they can't be read."""
        try:
            with self.location.open() as file, gzip.open(file) if self.zipped else file as stream:
                yield stream
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataError(f"not a complete gzip file ({escaped(error)})") from None
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror or error}") from None


_OF_HUGGING_FACE = (frozenset(("state.json", "dataset_info.json")), frozenset(("dataset_dict.json",)))
"""The files that a dataset, or several splits of one, has in the folder that it was saved to."""


def find(path: str | os.PathLike[str]) -> DataFile:
    """The data file at a path or an address. Raises DataError for a missing file (naming similar ones) and for an
    unknown suffix."""
    location = Location.of(os.fspath(path))
    shown = named(str(location))
    try:
        local = location.local
        is_dir = (local is not None and local.is_dir()) or (local is None and bool(location.files()))
        if is_dir:
            names = [one.name for one in location.files()]
            if any(files <= {*names} for files in _OF_HUGGING_FACE):
                raise DataError(
                    f"{shown} is a folder of save_to_disk of Hugging Face: write one split with to_parquet, or load it "
                    "in Python with datasets.load_from_disk"
                )
            inside = [name for name in names if kind_of(name)[0] in READABLE]
            every = f"; to read all of them, write {named(str(location / '*'))}" if len(inside) > 1 else ""
            offer = f"; it contains {shortlist(inside)}{every}" if inside else ""
            raise DataError(f"{shown} is a folder; name a file with one of {_READABLE}{offer}")
        found = location.found() if local is None or local.is_file() else location
        if found is None or (local is not None and not local.exists()):
            raise DataError(f"{shown} does not exist" if local is None else _missing(local))
    except OSError as error:
        raise DataError(f"{quoted(path)} cannot be read: {error.strerror}") from None
    return DataFile.at(found)


def find_all(path: str, encoding: str | None = None, sheet: str | None = None) -> list[DataFile]:
    """The data file at a path or an address, or those whose names match its pattern, such as `data/*.jsonl`, by name.
    encoding: That of their texts, if they don't say it themselves. sheet: That of Excel files.

    Raises DataError as `find` does, if no file matches, or if those that match have several formats.
    """
    if is_address(path):
        check_address(path)
    if not is_pattern(path) or (not is_address(path) and Path(path).exists()):
        return _read_as([find(path)], encoding, sheet)
    folder, pattern = path.rsplit("/", 1) if is_address(path) else os.path.split(path)
    if is_pattern(folder):
        raise DataError(f"{named(path)} has a wildcard in the name of a folder; only names of files may have one")
    listed = Location.of(folder or ".").files(pattern)
    if not listed:
        raise DataError(f"no file matches {named(path)}")
    files = [*map(DataFile.at, listed)]
    if len(kinds := {file.kind for file in files}) > 1:
        raise DataError(f"the files that match {named(path)} have several formats: {', '.join(sorted(kinds))}")
    return _read_as(files, encoding, sheet)


def _read_as(files: list[DataFile], encoding: str | None, sheet: str | None) -> list[DataFile]:
    """The files with what the caller says about them. Raises ConfigError for an encoding or a sheet that they can't
    have."""
    check_encoding(encoding)
    name = named(files[0].location.name)
    if encoding is not None and not files[0].is_text:
        raise ConfigError(Setting("encoding"), f" is for files of text, which {name} is not")
    if sheet is not None and files[0].kind != ".xlsx":
        raise ConfigError(Setting("sheet"), f" is for Excel files, which {name} is not")
    return [replace(file, encoding=encoding, sheet=sheet) for file in files]


def rows_of(files: Sequence[DataFile], refused: Refused | None = None) -> Rows:
    """The rows of files, one after the other. If there are several, positions name the file: `line 3 of b.jsonl`.
    refused: As for `DataFile.rows`."""
    for file in files:
        of = "" if len(files) == 1 else f" of {named(file.location.name)}"
        try:
            for place, row in file.rows(refused=refused and _in_file(refused, of)):
                yield place + of, row
        except DataError as error:
            raise DataError(f"{named(file.location.name)}: " if of else "", error) from None


def _in_file(refused: Refused, of: str) -> Refused:
    return lambda place, error: refused(place + of, error)


def cautions(files: Sequence[DataFile]) -> Iterator[str]:
    """What to say of files in UTF-8 that are read in another encoding."""
    for file in files:
        if (misread := file.misread()) is not None:
            name = "the file" if len(files) == 1 else named(file.location.name)
            first, becomes = map(escaped, misread)
            yield (
                f"{name} is UTF-8 but is read as {file.encoding}, which makes {becomes} of {first}; leave the encoding "
                "out unless that is right"
            )


def file_name(files: Sequence[DataFile], source: str) -> str:
    """The name of a dataset: that of its file, or what names its files."""
    return files[0].location.name if len(files) == 1 else source


def standard_input() -> Rows:
    """JSON Lines from standard input."""
    return json_lines(text_pieces(sys.stdin.buffer))


def kind_of(name: str) -> tuple[str, bool]:
    """The suffix of the format, and whether `.gz` follows it. JSON Lines may have a number after the suffix, as rotated
    files do."""
    lower = name.lower()
    path = PurePath(lower.removesuffix(".gz"))
    rotated = path.suffix[1:].isdigit() and PurePath(path.stem).suffix in JSON_LINES
    return PurePath(path.stem if rotated else path).suffix, lower.endswith(".gz")


def _missing(path: Path) -> str:
    if path.is_symlink():
        return f"{named(str(path))} is a link to a file that does not exist, or to itself"
    if not path.parent.is_dir():
        return f"{named(str(path))} does not exist, nor does its folder"
    near = nearest(path.name, (entry.name for entry in path.parent.iterdir()))
    hint = f"; did you mean {' or '.join(map(named, near))}?" if near else ""
    return f"{named(str(path))} does not exist{hint}"


def _rows_of(kind: str, pieces: Iterator[str], refused: Refused | None, *, by_id: bool) -> Rows:
    if kind == ".json":
        return json_rows(pieces, by_id=by_id)
    if kind in JSON_LINES:
        return json_lines(pieces, refused=refused)
    return _csv_rows(pieces, "\t" if kind == ".tsv" else ",", refused)


def _csv_rows(pieces: Iterator[str], delimiter: str, refused: Refused | None) -> Rows:
    """The rows of a CSV file with a header. Empty cells are None. The position of a row is the line where it starts.

    The delimiter of a .csv file is the most frequent of comma, semicolon, tab and `|` outside quotes in the header, or
    that of a first line `sep=;`, as written by Excel. Blank lines and rows of blank cells are skipped, and so are
    columns after the last named one, if they have no cells. Raises DataError as `_Table` does, and for unbalanced
    quotes.
    """
    lines = (line for _, line in numbered_lines(pieces, any_end=True))
    delimiter, above, first = _csv_start(lines, delimiter)
    line, table = first, None
    source = _CsvLines(itertools.chain(above, lines))
    try:
        reader = csv.reader(source, delimiter=delimiter, strict=True)
        for cells in _of_any_size(reader):
            if not any(cell.strip() for cell in cells):
                pass
            elif table is None:
                table = _Table(cells, f"line {line}")
            else:
                try:
                    row = table.row(cells)
                except DataError as error:
                    if refused is None:
                        raise error.located(f"line {line}: ") from None
                    refused(f"line {line}", error)
                    if isinstance(error, _TitleAboveError):
                        return
                else:
                    yield f"line {line}", row
            line = reader.line_num + first
            source.start_row(line)
    except csv.Error as error:
        hint = _ESCAPED_QUOTES if "expected after" in str(error) else ""
        raise DataError(f"line {line}: broken CSV ({escaped(error)}){hint}") from None


def _of_any_size(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """The rows of a reader, whose cells may be longer than the limit of the process. It is only lifted while a row is
    read, because several files may be read in turns."""
    while True:
        limit = csv.field_size_limit(_MAX_CELL)
        try:
            cells = next(reader, None)
        finally:
            csv.field_size_limit(limit)
        if cells is None:
            return
        yield cells


def delimiter_of(file: DataFile) -> str:
    """The delimiter of a CSV file; "" for other files. Raises DataError as `DataFile.text` does."""
    if file.kind not in (".csv", ".tsv"):
        return ""
    lines = (line for _, line in numbered_lines(file.text(), any_end=True))
    return _csv_start(lines, "\t" if file.kind == ".tsv" else ",")[0]


def header_in(text: str, kind: str) -> tuple[str, ...]:
    """The header of a CSV file of a kind, from its text, which may be cut; empty if it isn't there as a whole."""
    lines = (line for _, line in numbered_lines([text], any_end=True))
    delimiter, above, _ = _csv_start(lines, "\t" if kind == ".tsv" else ",")
    try:
        rows = csv.reader(itertools.chain(above, lines), delimiter=delimiter)
        return next((tuple(cells) for cells in rows if any(cell.strip() for cell in cells)), ())
    except csv.Error:
        return ()


def _csv_start(lines: Iterator[str], delimiter: str) -> tuple[str, list[str], int]:
    """The delimiter of a CSV file, the lines up to its header, and the number of the first of them."""
    above = [next(lines, "")]
    if declared := _SEPARATOR_LINE.fullmatch(above[0]):
        return declared[1], [next(lines, "")], 2
    while not above[-1].strip(_BLANK_CELLS) and (line := next(lines, "")):
        above.append(line)
    header = _QUOTED.sub("", above[-1])
    return max(*DELIMITERS, key=header.count) if delimiter == "," else delimiter, above, 1


class _CsvLines(Iterator[str]):
    """The lines of a CSV file, with their size counted per row, because a quoted cell may span many lines."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines, self.limit = lines, row_limit()
        self.start_row(1)

    def start_row(self, line: int) -> None:
        self.line, self.size = line, 0

    def __next__(self) -> str:
        text = next(self.lines)
        self.size += len(text)
        if self.size > self.limit:
            raise too_long(f"the row that begins in line {self.line}")
        return text


def _table_rows(file: DataFile, refused: Refused | None) -> Rows:
    """The rows of a sheet with a header. The position of a row is its number in the sheet."""
    table = None
    for number, cells in sheet_rows(file.location, file.sheet):
        place = f"row {number}"
        if table is None:
            table = _Table([scalar_text(cell) or "" for cell in cells], place)
            continue
        try:
            row = table.row(cells)
        except DataError as error:
            if refused is None:
                raise error.located(f"{place}: ") from None
            refused(place, error)
            if isinstance(error, _TitleAboveError):
                return
        else:
            yield place, row


class _TitleAboveError(DataError):
    """What was taken for the header is a title above it, so that no row can be read."""


class _Table:
    """The rows of a table by the names of its columns.

    A first column without a name has row labels, as pandas writes them: it is named as for a data frame, or left out if
    it counts the rows.

    Raises DataError for a header with an empty or repeated name.
    """

    def __init__(self, header: list[str], place: str) -> None:
        names = [cell.strip() for cell in header]
        while len(names) > 1 and not names[-1]:  # spreadsheets add columns that were used once
            names.pop()
        self._unnamed = len(header) - len(names)
        self._has_labels = len(names) > 1 and not names[0]
        if self._has_labels:
            names[0] = label_name(None, names)
        self._rows, self._counts = 0, False
        seen: set[str] = set()
        for number, name in enumerate(names, start=1):
            if not name:
                problem = f"{place}: column {number} has no name in the header: {shortlist(names)}"
                raise DataError(f"{problem}; if the header is below, delete what is above it")
            if name in seen:
                raise DataError(f"{place}: two columns of the header are named {excerpt(name)}")
            seen.add(name)
        self._names = names

    def row(self, cells: Sequence[Any]) -> dict[str, Any]:
        """A row. Raises DataError if it has more or fewer cells than the header, or if the row labels stop counting."""
        names, number = self._names, self._rows
        self._rows += 1
        extra = cells[len(names) :]
        filled = next((cell for cell in extra if not _is_blank(cell)), None)
        if filled is not None or len(extra) > self._unnamed:
            columns, first = count(len(names), "column"), excerpt(extra[0] if filled is None else filled)
            fields = sum(isinstance(cell, str) and field_of(cell) is not None for cell in cells)
            problem = f"{len(cells)} cells for {columns}; the first extra one is {first}"
            if fields > 1 and not any(map(field_of, names)):
                raise _TitleAboveError(f"{problem}; if this is the header, delete what is above it")
            raise DataError(problem)
        if len(cells) < len(names):  # a cut file, or a line break in a cell without quotes
            lacking = excerpt(names[len(cells)])
            raise DataError(f"{count(len(cells), 'cell')} for {len(names)} columns; there is none for {lacking}")
        if self._has_labels:
            counts = scalar_text(cells[0]) == str(number)
            if number == 0:
                self._counts = counts
            if self._counts and not counts:
                raise DataError(
                    f"the first column has no name and counts the rows before this one, but has {excerpt(cells[0])} "
                    "here; give it a name, or write a pandas table with index=False"
                )
            if self._counts:
                names, cells = names[1:], cells[1:]
        return {name: None if _is_blank(cell) else cell for name, cell in zip(names, cells, strict=False)}


def _is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())
