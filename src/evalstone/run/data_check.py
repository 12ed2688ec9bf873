"""Checks data without asking a judge: how they are read, all problems at once, and which scorers can score them."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar, cast

from evalstone._core import sync
from evalstone._core.display import count, escaped, joined, named, safe
from evalstone._core.files import encoding_of
from evalstone._core.front_ends import Setting
from evalstone._core.json import storable
from evalstone._core.languages import is_foreign
from evalstone._core.phases import phase
from evalstone.agents.formats.records import is_telemetry
from evalstone.agents.messages import tool_results
from evalstone.agents.notes import Notes
from evalstone.datasets import Dataset, Samples, load
from evalstone.datasets.columns import (
    BY_VALUE,
    FIELD_NAMES,
    RESULTS_OF_PROMPTFOO,
    ColumnMapping,
    field_of,
    inner_fields,
    similar_field,
)
from evalstone.datasets.files import DataFile, cautions, delimiter_of, file_name, rows_of, standard_input
from evalstone.datasets.loading import IN_MEMORY
from evalstone.datasets.other_tools import IN_NO_FILE, advising_import, import_command, tool_of
from evalstone.datasets.own_code import names_code
from evalstone.datasets.reading import AS_FOUND, Reading
from evalstone.datasets.rows import RowReader
from evalstone.datasets.tables import Rows, is_table, memory_rows, table_rows
from evalstone.errors import DataError, EvalstoneError, JudgeDeclined, MissingDependency
from evalstone.questions.base import Question
from evalstone.results.data_check import (
    CheckedField,
    CheckedScorer,
    DataCheck,
    DataProblem,
    Duplicates,
    UnreadColumn,
)
from evalstone.results.labels import LabelReader, columns_of_labels, labels_in, may_have_labels
from evalstone.run.suggested_commands import OF_A_TARGET, SuitedScorers, suggested_commands
from evalstone.scorers.base import Scorer, is_absent
from evalstone.scorers.described import built_in
from evalstone.scorers.registry import parse_scorer
from evalstone.types import OWN_RUBRIC, SAMPLE_FIELDS, Sample, Skipped, Trajectory, rubric_of
from evalstone.types.reserved_metadata import RESERVED_METADATA
from evalstone.types.sample_language import sample_language
from evalstone.types.samples import LISTS

A = TypeVar("A")
MOST_PROBLEMS = 100
MOST_COLUMNS = 200
"""The most columns that are no field that are listed."""
_FIRST = 3
_PAIRS = 3
_READER = LabelReader(scale=1.0, lower_is_better=False, has_options=False)
"""Reads labels as those of any built-in scorer: which ones can be read doesn't depend on the direction."""
_LONGEST = 60
_FILES = 1 << 20
"""More files than data have."""


