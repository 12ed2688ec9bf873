"""Signs that a CSV file lost the type or a part of its cells: what spreadsheets, pandas and other tools write.

The cells are read as the texts that they are, because a text can look the same. Notes say what they look like.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from evalstone._core.display import count, excerpt
from evalstone._core.guards import is_object
from evalstone.datasets.cells import read_text
from evalstone.datasets.written import written_in_cell
from evalstone.errors import ConfigError

_PLAIN = re.compile(r"(?!nan|NaN|NaT)[^\W\d]")
"""The beginning of nearly all cells, which tells that they have no sign, unless it is their length."""
_DECIMAL = re.compile(r"-?\d++\.0")
_ROUNDED = re.compile(r"-?\d(?:[.,]\d{1,5})?E\+\d\d")
_LEAST_ROUNDED = 1e15
"""The least number of more digits than Excel keeps."""
_MISSING = ("nan", "NaN", "<NA>", "NaT")
"""What pandas writes for a missing value, with `na_rep` or after a conversion to text."""
_SHEET_ERROR = re.compile(r"#(?:N/[AD]|NV|[¡¿]?[A-ZÀ-Þ]+(?:/0)?[!?]|#{2,})")
"""What spreadsheets write for a formula without a value, in English and other languages, and for a narrow column."""
_LONGEST_CELL = 32_767
"""The characters of a cell in Excel. Longer texts are cut off by Excel and by libraries that write its files."""
_CAVEATS = {
    "missing": "with the text {cell}; if a value is missing, leave it empty",
    "error": (
        "with {cell}, an error of a spreadsheet. Texts that begin with =, + or - are formulas there: format the column "
        "as text. If a value is missing, leave it empty"
    ),
    "rounded": "such as {cell}, as spreadsheets round long numbers; format the column as text and enter them again",
    "cut": f"of {_LONGEST_CELL:,} characters, the most that Excel keeps of a text; the rest may be cut off",
    "object": (
        "with JSON objects such as {cell}, which are read as texts. If they are objects with a text in them, save the "
        "data as JSON Lines, or name the column inputs, outputs or reference_outputs"
    ),
}
"""The notes on cells, by what they look like."""


@dataclass
class _Column:
    sample_field: str
    cells: int = 0
    decimals: int = 0
    quoted: int = 0
    example: str = ""
    """A quoted cell."""
    caveats: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    """By what cells look like: how many there are, and the first."""


@dataclass
class LostTypes:
    """Counts the cells of the columns that are read as texts, and of the context."""

    rows: int = 0
    columns: dict[str, _Column] = field(default_factory=dict[str, _Column])

    def add(self, field: str, column: str, cell: object) -> None:
        """Count a cell that isn't blank. field: the sample field that its column is read as."""
        counted = self.columns.setdefault(column, _Column(field))
        counted.cells += 1
        if isinstance(cell, str):
            if _PLAIN.match(cell) and len(cell) != _LONGEST_CELL:
                return
            caveat = _caveat(cell, field, column)
        elif isinstance(cell, float) and abs(cell) >= _LEAST_ROUNDED:
            caveat, cell = "rounded", f"{cell:.0f}"
        else:
            return  # an Excel file has numbers and dates
        if caveat:
            number, first = counted.caveats.get(caveat, (0, cell))
            counted.caveats[caveat] = number + 1, first
        elif _DECIMAL.fullmatch(cell):
            counted.decimals += 1
        elif cell[0] == cell[-1] == '"' and isinstance(_json(cell), str):
            counted.quoted += 1
            counted.example = counted.example or cell

    def merge(self, later: LostTypes) -> None:
        """Add the counts of later rows."""
        self.rows += later.rows
        for name, more in later.columns.items():
            counted = self.columns.setdefault(name, _Column(more.sample_field))
            counted.cells += more.cells
            counted.decimals += more.decimals
            counted.quoted += more.quoted
            counted.example = counted.example or more.example
            for caveat, (number, cell) in more.caveats.items():
                before, first = counted.caveats.get(caveat, (0, cell))
                counted.caveats[caveat] = before + number, first

    def notes(self) -> tuple[str, ...]:
        """A line for each column with such cells, and for each way in which they look."""
        return tuple(note for name, column in self.columns.items() for note in self._notes(name, column))

    def _notes(self, name: str, column: _Column) -> Iterator[str]:
        where = f"column {excerpt(name)}, read as {column.sample_field},"
        for caveat, (number, cell) in column.caveats.items():
            shown = excerpt(cell) if caveat == "object" else cell
            yield f"{where} has {count(number, 'cell')} {_CAVEATS[caveat].format(cell=shown)}"
        missing, _ = column.caveats.get("missing", (0, ""))
        blank = self.rows - column.cells
        if blank and column.sample_field == "output":
            yield (
                f"{where} has {count(blank, 'blank cell')}, read as blank answers: checks score them. CSV and Excel "
                "files have no other sign for a missing answer; if they are missing, save the data as JSON Lines, with "
                "null"
            )
        absent = blank + missing
        if absent and column.decimals and column.decimals == column.cells - missing:
            yield (
                f"{where} has only numbers such as 42.0, and missing ones. pandas writes whole numbers like this "
                "if one is missing. If they were whole, convert the column to Int64 and write it again, because "
                "42.0 is a text other than 42"
            )
        if column.quoted and column.quoted == column.cells:
            yield (
                f"{where} has only texts in quotes, such as {excerpt(column.example)}. If they are written as JSON, "
                "save the data as JSON Lines, because the quotes are part of the texts"
            )


def is_sheet_error(cell: str) -> bool:
    """Whether a cell is an error of a spreadsheet, such as #N/A."""
    return _SHEET_ERROR.fullmatch(cell) is not None


def _caveat(cell: str, field: str, column: str) -> str:
    """What a cell looks like: a key of `_CAVEATS`, or "" for nothing else than a text."""
    if cell in _MISSING:
        return "missing"
    if is_sheet_error(cell):
        return "error"
    if _ROUNDED.fullmatch(cell):
        return "rounded"
    if len(cell) == _LONGEST_CELL:
        return "cut"
    return "object" if field != "context" and _is_object(cell, field, column) else ""


def _is_object(cell: str, field: str, column: str) -> bool:
    """Whether a cell is read as a text, and the JSON object that it writes out would be read as one of its values."""
    value = _json(cell) if cell.lstrip().startswith("{") else None
    if not is_object(value) or field == "id":
        return False
    try:
        as_object = read_text(value, field, column)
        as_text = read_text(written_in_cell(cell, field, column), field, column)
    except ConfigError:  # reading the cell refuses it, or it can only be a text
        return False
    return as_text.text == cell and as_object.text is not None and not as_object.text.lstrip().startswith("{")


def _json(cell: str) -> Any:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return None
