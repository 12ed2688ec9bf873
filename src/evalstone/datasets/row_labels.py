"""The row labels (index) of pandas, which become a column unless they only count the rows.

A table that was filtered keeps the labels of its rows, and IDs are often the labels.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from evalstone._core.display import count
from evalstone._core.guards import is_array
from evalstone.errors import DataError

_NAMES = ("index", "level_0")
"""What pandas calls labels without a name in a table."""


def label_name(name: object, columns: Collection[str]) -> str:
    """The name of a column of row labels."""
    return str(name) if name is not None else next((free for free in _NAMES if free not in columns), _NAMES[-1])


def count_rows(labels: Sequence[object]) -> bool:
    """Whether row labels are 0, 1, 2 and so on, as numbers or as the keys of a JSON object."""
    return all(str(label) == str(number) for number, label in enumerate(labels))


def label_columns(
    labels: Sequence[Any], names: Sequence[object], columns: Collection[str], rows: int
) -> dict[str, Sequence[Any]]:
    """The columns of row labels; none if they have no name and count the rows.

    Args:
        labels: A label for each row; with several names, a list of labels.
        names: Their names; None for labels without a name.
        columns: The other columns.
        rows: The number of rows.

    Raises DataError if there aren't as many labels as rows, or as names.
    """
    if len(labels) != rows:
        raise DataError(f"{count(len(labels), 'row label')} for {count(rows, 'row')}")
    if len(names) < 2:
        name = names[0] if names else None
        return {} if name is None and count_rows(labels) else {label_name(name, columns): labels}
    several = [of_row if is_array(of_row) else [of_row] for of_row in labels]
    for number, of_row in enumerate(several, start=1):
        if len(of_row) != len(names):
            raise DataError(f"row {number}: {count(len(of_row), 'row label')} for {len(names)} names")
    parts = zip(*several, strict=True) if several else ((),) * len(names)
    return {
        f"level_{place}" if name is None else str(name): part
        for place, (name, part) in enumerate(zip(names, parts, strict=True))
    }
