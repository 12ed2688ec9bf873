"""Tools for all formats: places of errors, tokens, and library objects as data."""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, TypeAlias, cast

from evalstone._core.display import excerpt
from evalstone._core.files import check_containers
from evalstone._core.guards import is_array, is_list, is_mapping, is_object
from evalstone._core.json import finite_constant
from evalstone._core.names import normal
from evalstone.errors import DataError
from evalstone.types import Message, ToolCall, Usage

Entries: TypeAlias = dict[str, Any]

_TOKENS: Mapping[str, tuple[str, ...]] = {
    "input": ("inputtokens", "prompttokens", "prompttokencount", "totalprompttokens", "input"),
    "output": ("outputtokens", "completiontokens", "candidatestokencount", "totalcompletiontokens", "output"),
    "cached": (
        *("cachedtokens", "cachereadtokens", "cachereadinputtokens", "cachedinputtokens", "cachedcontenttokencount"),
        *("totalcachedtokens", "cacheread", "cached"),
    ),
    "requests": ("requests",),
}
_CLAUDE_AGENT_BLOCKS: Mapping[str, str] = {
    "TextBlock": "text",
    "ThinkingBlock": "thinking",
    "ToolUseBlock": "tool_use",
    "ToolResultBlock": "tool_result",
    "ServerToolUseBlock": "server_tool_use",
    "ServerToolResultBlock": "server_tool_result",
}
_TOKEN_DETAILS = ("prompttokensdetails", "inputtokensdetails", "inputtokendetails")


def by_normal_name(entries: Mapping[str, Any]) -> Entries:
    """The entries under their names without case and separators."""
    return {normal(str(key)): value for key, value in entries.items()}


