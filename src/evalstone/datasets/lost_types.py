"""Signs that a CSV file lost the type of a column: what pandas writes for whole numbers and for missing values.

The cells are read as the texts that they are, because a text can look the same. Notes say what they look like.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from evalstone._core.display import count, excerpt

_DECIMAL = re.compile(r"-?\d++\.0")
_MISSING = ("nan", "NaN", "<NA>", "NaT")
"""What pandas writes for a missing value, with `na_rep` or after a conversion to text."""


@dataclass
class _Column:
    field: str
    cells: int = 0
    decimals: int = 0
    missing: int = 0
    word: str = ""


@dataclass
class LostTypes:
    """Counts the cells of the columns that are read as texts."""

    rows: int = 0
    columns: dict[str, _Column] = field(default_factory=dict[str, _Column])

    def add(self, field: str, column: str, cell: str) -> None:
        """Count a cell that isn't blank. field: the sample field that its column is read as."""
        counted = self.columns.setdefault(column, _Column(field))
        counted.cells += 1
        if cell in _MISSING:
            counted.missing += 1
            counted.word = counted.word or cell
        elif _DECIMAL.fullmatch(cell):
            counted.decimals += 1

    def notes(self) -> tuple[str, ...]:
        """A line for each column with such cells."""
        notes: list[str] = []
        for name, column in self.columns.items():
            where = f"column {excerpt(name)}, read as {column.field},"
            if column.missing:
                cells = count(column.missing, "cell")
                notes.append(f"{where} has {cells} with the text {column.word}; if a value is missing, leave it empty")
            absent = self.rows - column.cells + column.missing
            if absent and column.decimals and column.decimals == column.cells - column.missing:
                notes.append(
                    f"{where} has only numbers such as 42.0, and missing ones. pandas writes whole numbers like this "
                    "if one is missing. If they were whole, convert the column to Int64 and write it again, because "
                    "42.0 is a text other than 42"
                )
        return tuple(notes)
