"""Parquet files and Arrow tables as rows.

Maps are objects, as in JSON. A file of a few kilobytes can encode a text repeated a million times, or two billion
nulls. So the sizes in the metadata are checked first, and texts are read as references to the dictionaries in the file.
"""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalstone._core.display import escaped, excerpt
from evalstone._core.files import Expansion, row_limit, too_long
from evalstone._core.guards import is_list, is_object
from evalstone._core.storage import Location
from evalstone.datasets.row_labels import label_name
from evalstone.errors import DataError, MissingDependency

_ROWS_PER_BATCH = 1024
_FEWEST_PER_BATCH, _LARGEST_BATCH = 16, 16_000_000
"""The rows of a batch whose texts may be copied, and the characters that they may have."""
_BUFFER = 1 << 16
_CELL = 32
_TEXTS = ("string", "large_string", "binary", "large_binary")
_DENSEST = 200
"""The largest plausible ratio of the size of a column to its compressed size."""
_DENSEST_LISTS = 16
"""The largest ratio of the memory of lists whose texts are copied to their compressed size."""
_TAKEN_AS = {"string_view": "large_string", "binary_view": "large_binary"}
"""The types that Arrow can't take values of by their places, and what they are cast to for that."""


def parquet_rows(file: Location, rows: range | None = None) -> Iterator[tuple[str, Any]]:
    """The rows of a Parquet file, or a range of them, from 0.

    Raises MissingDependency without pyarrow, and DataError if the file is unreadable, a row is too long, or the file
    expands to far more than its size.
    """
    arrow, parquet = _modules()
    expansion, limit = Expansion(_size_of(file)), row_limit()
    try:
        stream = _stream_of(arrow, parquet, file, rows, expansion)
        found = itertools.chain.from_iterable(_rows(arrow.types, batch) for batch in stream.batches(rows))
        for number, row in enumerate(found, start=0 if rows is None else rows.start):
            if (length := sum(map(size_of, row.values()))) > limit:
                raise too_long(f"row {number + 1}")
            expansion.add_row(length)
            yield f"row {number + 1}", _labeled(row, stream.labels, number)
        if rows is not None and rows.stop < stream.stop and file.changed:
            _kept[:] = [(file, stream)]
    except DataError:
        raise
    # ValueError: names that aren't UTF-8. IndexError: a text that isn't in its dictionary.
    except (arrow.ArrowException, OSError, ValueError, IndexError) as error:
        raise _unreadable(error) from None
    finally:
        arrow.default_memory_pool().release_unused()
        arrow.system_memory_pool().release_unused()


def parquet_groups(file: Location) -> list[int]:
    """The number of rows of each row group of a Parquet file. Raises as `parquet_rows` does."""
    arrow, parquet = _modules()
    try:
        with _opened(arrow, parquet, file) as reader:
            metadata = reader.metadata
            return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise _unreadable(error) from None


def _modules() -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingDependency("pyarrow", "parquet") from None


def _unreadable(error: Exception) -> DataError:
    return DataError(f"not a Parquet file that pyarrow can read ({escaped(error)})")


def _size_of(file: Location) -> int:
    found = file if file.size >= 0 else file.found()
    return 0 if found is None else found.size


@dataclass
class _Stream:
    """The batches of some row groups of a file, read once from front to back."""

    source: Iterator[Any]
    at: int
    """The number of the next row in the file."""
    stop: int
    """The end of the row groups."""
    labels: Mapping[str, range]
    rest: Any = None
    """The rows of the last batch that weren't asked for."""

    def batches(self, rows: range | None) -> Iterator[Any]:
        """The batches of some rows that weren't read before; None for all."""
        start, stop = (self.at, self.stop) if rows is None else (rows.start, rows.stop)
        while self.at < stop:
            batch, self.rest = next(self.source, None) if self.rest is None else self.rest, None
            if batch is None:
                return
            first, size = self.at, batch.num_rows
            low, high = max(0, start - first), min(size, stop - first)
            self.at = first + high
            if high < size:
                self.rest = batch.slice(high)
            if low < high:
                yield batch if (low, high) == (0, size) else batch.slice(low, high - low)


_kept: list[tuple[Location, _Stream]] = []
"""The stream that was read last, if its row groups have more rows. A row group is read from its start: without this,
each part of a large one would read all parts before it."""


