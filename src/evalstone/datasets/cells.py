"""The values of cells: texts, passages, IDs, metadata, and lists written as text.

The readers raise DataError. Its message continues the name of the field: `must be text, not int: 42`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any, NamedTuple, cast
from uuid import UUID

from evalstone._core.display import shortlist
from evalstone._core.front_ends import Hint, Setting
from evalstone._core.guards import is_array, is_mapping, is_object
from evalstone._core.json import finite
from evalstone._core.literals import written_value
from evalstone._core.names import normal
from evalstone.agents.formats.messages import (
    is_conversation,
    is_parts,
    read_messages,
    read_parts,
)
from evalstone.agents.messages import answer_text, last_text
from evalstone.agents.transcripts import Transcript, format_of, read_transcript
from evalstone.datasets.columns import inner_names
from evalstone.datasets.written import is_ground_truth, written_in_text
from evalstone.errors import DataError, of_another_type
from evalstone.types import FIELD_ROLES, Message
from evalstone.types.documents import read_passages

_CONVERSATION_PARTS = ("systemmessages", "inputmessages", "messages")
_BESIDE = ("rememberedmessages", "taggedsystemmessages")
_MISSING_TYPES = ("NAType", "NaTType")
_TIMES = ("m", "M")
"""The kinds of numpy that become numbers of nanoseconds, if they aren't converted before."""
_STORABLE = frozenset((str, int, bool, type(None)))
"""The types of values that are JSON data, whatever they are."""
_MOST_DIGITS = 300
"""Of a decimal that is read digit by digit."""


class ReadText(NamedTuple):
    """The text of a cell (None if it has none), and the messages if it is a conversation.

    whole: Whether the cell contains nothing else; otherwise, it is also kept in the metadata.
    failed: Whether it is a run that failed, whose messages have no answer.
    """

    text: str | None
    messages: tuple[Message, ...] = ()
    whole: bool = True
    failed: bool = False


def transcript_in(value: Any) -> Transcript | None:
    """A transcript in a cell: an object or a list of a known format. None for a list of messages, parts or tool calls,
    which a row may complete, and for anything else."""
    if not isinstance(value, dict | list) or format_of(value, of_lists=isinstance(value, dict)) is None:
        return None
    return read_transcript(cast(object, value))


def spoken_text(messages: Sequence[Message], field: str) -> str | None:
    """The text of a field in a conversation. The output is the answer to the last user message."""
    return answer_text(messages) if field == "output" else last_text(messages, FIELD_ROLES.get(field, "assistant"))


