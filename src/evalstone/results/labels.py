"""Human labels: columns of the samples, or a separate file of ids and labels.

Labels are numbers, or words for yes and no, on a scorer's scale. "Yes" means a full score: for faithfulness, the answer
is supported; for hallucination, it is not. Words that call the answer good or bad ("supported", "wrong") are inverted
if a lower score is better.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from evalstone._core.display import excerpt, named, part_of, shortlist
from evalstone._core.front_ends import Hint, Setting, WordingPart
from evalstone._core.names import normal
from evalstone.datasets import FIELD_NAMES, Dataset
from evalstone.datasets.cells import native, read_id, unpacked
from evalstone.datasets.columns import ColumnMapping
from evalstone.datasets.files import find, standard_input
from evalstone.datasets.loading import IN_MEMORY, load_for_scoring
from evalstone.datasets.lost_types import is_sheet_error
from evalstone.datasets.tables import is_table, table_rows
from evalstone.errors import ConfigError, DataError, Problem, absent, invalid
from evalstone.types import Sample, is_own_id


def _words(spaced: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for word in spaced.split())


YES: Final = _words("yes y true t positive")
NO: Final = _words("no n false f negative")
GROUNDED: Final = _words("supported grounded faithful")
UNGROUNDED: Final = _words(
    "unsupported not_supported ungrounded not_grounded unfaithful not_faithful hallucinated hallucination"
)
"""What calls an answer grounded in its passages, or not, whichever scorer it is a label of."""
GOOD: Final = GROUNDED | _words(
    "factual correct right accurate consistent entailed entailment relevant helpful safe good pass passed accept "
    "accepted acceptable ok okay"
)
BAD: Final = UNGROUNDED | _words(
    "not_factual incorrect not_correct wrong inaccurate inconsistent not_consistent contradicted contradiction refuted "
    "irrelevant not_relevant unhelpful unsafe bad fail failed reject rejected unacceptable not_acceptable"
)
NO_LABEL: Final = _words("n/a na <na> none null nan - ?")
LABEL_COLUMNS: Final = (
    *("label", "labels", "humanlabel", "humanlabels", "human", "gold", "goldlabel", "annotation", "annotations"),
    *("rating", "humanrating", "humanscore"),
)
"""Column names, normalized: lower case, without separators."""
CHOSEN: Final = "chosen"
"""The column of a label file that says how each sample was chosen for labeling."""
STRATUM: Final = "stratum"
"""The column of the stratum of a run's scores in which a sample was chosen at random."""
STRATUM_SIZE: Final = "stratum_size"
"""The column of the number of samples of the run in that stratum."""
RUN_SIZE: Final = "run_size"
"""The column of the number of samples of the run, over all strata."""
ANNOTATOR_PREFIXES = ("annotator", "rater", "label", "human", "rating")
_BLANKS = re.compile(r"[\s_-]+")
_ID_COLUMNS = tuple(normal(name) for rank in FIELD_NAMES["id"] for name in rank)


@dataclass(frozen=True)
class Cell:
    """A label with its position, for error messages."""

    value: object
    """The label as in the data."""
    place: str
    """The row, such as "line 2"."""
    column: str
    """The column."""


