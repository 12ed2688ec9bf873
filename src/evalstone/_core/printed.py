"""Values as Python prints them: literals, arrays of numpy, and objects of data classes, pydantic and LangChain.

Nothing is evaluated. What doesn't say all of its value is not read: arrays that were shortened by `...`, numbers of
numpy without commas, which are rounded, and texts that stand beside each other in a tuple or a list with commas, which
Python would join.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any, cast

from evalstone._core.syntax import parse_literal

STRING = r"""'[^'\\]*+(?:\\.[^'\\]*+)*'|"[^"\\]*+(?:\\.[^"\\]*+)*\""""
_BLANKS = re.compile(r"\s*+")
_STRING = re.compile(STRING, re.DOTALL)
_ESCAPED = re.compile(r"[\\\n\r\0]")
"""What a string in one pair of quotes can't have, or has to escape."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.])")
_NAME = re.compile(r"[A-Za-z_][\w.]*+")
_ENUM = re.compile(r"<[A-Za-z_][\w.]*+: ")
_PRINTED_DOCUMENT = re.compile(r"""page_content=(?:'([^'\\]*+)'|"([^"\\]*+)")(?:\s+metadata=(?=\{)|\Z)""")
"""A document as LangChain prints it, which doesn't escape its text: with a backslash, it isn't known what it was."""
_CONSTANTS = {"None": None, "True": True, "False": False, "nan": None, "np.nan": None, "NaT": None, "<NA>": None}
_LISTS = frozenset(
    ("array", "np.array", "numpy.array", "Index", "pd.Index", "deque", "set", "frozenset", "dict_values", "dict_keys")
)
_SETS = ("set", "frozenset")
_SCALARS = frozenset(
    (
        *("UUID", "PosixPath", "WindowsPath", "PurePosixPath", "Timestamp", "np.str_", "numpy.str_", "np.bool_"),
        *("np.int64", "np.int32", "np.float64", "np.float32"),
    )
)
"""What has one argument, which is its value."""
_DATES = {"datetime.date": date, "datetime.datetime": datetime}
_ROLES_IN_CLASSES = ("Message", "MessageChunk", "ChatCompletion")
"""The ends of the names of classes that say the role of a message, which their fields don't."""
_DEEPEST = 150


def read_printed(text: str, start: int = 0) -> tuple[Any, int] | None:
    """The value at the start of a text, and its end; None if there is none that can be read.

    Tuples are lists. Sets of texts are frozensets. An object that is
    printed with the names of its fields is an object with these. `nan` is None.

    Raises RecursionError for what is nested too deeply.
    """
    if (document := _PRINTED_DOCUMENT.match(text, start)) is not None:
        content = document[1] if document[2] is None else document[2]
        if document.end() == len(text):
            return {"page_content": content}, len(text)
        found = read_printed(text, document.end())
        return None if found is None else ({"page_content": content, "metadata": found[0]}, found[1])
    reader = _Reader(text, start)
    try:
        return reader.value(), reader.at
    except _UnreadableError:
        return None


class _UnreadableError(Exception):
    """A text has no value that can be read."""


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self.text, self.at, self.depth = text, at, 0

    def value(self) -> Any:
        """The value that begins here."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise RecursionError
        self.skip()
        value = self._value(self.text[self.at : self.at + 1])
        self.depth -= 1
        return value

    def _value(self, first: str) -> Any:
        if first == "[":
            return self._items("]")[0]
        if first == "(":
            return self._tuple()
        if first == "{":
            return self._braces()
        if first and first in "'\"":
            return self._string()
        if first == "<":
            self.take(_ENUM)
            value = self.value()
            self.expect(">")
            return value
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            return int(number[0]) if number[0].lstrip("-").isdigit() else float(number[0])
        name = self.take(_NAME)
        if self.text.startswith("(", self.at):
            return self._call(name)
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        raise _UnreadableError

    def skip(self) -> bool:
        """Go to the next character that isn't blank. Returns whether there were blanks."""
        start, blanks = self.at, _BLANKS.match(self.text, self.at)
        self.at = self.at if blanks is None else blanks.end()
        return self.at > start

    def take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise _UnreadableError
        self.at = match.end()
        return match[0]

    def expect(self, mark: str) -> None:
        self.skip()
        if not self.text.startswith(mark, self.at):
            raise _UnreadableError
        self.at += len(mark)

    def accept(self, mark: str) -> bool:
        self.skip()
        if self.text.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False

    def _string(self) -> str:
        piece = self.take(_STRING)
        if not _ESCAPED.search(piece):
            return piece[1:-1]
        try:
            return parse_literal(piece)
        except (SyntaxError, ValueError):
            raise _UnreadableError from None

    def _items(self, close: str) -> tuple[list[Any], int]:
        """The items of a list, and how many commas it has: numpy prints blanks between texts and objects."""
        self.at += 1
        items: list[Any] = []
        commas = blanks = 0
        while not self.accept(close):
            items.append(self.value())
            spaced = self.skip()
            if self.accept(","):
                commas += 1
            elif not self.text.startswith(close, self.at):
                if not spaced or close != "]":
                    raise _UnreadableError
                blanks += 1
        if blanks and (commas or not _are_of_numpy(items)):
            raise _UnreadableError
        return items, commas

    def _tuple(self) -> list[Any]:
        items, commas = self._items(")")
        if len(items) == 1 and not commas:
            raise _UnreadableError  # a value in brackets
        return items

    def _braces(self) -> Any:
        """An object, or a set of texts."""
        self.at += 1
        if self.accept("}"):
            return {}
        entries: dict[str, Any] = {}
        texts: set[str] = set()
        while True:
            self.skip()
            start = self.at
            key = self.value()
            if not texts and self.accept(":"):
                name = key if isinstance(key, str) else _key(self.text[start : self.at - 1].strip())
                entries[name] = self.value()
            elif not entries and isinstance(key, str):
                texts.add(key)
            else:
                raise _UnreadableError
            if not self.accept(","):
                self.expect("}")
                break
            if self.accept("}"):
                break
        return entries or frozenset(texts)

    def _call(self, name: str) -> Any:
        """An object, as it is printed: `Name(field=value)`, `array([…], dtype=object)`."""
        self.at += 1
        values, fields = list[Any](), dict[str, Any]()
        while not self.accept(")"):
            self.skip()
            start, match = self.at, _NAME.match(self.text, self.at)
            if match is not None and self.text.startswith("=", match.end()):
                self.at = match.end() + 1
                bare = name in _LISTS and match[0] == "dtype" and _NAME.match(self.text, self.at)
                if bare:
                    self.at = bare.end()
                else:
                    fields[match[0]] = self.value()
            elif fields:
                raise _UnreadableError
            else:
                self.at = start
                values.append(self.value())
            if not self.accept(","):
                self.expect(")")
                break
        return self._object(name, values, fields)

    def _object(self, name: str, values: list[Any], fields: dict[str, Any]) -> Any:
        if name in _LISTS and len(values) == 1 and isinstance(values[0], list | frozenset):
            items = cast("list[Any] | frozenset[str]", values[0])
            if name not in _SETS or isinstance(items, frozenset):
                return items
            if all(isinstance(item, str) for item in items):
                return frozenset(items)
        if name in _SCALARS and len(values) == 1 and isinstance(values[0], str | int | float):
            return values[0]
        if name in _DATES and values and not fields and all(isinstance(value, int) for value in values):
            try:
                return _DATES[name](*values).isoformat()
            except (ValueError, TypeError, OverflowError):
                raise _UnreadableError from None
        if fields and not values and name not in _LISTS and not name.endswith(_ROLES_IN_CLASSES):
            return fields
        raise _UnreadableError


def _are_of_numpy(items: list[Any]) -> bool:
    """Whether numpy prints these without loss: it rounds numbers."""
    return all(item is None or isinstance(item, str | dict | list) for item in items) and not all(
        item is None for item in items
    )


def _key(written: str) -> str:
    return {"None": "null", "True": "true", "False": "false", "nan": "null"}.get(written, written)
