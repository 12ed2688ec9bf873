"""Rows as samples: what is said in each column, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from evalstone.agents.messages import last_text
from evalstone.datasets.columns import Cell, Columns, alpaca
from evalstone.datasets.conversation import is_conversation, read_messages
from evalstone.datasets.tool_calls import is_calls, read_call
from evalstone.datasets.values import (
    Said,
    native,
    read_id,
    read_metadata,
    read_passages,
    read_text,
    storable,
    turn_passages,
    unpacked,
)
from evalstone.datasets.wording import excerpt, named
from evalstone.errors import ConfigError, DataError
from evalstone.types import Message, Role, Sample, Trajectory, TrajectoryExpectation

T = TypeVar("T")
_TALKS = ("messages", "input", "output")
_TEXTS = ("input", "output", "reference", "instructions")


def sample_from(row: Mapping[str, Any], *, mapping: Mapping[str, str] | None = None, where: str = "") -> Sample:
    """One row as a sample.

    mapping: sample field -> column, over the names that are understood anyway; `a.b` is entry b of the object in
    column a, and an empty column leaves the field out. where: the row's place, for error messages. Raises DataError
    when no column is understood, a mapped column is absent, or a value has the wrong type; ConfigError for an unknown
    field in the mapping.
    """
    reader = RowReader(mapping)
    sample = reader.read(row, where)
    try:
        reader.columns.check()
    except DataError as error:
        raise _placed(where, error) from None
    return sample


class RowReader:
    """Reads rows one by one, and remembers what their columns became.

    cells: that the rows are a table's, whose cells may hold JSON lists. ignored: the columns that went to the
    metadata, as an ordered set.
    """

    def __init__(self, mapping: Mapping[str, str] | None = None, *, cells: bool = False) -> None:
        self.columns = Columns(mapping)
        self.cells = cells
        self.ignored: dict[str, None] = {}

    def read(self, row: object, where: str = "") -> Sample:
        """One row as a sample. Raises DataError that begins with the row's place."""
        try:
            if not isinstance(row, Mapping):
                raise DataError(f"a row must be an object, not {type(row).__name__}: {excerpt(row)}")
            return self._sample(cast("Mapping[Any, Any]", row))
        except RecursionError:
            raise _placed(where, "nested too deeply") from None
        except ConfigError as error:
            raise _placed(where, error) from None

    def _sample(self, row: Mapping[Any, Any]) -> Sample:
        cells = {str(column): value if isinstance(value, str) else native(value) for column, value in row.items()}
        taken = self.columns.take(cells)
        said = {field: self._text(field, taken) if field in taken else None for field in _TEXTS}
        used = {cell.column for cell in taken.values()}
        instruction = alpaca(taken, cells, self.columns.mapping)
        if instruction is not None:
            said["input"] = _together(instruction.value, taken["input"].value)
            self.columns.became.setdefault(instruction.column, "input")
            used.add(instruction.column)
        messages = self._messages(taken, said)
        return Sample(
            id=self._value("id", taken, lambda cell: read_id(cell.value)) or "",
            input=_said_or(said["input"], messages, "user"),
            output=_said_or(said["output"], messages, "assistant"),
            context=self._context(taken),
            reference=None if said["reference"] is None else said["reference"].text,
            messages=messages,
            instructions=_said_or(said["instructions"], messages, "system"),
            metadata=self._metadata(cells, taken, used, said),
            trajectory=self._value("trajectory", taken, lambda cell: _steps(Trajectory.read, cell.value)),
            expected_trajectory=self._value(
                "expected_trajectory", taken, lambda cell: _steps(TrajectoryExpectation.read, cell.value)
            ),
        )

    def _text(self, field: str, taken: Mapping[str, Cell]) -> Said | None:
        return self._value(field, taken, lambda cell: read_text(cell.value, field, cell.column))

    def _messages(self, taken: Mapping[str, Cell], said: Mapping[str, Said | None]) -> tuple[Message, ...]:
        if "messages" in taken:
            messages = self._value("messages", taken, lambda cell: _conversation(cell.value, said))
            return messages or ()
        turns = (said["input"], said["output"])
        if not any(turn is not None and turn.messages for turn in turns):
            return ()
        return (*_spoken(turns[0], "user"), *_spoken(turns[1], "assistant"))

    def _context(self, taken: Mapping[str, Cell]) -> tuple[str, ...] | None:
        """The passages of the row; without any, and unless they are left out, those of its turns."""
        if self._context_is_said(taken):
            return self._value("context", taken, lambda cell: read_passages(cell.value, cell=self.cells))
        return next((passages for field in _TALKS if (passages := self._carried(field, taken))), None)

    def _context_is_said(self, taken: Mapping[str, Cell]) -> bool:
        return "context" in taken or "context" in self.columns.mapping

    def _carried(self, field: str, taken: Mapping[str, Cell]) -> tuple[str, ...]:
        """The passages that the turns in a field carry."""
        packed = field == "messages"
        return (
            self._value(field, taken, lambda cell: turn_passages(unpacked(cell.value) if packed else cell.value)) or ()
        )

    def _metadata(
        self, cells: Mapping[str, Any], taken: Mapping[str, Cell], used: set[str], said: Mapping[str, Said | None]
    ) -> dict[str, Any]:
        metadata = self._value("metadata", taken, lambda cell: read_metadata(cell.value)) or {}
        kept = {taken[field].column for field, item in said.items() if item is not None and not item.whole}
        if self._context_is_said(taken):
            kept |= {taken[field].column for field in _TALKS if self._carried(field, taken)}
        for column, value in cells.items():
            if value is None or (column in used and column not in kept):
                continue
            metadata[column] = value
            if column not in used:
                self.ignored.setdefault(column)
        return {
            key: value if isinstance(value, str) else storable(value)
            for key, value in metadata.items()
            if value is not None
        }

    def _value(self, field: str, taken: Mapping[str, Cell], read: Callable[[Cell], T]) -> T | None:
        """What the field's cell holds, None when it has none; errors name the column."""
        cell = taken.get(field)
        if cell is None:
            return None
        try:
            return read(cell)
        except ConfigError as error:
            if cell.column == field:
                raise DataError(f"{field} {error}") from None
            leave = "" if field in self.columns.mapping else f" (to leave the column out: --map {field}=)"
            raise DataError(f"column {named(cell.column)!r}, read as {field}, {error}{leave}") from None


