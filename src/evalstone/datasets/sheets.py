"""Sheets of Excel files as rows. The only module that imports python-calamine."""

from __future__ import annotations

import importlib
import io
import zipfile
from collections.abc import Iterator
from typing import Any

from evalstone._core.display import escaped, shortlist
from evalstone._core.files import Expansion, row_limit, too_long
from evalstone._core.front_ends import Setting
from evalstone._core.storage import Location
from evalstone.errors import DataError, MissingDependency, unknown


def sheet_rows(file: Location, sheet: str | None = None) -> Iterator[tuple[int, list[Any]]]:
    """The rows of a sheet that aren't blank, with their numbers: of a formula, the value that was saved with it.

    A blank cell is None. Numbers, truth values, dates and times have their types.

    Args:
        file: An .xlsx file.
        sheet: The name of the sheet; None for the only visible one that isn't empty.

    Raises:
        MissingDependency: python-calamine is not installed.
        DataError: The file is no workbook or expands to far more than its size, no sheet or several could be meant, a
            row is too long, or cells below the header are merged.
    """
    try:
        calamine: Any = importlib.import_module("python_calamine")
    except ImportError:
        raise MissingDependency("python-calamine", "excel") from None
    limit = row_limit()
    try:
        with file.open() as stream:
            content = stream.read()
        _check_size(content)
        with calamine.CalamineWorkbook.from_filelike(io.BytesIO(content)) as book:
            rows = _sheet_of(book, sheet, calamine.SheetVisibleEnum.Visible)
            first = 1 if rows.start is None else rows.start[0] + 1
            _check_merged(rows, first)
            for number, row in enumerate(rows.iter_rows(), start=1):
                cells = [None if isinstance(cell, str) and not cell.strip() else cell for cell in row]
                if sum(len(cell) for cell in cells if isinstance(cell, str)) > limit:
                    raise too_long(f"row {number}")
                if any(cell is not None for cell in cells):
                    yield number, cells
    except (calamine.CalamineError, zipfile.BadZipFile, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"not an Excel file that can be read ({escaped(error)})") from None


def _check_size(content: bytes) -> None:
    """Raise DataError for a workbook whose parts are far larger than the file."""
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        Expansion(len(content)).check(sum(part.file_size for part in parts.infolist()))


def _sheet_of(book: Any, name: str | None, visible: Any) -> Any:
    names: list[str] = book.sheet_names
    if name is not None:
        if name not in names:
            raise DataError(unknown("sheet", name, names))
        return book.get_sheet_by_name(name)
    shown = [one.name for one in book.sheets_metadata if one.visible == visible]
    filled = [sheet for sheet in map(book.get_sheet_by_name, shown) if sheet.height]
    if not filled:
        raise DataError("has no sheet with cells")
    if len(filled) > 1:
        listed = [sheet.name for sheet in filled]
        raise DataError(f"has the sheets {shortlist(listed)}; name one of them: ", Setting("sheet", listed[0]))
    return filled[0]


def _check_merged(sheet: Any, header: int) -> None:
    """Raise DataError for merged cells below the header: only the first of them has the value."""
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        if bottom + 1 > header:
            cells = f"{_column(left)}{top + 1}:{_column(right)}{bottom + 1}"
            raise DataError(f"the cells {cells} are merged, so that only the first has a value; unmerge them")


def _column(index: int) -> str:
    """The letters of a column of a spreadsheet, from 0."""
    letters = ""
    while index >= 0:
        index, place = divmod(index, 26)
        letters = chr(ord("A") + place) + letters
        index -= 1
    return letters
