"""Cells as values of sample fields: text, passages, ids, metadata.

Each function takes plain data (see `native`) and raises DataError whose text goes on from the column's name: `must be
text, not int: 42`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence, Set
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import PurePath
from typing import Any, NamedTuple, cast
from uuid import UUID

from evalstone.agents.messages import last_text
from evalstone.datasets.conversation import is_conversation, is_parts, read_messages, read_parts
from evalstone.datasets.names import inner_names, normal
from evalstone.datasets.wording import excerpt, listed
from evalstone.errors import DataError
from evalstone.types import Message, Role

_SPEAKERS: Mapping[str, Role] = {"input": "user", "instructions": "system"}
_PASSAGE_NAMES = ("text", "pagecontent", "content", "chunk", "passage", "passagetext", "contexts")
_CONVERSATION_PARTS = ("systemmessages", "rememberedmessages", "inputmessages", "messages")
_ABSENT_TYPES = ("NAType", "NaTType")


class Said(NamedTuple):
    """What a cell says: its text, None when it says nothing, and the messages when it is a conversation.

    whole: that nothing else was in the cell; otherwise the cell is kept in the metadata as well.
    """

    text: str | None
    messages: tuple[Message, ...] = ()
    whole: bool = True


def native(value: Any) -> Any:
    """A cell with plain objects and lists in it: arrays become lists, NaN, NA and NaT become None."""
    if value is None or isinstance(value, (str, int, Message)):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, list):
        return [native(item) for item in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        return {str(key): native(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, bytes | bytearray):
        return value
    if isinstance(value, Sequence):
        return [native(item) for item in cast("Sequence[Any]", value)]
    if type(value).__name__ in _ABSENT_TYPES:
        return None
    return native(value.tolist()) if callable(getattr(value, "tolist", None)) else value


def storable(value: Any) -> Any:
    """A native value as JSON data for the metadata, the same in every process; what has no such form is named only."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if value not in (float("inf"), float("-inf")) else str(value)
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
    """A cell whose text is a JSON array or object, as that; any other value as it is.

    Raises DataError for a list as Python prints it, which would pass for one long passage.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if (text[:1], text[-1:]) not in (("[", "]"), ("{", "}")):
        return value
    try:
        return native(json.loads(text))
    except ValueError:
        if text.startswith("['"):
            raise DataError(f"must be a JSON list, not a list as Python prints it: {excerpt(text)}") from None
        return value


def read_id(value: Any) -> str:
    """An id as text; whole numbers become text."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int | UUID):
        raise DataError(f"must be text or a whole number, not {type(value).__name__}: {excerpt(value)}")
    return str(value)


def read_metadata(value: Any) -> dict[str, Any]:
    """An object of further values; a text that holds a JSON object counts as one."""
    entries = unpacked(value)
    if not isinstance(entries, dict):
        raise DataError(f"must be an object, not {type(entries).__name__}: {excerpt(entries)}")
    return cast("dict[str, Any]", entries)


def read_passages(value: Any, *, cell: bool) -> tuple[str, ...]:
    """Passages in their order, the blank ones dropped.

    A passage is a text, or an object with its text under `text`, `page_content`, `content` or `chunk`. One text is one
    passage, unless it stands in a table's cell and is a JSON array.
    """
    if cell and isinstance(value, str) and value.lstrip().startswith("["):
        value = unpacked(value)
    passages = _passages(value)
    return tuple(passage for passage in passages if passage.strip())


