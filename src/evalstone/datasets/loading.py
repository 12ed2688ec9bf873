"""Datasets: ordered samples with unique IDs, and their source."""

from __future__ import annotations

import functools
import itertools
import math
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeGuard, TypeVar, cast

from evalstone._core.declarations import NAME, check_argument
from evalstone._core.display import count, escaped, excerpt, named
from evalstone._core.front_ends import Setting
from evalstone._core.guards import class_of, is_list
from evalstone._core.json import storable
from evalstone._core.phases import phase
from evalstone._core.sizes import Limit
from evalstone.agents.formats.records import is_telemetry
from evalstone.agents.notes import Notes
from evalstone.agents.turns import turns_of
from evalstone.datasets.arrow import size_of
from evalstone.datasets.blocks import SpooledSamples
from evalstone.datasets.columns import ColumnMapping
from evalstone.datasets.files import cautions, file_name, find_all, rows_of, standard_input
from evalstone.datasets.identity import Version, made_unique, used_id, version_of, with_unique_ids
from evalstone.datasets.other_tools import advising_import
from evalstone.datasets.own_code import names_code, samples_at
from evalstone.datasets.rows import RowReader
from evalstone.datasets.tables import Rows, TableLike, is_table, memory_rows, numbered, table_rows
from evalstone.datasets.traces import TraceReader
from evalstone.errors import ConfigError, DataError, EvalstoneWarning, invalid
from evalstone.types import Sample

T = TypeVar("T")
IN_MEMORY = "in memory"
MOST_IN_MEMORY, LARGEST_IN_MEMORY = 10_000, 16_000_000
"""The number of samples of a file or a table, and of characters in them, from which on they are not kept in memory."""


@dataclass(frozen=True)
class Dataset:
    """Ordered samples with unique IDs. Those of a large file or table are in a temporary file instead of in memory.

    Raises:
        DataError: Two samples have the same ID.
    """

    samples: Sequence[Sample]
    name: str = IN_MEMORY
    """The file's name, or "in memory"."""
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    """The columns that were read, and the sample field of each."""
    ignored: tuple[str, ...] = ()
    """The columns that were added to the metadata."""
    notes: tuple[str, ...] = ()
    """What was read with a caveat: records of traces that didn't become samples, parts of messages of an unknown type,
    two accounts of a tool call that differ, a column of a CSV file that may have lost its type, a file that isn't in
    the encoding that was named."""

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: {count(len(self.samples), 'sample')}>"

    def __post_init__(self) -> None:
        given = cast("object", self.samples)
        if not isinstance(given, SpooledSamples):
            object.__setattr__(self, "samples", tuple(self.samples) if isinstance(given, Iterable) else ())
        check_argument("name", self.name, Annotated[str, NAME], "Dataset")
        if not isinstance(given, Iterable):
            raise ConfigError(invalid("samples", "samples in an order", given, class_of(given).__name__))
        if isinstance(given, SpooledSamples):
            return
        places: dict[str, int] = {}
        for place, sample in enumerate(cast("tuple[object, ...]", self.samples), start=1):
            if not isinstance(sample, Sample):
                wrong = invalid(f"sample {place}", "a Sample", sample, type(sample).__name__)
                raise DataError("Dataset: ", wrong, "; evalstone.load reads files, tables and dictionaries")
            if (first := places.setdefault(storable(sample.id), place)) != place:
                raise DataError(f"{self.name}: ", used_id(f"sample {place}", sample.id, f"sample {first}"))

    @functools.cached_property
    def version(self) -> str:
        """A hash of the samples' IDs and contents, in order: 16 hexadecimal digits."""
        return version_of(self.samples)

    def first(self, limit: int | None) -> Dataset:
        """The first samples; all of them if there are no more, or if the limit is None. Raises ConfigError for a limit
        below 1."""
        check_argument("limit", limit, Limit | None)
        return self if limit is None or limit >= len(self) else replace(self, samples=self.samples[:limit])

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)


Samples: TypeAlias = (
    "Dataset | Iterable[Sample | Mapping[str, Any]] | Mapping[str, Any] | str | os.PathLike[str] | TableLike"
)
"""Sample values, dictionaries, a dictionary of columns, a path (JSON, JSONL, CSV, Parquet, Excel), a table (pandas,
polars, pyarrow, Hugging Face), or a Dataset."""