def native(value: Any) -> Any:
    """A cell as plain objects and lists. Arrays become lists and decimals the numbers of JSON. NaN, NA and NaT become
    None, and infinity becomes text, because JSON has no such numbers."""
    if value is None or isinstance(value, (str, int, Message)):
        return value
    if isinstance(value, float):
        return finite(value)
    if is_array(value):
        return [native(item) for item in value]
    if is_mapping(value):
        return {str(key): native(item) for key, item in value.items()}
    if isinstance(value, bytes | bytearray):
        return value
    if isinstance(value, Sequence):
        return [native(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, Decimal):
        return _number(value)
    if type(value).__name__ in _MISSING_TYPES:
        return None
    if callable(getattr(value, "tolist", None)):
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        return native((value.astype(f"{kind}8[us]") if kind in _TIMES else value).tolist())
    return value


def _number(value: Decimal) -> int | float | str | None:
    """A decimal as a number of JSON, as Spark writes it: 42.00 as 42. As text if a float has too few digits for it."""
    if value.is_nan():
        return None
    if not value.is_finite() or abs(value.adjusted()) > _MOST_DIGITS:
        return finite(float(value))
    whole = value.to_integral_value()
    if whole == value:
        return int(whole)
    number = float(value)
    return number if Decimal(str(number)) == value else f"{value:f}".rstrip("0")


def storable(value: Any) -> Any:
    """A native value as JSON data, stable across processes. Values without a JSON form become their type's name."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return finite(value)
    if is_object(value):
        return {key: item if type(item) in _STORABLE else storable(item) for key, item in value.items()}
    if is_array(value):
        return [item if type(item) in _STORABLE else storable(item) for item in value]
    if isinstance(value, Set):
        return sorted(str(item) for item in cast("Set[Any]", value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(timedelta(value.days, value.seconds, value.microseconds))  # pandas has another text
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
    if isinstance(value, Decimal | UUID | datetime | date | time | timedelta):
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
        raise DataError(of_another_type("text or a whole number", value))
    return str(value)


def read_metadata(value: Any) -> dict[str, Any]:
    """Metadata from an object, or from a text that is a JSON object."""
    entries = unpacked(value)
    if not is_object(entries):
        raise DataError(of_another_type("an object", entries))
    return entries


def passages_in(value: Any) -> tuple[str, ...]:
    """Passages in order, without blank ones, as by `read_passages`."""
    return tuple(passage for passage in read_passages(value) if passage is not None and passage.strip())


def turn_passages(value: Any) -> tuple[str, ...]:
    """The passages in the `retrieval_context` of a conversation's turns (deepeval), without duplicates."""
    turns = value if is_array(value) else []
    items = [turn for turn in turns if is_object(turn)]
    lists = [item[key] for item in items for key in item if normal(key) == "retrievalcontext" and item[key] is not None]
    return tuple(dict.fromkeys(passage for passages in lists for passage in passages_in(passages)))


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
    if is_array(value):
        return _text_in_list(value, field, column)
    if is_object(value):
        return _text_in_object(value, field, column)
    raise DataError(of_another_type("text", value))


def _ground_truth(value: Any) -> str | None:
    """A ground truth that isn't text, as JSON: all of it is expected. A list of one text is that text."""
    items = value if is_array(value) else [value]
    if not items:
        return None
    text = scalar_text(items[0]) if len(items) == 1 else None
    return json.dumps(storable(value), ensure_ascii=False) if text is None else text


def _text_in_list(items: list[Any], field: str, column: str) -> ReadText:
    speaker = FIELD_ROLES.get(field, "assistant")
    if not items:
        return ReadText(None)
    if field in ("input", "output") and (transcript := transcript_in(items)) is not None:
        return _text_of(transcript, field)
    if is_conversation(items):
        messages = read_messages(items)
        return ReadText(spoken_text(messages, field), messages)
    if field == "reference":
        texts = [text for item in items if item is not None and (text := read_text(item, field, column).text)]
        texts = [text for text in texts if text.strip()]
        if normal(column.rpartition(".")[2]) == "expectedfacts":
            return ReadText("\n".join(texts) or None)
        return ReadText(texts[0] if texts else None, whole=len(set(texts)) <= 1)
    if is_parts(items):
        messages = read_parts(items, speaker)
        return ReadText(spoken_text(messages, field), messages)
    raise DataError(of_another_type("text", items))


def _text_in_object(value: dict[str, Any], field: str, column: str) -> ReadText:
    keys = {normal(key): key for key, item in value.items() if item is not None}
    if "role" in keys and not value.keys().isdisjoint(("content", "tool_calls")) and is_conversation([value]):
        messages = read_messages([value])
        return ReadText(spoken_text(messages, field), messages)
    if field in ("input", "output") and (spoken := _spoken_in_object(value, keys, field)) is not None:
        return spoken
    if (text := _text_under_name(value, keys, field, column)) is not None:
        return text
    if "parts" in value and value.keys() <= {"parts", "role"}:  # Gemini's
        speaker = FIELD_ROLES.get(field, "assistant")
        messages = read_messages([{"role": speaker, "parts": value["parts"]}])
        return ReadText(spoken_text(messages, field), messages, whole=False)
    if normal(column) == "expectations" or not keys:
        return ReadText(None, whole=not keys)
    return _text_of_values(value, keys, field, column)


def _spoken_in_object(value: dict[str, Any], keys: Mapping[str, str], field: str) -> ReadText | None:
    """The text of a field in the transcript or the conversation that an object has; None if it has none.

    keys: The keys of its values by their normal names.
    """
    items = _conversation_in(value, keys)
    remembered = _read_remembered(value, keys)
    more = {"system", "messages"} <= keys.keys()  # instructions beside the messages, as Bedrock's requests have
    if (more or not items) and not remembered and (transcript := transcript_in(value)) is not None:
        return _text_of(transcript, field)
    if not items and not remembered:
        return None
    messages, is_whole = read_messages(items), keys.keys() <= {*_CONVERSATION_PARTS, *_BESIDE}
    history = tuple(replace(message, tool_calls=()) for message in remembered)
    system = sum(1 for _ in itertools.takewhile(lambda message: message.role == "system", messages))
    whole = (*messages[:system], *filter(_is_read, history), *messages[system:])
    text = spoken_text(messages, field)
    if text is None and remembered:
        text = ""  # what was asked in an earlier run is not the input of this one
    return ReadText(text, whole, whole=is_whole and history == remembered)


def _text_under_name(value: dict[str, Any], keys: Mapping[str, str], field: str, column: str) -> ReadText | None:
    """The text that an object has under a name of a field; None without such a name. keys: as above."""
    names = ("raw",) if field == "input" and {"raw", "label"} <= keys.keys() else ()  # a prompt of promptfoo
    for name in (*names, *inner_names(field)):
        if name in keys:
            inner = read_text(value[keys[name]], field, f"{column}.{keys[name]}")
            return inner._replace(whole=inner.whole and len(value) == 1)
    if field == "output" and "error" in keys and value[keys["error"]]:
        return ReadText(None, whole=False)  # what failed gave no answer
    if field == "output" and any(normal(key) in inner_names(field) for key in value):
        return ReadText("", whole=len(value) == 1)  # its text is null
    return None


def _text_of_values(value: dict[str, Any], keys: Mapping[str, str], field: str, column: str) -> ReadText:
    """The only value of an object without a name of a field, or several as JSON. keys: as above.

    Raises DataError for values that aren't all texts and numbers, with the one to map.
    """
    texts = [scalar_text(item) for item in value.values() if item is not None]
    if field != "input" and len(texts) == 1 and texts[0] is not None:
        return ReadText(texts[0], whole=False)
    if None not in texts:
        return ReadText(json.dumps(storable(value), ensure_ascii=False))
    readable = [key for key in keys.values() if _is_readable(value[key], field)]
    problem = f"must be text or have it under a name of {field}, not an object with {shortlist(value)}"
    if not readable:
        raise DataError(problem)
    chosen = min(readable, key=lambda key: _doubt(value[key]))
    raise DataError(problem, Hint.of("; choose one of these with ", Setting("map", {field: f"{column}.{chosen}"})))


def _read_remembered(value: dict[str, Any], keys: Mapping[str, str]) -> tuple[Message, ...]:
    """The messages of earlier runs in the input of a Mastra run. Their tool calls are not calls of this run."""
    items: Any = value[keys["rememberedmessages"]] if "rememberedmessages" in keys else None
    return read_messages(_remembered(items)) if is_array(items) and items else ()


def _is_read(message: Message) -> bool:
    return bool(message.content.strip() or message.reasoning or message.attachments)


def _is_readable(value: Any, field: str) -> bool:
    try:
        return read_text(value, field, "").text is not None
    except DataError:
        return False


def _doubt(value: Any) -> int:
    """How little a value looks like the text of a field: a number is more likely a status, and a word an ID."""
    if is_object(value) or is_array(value):
        return 1
    return 0 if isinstance(value, str) and " " in value.strip() else 2 if isinstance(value, str) else 3


def _remembered(items: list[Any]) -> list[Any]:
    """Messages marked as those of an agent's memory."""
    return [{**item, "origin": "memory"} if is_object(item) else item for item in items]


def _text_of(transcript: Transcript, field: str) -> ReadText:
    """The text of a field in a transcript, which has more than the sample does, such as tokens."""
    text = transcript.output if field == "output" else spoken_text(transcript.messages, field)
    return ReadText(text, transcript.messages, whole=False, failed=bool(transcript.error))


def _conversation_in(value: dict[str, Any], keys: Mapping[str, str]) -> list[Any]:
    """The messages in an object such as a Mastra run or an OpenAI completion; empty for others."""
    if "inputmessages" in keys or "messages" in keys:
        lists = [_only_list(value[keys[name]]) for name in _CONVERSATION_PARTS if name in keys]
        tagged: Any = value[keys["taggedsystemmessages"]] if "taggedsystemmessages" in keys else {}
        lists += list(tagged.values()) if is_object(tagged) else []
        return [item for items in lists if is_array(items) for item in items]
    choices: Any = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict) and "message" in choices[0]:
        return [choices[0]["message"]]
    generations: Any = _only_list(value.get("generations"))  # a result of a model of LangChain
    if is_array(generations) and generations and is_object(generations[0]) and "text" in generations[0]:
        return [generations[0].get("message") or {"role": "assistant", "content": generations[0]["text"]}]
    return []


def _only_list(items: Any) -> Any:
    """The list that is the only item of a list, as LangChain's models are called with several conversations; anything
    else unchanged."""
    return items[0] if is_array(items) and len(items) == 1 and is_array(items[0]) else items