@dataclass(frozen=True)
class LabelReader:
    """Reads labels as numbers on a scorer's scale.

    Raises:
        ConfigError: the bounds are not two finite ascending numbers, or both bounds and positive words are set.
    """

    scale: float
    """The scorer's scale."""
    lower_is_better: bool
    """The scorer's direction."""
    positive: Sequence[str] = ()
    """Labels that mean yes. If set, all other labels mean no."""
    bounds: tuple[float, float] | None = None
    """The lowest and highest number that annotators could give; by default 0 and the scale."""
    has_options: bool = True
    """Whether error messages mention options of `calibrate`, which other commands lack."""

    def __post_init__(self) -> None:
        if self.bounds is not None and not -math.inf < self.bounds[0] < self.bounds[1] < math.inf:
            low, high = self.bounds
            raise ConfigError(f"the label range must be two numbers, the lower one first, not {low:g} and {high:g}")
        if self.bounds is not None and self.positive:
            raise ConfigError("set either the labels that mean yes or the range of numeric labels, not both")

    def read(self, rows: Sequence[Sequence[Cell]]) -> tuple[list[tuple[float | None, ...]], Mapping[str, float]]:
        """The labels of each row (None if missing), and the value in [0, 1] that each word was read as.

        If all numbers are 0 or 1, they mean no and yes, whatever the scale. Otherwise, they are values within the
        bounds.

        Raises:
            DataError: a label is neither a word nor a number, or is out of range (the message names row and column);
                or no label is one of the positive words.
        """
        words: dict[str, float] = {}
        parsed = [[(cell, *self._parse(cell, words)) for cell in row] for row in rows]
        if self.positive and words and not any(words.values()):
            raise DataError(
                f"no label is {shortlist(self.positive)}, which mean yes; the labels are {shortlist(words)}"
            )
        binary = self.bounds is None and all(number in (0, 1, None) for row in parsed for _, _, number in row)
        low, high = (0.0, 1.0) if binary else (self.bounds or (0.0, self.scale))

        def on_scale(cell: Cell, share: float | None, number: float | None) -> float | None:
            if number is not None:
                if not low <= number <= high:
                    hint = self._hint("set the annotators' range with ", "label_range")
                    raise _bad_label(cell, f"in [{low:g}, {high:g}]", hint)
                share = (number - low) / (high - low)
            return None if share is None else share * self.scale

        return [tuple(on_scale(*part) for part in row) for row in parsed], words

    def _parse(self, cell: Cell, words: dict[str, float]) -> tuple[float | None, float | None]:
        """(share of the scale, None) for a word, (None, number) for a number, (None, None) for a missing label."""
        value = cell.value
        if value is None:
            return None, None
        if not isinstance(value, bool | int | float | str):
            raise _bad_label(cell, "a word or a number")
        text = str(value).strip()
        if is_sheet_error(text):
            raise _bad_label(cell, "a word or a number", "; if it is missing, leave the cell empty")
        word, number = folded(text), _number(text)
        if self.positive:  # 1, 1.0 and "1" are equal
            positive = {_comparable(label) for label in self.positive}
            is_positive = _comparable(text) in positive
            if not text or (word in NO_LABEL and not is_positive):
                return None, None
            words[text] = float(is_positive)
            return words[text], None
        if isinstance(value, bool):
            return float(value), None
        if isinstance(value, int | float):
            return None, float(value)
        if not text or word in NO_LABEL:
            return None, None
        if number is not None:
            return None, number
        if word in YES or word in NO:
            words[text] = float(word in YES)
        elif word in GOOD or word in BAD:
            words[text] = float((word in GOOD) != self.lower_is_better)
        else:
            hint = self._hint("add your own with ", "positive")
            raise _bad_label(cell, "a number, or a word such as yes, no, supported or unsupported", hint)
        return words[text], None

    def _hint(self, text: str, setting: str) -> WordingPart:
        return Hint.of(f"; {text}", Setting(setting, ...)) if self.has_options else ""


def _bad_label(cell: Cell, expected: str, hint: WordingPart = "") -> DataError:
    return DataError(
        f"{cell.place}: ", invalid(f"the label in column {excerpt(cell.column)}", expected, cell.value), hint
    )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def _comparable(text: str) -> str | float:
    number = _number(text)
    return folded(text) if number is None else number


def folded(text: str) -> str:
    """A label as it is in the lists of words: in lower case, with a space for each separator."""
    word = text.strip().casefold()
    return word if word in NO_LABEL else _BLANKS.sub(" ", word).strip()


@dataclass(frozen=True)
class Strata:
    """The strata of a run in which samples were chosen for labeling at random."""

    of: Mapping[str, str]
    """By sample id, its stratum."""
    sizes: Mapping[str, int]
    """The number of samples of the run in each stratum."""
    run_size: int
    """The number of samples of the run, over all strata, also those without labels."""

    def weights(self, names: Sequence[str]) -> list[float]:
        """How many samples of the run each of these labeled samples stands for: those of its stratum / the labeled ones
        in it."""
        drawn = Counter(self.of[name] for name in names)
        return [self.sizes[self.of[name]] / drawn[self.of[name]] for name in names]