def first(entries: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first value under one of the names that is not None."""
    return next((entries[name] for name in names if entries.get(name) is not None), None)


def entries_of(value: Any) -> Entries:
    """An object's entries; none for anything else."""
    return value if is_object(value) else {}


def objects_in(value: Any) -> list[Entries]:
    """The objects in a list; none for anything else."""
    return [item for item in value if is_object(item)] if is_array(value) else []


def part_text(part: Mapping[str, Any]) -> str | None:
    """The text of a part: under `text`, or where OpenTelemetry has it, under `content`."""
    text = part.get("content") if part.get("text") is None and part.get("type") == "text" else part.get("text")
    return text if isinstance(text, str) else None


def checked_entries(value: Any, place: str) -> Entries:
    """An object's entries. Raises PlacedError for anything else."""
    if not is_object(value):
        raise PlacedError(f"must be an object, not {type(value).__name__}: {excerpt(value)}", place)
    return value


def checked_list(value: Any, place: str) -> list[Any]:
    """A list, none for None. Raises PlacedError for anything else."""
    if value is not None and not is_array(value):
        raise PlacedError(f"must be a list, not {type(value).__name__}: {excerpt(value)}", place)
    return value or []


def checked_objects(value: Any, place: str) -> list[Entries]:
    """A list of objects, none for None. Raises PlacedError for anything else."""
    return [checked_entries(item, f"{place}[{at}]") for at, item in enumerate(checked_list(value, place))]


def parsed(value: Any) -> Any:
    """The value of a JSON text, with NaN as None and infinity as text; anything else unchanged."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        check_containers(value)
        try:
            return json.loads(value, parse_constant=finite_constant)
        except ValueError:
            return value
    return value


def json_text(value: Any) -> Any:
    """The text in a JSON string literal; any other value unchanged."""
    if isinstance(value, str) and value.startswith('"'):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


_DIGITS = re.compile(r"[0-9]{1,15}")


class PlacedError(DataError):
    """A value that can't be read, and its place inside the whole: `.content[1].type`."""

    def __init__(self, problem: str | DataError, place: str = "") -> None:
        super().__init__(problem)
        self.place = place


def placed(error: DataError, step: str) -> PlacedError:
    """An error with its place extended by one level."""
    return PlacedError(error, step + getattr(error, "place", ""))


def only(items: Any, place: str) -> Entries:
    """The only object in a list. Raises PlacedError for any other number."""
    every = checked_list(items, place)
    if len(every) != 1:
        raise PlacedError(f"must have one entry, not {len(every)}; pass the one that is to be scored", place)
    return checked_entries(every[0], f"{place}[0]")


def read_usage(value: Any) -> Usage | None:
    """The tokens in an object, by the names of several providers; None without any.

    Anthropic and Bedrock count the tokens read from and written to the cache beside those of the input, and Gemini
    those of thoughts and of tools' prompts beside the others; here each count includes them.
    """
    if not is_object(value):
        return None
    entries = by_normal_name(value)
    counts, details = _counts(entries), _counts(by_normal_name(entries_of(first(entries, _TOKEN_DETAILS))))
    tokens = {field: first(counts, names) or 0 for field, names in _TOKENS.items()}
    tokens["cached"] = tokens["cached"] or first(details, _TOKENS["cached"]) or 0
    if "cachereadinputtokens" in counts or ("cachecreationinputtokens" in counts and "cachedinputtokens" not in counts):
        beside = ("cachereadinputtokens", "cachecreationinputtokens", "cachewriteinputtokens")
        tokens["input"] += sum(counts.get(name, 0) for name in beside)
    tokens["output"] += counts.get("thoughtstokencount", 0)
    tokens["input"] += counts.get("tooluseprompttokencount", 0)
    return Usage(**tokens) if any(tokens.values()) else None


def _counts(entries: Entries) -> dict[str, int]:
    counts = {name: _count(value) for name, value in entries.items()}
    return {name: count for name, count in counts.items() if count is not None}


def _count(value: Any) -> int | None:
    """A whole number from 0, also from a float, as in tables, or a text; None for anything else."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None


def read_cost(value: Any) -> float | None:
    """A cost in US dollars, also from a text; None for anything but a number from 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        cost = float(value)
    except (ValueError, OverflowError):
        return None
    return cost if 0 <= cost < float("inf") else None


def plain(value: Any) -> Any:
    """A value as JSON data: the objects of known libraries as these write them, without importing a library.

    What has no form as data stays as it is.
    """
    if value is None or isinstance(value, str | int | float):
        return value.value if isinstance(value, enum.Enum) else value
    if is_mapping(value):
        return {str(key): plain(item) for key, item in value.items()}
    if is_list(value):
        if value and _library(value[0]) == "pydantic_ai" and hasattr(value[0], "parts"):
            return _pydantic_ai_messages(value)
        return [plain(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, date):
        return value.isoformat()
    if _library(value) == "opentelemetry" and callable(getattr(value, "to_json", None)):
        return json.loads(value.to_json())
    if _library(value) == "claude_agent_sdk" and not isinstance(value, type):
        return _claude_agent_line(value)
    if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
        try:
            return plain(dump(mode="json", warnings=False))
        except (TypeError, ValueError):  # a field without a form as JSON, such as the artifact of a tool
            return plain(dump())
    if isinstance(value, Message | ToolCall):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if _library(value) == "pydantic_ai" and hasattr(value, "parts"):
            return _pydantic_ai_messages([value])[0]
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    return cast(Any, value)


def _claude_agent_line(value: Any) -> Any:
    """A message or a block of the Claude Agent SDK as it is in `--output-format stream-json`, which the SDK reads."""
    name = type(value).__name__
    entries = {key: plain(item) for key, item in cast("Entries", vars(value)).items() if item is not None}
    if name in _CLAUDE_AGENT_BLOCKS:
        return {"type": _CLAUDE_AGENT_BLOCKS[name], **entries}
    if name in ("UserMessage", "AssistantMessage"):
        role = name.removesuffix("Message").lower()
        said = {"role": role, "id": entries.get("message_id"), "usage": entries.pop("usage", None)}
        said["content"] = entries.pop("content")
        return {"type": role, "session_id": "", **entries, "message": said}
    if name == "ResultMessage":
        return {"type": "result", **entries}
    return entries_of(entries.get("data")) or {"type": name, **entries}


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _pydantic_ai_messages(messages: Sequence[Any]) -> list[Any]:
    adapter: Any = getattr(sys.modules.get("pydantic_ai.messages"), "ModelMessagesTypeAdapter", None)
    if adapter is None:
        raise DataError("pydantic_ai.messages has no ModelMessagesTypeAdapter; pass all_messages_json() instead")
    return adapter.dump_python(list(messages), mode="json")
