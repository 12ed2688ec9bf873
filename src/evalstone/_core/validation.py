"""Stored values, read by the annotations of dataclasses."""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from evalstone._core.guards import is_list, is_mapping
from evalstone.errors import ConfigError, DataError, Problem, absent, invalid

T = TypeVar("T")
_LARGEST = sys.float_info.max
_EXACT = {str: "text", int: "a whole number", bool: "true or false"}
"""Types that a value must have exactly (no subtypes), with their names in messages."""
_STORED_FORM = "__evalstone_stored__"
_Reader: TypeAlias = Callable[[Any], Any]
"""Converts a stored value to the value of its field, or raises _Unexpected."""


class UnknownKind(str):
    """The name of a kind that this version doesn't have, from a file that a newer one wrote. Constructors take it."""

    __slots__ = ()


def is_kind(value: object, known: Collection[object]) -> bool:
    """Whether a value is one of the known kinds, or one of a newer version's."""
    return value in known or isinstance(value, UnknownKind)


def check_time(name: str, value: object) -> None:
    """Raise ConfigError for a time that is neither None nor a datetime with a time zone."""
    if value is not None and not (isinstance(value, datetime) and value.tzinfo is not None):
        raise ConfigError(
            invalid(name, "a datetime with a time zone, such as datetime.now(UTC)", value, f"{value!r:.60}")
        )


def read_data(kind: type[T], data: object) -> T:
    """Create a dataclass instance from stored data. Keys that aren't fields are ignored, and a text that isn't among
    the texts of a `Literal` is kept as an `UnknownKind`: a newer version may have written both.

    Lists become tuples, and objects become dataclasses, as annotated. Values annotated as `Any`, or as a union of
    several types, are unchanged. A dataclass may adapt its data before it is read, with a class method
    `__evalstone_stored__`. It doesn't use pydantic, which takes longer to import than to read a typical file.

    Raises:
        DataError: a field is missing, or has a value of the wrong type; the message names the field.
    """
    try:
        return _instance(kind, data)
    except _Unexpected as error:
        raise DataError(error.named(".".join(map(str, reversed(error.path))))) from None


class _Unexpected(Exception):
    """A value of the wrong type, or a missing one. path: its position, innermost name first."""

    def __init__(self, expected: str, value: object, *path: str | int, shown: str = "", verb: str = "must be") -> None:
        super().__init__(expected)
        self.expected, self.value, self.path, self.shown, self.verb = expected, value, list(path), shown, verb

    @classmethod
    def of(cls, value: object, expected: str) -> _Unexpected:
        """An error that names the expected type and the value."""
        shown = value if isinstance(value, str | float | bool | None) else type(value).__name__
        return cls(expected, value, shown=f"{shown!r:.60}")

    def named(self, field: str) -> Problem:
        """What is wrong with a field; "" for the whole."""
        if not self.expected:
            return absent(field, f"{field} is missing")
        return invalid(field, self.expected, self.value, self.shown, verb=self.verb)


def _instance(kind: type[T], data: object) -> T:
    if not is_mapping(data):
        raise _Unexpected.of(data, "an object")
    values: dict[str, Any] = {}
    adapt = getattr(kind, _STORED_FORM, None)
    stored: Mapping[Any, Any] = data if adapt is None else adapt(data)
    for name, read, required in _readers(kind):
        if name in stored:
            try:
                values[name] = read(stored[name])
            except _Unexpected as error:
                error.path.append(name)
                raise
        elif required:
            raise _Unexpected("", None, name)
    return kind(**values)


@functools.cache
def _readers(kind: type[Any]) -> tuple[tuple[str, _Reader, bool], ...]:
    """The constructor fields of a dataclass: name, reader, and whether the field is required."""
    hints = get_type_hints(kind)
    return tuple(
        (field.name, _reader(hints[field.name]), field.default is field.default_factory is dataclasses.MISSING)
        for field in dataclasses.fields(kind)
        if field.init
    )


def _reader(hint: Any) -> _Reader:
    """The reader of values with this annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        kinds = [argument for argument in arguments if argument is not type(None)]
        if len(kinds) > 1:
            return _anything
        read = _reader(kinds[0])
        return lambda value: None if value is None else read(value)
    if origin is Sequence:
        return functools.partial(_tuple, _reader(arguments[0]), None)
    if origin is tuple:
        return functools.partial(_tuple, _reader(arguments[0]), None if Ellipsis in arguments else len(arguments))
    if origin is Mapping:
        return functools.partial(_mapping, _reader(arguments[1]))
    if origin is Literal:
        return functools.partial(_one_of, arguments)
    if dataclasses.is_dataclass(hint):
        return functools.partial(_instance, cast("type[Any]", hint))
    if hint in _EXACT:
        return functools.partial(_exactly, hint, _EXACT[hint])
    return _number if hint is float else _anything


def _anything(value: Any) -> Any:
    return value


def _exactly(kind: type[Any], expected: str, value: Any) -> Any:
    if type(value) is not kind:
        raise _Unexpected.of(value, expected)
    return value


def _number(value: Any) -> Any:
    if not (type(value) is float or type(value) is int) or not -_LARGEST <= value <= _LARGEST:
        raise _Unexpected.of(value, "a finite number")
    return value


def _one_of(allowed: tuple[Any, ...], value: Any) -> Any:
    if value in allowed:
        return value
    if type(value) is not str or not all(isinstance(each, str) for each in allowed):
        raise _Unexpected.of(value, " or ".join(map(str, allowed)))
    return UnknownKind(value)


def _tuple(read: _Reader, length: int | None, value: Any) -> Any:
    if not is_list(value):
        raise _Unexpected.of(value, "a list")
    if length not in (None, len(value)):
        raise _Unexpected(f"{length} items", len(value), shown=f"{len(value)}", verb="must have")
    values: list[Any] = []
    try:
        for item in value:
            values.append(read(item))
    except _Unexpected as error:
        error.path.append(len(values))
        raise
    return tuple(values)


def _mapping(read: _Reader, value: Any) -> Any:
    if not is_mapping(value):
        raise _Unexpected.of(value, "an object")
    if read is _anything:
        return value
    values: dict[Any, Any] = {}
    for key, item in value.items():
        try:
            values[key] = read(item)
        except _Unexpected as error:
            error.path.append(key)
            raise
    return values