def check(
    source: Samples,
    *,
    map: ColumnMapping | None = None,
    split: Mapping[str, str] | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> DataCheck:
    """Check data: how they are read, what is wrong with them, and which scorers can score them.

    Every row is read, one by one, and all problems are collected instead of raising an error for the first. No judge is
    asked, and nothing is stored.

    Args:
        source: What `load` takes.
        map: Sample field to column, as for `load`.
        split: The separator of the passages in a text, as for `load`.
        encoding: The encoding of a text file, as for `load`.
        sheet: The sheet of an Excel file, as for `load`.

    Raises:
        DataError: There is no such file, or its name has an unknown suffix.
        ConfigError: As for `load`.
    """
    with advising_import(source):
        result = _Inspection(Reading(map=map, split=split, encoding=encoding, sheet=sheet)).of(source)
    if not (tool := tool_of(source)):
        in_memory = any(RESULTS_OF_PROMPTFOO in one.message for one in result.problems)
        return replace(result, remarks=(*result.remarks, IN_NO_FILE)) if in_memory else result
    said = f"the file has results of {tool}; to keep their scores, import it"
    command = import_command(os.fspath(cast("str", source)))
    return replace(result, remarks=(*result.remarks, said), commands=(command, *result.commands))


@dataclass
class _Rows:
    """Where rows come from."""

    name: str
    rows: Rows
    encoding: str = ""
    delimiter: str = ""
    cautions: tuple[str, ...] = ()
    text_cells: bool = False
    path: str = ""
    """What a command calls the data; "" if it can't."""


@dataclass
class _Shape:
    """Samples that have the same fields."""

    example: Sample
    samples: int = 0


@dataclass
class _Inspection:
    reading: Reading
    problems: list[DataProblem] = field(default_factory=list[DataProblem])
    n_problems: int = 0
    rows: int = 0
    samples: int = 0
    complete: bool = True
    recognized: bool = True
    """Whether a column is a field."""
    with_calls: int = 0
    """The number of samples with tool calls or another trajectory."""
    with_results: int = 0
    """The number of samples whose passages are tool results."""
    values: Counter[str] = field(default_factory=Counter[str])
    blanks: Counter[str] = field(default_factory=Counter[str])
    languages: Counter[str] = field(default_factory=Counter[str])
    shapes: dict[tuple[str, ...], _Shape] = field(default_factory=dict[tuple[str, ...], _Shape])
    labels: dict[str, int | None] = field(default_factory=dict[str, "int | None"])
    """By column that may have labels, how many it has; None if one of them can't be read."""
    inner: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict[str, tuple[tuple[str, str], ...]])
    """By column, the paths in the first samples that are named like fields, and these fields."""
    empty: list[str] = field(default_factory=list[str])
    """The columns that are no field and have no value."""
    first: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    notes: Notes = field(default_factory=lambda: Notes("sample"))

    def __post_init__(self) -> None:
        self.places = _Places()
        self.ids, self.contents, self.inputs = (_Seen(self.places) for _ in range(3))

    def of(self, source: Samples) -> DataCheck:
        of_fields: list[DataError] = []
        found = self._opened(source)
        if isinstance(found, Dataset):
            for number, sample in enumerate(found, start=1):
                self._add(sample, f"sample {number}")
            path = "" if found.name == IN_MEMORY or not isinstance(source, str | os.PathLike) else os.fspath(source)
            return self._result(_Rows(found.name, iter(()), path=path), found.columns, found.ignored, found.notes)
        reader = self.reading.reader(text_cells=found.text_cells, problems=of_fields)
        try:
            with phase(f"checking {found.name}", "row") as progress:
                for place, row in progress.count(found.rows):
                    self.rows += 1
                    self._read(reader, row, place, of_fields)
        except DataError as error:
            self.complete = False
            self._refuse("", error)
        if not self.rows and not self.complete:
            return self._result(found, {}, (), found.cautions)
        try:
            reader.columns.check()
        except DataError as error:
            self.recognized = error.kind != "unrecognized"
            self._refuse("", error)
        if not self.rows and not self.n_problems:
            self._refuse("", DataError("there are no samples"))
        notes = (*found.cautions, *reader.notes(), *self.notes.lines())
        empty = reader.columns.without_values(reader.ignored)
        became = reader.columns.became | {column: name for column, name in empty.items() if name}
        self.empty = [column for column, name in empty.items() if not name]
        return self._result(found, became, reader.ignored, notes)

    def _opened(self, source: Samples) -> _Rows | Dataset:
        """The rows of the data; a dataset for samples that are made of more than one row each, or aren't rows."""
        reading = self.reading
        is_file = isinstance(source, str | os.PathLike) and not names_code(source) and Path(source) != Path("-")
        is_plain = reading.encoding is None is reading.sheet
        if isinstance(source, Dataset) or names_code(source) or not (is_file or is_plain):
            return load(source, map=reading.map, split=reading.split, encoding=reading.encoding, sheet=reading.sheet)
        if isinstance(source, str | os.PathLike):
            if Path(source) == Path("-"):
                return _Rows("stdin", standard_input())
            files = reading.files(os.fspath(source))
            name = escaped(file_name(files, named(os.fspath(source))))
            found = _Rows(name, rows_of(files, self._refuse_row), text_cells=files[0].text_cells)
            if not all(file.can_be_read_again for file in files):
                return found  # a pipe can be read only once
            if not files[0].cells and is_telemetry(_first_row(files)):
                return load(source, map=reading.map, encoding=reading.encoding)
            found.encoding = _encoding(files[0]) if files[0].is_text else ""
            found.cautions = tuple(cautions(files))
            found.delimiter, found.path = _delimiter(files[0]), os.fspath(source)
            return found
        if is_table(source):
            return _Rows(IN_MEMORY, table_rows(source))
        items = cast("list[Any]", source) if isinstance(source, list | tuple) else []
        if items and is_telemetry(items[0]):
            return load(source, map=reading.map)
        return _Rows(IN_MEMORY, memory_rows(source))

    def _refuse_row(self, place: str, error: DataError) -> None:
        self.rows += 1
        self._refuse(place, error)

    def _refuse(self, place: str, error: DataError, of_field: str = "") -> None:
        self.n_problems += 1
        self.places.order(place)  # numbers the file, in the order of reading
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(DataProblem(place=place, field=of_field, message=str(error), error=error))

    def _read(self, reader: RowReader, row: object, place: str, of_fields: list[DataError]) -> None:
        of_fields.clear()
        sample = None
        try:
            sample = row if isinstance(row, Sample) else reader.read(row, "")
        except DataError as error:
            self._refuse(place, error)
        messages = set[str]()
        for error in of_fields:
            if (text := str(error)) not in messages:  # a field may be read twice
                messages.add(text)
                self._refuse(place, error, error.field or "")
        if sample is not None and not of_fields:
            try:
                rubric_of(sample.metadata)
            except DataError as error:
                self._refuse(place, error, OWN_RUBRIC)
            self._add(sample, place)
            self._count_labels(sample)

    def _add(self, sample: Sample, place: str) -> None:
        self.samples += 1
        number, at = self.samples, self.places.number(place)
        if sample.id != sample.default_id:
            self.ids.add(storable(sample.id), at)
        self.contents.add(sample.content_hash, at)
        if sample.input is not None:
            self.inputs.add(sample.input, at)
        self.languages[sample_language(sample)] += 1
        self.notes.add_messages(sample.messages, sample.id)
        self.with_results += sample.context is None and bool(tool_results(sample.messages))
        self.with_calls += bool(sample.trajectory) or any(message.tool_calls for message in sample.messages)
        present: list[str] = []
        values = vars(sample)
        for name in SAMPLE_FIELDS:
            value = values[name]
            if value is None or (name in LISTS and not value) or name == "metadata":
                continue
            if name != "group" and is_absent(value):
                self.blanks[name] += 1
            else:
                self.values[name] += 1
                present.append(name)
        if sample.metadata:
            present += [name for name in RESERVED_METADATA if sample.metadata.get(name) is not None]
        shape = self.shapes.setdefault(tuple(present), _Shape(sample))
        shape.samples += 1
        if number <= _FIRST:
            self.first.append(dict(_texts(sample)))
            self.inner |= {column: tuple(inner_fields(column, value)) for column, value in sample.metadata.items()}

    def _count_labels(self, sample: Sample) -> None:
        for column, value in sample.metadata.items():
            if not may_have_labels(column) or (labels := self.labels.get(column, 0)) is None:
                continue
            try:
                self.labels[column] = labels + labels_in(value, column, _READER)
            except DataError:
                self.labels[column] = None

    def _result(
        self, found: _Rows, became: Mapping[str, str], ignored: Iterable[str], notes: Iterable[str]
    ) -> DataCheck:
        columns: dict[str, list[str]] = {}
        for column, name in became.items():
            columns.setdefault(name, []).append(column)
        advice = ("; if the column has no IDs, leave it out: ", Setting("map", {"id": ""})) if "id" in columns else ()
        same_ids, used = self.ids.repeated(MOST_PROBLEMS)
        for later, first in used:
            error = DataError(f"its ID is already used by {first}", advice)
            self.problems.append(DataProblem(place=later, field="id", message=str(error), error=error))
        self.problems.sort(key=lambda problem: self.places.order(problem.place))
        self.n_problems += same_ids
        same_inputs, pairs = self.inputs.repeated(_PAIRS)
        fields = [
            CheckedField(
                field=name,
                columns=tuple(columns.get(name, ())),
                values=self.values[name] if name not in ("id", "metadata") else self.samples,
                blank=self.blanks[name],
            )
            for name in FIELD_NAMES
            if name in columns or self.values[name] or self.blanks[name]
        ]
        scorers = sorted(self._scorers(), key=lambda one: -one.samples)
        kept = [*ignored]
        unread = chain(
            (self._unread(name, columns) for name in kept),
            (UnreadColumn(column=name, reason="empty in every row") for name in self.empty),
        )
        if (number := len(kept) + len(self.empty)) > MOST_COLUMNS:
            notes = (*notes, f"{number:,} columns are no field; the first {MOST_COLUMNS} are listed")
        return DataCheck(
            source=found.name,
            rows=self.rows or self.samples,
            samples=self.samples,
            encoding=found.encoding,
            delimiter=found.delimiter,
            fields=tuple(fields),
            unread=tuple(islice(unread, MOST_COLUMNS)),
            problems=tuple(self.problems[:MOST_PROBLEMS]),
            n_problems=self.n_problems,
            complete=self.complete,
            duplicates=Duplicates(
                samples=self.contents.repeated()[0],
                inputs=same_inputs,
                first=tuple(f"{later} = {first}" for later, first in pairs),
            ),
            languages=dict(self.languages.most_common()),
            scorers=tuple(scorers),
            remarks=(*notes, *self._passages()),
            first=tuple(self.first),
            commands=tuple(self._commands(found.path, scorers)),
        )

    def _unread(self, column: str, columns: Mapping[str, list[str]]) -> UnreadColumn:
        if reason := _reason(column, columns):
            return UnreadColumn(column=column, reason=reason)
        if self.labels.get(column) and column in columns_of_labels([*self.labels]):
            return UnreadColumn(column=column, reason="kept in the metadata; labels of people, which calibrate reads")
        like = {name: path for path, name in self.inner.get(column, ()) if name not in columns}
        if not like and (similar := similar_field(column)) is not None and similar not in columns:
            like = {similar: column}
        hints = (
            f"if {'it' if path == column else path} {'has' if name == 'messages' else 'is'} the {name}, map it to that"
            for name, path in like.items()
        )
        reason = "; ".join(("no field has this name; kept in the metadata", *hints))
        return UnreadColumn(column=column, reason=reason, like=like)

    def _passages(self) -> Iterator[str]:
        """Where the passages of samples without a context come from."""
        if self.with_results:
            samples = f"{count(self.with_results, 'sample')} without context"
            yield f"{samples}: scorers take the results of tool calls in messages as passages"

    def _scorers(self) -> Iterator[CheckedScorer]:
        if not self.samples or not self.recognized:
            return
        for one in built_in():
            if one.applies_another:
                continue
            required = [name for name, default, *_ in one.parameters if default is MISSING]
            if required:
                lacks = f"needs its {'parameter' if len(required) == 1 else 'parameters'} {joined(required)}"
                yield CheckedScorer(name=one.name, samples=0, judged=bool(one.questions), lacks=lacks)
                continue
            try:
                scorer = one.kind()
            except MissingDependency as error:
                yield CheckedScorer(name=one.name, samples=0, judged=bool(one.questions), lacks=str(error))
                continue
            able, lacks = 0, ""
            for shape in self.shapes.values():
                lacking = sync.run(_lacking(scorer, shape.example))
                able += 0 if lacking else shape.samples
                lacks = lacks or lacking
            yield CheckedScorer(name=one.name, samples=able, judged=bool(one.questions), lacks=lacks)

    def _commands(self, path: str, scorers: Iterable[CheckedScorer]) -> Iterable[str]:
        if not path or path == "-" or self.n_problems or not self.samples:
            return ()
        return suggested_commands(
            path,
            self.reading,
            SuitedScorers(
                n=self.samples,
                samples={one.name: one.samples for one in scorers if one.samples},
                with_answers={} if self._has_answers() else dict(self._with_answers()),
                judged=frozenset(one.name for one in scorers if one.judged),
                has_calls=2 * self.with_calls >= self.samples,
                is_foreign=2 * sum(n for name, n in self.languages.items() if is_foreign(name)) > self.samples,
                has_labels=Path(path).is_file() and self._has_labels(),
            ),
        )

    def _has_answers(self) -> bool:
        return bool(self.values["output"] or self.blanks["output"])

    def _with_answers(self) -> Iterator[tuple[str, int]]:
        """How many samples each scorer could score if a target had answered those that it can be asked."""
        asked = [shape for shape in self.shapes.values() if shape.example.input or shape.example.turns]
        for name in OF_A_TARGET if self.recognized else ():
            scorer = parse_scorer(name)
            able = (shape.samples for shape in asked if not sync.run(_lacking(scorer, _answered(shape.example))))
            yield name, sum(able)

    def _has_labels(self) -> bool:
        """Whether the data have labels of people, and `calibrate` can read all of them."""
        if self.reading != replace(AS_FOUND, map=self.reading.map):
            return False
        counts = [self.labels[column] for column in columns_of_labels([*self.labels])]
        return None not in counts and any(counts)