def _stream_of(arrow: Any, parquet: Any, file: Location, rows: range | None, expansion: Expansion) -> _Stream:
    """The stream that has some rows: the one that was read last, if they come after it."""
    try:
        known, stream = _kept.pop()
    except IndexError:
        pass
    else:
        if known == file and rows is not None and stream.at <= rows.start and rows.stop <= stream.stop:
            return stream
    opened: Any = functools.partial(_opened, arrow, parquet, file)
    with opened() as reader:
        columns = [reader.schema.column(place) for place in range(len(reader.schema))]
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        groups, first, stop = _groups_of(reader.metadata, rows)
    with opened(read_dictionary=texts) as reader:
        longest = _check_claims(reader, columns, expansion, groups)
        labels = _row_labels(reader.schema_arrow, reader.metadata.num_rows)
    size = min(_ROWS_PER_BATCH, row_limit() // max(1, sum(max(_CELL, column.length or 0) for column in columns)))
    copied = min(size, _LARGEST_BATCH // max(1, sum(longest.values())))
    if copied >= _FEWEST_PER_BATCH:
        size, texts = copied, [text for text in texts if text not in longest]
    return _Stream(_batches(opened(read_dictionary=texts), max(1, size), groups), first, stop, labels)


def _groups_of(metadata: Any, rows: range | None) -> tuple[Sequence[int], int, int]:
    """The row groups that have some rows, and the first row of these, and their end."""
    every = range(metadata.num_row_groups)
    if rows is None:
        return every, 0, metadata.num_rows
    first, groups, begin, stop = 0, list[int](), rows.start, rows.start
    for group in every:
        end = first + metadata.row_group(group).num_rows
        if first < rows.stop and end > rows.start:
            begin, stop = begin if groups else first, end
            groups.append(group)
        first = end
    return groups, begin, stop


def _opened(arrow: Any, parquet: Any, file: Location, read_dictionary: Sequence[str] = ()) -> Any:
    """A Parquet file whose reader takes as little memory as it can: it buffers no whole column of a row group, and its
    memory is from the system, because other pools keep tens of megabytes for later."""
    usual = arrow.default_memory_pool()
    arrow.set_memory_pool(arrow.system_memory_pool())
    try:  # a reader keeps the pool that it was opened with
        source = file.open() if file.local is None else file.local
        return parquet.ParquetFile(source, read_dictionary=[*read_dictionary], buffer_size=_BUFFER, pre_buffer=False)
    finally:
        arrow.set_memory_pool(usual)


def _batches(file: Any, rows: int, groups: Sequence[int]) -> Iterator[Any]:
    """The batches of each row group: with nested texts by reference, none can have rows of two. The file is closed at
    the end, or with the iterator."""
    with file:
        for group in groups:
            yield from file.iter_batches(rows, row_groups=[group], use_threads=False)


def arrow_rows(table: Any) -> Iterator[dict[str, Any]]:
    """The rows of a pyarrow Table or RecordBatch, or of an array of structs.

    Raises DataError for a map with a key twice.
    """
    types: Any = importlib.import_module("pyarrow").types
    if not hasattr(table, "schema"):
        yield from itertools.chain.from_iterable(_values(types, part) for part in getattr(table, "chunks", (table,)))
        return
    labels = _row_labels(table.schema, table.num_rows)
    batches = table.to_batches() if hasattr(table, "to_batches") else [table]
    rows = itertools.chain.from_iterable(_rows(types, batch) for batch in batches)
    for number, row in enumerate(rows):
        yield _labeled(row, labels, number)


def _rows(types: Any, batch: Any) -> Iterator[dict[str, Any]]:
    names: list[str] = batch.schema.names
    cells: list[list[Any]] = []
    for name, column in zip(names, batch.columns, strict=True):
        try:
            cells.append(_values(types, column))
        except DataError as error:
            raise DataError(f"column {excerpt(name)} ", error) from None
    return (dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)) if cells else iter(())


def _row_labels(schema: Any, rows: int) -> dict[str, range]:
    """The row labels of pandas, by name, that are consecutive numbers: of these, only the ends are stored.

    As in pandas, they are dropped if rows were added or removed.
    """
    names: list[str] = schema.names
    labels_by_name: dict[str, range] = {}
    try:
        metadata: Any = schema.pandas_metadata
        index: list[Any] = [] if metadata is None else metadata["index_columns"]
        for entry in index:
            if not isinstance(entry, str) and entry["kind"] == "range":
                labels, name = range(entry["start"], entry["stop"], entry["step"]), entry["name"]
                if len(labels) == rows and (name is not None or labels != range(rows)):
                    labels_by_name[label_name(name, names)] = labels
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError):
        return {}  # whatever a file has in place of pandas' metadata says nothing about its rows
    return {name: labels for name, labels in labels_by_name.items() if name not in names}


def _labeled(row: dict[str, Any], labels: Mapping[str, range], number: int) -> dict[str, Any]:
    return row | {name: of[number] for name, of in labels.items()} if labels else row


