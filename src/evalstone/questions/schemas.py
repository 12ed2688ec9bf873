"""Work with JSON schemas: find labels, write reply formats, build example replies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Node = Mapping[str, Any]


def resolved(node: Node, defined: Mapping[str, Node]) -> Node:
    """A node, or the definition that it refers to."""
    while "$ref" in node:
        node = defined[str(node["$ref"]).rpartition("/")[2]]
    return node


def with_definitions(schema: Node) -> Node:
    """The schema of a reply, with an object that is the form of several of its members written once. Each schema is a
    part of the prompt, and is paid for."""
    members: Mapping[str, Node] = schema.get("properties", {})
    forms = [node for node in members.values() if "properties" in node]
    repeated = next((node for node in forms if forms.count(node) > 1), None)
    if repeated is None:
        return schema
    shared = {name: {"$ref": "#/$defs/part"} if node == repeated else node for name, node in members.items()}
    return {**schema, "properties": shared, "$defs": {**schema.get("$defs", {}), "part": repeated}}


def nodes(schema: Node, *, lists: bool = False) -> Iterator[Node]:
    """All nodes of a schema. Each is visited once, because definitions may be recursive. lists: include list items."""
    defined, seen = schema.get("$defs", {}), set[int]()

    def within(node: Node) -> Iterator[Node]:
        node = resolved(node, defined)
        if id(node) in seen:
            return
        seen.add(id(node))
        yield node
        items = (node["items"],) if lists and "items" in node else ()
        inside: Iterable[Node] = (*node.get("properties", {}).values(), *node.get("anyOf", ()), *items)
        for inner in inside:
            yield from within(inner)

    return within(schema)


def has_labels(schema: Node) -> bool:
    """Whether replies with this schema have labels outside lists written by the judge."""
    return any("enum" in node or node.get("type") in ("boolean", "integer", "number") for node in nodes(schema))


def words_of(schema: Node) -> list[str]:
    """All enum words of a schema."""
    return [word for node in nodes(schema, lists=True) for word in node.get("enum", ()) if isinstance(word, str)]


def form_of(schema: Node) -> str:
    """The reply format, with `<…>` for values, so that the format itself isn't a valid reply."""
    return _form(schema, schema.get("$defs", {}), _DEPTH)


def _form(node: Node, defined: Mapping[str, Node], depth: int) -> str:
    if "$ref" in node:
        return _form(resolved(node, defined), defined, depth - 1) if depth > 0 else "<…>"
    if "enum" in node:
        return f"<{_listed([json.dumps(word, ensure_ascii=False) for word in node['enum']])}>"
    options: Sequence[Node] = node.get("anyOf", ())
    if options:
        return _listed(list(dict.fromkeys(_form(option, defined, depth) for option in options)))
    match node.get("type"):
        case "object":
            members = {name: _form(inner, defined, depth) for name, inner in node["properties"].items()}
            first = next(iter(members.values()), "")
            shown = [
                f"{json.dumps(name, ensure_ascii=False)}: {'…' if number and form == first and '{' in form else form}"
                for number, (name, form) in enumerate(members.items())
            ]
            shown += ['"2": …'] * ("1" in members)
            return f"{{{', '.join(shown)}}}"
        case "array":
            item = node["items"]
            # The range of a citation depends on the number of passages, but the format must not.
            return f"[{'<number>' if item.get('type') == 'integer' else _form(item, defined, depth)}, …]"
        case "integer" | "number" as kind:
            noun = "whole number" if kind == "integer" else "number"
            low, high = node.get("minimum"), node.get("maximum")
            return f"<{noun}>" if low is None or high is None else f"<{noun} from {low:g} to {high:g}>"
        case "boolean":
            return "<true or false>"
        case "null":
            return "null"
        case _:
            return "<string>"  # `<text>` would look like the fence `<<text>>`


def _listed(words: Sequence[str]) -> str:
    """Words as a list in prose: "a", "b" or "c"."""
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


_DEPTH = 4


def example_of(schema: Node, mark: str = "") -> Any:
    """A reply of typical length that fits a schema. mark: a part of its texts, so that examples differ."""
    text = f"A reason of the usual length {mark}".strip()
    return _example(schema, schema.get("$defs", {}), text, _DEPTH)


def _example(node: Node, defined: Mapping[str, Node], text: str, depth: int) -> Any:
    if "$ref" in node:
        return _example(defined[node["$ref"].rpartition("/")[2]], defined, text, depth - 1)
    if "enum" in node:
        return node["enum"][0]
    options: Sequence[Node] = node.get("anyOf", ())
    if options:
        return _example(options[0] if depth > 0 else options[-1], defined, text, depth)
    match node.get("type"):
        case "object":
            return {name: _example(inner, defined, text, depth) for name, inner in node["properties"].items()}
        case "array":
            count = max(node.get("minItems", 0), min(1, node.get("maxItems", 1)) if depth > 0 else 0)
            return [_example(node["items"], defined, text, depth) for _ in range(count)]
        case "integer" | "number":
            return _example_number(node)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return text


def _example_number(node: Node) -> float:
    if not {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} & node.keys():
        return 1  # such as the number of a passage
    low = node.get("minimum", node.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in node))
    high = node.get("maximum", node.get("exclusiveMaximum", low + 1))
    return low if node.get("type") == "integer" else (low + high) / 2