def load(
    source: Samples,
    *,
    map: ColumnMapping | None = None,
    split: Mapping[str, str] | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> Dataset:
    """Load samples from a file, a table or an iterable.

    Args:
        source: A path to .json, .jsonl, .ndjson, .csv, .tsv (each also .gz), .parquet or .xlsx, or its address, such as
            `s3://bucket/file.parquet`; with a wildcard in the file's name (`data/*.jsonl`), all files that match, by
            name; "-" for JSON Lines from standard input; `module:name` or `path/file.py:name`, a function of yours that
            returns or yields samples; an iterable of samples or mappings; a pandas or polars DataFrame, pyarrow Table
            or Hugging Face Dataset. Trace files are recognized by their content (see docs/traces.md).
        map: Sample field to column. It takes precedence over the known column names (see docs/data.md).
        split: The separator of the passages in a text, `{"context": "|"}`. Lists are read as they are.
        encoding: The encoding of a text file, such as `cp1252`. By default UTF-8, or what its byte order mark says.
        sheet: The sheet of an Excel file with several.

    Raises:
        DataError: The data is invalid; the message names file, line and column.
        ConfigError: `map` or `split` has an unknown field, an encoding isn't known, the source has none, or a function
            can't be imported or returns no samples.
        MissingDependency: The file is Parquet or Excel, and pyarrow or python-calamine is not installed.
    """
    with advising_import(source):
        return _loaded(source, map, split, encoding, sheet)


def load_for_scoring(source: Samples, **reading: Any) -> Dataset:
    """What `load` returns. What was read with a caveat is a warning, unless the source is a Dataset, which has its
    notes."""
    dataset = load(source, **reading)
    for said in () if isinstance(source, Dataset) else dataset.notes:
        warnings.warn(f"{dataset.name}: {said}", EvalstoneWarning, stacklevel=2)
    return dataset


def _loaded(
    source: Samples,
    map: ColumnMapping | None,
    split: Mapping[str, str] | None,
    encoding: str | None,
    sheet: str | None,
) -> Dataset:
    reader = RowReader(map, split=split)
    is_file = isinstance(source, str | os.PathLike) and not names_code(source) and source != "-"
    if not is_file and (encoding is not None or sheet is not None):
        raise ConfigError(Setting("sheet" if encoding is None else "encoding"), " is for files")
    if isinstance(source, Dataset) and not map and not split:
        return source
    if _are_samples(source) and not map and not split:
        places = [f"item {number}" for number in range(1, len(source) + 1)]
        notes = Notes("sample")
        notes.add_samples(source)
        return Dataset(with_unique_ids(source, places), notes=notes.lines())
    if names_code(source):
        return _from_code(str(source).strip(), map, split)
    if isinstance(source, str | os.PathLike):
        if Path(source) == Path("-"):
            first, rows = _opened(standard_input(), "stdin")
            if is_telemetry(first):
                return _read_traces("stdin", "stdin", map, _again(rows))
            return _read("stdin", "stdin", reader, lambda: rows)
        files, source = find_all(os.fspath(source), encoding, sheet), named(os.fspath(source))
        name = escaped(file_name(files, source))
        with phase(f"reading {name}"):
            first, rows = _opened(rows_of(files), source)
            if not files[0].cells and is_telemetry(first):
                again = all(file.can_be_read_again for file in files)
                read = (lambda: rows_of(files)) if again else _again(rows)
                return _read_traces(name, source, map, read, tuple(cautions(files)))
            reader.text_cells = files[0].text_cells
            return _read(name, source, reader, lambda: rows, tuple(cautions(files)))
    if is_table(source):
        return _read(IN_MEMORY, "", reader, lambda: table_rows(source))
    if isinstance(source, list | tuple | Mapping):
        items = cast("Sequence[Any]", [source] if isinstance(source, Mapping) else source)
        if items and is_telemetry(items[0]):
            return _read_traces(IN_MEMORY, "", map, lambda: numbered("item", items))
    rows = cast("object", source)
    return _read(IN_MEMORY, "", reader, lambda: memory_rows(rows), in_memory=True)


def _from_code(address: str, map: ColumnMapping | None, split: Mapping[str, str] | None) -> Dataset:
    """The samples at an address. Those of a long iterable aren't kept in memory."""
    samples = samples_at(address)
    try:
        if isinstance(samples, Iterator):
            rows = cast("object", samples)
            dataset = _read(escaped(address), "", RowReader(map, split=split), lambda: memory_rows(rows))
        else:
            dataset = load(samples, map=map, split=split)
    except DataError as error:
        raise DataError("" if str(error).startswith("the loader") else f"{address}: ", error) from None
    return replace(dataset, name=escaped(address)) if dataset.name == IN_MEMORY else dataset


def _opened(rows: Rows, source: str) -> tuple[Any, Rows]:
    """The first row, and all rows: a pipe can be read only once. Raises DataError that names the source."""
    try:
        first = next(rows, None)
    except DataError as error:
        raise DataError(f"{source}: ", error) from None
    return (None, rows) if first is None else (first[1], itertools.chain((first,), rows))


def _again(rows: Rows) -> Callable[[], Rows]:
    """Rows that are read several times, from memory."""
    listed = list(rows)
    return lambda: iter(listed)


def _read_traces(
    name: str, source: str, mapping: ColumnMapping | None, rows: Callable[[], Rows], of_files: Sequence[str] = ()
) -> Dataset:
    if mapping:
        raise ConfigError(f"{source} has traces, whose fields a mapping of columns doesn't change")
    reader = TraceReader(rows)
    try:
        samples = list(reader)
        samples = with_unique_ids(samples, [f"sample {number}" for number in range(1, len(samples) + 1)])
    except DataError as error:
        raise DataError(f"{source}: " if source else "", error) from None
    notes = (*of_files, *reader.notes.lines())
    if not samples:
        raise DataError("; ".join((f"{source or 'the dataset'} has no samples", *notes)))
    return Dataset(samples, name, notes=notes)


def turns(samples: Samples) -> Dataset:
    """Turn conversations into one sample per turn: "c1 turn 2".

    The turns of a conversation and of its trials form one group, so that intervals account for them. If the
    conversation has a group, it is kept, and so is its weight. The turns are those of the sample, or else those of its
    messages: each user message with everything up to the next one.

    Args:
        samples: What `load` takes, such as the samples of a run: `turns(run.dataset)`.

    Raises:
        DataError: A sample has neither turns nor user messages.
    """
    whole = isinstance(samples, str | os.PathLike | Dataset | Mapping) or is_table(samples)
    listed = list(cast("Iterable[Any]", samples)) if isinstance(samples, Iterable) and not whole else []
    # Trials of a sample share its id, which a dataset doesn't allow; their turns have different names.
    has_trials = any(isinstance(one, Sample) and one.trial is not None for one in listed)
    conversations = cast("list[Sample]", listed) if has_trials else load(cast("Samples", listed or samples))
    name = conversations.name if isinstance(conversations, Dataset) else IN_MEMORY
    samples_of_turns: list[Sample] = []
    for sample in conversations:
        if not (own := turns_of(sample)):
            raise DataError(f"{name}: sample {excerpt(sample.id)} has no turns, and no messages of a user")
        group = sample.cluster or sample.id
        samples_of_turns += (
            replace(turn, id=f"{sample.key} turn {number}", trial=None, group=group)
            for number, turn in enumerate(own, start=1)
        )
    return Dataset(samples_of_turns, name)


def _are_samples(source: Any) -> TypeGuard[Sequence[Sample]]:
    items = source if is_list(source) else ()
    return bool(items) and all(isinstance(item, Sample) for item in items)


def _read(
    name: str,
    source: str,
    reader: RowReader,
    rows: Callable[[], Iterator[tuple[str, Sample | Mapping[str, Any]]]],
    of_files: Sequence[str] = (),
    *,
    in_memory: bool = False,
) -> Dataset:
    """The samples in rows, which are read once. of_files: What is said of their files. in_memory: Keep all of them
    in memory."""
    first = deque[tuple[str, Sample]]()
    samples: Sequence[Sample] = ()
    version, notes = Version(), Notes("sample")
    try:
        left = _shown(name, rows())
        large = _fill(first, left, reader, math.inf if in_memory else MOST_IN_MEMORY)
        if large:
            rest = ((place, reader.read(row, place)) for place, row in left)
            unique = made_unique(itertools.chain(_emptied(first), rest))
            samples = SpooledSamples.of(_observed(unique, version, notes))
            reader.columns.check()
        elif first:
            reader.columns.check()
            samples = with_unique_ids([sample for _, sample in first], [place for place, _ in first])
            notes.add_samples(samples)
    except DataError as error:
        raise DataError(f"{source}: " if source else "", error) from None
    if not samples:
        raise DataError(f"{source or 'the dataset'} has no samples")
    lines = (*of_files, *reader.notes(), *notes.lines())
    dataset = Dataset(samples, name, reader.columns.became, tuple(reader.ignored), lines)
    if large:
        dataset.__dict__["version"] = str(version)
    return dataset


def _shown(name: str, rows: Iterator[T]) -> Iterator[T]:
    """The rows, which are read in a phase."""
    with phase(f"reading {'the samples' if name == IN_MEMORY else name}", "row") as reading:
        yield from reading.count(rows)


def _fill(first: deque[tuple[str, Sample]], rows: Rows, reader: RowReader, most: float) -> bool:
    """Read samples until there are no more rows, or too many for the memory. Returns whether there are too many."""
    size = 0
    for place, row in rows:
        first.append((place, row if isinstance(row, Sample) else reader.read(row, place)))
        size += 0 if most == math.inf else size_of(row)
        if len(first) >= most or size >= LARGEST_IN_MEMORY:
            return True
    return False


def _emptied(items: deque[T]) -> Iterator[T]:
    """The items, which are gone from the queue once they were taken."""
    while items:
        yield items.popleft()


def _observed(samples: Iterable[Sample], version: Version, notes: Notes) -> Iterator[Sample]:
    for sample in samples:
        version.add(sample.id, sample.content_hash)
        notes.add_messages(sample.messages, sample.id)
        yield sample
