"""Rows in memory: samples, objects, tables, and objects that contain a whole dataset.

Tables of pandas, polars, pyarrow and Hugging Face are recognized by their methods, so these libraries aren't imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from evalstone._core.display import excerpt, shortlist
from evalstone._core.guards import is_array, is_mapping, is_object
from evalstone._core.names import normal
from evalstone.datasets.arrow import arrow_rows
from evalstone.datasets.cells import native
from evalstone.datasets.columns import CONTENT, check_samples, claims, field_of
from evalstone.datasets.row_labels import count_rows, label_columns, label_name
from evalstone.errors import DataError, invalid
from evalstone.types import Sample

Rows: TypeAlias = Iterator[tuple[str, Any]]
"""Rows with their positions, for error messages."""
Refused: TypeAlias = Callable[[str, DataError], None]
"""What is called for a row that can't be read, with its position, instead of ending there."""


class ColumnsToDict(Protocol):
    """A table like that of pandas."""

    @property
    def columns(self) -> Any:
        """The names of the columns."""
        ...

    def to_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The rows, with orient="records"."""
        ...


class ToDicts(Protocol):
    """A table like that of polars."""

    def to_dicts(self) -> Any:
        """The rows."""
        ...


class ToPylist(Protocol):
    """A table like that of pyarrow."""

    def to_pylist(self, *args: Any, **kwargs: Any) -> Any:
        """The rows."""
        ...


TableLike: TypeAlias = ColumnsToDict | ToDicts | ToPylist
"""A table of pandas, polars or pyarrow."""
LIST_NAMES = ("data", "samples", "items", "rows", "examples", "test_cases", "goldens")
_WHOLE = re.compile(r"-?\d+")
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
    index = getattr(source, "index", None)  # of pandas
    names = [str(name) for name in getattr(index, "names", ()) if name is not None]
    _check_unique([*names, *columns], "two columns of the table are named")
    if callable(getattr(source, "to_pylist", None)):
        is_arrow = type(source).__module__.startswith("pyarrow.")
        return numbered("row", arrow_rows(source) if is_arrow else source.to_pylist())
    if callable(getattr(source, "to_dicts", None)):
        return numbered("row", source.to_dicts())
    if names or not (index is None or count_rows(index)):
        source = source.reset_index()
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
    if is_mapping(source):
        try:
            entries = cast("dict[str, Any]", native(source))
        except RecursionError:
            raise DataError("nested too deeply") from None
        rows = rows_in(entries)
        if rows is None:
            check_samples(tuple(map(str, entries)))
            names = shortlist(map(str, entries)) or "nothing"
            raise DataError(f"{expected}, not one object with {names}; pass one of its entries")
        yield from rows
        return
    if isinstance(source, bytes | bytearray) or not isinstance(source, Iterable):
        raise DataError(f"{expected}, not {type(source).__name__}: {excerpt(source)}")
    formatted: Any = getattr(cast("Any", source), "with_format", None)
    if callable(formatted):  # a dataset of Hugging Face, which may give tables or tensors for rows
        source = cast("Iterable[Any]", formatted(None))
    for place, item in numbered("item", cast("Iterable[Any]", source)):
        if not isinstance(item, Sample | Mapping):
            raise DataError(invalid(place, "a Sample or an object", item, f"{type(item).__name__}: {excerpt(item)}"))
        yield place, cast("Sample | Mapping[str, Any]", item)


def rows_in(entries: Mapping[str, Any]) -> Rows | None:
    """The rows of an object that contains a whole dataset; None if its layout isn't recognized.

    Layouts: a pandas table with orient="split", "tight", "index" or "table"; a single row with an input and an output
    text; a list under one of LIST_NAMES; columns; or a single row with any field. Raises DataError for lists under two
    names, for columns or rows of unequal lengths, for objects that could be columns as well as one row, and for rows
    under their IDs.
    """
    if isinstance(entries.get("columns"), list) and isinstance(entries.get("data"), list):
        return iter(_split_rows(entries))
    items = _column(dict(entries))
    if items is not None and all(isinstance(item, dict) for item in items.cells):
        return numbered("row", items.labeled(items.cells))
    claimed = claims(tuple(entries))
    texts = {field for field, taken in claimed.items() if any(isinstance(entries[name], str) for _, name in taken)}
    if {"input", "output"} <= texts:
        return iter([("item 1", entries)])
    lists = [key for key, item in entries.items() if normal(key) in _NORMAL_LIST_NAMES and isinstance(item, list)]
    if len(lists) > 1:
        expected = f"must be a list of objects, or an object with one under {shortlist(LIST_NAMES)}"
        raise DataError(f"{expected}; it has lists under {shortlist(lists)}")
    if lists:
        return numbered("item", _without_counts(entries[lists[0]], entries.get("schema")))
    speaking = [name for field in ("input", "output") for _, name in claimed.get(field, ())]
    rows = _column_rows(entries, claimed, speaking)
    if rows is not None:
        return rows
    _check_keys(entries, claimed)
    if not CONTENT.isdisjoint(claimed):
        return iter([("item 1", entries)])
    _check_not_by_id(entries)
    return None


def _without_counts(rows: list[Any], schema: Any) -> list[Any]:
    """The rows of pandas' `{"schema": {"primaryKey": ["index"], …}, "data": […]}`, without labels that count them."""
    is_labeled = is_mapping(schema) and "pandas_version" in schema and schema.get("primaryKey") == [_LABELS]
    if not is_labeled or not all(map(is_object, rows)) or not count_rows([row.get(_LABELS) for row in rows]):
        return rows
    return [{key: cell for key, cell in row.items() if key != _LABELS} for row in rows]


