"""Types from JSON schemas, so that an answer can be described by either."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, Union

from evalstone._core.display import excerpt, shortlist
from evalstone._core.guards import is_array, is_object
from evalstone.errors import ConfigError, Problem, unknown

_PLAIN: Mapping[str, Any] = {"string": str, "number": float, "integer": int, "boolean": bool, "null": None}
_LIMITS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "description": "description",
}
_IGNORED = ("title", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions")
_READ = ("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "oneOf", "$ref")
KEYWORDS = (*_READ, *_LIMITS, *_IGNORED)
"""The keywords that a schema may have."""


def type_of(schema: Mapping[str, Any]) -> Any:
    """The type of the values that fit a JSON schema. Objects become dictionaries.

    Raises:
        ConfigError: The schema has a keyword that no type has, a reference that leads nowhere or to itself, or objects
            with free keys. The message names the place.
    """
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError("a JSON schema must be JSON data: ", error) from None
    return _type_of(text)


@functools.lru_cache(maxsize=256)
def _type_of(text: str) -> Any:
    root: dict[str, Any] = json.loads(text)
    return _read(root, root, "", ())


def _read(node: object, root: Mapping[str, Any], place: str, above: tuple[str, ...]) -> Any:
    if not is_object(node):
        raise _problem(place, f"must be a JSON schema as an object, not {excerpt(node)}")
    if odd := [name for name in node if name not in KEYWORDS]:
        raise _problem(place, "the type of an answer can't have this: ", unknown("keyword", odd[0], KEYWORDS))
    if "$ref" in node:
        return _referred(node["$ref"], root, place, above)
    kind = _kind(node, root, place, above)
    limits = {_LIMITS[name]: value for name, value in node.items() if name in _LIMITS}
    if not limits:
        return kind
    from pydantic import Field  # noqa: PLC0415 - its import takes longer than that of all of evalstone

    return Annotated[kind, Field(**limits)]


def _kind(schema: Mapping[str, Any], root: Mapping[str, Any], place: str, above: tuple[str, ...]) -> Any:
    """The type of a schema, without its limits."""
    if "enum" in schema or "const" in schema:
        values: Any = schema.get("enum", [schema.get("const")])
        if not is_array(values) or not values or not all(map(_is_word, values)):
            raise _problem(place, f"enum must be a list of texts, whole numbers or booleans, not {excerpt(values)}")
        return Literal[tuple(values)]
    for name in ("anyOf", "oneOf"):
        if name in schema:
            options = listed if is_array(listed := schema[name]) else []
            if not options:
                raise _problem(place, f"{name} must be a list of schemas")
            read = [_read(each, root, f"{place}.{name}[{at}]", above) for at, each in enumerate(options)]
            return Union[tuple(read)]  # noqa: UP007 - built at runtime
    kind = schema.get("type")
    if is_array(kind):
        return Union[tuple(_kind({**schema, "type": each}, root, place, above) for each in kind)]  # noqa: UP007
    match kind:
        case "object":
            return _object(schema, root, place, above)
        case "array":
            if "items" not in schema:
                raise _problem(place, "an array needs items, because every part needs a fixed type")
            item: Any = _read(schema["items"], root, f"{place}.items", above)
            return list[item]
        case str() if kind in _PLAIN:
            return _PLAIN[kind]
        case _:
            raise _problem(place, f"type must be one of {shortlist(('object', 'array', *_PLAIN))}, not {excerpt(kind)}")


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], place: str, above: tuple[str, ...]) -> Any:
    from typing_extensions import TypedDict  # noqa: PLC0415 - comes with pydantic, which is slow to import

    properties: Any = schema.get("properties")
    if not is_object(properties) or not properties or schema.get("additionalProperties", False) is not False:
        raise _problem(place, "an object needs properties and can't have others; use a list of objects for free keys")
    required: Any = schema.get("required", [])
    if not is_array(required) or not set(required) <= properties.keys():
        raise _problem(place, f"required must be a list of properties, not {excerpt(required)}")
    hints: dict[str, Any] = {}
    for name, inner in properties.items():
        hint = _read(inner, root, f"{place}.{name}", above)
        hints[name] = hint if name in required else NotRequired[hint]
    make: Any = TypedDict
    return make(str(schema.get("title") or "Answer"), hints)


def _referred(reference: object, root: Mapping[str, Any], place: str, above: tuple[str, ...]) -> Any:
    """The type of a part of the schema itself."""
    target: Any = root
    path = str(reference)
    for step in path.removeprefix("#/").split("/") if path.startswith("#/") else ("",):
        target = target.get(step) if is_object(target) else None
    if target is None:
        raise _problem(place, f"$ref {excerpt(reference)} is not a part of the schema; nothing is fetched")
    if path in above:
        raise _problem(place, f"$ref {excerpt(reference)} contains itself, so that its values have no fixed shape")
    return _read(target, root, place, (*above, path))


def _is_word(value: object) -> bool:
    return isinstance(value, str | int)


def _problem(place: str, *problem: str | Problem) -> ConfigError:
    return ConfigError(f"{place.removeprefix('.') or 'the JSON schema of an answer'}: ", *problem)
