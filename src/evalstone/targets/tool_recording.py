"""Recordings of tool calls: JSON Lines, each with the calls of one answer of a target.

    {"format": "tool_calls/1", "sample_id": "ada", "trial": 1, "thread": "9f0c…", "turn": 1, "began": 1, "calls": [
     {"tool": "search", "arguments": {"query": "Ada"}, "seconds": 0.21, "finished": true, "result": ["…"]}]}

A conversation has one line per turn. The lines of one attempt at a sample and trial have the same thread. An attempt
replaces earlier ones from its first turn on.
"""

from __future__ import annotations

import builtins
import dataclasses
import hashlib
import json
import math
import os
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, BinaryIO, NamedTuple, cast
from uuid import UUID

from evalstone._core.atomic_files import check_writable
from evalstone._core.display import count, excerpt, quoted, safe, shortlist
from evalstone._core.file_format import TOOL_CALLS_FORMAT
from evalstone._core.files import cannot_write, lock, private, row_limit, too_long
from evalstone._core.guards import is_mapping, is_object, is_sequence
from evalstone._core.json import content_hash
from evalstone._core.validation import read_data
from evalstone.datasets.writing import json_line
from evalstone.errors import ConfigError, DataError, TargetError
from evalstone.types import default_id_note

_START = b'{"format": "tool_calls/'
"""The beginning of every line, even of one whose writer was killed."""
_SHOWN, _BEFORE = 80, 20
"""The characters of a value to show around a difference, and how many of them to show before it."""


@dataclass(frozen=True, kw_only=True)
class RecordedError:
    """An exception that a tool raised."""

    kinds: tuple[str, ...]
    """The names of its type and base types; those that are not builtin have their module."""
    text: str
    arguments: tuple[Any, ...] | None = None
    """The arguments of the exception; None if they have no JSON form."""

    @classmethod
    def of(cls, error: Exception) -> RecordedError:
        """The recorded form of an exception."""
        kinds = tuple(_kind_name(kind) for kind in type(error).__mro__ if issubclass(kind, Exception))
        try:
            return cls(kinds=kinds, text=str(error), arguments=tuple(result_data(list(error.args))))
        except ValueError:
            return cls(kinds=kinds, text=str(error))

    def restored(self) -> Exception:
        """An exception of the same builtin type with the same text. For other types, one of the nearest builtin type,
        with the name of the recorded type at the beginning of its text."""
        for name in self.kinds:
            kind: Any = getattr(builtins, name, None)
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                continue
            text = self.text if name == self.kinds[0] else f"{self.kinds[0]}: {self.text}"
            for arguments in (self.arguments, (text,)):
                try:
                    error = kind(*(arguments or ()))
                except TypeError:  # UnicodeDecodeError, for one, needs bytes
                    continue
                if str(error) == text:
                    return error
        return Exception(f"{self.kinds[0]}: {self.text}")


def _kind_name(kind: type) -> str:
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@dataclass(frozen=True, kw_only=True)
class RecordedCall:
    """One call of a tool."""

    tool: str
    arguments: Mapping[str, Any]
    seconds: float
    finished: bool
    """Whether it returned or raised before the target had answered."""
    result: Any = None
    error: RecordedError | None = None

    def to_dict(self) -> dict[str, Any]:
        """The call as JSON data."""
        row = {"tool": self.tool, "arguments": self.arguments, "seconds": self.seconds, "finished": self.finished}
        if not self.finished:
            return row
        return {**row, "result": self.result} if self.error is None else {**row, "error": self.error}


@dataclass(frozen=True, kw_only=True)
class RecordedLine:
    """The calls of one answer."""

    sample_id: str
    trial: int
    thread: str
    """The id of the attempt."""
    turn: int
    began: int
    """The first turn of the attempt; later ones continue a conversation that was interrupted."""
    calls: tuple[RecordedCall, ...]


def result_data(value: Any, place: str = "result") -> Any:
    """A tool's result as JSON data. Tuples become lists.

    Raises:
        ValueError: A value in it would not survive a round trip through JSON. The message has its place and type.
    """
    try:
        return _exact(value, place)
    except RecursionError:
        raise ValueError(f"{place} is nested too deeply, or contains itself") from None


def _exact(value: Any, place: str) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{place} is {value}")
        return value
    if type(cast(object, value)) in (list, tuple):
        return [_exact(item, f"{place}[{at}]") for at, item in enumerate(value)]
    if is_object(value):
        if odd := [key for key in value if not isinstance(key, str)]:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"{place} has the key {excerpt(odd[0])}, which is no text")
        return {key: _exact(item, f"{place}[{key!r}]") for key, item in value.items()}
    raise ValueError(f"{place} is of type {type(value).__name__}")


