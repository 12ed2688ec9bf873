"""OpenInference's own attributes: messages, documents, and lists in dotted names."""

from __future__ import annotations

import re
from typing import Any

from evalstone._core.guards import is_array, is_object
from evalstone.agents.formats.values import Entries, entries_of, first, objects_in, parsed

_NESTED = ("llm", "retrieval", "reranker")
_INDEX = re.compile(r"\d{1,6}")
_DOCUMENT_TEXTS = ("document.content", "content", "text", "page_content")


def message_in(item: Entries) -> Entries:
    """A message of OpenInference as OpenAI would write it."""
    message = entries_of(item.get("message", item))
    read: Entries = {key: message[key] for key in ("role", "content", "tool_call_id", "name") if key in message}
    contents = listed_objects(message.get("contents"))
    if contents:
        parts = [entries_of(part.get("message_content")) for part in contents]
        texts = [message["content"]] if isinstance(message.get("content"), str) and message["content"] else []
        read["content"] = [*(text for text in texts if all(part.get("text") != text for part in parts)), *parts]
    calls = [entries_of(call.get("tool_call")) for call in listed_objects(message.get("tool_calls"))]
    if message.get("function_call_name"):
        arguments = message.get("function_call_arguments_json")
        calls.append({"function": {"name": message["function_call_name"], "arguments": arguments}})
    # AutoGen's text beside calls, and its results of all calls in one message.
    if calls and "thought" in item:
        read = {"content": item["thought"], **read}
    if results := [
        {**entries_of(parsed(each)), "type": "tool_result"} for each in items_in(item.get("function")) or ()
    ]:
        read["content"] = results
    return {"content": None, **read, "tool_calls": calls}


def is_silent_result(message: Entries) -> bool:
    """Whether this is the message of a tool without a result, which isn't the same as an empty text."""
    return message.get("role") in ("tool", "function") and message["content"] is None


def document_text(document: Any) -> str | None:
    """The text of a retrieved document; None if it has none."""
    known: Any = _replanted(parsed(document))
    if is_object(known):
        text = first(entries_of(known.get("document")) or known, _DOCUMENT_TEXTS)
        if isinstance(text, str):
            return text
    return document if isinstance(document, str) else None


def items_in(value: Any) -> list[Any] | None:
    """A list, its JSON, an object with `documents`, or the object with a list's indices that flat attributes make of
    it; None for anything else."""
    value = parsed(value)
    if is_object(value):
        if keys := sorted((key for key in value if _INDEX.fullmatch(key)), key=int):
            return [value[key] for key in keys]
        value = parsed(value.get("documents"))
    return value if is_array(value) else None


def listed_objects(value: Any) -> list[Entries]:
    """The objects in a list, in any of the forms that `items_in` reads."""
    return objects_in(_replanted(items_in(value)))


def nested(attributes: Entries) -> Entries:
    """OpenInference's attributes as the tree that their dotted names say: `llm.input_messages.0.message.role`."""
    tree: Entries = {}
    for key, value in attributes.items():
        if key.partition(".")[0] in _NESTED:
            _plant(tree, key.split("."), value)
    return tree


def _plant(tree: Entries, path: list[str], value: Any) -> None:
    for step in path[:-1]:
        inner = tree.setdefault(step, {})
        if not is_object(inner):
            return
        tree = inner
    tree[path[-1]] = _replanted(value) if isinstance(value, dict | list) else value


def _replanted(value: Any) -> Any:
    if is_array(value):
        return [_replanted(item) for item in value]
    if not is_object(value):
        return value
    tree: Entries = {}
    for key, item in value.items():
        _plant(tree, key.split("."), item)
    return tree
