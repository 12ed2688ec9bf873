"""What the JSON in a ledger's rows must hold, at least."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from evalstone.errors import EvalstoneError

INVALID_ROW = (ArithmeticError, ValueError, KeyError, TypeError, AttributeError, RecursionError, EvalstoneError)
"""The errors of what is not such a row."""

METADATA: Mapping[str, Any] = {
    **dict.fromkeys(("run", "kind", "name", "stop_reason"), str),
    "format": int,
    "tags": [str],
    "dataset": {"name": str, "version": str, "samples": int},
    "judge": {"identity": str, "note": str},
    "scorers": [{"name": str, "signature": str, "scale": float, "lower_is_better": bool}],
    "started": datetime,
    "seconds": float,
    "resumed": int,
    "warnings": {},
    "judge_stats": {},
}
"""What a run's metadata holds, at least; a list holds any number of its item."""
BODY: Mapping[str, Any] = {"sample": str, "scorer": str, "seconds": float, "steps": [{}]}
_MOST = {int: 2**31 - 1, float: sys.float_info.max}
_WORDS = {
    int: "a whole number from 0 to 2147483647",
    float: "a finite number of 0 or more",
    str: "a text",
    bool: "true or false",
    datetime: "a time, such as 2026-01-31T12:00:00+00:00",
}


def check(value: Any, shape: Any, name: str) -> None:
    """Raise one of INVALID_ROW, naming the field, for JSON data that is not of a type, or has not the items of one."""
    if isinstance(shape, Mapping):
        if not isinstance(value, dict):
            raise TypeError(f"{name} must be an object, not {reprlib.repr(value)}")
        for key, item in cast("Mapping[str, Any]", shape).items():
            if key not in value:
                raise ValueError(f"{name} has no {key}")
            check(value[key], item, f"{name}.{key}")
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise TypeError(f"{name} must be a list, not {reprlib.repr(value)}")
        for place, item in enumerate(cast("list[Any]", value)):
            check(item, shape[0], f"{name}[{place}]")
    elif not _is_of(value, shape):
        raise TypeError(f"{name} must be {_WORDS[shape]}, not {reprlib.repr(value)}")


def _is_of(value: Any, kind: type) -> bool:
    if kind is datetime:
        try:
            datetime.fromisoformat(value)
        except (TypeError, ValueError):
            return False
        return True
    if kind not in _MOST:
        return type(value) is kind
    return type(value) in (int, kind) and 0 <= value <= _MOST[kind]