@dataclass(frozen=True)
class LabeledSamples:
    """The samples that have a label, with their labels."""

    dataset: Dataset
    """The labeled samples."""
    labels: Mapping[str, tuple[float | None, ...]]
    """By sample id, the labels on the scorer's scale, one per annotator."""
    columns: tuple[str, ...]
    """The columns of labels."""
    words: Mapping[str, float]
    """The value in [0, 1] that each word was read as."""
    chosen: Mapping[str, str]
    """By sample id, how the sample was chosen for labeling, if the column `chosen` says so."""
    n_unlabeled: int = 0
    """The number of rows without a label."""
    strata: Strata | None = None
    """The strata of which the samples were chosen, if each row of labels has its own."""

    @functools.cached_property
    def clusters(self) -> Mapping[str, str]:
        """By sample id, what it has in common with samples that depend on it: the group, or else the texts, whatever
        their metadata. "" for a sample that stands alone."""
        names = {sample.id: _cluster(sample) for sample in self.dataset}
        sizes = Counter(names.values())
        return {name: cluster if sizes[cluster] > 1 else "" for name, cluster in names.items()}


def _cluster(sample: Sample) -> str:
    if sample.group is not None:
        return f"group {sample.group}"
    return f"texts {replace(sample, metadata={}, weight=None).content_hash[:16]}"


def read_labels(
    source: Any,
    reader: LabelReader,
    *,
    data: Any = None,
    columns: Sequence[str] = (),
    map: ColumnMapping | None = None,
) -> LabeledSamples:
    """Read the labeled samples.

    Args:
        source: samples with columns of labels, in any form that `load` reads. With `data`, rows of an id and labels (a
            path, a table, a list of objects, or a mapping or pandas Series from id to label).
        reader: reads the labels. A list in a cell has one label per annotator.
        data: the samples that the labels belong to.
        columns: the columns of labels. By default, those with a name such as label, human_label or annotator_1.
        map: sample field to column.

    Raises:
        DataError: a label can't be read, an id has no sample or is repeated (the message names file, line and column),
            or there are no labels.
    """
    source_name = named(str(cast("Any", source))) if isinstance(source, str | os.PathLike) else "the labels"
    try:
        dataset = load_for_scoring(cast("Any", source if data is None else data), map=map)
        rows = _own_rows(dataset, source) if data is None else _joined_rows(source, dataset)
        return _labeled(dataset, rows, reader, tuple(columns), dataset.columns if data is None else {})
    except DataError as error:
        message, part = str(error), error
        if data is None and error.kind == "unrecognized":
            hint = "; if it has only ids and labels, name the samples with "
            said = (message.partition(";")[0], Hint.of(hint, Setting("data", "FILE")))
            part = Problem(said, "unrecognized", known=error.known)
        raise DataError("" if message.startswith(source_name) else f"{source_name}: ", part) from None


@dataclass(frozen=True)
class _Row:
    """A row of labels: the sample's id, the position of the row, and its other columns."""

    id: str
    place: str
    cells: Mapping[str, Any]


def _own_rows(dataset: Dataset, source: Any) -> list[_Row]:
    """The rows of samples that have their own labels. Columns that aren't sample fields are in the metadata."""
    if isinstance(source, str | os.PathLike) and str(cast("Any", source)) != "-":
        places = [place for place, _ in find(Path(cast("str | os.PathLike[str]", source))).rows()]
    else:
        places = [f"item {number}" for number in range(1, len(dataset) + 1)]
    return [_Row(sample.id, place, sample.metadata) for sample, place in zip(dataset, places, strict=True)]


def _joined_rows(source: Any, dataset: Dataset) -> list[_Row]:
    """The rows of a source of ids and labels, at most one per sample of the dataset."""
    ids = {sample.id for sample in dataset}
    rows: dict[str, _Row] = {}
    listed = [_row_with_id(place, cells) for place, cells in _raw_rows(source)]
    if unknown := [row for row in listed if row.id not in ids]:
        place, name = unknown[0].place, unknown[0].id
        of = "" if dataset.name == IN_MEMORY else f" of {named(dataset.name)}"
        note = "" if is_own_id(name) else " (a default ID changes with the answer, so it fits one run only)"
        more = f"; {part_of(len(unknown), len(listed), 'ID')} unknown" if len(unknown) > 1 else ""
        raise DataError(f"{place}: no sample{of} has the id {excerpt(name)}{note}{more}")
    for row in listed:
        if (first := rows.setdefault(row.id, row)) is not row:
            raise DataError(
                f"{row.place}: the id {excerpt(row.id)} was already labeled at {first.place}; put each annotator's "
                "labels in a separate column"
            )
    return list(rows.values())