def _passages(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [
            text for number, item in enumerate(cast("list[Any]", value), start=1) for text in _passage(item, number)
        ]
    titled = _titled(value)
    if titled is not None:
        return titled
    held = _held(value)
    if held is not None:
        return _passages(held)
    raise DataError(f"must be a list of passages, not {type(value).__name__}: {excerpt(value)}")


def _passage(item: Any, number: int) -> list[str]:
    if item is None or isinstance(item, str):
        return [] if item is None else [item]
    text = _held(item)
    if isinstance(text, str):
        return [text]
    wanted = "text or an object with text, page_content, content or chunk"
    raise DataError(f"must be a list of passages; passage {number} must be {wanted}, not {excerpt(item)}")


def _titled(value: Any) -> list[str] | None:
    """One passage a title, as HotpotQA has them: {"title": […], "sentences": [[…], …]}; None for anything else.

    A title without sentences is blank, for it says nothing.
    """
    entries = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    titles, texts = entries.get("title"), entries.get("sentences")
    if not isinstance(titles, list) or not isinstance(texts, list):
        return None
    named, told = cast("list[Any]", titles), cast("list[Any]", texts)
    if len(named) != len(told):
        raise DataError(f"must have sentences for every title; it has {len(named)} titles and {len(told)} lists")
    passages: list[str] = []
    for title, sentences in zip(named, told, strict=True):
        said = " ".join(text.strip() for text in _passages(sentences))
        passages.append(f"{title}: {said}" if said else "")
    return passages


def turn_passages(value: Any) -> tuple[str, ...]:
    """The passages that the turns of a conversation carry as `retrieval_context`, each once, as deepeval has them."""
    turns = cast("list[Any]", value) if isinstance(value, list) else []
    items = [cast("dict[str, Any]", turn) for turn in turns if isinstance(turn, dict)]
    held = [item[key] for item in items for key in item if normal(key) == "retrievalcontext" and item[key] is not None]
    return tuple(dict.fromkeys(passage for passages in held for passage in read_passages(passages, cell=False)))


def _held(item: Any) -> Any:
    """What an object holds under the first name of a passage; None for anything else."""
    if not isinstance(item, dict):
        return None
    by_name = {normal(key): value for key, value in cast("dict[str, Any]", item).items()}
    return next((by_name[name] for name in _PASSAGE_NAMES if by_name.get(name) is not None), None)


def read_text(value: Any, field: str, column: str) -> Said:
    """The text of a field.

    value: text; a conversation, of which the last user message is the input, the system messages are the instructions
    and the last assistant message is any other field; an object that holds one of these under a name of the field; for
    a reference also a list of alternatives, of which the first counts, or of `expected_facts`, which count together.
    """
    if isinstance(value, str):
        return Said(value)
    if isinstance(value, list):
        return _in_list(cast("list[Any]", value), field, column)
    if isinstance(value, dict):
        return _in_object(cast("dict[str, Any]", value), field, column)
    raise DataError(f"must be text, not {type(value).__name__}: {excerpt(value)}")


def _in_list(items: list[Any], field: str, column: str) -> Said:
    speaker = _SPEAKERS.get(field, "assistant")
    if not items:
        return Said(None)
    if is_conversation(items):
        messages = read_messages(items)
        return Said(last_text(messages, speaker), messages)
    if field == "reference":
        return _alternatives(items, column)
    if is_parts(items):
        messages = read_parts(items, speaker)
        return Said(last_text(messages, speaker), messages)
    raise DataError(f"must be text, not list: {excerpt(items)}")


def _alternatives(items: list[Any], column: str) -> Said:
    found = [read_text(item, "reference", column).text for item in items if item is not None]
    texts = [text for text in found if text and text.strip()]
    if normal(column.rpartition(".")[2]) == "expectedfacts":
        return Said("\n".join(texts) or None)
    return Said(texts[0] if texts else None, whole=len(set(texts)) <= 1)


def _in_object(value: dict[str, Any], field: str, column: str) -> Said:
    keys = {normal(key): key for key, item in value.items() if item is not None}
    if field in ("input", "output"):
        talk = _conversation_in(value, keys)
        if talk:
            messages = read_messages(talk)
            text = last_text(messages, _SPEAKERS.get(field, "assistant"))
            return Said(text, messages, whole=keys.keys() <= {*_CONVERSATION_PARTS, "taggedsystemmessages"})
    for name in inner_names(field):
        if name in keys:
            inner = read_text(value[keys[name]], field, f"{column}.{keys[name]}")
            return inner._replace(whole=inner.whole and len(value) == 1)
    if normal(column) == "expectations" or not keys:
        return Said(None, whole=not keys)
    texts = [item for item in value.values() if isinstance(item, str)]
    if len(value) == 1 and texts:
        return Said(texts[0])
    first = next(iter(keys.values()))
    raise DataError(
        f"must be text or hold it under a name of {field}, not an object with {listed(value)}; "
        f"choose one of these with --map {field}={column}.{first}"
    )


def _conversation_in(value: dict[str, Any], keys: Mapping[str, str]) -> list[Any]:
    if "inputmessages" in keys or "messages" in keys:
        lists = [value[keys[name]] for name in _CONVERSATION_PARTS if name in keys]
        tagged: Any = value[keys["taggedsystemmessages"]] if "taggedsystemmessages" in keys else {}
        lists += list(cast("dict[str, Any]", tagged).values()) if isinstance(tagged, dict) else []
        return [item for items in lists if isinstance(items, list) for item in cast("list[Any]", items)]
    choices: Any = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict) and "message" in choices[0]:
        return [cast("dict[str, Any]", choices[0])["message"]]
    return []
