"""The data set: samples in their order, with ids that differ, and where they came from."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from evalstone.datasets.files import DataFile, find, standard_input
from evalstone.datasets.rows import RowReader
from evalstone.datasets.streaming import STREAMED, STREAMED_FROM, SampleFile, survey, version_of
from evalstone.datasets.tables import is_table, memory_rows, table_rows
from evalstone.datasets.wording import excerpt, named
from evalstone.errors import DataError
from evalstone.types import Sample


@dataclass(frozen=True)
class Dataset:
    """Samples in their order, with ids that differ. A large JSON Lines file is not held in memory but read again.

    name: the file's name, or "in memory". columns: the columns that became a sample field, and which. ignored: the
    columns that went to the metadata. Raises DataError when two samples share an id.
    """

    samples: Sequence[Sample]
    name: str = "in memory"
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    ignored: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.samples, SampleFile):
            return
        object.__setattr__(self, "samples", tuple(self.samples))
        ids: set[str] = set()
        for sample in self.samples:
            if sample.id in ids:
                raise DataError(f"{self.name}: two samples have the id {excerpt(sample.id)}")
            ids.add(sample.id)

    @functools.cached_property
    def version(self) -> str:
        """The hash of the samples' ids and contents in their order: 16 hexadecimal digits."""
        return version_of(self.samples)

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)


def load(source: Any, *, mapping: Mapping[str, str] | None = None) -> Dataset:
    """The samples of a file, a table or an iterable.

    source: a path to .json, .jsonl, .ndjson, .csv, .tsv (each also .gz) or .parquet; "-" for JSON Lines from standard
    input; an iterable of samples or mappings; a pandas or polars DataFrame, pyarrow Table or Hugging Face Dataset.
    mapping: sample field -> column, over the names that are understood anyway (see docs/data.md).
    Raises DataError that names file, line and column of what cannot be read; ConfigError for an unknown field in the
    mapping; MissingDependency for Parquet without pyarrow.
    """
    if isinstance(source, Dataset) and not mapping:
        return source
    if isinstance(source, str | os.PathLike):
        path = Path(cast("str | os.PathLike[str]", source))
        if path == Path("-"):
            return _dataset("stdin", "stdin", RowReader(mapping), standard_input)
        file = find(path)
        if file.kind in STREAMED and path.stat().st_size >= STREAMED_FROM:
            return _streamed(file, mapping)
        return _dataset(path.name, named(str(path)), RowReader(mapping, cells=file.cells), file.rows)
    if is_table(source):
        return _dataset("in memory", "", RowReader(mapping, cells=True), lambda: table_rows(source))
    return _dataset("in memory", "", RowReader(mapping), lambda: memory_rows(source))


def _streamed(file: DataFile, mapping: Mapping[str, str] | None) -> Dataset:
    try:
        found = survey(file.path, mapping, zipped=file.zipped)
    except DataError as error:
        raise DataError(f"{named(str(file.path))}: {error}") from None
    made = Dataset(found.samples, file.path.name, found.reader.columns.became, tuple(found.reader.ignored))
    made.__dict__["version"] = found.version
    return made


def _dataset(
    name: str, source: str, reader: RowReader, rows: Callable[[], Iterator[tuple[str, Sample | Mapping[str, Any]]]]
) -> Dataset:
    samples: list[Sample] = []
    places: list[str] = []
    try:
        for place, row in rows():
            samples.append(row if isinstance(row, Sample) else reader.read(row, place))
            places.append(place)
        if samples:
            reader.columns.check()
            samples = list(_distinct(samples, places))
    except DataError as error:
        raise DataError(f"{source}: {error}" if source else str(error)) from None
    if not samples:
        raise DataError(f"{source or 'the data set'} holds no samples")
    return Dataset(tuple(samples), name, reader.columns.became, tuple(reader.ignored))


def _distinct(samples: list[Sample], places: list[str]) -> Iterator[Sample]:
    """The samples with ids that differ: equal contents without an id get `-2`, `-3` behind their hash.

    Raises DataError when two rows were given one id.
    """
    given: dict[str, str] = {}
    for sample, place in zip(samples, places, strict=True):
        if _has_own_id(sample) and given.setdefault(sample.id, place) != place:
            raise DataError(f"{place}: the id {excerpt(sample.id)} is taken by {given[sample.id]}")
    taken = set(given)
    counts: dict[str, int] = {}
    for sample in samples:
        if _has_own_id(sample):
            yield sample
            continue
        number, new = counts.get(sample.id, 1), sample.id
        while new in taken:
            number += 1
            new = f"{sample.id}-{number}"
        counts[sample.id] = number
        taken.add(new)
        yield sample if new == sample.id else replace(sample, id=new)


def _has_own_id(sample: Sample) -> bool:
    return sample.id != sample.content_hash[:16]
