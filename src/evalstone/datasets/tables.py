"""Rows that are in memory already: samples, mappings, and tables of pandas, polars, pyarrow and Hugging Face.

Tables are known by what they can do, so that none of these libraries is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from evalstone.datasets.formats import Rows
from evalstone.datasets.layouts import rows_in
from evalstone.datasets.values import native
from evalstone.datasets.wording import excerpt, listed
from evalstone.errors import DataError
from evalstone.types import Sample


def is_table(source: object) -> bool:
    """Whether a value is a table of pyarrow, polars or pandas, by its methods."""
    return any(callable(getattr(source, name, None)) for name in ("to_pylist", "to_dicts")) or _is_pandas(source)


def table_rows(source: Any) -> Rows:
    """The rows of a table. Raises DataError when two columns have one name."""
    columns = [str(column) for column in getattr(source, "column_names", getattr(source, "columns", ()))]
    twice = next((name for place, name in enumerate(columns) if name in columns[:place]), None)
    if twice is not None:
        raise DataError(f"two columns of the table are named {excerpt(twice)}")
    if callable(getattr(source, "to_pylist", None)):
        rows = source.to_pylist()
    elif callable(getattr(source, "to_dicts", None)):
        rows = source.to_dicts()
    else:
        rows = source.to_dict(orient="records")
    return ((f"row {number}", row) for number, row in enumerate(rows, start=1))


def memory_rows(source: object) -> Iterator[tuple[str, Sample | Mapping[str, Any]]]:
    """The items of an iterable of samples and mappings. Raises DataError for any other item or source."""
    wanted = "a path, a table, or a list of samples or objects"
    if isinstance(source, Mapping):
        try:
            entries = cast("dict[str, Any]", native(source))
        except RecursionError:
            raise DataError("nested too deeply") from None
        rows = rows_in(entries)
        if rows is None:
            names = listed(entries) or "nothing"
            raise DataError(f"a data set must be {wanted}, not one object with {names}; pass one of its entries")
        yield from rows
        return
    if isinstance(source, bytes | bytearray) or not isinstance(source, Iterable):
        raise DataError(f"a data set must be {wanted}, not {type(source).__name__}: {excerpt(source)}")
    for number, item in enumerate(cast("Iterable[Any]", source), start=1):
        if not isinstance(item, Sample | Mapping):
            raise DataError(f"item {number} must be a Sample or an object, not {type(item).__name__}: {excerpt(item)}")
        yield f"item {number}", cast("Sample | Mapping[str, Any]", item)


def _is_pandas(source: object) -> bool:
    return callable(getattr(source, "to_dict", None)) and hasattr(source, "columns")
