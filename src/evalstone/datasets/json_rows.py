"""JSON Lines and JSON files as rows. Lines and array items are read one by one."""

from __future__ import annotations

import codecs
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from evalstone._core.display import escaped, excerpt, shortlist
from evalstone._core.file_format import own_row
from evalstone._core.files import check_containers, numbered_lines, row_limit, too_long
from evalstone._core.guards import is_array, is_object
from evalstone.agents.formats.records import is_telemetry
from evalstone.datasets.tables import LIST_NAMES, Refused, Rows, rows_in
from evalstone.errors import DataError, of_another_type

_JSON_TOKEN = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*")(\s*:)?|[{}]', re.DOTALL)
_NUMBER = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*"|(NaN|-?Infinity|-?(?<!\d)\d++[.eE][\d.eE+-]*+)', re.DOTALL)
_BLANK = re.compile(r"[ \t\n\r]*+")
_ARRAY = re.compile(r"\s*\[\s*(\{|$)")
_LONGEST_TOKEN = 16
_AN_ARRAY = "a JSON array begins here, but each line must be an object; give the file a name that ends with .json"


def json_lines(pieces: Iterable[str], first: int = 1, refused: Refused | None = None) -> Rows:
    """The JSON value of each line, without blank lines, and without the formats of evalstone's own files.

    first: The number of the first line. refused: What is called for a line that isn't JSON, which is left out then.
    Raises DataError, with line and column, for invalid JSON; and for a line that is too long.
    """
    limit = row_limit()
    for number, line in numbered_lines(pieces, first):
        if not line or line.isspace():
            continue
        try:
            row = _line_value(line, number, limit)
        except DataError as caught:
            is_array = number == first and _ARRAY.match(line) is not None
            error = DataError(f"line {number}: {_AN_ARRAY}") if is_array else caught
            if refused is None:
                raise error from None
            refused(f"line {number}", _without(f"line {number}", error))
            if is_array:
                return
            continue
        yield f"line {number}", row


def _without(place: str, error: DataError) -> DataError:
    """An error without its place, whose column it keeps."""
    start, *more = error.parts
    return DataError(str(start).removeprefix(place).lstrip(",: "), *more)


def _line_value(line: str, number: int, limit: int) -> Any:
    row = parse_json(line, number, limit=limit)
    if is_object(row) and "format" in row:
        try:
            return own_row(row)
        except DataError as error:
            raise DataError(f"line {number}: ", error) from None
    return row


def json_rows(pieces: Iterable[str], *, by_id: bool = False) -> Rows:
    """The rows of a JSON file: the items of an array, the rows of an object in a layout of `rows_in`, or a single
    object, such as an OTLP export request.

    A .json file with JSON Lines is accepted too. by_id: an object of lists under other names, such as labels by ID, is
    one row instead of an error. Raises DataError for anything else, for an item that is too long, and
    for a document that is too long and neither an array nor JSON Lines.
    """
    limit, pieces = row_limit(), iter(pieces)
    text = ""
    for piece in pieces:
        text += piece
        if text.startswith("[", _after_blanks(text, 0)):
            yield from _array_rows(JsonWindow(text, pieces))
            return
        if len(text) > limit:
            if not _starts_with_json_line(text):
                raise too_long("the document")
            yield from json_lines(itertools.chain((text,), pieces))
            return
    if not text.strip():
        return
    try:
        value = parse_json(text)
    except DataError:
        if not _starts_with_json_line(text):
            raise
        yield from json_lines([text])
        return
    if not is_object(value):
        raise DataError(of_another_type("a list of objects", value))
    if is_telemetry(value):
        yield "item 1", value
        return
    rows = rows_in(value)
    if not value or (rows is None and not by_id and any(isinstance(item, list) for item in value.values())):
        expected = f"must be a list of objects, or an object with one under {shortlist(LIST_NAMES)}"
        of_objects = [key for key, items in value.items() if is_array(items) and items and all(map(is_object, items))]
        hint = f"; if the samples are in {of_objects[0]}, name it data" if len(of_objects) == 1 else ""
        raise DataError(f"{expected}; it is an object with {shortlist(value) or 'nothing'}{hint}")
    yield from [("item 1", value)] if rows is None else rows


def _starts_with_json_line(text: str) -> bool:
    first, _, rest = text.lstrip().partition("\n")
    try:
        return bool(rest.strip()) and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _after_blanks(text: str, start: int) -> int:
    blanks = _BLANK.match(text, start)
    return start if blanks is None else blanks.end()


