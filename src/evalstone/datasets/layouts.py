"""One object that holds a whole data set: a list under a name, columns, a table as pandas splits it, or one row."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, TypeAlias, cast

from evalstone.datasets.names import CONTENT, claims, normal
from evalstone.datasets.wording import excerpt, listed
from evalstone.errors import DataError

Placed: TypeAlias = list[tuple[str, Any]]

LIST_NAMES = ("data", "samples", "items", "rows", "examples", "test_cases", "goldens")
_NORMAL_LIST_NAMES = frozenset(normal(name) for name in LIST_NAMES)


def rows_in(entries: Mapping[str, Any]) -> Placed | None:
    """The rows that an object holds, each with its place; None when it has no such layout.

    Raises DataError for lists under two names, and for columns or rows of unequal lengths.
    """
    split = _split(entries)
    if split is not None:
        return split
    if _is_turn(entries):
        return [("item 1", entries)]
    lists = [key for key, item in entries.items() if normal(key) in _NORMAL_LIST_NAMES and isinstance(item, list)]
    if len(lists) == 1:
        return [(f"item {number}", item) for number, item in enumerate(entries[lists[0]], start=1)]
    if lists:
        wanted = f"must be a list of objects, or an object with one under {listed(LIST_NAMES)}"
        raise DataError(f"{wanted}; it is lists under {listed(lists)}")
    columns = _columns(entries)
    if columns is not None:
        return columns
    return None if CONTENT.isdisjoint(claims(tuple(entries))) else [("item 1", entries)]


def _is_turn(entries: Mapping[str, Any]) -> bool:
    """Whether an object has the text of an input and of an output: a row, whatever lists stand beside them."""
    taken = claims(tuple(entries))
    return all(any(isinstance(entries[name], str) for _, name in taken.get(field, ())) for field in ("input", "output"))


def _split(entries: Mapping[str, Any]) -> Placed | None:
    """The rows of `{"columns": […], "data": [[…], …]}`, as pandas writes them with orient="split"."""
    names, data = entries.get("columns"), entries.get("data")
    if not isinstance(names, list) or not isinstance(data, list):
        return None
    columns = [str(name) for name in cast("list[Any]", names)]
    twice = next((name for place, name in enumerate(columns) if name in columns[:place]), None)
    if twice is not None:
        raise DataError(f"two columns are named {excerpt(twice)}")
    rows: Placed = []
    for number, cells in enumerate(cast("list[Any]", data), start=1):
        if not isinstance(cells, list):
            raise DataError(f"row {number}: must be a list of cells, not {type(cells).__name__}: {excerpt(cells)}")
        row = cast("list[Any]", cells)
        if len(row) != len(columns):
            raise DataError(f"row {number}: {len(row)} cells for {len(columns)} columns")
        rows.append((f"row {number}", dict(zip(columns, row, strict=True))))
    return rows


def _columns(entries: Mapping[str, Any]) -> Placed | None:
    """The rows of `{"question": […], "answer": […]}`, or of pandas' `{"question": {"0": …}, …}`.

    Told from one row by the input or the output, which in a row is no list of texts.
    """
    columns = {name: _column(value) for name, value in entries.items()}
    taken = claims(tuple(entries))
    speaking = [claim[1] for field in ("input", "output") for claim in taken.get(field, ())]
    if None in columns.values() or not any(_is_texts(columns[name]) for name in speaking):
        return None
    whole = {name: cast("list[Any]", column) for name, column in columns.items()}
    if len({len(column) for column in whole.values()}) > 1:
        told = listed(f"{name} {len(column)}" for name, column in whole.items())
        raise DataError(f"must have columns of equal lengths; the lengths are {told}")
    rows = zip_longest(*whole.values())
    return [(f"row {number}", dict(zip(whole, cells, strict=True))) for number, cells in enumerate(rows, start=1)]


def _column(value: Any) -> list[Any] | None:
    """The cells of a column; None for what is none."""
    if isinstance(value, list):
        return cast("list[Any]", value)
    if not isinstance(value, dict):
        return None
    cells = cast("dict[str, Any]", value)
    return list(cells.values()) if cells and list(cells) == [str(number) for number in range(len(cells))] else None


def _is_texts(column: list[Any] | None) -> bool:
    return bool(column) and all(cell is None or isinstance(cell, str) for cell in column or ())