def _raw_rows(source: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(source, str | os.PathLike):
        path = Path(cast("str | os.PathLike[str]", source))
        if path == Path("-"):
            return standard_input()
        file = find(path)
        return _by_id(file.rows(by_id=True)) if file.kind == ".json" else file.rows()
    if is_table(source):
        return table_rows(source)
    if isinstance(source, Mapping):
        return _rows_by_id(cast("Mapping[Any, Any]", source).items())
    if callable(getattr(source, "to_frame", None)):
        return _rows_by_id(_series_items(source))
    if isinstance(source, Iterable) and not isinstance(source, bytes):
        return [(f"item {number}", item) for number, item in enumerate(cast("Iterable[Any]", source), start=1)]
    raise DataError(
        invalid("labels", "a path, a table, a list of objects or a mapping or Series from id to label", source)
    )


def _by_id(rows: Iterator[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    """The rows of a JSON file, or those of the only object in it if that is a mapping from id to label."""
    first = list(itertools.islice(rows, 2))
    if len(first) == 1 and isinstance(only := first[0][1], Mapping):
        entries = cast("Mapping[Any, Any]", only)
        if all(normal(str(name)) not in (*_ID_COLUMNS, *LABEL_COLUMNS) for name in entries):
            return _rows_by_id(entries.items())
    return itertools.chain(first, rows)


def _rows_by_id(labels: Iterable[tuple[Any, Any]]) -> list[tuple[str, Any]]:
    return [(f"id {excerpt(str(name))}", {"id": name, "label": label}) for name, label in labels]


def _series_items(series: Any) -> Iterable[tuple[Any, Any]]:
    """The ids and labels of a pandas Series.

    Raises DataError unless its index has ids: numbers under no such name may count rows in another order.
    """
    index = getattr(series, "index", ())  # a polars Series has none
    names = getattr(index, "names", ())
    if len(names) != 1 or not (normal(str(names[0])) in _ID_COLUMNS or all(isinstance(label, str) for label in index)):
        raise DataError(
            f"a {type(series).__name__} of labels needs the ids of the samples as its index, and a name such as id if "
            "they are numbers: table.set_index('id')['label']"
        )
    return series.items()


def _row_with_id(place: str, cells: Any) -> _Row:
    if not isinstance(cells, Mapping):
        raise DataError(
            f"{place}: ", invalid("a row of labels", "an object", cells, f"{type(cells).__name__}: {excerpt(cells)}")
        )
    entries = {str(name): native(value) for name, value in cast("Mapping[Any, Any]", cells).items()}
    column = next((name for known in _ID_COLUMNS for name in entries if normal(name) == known), None)
    if column is None or entries[column] is None:
        raise DataError(
            f"{place}: a row of labels needs an id; its columns are {shortlist(entries)}. A row is such as "
            '{"id": "q1", "label": "yes"}'
        )
    try:
        name = read_id(entries.pop(column))
    except DataError as error:
        raise DataError(f"{place}: column {excerpt(column)} ", error) from None
    return _Row(name, place, entries)


def _labeled(
    dataset: Dataset, rows: Sequence[_Row], reader: LabelReader, columns: tuple[str, ...], fields: Mapping[str, str]
) -> LabeledSamples:
    """The samples of the rows that have a label. fields: columns that became sample fields, for error messages."""
    if not rows:
        raise DataError("there are no labels")
    known = list(dict.fromkeys(column for row in rows for column in row.cells))
    columns = tuple(dict.fromkeys(columns)) or _label_columns(known, reader)
    for column in columns:
        if column not in known and column in fields:
            raise DataError(f"{excerpt(column)} was read as the samples' {fields[column]}: rename it")
        if column not in known:
            raise DataError(
                absent(
                    column,
                    f"no row has the column {excerpt(column)}; columns: {shortlist(known) or 'none'}",
                    known=known,
                )
            )
    values, words = reader.read(_cells(rows, columns))
    labels = {row.id: of for row, of in zip(rows, values, strict=True) if any(label is not None for label in of)}
    if not labels:
        raise DataError(f"no sample has a label in {shortlist(columns)}")
    samples = tuple(sample for sample in dataset if sample.id in labels)
    labeled = Dataset(samples, dataset.name, dataset.columns, dataset.ignored)
    chosen = {row.id: how for row in rows if row.id in labels and isinstance(how := row.cells.get(CHOSEN), str)}
    strata = _strata([row for row in rows if row.id in labels])
    return LabeledSamples(labeled, labels, columns, words, chosen, len(rows) - len(labels), strata)


def _strata(rows: Sequence[_Row]) -> Strata | None:
    """The strata of labeled samples; None unless each has one.

    Raises:
        DataError: A size is no whole number above 0, is not the same in all rows, or is below the number of labels.
    """
    of: dict[str, str] = {}
    sizes: dict[str, int] = {}
    run_size = 0
    for row in rows:
        if _is_empty(row.cells.get(STRATUM_SIZE)):
            return None
        stratum = row.cells.get(STRATUM)
        if _is_empty(stratum):
            raise DataError(f"{row.place}: {STRATUM_SIZE} needs the column {STRATUM}")
        of[row.id] = str(stratum).strip()
        size, total = _size(row, STRATUM_SIZE), _size(row, RUN_SIZE)
        if sizes.setdefault(of[row.id], size) != size:
            expected = f"{sizes[of[row.id]]} for {STRATUM} {excerpt(of[row.id])}, as in the rows before"
            raise DataError(f"{row.place}: ", invalid(STRATUM_SIZE, expected, size))
        if total != (run_size := run_size or total):
            raise DataError(f"{row.place}: ", invalid(RUN_SIZE, f"{run_size}, as in the rows before", total))
    for stratum, labels in Counter(of.values()).items():
        if labels > sizes[stratum]:
            raise DataError(
                invalid(STRATUM_SIZE, f"at least {labels}, the labels in {STRATUM} {excerpt(stratum)}", sizes[stratum])
            )
    if sum(sizes.values()) > run_size:
        raise DataError(invalid(RUN_SIZE, f"at least {sum(sizes.values())}, the sum of the strata", run_size))
    return Strata(of, sizes, run_size)


def _is_empty(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _size(row: _Row, column: str) -> int:
    """A number of samples. Raises DataError if it is no whole number above 0."""
    cell = row.cells.get(column)
    number = None if cell is None or isinstance(cell, bool) else _number(str(cell))
    if number is None or number < 1 or number != int(number):
        raise DataError(f"{row.place}: ", invalid(column, "a whole number above 0", cell))
    return int(number)


@functools.lru_cache(maxsize=1000)
def may_have_labels(column: str) -> bool:
    """Whether a column may be one of labels, by its name."""
    name = normal(column)
    return name in LABEL_COLUMNS or name.startswith(ANNOTATOR_PREFIXES)


def columns_of_labels(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of labels by their names: one that is named as such, or else those of annotators."""
    for known in LABEL_COLUMNS:
        for column in columns:
            if normal(column) == known:
                return (column,)
    return tuple(column for column in columns if normal(column).startswith(ANNOTATOR_PREFIXES))


def labels_in(value: object, column: str, reader: LabelReader) -> int:
    """The number of labels in a cell. Raises DataError if they can't be read."""
    row = _Row("", "", {column: value})
    (labels,), _ = reader.read([[Cell(item, "", column) for item in _items(row, column)]])
    return sum(label is not None for label in labels)


def _label_columns(columns: Sequence[str], reader: LabelReader) -> tuple[str, ...]:
    """The columns of labels, recognized by their names."""
    if known := columns_of_labels(columns):
        return known
    others = f"columns: {shortlist(columns)}" if columns else "all columns are read as fields of the samples"
    named_by = Hint.of("name it with ", Setting("label", ...), ", once per annotator")
    raise DataError(f"no column of labels ({others}); ", named_by if reader.has_options else "name it label")


def _cells(rows: Sequence[_Row], columns: Sequence[str]) -> list[list[Cell]]:
    """The cells of each row, padded to equal length, so that each position is the same annotator in every row."""
    cells: list[list[Cell]] = [[] for _ in rows]
    for column in columns:
        items = [_items(row, column) for row in rows]
        width = max(map(len, items))
        for row_cells, row, labels in zip(cells, rows, items, strict=True):
            row_cells += [Cell(label, row.place, column) for label in [*labels, *[None] * (width - len(labels))]]
    return cells


def _items(row: _Row, column: str) -> list[Any]:
    """The labels in a cell. A JSON array, also as text, has several labels."""
    try:
        value = unpacked(row.cells.get(column))
    except DataError as error:
        raise DataError(f"{row.place}: column {excerpt(column)} ", error) from None
    return cast("list[Any]", value) if isinstance(value, list) else [value]
