"""The form of an answer, from a Python type: the JSON schema that a judge must keep to, and the reading of its reply.

Any type that pydantic knows will do whose shape is settled: a dataclass, a TypedDict, a pydantic model, a Literal,
text, numbers, bool, lists of these. An object type is asked for as it is; anything else stands under "answer", and
where it is a number, a word out of a list, or yes or no, a "reason" is asked for before it.
"""

from __future__ import annotations

import functools
import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from evalstone._core.parsing import TEXT, member, object_schema, validated
from evalstone.errors import ConfigError

_DROPPED = frozenset({"title", "default", "minLength", "maxLength", "uniqueItems", "discriminator", "examples"})
_DECISIONS = frozenset({"integer", "number", "boolean"})
_DEPTH = 4


@dataclass(frozen=True)
class AnswerForm:
    """The form of answers of one type. Raises ConfigError for a type whose values have no settled shape."""

    type: Any

    def __post_init__(self) -> None:
        try:
            hash(self.type)
        except TypeError:
            raise ConfigError(f"{self.type!r} cannot be the type of an answer: it is no type") from None
        self.schema()

    def schema(self) -> Mapping[str, Any]:
        """The JSON schema of a reply: strict, an object at its root."""
        return _schema(self.type)

    def read(self, data: Any) -> Any:
        """The answer in a parsed reply. Raises ReplyError for what is none."""
        if _whole(self.type):
            return validated(_portable(self.type), data)
        return validated(_portable(self.type), member(data, "answer"), "answer")

    def example(self, mark: str = "") -> Any:
        """A reply of this form, of typical length. mark: stands in its texts, so that examples can differ."""
        schema = self.schema()
        return _example(schema, _Example(schema.get("$defs", {}), mark), _DEPTH)

    def told(self) -> str:
        """The form in words, for judges that are given no schema."""
        return "Reply with one JSON object that fits this JSON schema:\n" + json.dumps(
            self.schema(), ensure_ascii=False
        )


@functools.lru_cache(maxsize=256)
def _portable(kind: Any) -> Any:
    """A type in which every TypedDict is one that pydantic takes; before Python 3.12 it refuses those of `typing`."""
    if typing.is_typeddict(kind) and type(kind).__module__ == "typing":
        from typing_extensions import TypedDict  # noqa: PLC0415 - comes with pydantic, which is slow to import

        hints = typing.get_type_hints(kind, include_extras=True)
        make: Any = TypedDict
        return make(kind.__name__, {name: _portable(hint) for name, hint in hints.items()}, total=kind.__total__)
    origin = typing.get_origin(kind)
    inner: tuple[Any, ...] = typing.get_args(kind)
    if origin in (list, tuple) and inner:
        generic: Any = origin
        return generic[tuple(_portable(one) for one in inner)]
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_portable(one) for one in inner)]  # noqa: UP007 - made of values, not written
    return kind


@functools.lru_cache(maxsize=256)
def _raw(kind: Any) -> dict[str, Any]:
    import pydantic  # noqa: PLC0415 - its import takes longer than that of all of evalstone
    from pydantic.errors import PydanticUserError  # noqa: PLC0415

    try:
        return pydantic.TypeAdapter(_portable(kind)).json_schema()
    except PydanticUserError as error:
        told = str(error).partition("\n")[0]
        raise ConfigError(f"{_name(kind)} cannot be the type of an answer: {told}") from None


@functools.lru_cache(maxsize=256)
def _schema(kind: Any) -> Mapping[str, Any]:
    raw = _raw(kind)
    strict: dict[str, Any] = _strict({key: value for key, value in raw.items() if key != "$defs"}, kind)
    defined = {name: _strict(inner, kind) for name, inner in raw.get("$defs", {}).items()}
    if not _whole(kind):
        decides = strict.get("type") in _DECISIONS or "enum" in strict
        strict = object_schema({"reason": TEXT, "answer": strict} if decides else {"answer": strict})
    return {**strict, "$defs": defined} if defined else strict


def _whole(kind: Any) -> bool:
    """Whether answers of a type are objects, which need nothing around them."""
    return _raw(kind).get("type") == "object"


def _strict(node: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """A schema without what strict modes refuse: every member is required, no other is allowed."""
    if "prefixItems" in node or not node:
        raise ConfigError(
            f"{_name(kind)} cannot be the type of an answer: a judge needs one settled type for each part"
        )
    made: dict[str, Any] = {}
    for key, value in node.items():
        match key:
            case "properties":
                made[key] = {name: _strict(inner, kind) for name, inner in value.items()}
            case "items":
                made[key] = _strict(value, kind)
            case "anyOf" | "oneOf":
                made["anyOf"] = [_strict(inner, kind) for inner in value]
            case "const":
                made["enum"] = [value]
            case _ if key not in _DROPPED:
                made[key] = value
            case _:
                pass
    if made.get("type") == "object":
        if "properties" not in made:
            raise ConfigError(
                f"{_name(kind)} cannot be the type of an answer: a dict with free keys has no strict schema; "
                "take a list of objects with the key as a member"
            )
        made.update(required=list(made["properties"]), additionalProperties=False)
    return made


@dataclass(frozen=True)
class _Example:
    defined: Mapping[str, Any]
    mark: str


def _example(node: Mapping[str, Any], of: _Example, depth: int) -> Any:
    if "$ref" in node:
        return _example(of.defined[node["$ref"].rpartition("/")[2]], of, depth - 1)
    if "enum" in node:
        return node["enum"][0]
    if options := cast("Sequence[Mapping[str, Any]]", node.get("anyOf", ())):
        return _example(options[0] if depth > 0 else options[-1], of, depth)
    match node.get("type"):
        case "object":
            return {name: _example(inner, of, depth) for name, inner in node["properties"].items()}
        case "array":
            count = max(node.get("minItems", 0), min(2, node.get("maxItems", 2)) if depth > 0 else 0)
            return [_example(node["items"], of, depth) for _ in range(count)]
        case "integer" | "number":
            return _number(node)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return f"A sentence of the length that judges write {of.mark}".strip()


def _number(node: Mapping[str, Any]) -> float:
    low = node.get("minimum", node.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in node))
    high = node.get("maximum", node.get("exclusiveMaximum", low + 1))
    return low if node.get("type") == "integer" else (low + high) / 2


def _name(kind: Any) -> str:
    return str(kind) if typing.get_origin(kind) else getattr(kind, "__qualname__", str(kind))
