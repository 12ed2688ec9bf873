"""What kind of data a value is, for type checkers too: JSON, rows and settings arrive as `object`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list)


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether a value maps keys to values."""
    return type(value) is dict or isinstance(value, Mapping)  # the check of an abstract class takes ten times as long


def is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Whether a value is a list or a tuple."""
    return isinstance(value, list | tuple)


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value has items in an order, and is no text and no bytes."""
    if type(value) in (tuple, list):  # as in `is_mapping`
        return True
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def is_texts(value: object) -> TypeGuard[Sequence[str]]:
    """Whether a value is a sequence of texts."""
    return is_sequence(value) and all(isinstance(item, str) for item in value)


def python_value(value: object) -> object:
    """A number or truth value of numpy as Python's; any other value as it is."""
    is_scalar = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
    return cast(Any, value).item() if is_scalar else value


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a finite number; true and false are not."""
    # math.isfinite fails for integers that are too large for a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_partial(value: object) -> TypeGuard[functools.partial[Any]]:
    """Whether a value is a function with some of its arguments."""
    return isinstance(value, functools.partial)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def class_of(value: object) -> type[Any]:
    """The class of a value."""
    return type(value)