def _split_rows(entries: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The rows of `{"columns": […], "data": [[…], …]}`. The row labels are in `index`, their names in `index_names`."""
    columns: list[str] = [str(name) for name in entries["columns"]]
    data: list[Any] = entries["data"]
    labels, names = entries.get("index"), entries.get("index_names")
    labeled = label_columns(
        labels if is_array(labels) else range(len(data)),
        names if is_array(names) else (),
        columns,
        len(data),
    )
    _check_unique([*labeled, *columns], "two columns are named")
    rows: list[tuple[str, Any]] = []
    for number, (place, cells) in enumerate(numbered("row", data)):
        if not is_array(cells):
            raise DataError(invalid(place, "a list of cells", cells, f"{type(cells).__name__}: {excerpt(cells)}"))
        if len(cells) != len(columns):
            raise DataError(f"{place}: {len(cells)} cells for {len(columns)} columns")
        labels_of_row = {name: of[number] for name, of in labeled.items()}
        rows.append((place, labels_of_row | dict(zip(columns, cells, strict=True))))
    return rows


_LABELS = "index"
"""What pandas calls labels without a name in JSON."""


class _Column(NamedTuple):
    """The cells of a column, and the labels of their rows: none if they count the rows."""

    cells: list[Any]
    labels: tuple[str, ...] = ()

    def labeled(self, rows: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
        """The rows with their labels."""
        if not self.labels:
            return rows
        return ({label_name(None, row): label, **row} for label, row in zip(self.labels, rows, strict=True))


def _column_rows(entries: Mapping[str, Any], claimed: Collection[str], speaking: list[str]) -> Rows | None:
    """The rows of `{"question": […], "answer": […]}`, or of pandas' `{"question": {"0": …}, …}`; else None.

    In a single row, the input or output (`speaking`) wouldn't be a list of texts, and no field that a column is read as
    (`claimed`) has whole numbers as keys.
    """
    columns: dict[str, _Column] = {}
    for name, value in entries.items():
        column = _column(value)
        if column is None:
            return None
        columns[name] = column
    if not all(is_object(value) for value in entries.values()) and not any(
        columns[name].cells and all(cell is None or isinstance(cell, str) for cell in columns[name].cells)
        for name in speaking
    ):
        return None
    first = next(iter(columns.values()), _Column([]))
    if first.labels and not claimed:
        return None
    if len({len(column.cells) for column in columns.values()}) > 1:
        lengths = shortlist(f"{name} {len(column.cells)}" for name, column in columns.items())
        raise DataError(f"must have columns of equal lengths; the lengths are {lengths}")
    if other := next((name for name, column in columns.items() if column.labels != first.labels), None):
        raise DataError(f"must have the same row labels in every column; those of {excerpt(other)} are others")
    rows = zip(*(column.cells for column in columns.values()), strict=True)
    return numbered("row", first.labeled(dict(zip(columns, cells, strict=True)) for cells in rows))


def _column(value: Any) -> _Column | None:
    """The cells of a column: a list, or an object with row labels that are whole numbers; None for other values."""
    if is_array(value):
        return _Column(value)
    cells = value if is_object(value) else {}
    if not cells or not all(map(_WHOLE.fullmatch, cells)):
        return None
    labels = tuple(cells)
    return _Column(list(cells.values()), () if count_rows(labels) else labels)


def _check_keys(entries: Mapping[str, Any], claimed: Mapping[str, Any]) -> None:
    """Raise DataError for objects that have the same keys under every name: pandas writes columns in this way if the
    row labels are texts, but a row may have such objects, too."""
    values = list(entries.values())
    if len(values) < 2 or CONTENT.isdisjoint(claimed) or not all(is_object(value) for value in values):
        return
    keys = [list(value) for value in values]
    if keys[0] and all(of == keys[0] for of in keys) and not any(map(_names_a_text, keys[0])):
        raise DataError(
            f"{shortlist(entries)} have the same keys ({shortlist(keys[0])}), so these are rows or a single sample: "
            "save rows with pandas' orient='records', and put a single sample into a list"
        )


def _check_not_by_id(entries: Mapping[str, Any]) -> None:
    """Raise DataError for several objects under other names than columns, which have a field in common: rows by ID."""
    rows = [value for value in entries.values() if is_object(value)]
    if len(entries) < 2 or len(rows) < len(entries):
        return
    if CONTENT.intersection(*(claims(tuple(row)) for row in rows)):
        raise DataError(
            f"must be a list of objects; it is an object with rows under {shortlist(entries)}. Save the rows as a "
            "list, with these names in a column id, and put a single sample into a list"
        )


def _names_a_text(key: str) -> bool:
    return field_of(key) is not None or normal(key) in ("text", "content")
