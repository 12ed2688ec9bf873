"""Human labels: a column of the samples themselves, or a file of ids and labels beside them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from evalstone.datasets import FIELD_NAMES, Dataset, load
from evalstone.datasets.columns import normal
from evalstone.datasets.files import find, standard_input
from evalstone.datasets.rows import native, read_id, unpacked
from evalstone.datasets.tables import is_table, table_rows
from evalstone.datasets.wording import excerpt, listed, named
from evalstone.errors import DataError
from evalstone.results.calibration.wording import Cell, LabelReader

LABEL_NAMES = tuple(
    normal(name)
    for name in (
        "label",
        "labels",
        "human_label",
        "human_labels",
        "human",
        "gold",
        "gold_label",
        "annotation",
        "annotations",
        "rating",
        "human_rating",
        "human_score",
    )
)
ANNOTATORS = ("annotator", "rater", "label", "human", "rating")
_IDS = tuple(normal(name) for rank in FIELD_NAMES["id"] for name in rank)


@dataclass(frozen=True)
class Labelled:
    """The samples that have a label, and their labels on the scorer's scale, a column an annotator.

    unlabelled: how many samples have none. words: what each word was read as, in [0, 1].
    """

    dataset: Dataset
    labels: Mapping[str, tuple[float | None, ...]]
    columns: tuple[str, ...]
    words: Mapping[str, float]
    unlabelled: int


def read_labels(
    source: Any,
    reader: LabelReader,
    *,
    data: Any = None,
    columns: Sequence[str] = (),
    mapping: Mapping[str, str] | None = None,
) -> Labelled:
    """The labelled samples.

    source: samples with columns of labels, as anything that `load` reads; with `data`, rows of an id and labels (a
    path, a table, a list of objects, or a mapping from id to label) that belong to the samples in `data`. columns:
    which hold the labels; without, those called label, human_label and the like, or annotator_1, annotator_2 and so on.
    A list in a cell is one label an annotator. Raises DataError that names file, line and column of what cannot be
    read, an id that no sample has, an id twice, and when there is no label at all.
    """
    where = _place_of(source)
    try:
        if data is None:
            dataset = load(source, mapping=mapping)
            return _labelled(dataset, _own(dataset, source), reader, tuple(columns), own=True)
        dataset = load(data, mapping=mapping)
        return _labelled(dataset, _joined(source, dataset), reader, tuple(columns), own=False)
    except DataError as error:
        told = str(error)
        raise DataError(told if told.startswith(where) else f"{where}: {told}") from None


def _place_of(source: Any) -> str:
    return named(str(cast("Any", source))) if isinstance(source, str | os.PathLike) else "the labels"


@dataclass(frozen=True)
class _Row:
    """One row of labels: the sample's id, the row's place, and what stands in its other columns."""

    id: str
    place: str
    cells: Mapping[str, Any]


def _own(dataset: Dataset, source: Any) -> list[_Row]:
    """The rows of samples that hold their labels themselves; what is no sample field went to the metadata."""
    places = _places(source, len(dataset))
    return [_Row(sample.id, place, sample.metadata) for sample, place in zip(dataset, places, strict=True)]


def _places(source: Any, count: int) -> list[str]:
    if isinstance(source, str | os.PathLike) and str(cast("Any", source)) != "-":
        return [place for place, _ in find(Path(cast("str | os.PathLike[str]", source))).rows()]
    return [f"item {number}" for number in range(1, count + 1)]


def _joined(source: Any, dataset: Dataset) -> list[_Row]:
    """The rows of a file of ids and labels. Raises DataError for an id that no sample has, or that comes twice."""
    ids = {sample.id for sample in dataset}
    rows: list[_Row] = []
    seen: dict[str, str] = {}
    for place, cells in _raw(source):
        row = _identified(place, cells)
        if row.id not in ids:
            raise DataError(f"{place}: no sample of {named(dataset.name)} has the id {excerpt(row.id)}")
        if row.id in seen:
            told = f"{place}: the id {excerpt(row.id)} was labelled before, at {seen[row.id]}"
            raise DataError(f"{told}; put each annotator into a column of its own")
        seen[row.id] = place
        rows.append(row)
    return rows


def _raw(source: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(source, str | os.PathLike):
        path = Path(cast("str | os.PathLike[str]", source))
        return standard_input() if path == Path("-") else find(path).rows()
    if is_table(source):
        return table_rows(source)
    if isinstance(source, Mapping):
        by_id = cast("Mapping[Any, Any]", source)
        return [(f"id {excerpt(str(name))}", {"id": name, "label": label}) for name, label in by_id.items()]
    if isinstance(source, Iterable) and not isinstance(source, bytes):
        return [(f"item {number}", item) for number, item in enumerate(cast("Iterable[Any]", source), start=1)]
    raise DataError(
        f"labels must be a path, a table, a list of objects or a mapping from id to label, not {excerpt(source)}"
    )


def _identified(place: str, cells: Any) -> _Row:
    if not isinstance(cells, Mapping):
        raise DataError(f"{place}: a row of labels must be an object, not {type(cells).__name__}: {excerpt(cells)}")
    entries = {str(name): native(value) for name, value in cast("Mapping[Any, Any]", cells).items()}
    column = next((name for known in _IDS for name in entries if normal(name) == known), None)
    if column is None or entries[column] is None:
        raise DataError(f"{place}: a row of labels needs an id; its columns are {listed(entries)}")
    try:
        name = read_id(entries.pop(column))
    except DataError as error:
        raise DataError(f"{place}: column {excerpt(column)} {error}") from None
    return _Row(name, place, entries)


def _labelled(
    dataset: Dataset, rows: Sequence[_Row], reader: LabelReader, columns: tuple[str, ...], *, own: bool
) -> Labelled:
    if not rows:
        raise DataError("there are no labels")
    columns = tuple(dict.fromkeys(columns)) or _found(rows)
    for column in columns:
        if not any(column in row.cells for row in rows):
            raise DataError(_missing(column, rows, dataset.columns if own else {}))
    read, words = reader.read(_cells(rows, columns))
    labels = {row.id: given for row, given in zip(rows, read, strict=True) if any(label is not None for label in given)}
    if not labels:
        raise DataError(f"no sample has a label in {listed(columns)}")
    kept = tuple(sample for sample in dataset if sample.id in labels)
    chosen = Dataset(kept, dataset.name, dataset.columns, dataset.ignored)
    return Labelled(chosen, labels, columns, words, len(dataset) - len(kept))


def _found(rows: Sequence[_Row]) -> tuple[str, ...]:
    """The columns of labels, by their names."""
    columns = _columns(rows)
    alone = [column for known in LABEL_NAMES for column in columns if normal(column) == known]
    if alone:
        return (alone[0],)
    several = tuple(column for column in columns if normal(column).startswith(ANNOTATORS))
    if several:
        return several
    told = f"no column of labels was found (columns: {listed(columns) or 'none'})"
    raise DataError(f"{told}; name it with --label COLUMN, once for each annotator")


def _columns(rows: Sequence[_Row]) -> list[str]:
    return list(dict.fromkeys(column for row in rows for column in row.cells))


def _missing(column: str, rows: Sequence[_Row], became: Mapping[str, str]) -> str:
    """What to say of a column of labels that is in no row. became: the columns that were read as sample fields."""
    told = f"no row has the column {excerpt(column)}; columns: {listed(_columns(rows)) or 'none'}"
    return told if column not in became else f"{excerpt(column)} was read as the samples' {became[column]}: rename it"


def _cells(rows: Sequence[_Row], columns: Sequence[str]) -> list[list[Cell]]:
    """The cells of each row, as many in one row as in another, so that a place is one annotator's in all of them."""
    found: list[list[Cell]] = [[] for _ in rows]
    for column in columns:
        items = [_items(row, column) for row in rows]
        width = max(map(len, items))
        for cells, row, given in zip(found, rows, items, strict=True):
            cells += [Cell(item, row.place, column) for item in [*given, *[None] * (width - len(given))]]
    return found


def _items(row: _Row, column: str) -> list[Any]:
    """The labels in one cell; a text that is a JSON array holds as many as that."""
    try:
        value = unpacked(row.cells.get(column))
    except DataError as error:
        raise DataError(f"{row.place}: column {excerpt(column)} {error}") from None
    return cast("list[Any]", value) if isinstance(value, list) else [value]
