"""The text of a JSON, JSON Lines or CSV file as rows, each with its place in the file."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Generator, Iterator
from typing import Any, TypeAlias, cast

from evalstone.datasets.layouts import LIST_NAMES, rows_in
from evalstone.datasets.parsing import parsed
from evalstone.datasets.wording import escaped, excerpt, listed
from evalstone.errors import DataError

Rows: TypeAlias = Iterator[tuple[str, Any]]

_LARGEST_CELL = 2**31 - 1


def json_lines(text: str, first: int = 1) -> Rows:
    """One object a line, counted from `first`; blank lines are skipped.

    Raises DataError with line and column of what is no JSON.
    """
    for number, line in enumerate(text.split("\n"), start=first):
        if line and not line.isspace():
            yield f"line {number}", parsed(line, number)


def json_items(text: str) -> Rows:
    """The items of an array, or the rows of an object in one of the layouts of `rows_in`, or one object as one row.

    JSON Lines are read as such under this name too. Raises DataError for anything else.
    """
    if not text.strip():
        return
    try:
        value = parsed(text, 1)
    except DataError:
        if not _starts_with_line_of_json(text):
            raise
        yield from json_lines(text)
        return
    yield from _items(value)


def csv_rows(text: str, delimiter: str) -> Rows:
    """Rows of a CSV file with a header; an empty cell is absent (None). Places are the lines where rows begin.

    Where the header has no comma, tabs or semicolons in it separate, whichever are more. Raises DataError for a header
    with an empty or a repeated name, a row with more cells than the header, and broken quotes.
    """
    if delimiter == "," and "," not in (head := text.split("\n", 1)[0]):
        delimiter = max(",", "\t", ";", key=head.count)
    with _large_cells():
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        header: list[str] | None = None
        begin = 1
        while (cells := _next(reader, begin)) is not None:
            if cells and header is None:
                header = _header(cells, begin)
            elif cells and header is not None:
                yield f"line {begin}", _row(header, cells, begin)
            begin = reader.line_num + 1


def _starts_with_line_of_json(text: str) -> bool:
    first, _, rest = text.lstrip().partition("\n")
    try:
        return bool(rest.strip()) and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _items(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, list):
        return [(f"item {number}", item) for number, item in enumerate(cast("list[Any]", value), start=1)]
    if not isinstance(value, dict):
        raise DataError(f"must be a list of objects, not {type(value).__name__}: {excerpt(value)}")
    entries = cast("dict[str, Any]", value)
    rows = rows_in(entries)
    if not entries or (rows is None and any(isinstance(item, list) for item in entries.values())):
        wanted = f"must be a list of objects, or an object with one under {listed(LIST_NAMES)}"
        raise DataError(f"{wanted}; it is an object with {listed(entries) or 'nothing'}")
    return [("item 1", entries)] if rows is None else rows


@contextlib.contextmanager
def _large_cells() -> Generator[None, None, None]:
    # The limit is one for the whole process, so it is put back.
    before = csv.field_size_limit(_LARGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _next(reader: Iterator[list[str]], line: int) -> list[str] | None:
    try:
        return next(reader, None)
    except csv.Error as error:
        raise DataError(f"line {line}: broken CSV ({escaped(error)})") from None


def _header(cells: list[str], line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    for place, name in enumerate(names, start=1):
        if not name:
            hint = "; a pandas table is written without its index by index=False" if place == 1 else ""
            raise DataError(f"line {line}: column {place} has no name in the header: {listed(names)}{hint}")
        if name in names[: place - 1]:
            raise DataError(f"line {line}: two columns of the header are named {excerpt(name)}")
    return names


def _row(header: list[str], cells: list[str], line: int) -> dict[str, str | None]:
    if len(cells) > len(header):
        extra = excerpt(cells[len(header)])
        raise DataError(f"line {line}: {len(cells)} cells for {len(header)} columns; the first too many is {extra}")
    padded = cells + [""] * (len(header) - len(cells))
    return {name: cell or None for name, cell in zip(header, padded, strict=True)}
