"""CSV that no spreadsheet executes.

Spreadsheets treat a cell as a formula if its text begins with one of = + - @, possibly after quotes or spaces. Such a
cell gets an apostrophe in front. So does text after a semicolon or a line break, where some spreadsheets split the row.
Text is quoted, including its line breaks; numbers are not.
Source: OWASP, "CSV Injection".
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from evalstone._core.display import visible
from evalstone.report.view import Cell, Table, View

LONGEST_CELL = 32_000
"""A spreadsheet cell holds at most 32,767 characters."""
_FORMULA = re.compile(
    r"""^(?=[\s"'`]*[=+\-@|%\uff1d\uff0b\uff0d\uff20\u2212])|(?<=;)(?=["'`]*[=+\-@])"""
    # the beginning of a line, where some spreadsheets split the row; a bullet is harmless
    r"""|(?<=\n)(?=[ \t"'`]*[=+\-@])(?![ \t]*[-+] [^(|!=\n]*(?:\n|\Z))"""
)

Value: TypeAlias = str | float | int | None
_NUMBER = re.compile(r"[+−-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
ABSENT = ("", "-")


def inert(text: str) -> str:
    """Text that no spreadsheet treats as a formula, cut to the size of a cell."""
    shown = visible(re.sub("\r\n?", "\n", text[: LONGEST_CELL + 1]))
    return _FORMULA.sub("'", shown if len(shown) <= LONGEST_CELL else shown[: LONGEST_CELL - 1] + "…")


def csv_rows(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> Iterator[str]:
    """Lines of CSV: text quoted and inert, numbers bare, None an empty cell."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    for row in itertools.chain([header], rows):
        writer.writerow([inert(cell) if isinstance(cell, str) else "" if cell is None else cell for cell in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def lines(view: View) -> Iterator[str]:
    """The tables of a report as lines of CSV, with the columns that other formats leave out because all rows have the
    same value. Several tables are separated by an empty line, each below a line with its caption."""
    sections = (*view.sections, *view.details)
    tables = [table.whole or table for section in sections for table in section.tables]
    for place, table in enumerate(tables):
        if place:
            yield "\r\n"
        if len(tables) > 1:
            yield from csv_rows([table.caption], ())
        yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    charts = {
        index
        for index in range(1, len(table.columns))
        if any(row[index].chart for row in table.rows) and not any(row[index].text for row in table.rows)
    }
    indexes = [index for index in range(len(table.columns)) if index not in charts]
    header: list[str] = []
    for index in indexes:
        title = table.columns[index].title
        # Two intervals have the same title; the second belongs to the column before it.
        header.append(f"{header[-1]} {title}" if header and title in header else title)
    name = ""
    rows: list[list[Value]] = []
    for row in table.rows:
        name = row[0].text or name  # a row without a name continues the one above it
        rows.append([name, *(_value(row[index], table.columns[index].numeric) for index in indexes[1:])])
    return csv_rows(header, rows)


def _value(cell: Cell, numeric: bool) -> Value:
    """A cell as a number if its column has numbers. An absent value is an empty cell."""
    text = cell.text.strip()
    if text in ABSENT:
        return None
    if numeric and _NUMBER.fullmatch(text):
        plain = text.replace(",", "").replace("−", "-")
        return float(plain) if "." in plain else int(plain)
    return cell.text
