"""Conversion of rows to samples: which column is which field, and what becomes of the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar, cast

from evalstone._core.display import excerpt, named
from evalstone._core.file_format import SampleRow
from evalstone._core.front_ends import Hint, Setting
from evalstone._core.guards import is_array, is_list, is_mapping, is_object, is_texts
from evalstone._core.names import normal
from evalstone.agents.formats.calls import read_call
from evalstone.agents.formats.conversation import Conversation
from evalstone.agents.formats.messages import conversation_in, is_calls, is_conversation
from evalstone.agents.formats.records import is_telemetry
from evalstone.datasets.cells import (
    ReadText,
    native,
    number_in,
    passages_in,
    read_id,
    read_metadata,
    read_text,
    spoken_text,
    storable,
    transcript_in,
    turn_passages,
    unpacked,
)
from evalstone.datasets.columns import BY_VALUE, Cell, ColumnMapping, Columns, alpaca
from evalstone.datasets.lost_types import LostTypes
from evalstone.datasets.stored import sample_of
from evalstone.datasets.written import check_not_joined, is_text_column, may_write_out, written_in_cell
from evalstone.errors import ConfigError, DataError, absent, invalid, of_another_type
from evalstone.types import SAMPLE_FIELDS, Message, Role, Sample, Trajectory, TrajectoryExpectation
from evalstone.types.samples import read_group, read_weight

T = TypeVar("T")
_CONVERSATION_FIELDS = ("messages", "input", "output")
_TEXT_FIELDS = ("input", "output", "reference", "instructions")
_OF_CALLS = ("toolscalled", "toolcalls")
"""The columns of tool calls, which may only have their names."""
_OF_A_SAMPLE = frozenset(("id", *SAMPLE_FIELDS))
_OF_A_TRIAL = frozenset(("id", "trial", *SAMPLE_FIELDS))
_OF_TRACES = ("resourceSpans", "resourceLogs", "attributes")
_PLAIN_FIELDS = ("id", "context", *_TEXT_FIELDS)
_PLAIN_TYPES = frozenset((str, int, bool))
_NO_METADATA = frozenset(("trial", *_OF_TRACES))
"""The columns that are no entries of the metadata, although no field has these names."""


def sample_from(row: Mapping[str, Any], *, map: ColumnMapping | None = None, where: str = "") -> Sample:
    """Convert a row to a sample.

    Args:
        row: Values by column.
        map: Sample field to column. It takes precedence over the known names. `a.b` is entry b of the object in
            column a. An empty column name leaves the field out. `context` may name several columns, whose passages are
            joined.
        where: The row's position, for error messages.

    Raises:
        DataError: No column is recognized, a mapped column is missing, or a value has the wrong type.
        ConfigError: `map` has an unknown field.
    """
    reader = RowReader(map)
    sample = reader.read(row, where)
    try:
        reader.columns.check()
    except DataError as error:
        raise _placed(where, error) from None
    return sample


class _PlainRow(NamedTuple):
    """How to read rows with the same columns, if their cells are plain."""

    fields: list[tuple[str, str]]
    """Each field with its column."""
    metadata: list[str]
    """The columns that are entries of the metadata."""
    own_metadata: str
    """The column of the metadata; "" without one."""
    blank_output: bool
    """Whether the cell of the output is blank, which is a blank answer."""


class RowReader:
    """Reads rows one by one, and records which columns became which fields.

    Args:
        mapping: The `map` of `sample_from`.
        text_cells: Whether every cell is a text, as in CSV. Then a missing cell is a blank one, which is a blank answer
            in a column of the output, and a text may be a list or an object that was written out.
        split: The separator of the passages in a text, by field: `{"context": "|"}`.
        problems: Where errors of single fields are collected. A field with an error is then read as absent.
    """

    def __init__(
        self,
        mapping: ColumnMapping | None = None,
        *,
        text_cells: bool = False,
        split: Mapping[str, str] | None = None,
        problems: list[DataError] | None = None,
    ) -> None:
        self._problems = problems
        self._separator = _separator(split)
        self.columns = Columns(mapping)
        self.text_cells = text_cells
        self.ignored: dict[str, None] = {}
        """The columns that went to the metadata, as an ordered set."""
        self.lost_types = LostTypes()
        """What the cells look like, if every cell is a text."""
        self._weighted = False
        """Whether a row has a weight."""
        self._lacks_weight = ""
        """The column of the weights, if a row has none in it."""
        self._plain_rows: dict[tuple[tuple[str, ...], tuple[str, ...]], _PlainRow | None] = {}
        """By the columns of rows that were read, and those with values: how to read rows whose cells are plain; None if
        one of them needs more reading."""

    def forget(self) -> None:
        """Drop what only makes reading faster."""
        self._plain_rows.clear()
        self.columns.forget()

    def merge(self, later: RowReader) -> None:
        """Add what was learned from later rows. Raises DataError as `read` does for rows that don't go together."""
        self.columns.merge(later.columns)
        self.ignored |= later.ignored
        self.lost_types.merge(later.lost_types)
        self.text_cells = self.text_cells or later.text_cells
        self._weighted = self._weighted or later._weighted
        self._lacks_weight = self._lacks_weight or later._lacks_weight
        self._check_weights()

    def notes(self) -> Iterator[str]:
        """What was read with a caveat, once all rows are read."""
        yield from self.lost_types.notes()
        if self._lacks_weight and self.text_cells:
            self.columns.became.pop(self._lacks_weight, None)
            yield f"column {named(self._lacks_weight)!r} is blank in every row, so all samples weigh the same"

    def read(self, row: object, where: str = "") -> Sample:
        """Convert a row to a sample. Raises DataError, prefixed with the row's position."""
        if type(row) is dict:
            cells = cast("dict[str, Any]", row)
            names = tuple(cells)
            present = tuple([name for name, value in cells.items() if value is not None])
            try:
                plain = self._plain_rows[names, present]
            except KeyError:
                sample = self._read(cells, where)
                self._plain_rows[names, present] = self._plain_row(cells)
                return sample
            if plain is not None and (sample := self._plain(plain, cells)) is not None:
                return sample
        if isinstance(row, SampleRow) and not self.columns.mapping and (own := _own(row)) is not None:
            for name in vars(own).keys() & row.keys():
                self.columns.became.setdefault(name, name)
            return own
        return self._read(cast("object", row), where)

    def _plain_row(self, cells: Mapping[Any, Any]) -> _PlainRow | None:
        """How to read other rows with the columns of a row that was read; None if that depends on what is in them."""
        if not all(type(column) is str for column in cells):
            return None
        chosen = self.columns.choose(cells)
        fields = {cell.column: field for field, cell in chosen.items()}
        others = [column for column, value in cells.items() if value is not None and column not in fields]
        if (
            not all(
                field == "metadata" or (field in _PLAIN_FIELDS and is_text_column(column))
                for column, field in fields.items()
            )
            or not fields.keys() <= cells.keys()
            or not self.columns.mapped <= cells.keys()
            or not _NO_METADATA.isdisjoint(cells)
            or any(normal(column) == "instruction" for column in others)
            or self.columns.column("weight", cells) is not None
            or self.columns.has_rivals(cells)
        ):
            return None
        is_blank = self.text_cells and "output" not in chosen and self.columns.column("output", cells) is not None
        metadata = [column for column in others if column not in self.columns.mapped]
        ordered = [(field, chosen[field].column) for field in _PLAIN_FIELDS if field in chosen]
        return _PlainRow(ordered, metadata, chosen["metadata"].column if "metadata" in chosen else "", is_blank)

    def _plain(self, row: _PlainRow, cells: Mapping[str, Any]) -> Sample | None:
        """The sample of a row whose cells are the values of its fields, like most rows of large files, in a quarter of
        the time; None for any other row."""
        plain: dict[str, Any] = {"output": ""} if row.blank_output else {}
        for field, column in row.fields:
            value = cells[column]
            if field == "context":
                if type(value) is str:
                    value = self._plain_passages(value, cells)
                elif is_list(value) and self._separator is None and is_texts(value):
                    value = tuple([text for text in value if text.strip()])
                else:
                    return None
                if value is None:
                    return None
            elif type(value) is not str or (field != "id" and may_write_out(value)):
                return None
            plain[field] = value
        if row.metadata or row.own_metadata:
            entries: dict[str, Any] = {}
            if row.own_metadata:
                if type(value := cells[row.own_metadata]) is not dict:
                    return None
                own = cast("dict[str, Any]", value)
                if not own.keys().isdisjoint(row.metadata):
                    return None
                entries = {name: value for name, value in own.items() if value is not None}
                if not all(type(name) is str for name in entries):
                    return None
            for column in row.metadata:
                entries[column] = cells[column]
            if not all(map(_is_plain, entries.values())):
                return None
            plain["metadata"] = entries
        sample = Sample(**plain)
        if self.text_cells:
            self.lost_types.rows += 1
            for field, column in row.fields:
                self.lost_types.add(field, column, cells[column])
        return sample

    def _plain_passages(self, text: str, columns: Collection[str]) -> tuple[str, ...] | None:
        """The passages in a cell of a table; None for one that can't be read."""
        try:
            return self._passages([text], columns)
        except DataError:  # which the error of the whole row names
            return None

    def _read(self, row: object, where: str) -> Sample:
        try:
            if not is_mapping(row):
                problem = invalid("a row", "an object", row, f"{type(row).__name__}: {excerpt(row)}")
                is_rows = is_array(row) and bool(row) and all(map(is_object, row))
                raise DataError(problem, "; a list of rows belongs into a .json file" if is_rows else "")
            if not row.keys().isdisjoint(_OF_TRACES) and is_telemetry(row):
                raise _placed(where, "a trace among samples; keep them in files of their own")
            return self._sample(row)
        except RecursionError:
            raise _placed(where, "nested too deeply") from None
        except ConfigError as error:
            raise _placed(where, error) from None

    def _sample(self, row: Mapping[Any, Any]) -> Sample:
        cells = {str(column): value if isinstance(value, str) else native(value) for column, value in row.items()}
        chosen = self.columns.choose(cells)
        if "state" in chosen and "state" not in self.columns.mapping and not _is_state(chosen["state"].value):
            del chosen["state"]  # such as a US state, or the state of an order
        if "turns" in chosen:
            self._place_turns(chosen)
        for field in BY_VALUE:
            if field in chosen:
                self.columns.became.setdefault(chosen[field].column, field)
        if self.text_cells:
            self.lost_types.rows += 1
            for field in ("id", "context", *_TEXT_FIELDS):
                if (cell := chosen.get(field)) is not None:
                    self.lost_types.add(field, cell.column, cell.value)
        texts = {
            field: self._value(field, chosen, lambda cell, field=field: self._text(cell, field))
            for field in _TEXT_FIELDS
        }
        used = {cell.column for cell in chosen.values()} | self.columns.mapped
        instruction = alpaca(chosen, cells, self.columns)
        if instruction is not None:
            material = chosen["input"].value
            text = f"{instruction.value}\n\n{material}" if material.strip() else instruction.value
            texts["input"] = ReadText(text)
            self.columns.became.setdefault(instruction.column, "input")
            used.add(instruction.column)
        passages: tuple[str, ...] | None = None
        transcript = self._value("messages", chosen, lambda cell: transcript_in(unpacked(cell.value)))
        if transcript is not None:
            messages, passages = transcript.messages, transcript.context
            if texts["output"] is None:
                texts["output"] = ReadText(transcript.output, failed=bool(transcript.error))
        elif "messages" in chosen:
            read = self._value("messages", chosen, lambda cell: _messages(cell, texts)) or Conversation()
            messages, passages = tuple(read.messages), tuple(read.passages) or None
        elif any(turn is not None and turn.messages for turn in (texts["input"], texts["output"])):
            messages = _joined(texts["input"], texts["output"])
        else:
            messages = ()
        reference, context = texts["reference"], self._context(chosen, cells)
        sample = Sample(
            id=self._value("id", chosen, lambda cell: read_id(cell.value)) or "",
            input=_text_or(texts["input"], messages, "input"),
            output=self._output(texts["output"], messages, cells),
            context=passages if context is None else context,
            reference=None if reference is None else reference.text,
            messages=messages,
            instructions=_text_or(texts["instructions"], messages, "instructions"),
            metadata=self._metadata(cells, chosen, used, texts),
            group=self._value("group", chosen, lambda cell: read_group(cell.value, "")),
            weight=self._weight(chosen, cells),
            trajectory=self._value("trajectory", chosen, lambda cell: _trajectory(Trajectory.read, cell.value))
            or (None if transcript is None else transcript.trajectory),
            expected_trajectory=self._value(
                "expected_trajectory", chosen, lambda cell: _trajectory(TrajectoryExpectation.read, cell.value)
            ),
            turns=self._value("turns", chosen, lambda cell: _turns(cell.value)) or (),
            state=self._value("state", chosen, lambda cell: storable(unpacked(cell.value))),
        )
        return _of_trial(sample, cells)

    def _text(self, cell: Cell, field: str) -> ReadText:
        value = cell.value
        if self.text_cells and isinstance(value, str):
            value = written_in_cell(value, field, cell.column)
        return read_text(value, field, cell.column)

    def _output(self, text: ReadText | None, messages: tuple[Message, ...], cells: Mapping[str, Any]) -> str | None:
        if text is not None and text.failed:
            return None
        output = _text_or(text, messages, "output")
        if output is None and text is None and self.text_cells and (column := self.columns.column("output", cells)):
            self.columns.became.setdefault(column, "output")
            return ""
        return output

    def _place_turns(self, chosen: dict[str, Cell]) -> None:
        """Ignore a number of turns, and read turns that have roles as messages."""
        cell = chosen["turns"]
        value = self._value("turns", chosen, lambda cell: unpacked(cell.value))
        recorded = is_array(value) and is_conversation(value)
        meant = isinstance(value, list | dict) or _has_brackets(value)
        if not recorded and (meant or "turns" in self.columns.mapping):
            return  # anything but a list is rejected later
        del chosen["turns"]
        if recorded and "messages" not in (*chosen, *self.columns.mapping):
            chosen["messages"] = cell
            self.columns.became.setdefault(cell.column, "messages")

    def _has_context(self, chosen: Mapping[str, Cell]) -> bool:
        return "context" in chosen or "context" in self.columns.mapping

    def _context(self, chosen: Mapping[str, Cell], cells: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The passages of the row, or those of its turns if it has no column for them."""
        if self._has_context(chosen):
            joined = len(self.columns.mapping.get("context", ())) > 1
            return self._value(
                "context", chosen, lambda cell: self._passages(cell.value if joined else [cell.value], cells)
            )
        return next((passages for field in _CONVERSATION_FIELDS if (passages := self._of_turns(field, chosen))), None)

    def _passages(self, values: list[Any], columns: Collection[str]) -> tuple[str, ...]:
        if self._separator is not None:
            values = [
                part
                for value in values
                for part in (value.split(self._separator) if isinstance(value, str) else [value])
            ]
            return tuple(
                passage
                for value in values
                for passage in ((value,) if isinstance(value, str) else passages_in(value))
                if passage.strip()
            )
        for value in values:
            if isinstance(value, str):
                check_not_joined(value, columns)
        return tuple(passage for value in values for passage in passages_in(value))

    def _of_turns(self, field: str, chosen: Mapping[str, Cell]) -> tuple[str, ...]:
        """The passages in the turns of a field."""
        is_json = field == "messages"
        return (
            self._value(field, chosen, lambda cell: turn_passages(unpacked(cell.value) if is_json else cell.value))
            or ()
        )

    def _metadata(
        self,
        cells: Mapping[str, Any],
        chosen: Mapping[str, Cell],
        used: set[str],
        texts: Mapping[str, ReadText | None],
    ) -> dict[str, Any]:
        metadata = self._value("metadata", chosen, lambda cell: read_metadata(cell.value)) or {}
        partly_used = {chosen[field].column for field, text in texts.items() if text is not None and not text.whole}
        if self._has_context(chosen):
            partly_used |= {chosen[field].column for field in _CONVERSATION_FIELDS if self._of_turns(field, chosen)}
        for column, value in cells.items():
            if value is None or (column in used and column not in partly_used):
                continue
            if (other := metadata.get(column)) is not None and other != value and str(other) != str(value):
                raise DataError(
                    f"column {excerpt(column)} is {excerpt(value)}, but metadata has another entry {excerpt(column)}: "
                    f"{excerpt(other)}"
                )
            metadata[column] = value if other is None else other
            if column not in used:
                self.ignored.setdefault(column)
        return {
            key: value if isinstance(value, str) else storable(value)
            for key, value in metadata.items()
            if value is not None
        }

    def _weight(self, chosen: Mapping[str, Cell], cells: Mapping[str, Any]) -> float | None:
        """The weight of the row. Raises DataError if it or that of an earlier row is missing: that must not count as 1.
        A column that is blank in every row has no weights: templates of tables and files of samples may have one."""
        weight = self._value("weight", chosen, lambda cell: read_weight(number_in(cell.value), ""))
        if weight is not None or (column := self.columns.column("weight", cells)) is None:
            self._weighted = self._weighted or weight is not None
        else:
            self._lacks_weight = column
        self._check_weights()
        return weight

    def _check_weights(self) -> None:
        if self._lacks_weight and self._weighted:
            raise DataError(
                absent("weight", f"column {named(self._lacks_weight)!r} has weights, and not one in every row")
            )

    def _value(self, field: str, chosen: Mapping[str, Cell], read: Callable[[Cell], T]) -> T | None:
        """The value of the field's cell; None without a cell. Errors name the column."""
        cell = chosen.get(field)
        if cell is None:
            return None
        try:
            return read(cell)
        except ConfigError as error:
            hint: tuple[Hint, ...] = ()
            own = cell.column == field
            if field == "input" and isinstance(cell.value, list):
                hint = (Hint.of(" (turns of a conversation: ", Setting("map", {"turns": named(cell.column)}), ")"),)
            elif not own and field not in self.columns.mapping:
                hint = (Hint.of(" (to leave the column out: ", Setting("map", {field: ""}), ")"),)
            name = field if own else f"column {named(cell.column)!r}, read as {field},"
            of_field = DataError(f"{name} ", error, hint)
            of_field.field = of_field.field or field
            if self._problems is None:
                raise of_field from None
            self._problems.append(of_field)
            return None


def _is_plain(value: object) -> bool:
    """Whether a value stays what it is in the metadata."""
    return type(value) in _PLAIN_TYPES or (type(value) is float and math.isfinite(value))


def _separator(split: object) -> str | None:
    """The separator of the passages in a context. Raises ConfigError for other fields and for no separator."""
    expected = 'a table with the separator of the context, such as {"context": "|"}'
    if split is None:
        return None
    if not is_mapping(split) or not all(isinstance(each, str) and each for each in split.values()):
        raise ConfigError(invalid(Setting("split"), expected, split))
    if other := next((name for name in split if name != "context"), None):
        raise ConfigError(Setting("split"), f" is for context, whose passages are a list, not for {excerpt(other)}")
    return split.get("context")


def _own(row: SampleRow) -> Sample | None:
    """The sample of a row as evalstone wrote it: its texts are texts, whatever they look like.

    None for a trial, and for a row in which somebody has written something else, which is read like any other.
    """
    if not row.keys() <= _OF_A_SAMPLE:
        return None
    try:
        return sample_of(dict(row))
    except (ValueError, TypeError, AttributeError):  # a ConfigError is a ValueError
        return None


def _of_trial(sample: Sample, cells: Mapping[str, Any]) -> Sample:
    """The sample of a line of `samples.jsonl` with a trial. From the second trial on, the number is part of the id; all
    trials of a sample form a group."""
    trial = cells.get("trial")
    if type(trial) is not int or trial < 1 or cells.get("id") is None or not cells.keys() <= _OF_A_TRIAL:
        return sample
    id = sample.id if trial == 1 else f"{sample.id}-{trial}"
    return replace(sample, id=id, group=sample.id if sample.group is None else sample.group)


def _is_state(value: Any) -> bool:
    return isinstance(value, dict | list) or _has_brackets(value)


def _has_brackets(value: Any) -> bool:
    """Whether a value is text that is meant as a list or an object. Reading it may fail."""
    return isinstance(value, str) and value.lstrip().startswith(("[", "{"))


def _placed(where: str, error: str | Exception) -> DataError:
    return DataError(f"{where}: " if where else "", error)


def _text_or(text: ReadText | None, messages: tuple[Message, ...], field: str) -> str | None:
    return spoken_text(messages, field) if text is None or text.text is None else text.text


def _turn(text: ReadText | None, role: Role) -> tuple[Message, ...]:
    """The messages of a cell, or its text as a single message."""
    if text is None:
        return ()
    if text.messages:
        return text.messages
    return () if text.text is None else (Message(role=role, content=text.text),)


def _given(messages: Iterable[Message]) -> Iterator[Message]:
    """Messages of an input, marked as those that the agent was given."""
    return (message if message.origin else replace(message, origin="request") for message in messages)


def _joined(question: ReadText | None, answer: ReadText | None) -> tuple[Message, ...]:
    """The messages of the input and the output. An answer that is a whole conversation has the question already."""
    asked, said = _turn(question, "user"), _turn(answer, "assistant")
    repeats = len(asked) == 1 and any((each.role, each.content) == (asked[0].role, asked[0].content) for each in said)
    return said if repeats else (*(_given(asked) if said else asked), *said)


def _messages(cell: Cell, texts: Mapping[str, ReadText | None]) -> Conversation:
    """Messages from a list of messages, or from a list of the tool calls between input and output, or of their
    names."""
    value = unpacked(cell.value)
    if normal(cell.column) in _OF_CALLS and is_texts(value) and all(name.strip() for name in value):
        value = [{"name": name} for name in value]
    if not is_array(value):
        raise DataError(of_another_type("a list of messages", value))
    if is_conversation(value) or not is_calls(value):
        return conversation_in(value)
    output = texts["output"]
    answer = "" if output is None or output.text is None else output.text
    calling = Message(role="assistant", content=answer, tool_calls=[*map(read_call, value)])
    return Conversation([*_turn(texts["input"], "user"), calling])


def _turns(value: Any) -> list[Sample]:
    """Turns from a list of texts or rows."""
    items: object = unpacked(value)
    if not is_array(items):
        raise DataError(of_another_type("a list of turns", items))
    turns: list[Sample] = []
    for number, item in enumerate(items, start=1):
        row: Any = {"input": item} if isinstance(item, str) else item
        if not is_object(row):
            raise DataError(invalid(f"item {number}", "a text or an object with an input", item))
        turns.append(RowReader().read({"id": number, **row}, f"item {number}"))
    return turns


def _trajectory(read: Callable[[Any], T], value: Any) -> T:
    """A trajectory, or an expected one, from an object, a list, or a JSON text of either."""
    try:
        return read(unpacked(value))
    except ConfigError as error:
        raise DataError("cannot be read: ", error) from None
