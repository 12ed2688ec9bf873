"""CSV that no spreadsheet executes.

Spreadsheets treat a cell as a formula if its text begins with one of = + - @, possibly after quotes or spaces. Such a
cell gets an apostrophe in front. So does text after a semicolon or a line break, where some spreadsheets split the row.
Text is quoted, including its line breaks; numbers are not.
Source: OWASP, "CSV Injection".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, cast

from evalstone._core.display import visible
from evalstone.report.view import ABSENT, Table, View

LONGEST_CELL = 32_000
"""A spreadsheet cell holds at most 32,767 characters."""
_AT_ONCE = 256
"""The number of rows that are written together."""
_FORMULA = re.compile(
    r"""^(?=[\s"'`]*[=+\-@|%\uff1d\uff0b\uff0d\uff20\u2212])|(?<=;)(?=["'`]*[=+\-@])"""
    # the beginning of a line, where some spreadsheets split the row; a bullet is harmless
    r"""|(?<=\n)(?=[ \t"'`]*[=+\-@])(?![ \t]*[-+] [^(|!=\n]*(?:\n|\Z))"""
)

Value: TypeAlias = str | float | int | None
_NUMBER = re.compile(r"[+−-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_INTERVAL = re.compile(rf"({_NUMBER.pattern}%?) to ({_NUMBER.pattern}%?)")


def inert(text: str) -> str:
    """Text that no spreadsheet treats as a formula, cut to the size of a cell."""
    shown = visible(re.sub("\r\n?", "\n", text[: LONGEST_CELL + 1]) if "\r" in text else text[: LONGEST_CELL + 1])
    shown = shown if len(shown) <= LONGEST_CELL else shown[: LONGEST_CELL - 1] + "…"
    if text[:1].isalnum() and ";" not in text and "\n" not in shown:
        return shown  # like most texts, it has no place where a formula can begin
    return _FORMULA.sub("'", shown)


def csv_rows(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> Iterator[str]:
    """Lines of CSV: text quoted and inert, numbers, true and false bare, None an empty cell."""
    waiting, block = iter(rows), list[Sequence[Value]]([header])
    while block:
        columns = [_written(cells) for cells in zip(*block, strict=True)]
        yield from (f"{','.join(row)}\r\n" for row in zip(*columns, strict=True))
        block = [*itertools.islice(waiting, _AT_ONCE)]


def _written(cells: Sequence[Value]) -> list[str]:
    """The cells of a column as they are written."""
    kinds = {*map(type, cells)}
    if kinds == {str}:
        texts = cast("Sequence[str]", cells)
        first = _quoted(inert(texts[0]))
        if texts.count(texts[0]) == len(texts):
            return [first] * len(texts)
        if _plain(texts):
            return [f'"{text}"' for text in texts]
    if kinds <= {int, float}:
        return [*map(str, cells)]
    if kinds == {type(None)}:
        return ['""'] * len(cells)
    return [*map(_cell, cells)]


def _cell(cell: Value) -> str:
    if cell is None:
        return '""'
    if isinstance(cell, str):
        return _quoted(inert(cell))
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _plain(texts: Sequence[str]) -> bool:
    """Whether all of these texts, like most, only need quotes around them: they are harmless and have no quotes."""
    joined, starts = "|".join(texts), "".join([text[:1] for text in texts])
    return (
        (starts.isalnum() or not starts)
        and not any(mark in joined for mark in '";\n\r')
        and max(map(len, texts)) <= LONGEST_CELL
        and visible(joined) == joined
    )


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def lines(view: View) -> Iterator[str]:
    """The tables of a report as lines of CSV, with the columns that other formats leave out because all rows have the
    same value. A user's text stays as it is. Several tables are separated by an empty line, each below a line with its
    caption."""
    sections = (*view.sections, *view.details)
    tables = [table.whole or table for section in sections for table in section.tables]
    for place, table in enumerate(tables):
        if place:
            yield "\r\n"
        if len(tables) > 1:
            yield from csv_rows([table.caption], ())
        yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    header: list[str] = []
    columns: list[list[Value]] = []
    for index, column in enumerate(table.columns):
        cells = [row[index].text.strip() for row in table.rows]
        if index == 0:
            # A row without a name continues the one above it.
            names: list[Value] = []
            for cell in cells:
                names.append(cell or (names[-1] if names else None))
            header, columns = [column.title], [names]
            continue
        if any(row[index].chart for row in table.rows) and not any(cells):
            continue
        # Two intervals have the same title; the second belongs to the column before it.
        title = column.csv or column.title
        title = f"{header[-1]} {title}" if title in {*header, *_ends(header)} else title
        quoted = [row[index].quoted for row in table.rows]
        if column.interval:
            header += [f"{title}, low", f"{title}, high"]
            columns += map(list, zip(*map(_limits, cells), strict=True)) if cells else [[], []]
        else:
            header.append(title)
            columns.append(
                [cell if literal else _value(cell, column.numeric) for cell, literal in zip(cells, quoted, strict=True)]
            )
    return csv_rows(header, zip(*columns, strict=True))


def _limits(cell: str) -> tuple[Value, Value]:
    """The limits of an interval. A single number is both of them; a text without numbers is there once."""
    if found := _INTERVAL.fullmatch(cell):
        return _number(found[1]), _number(found[2])
    limit = _value(cell, numeric=True)
    return limit, None if isinstance(limit, str) else limit


def _ends(header: Iterable[str]) -> Iterator[str]:
    """The titles of the columns that were split into the ends of intervals."""
    return (title.removesuffix(", low") for title in header)


def _value(text: str, numeric: bool) -> Value:
    """A cell as a number if its column has numbers. An absent value is an empty cell."""
    return None if text in ABSENT else _number(text) if numeric else text


def _number(text: str) -> Value:
    """A text as a number if it is one; a percentage stays a text."""
    if not _NUMBER.fullmatch(text):
        return text
    plain = text.replace(",", "").replace("−", "-")
    return float(plain) if "." in plain else int(plain)
