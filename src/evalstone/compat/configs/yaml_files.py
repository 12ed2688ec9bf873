"""YAML as configurations have it: plain data with the lines of its keys. The only module that imports PyYAML.

Plain scalars are read as in YAML 1.2, as other languages do: `yes`, `on` and `2024-01-01` are text. Nothing but data is
made of a file: other tags, repeated keys, aliases within themselves, and files that alias their way to a great size
are refused.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from evalstone._core.display import excerpt
from evalstone.errors import DataError, MissingDependency

MOST_BYTES = 20_000_000
MOST_VALUES = 1_000_000
MOST_DEEP = 100
_TEXT = 32
"""The characters that count as a value."""
TOO_MUCH = f"more than {MOST_VALUES:,} values, or {MOST_VALUES * _TEXT:,} characters"
_STANDARD = "tag:yaml.org,2002:"
_INTEGER = re.compile(
    r"[-+]?(?:0b[01][01_]{0,300}|0o[0-7][0-7_]{0,300}|0x[0-9a-fA-F][0-9a-fA-F_]{0,300}|[0-9][0-9_]{0,300})"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?")
_PAIR = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][\da-fA-F]{2})\\u([dD][c-fC-F][\da-fA-F]{2})")
"""A character beyond 16 bits as JSON escapes it, which libyaml doesn't read."""
_CONSTANTS = {"": None, "~": None, "true": True, "false": False, "null": None}


class Table(dict[str, Any]):
    """A mapping, with the lines of its keys."""

    line: int = 0
    lines: dict[str, int]

    def __init__(self) -> None:
        super().__init__()
        self.lines = {}


class Items(list[Any]):
    """A sequence, with the lines of its items."""

    line: int = 0
    lines: list[int]

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self.lines = []


def line_of(value: object, key: str | int | None = None) -> int | None:
    """The line of a value of a file, or of one in it; None if it isn't known."""
    if isinstance(value, Table):
        return value.lines.get(cast("str", key), value.line) if key is not None else value.line
    if isinstance(value, Items):
        return value.lines[key] if isinstance(key, int) and key < len(value.lines) else value.line
    return None


def size_of(value: object) -> int:
    """How many values a scalar counts: a long text counts several."""
    return 1 + len(value) // _TEXT if isinstance(value, str) else 1


@dataclass
class _Open:
    """A sequence or mapping that hasn't ended."""

    value: Table | Items
    anchor: str | None
    size: int = 1
    key: str | None = None
    """Of a mapping, the key whose value comes next."""
    merged: list[tuple[int, Any]] = field(default_factory=list[tuple[int, Any]])
    """What `<<` names, with the lines."""


