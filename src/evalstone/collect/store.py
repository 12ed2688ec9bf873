"""The file of what was received: lines of OTLP's JSON, on disk before they are acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import time
import zlib
from pathlib import Path
from typing import BinaryIO

from evalstone._core import sync
from evalstone._core.files import cannot_write, lock, private, text_pieces
from evalstone.agents.formats.records import is_telemetry
from evalstone.collect.reading import Written
from evalstone.datasets.json_rows import json_rows
from evalstone.errors import ConfigError, DataError, described

WAITING_BYTES = 64_000_000
"""How much may wait for the disk before more is refused."""
_PIECE = 1 << 20
_GZIP = b"\x1f\x8b"


class StoreFull(Exception):
    """The disk can't follow, and nothing more is taken until it has."""


class TraceFile:
    """A file to which lines are appended. One process writes to it at a time.

    Lines that wait together are written and synced together. A line that can't be written leaves no trace in the file.

    Where files can't be locked, as on Windows, `locked` is None, and nothing keeps another process from writing.

    Args:
        path: Its path.
        written: Gets the places of what is written.

    Raises:
        ConfigError: It can't be written to, another process writes to it, it has something else than traces, or it
            can't be read back, if `written` is given.
    """

    def __init__(self, path: Path, written: Written | None = None) -> None:
        self.path = path
        self._written = written
        self._failed: tuple[os.stat_result, int] | None = None
        """The file to which lines could not be written, and where they began in it."""
        try:
            self.removed = self._open()
        except OSError as error:
            raise cannot_write(f"cannot write {str(path)!r}", error) from None
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._size = 0
        self._task: asyncio.Task[None] | None = None

    async def append(self, line: bytes) -> None:
        """Write a line, and return once it is on disk.

        Raises:
            StoreFull: Too much waits already.
            OSError: It could not be written.
        """
        if self._size + len(line) > WAITING_BYTES and self._waiting:
            raise StoreFull
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((line + b"\n", written))
        self._size += len(line)
        if self._task is None:
            self._task = asyncio.create_task(self._write_all())
        await asyncio.shield(written)

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                start, end = await sync.call(self._write, b"".join(line for line, _ in batch))
                if self._written is not None:
                    self._written.add(start, end, time.monotonic())
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for these lines any more
                failure = error if isinstance(error, OSError) else OSError(described(error))
                for _, written in batch:
                    written.set_exception(failure)
                    written.exception()  # its request may be gone
            else:
                for _, written in batch:
                    written.set_result(None)
            self._size = sum(len(line) for line, _ in self._waiting)
        self._task = None

    def _write(self, data: bytes) -> tuple[int, int]:
        """Write lines; the places in the file where they begin and end."""
        if self._file.closed or self._is_gone():
            self._reopen()
        start = self._file.seek(0, os.SEEK_END)
        try:
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
        except Exception:
            self._failed = os.fstat(self._file.fileno()), start
            with contextlib.suppress(OSError):
                self._file.close()  # what is buffered is written, or fails again
            self._reopen()
            raise
        return start, start + len(data)

    def _is_gone(self) -> bool:
        """Whether the file was removed, or moved to another place, as one is that is rotated."""
        try:
            return not os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        except FileNotFoundError:
            return True

    def _reopen(self) -> None:
        """Open the file anew. Raises OSError, also where something else has been written to it."""
        self._file.close()
        try:
            self._open()
        except ConfigError as error:
            raise OSError(str(error)) from None

    def _open(self) -> int:
        """Open the file, without what was written of lines that failed; the bytes of an unfinished line that a crash
        left, which are removed. Raises OSError, and ConfigError for a file that is not ours to write to."""
        self._file: BinaryIO = open(self.path, "a+b", opener=private)  # noqa: SIM115 - open as long as the server
        try:
            self.locked = not self.path.is_file() or lock(self._file, wait=False)
            if self.locked is False:
                raise ConfigError(f"{str(self.path)!r} is being written to by another process")
            if self._failed is not None and os.path.samestat(self._failed[0], os.fstat(self._file.fileno())):
                self._file.truncate(min(self._failed[1], self._file.seek(0, os.SEEK_END)))
            self._failed = None
            removed = _repair(self._file, self.path)
            if self._written is not None:
                self._written.open(self.path, self._file)
            return removed
        except BaseException:
            self._file.close()
            raise

    async def close(self) -> None:
        """Write what waits, and close the file."""
        while self._task is not None:
            await asyncio.shield(self._task)
        self._file.close()
        if self._written is not None:
            self._written.close()


def has_traces(path: Path) -> bool:
    """Whether a file begins with traces, in one of the forms in which they are read."""
    with path.open("rb") as file:
        zipped = file.read(2) == _GZIP
    try:
        with gzip.open(path) if zipped else path.open("rb") as stream:
            _, row = next(iter(json_rows(text_pieces(stream))), ("", None))
    except (DataError, EOFError, zlib.error, gzip.BadGzipFile):
        return False
    return is_telemetry(row)


def _repair(file: BinaryIO, path: Path) -> int:
    """Remove an unfinished last line, which was never acknowledged; the number of bytes removed.

    Raises ConfigError for a file that has something else than traces.
    """
    if not path.is_file() or not (size := file.seek(0, os.SEEK_END)):
        return 0
    file.seek(0)
    head = file.readline(WAITING_BYTES)
    if head.endswith(b"\n") and not _is_traces(head):
        raise ConfigError(f"{str(path)!r} exists and has no traces; name another file with --out")
    end = size
    while end:
        start = max(0, end - _PIECE)
        file.seek(start)
        place = file.read(end - start).rfind(b"\n")
        if place >= 0:
            end = start + place + 1
            break
        end = start
    file.seek(end)
    tail = file.read(20)
    if end < size:
        if not tail.startswith(b'{"resource'):
            raise ConfigError(f"{str(path)!r} exists and ends with something else than traces; name another file")
        file.seek(end)
        if _is_traces(file.read()):  # complete, but for the end of the line
            file.write(b"\n")
            file.flush()
            return 0
        file.truncate(end)
        file.flush()
    return size - end


def _is_traces(line: bytes) -> bool:
    try:
        return is_telemetry(json.loads(line))
    except (ValueError, RecursionError):
        return False