class _Places:
    """Places as numbers: `line 3`, or `line 3 of b.jsonl`."""

    def __init__(self) -> None:
        self._kind = ""
        self._files: dict[str, int] = {}

    def number(self, place: str) -> int:
        """The number of a place."""
        self._kind, _, rest = place.partition(" ")
        digits, _, file = rest.partition(" ")
        return int(digits) * _FILES + self._files.setdefault(file, len(self._files))

    def order(self, place: str) -> tuple[int, int]:
        """What sorts places as the data have them, and what is of all data before."""
        if not place:
            return -1, 0
        number, file = divmod(self.number(place), _FILES)
        return file, number

    def text(self, number: int) -> str:
        """The place with a number."""
        place, file = divmod(number, _FILES)
        return f"{self._kind} {place} {[*self._files][file]}".rstrip()


class _Seen:
    """The hashes of values and where they were seen, in 16 bytes each."""

    def __init__(self, places: _Places) -> None:
        self._places = places
        self._hashes, self._numbers = array("q"), array("q")

    def add(self, value: str, place: int) -> None:
        """Add a value with the number of its place."""
        self._hashes.append(hash(value))
        self._numbers.append(place)

    def repeated(self, most: int = 0) -> tuple[int, list[tuple[str, str]]]:
        """How many values were seen before, and the places of the first of these, each with the place of the first."""
        import numpy as np  # noqa: PLC0415 - slow to import

        hashes = np.frombuffer(self._hashes, dtype=np.int64) if self._hashes else np.empty(0, dtype=np.int64)
        order = np.argsort(hashes, kind="stable")
        same = np.zeros(len(hashes), dtype=bool)
        same[1:] = hashes[order][1:] == hashes[order][:-1]
        starts = np.maximum.accumulate(np.where(same, 0, np.arange(len(hashes)))) if len(hashes) else order
        repeated, firsts = order[same], order[starts[same]]
        shown = np.argsort(repeated)[:most]
        pairs = zip(repeated[shown].tolist(), firsts[shown].tolist(), strict=True)
        text, numbers = self._places.text, self._numbers
        return len(repeated), [(text(numbers[int(later)]), text(numbers[int(first)])) for later, first in pairs]