def _check_claims(file: Any, columns: list[Any], expansion: Expansion, groups: Sequence[int]) -> dict[str, int]:
    """Raise DataError for a file whose metadata claim far more rows, values or text than its size.

    Returns, for each column of texts and of lists of texts, the characters of a row: its longest text that rows may
    refer to, or that of a text on average, and in lists as often as they have texts on average. What can't be known is
    left out, and so are lists whose texts could take far more memory than the file.
    """
    metadata = file.metadata
    expansion.check(metadata.num_rows * _CELL * len(columns))
    # More than this is in no file whose columns pass below. It is known before a row is read.
    plausible = len(groups) * len(columns) * row_limit() + _DENSEST * expansion.size
    if (size := sum(metadata.row_group(group).total_byte_size for group in groups)) > plausible:
        expansion.check(size * _DENSEST)
    values = 0
    names = _text_columns(file.schema_arrow.names, columns)
    longest, per_row = dict.fromkeys(names, 0), dict.fromkeys(names, 1)
    for group in groups:
        # Accessing damaged column metadata can crash the process; reading the rows raises an error instead.
        if (first := next(file.iter_batches(1, row_groups=[group], use_threads=False), None)) is not None:
            _update_longest(longest, names, first)
        for place, column in enumerate(columns):
            chunk, rows = metadata.row_group(group).column(place), metadata.row_group(group).num_rows
            values += chunk.num_values * max(_CELL, column.length or 0)
            size = chunk.total_uncompressed_size
            if column.path in longest:
                text = longest[column.path] = max(longest[column.path], size // max(1, chunk.num_values))
                per_row[column.path] = max(per_row[column.path], -(-chunk.num_values // max(1, rows)))
                most = max(_LARGEST_BATCH, _DENSEST_LISTS * chunk.total_compressed_size)
                if column.max_repetition_level and chunk.num_values * text > most:
                    del longest[column.path]
            if size > row_limit() and size > _DENSEST * chunk.total_compressed_size:
                expansion.check(size * _DENSEST)
    expansion.check(values)
    return {path: text * per_row[path] for path, text in longest.items()}


def _text_columns(names: Sequence[str], columns: Sequence[Any]) -> dict[str, str]:
    """The columns of texts, and of lists with one value each that may be a text: their paths and names."""
    found: dict[str, str] = {}
    for column in columns:
        if column.physical_type != "BYTE_ARRAY":
            continue
        if column.max_repetition_level == 0 and column.path == column.name:
            found[column.path] = column.name
        elif column.max_repetition_level == 1:
            around = [name for name in names if column.path.startswith(f"{name}.")]
            if len(around) == 1 and sum(each.path.startswith(f"{around[0]}.") for each in columns) == 1:
                found[column.path] = around[0]
    return found


def _update_longest(longest: dict[str, int], names: Mapping[str, str], batch: Any) -> None:
    """Update the lengths of the longest texts with those in the dictionaries of a row group, which its first batch has.
    Columns whose texts have no length are removed."""
    compute: Any = importlib.import_module("pyarrow.compute")
    for path in [*longest]:
        texts = batch.column(batch.schema.names.index(names[path]))
        texts = texts.values if hasattr(texts, "offsets") and hasattr(texts, "values") else texts
        if str(getattr(texts.type, "value_type", "")) in _TEXTS:
            longest[path] = max(longest[path], compute.max(compute.binary_length(texts.dictionary)).as_py() or 0)
        else:
            del longest[path]


def _values(types: Any, array: Any) -> list[Any]:
    """The values of an array, as by `to_pylist`, but equal texts share an object."""
    kind = array.type
    if types.is_dictionary(kind):
        dictionary, used = array.dictionary, array.indices.unique().drop_null()
        if (plain := _TAKEN_AS.get(str(dictionary.type))) is not None:
            dictionary = dictionary.cast(plain)
        values = dictionary.take(used).to_pylist()
        known: dict[int | None, Any] = {None: None, **dict(zip(used.to_pylist(), values, strict=True))}
        return [known[key] for key in array.indices.to_pylist()]
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
        lists = [items[start - first : end - first] if here else None for start, end, here in ends]
        return lists if not types.is_map(kind) or types.is_nested(kind.key_type) else list(map(_object, lists))
    return array.to_pylist()


def _object(entries: Sequence[tuple[Any, Any]] | None) -> dict[Any, Any] | None:
    """A map as an object. Raises DataError for a key that occurs twice, because one of its values would be lost."""
    if entries is None:
        return None
    if len(value := dict(entries)) < len(entries):
        keys = [key for key, _ in entries]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise DataError(f"must not have a map with the key {excerpt(twice)} twice")
    return value


def size_of(value: Any) -> int:
    """The approximate size of a value, in characters."""
    if isinstance(value, str | bytes):
        return len(value)
    if is_list(value):
        return sum(map(size_of, value), _CELL)
    if is_object(value):
        return sum(map(size_of, itertools.chain(value, value.values())), _CELL)
    return _CELL