def read_yaml(text: str, place: str) -> Any:
    """The value of a YAML text; None if it is empty. JSON is YAML.

    Args:
        text: The text.
        place: What errors begin with: the name of the file.

    Raises:
        DataError: It isn't YAML, has several documents, or what is named above; with the line.
        MissingDependency: PyYAML is not installed.
    """
    yaml = _library()
    if len(text) > MOST_BYTES:
        raise DataError(f"{place}: larger than {MOST_BYTES:,} characters")
    reading = _Reading(place)
    try:
        # In Python, PyYAML takes a question mark within braces for a key.
        for event in yaml.parse(_PAIR.sub(_whole, text), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            reading.take(type(event).__name__, event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f" line {mark.line + 1}:"
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise DataError(f"{place}:{line} not YAML: {problem}") from None
    except RecursionError:
        raise DataError(f"{place}: nested too deeply") from None
    return reading.value


def _whole(pair: re.Match[str]) -> str:
    """The character that is escaped as a pair. JSON within the text of a YAML file stays JSON with it."""
    return pair[1] + chr(0x10000 + ((int(pair[2], 16) - 0xD800) << 10) + int(pair[3], 16) - 0xDC00)


def _library() -> Any:
    try:
        return importlib.import_module("yaml")
    except ImportError:
        raise MissingDependency("PyYAML", "yaml") from None


class _Reading:
    """Makes data of the events of a document."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.value: Any = None
        self._documents = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._size = 0

    def refuse(self, line: int, problem: str) -> DataError:
        return DataError(f"{self.place}: line {line}: {problem}")

    def take(self, kind: str, event: Any) -> None:
        line = event.start_mark.line + 1
        if kind == "DocumentStartEvent":
            self._documents += 1
            if self._documents > 1:
                raise self.refuse(line, "a second document; a configuration is one")
        elif kind == "ScalarEvent":
            self._check_tag(event, line)
            value = event.value if self._is_key() else _scalar(event)
            size = size_of(event.value)
            self._anchor(event.anchor, value, size)
            self._add(value, size, line)
        elif kind == "AliasEvent":
            if any(each.anchor == event.anchor for each in self._open):
                raise self.refuse(line, f"*{event.anchor} is an alias within itself")
            if event.anchor not in self._anchors:
                raise self.refuse(line, f"*{event.anchor} has no anchor before it")
            self._add(*self._anchors[event.anchor], line)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._check_tag(event, line)
            if len(self._open) >= MOST_DEEP:
                raise self.refuse(line, f"nested too deeply: {MOST_DEEP} levels are the most")
            if self._is_key():
                raise self.refuse(line, "a key must be text")
            value = Table() if kind == "MappingStartEvent" else Items()
            value.line = line
            self._open.append(_Open(value, event.anchor))
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            ended = self._open.pop()
            self._merge(ended)
            self._anchor(ended.anchor, ended.value, ended.size)
            self._add(ended.value, ended.size, ended.value.line)

    def _is_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, Table) and self._open[-1].key is None

    def _check_tag(self, event: Any, line: int) -> None:
        tag = event.tag
        if tag not in (None, "!") and tag.removeprefix(_STANDARD) not in ("str", "int", "float", "bool", "map", "seq"):
            raise self.refuse(line, f"the tag {tag.replace(_STANDARD, '!!')} isn't read: only plain data is")

    def _anchor(self, name: str | None, value: Any, size: int) -> None:
        if name is not None:
            self._anchors[name] = value, size

    def _add(self, value: Any, size: int, line: int) -> None:
        """Put a value where it belongs. size: how many values it is, with aliases written out."""
        if not self._open:
            self.value = value
            return
        into = self._open[-1]
        into.size += size
        if into.size > MOST_VALUES:
            raise self.refuse(line, f"with its aliases written out, it has {TOO_MUCH}")
        if isinstance(into.value, Items):
            into.value.append(value)
            into.value.lines.append(line)
        elif into.key is None:
            if not isinstance(value, str):
                raise self.refuse(line, "a key must be text")
            if value in into.value:
                first = into.value.lines[value]
                raise self.refuse(line, f"the key {excerpt(value)} is repeated: it is on line {first} too")
            into.key = value
            into.value.lines[value] = line
            if value != "<<":
                into.value[value] = None
        elif into.key == "<<":
            into.merged.append((line, value))
            into.key = None
        else:
            into.value[into.key] = value
            into.key = None

    def _merge(self, ended: _Open) -> None:
        """Add what `<<` names to a mapping. Its own keys come first, then the earlier of several."""
        into = ended.value
        for line, value in ended.merged:
            for table in _tables(value):
                if table is None:
                    raise self.refuse(line, "<< must name a mapping, or a list of them")
                for key, inner in table.items():
                    if key not in cast("Table", into):
                        cast("Table", into)[key] = inner
                        cast("Table", into).lines[key] = table.lines[key]


def _tables(value: Any) -> Iterator[Table | None]:
    for each in cast("list[Any]", value) if isinstance(value, Items) else [value]:
        yield each if isinstance(each, Table) else None


def _scalar(event: Any) -> Any:
    """The value of a scalar: text if it is quoted or a block."""
    text: str = event.value
    tag: str = (event.tag or "").removeprefix(_STANDARD)
    if tag == "str" or (event.style and not tag) or event.tag == "!":
        return text
    if text in _CONSTANTS or (text.lower() in _CONSTANTS and text in (text.lower(), text.upper(), text.capitalize())):
        return _CONSTANTS[text.lower()]
    if _INTEGER.fullmatch(text):
        digits = text.replace("_", "")
        prefixed = digits.lstrip("-+")[:2] in ("0b", "0o", "0x")
        return int(digits, 0) if prefixed else int(digits)
    if _FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    return text