async def _lacking(scorer: Scorer, sample: Sample) -> str:
    """What a sample lacks for a scorer; "" if it can be scored, or if the judge is asked about it."""
    asked = False

    async def ask(question: Question[A]) -> A:
        nonlocal asked
        asked = True
        raise JudgeDeclined("no judge is asked")

    try:
        outcome = await scorer.run(ask, sample)
    except EvalstoneError as error:
        return "" if asked else _without_name(scorer, str(error))
    return _without_name(scorer, outcome.reason) if isinstance(outcome, Skipped) and not asked else ""


def _answered(sample: Sample) -> Sample:
    """A sample with an answer, and with a tool call if it expects some."""
    calls = None if sample.expected_trajectory is None else Trajectory.read(["a"])
    return replace(sample, input=sample.input or "a", output="a", trajectory=calls)


def _without_name(scorer: Scorer, reason: str) -> str:
    return reason.removeprefix(f"{scorer.name}: ").removeprefix(f"{scorer.name} ")


def _texts(sample: Sample) -> Iterator[tuple[str, str]]:
    """The texts of a sample that is shown, by field."""
    for name in ("input", "output", "reference", "instructions"):
        if (text := getattr(sample, name)) is not None:
            yield name, safe(text, _LONGEST)
    if sample.context is not None:
        passages = " | ".join(safe(passage, _LONGEST) for passage in sample.context[:_FIRST])
        yield "context", f"{count(len(sample.context), 'passage')}: {passages}" if sample.context else "no passages"
    if sample.messages:
        calls = sum(len(message.tool_calls) for message in sample.messages)
        listed = [count(len(sample.messages), "message"), *[count(calls, "tool call")] * (calls > 0)]
        yield "messages", ", ".join(listed)


