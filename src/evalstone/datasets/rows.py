"""Conversion of rows to samples: cells are read as text, passages, ids, metadata, messages or trajectories.

Functions that read a cell take plain data (see `native`). Their DataErrors continue a message that starts with the
column's name: `must be text, not int: 42`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

from evalstone._core.display import excerpt, named, shortlist
from evalstone._core.json import finite
from evalstone._core.literals import written_list, written_value
from evalstone._core.terms import term
from evalstone.agents.formats.messages import (
    is_calls,
    is_conversation,
    is_parts,
    read_call,
    read_messages,
    read_parts,
)
from evalstone.agents.formats.records import is_telemetry
from evalstone.agents.formats.values import normal
from evalstone.agents.messages import answer_text, last_text
from evalstone.agents.transcripts import Transcript, format_of, read_transcript
from evalstone.datasets.columns import MEANINGFUL, Cell, ColumnMapping, Columns, alpaca, inner_names
from evalstone.datasets.written import is_ground_truth, written_in_cell, written_in_text
from evalstone.errors import ConfigError, DataError
from evalstone.types import FIELD_ROLES, SAMPLE_FIELDS, Message, Role, Sample, Trajectory, TrajectoryExpectation

T = TypeVar("T")
_CONVERSATION_FIELDS = ("messages", "input", "output")
_TEXT_FIELDS = ("input", "output", "reference", "instructions")
_PASSAGE_NAMES = ("text", "pagecontent", "content", "chunk", "passage", "passagetext", "contexts")
_CONVERSATION_PARTS = ("systemmessages", "inputmessages", "messages")
_BESIDE = ("rememberedmessages", "taggedsystemmessages")
_OF_A_TRIAL = frozenset(("id", "trial", *SAMPLE_FIELDS))
_OF_TRACES = ("resourceSpans", "resourceLogs", "attributes")
_MISSING_TYPES = ("NAType", "NaTType")


def sample_from(row: Mapping[str, Any], *, mapping: ColumnMapping | None = None, where: str = "") -> Sample:
    """Convert a row to a sample.

    Args:
        row: Values by column.
        mapping: Sample field to column. It takes precedence over the known names. `a.b` is entry b of the object in
            column a. An empty column name leaves the field out. `context` may name several columns, whose passages are
            joined.
        where: The row's position, for error messages.

    Raises:
        DataError: No column is recognized, a mapped column is missing, or a value has the wrong type.
        ConfigError: The mapping has an unknown field.
    """
    reader = RowReader(mapping)
    sample = reader.read(row, where)
    try:
        reader.columns.check()
    except DataError as error:
        raise _placed(where, error) from None
    return sample


class ReadText(NamedTuple):
    """The text of a cell (None if it has none), and the messages if it is a conversation.

    whole: Whether the cell contains nothing else; otherwise, it is also kept in the metadata.
    """

    text: str | None
    messages: tuple[Message, ...] = ()
    whole: bool = True


class RowReader:
    """Reads rows one by one, and records which columns became which fields.

    Args:
        mapping: As for `sample_from`.
        text_cells: Whether every cell is a text, as in CSV. Then a missing cell is a blank one, which is a blank answer
            in a column of the output, and a text may be a list or an object that was written out.
    """

    def __init__(self, mapping: ColumnMapping | None = None, *, text_cells: bool = False) -> None:
        self.columns = Columns(mapping)
        self.text_cells = text_cells
        self.ignored: dict[str, None] = {}
        """The columns that went to the metadata, as an ordered set."""

    def read(self, row: object, where: str = "") -> Sample:
        """Convert a row to a sample. Raises DataError, prefixed with the row's position."""
        try:
            if not isinstance(row, Mapping):
                raise DataError(f"a row must be an object, not {type(row).__name__}: {excerpt(row)}")
            if not row.keys().isdisjoint(_OF_TRACES) and is_telemetry(row):
                raise _placed(where, "a trace among samples; keep them in files of their own")
            return self._sample(cast("Mapping[Any, Any]", row))
        except RecursionError:
            raise _placed(where, "nested too deeply") from None
        except ConfigError as error:
            raise _placed(where, error) from None

    def _sample(self, row: Mapping[Any, Any]) -> Sample:
        cells = {str(column): value if isinstance(value, str) else native(value) for column, value in row.items()}
        chosen = self.columns.choose(cells)
        if "state" in chosen and "state" not in self.columns.mapping and not _is_state(chosen["state"].value):
            self.columns.became.pop(chosen.pop("state").column, None)  # such as a US state, or the state of an order
        if "turns" in chosen:
            self._place_turns(chosen)
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
        transcript = self._value("messages", chosen, lambda cell: _transcript(unpacked(cell.value)))
        if transcript is not None:
            messages = transcript.messages
            if texts["output"] is None:
                texts["output"] = ReadText(transcript.output)
        elif "messages" in chosen:
            messages = self._value("messages", chosen, lambda cell: _messages(cell.value, texts)) or ()
        elif any(turn is not None and turn.messages for turn in (texts["input"], texts["output"])):
            messages = _joined(texts["input"], texts["output"])
        else:
            messages = ()
        reference, context = texts["reference"], self._context(chosen)
        sample = Sample(
            id=self._value("id", chosen, lambda cell: read_id(cell.value)) or "",
            input=_text_or(texts["input"], messages, "input"),
            output=self._output(texts["output"], messages, cells),
            context=transcript.context if context is None and transcript is not None else context,
            reference=None if reference is None else reference.text,
            messages=messages,
            instructions=_text_or(texts["instructions"], messages, "instructions"),
            metadata=self._metadata(cells, chosen, used, texts),
            trajectory=self._value("trajectory", chosen, lambda cell: _trajectory(Trajectory.read, cell.value)),
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
        output = _text_or(text, messages, "output")
        if output is None and text is None and self.text_cells and (column := self.columns.column("output", cells)):
            self.columns.became.setdefault(column, "output")
            return ""
        return output

    def _place_turns(self, chosen: dict[str, Cell]) -> None:
        """Ignore a number of turns, and read turns that have roles as messages."""
        cell = chosen["turns"]
        value = self._value("turns", chosen, lambda cell: unpacked(cell.value))
        recorded = isinstance(value, list) and is_conversation(cast("list[Any]", value))
        meant = isinstance(value, list | dict) or _has_brackets(value)
        if not recorded and (meant or "turns" in self.columns.mapping):
            return  # anything but a list is rejected later
        del chosen["turns"]
        self.columns.became.pop(cell.column, None)
        if recorded and "messages" not in (*chosen, *self.columns.mapping):
            chosen["messages"] = cell
            self.columns.became[cell.column] = "messages"

    def _has_context(self, chosen: Mapping[str, Cell]) -> bool:
        return "context" in chosen or "context" in self.columns.mapping

    def _context(self, chosen: Mapping[str, Cell]) -> tuple[str, ...] | None:
        """The passages of the row, or those of its turns if it has no column for them."""
        if self._has_context(chosen):
            joined = len(self.columns.mapping.get("context", ())) > 1
            return self._value("context", chosen, lambda cell: self._passages(cell.value if joined else [cell.value]))
        return next((passages for field in _CONVERSATION_FIELDS if (passages := self._of_turns(field, chosen))), None)

    def _passages(self, values: list[Any]) -> tuple[str, ...]:
        return tuple(passage for value in values for passage in read_passages(value))

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
            name = _metadata_name(column, cells)
            if (value is None and name != "weight") or (column in used and column not in partly_used):
                continue
            entry = number_in(value) if name == "weight" else value
            if (other := metadata.get(name)) is not None and other != entry and str(other) != str(entry):
                where = f"metadata has another entry {excerpt(name)}" if name == column else f"there is another {name}"
                raise DataError(f"column {excerpt(column)} is {excerpt(entry)}, but {where}: {excerpt(other)}")
            metadata[name] = entry if other is None else other
            if column not in used:
                self.ignored.setdefault(column)
        return {
            key: value if isinstance(value, str) else storable(value)
            for key, value in metadata.items()
            if value is not None or key == "weight"  # the sample rejects it: a missing weight must not count as 1
        }

    def _value(self, field: str, chosen: Mapping[str, Cell], read: Callable[[Cell], T]) -> T | None:
        """The value of the field's cell; None without a cell. Errors name the column."""
        cell = chosen.get(field)
        if cell is None:
            return None
        try:
            return read(cell)
        except ConfigError as error:
            hint, own = "", cell.column == field
            if field == "input" and isinstance(cell.value, list):
                hint = f" (turns of a conversation: {term('mapping', {'turns': named(cell.column)})})"
            elif not own and field not in self.columns.mapping:
                hint = f" (to leave the column out: {term('mapping', {field: ''})})"
            name = field if own else f"column {named(cell.column)!r}, read as {field},"
            raise DataError(f"{name} {error}{hint}") from None


def _of_trial(sample: Sample, cells: Mapping[str, Any]) -> Sample:
    """The sample of a line of `samples.jsonl` with a trial. From the second trial on, the number is part of the id; all
    trials of a sample form a group."""
    trial = cells.get("trial")
    if type(trial) is not int or trial < 1 or cells.get("id") is None or not cells.keys() <= _OF_A_TRIAL:
        return sample
    id = sample.id if trial == 1 else f"{sample.id}-{trial}"
    return replace(sample, id=id, metadata={"group": sample.id, **sample.metadata})


def _is_state(value: Any) -> bool:
    return isinstance(value, dict | list) or _has_brackets(value)


def _has_brackets(value: Any) -> bool:
    """Whether a value is text that is meant as a list or an object. Reading it may fail."""
    return isinstance(value, str) and value.lstrip().startswith(("[", "{"))


def _metadata_name(column: str, columns: Collection[str]) -> str:
    """The column's name. Other spellings of `group` and `weight` are normalized, unless these are columns too."""
    name = normal(column)
    return name if name in MEANINGFUL and name not in columns else column


def _placed(where: str, error: object) -> DataError:
    return DataError(f"{where}: {error}" if where else str(error))


def _text_or(text: ReadText | None, messages: tuple[Message, ...], field: str) -> str | None:
    return _spoken(messages, field) if text is None or text.text is None else text.text


def _spoken(messages: Sequence[Message], field: str) -> str | None:
    """The text of a field in a conversation. The output is the answer to the last user message."""
    return answer_text(messages) if field == "output" else last_text(messages, FIELD_ROLES.get(field, "assistant"))


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


def _messages(value: Any, texts: Mapping[str, ReadText | None]) -> tuple[Message, ...]:
    """Messages from a list of messages, or from a list of the tool calls between input and output."""
    value = unpacked(value)
    if not isinstance(value, list):
        raise DataError(f"must be a list of messages, not {type(value).__name__}: {excerpt(value)}")
    items = cast("list[Any]", value)
    if is_conversation(items) or not is_calls(items):
        return read_messages(items)
    output = texts["output"]
    answer = "" if output is None or output.text is None else output.text
    return (
        *_turn(texts["input"], "user"),
        Message(role="assistant", content=answer, tool_calls=[*map(read_call, items)]),
    )


def _transcript(value: Any) -> Transcript | None:
    """A transcript in a cell: an object or a list of a known format. None for a list of messages, parts or tool calls,
    which a row may complete, and for anything else."""
    if not isinstance(value, dict | list) or format_of(value, of_lists=isinstance(value, dict)) is None:
        return None
    return read_transcript(cast(object, value))


def _turns(value: Any) -> list[Sample]:
    """Turns from a list of texts or rows."""
    items: object = unpacked(value)
    if not isinstance(items, list):
        raise DataError(f"must be a list of turns, not {type(items).__name__}: {excerpt(items)}")
    turns: list[Sample] = []
    for number, item in enumerate(cast("list[Any]", items), start=1):
        row: Any = {"input": item} if isinstance(item, str) else item
        if not isinstance(row, dict):
            raise DataError(f"item {number} must be a text or an object with an input, not {excerpt(item)}")
        turns.append(RowReader().read({"id": number, **cast("dict[str, Any]", row)}, f"item {number}"))
    return turns


def _trajectory(read: Callable[[Any], T], value: Any) -> T:
    """A trajectory, or an expected one, from an object, a list, or a JSON text of either."""
    try:
        return read(unpacked(value))
    except ConfigError as error:
        raise DataError(f"cannot be read: {error}") from None


def native(value: Any) -> Any:
    """A cell as plain objects and lists. Arrays become lists, NaN, NA and NaT become None, and infinity becomes text,
    because JSON has no such numbers."""
    if value is None or isinstance(value, (str, int, Message)):
        return value
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, list):
        return [native(item) for item in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        return {str(key): native(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, bytes | bytearray):
        return value
    if isinstance(value, Sequence):
        return [native(item) for item in cast("Sequence[Any]", value)]
    if type(value).__name__ in _MISSING_TYPES:
        return None
    return native(value.tolist()) if callable(getattr(value, "tolist", None)) else value


def storable(value: Any) -> Any:
    """A native value as JSON data, stable across processes. Values without a JSON form become their type's name."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, dict):
        return {key: storable(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [storable(item) for item in cast("list[Any]", value)]
    if isinstance(value, Set):
        return sorted(str(item) for item in cast("Set[Any]", value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID | PurePath):
        return str(value)
    return f"<{type(value).__name__}>"


def unpacked(value: Any) -> Any:
    """The value of a text that is a list or an object, as by `written_value`; any other value unchanged."""
    return written_value(value) if isinstance(value, str) else value


def scalar_text(value: Any) -> str | None:
    """A text, number or boolean as text, numbers and booleans as in JSON (42.0 as `42`); None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, Decimal | UUID | datetime | date | time):
        return cast(str, storable(value))
    return value if isinstance(value, str) else None


def number_in(value: Any) -> Any:
    """The value of a numeric text; any other value unchanged."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def read_id(value: Any) -> str:
    """An id as text. Integers are converted."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int | UUID):
        raise DataError(f"must be text or a whole number, not {type(value).__name__}: {excerpt(value)}")
    return str(value)


def read_metadata(value: Any) -> dict[str, Any]:
    """Metadata from an object, or from a text that is a JSON object."""
    entries = unpacked(value)
    if not isinstance(entries, dict):
        raise DataError(f"must be an object, not {type(entries).__name__}: {excerpt(entries)}")
    return cast("dict[str, Any]", entries)


def read_passages(value: Any) -> tuple[str, ...]:
    """Passages in order, without blank ones.

    A passage is a text, or an object with the text under `text`, `page_content`, `content` or `chunk`. A text is the
    list or object that it writes out, or else one passage (see `written_list`).
    """
    if isinstance(value, str):
        value = written_list(value)
    return tuple(passage for passage in _passages(value) if passage.strip())


def _passages(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        items = enumerate(cast("list[Any]", value), start=1)
        return [_passage(item, number) for number, item in items if item is not None]
    titled = _titled(value)
    if titled is not None:
        return titled
    inner = _inner_passage(value)
    if inner is not None:
        return _passages(inner)
    raise DataError(f"must be a list of passages, not {type(value).__name__}: {excerpt(value)}")


def _passage(item: Any, number: int) -> str:
    text = item if isinstance(item, str) else _inner_passage(item)
    if isinstance(text, str):
        return text
    expected = "text or an object with text, page_content, content or chunk"
    raise DataError(f"must be a list of passages; passage {number} must be {expected}, not {excerpt(item)}")


def _inner_passage(item: Any) -> Any:
    """The value of an object under the first of the names of a passage's text; None for anything else."""
    if not isinstance(item, dict):
        return None
    by_name = {normal(key): value for key, value in cast("dict[str, Any]", item).items()}
    return next((by_name[name] for name in _PASSAGE_NAMES if by_name.get(name) is not None), None)


def _titled(value: Any) -> list[str] | None:
    """One passage per title from HotpotQA's format, {"title": […], "sentences": [[…], …]}; None for anything else.

    A title without sentences gives a blank passage.
    """
    entries = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    titles, texts = entries.get("title"), entries.get("sentences")
    if not isinstance(titles, list) or not isinstance(texts, list):
        return None
    titles, texts = cast("list[Any]", titles), cast("list[Any]", texts)
    if len(titles) != len(texts):
        raise DataError(f"must have sentences for every title; it has {len(titles)} titles and {len(texts)} lists")
    joined = [" ".join(text.strip() for text in _passages(sentences)) for sentences in texts]
    return [f"{title}: {text}" if text else "" for title, text in zip(titles, joined, strict=True)]


def turn_passages(value: Any) -> tuple[str, ...]:
    """The passages in the `retrieval_context` of a conversation's turns (deepeval), without duplicates."""
    turns = cast("list[Any]", value) if isinstance(value, list) else []
    items = [cast("dict[str, Any]", turn) for turn in turns if isinstance(turn, dict)]
    lists = [item[key] for item in items for key in item if normal(key) == "retrievalcontext" and item[key] is not None]
    return tuple(dict.fromkeys(passage for passages in lists for passage in read_passages(passages)))


def read_text(value: Any, field: str, column: str) -> ReadText:
    """The text of a field.

    Args:
        value: A text. A conversation, also written as text: its last user message is the input, its system messages are
            the instructions, and its last assistant message is any other field. An object with one of these under a
            name of the field. For a reference, also a list of alternatives, of which the first is used, or of
            `expected_facts`, which are joined; in a column for lists, such as `ground_truths`, also written as text. A
            `ground_truth` that is an object or a list is JSON.
        field: The sample field.
        column: The column or dotted path of the value.
    """
    value = written_in_text(value, field, column) if isinstance(value, str) else value
    if (text := scalar_text(value)) is not None:
        return ReadText(text)
    if is_ground_truth(field, column):
        return ReadText(_ground_truth(value))
    if isinstance(value, list):
        return _text_in_list(cast("list[Any]", value), field, column)
    if isinstance(value, dict):
        return _text_in_object(cast("dict[str, Any]", value), field, column)
    raise DataError(f"must be text, not {type(value).__name__}: {excerpt(value)}")


def _ground_truth(value: Any) -> str | None:
    """A ground truth that isn't text, as JSON: all of it is expected. A list of one text is that text."""
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not items:
        return None
    text = scalar_text(items[0]) if len(items) == 1 else None
    return json.dumps(storable(value), ensure_ascii=False) if text is None else text


def _text_in_list(items: list[Any], field: str, column: str) -> ReadText:
    speaker = FIELD_ROLES.get(field, "assistant")
    if not items:
        return ReadText(None)
    if is_conversation(items):
        messages = read_messages(items)
        return ReadText(_spoken(messages, field), messages)
    if field == "reference":
        texts = [text for item in items if item is not None and (text := read_text(item, field, column).text)]
        texts = [text for text in texts if text.strip()]
        if normal(column.rpartition(".")[2]) == "expectedfacts":
            return ReadText("\n".join(texts) or None)
        return ReadText(texts[0] if texts else None, whole=len(set(texts)) <= 1)
    if is_parts(items):
        messages = read_parts(items, speaker)
        return ReadText(_spoken(messages, field), messages)
    if field in ("input", "output") and (transcript := _transcript(items)) is not None:
        return _text_of(transcript, field)
    raise DataError(f"must be text, not list: {excerpt(items)}")


def _text_in_object(value: dict[str, Any], field: str, column: str) -> ReadText:
    keys = {normal(key): key for key, item in value.items() if item is not None}
    if "role" in keys and not value.keys().isdisjoint(("content", "tool_calls")) and is_conversation([value]):
        messages = read_messages([value])
        return ReadText(_spoken(messages, field), messages)
    if field in ("input", "output"):
        items = _conversation_in(value, keys)
        remembered = _read_remembered(value, keys)
        if not items and not remembered and (transcript := _transcript(value)) is not None:
            return _text_of(transcript, field)
        if items or remembered:
            messages, told = read_messages(items), keys.keys() <= {*_CONVERSATION_PARTS, *_BESIDE}
            history = tuple(replace(message, tool_calls=()) for message in remembered)
            system = sum(1 for _ in itertools.takewhile(lambda message: message.role == "system", messages))
            whole = (*messages[:system], *filter(_is_read, history), *messages[system:])
            text = _spoken(messages, field)
            if text is None and remembered:
                text = ""  # what was asked in an earlier run is not the input of this one
            return ReadText(text, whole, whole=told and history == remembered)
    for name in inner_names(field):
        if name in keys:
            inner = read_text(value[keys[name]], field, f"{column}.{keys[name]}")
            return inner._replace(whole=inner.whole and len(value) == 1)
    if field == "output" and any(normal(key) in inner_names(field) for key in value):
        return ReadText("", whole=len(value) == 1)  # its text is null
    if "parts" in value and value.keys() <= {"parts", "role"}:  # Gemini's
        speaker = FIELD_ROLES.get(field, "assistant")
        messages = read_messages([{"role": speaker, "parts": value["parts"]}])
        return ReadText(_spoken(messages, field), messages, whole=False)
    if normal(column) == "expectations" or not keys:
        return ReadText(None, whole=not keys)
    texts = [scalar_text(item) for item in value.values() if item is not None]
    if field != "input" and len(texts) == 1 and texts[0] is not None:
        return ReadText(texts[0], whole=False)
    if None not in texts:
        return ReadText(json.dumps(storable(value), ensure_ascii=False))
    readable = [key for key in keys.values() if _is_readable(value[key], field)]
    choice = f"; choose one of these with {term('mapping', {field: f'{column}.{readable[0]}'})}" if readable else ""
    raise DataError(f"must be text or have it under a name of {field}, not an object with {shortlist(value)}{choice}")


def _read_remembered(value: dict[str, Any], keys: Mapping[str, str]) -> tuple[Message, ...]:
    """The messages of earlier runs in the input of a Mastra run. Their tool calls are not calls of this run."""
    items: Any = value[keys["rememberedmessages"]] if "rememberedmessages" in keys else None
    return read_messages(_remembered(cast("list[Any]", items))) if isinstance(items, list) and items else ()


def _is_read(message: Message) -> bool:
    return bool(message.content.strip() or message.reasoning or message.attachments)


def _is_readable(value: Any, field: str) -> bool:
    try:
        return read_text(value, field, "").text is not None
    except DataError:
        return False


def _remembered(items: list[Any]) -> list[Any]:
    """Messages marked as those of an agent's memory."""
    return [{**cast("dict[str, Any]", item), "origin": "memory"} if isinstance(item, dict) else item for item in items]


def _text_of(transcript: Transcript, field: str) -> ReadText:
    """The text of a field in a transcript, which has more than the sample does, such as tokens."""
    text = transcript.output if field == "output" else _spoken(transcript.messages, field)
    return ReadText(text, transcript.messages, whole=False)


def _conversation_in(value: dict[str, Any], keys: Mapping[str, str]) -> list[Any]:
    """The messages in an object such as a Mastra run or an OpenAI completion; empty for others."""
    if "inputmessages" in keys or "messages" in keys:
        lists = [value[keys[name]] for name in _CONVERSATION_PARTS if name in keys]
        tagged: Any = value[keys["taggedsystemmessages"]] if "taggedsystemmessages" in keys else {}
        lists += list(cast("dict[str, Any]", tagged).values()) if isinstance(tagged, dict) else []
        return [item for items in lists if isinstance(items, list) for item in cast("list[Any]", items)]
    choices: Any = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict) and "message" in choices[0]:
        return [cast("dict[str, Any]", choices[0])["message"]]
    return []
