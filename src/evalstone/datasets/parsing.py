"""JSON text as values, with the place of what is wrong in it."""

from __future__ import annotations

import json
import re
from typing import Any

from evalstone.datasets.wording import escaped, excerpt
from evalstone.errors import DataError

_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[{}]', re.DOTALL)


class _TwiceError(Exception):
    """An object of the text has one key twice."""


def parsed(text: str, line: int = 1) -> Any:
    """The value of a JSON text that begins in `line`.

    Raises DataError with line and column of what is no JSON, and with the line of a key that stands twice in its
    object: one of the two values would be lost.
    """
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 20) : error.pos + 20]
        at = line + error.lineno - 1
        raise DataError(f"line {at}, column {error.colno}: not JSON ({error.msg}): {excerpt(near)}") from None
    except _TwiceError:
        key, position = _second(text)
        at = line + text.count("\n", 0, position)
        raise DataError(f"line {at}: the key {excerpt(key)} stands twice in one object") from None
    except RecursionError:
        raise DataError(f"line {line}: nested too deeply") from None
    except ValueError as error:
        raise DataError(f"line {line}: not JSON ({escaped(error)}): {excerpt(text)}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _TwiceError
    return made


def _second(text: str) -> tuple[str, int]:
    """The first key that its object had before, and where it stands. The text must hold one."""
    objects: list[set[str]] = []
    for found in _TOKEN.finditer(text):
        if found[0] == "{":
            objects.append(set())
        elif found[0] == "}":
            objects.pop()
        elif found[2]:
            key: str = json.loads(found[1])
            if key in objects[-1]:
                return key, found.start()
            objects[-1].add(key)
    raise ValueError("no key stands twice")


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
