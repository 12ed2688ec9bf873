"""The file of traces: the parts of the spool, one per line, in the order of arrival."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from evalstone._core.display import quoted
from evalstone._core.files import private, row_limit, text_pieces
from evalstone._core.front_ends import Setting, Wording
from evalstone.agents.formats.records import is_telemetry
from evalstone.datasets.json_rows import json_rows
from evalstone.errors import ConfigError, DataError

_GZIP = b"\x1f\x8b"
_ANOTHER_FILE: Wording = "name another file with ", Setting("out", ...)


class Position(NamedTuple):
    """How far a file has the parts of the spool."""

    number: int
    """The number of the last part in it."""
    file: str
    """The file's device and inode, which stay the same if it is moved; "" if nothing was written yet."""
    size: int
    """The length of the file in bytes."""


class Export:
    """Appends parts to a file. If the file is moved or removed, another one takes its place.

    Args:
        path: The file.
        noted: The last stored position. The file may have later parts, and the last of these may be cut off.
        after: Returns the parts with higher numbers than this one, with their numbers.

    Raises:
        ConfigError: It has something other than traces.
        OSError: It can't be read or written to.
    """

    def __init__(self, path: Path, noted: Position, after: Callable[[int], Iterable[tuple[int, bytes]]]) -> None:
        self._path, self._noted, self._after = path, noted, after
        self._file: BinaryIO | None = self._opened()

    def write(self) -> bool:
        """Append the parts that aren't in the file yet. Returns whether a new file was started.

        Raises OSError, and ConfigError for a file with something other than traces.
        """
        try:
            moved = self._file is not None and self._is_gone(self._file)
            if self._file is None or moved:
                if moved:
                    self.sync()
                self.close()
                self._file = self._opened()
            for number, body in self._after(self._number):
                self._file.write(body + b"\n")
                self._number = number
            self._file.flush()
        except BaseException:
            self.close()  # the next call looks at what was written
            raise
        return moved

    def sync(self) -> Position:
        """Sync the file to disk, and return how far it has the parts. Raises OSError."""
        assert self._file is not None  # noqa: S101 - `write` has opened it
        os.fsync(self._file.fileno())
        status = os.fstat(self._file.fileno())
        self._noted = Position(self._number, _identity(status), status.st_size)
        return self._noted

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # what is buffered is written, or fails again
                self._file.close()
            self._file = None

    def _is_gone(self, file: BinaryIO) -> bool:
        """Whether the file was removed or moved, as by log rotation."""
        try:
            return not os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            return True

    def _opened(self) -> BinaryIO:
        file = open(self._path, "a+b", opener=private)  # noqa: SIM115 - open as long as the server
        try:
            status, end = os.fstat(file.fileno()), 0
            self._number = self._noted.number
            if _identity(status) == self._noted.file and status.st_size >= self._noted.size:
                end = self._matched(file)
            elif status.st_size and not _begins_with_traces(file):
                raise ConfigError(f"{quoted(self._path)} exists and has no traces; ", _ANOTHER_FILE)
            if file.seek(0, os.SEEK_END) > end and _last_byte(file) != b"\n":
                raise ConfigError(f"{quoted(self._path)} ends with an unfinished line; ", _ANOTHER_FILE)
        except BaseException:
            file.close()
            raise
        return file

    def _matched(self, file: BinaryIO) -> int:
        """Find the parts after the noted position, which were written before a crash; cut off an unfinished one.
        Returns where they end."""
        end = file.seek(self._noted.size)
        for number, body in self._after(self._number):
            line = body + b"\n"
            found = file.read(len(line))
            if found == line:
                self._number, end = number, end + len(line)
                continue
            if line.startswith(found):
                file.truncate(end)
            break
        return end


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


def _begins_with_traces(file: BinaryIO) -> bool:
    """Whether the first line of a file has traces."""
    file.seek(0)
    try:
        return is_telemetry(json.loads(file.readline(row_limit())))
    except (ValueError, RecursionError):
        return False


def _last_byte(file: BinaryIO) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)


def has_traces(path: Path) -> bool:
    """Whether a file begins with traces in a format that evalstone reads."""
    with path.open("rb") as file:
        zipped = file.read(2) == _GZIP
    try:
        with gzip.open(path) if zipped else path.open("rb") as stream:
            _, row = next(iter(json_rows(text_pieces(stream))), ("", None))
    except (DataError, EOFError, zlib.error, gzip.BadGzipFile):
        return False
    return is_telemetry(row)
