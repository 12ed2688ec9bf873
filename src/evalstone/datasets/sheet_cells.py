"""The cells in the XML of an Excel file, before calamine reads it.

calamine makes a table of all cells between the first and the last of a sheet, and ends the process if that doesn't fit
into the memory. And it reads two kinds of cells as blank: errors, and formulas without a saved value.
"""

from __future__ import annotations

import functools
import html
import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from evalstone._core.files import Expansion
from evalstone.errors import DataError

_CELL = 64
"""The bytes that a cell takes in the two tables that calamine makes."""
_ATTRIBUTES = rb"""((?:"[^"]*+"|'[^']*+'|[^"'<>/]++|/(?!>))*)"""
_TAG = re.compile(rb"<(?:[^\s<>/:]++:)?(row|c)(?=[\s/>])" + _ATTRIBUTES + rb"(/?)>")
_ELEMENT = re.compile(rb"<(?:[^\s<>/:]++:)?(sheet|Relationship)(?=[\s/>])" + _ATTRIBUTES)
_ATTRIBUTE = re.compile(rb"""([\w:]+)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_PLACE = re.compile(rb"""\sr\s*=\s*["']([A-Za-z]*)(\d*)["']""")
_IS_ERROR = re.compile(rb"""\st\s*=\s*["']e["']""")
_FORMULA = re.compile(rb"<(?:[^\s<>/:]++:)?f[\s/>]")
_IS_TEXT = re.compile(rb"""\st\s*=\s*["']str["']""")
_CONTENT = re.compile(
    rb"\s*+(<(?:[^\s<>/:]++:)?f(?=[\s/>])" + _ATTRIBUTES + rb"(?:/>|>[^<]*+</[^<>]*+>))?\s*+"
    rb"(?:<(?:[^\s<>/:]++:)?v(?:\s[^<>]*+)?>([^<]*+)<)?"
)
"""The formula and the value of a cell."""
_OTHER_WORKBOOKS = ("content.xml", "xl/workbook.bin")
"""The parts of other formats that calamine reads, too: OpenDocument, and binary workbooks."""


@dataclass
class SheetCells:
    """What calamine doesn't tell about a sheet."""

    errors: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    """The errors by row and column, from 0: `#N/A`."""
    unsaved: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """The places of the formulas that have no saved value."""


def sheet_cells(content: bytes) -> Mapping[str, SheetCells]:
    """The cells of the sheets of an .xlsx file, by the names of the sheets.

    Raises DataError for another format, and for a file that expands to far more than its size, or whose sheets do in
    memory; BadZipFile for a damaged one.
    """
    expansion = Expansion(len(content))
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        expansion.check(sum(part.file_size for part in parts.infolist()))
        names = {_normal(name): name for name in parts.namelist()}
        if not names.keys().isdisjoint(_OTHER_WORKBOOKS):
            raise DataError("is another format with the suffix .xlsx; save it as .xlsx")
        cells_of: dict[str, SheetCells] = {}
        amount = 0
        for name in names:
            part = parts.read(names[name])
            if b"sheetData" in part:
                cells_of[name], size, last = _cells(part)
                amount += size * _CELL
                if amount > expansion.most:
                    raise DataError(f"has cells up to {last}, too many for the memory; delete those outside the table")
        targets = _targets(parts, names)
        return {sheet: cells_of[target] for sheet, target in targets if target in cells_of}


def place_of(row: int, column: int) -> str:
    """A place, from 0, as spreadsheets write it: A1."""
    letters = ""
    while column >= 0:
        column, rest = divmod(column, 26)
        letters = chr(ord("A") + rest) + letters
        column -= 1
    return f"{letters}{row + 1}"


def _targets(parts: zipfile.ZipFile, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The sheets and the names of their parts."""
    book, related = (names.get(name) for name in ("xl/workbook.xml", "xl/_rels/workbook.xml.rels"))
    if book is None or related is None:
        return
    targets = {each.get("Id"): each.get("Target", "") for each in _elements(parts.read(related))}
    for sheet in _elements(parts.read(book)):
        reference = next((value for name, value in sheet.items() if name.endswith(":id")), "")
        yield sheet.get("name", ""), _normal(posixpath.join("xl", targets.get(reference, "")))


def _normal(name: str) -> str:
    return posixpath.normpath(name.replace("\\", "/")).lstrip("/").lower()


def _elements(part: bytes) -> Iterator[dict[str, str]]:
    """The attributes of the sheets or the relationships in a part."""
    for element in _ELEMENT.finditer(part):
        yield {
            name.decode(): html.unescape((double or single).decode(errors="replace"))
            for name, double, single in _ATTRIBUTE.findall(element[2])
        }


def _cells(part: bytes) -> tuple[SheetCells, int, str]:
    """The cells of a sheet, how many a table of it has, and the place of the last."""
    found = SheetCells()
    errors, formulas = _IS_ERROR.search(part) is not None, _FORMULA.search(part) is not None
    rows, columns = _Extent(), _Extent()
    row, column = -1, 0
    for tag in _TAG.finditer(part):
        kind, attributes, closed = tag.groups()
        place = _PLACE.search(attributes)
        letters, digits = (b"", b"") if place is None else place.groups()
        if kind == b"row":
            row, column = int(digits) - 1 if digits else row + 1, 0
            continue
        if letters and digits:
            row, column = int(digits) - 1, _index(letters)
        if not closed:
            rows.add(row)
            columns.add(column)
            if errors or formulas:
                formula, value = _content(part, tag.end())
                if errors and _IS_ERROR.search(attributes):
                    found.errors[row, column] = value
                elif formula and not value and not _IS_TEXT.search(attributes):
                    found.unsaved.append((row, column))
        column += 1
    return found, rows.size * columns.size, place_of(rows.greatest, columns.greatest)


class _Extent:
    """The numbers from the least to the greatest."""

    def __init__(self) -> None:
        self.least, self.greatest = 1 << 62, -1

    def add(self, number: int) -> None:
        if number < self.least:
            self.least = number
        if number > self.greatest:
            self.greatest = number

    @property
    def size(self) -> int:
        return max(0, self.greatest - self.least + 1)


def _content(part: bytes, start: int) -> tuple[bool, str]:
    """Whether the cell that starts here has a formula, and its value."""
    content = _CONTENT.match(part, start)
    if content is None:
        return False, ""
    return content[1] is not None, html.unescape((content[3] or b"").decode(errors="replace"))


@functools.lru_cache(1 << 14)
def _index(letters: bytes) -> int:
    index = 0
    for letter in letters.upper():
        index = index * 26 + letter - 64
    return index - 1