def _steps(read: Callable[[Any], T], value: Any) -> T:
    """A trajectory, or what is expected of one, from an object, a list, or a text that holds one as JSON."""
    try:
        return read(unpacked(value))
    except ConfigError as error:
        raise DataError(f"cannot be read: {error}") from None


def _placed(where: str, error: object) -> DataError:
    return DataError(f"{where}: {error}" if where else str(error))


def _together(instruction: str, material: str) -> Said:
    return Said(f"{instruction}\n\n{material}" if material.strip() else instruction)


def _said_or(said: Said | None, messages: tuple[Message, ...], role: Role) -> str | None:
    return last_text(messages, role) if said is None or said.text is None else said.text


def _spoken(said: Said | None, role: Role, **more: Any) -> tuple[Message, ...]:
    if said is None:
        return ()
    if said.messages:
        return said.messages
    return () if said.text is None else (Message(role=role, content=said.text),)


def _conversation(value: Any, said: Mapping[str, Said | None]) -> tuple[Message, ...]:
    """Messages from a list of them, or from a list of tool calls that were made between input and output."""
    value = unpacked(value)
    if not isinstance(value, list):
        raise DataError(f"must be a list of messages, not {type(value).__name__}: {excerpt(value)}")
    items = cast("list[Any]", value)
    if is_conversation(items) or not is_calls(items):
        return read_messages(items)
    output = said["output"]
    answer = "" if output is None or output.text is None else output.text
    return (
        *_spoken(said["input"], "user"),
        Message(role="assistant", content=answer, tool_calls=[*map(read_call, items)]),
    )
