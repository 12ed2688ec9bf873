"""Values as JSON data, and the hash of their content."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast


def to_jsonable(value: Any) -> Any:
    """A value as JSON data: dataclasses as objects, tuples as lists, mappings with text keys."""
    kind = cast("type[Any]", type(value))
    if kind in _ATOMS:
        return value
    if kind is list or kind is tuple:
        return [item if type(item) in _ATOMS else to_jsonable(item) for item in value]
    if kind is dict:
        return {str(k): v if type(v) in _ATOMS else to_jsonable(v) for k, v in value.items()}
    if names := _field_names(kind):
        return {name: v if type(v := getattr(value, name)) in _ATOMS else to_jsonable(v) for name in names}
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(k): to_jsonable(v) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [to_jsonable(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, set | frozenset):  # sorted, for the order of a set differs from process to process
        return sorted((to_jsonable(item) for item in cast("set[Any]", value)), key=_CANONICAL.encode)
    if callable(dump := getattr(kind, "model_dump", None)):  # a pydantic model, without importing pydantic
        return to_jsonable(dump(value, mode="json"))
    return str(value)


_ATOMS: frozenset[type[Any]] = frozenset({str, int, float, bool, type(None)})
_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))


@functools.cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a dataclass; none for any other type."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()


def content_hash(value: Any) -> str:
    """The hash of a value's content, the same in every process: 32 hexadecimal digits."""
    return hashlib.blake2b(_CANONICAL.encode(to_jsonable(value)).encode(), digest_size=16).hexdigest()
