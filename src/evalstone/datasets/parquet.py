"""Parquet files as rows.

A file of a few kilobytes can encode a text repeated a million times, or two billion nulls. So the sizes in the metadata
are checked first, and texts are read as references to the dictionaries in the file.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from evalstone._core.display import escaped
from evalstone._core.files import Expansion, row_limit, too_long
from evalstone.errors import DataError, MissingDependency

_ROWS_PER_BATCH = 4096
_CELL = 32
_DENSEST = 200
"""The largest plausible ratio of the size of a column to its compressed size."""


def parquet_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """The rows of a Parquet file.

    Raises MissingDependency without pyarrow, and DataError if the file is unreadable, a row is too long, or the file
    expands to far more than its size.
    """
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingDependency("pyarrow", "parquet") from None
    expansion, limit = Expansion(path.stat().st_size), row_limit()
    try:
        with parquet.ParquetFile(path) as file:
            columns = [file.schema.column(place) for place in range(len(file.schema))]
            _check_claims(file, columns, expansion)
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        widest = limit // max(1, sum(max(_CELL, column.length or 0) for column in columns))
        number = 0
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(max(1, min(_ROWS_PER_BATCH, widest))):
                names = batch.schema.names
                cells = [_values(arrow.types, column) for column in batch.columns]
                for row in zip(*cells, strict=True) if cells else ():
                    number += 1
                    if (size := sum(map(_size, row))) > limit:
                        raise too_long(f"row {number}")
                    expansion.add_row(size)
                    yield f"row {number}", dict(zip(names, row, strict=True))
    # ValueError: names that aren't UTF-8. IndexError: a text that isn't in its dictionary.
    except (arrow.ArrowException, OSError, ValueError, IndexError) as error:
        raise DataError(f"not a Parquet file that pyarrow can read ({escaped(error)})") from None


def _check_claims(file: Any, columns: list[Any], expansion: Expansion) -> None:
    """Raise DataError for a file whose metadata claim far more rows, values or text than its size."""
    metadata = file.metadata
    expansion.check(metadata.num_rows * _CELL * len(columns))
    values = 0
    for group in range(metadata.num_row_groups):
        # Accessing damaged column metadata can crash the process; reading the rows raises an error instead.
        next(file.iter_batches(1, row_groups=[group]), None)
        for place, column in enumerate(columns):
            chunk = metadata.row_group(group).column(place)
            values += chunk.num_values * max(_CELL, column.length or 0)
            size = chunk.total_uncompressed_size
            if size > row_limit() and size > _DENSEST * chunk.total_compressed_size:
                expansion.check(size * _DENSEST)
    expansion.check(values)


def _values(types: Any, array: Any) -> list[Any]:
    """The values of an array, as by `to_pylist`, but equal texts share an object."""
    kind = array.type
    if types.is_dictionary(kind):
        known: dict[int | None, Any] = {None: None}
        for key in (keys := array.indices.to_pylist()):
            if key not in known:
                known[key] = array.dictionary[key].as_py()
        return [known[key] for key in keys]
    if types.is_struct(kind):
        names = [kind.field(place).name for place in range(kind.num_fields)]
        parts = [_values(types, part) for part in array.flatten()]
        rows = zip(*parts, strict=True) if parts else ((),) * len(array)
        valid = array.is_valid().to_pylist()
        return [dict(zip(names, row, strict=True)) if here else None for row, here in zip(rows, valid, strict=True)]
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        offsets: list[int] = array.offsets.to_pylist()
        first, size = offsets[0], offsets[-1] - offsets[0]
        parts = (array.keys, array.items) if types.is_map(kind) else (array.values,)
        items: Any = [_values(types, part.slice(first, size)) for part in parts]
        items = list(zip(*items, strict=True)) if types.is_map(kind) else items[0]
        ends = zip(offsets, offsets[1:], array.is_valid().to_pylist(), strict=False)
        return [items[start - first : end - first] if here else None for start, end, here in ends]
    return array.to_pylist()


def _size(value: Any) -> int:
    """The approximate size of a value, in characters."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list | tuple):
        return sum(map(_size, cast("list[Any]", value)), _CELL)
    if isinstance(value, dict):
        return sum(map(_size, cast("dict[str, Any]", value).values()), _CELL)
    return _CELL