def _reason(column: str, columns: Mapping[str, list[str]]) -> str:
    """Why a column whose name is known is no field; "" for other names."""
    known = field_of(column)
    if known is not None and known in BY_VALUE and columns.get(known, [column]) == [column]:
        return f"{known} must be {BY_VALUE[known]}; other values are kept in the metadata"
    if known is not None and known in columns:
        return f"{known} is read from {' and '.join(map(named, columns[known]))}; kept in the metadata"
    return f"kept in the metadata, where it is read: {RESERVED_METADATA[column]}" if column in RESERVED_METADATA else ""


def _encoding(file: DataFile) -> str:
    """The encoding of a file, as it says itself, or UTF-8. Raises DataError if the file can't be read."""
    try:
        with file.location.open() as stream:
            start = b"" if file.zipped else stream.read(4)
    except OSError as error:
        raise DataError(f"{named(str(file.location))} cannot be read: {error.strerror or error}") from None
    name, mark = encoding_of(start)
    if file.encoding is not None and not mark:
        return file.encoding
    return name.removesuffix("-le").removesuffix("-be").upper() + (" with a byte order mark" if mark else "")


def _delimiter(file: DataFile) -> str:
    """The delimiter of a file; "" if it has none, or can't be read, which its rows say."""
    try:
        return delimiter_of(file)
    except DataError:
        return ""


def _first_row(files: Iterable[DataFile]) -> Any:
    """The first row that can be read; None if there is none."""
    try:
        return next((row for _, row in rows_of([*files], lambda _place, _error: None)), None)
    except DataError:
        return None
