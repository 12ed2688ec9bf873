"""Rows in memory: samples, objects, tables, and objects that contain a whole dataset.

Tables of pandas, polars, pyarrow and Hugging Face are recognized by their methods, so these libraries aren't imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from evalstone._core.display import excerpt, shortlist
from evalstone.agents.formats.values import normal
from evalstone.datasets.cells import native
from evalstone.datasets.columns import CONTENT, claims
from evalstone.errors import DataError
from evalstone.types import Sample

Rows: TypeAlias = Iterator[tuple[str, Any]]
"""Rows with their positions, for error messages."""

LIST_NAMES = ("data", "samples", "items", "rows", "examples", "test_cases", "goldens")
_NORMAL_LIST_NAMES = frozenset(normal(name) for name in LIST_NAMES)


def numbered(kind: str, rows: Iterable[Any]) -> Rows:
    """Rows with their positions: `item 1`, `item 2` and so on."""
    return ((f"{kind} {number}", row) for number, row in enumerate(rows, start=1))


def is_table(source: object) -> bool:
    """Whether a value is a pyarrow, polars or pandas table, by its methods."""
    is_pandas = callable(getattr(source, "to_dict", None)) and hasattr(source, "columns")
    return is_pandas or any(callable(getattr(source, name, None)) for name in ("to_pylist", "to_dicts"))


def table_rows(source: Any) -> Rows:
    """The rows of a table. Raises DataError if two columns have the same name."""
    columns = [str(column) for column in getattr(source, "column_names", getattr(source, "columns", ()))]
    _check_unique(columns, "two columns of the table are named")
    if callable(getattr(source, "to_pylist", None)):
        return numbered("row", source.to_pylist())
    if callable(getattr(source, "to_dicts", None)):
        return numbered("row", source.to_dicts())
    return numbered("row", source.to_dict(orient="records"))


def _check_unique(columns: list[str], problem: str) -> None:
    seen: set[str] = set()
    for name in columns:
        if name in seen:
            raise DataError(f"{problem} {excerpt(name)}")
        seen.add(name)


def memory_rows(source: object) -> Iterator[tuple[str, Sample | Mapping[str, Any]]]:
    """The items of an iterable of samples and mappings. Raises DataError for any other item or source."""
    expected = "a dataset must be a path, a table, or a list of samples or objects"
    if isinstance(source, Mapping):
        try:
            entries = cast("dict[str, Any]", native(source))
        except RecursionError:
            raise DataError("nested too deeply") from None
        rows = rows_in(entries)
        if rows is None:
            names = shortlist(map(str, entries)) or "nothing"
            raise DataError(f"{expected}, not one object with {names}; pass one of its entries")
        yield from rows
        return
    if isinstance(source, bytes | bytearray) or not isinstance(source, Iterable):
        raise DataError(f"{expected}, not {type(source).__name__}: {excerpt(source)}")
    for place, item in numbered("item", cast("Iterable[Any]", source)):
        if not isinstance(item, Sample | Mapping):
            raise DataError(f"{place} must be a Sample or an object, not {type(item).__name__}: {excerpt(item)}")
        yield place, cast("Sample | Mapping[str, Any]", item)


def rows_in(entries: Mapping[str, Any]) -> Rows | None:
    """The rows of an object that contains a whole dataset; None if its layout isn't recognized.

    Layouts: a pandas table with orient="split" or "index"; a single row with an input and an output text; a list under
    one of LIST_NAMES; columns; or a single row with any field. Raises DataError for lists under two names, and for
    columns or rows of unequal lengths.
    """
    names, data = entries.get("columns"), entries.get("data")
    if isinstance(names, list) and isinstance(data, list):
        columns = [str(name) for name in cast("list[Any]", names)]
        return iter(_split_rows(columns, cast("list[Any]", data)))
    items = _column(dict(entries))
    if items is not None and all(isinstance(item, dict) for item in items):
        return numbered("row", items)
    claimed = claims(tuple(entries))
    texts = {field for field, taken in claimed.items() if any(isinstance(entries[name], str) for _, name in taken)}
    if {"input", "output"} <= texts:
        return iter([("item 1", entries)])
    lists = [key for key, item in entries.items() if normal(key) in _NORMAL_LIST_NAMES and isinstance(item, list)]
    if len(lists) > 1:
        expected = f"must be a list of objects, or an object with one under {shortlist(LIST_NAMES)}"
        raise DataError(f"{expected}; it has lists under {shortlist(lists)}")
    if lists:
        return numbered("item", entries[lists[0]])
    speaking = [name for field in ("input", "output") for _, name in claimed.get(field, ())]
    rows = _column_rows(entries, speaking)
    if rows is not None:
        return rows
    return None if CONTENT.isdisjoint(claimed) else iter([("item 1", entries)])


def _split_rows(columns: list[str], data: list[Any]) -> list[tuple[str, Any]]:
    """The rows of `{"columns": […], "data": [[…], …]}`."""
    _check_unique(columns, "two columns are named")
    rows: list[tuple[str, Any]] = []
    for place, cells in numbered("row", data):
        if not isinstance(cells, list):
            raise DataError(f"{place}: must be a list of cells, not {type(cells).__name__}: {excerpt(cells)}")
        row = cast("list[Any]", cells)
        if len(row) != len(columns):
            raise DataError(f"{place}: {len(row)} cells for {len(columns)} columns")
        rows.append((place, dict(zip(columns, row, strict=True))))
    return rows


def _column_rows(entries: Mapping[str, Any], speaking: list[str]) -> Rows | None:
    """The rows of `{"question": […], "answer": […]}`, or of pandas' `{"question": {"0": …}, …}`; else None.

    In a single row, the input or output (`speaking`) wouldn't be a list of texts.
    """
    columns: dict[str, list[Any]] = {}
    for name, value in entries.items():
        column = _column(value)
        if column is None:
            return None
        columns[name] = column
    if not all(isinstance(value, dict) for value in entries.values()) and not any(
        columns[name] and all(cell is None or isinstance(cell, str) for cell in columns[name]) for name in speaking
    ):
        return None
    if len({len(column) for column in columns.values()}) > 1:
        lengths = shortlist(f"{name} {len(column)}" for name, column in columns.items())
        raise DataError(f"must have columns of equal lengths; the lengths are {lengths}")
    return numbered("row", (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)))


def _column(value: Any) -> list[Any] | None:
    """The cells of a column; None for other values."""
    if isinstance(value, list):
        return cast("list[Any]", value)
    if not isinstance(value, dict):
        return None
    cells = cast("dict[str, Any]", value)
    return list(cells.values()) if cells and list(cells) == [str(number) for number in range(len(cells))] else None