def argument_data(value: Any) -> Any:
    """An argument as JSON data, for comparison. Dates, paths and the like become text.

    Raises:
        ValueError: It has no JSON form.
    """
    try:
        return json.loads(json.dumps(value, default=_readable, allow_nan=False))
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _readable(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if callable(dump := getattr(cast("type[Any]", type(value)), "model_dump", None)):  # a pydantic model
        return dump(value, mode="json")
    if is_mapping(value):
        return dict(value)
    if isinstance(value, Set):
        return sorted(map(argument_data, cast("Set[Any]", value)), key=content_hash)
    if is_sequence(value):
        return list(value)
    if isinstance(value, date | time | PurePath | UUID | Decimal | Enum):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


class Recorder:
    """Appends to a recording. Several processes can append at the same time.

    Raises:
        ConfigError: The file can't be written, or exists and is not a recording.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        check_writable(path)
        if path.exists():
            for _ in _lines(path):
                pass

    def add(self, line: RecordedLine) -> None:
        """Add the calls of one answer, durably.

        Raises:
            DataError: The line would be too long to be read again.
            ConfigError: As `write_text`.
            WriteError: As `write_text`.
        """
        text = (
            json_line(
                {"format": TOOL_CALLS_FORMAT, **vars(line), "calls": [call.to_dict() for call in line.calls]}
            ).encode()
            + b"\n"
        )
        if len(text) > row_limit():
            raise too_long(f"the recording of {count(len(line.calls), 'tool call')} of sample {line.sample_id!r}")
        with self._lock, _appending(self.path) as file:
            _cut_torn_line(file)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def _appending(path: Path) -> Generator[BinaryIO]:
    try:
        with open(path, "a+b", opener=private) as file:  # Path.open has no opener
            lock(file)
            yield file
    except OSError as error:
        raise cannot_write(f"cannot write {quoted(path)}", error) from error


def _cut_torn_line(file: BinaryIO) -> None:
    """Remove an incomplete last line, whose writer was killed, so that the next line starts on its own. A complete line
    without a line break, as some editors leave it, gets one."""
    end = file.seek(0, os.SEEK_END)
    start, tail = end, b""
    while start and b"\n" not in tail:
        start = max(0, start - (1 << 16))
        file.seek(start)
        tail = file.read(end - start)
    torn = tail.rpartition(b"\n")[2]
    file.seek(0, os.SEEK_END)
    if _is_whole(torn):
        file.write(b"\n")
    elif torn:
        file.truncate(end - len(torn))
        file.seek(0, os.SEEK_END)


def _lines(path: Path) -> Iterator[tuple[int, bytes, RecordedLine]]:
    """The lines of a recording, each with its offset in the file. An incomplete last line, whose writer was killed, is
    left out.

    Raises:
        ConfigError: The file can't be read.
        DataError: A line is not part of a recording. The message has the file and the line.
    """
    limit, place, number = row_limit(), 0, 0
    try:
        with path.open("rb") as stream:
            while text := stream.readline(limit + 1):
                number += 1
                if len(text) > limit:
                    raise too_long(f"{path}, line {number}")
                is_torn = not text.endswith(b"\n") and (text.startswith(_START) or _START.startswith(text))
                if is_torn and not _is_whole(text):
                    return
                yield place, text, _line(text, f"{path}, line {number}")
                place += len(text)
    except OSError as error:
        raise ConfigError(f"the recording {path} can't be read: {error.strerror}") from None


def _line(text: bytes, place: str) -> RecordedLine:
    try:
        data: Any = json.loads(text)
        TOOL_CALLS_FORMAT.check(data)
        line = read_data(RecordedLine, data)
        for at, call in enumerate(data["calls"]):
            if call["finished"] and ("result" in call) == ("error" in call):
                raise DataError(f"calls.{at} must have either a result or an error, for it has finished")
        return line
    except (ValueError, RecursionError, DataError) as error:
        raise DataError(f"{place}: not the tool calls of an answer (", error, ")") from None


def _is_whole(text: bytes) -> bool:
    try:
        return bool(_line(text, ""))
    except DataError:
        return False


class _Place(NamedTuple):
    """The offset of a line, with its thread and turn."""

    thread: str
    turn: int
    place: int


class Recording:
    """A recording to replay. Raises ConfigError or DataError if it can't be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[tuple[str, int], list[_Place]] = {}
        digest = hashlib.blake2b(digest_size=8)
        for place, text, line in _lines(path):
            lines = self._lines.setdefault((line.sample_id, line.trial), [])
            if lines and lines[-1].thread != line.thread:
                lines[:] = [each for each in lines if each.turn < line.began]
            lines.append(_Place(line.thread, line.turn, place))
            digest.update(text)
        self.digest = digest.hexdigest()

    def of(self, sample: str, trial: int, turn: int = 1) -> Replayed:
        """The calls of a sample and trial, from this turn of the conversation on.

        Raises:
            TargetError: They are not recorded, or the file has changed.
        """
        if (places := self._lines.get((sample, trial))) is None:
            raise TargetError(
                f"the tool calls of sample {sample!r}, trial {trial}, are not recorded in {self.path}"
                f"{default_id_note(sample)}"
            )
        places = [each for each in places if each.turn >= turn]
        changed = f"{self.path} has changed since the run began"
        try:
            with self.path.open("rb") as stream:
                lines = [self._at(stream, each.place) for each in places]
        except (OSError, DataError) as error:
            raise TargetError(f"{changed}: ", error) from None
        for line, each in zip(lines, places, strict=True):
            if (line.sample_id, line.trial, line.thread, line.turn) != (sample, trial, each.thread, each.turn):
                raise TargetError(changed)
        return Replayed([(line.turn, line.calls) for line in lines])

    def _at(self, stream: BinaryIO, place: int) -> RecordedLine:
        stream.seek(place)
        return _line(stream.readline(), f"byte {place}")


class Replayed:
    """The recorded calls of one sample and trial, each of which answers one call.

    Args:
        turns: Those of each answer, with its number.
    """

    def __init__(self, turns: Sequence[tuple[int, Sequence[RecordedCall]]]) -> None:
        self._tools = [call.tool for _, calls in turns for call in calls]
        self._open = [(turn, _key(call.tool, call.arguments), call) for turn, calls in turns for call in calls]

    def match(self, tool: str, arguments: Mapping[str, Any], *, in_order: bool) -> RecordedCall:
        """The recorded call of this tool with these arguments that has not answered another call.

        Raises:
            TargetError: There is none. The message says what differs.
        """
        key = _key(tool, arguments)
        for at, (_, recorded, call) in enumerate(self._open[:1] if in_order else self._open):
            if recorded == key:
                del self._open[at]
                return call
        raise TargetError(self._difference(tool, arguments, in_order=in_order))

    def rest(self, turn: int) -> str:
        """The recorded calls up to a turn, from 1, that were not made, in words; "" for none."""
        left = [call for recorded, _, call in self._open if recorded <= turn]
        if not left:
            return ""
        was = "was" if len(left) == 1 else "were"
        return f"{count(len(left), 'recorded tool call')} {was} not made: {shortlist(map(_shown, left))}"

    def _difference(self, tool: str, arguments: Mapping[str, Any], *, in_order: bool) -> str:
        left = [call for _, _, call in self._open[: 1 if in_order else None]]
        if in_order and left and left[0].tool != tool:
            return f"the tool {tool} was called where {_shown(left[0])} is recorded"
        similar = [call.arguments for call in left if call.tool == tool]
        if similar:
            differences = min((_differences(each, arguments) for each in similar), key=len)
            return f"the tool {tool} was called with other arguments than recorded: {'; '.join(differences)}"
        if tool in self._tools:
            times = count(self._tools.count(tool), "time")
            return f"the tool {tool} was called more often than recorded ({times})"
        known = shortlist(dict.fromkeys(self._tools)) or "none"
        return f"a call of the tool {tool} is not recorded for this sample and trial; recorded tools: {known}"


def _key(tool: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    return tool, content_hash(arguments)


def _differences(recorded: Mapping[str, Any], called: Mapping[str, Any]) -> list[str]:
    """Each argument that is not as recorded, with both values."""
    differences: list[str] = []
    for name in dict.fromkeys((*recorded, *called)):
        old, new = (
            json.dumps(each[name], ensure_ascii=False) if name in each else "absent" for each in (recorded, called)
        )
        if name in recorded and name in called and content_hash(recorded[name]) == content_hash(called[name]):
            continue
        pairs = enumerate(zip(old, new, strict=False))
        same = next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))
        start = same - _BEFORE if same > 2 * _BEFORE else 0
        old, new = (f"{'…' if start else ''}{safe(text[start:], _SHOWN)}" for text in (old, new))
        differences.append(f"{name} was {old}, now {new}")
    return differences


def _shown(call: RecordedCall) -> str:
    return f"{call.tool}({', '.join(f'{name}={excerpt(value)}' for name, value in call.arguments.items())})"
