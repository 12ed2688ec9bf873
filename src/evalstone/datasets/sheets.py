"""Sheets of Excel files as rows. The only module that imports python-calamine."""

from __future__ import annotations

import importlib
import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from evalstone._core.display import count, escaped, shortlist
from evalstone._core.files import row_limit, too_long
from evalstone._core.front_ends import Setting
from evalstone._core.storage import Location
from evalstone.datasets.columns import CONTENT, claims
from evalstone.datasets.sheet_cells import SheetCells, place_of, sheet_cells
from evalstone.errors import DataError, MissingDependency, unknown

_ZIP = b"PK"
_OLD = b"\xd0\xcf\x11\xe0"
"""The start of an .xls file, and of a workbook with a password."""


def sheet_rows(file: Location, sheet: str | None = None) -> Iterator[tuple[int, list[Any]]]:
    """The rows of a sheet that aren't blank, with their numbers: of a formula, the value that was saved with it.

    A blank cell is None. Numbers, truth values, dates and times have their types, and an error is a text: `#N/A`.

    Args:
        file: An .xlsx file.
        sheet: The name of the sheet; None for the only visible one that isn't empty.

    Raises:
        MissingDependency: python-calamine is not installed.
        DataError: The file is no workbook or expands to far more than its size, no sheet or several could be meant, a
            row is too long, cells below the header are merged, or a formula has no saved value.
    """
    try:
        calamine: Any = importlib.import_module("python_calamine")
    except ImportError:
        raise MissingDependency("python-calamine", "excel") from None
    limit = row_limit()
    try:
        with file.open() as stream:
            start = stream.read(len(_OLD))
            if start == _OLD:
                raise DataError("is an .xls file or has a password; save it as .xlsx without one")
            if not start.startswith(_ZIP):  # which may be an endless device
                raise DataError("not an Excel file")
            content = start + stream.read()
        cells_of = sheet_cells(content)
        with calamine.CalamineWorkbook.from_filelike(io.BytesIO(content)) as book:
            rows = _sheet_of(book, sheet, calamine.SheetVisibleEnum.Visible)
            first = 1 if rows.start is None else rows.start[0] + 1
            _check_merged(rows, first)
            more = cells_of.get(rows.name, SheetCells())
            _check_saved(more.unsaved)
            for number, row in enumerate(rows.iter_rows(), start=1):
                cells = [None if isinstance(cell, str) and not cell.strip() else cell for cell in row]
                if more.errors:
                    cells = [more.errors.get((number - 1, place), cell) for place, cell in enumerate(cells)]
                if sum(len(cell) for cell in cells if isinstance(cell, str)) > limit:
                    raise too_long(f"row {number}")
                if any(cell is not None for cell in cells):
                    yield number, cells
    except DataError:
        raise
    # RuntimeError: a part has a password. NotImplementedError: it is compressed in another way.
    except (
        calamine.CalamineError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        ValueError,
        RuntimeError,
    ) as error:
        raise DataError(f"not an Excel file that can be read ({escaped(error)})") from None


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
        likely = next((sheet.name for sheet in filled if _has_fields(sheet)), listed[0])
        raise DataError(f"has the sheets {shortlist(listed)}; name one of them: ", Setting("sheet", likely))
    return filled[0]


def _has_fields(sheet: Any) -> bool:
    """Whether its first row with cells has the name of a column of samples."""
    rows: Iterator[list[Any]] = sheet.iter_rows()
    header = next(filter(any, rows), list[Any]())
    return not CONTENT.isdisjoint(claims(tuple(cell for cell in header if isinstance(cell, str))))


def _check_merged(sheet: Any, header: int) -> None:
    """Raise DataError for merged cells below the header: only the first of them has the value."""
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        if bottom + 1 > header:
            cells = f"{place_of(top, left)}:{place_of(bottom, right)}"
            raise DataError(f"the cells {cells} are merged, so that only the first has a value; unmerge them")


def _check_saved(unsaved: Sequence[tuple[int, int]]) -> None:
    """Raise DataError for formulas without a saved value, which would be read as blank cells."""
    if unsaved:
        raise DataError(
            f"{count(len(unsaved), 'formula')}, the first in {place_of(*unsaved[0])}, "
            f"{'has' if len(unsaved) == 1 else 'have'} no saved value; save the file with a spreadsheet program, "
            "which calculates them"
        )
