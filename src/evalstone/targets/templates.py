"""Templates for requests to targets: a text, or JSON data with texts, with placeholders in braces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from evalstone._core.guards import is_list, is_mapping, is_sequence, is_texts
from evalstone._core.json import to_jsonable
from evalstone.datasets.columns import value_at
from evalstone.errors import PromptError, unknown
from evalstone.types import Message, Sample

_NAME = r"[A-Za-z_]\w*(?:\.[\w-]+)*"
_PLACEHOLDER = re.compile(rf"\\([{{}}])|\{{\{{\s*({_NAME})\s*\}}\}}|\{{({_NAME})\}}")
"""An escaped brace, `{{name}}` or `{name}`. Braces around anything else are text."""


def placeholders(template: Any) -> tuple[str, ...]:
    """The distinct placeholders of a template."""
    texts = _texts(template)
    return tuple(dict.fromkeys(m[2] or m[3] for text in texts for m in _PLACEHOLDER.finditer(text) if not m[1]))


def check_placeholders(template: Any, known: Iterable[str], what: str) -> None:
    """Raise PromptError for an unknown placeholder. what: the name of the template."""
    names = tuple(known)
    for name in placeholders(template):
        if name.partition(".")[0] != "metadata" and name not in names:
            raise PromptError(f"{what} has an ", unknown("placeholder", name, (*names, "metadata.NAME")))


def lacking(template: Any, sample: Sample) -> list[str]:
    """The placeholders of a template that a sample has no value for."""
    return [name for name in placeholders(template) if _value(sample, name) is None]


def _value(sample: Sample, name: str) -> Any:
    if name in ("trial", "thread"):
        return name  # a call always has them
    if name == "messages":
        return sample.messages or sample.input
    first, _, path = name.partition(".")
    return value_at(sample.metadata, path)[1] if path else getattr(sample, first)


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with the values in it. A text that is one placeholder becomes the value itself, whatever its type;
    inside a text, passages are separated by blank lines and other values are written as JSON."""
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        if whole is not None and not whole[1]:
            return _jsonable(_at(values, whole[2] or whole[3]))
        return filled_text(template, values)
    if is_mapping(template):
        return {name: filled(inner, values) for name, inner in template.items()}
    if is_list(template):
        return [filled(inner, values) for inner in template]
    return template


def filled_text(template: str, values: Mapping[str, Any]) -> str:
    """The text with the values in it. What looks like a placeholder in a value stays as it is."""
    return _PLACEHOLDER.sub(lambda match: match[1] or _written(_at(values, match[2] or match[3])), template)


def chat_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Messages as OpenAI's chat completions have them. The result of a tool call is a message of its own."""
    converted: list[dict[str, Any]] = []
    for message in messages:
        entry: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.role == "tool" and not message.tool_calls:
            entry["role"] = "user"  # whose result it is, is not known, and no API takes it without
        converted.append(entry)
        calls = [(call.id or f"call_{len(converted)}_{number}", call) for number, call in enumerate(message.tool_calls)]
        if calls:
            entry["tool_calls"] = [
                {
                    "id": call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(to_jsonable(call.arguments))},
                }
                for call_id, call in calls
            ]
        for call_id, call in calls:
            result = call.error if call.state == "error" and call.result is None else call.result
            if call.state in ("result", "error"):
                converted.append({"role": "tool", "tool_call_id": call_id, "content": _written(result)})
    return converted


def response_items(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Messages as the input of OpenAI's Responses API."""
    items: list[dict[str, Any]] = []
    for message in chat_messages(messages):
        calls = message.pop("tool_calls", [])
        if message["role"] == "tool":
            items.append(
                {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
            )
        elif message["content"] or not calls:
            items.append(message)
        items += [{"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls]
    return items


def _texts(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    elif is_mapping(template):
        for inner in template.values():
            yield from _texts(inner)
    elif is_list(template):
        for inner in template:
            yield from _texts(inner)


def _at(values: Mapping[str, Any], name: str) -> Any:
    return value_at(values, name)[1]


def _jsonable(value: Any) -> Any:
    return chat_messages(value) if _are_messages(value) else to_jsonable(value)


def _are_messages(value: object) -> TypeGuard[Sequence[Message]]:
    return is_sequence(value) and all(isinstance(each, Message) for each in value)


def _written(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if value and is_texts(value) and isinstance(value, tuple):
        return "\n\n".join(value)
    return json.dumps(_jsonable(value), ensure_ascii=False)