class JsonWindow:
    """A sliding window over a JSON text."""

    def __init__(self, text: str, pieces: Iterator[str]) -> None:
        self.text, self.pieces = text, pieces
        self.at, self.line, self.column = 0, 1, 1
        self.limit = row_limit()

    def next(self) -> str:
        """The next nonblank character; "" at the end."""
        while True:
            self.at = _after_blanks(self.text, self.at)
            if self.at < len(self.text) or not self._grow():
                return self.text[self.at : self.at + 1]

    @property
    def line_here(self) -> int:
        """The number of this line."""
        return self.line + self.text.count("\n", 0, self.at)

    def take(self, expected: str, problem: str) -> str:
        """Consume the next nonblank character, which must be one of those expected, and return it."""
        character = self.next()
        if not character or character not in expected:
            raise self.refused(json.JSONDecodeError(problem, self.text, self.at))
        self.at += 1
        return character

    def value(self, what: str) -> Any:
        """Consume the value that starts here, and return it. what: its name, for the error if it is too long."""
        while True:
            end, failure = len(self.text), None
            check_containers(self.text, self.at, what, limit=self.limit)
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                unfinished = error.pos > end - _LONGEST_TOKEN or error.msg.startswith("Unterminated string")
                if not unfinished:
                    raise self.refused(error) from None
                value, failure = None, error
            except (ValueError, RecursionError, _DuplicateKeyError) as error:
                raise self.refused(error) from None
            if end - self.at > self.limit:
                raise too_long(what)
            # A number at the end of the window may be incomplete, such as the `1` of `1.5` or `1e+9`.
            if end < len(self.text) - 3 or not self._grow():
                if failure is not None:
                    raise self.refused(failure)
                self.at = end
                return value

    def _grow(self) -> bool:
        """Drop the consumed text, and read as much again as is left. Returns False at the end of the text."""
        done, rest = self.text[: self.at], self.text[self.at :]
        more, size = list[str](), 0
        while size <= len(rest) and (piece := next((one for one in self.pieces if one), "")):
            more.append(piece)
            size += len(piece)
        if not more:
            return False
        breaks = done.count("\n")
        self.line += breaks
        self.column = len(done) - done.rfind("\n") if breaks else self.column + len(done)
        self.text, self.at = rest + "".join(more), 0
        return True

    def refused(self, error: Exception) -> DataError:
        """The error for the value that starts here."""
        return _refusal(error, self.text, self.at, self.line, self.column)


def _array_rows(window: JsonWindow) -> Rows:
    """The items of an array. Raises DataError for invalid JSON, and for an item that is too long."""
    window.take("[", "Expecting value")
    if window.next() == "]":
        window.take("]", "")
    else:
        for number in itertools.count(1):
            window.next()
            yield f"item {number}", window.value(f"item {number}")
            if window.take(",]", "Expecting ',' delimiter") == "]":
                break
    if window.next():
        window.take("", "Extra data")


class _DuplicateKeyError(Exception):
    """An object has the same key twice."""


class _NotFiniteError(Exception):
    """A number is NaN, infinite, or too large for a float."""


def parse_json(text: str, line: int = 1, *, finite: bool = False, limit: int | None = None) -> Any:
    """The value of a JSON text that starts in `line`. limit: `row_limit`, if it is known.

    Raises DataError, with line and column, for invalid JSON; with the line, for a duplicate key in an object, as one of
    the two values would be lost; and, if `finite`, for NaN, infinity, and numbers that are too large.
    """
    check_containers(text, what=f"line {line}", limit=limit)
    try:
        return (_FINITE if finite else _DECODER).decode(text)
    except (ValueError, RecursionError, _DuplicateKeyError, _NotFiniteError) as error:
        raise _refusal(error, text, 0, line, 1) from None


def utf8_text(content: bytes) -> str:
    """What another program sent as UTF-8, without a byte order mark. Raises DataError, with the line, for other
    bytes."""
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"line {line}: not UTF-8 (byte 0x{content[error.start]:02x})") from None


def reply_json(content: bytes, *, lines: bool = False) -> Any:
    """The value of the JSON text that a target replied with; if `lines`, also the list of the values of JSON Lines.

    Raises DataError as `parse_json` does for finite numbers, and for bytes that aren't UTF-8.
    """
    text = utf8_text(content)
    if not lines or not _starts_with_json_line(text):
        return parse_json(text, finite=True)
    split = enumerate(text.split("\n"), 1)  # splitlines would also split within JSON strings
    return [parse_json(each, number, finite=True) for number, each in split if each.strip()]


def _refusal(error: Exception, text: str, start: int, line: int, column: int) -> DataError:
    """The error for the JSON value at `start` of a text, which starts at this line and column of its file."""
    if isinstance(error, json.JSONDecodeError):
        near = text[max(0, error.pos - 20) : error.pos + 20]
        at = error.colno if error.lineno > 1 else error.colno + column - 1
        place = f"line {line + error.lineno - 1}, column {at}"
        return DataError(f"{place}: not JSON ({error.msg}): {excerpt(near)}")
    if isinstance(error, _DuplicateKeyError):
        key, position = _duplicate_key(text, start)
        line += text.count("\n", 0, position)
        return DataError(f"line {line}: duplicate key {excerpt(key)} in one object")
    if isinstance(error, _NotFiniteError):
        number = next(token for token in _NUMBER.finditer(text, start) if token[1] and _is_infinite(token[1]))
        line += text.count("\n", 0, number.start())
        return DataError(f"line {line}: {excerpt(number[1])} is no finite number")
    line += text.count("\n", 0, start)
    if isinstance(error, RecursionError):
        return DataError(f"line {line}: nested too deeply")
    if "int_max_str_digits" in str(error):
        return DataError(f"line {line}: a number of too many digits: {excerpt(text[start:])}")
    return DataError(f"line {line}: not JSON ({escaped(error)}): {excerpt(text[start:])}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise _DuplicateKeyError
    return entries


def _finite(digits: str) -> float:
    if _is_infinite(digits):
        raise _NotFiniteError
    return float(digits)


def _is_infinite(digits: str) -> bool:
    return not math.isfinite(float(digits))


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
_FINITE = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite)


def _duplicate_key(text: str, start: int) -> tuple[str, int]:
    """The first duplicate key after `start`, and its position. The text must have one."""
    objects: list[set[str]] = []
    for token in _JSON_TOKEN.finditer(text, start):
        if token[0] == "{":
            objects.append(set())
        elif token[0] == "}":
            objects.pop()
        elif token[2]:
            key: str = json.loads(token[1])
            if key in objects[-1]:
                return key, token.start()
            objects[-1].add(key)
    raise ValueError("there is no duplicate key")
